# SPDX-License-Identifier: Apache-2.0
# What the CMake packages of this home are made of: imported targets under the names of CANN's.

get_filename_component(npusim_home "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

function(npusim_headers target)
  if(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED)
    set_target_properties(${target} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${npusim_home}/include;${npusim_home}/pkg_inc")
  endif()
endfunction()

function(npusim_library target file headers)
  if(NOT TARGET ${target})
    add_library(${target} SHARED IMPORTED)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION "${npusim_home}/${file}"
      INTERFACE_LINK_LIBRARIES ${headers})
  endif()
endfunction()
