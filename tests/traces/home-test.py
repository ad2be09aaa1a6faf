#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The home that looks like an installation of CANN: what public build files and loaders look for in
# it, what programs get from it, where npusim home writes it.
# usage: home-test.py NPUSIM HOME-PROGRAM STUBS SANITIZER COMPILER

import os
import pathlib
import platform
import re
import shlex
import shutil
import stat
import subprocess
import sys

from command import case, environment, expect, main, need, npusim, same

PROGRAM, STUBS = (pathlib.Path(name).resolve() for name in sys.argv[2:4])
FLAGS = [] if sys.argv[4] == 'none' else ['-fsanitize=' + sys.argv[4]]
COMPILER = shlex.split(sys.argv[5])
ARCH = platform.machine() + '-linux'
for variable in ('ASCEND_HOME_PATH', 'ASCEND_TOOLKIT_HOME', 'CMAKE_PREFIX_PATH', 'PYTHONPATH'):
    os.environ.pop(variable, None)


def path_of_home():
    run = npusim('home')
    same((run.returncode, run.stderr), (0, ''), 'npusim home')
    return pathlib.Path(run.stdout.rstrip('\n'))


HOME = path_of_home()


def run(*command, env=None, status=0, **more):
    """The output of both kinds of a command that ends with this status."""
    done = subprocess.run([str(word) for word in command], env=env or environment(), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    same(done.returncode, status, '{}:\n{}'.format(shlex.join(map(str, command)), done.stdout))
    return done.stdout


# Path, and what its text must match; None: it has to be there.
LOOKED_FOR = [
    ('include/acl/acl.h', None),
    ('include/acl/acl_base.h', None), ('include/acl/acl_base_rt.h', None),
    ('include/acl/error_codes/rt_error_codes.h', None),
    ('include/acl/acl_rt.h', r'aclrtMemRetainAllocationHandle'),  # Mooncake, yuanrong
    ('lib64/libascendcl.so', None),
    ('lib64/libacl_rt.so', None),
    ('lib64/libruntime.so', None),                 # xLLM
    ('lib64/libc_sec.so', None), ('include/securec.h', r'errno_t memcpy_s'),
    ('pkg_inc/runtime/dev.h', None),               # shmem, yuanrong
    ('pkg_inc/runtime/kernel.h', None),            # shmem
    ('pkg_inc/runtime/rt_ffts.h', None),           # shmem
    ('pkg_inc/runtime/rt_external_event.h', None), # hixl
    ('lib64/stub/libascendcl.so', None),           # samples
    ('runtime/lib64/libascendcl.so', None),        # gpustack
    ('runtime/lib64/stub/libascendcl.so', None),   # samples: NPU_HOST_LIB
    ('fwkacllib/lib64/libascendcl.so', None),      # paddle
    ('acllib/lib64/libascendcl.so', None),         # opencv
    ('acllib/include/acl/acl.h', None),            # llama.cpp
    ('devlib/libascend_hal.so', None),             # hixl, hcomm
    ('pkg_inc/driver/ascend_hal.h', None),
    ('driver/lib64/driver/libascend_hal.so', None),
    ('driver/lib64/driver/libdcmi.so', None),      # lmcache-ascend: one of these two
    ('driver/lib64/driver/libdrvdsmi_host.so', None),
    ('driver/lib64/common', None),
    ('driver/version.info', r'(?m)^Version=\d+\.\d+'),
    ('driver/version.info', r'(?m)^Innerversion=V100R001C\d\dSPC\d{3}B\d{3}$'),  # memfabric
    (ARCH + '/include/acl/acl.h', None),           # Mooncake
    (ARCH + '/lib64/libascendcl.so', None),
    (ARCH + '/devlib/libascend_hal.so', None),
    (ARCH + '/ascend_toolkit_install.info', r'(?m)^version=\d+\.\d+\.\d+$'),  # lmcache-ascend
    ('version.cfg', r'\d+\.\d+\.\d+'),
    ('share/info/runtime/version.info', r'(?m)^Version=\d+\.\d+\.\d+$'),
    ('share/info/runtime/version.info', r'(?m)^timestamp=\d{8}_\d{9}$'),
    ('share/info/hccl/version.info', r'(?m)^version_dir=cann$'),
    ('opp/version.info', r'(?m)^Version='),
    ('include/version/cann_version.h', r'(?m)^#define CANN_VERSION_STR "\d+\.\d+\.\d+"$'), # hixl
    ('runtime', None), ('compiler', None),         # torch_npu raises without
    ('python/site-packages/acl/__init__.py', r'def init'),
    ('python/site-packages/pytest_npusim.py', r'pytest_addoption'),
    ('set_env.sh', r'ASCEND_HOME_PATH'),
    ('bin/setenv.bash', r'ASCEND_HOME_PATH'),
    ('bin/npu-smi', r'npu-smi'), ('bin/npusim', None),
    ('lib64/cmake/ascendcl/ascendcl-config.cmake', None),
]
SET = {'ASCEND_HOME_PATH': '', 'ASCEND_TOOLKIT_HOME': '', 'ASCEND_OPP_PATH': 'opp',
       'ASCEND_AICPU_PATH': '', 'TOOLCHAIN_HOME': 'toolkit'}
BEGINS = {'CMAKE_PREFIX_PATH': ['lib64/cmake', ''], 'PYTHONPATH': ['python/site-packages']}


def check_paths(home):
    for path, pattern in LOOKED_FOR:
        expect((home / path).exists(), home / path, 'is not there')
        if pattern:
            expect(re.search(pattern, (home / path).read_text()), home / path, pattern)
    expect(re.search(r'B(\d{3})$', (home / 'driver/version.info').read_text().rstrip())
           .group(1) >= '219')
    lib64 = home / 'lib64'
    expect(not lib64.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH), 'lib64 is open')  # shmem


def check_environment(text, home, ours_first):
    got = dict(line.split('=', 1) for line in text.splitlines() if '=' in line)
    for name, path in SET.items():
        same(got.get(name), os.path.normpath(home / path), name)
    for name, paths in BEGINS.items():
        same(got[name].split(':')[:len(paths)], [os.path.normpath(home / p) for p in paths], name)
    folders = got['LD_LIBRARY_PATH'].split(':')
    expect('' not in folders, folders)
    expect(os.path.samefile(folders[0] + '/libascendcl.so', home / 'lib64/libascendcl.so'))
    same('/opt/mine' in folders, True, folders)
    hal = [i for i, folder in enumerate(folders) if os.path.exists(folder + '/libascend_hal.so')]
    stubs = folders.index(str(home / 'lib64'))
    expect(stubs > folders.index('/opt/mine') > 0, folders)
    expect((hal[0] < stubs) if ours_first else hal, folders)
    return got


# ---- what is in it ----

@case
def everything_that_is_looked_for_is_there():
    check_paths(HOME)


@case
def links_lead_somewhere():
    for path in HOME.rglob('*'):
        expect(path.exists(), path, 'leads nowhere')


@case
def set_env_script_bears_strict_shells():
    bash = shutil.which('bash') or '/bin/bash'
    script = 'set -eu; . "$1"; . "$1"; env; ! type npusim_add 2>/dev/null'
    env = environment(LD_LIBRARY_PATH='/opt/mine', CMAKE_PREFIX_PATH='/opt/mine')
    for name in ('set_env.sh', 'bin/setenv.bash'):
        text = run(bash, '-c', script, 'bash', HOME / name, env=env)
        got = check_environment(text, HOME, False)
        for name in ('LD_LIBRARY_PATH', 'CMAKE_PREFIX_PATH'):
            entries = got[name].split(':')
            same(len(set(entries)), len(entries), 'entries twice in ' + got[name])
    text = run(bash, '-c', '. "$1"; exec "$2"', 'bash', HOME / 'set_env.sh', PROGRAM)
    expect('8 8 devices' in text, text)
    sh = shutil.which('dash')
    if sh:
        expect('bash or zsh' in run(sh, '-c', '. "$0"', HOME / 'set_env.sh', status=1))


# ---- npusim run ----

@case
def run_names_the_home():
    env = environment(LD_LIBRARY_PATH='/opt/mine', CMAKE_PREFIX_PATH='/opt/mine')
    got = check_environment(npusim('run', '--', 'env', env=env).stdout, HOME, True)
    expect(got['CMAKE_PREFIX_PATH'].endswith(':/opt/mine'))


@case
def run_leaves_a_home_that_is_named():
    for name in ('ASCEND_HOME_PATH', 'ASCEND_TOOLKIT_HOME'):
        env = environment(**{name: '/opt/cann'})
        text = npusim('run', '--', 'env', env=env).stdout
        expect('\n{}=/opt/cann\n'.format(name) in '\n' + text, text)
        expect('ASCEND_OPP_PATH' not in text and 'CMAKE_PREFIX_PATH' not in text, text)
    env['LD_LIBRARY_PATH'] = '/opt/mine'
    check_environment(npusim('run', '--home', '--', 'env', env=env).stdout, HOME, True)
    env = environment(ASCEND_OPP_PATH='/opt/opp')
    text = npusim('run', '--', 'env', env=env).stdout
    expect('ASCEND_OPP_PATH=/opt/opp\n' in text and 'ASCEND_HOME_PATH={}\n'.format(HOME) in text)


@case
def run_gives_the_libraries_by_name(folder):
    for verb in (['run'], ['record', '-o', folder / 'calls.npt']):
        done = npusim(*verb, '--devices', 3, '--', PROGRAM)
        same((done.returncode, done.stdout), (0, '3 3 devices\n'), done.stderr)
    # the server's own driver is not hidden
    text = npusim('run', '--backend', 'auto', '--', 'env').stdout
    folders = re.search(r'(?m)^LD_LIBRARY_PATH=([^:\n]*):([^:\n]*)$', text)
    same(folders.group(2), str(HOME / 'lib64'))


# ---- libraries that are only linked ----

def stubs():
    """Library -> (code, names with their kinds)"""
    found = {}
    for line in STUBS.read_text().splitlines():
        words = line.partition('#')[0].split()
        if words[:1] == ['library']:
            names = found[words[1]] = (int(words[2]), [])
        elif words and words[0] != 'client':
            names[1].extend(part for word in words for part in (
                [word[:-1], word[:-1] + 'GetWorkspaceSize'] if word[-1] == '+' else [word]))
    return found


@case
def only_linked_libraries_link(folder):
    libraries = stubs()
    expect(len(libraries) > 10)
    source = folder / 'client.c'
    names = [name.lstrip('*"@') for _, names in libraries.values() for name in names]
    source.write_text(
        ''.join('extern int f{}(void) __asm__("{}");\n'.format(i, name)
                for i, name in enumerate(names)) +
        'int client(void);\nint client(void)\n{\n\treturn ' +
        ' + '.join('f{}()'.format(i) for i in range(len(names))) + ';\n}\n')
    link = [*COMPILER, '-shared', '-fPIC', source, '-o', folder / 'client.so',
            '-L{}/lib64'.format(HOME), '-Wl,--no-undefined',
            # What it was linked with is AddressSanitizer's to find
            *(['-Wl,--allow-shlib-undefined'] if FLAGS else [])]
    run(*link, *['-l' + name for name in libraries])
    # no library has what another is for
    text = run(*link, *['-l' + name for name in libraries if name != 'nnopbase'], status=1)
    same(sorted(set(re.findall(r'undefined reference to .(\w+)', text))),
         sorted(name.lstrip('*"@') for name in libraries['nnopbase'][1]))


@case
def only_linked_libraries_export_their_names():
    nm = need('nm')
    for library, (_, names) in stubs().items():
        text = run(nm, '-D', '--defined-only', HOME / 'lib64/lib{}.so'.format(library))
        got = [line.split()[-1] for line in text.splitlines() if ' T ' in line]
        same(sorted(got), sorted(name.lstrip('*"@') for name in names), library)


@case
def a_call_of_what_is_only_linked_says_so():
    for library, name, answer, first in [('nnopbase', 'aclDestroyTensor', 207000, -1),
                                         ('nnopbase', 'aclCreateTensor', 0, -1),
                                         ('opapi', 'aclnnAddGetWorkspaceSize', 207000, -1),
                                         ('hccl', 'HcclCommDestroy', 5, -1),
                                         ('metadef', '_ZN2ge12AscendStringC1EPKc', None, 0)]:
        library = 'lib{}.so'.format(library)
        done = npusim('run', '--', PROGRAM, library, name)
        same(done.returncode, 0, done.stderr)
        if answer is not None:
            expect(done.stdout.startswith('{0} {1}\n{0} {1}\n'.format(name, answer)), done.stdout)
        expect(done.stdout.endswith('object {0} {0}\n'.format(first)), done.stdout)
        same(done.stderr.count(name), 1, done.stderr)
        expect('{} of {} was called'.format(name, library) in done.stderr, done.stderr)


# ---- CMake ----

CMAKE_LISTS = '''
cmake_minimum_required(VERSION 3.16)
project(client CXX)
foreach(package acl_rt ascendcl ascend_hal error_manager hccl metadef mmpa msprof nnopbase runtime
        securec slog tsdclient unified_dlog)
  find_package(${package} CONFIG REQUIRED)
endforeach()
foreach(target acl_rt_headers acl_rt ascendcl_headers ascendcl ascend_hal_headers ascend_hal
        ascend_hal_stub hccl_headers hccl hcomm c_sec c_sec_static slog alog nnopbase metadef
        error_manager mmpa msprofiler profapi profimpl tsdclient unified_dlog
        runtime_headers runtime)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "there is no target ${target}")
  endif()
endforeach()
add_executable(by_target client.cpp)
target_link_libraries(by_target ascendcl ascend_hal hccl nnopbase c_sec)

# As Mooncake finds it.
file(GLOB root "$ENV{ASCEND_HOME_PATH}/${CMAKE_SYSTEM_PROCESSOR}-linux")
file(READ "${root}/include/acl/acl_rt.h" text)
if(NOT "${text}" MATCHES "aclrtMemRetainAllocationHandle")
  message(FATAL_ERROR "no fabric memory")
endif()
find_library(metadef_found NAMES libmetadef.so PATHS ${root}/lib64 NO_DEFAULT_PATH REQUIRED)
# As a find module of CANN's does, by CMAKE_PREFIX_PATH alone.
find_library(hal_found NAMES libascend_hal.so PATH_SUFFIXES devlib REQUIRED)
find_path(hal_header NAMES driver/ascend_hal.h PATH_SUFFIXES pkg_inc REQUIRED)
add_executable(by_path client.cpp)
target_include_directories(by_path PRIVATE ${root}/include ${hal_header})
target_link_directories(by_path PRIVATE ${root}/lib64 ${root}/devlib)
target_link_libraries(by_path ascendcl runtime nnopbase opapi acl_op_compiler c_sec ascend_hal)
'''
CLIENT = '''
#include <acl/acl.h>
#include <driver/ascend_hal.h>
#include <runtime/dev.h>
#include <securec.h>
#include <version/runtime_version.h>
#include <cstdio>
int main()
{
	uint32_t devices = 0, chips = 0, phy = 9;
	char package[] = "runtime";
	int32_t version = 0;
	if (aclsysGetVersionNum(package, &version) || version != RUNTIME_VERSION_NUM)
		return 2;
	if (aclInit(nullptr) || aclrtSetDevice(0) || aclrtGetDeviceCount(&devices) ||
	    memcpy_s(&chips, 4, &devices, 4) != EOK || chips != devices ||
	    drvGetDevNum(&chips) || rtGetDevicePhyIdByIndex(1, &phy) || phy != 1)
		return 1;
	std::printf("%u %u\\n", devices, chips);
	return 0;
}
'''


@case
def a_cmake_project_is_built_against_it(folder):
    need('cmake')
    (folder / 'CMakeLists.txt').write_text(CMAKE_LISTS)
    (folder / 'client.cpp').write_text(CLIENT)
    copy = folder / 'home'
    npusim('home', copy)
    script = '{ cmake -S . -B build && cmake --build build; } >log 2>&1 || { cat log; exit 9; }'
    for home in (HOME, copy):
        shutil.rmtree(folder / 'build', ignore_errors=True)
        env = environment(CXXFLAGS=' '.join(['-Wall', '-Werror', *FLAGS]), NPUSIM_LOG='error')
        if home == copy:
            text = run('bash', '-c', '. home/set_env.sh && ' + script, env=env, cwd=folder)
        else:
            text = npusim('run', '--', 'sh', '-c', script, env=env, cwd=folder)
            same(text.returncode, 0, text.stdout)
        for program in ('by_target', 'by_path'):
            done = npusim('run', '--devices', 2, '--', folder / 'build' / program)
            same((done.returncode, done.stdout), (0, '2 2\n'), done.stderr)


# ---- npusim home ----

@case
def home_is_written_anywhere(folder):
    copy = folder / 'a' / 'home'
    old = os.umask(0)
    try:
        same(npusim('home', copy).returncode, 0)
    finally:
        os.umask(old)
    check_paths(copy)
    for path in copy.rglob('*'):
        expect(path.exists(), path, 'leads nowhere')
        expect(path.is_symlink() or not path.stat().st_mode & 0o022, path)
    same(os.readlink(copy / ARCH / 'lib64'), '../lib64', 'links inside')
    (copy / 'set_env.sh').unlink()
    same(npusim('home', copy).returncode, 0, 'again')
    text = run('bash', '-c', '. "$0"; env', copy / 'set_env.sh',
               env=environment(LD_LIBRARY_PATH='/opt/mine'))
    check_environment(text, copy, False)
    (folder / 'full').mkdir()
    (folder / 'full' / 'file').touch()
    for place in (folder / 'full', folder / 'full' / 'file'):
        done = npusim('home', place)
        same((done.returncode, 'neither an empty folder nor a home' in done.stderr), (1, True))
    same(os.listdir(folder / 'full'), ['file'])
    done = npusim('home', HOME)
    same((done.returncode, "npusim's own home" in done.stderr), (1, True), done.stderr)
    for words in (['a', 'b'], ['--remove'], ['--root', '/x'], ['--system', 'a']):
        same(npusim('home', *words).returncode, 2, words)


def tree(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob('*'))


@case
def home_takes_the_places_of_cann(folder):
    (folder / 'etc').mkdir()
    before = tree(folder)
    system = ['home', '--system', '--root', folder]
    for _ in range(2):
        done = npusim(*system)
        same((done.returncode, done.stderr), (0, ''))
    ascend = folder / 'usr/local/Ascend'
    for home in ('cann', 'latest', 'ascend-toolkit/latest'):
        check_paths(ascend / home)
    expect((ascend / 'driver/lib64/driver/libascend_hal.so').exists())
    expect((ascend / 'driver/version.info').exists())
    info = (folder / 'etc/ascend_install.info').read_text()
    # CANN's script looks for this key, and ends where it finds none
    expect(re.search(r'(?mi)^driver_install_path_param=/usr/local/Ascend$', info), info)
    text = run('bash', '-c', '. "$0"; env', ascend / 'ascend-toolkit/set_env.sh',
               env=environment(LD_LIBRARY_PATH='/opt/mine'))
    check_environment(text, HOME, False)
    (ascend / 'nnal').mkdir()
    same(npusim(*system, '--remove').returncode, 0)
    (ascend / 'nnal').rmdir()
    ascend.rmdir()
    (folder / 'usr/local').rmdir()
    (folder / 'usr').rmdir()
    same(tree(folder), before, 'what is left')


@case
def home_does_not_touch_a_driver(folder):
    paths = ['usr/local/Ascend/driver/version.info', 'usr/local/Ascend/latest/version.cfg',
             'dev/davinci_manager', 'etc/ascend_install.info']
    for number, path in enumerate(paths):
        root = folder / str(number)
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text('Driver_Install_Path_Param=/opt\n')
        before = tree(root)
        done = npusim('home', '--system', '--root', root)
        same(done.returncode, 1, done.stderr)
        expect('is there' in done.stderr, done.stderr)
        same(tree(root), before, 'what changed')
        done = npusim('home', '--system', '--remove', '--root', root)
        same(done.returncode, 0 if 'dev' in path else 1, done.stderr)
        same(tree(root), before, 'what changed')


main()
