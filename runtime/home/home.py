#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes the home, a folder that looks like an installation of CANN, and what is derived from the
# same tables:
#
#   home.py libraries STUBS            names of the libraries in stubs.txt
#   home.py stub OUT STUBS LIBRARY     the source of one
#   home.py environment OUT            HOME_VARIABLES(X), HOME_VERSION for npusim run and home
#   home.py tree OUT STUBS ARCH INCLUDE ACL HAL LIBRARIES SMI COMMAND
#                                      the folder, with links to these folders, and to these two
#                                      programs; HAL is "-": none.
#                                      "install" after them: all are below Meson's prefix

import os
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent

# What programs find their way by: set_env.sh exports it, npusim run sets it. A list has the entry
# in front or behind; the loader's is set_env.sh's alone, since npusim run knows the backend.
ENVIRONMENT = [
    ('SET', 'ASCEND_HOME_PATH', ''),
    ('SET', 'ASCEND_TOOLKIT_HOME', ''),
    ('SET', 'ASCEND_OPP_PATH', 'opp'),
    ('SET', 'ASCEND_AICPU_PATH', ''),
    ('SET', 'TOOLCHAIN_HOME', 'toolkit'),
    ('FIRST', 'CMAKE_PREFIX_PATH', ''),
    ('FIRST', 'CMAKE_PREFIX_PATH', 'lib64/cmake'),
    ('FIRST', 'PYTHONPATH', 'python/site-packages'),
]
LOADER_PATH = [('FIRST', 'runtime/lib64'), ('LAST', 'lib64')]
HAL_FOLDER = 'driver/lib64/driver'

ACL = ['libascendcl.so', 'libascendcl.so.1', 'libacl_rt.so', 'libruntime.so']
HAL = 'libascend_hal.so'
BOUNDED = 'libc_sec.so'
MANAGEMENT = ['libdcmi.so', 'libdrvdsmi_host.so']

# Older and other names for the same folders. $ARCH is x86_64 or aarch64.
LINKS = {
    'bin/setenv.bash': 'set_env.sh',
    'lib64/stub': 'devlib',
    'runtime/lib64/stub': 'devlib',
    'runtime/include': 'include',
    '$ARCH-linux/include': 'include',
    '$ARCH-linux/lib64': 'lib64',
    '$ARCH-linux/devlib': 'devlib',
    '$ARCH-linux/pkg_inc': 'pkg_inc',
    'compiler/include': 'include',
    'compiler/lib64': 'lib64',
    'acllib/include': 'include',
    'acllib/lib64': 'lib64',
    'fwkacllib/include': 'include',
    'fwkacllib/lib64': 'lib64',
}
# There for whoever asks whether they are.
FOLDERS = ['opp', 'toolkit', 'driver/lib64/common']
# Python's modules, and their sources.
MODULES = {'acl/__init__.py': 'home/acl.py', 'pytest_npusim.py': 'pytest/pytest_npusim.py'}
# Headers of CANN whose functions rt.h has, and two that shmem includes and takes nothing from.
RT_HEADERS = [
    'rt', 'base', 'dev', 'mem', 'stream', 'rt_external', 'rt_external_stream', 'rt_external_event',
    'kernel', 'rt_ffts',
]

# Packages of CMake, and their targets beside NAME_headers.
PACKAGES = {
    'acl_rt': {'acl_rt': 'lib64/libacl_rt.so'},
    'ascendcl': {'ascendcl': 'lib64/libascendcl.so'},
    'ascend_hal': {'ascend_hal': 'devlib/' + HAL, 'ascend_hal_stub': 'devlib/' + HAL},
    'error_manager': {'error_manager': 'lib64/liberror_manager.so'},
    'hccl': {'hccl': 'lib64/libhccl.so', 'hcomm': 'lib64/libhcomm.so'},
    'metadef': {'metadef': 'lib64/libmetadef.so'},
    'mmpa': {'mmpa': 'lib64/libmmpa.so'},
    'msprof': {name: 'lib64/lib{}.so'.format(name)
               for name in ('msprofiler', 'profapi', 'profimpl')},
    'nnopbase': {'nnopbase': 'lib64/libnnopbase.so'},
    'securec': {'c_sec': 'lib64/' + BOUNDED, 'c_sec_static': 'lib64/' + BOUNDED},
    'runtime': {'runtime': 'lib64/libruntime.so'},
    'slog': {'slog': 'lib64/libascendalog.so', 'alog': 'lib64/libascendalog.so'},
    'tsdclient': {'tsdclient': 'lib64/libtsdclient.so'},
    'unified_dlog': {'unified_dlog': 'lib64/libunified_dlog.so'},
}

# The first driver that memfabric takes the virtual memory functions of.
INNER_VERSION = 'V100R001C23SPC005B219'
TIMESTAMP = '20260801_000000000'  # YYYYMMDD_HHMMSSmmm

RT_HEADER = '#include "../../include/runtime/rt.h"\n'
HAL_HEADER = '''/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libascend_hal.so that npusim has, with the types of npusim/hal.h. */
#ifndef __ASCEND_HAL_H__
#define __ASCEND_HAL_H__

#include "../../include/npusim/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_QUERY(name, ...)
#define NPU_OP(result, missing, name, ...) result name NPU_PLAIN(__VA_ARGS__);
#include "../../include/npusim/driver-ops.h"

#ifdef __cplusplus
}
#endif

#endif
'''


def versions():
    """Package -> version, as aclsysGetVersionStr answers."""
    text = (HERE.parent / 'acl' / 'init.c').read_text()
    found = dict(re.findall(r'^\t\{ "([\w-]+)", \{ "(\d[\d.]*)",', text, re.MULTILINE))
    return found if 'runtime' in found else sys.exit('acl/init.c names no package')


def libraries(stubs):
    """Library -> (code, [(kind, name)])"""
    found = {}
    for line in pathlib.Path(stubs).read_text().splitlines():
        words = line.partition('#')[0].split()
        if words and words[0] == 'library':
            names = []
            found[words[1]] = words[2], names
        elif words and words[0] != 'client':
            for word in words:
                kind = word[0] if word[0] in '*"@' else ''
                name = word.lstrip('*"@').rstrip('+')
                names.append((kind, name))
                if word.endswith('+'):
                    names.append((kind, name + 'GetWorkspaceSize'))
    for library, (_, names) in found.items():
        if len(set(names)) != len(names):
            sys.exit('{}: lib{}.so has a name twice'.format(stubs, library))
    return found


def write_stub(out, stubs, library):
    code, names = libraries(stubs)[library]
    macros = {'': 'STUB({}, "{}", %s)' % code, '*': 'STUB({}, "{}", 0)',
              '"': 'STUB_TEXT({}, "{}")', '@': 'STUB_OBJECT({}, "{}")'}
    with open(out, 'w', encoding='ascii') as stream:
        stream.write('#define LIBRARY "lib{}.so"\n#include "home/stub.h"\n'.format(library))
        for number, (kind, name) in enumerate(names):
            stream.write(macros[kind].format(number, name) + '\n')


def write_environment(out):
    with open(out, 'w', encoding='ascii') as stream:
        stream.write('#define HOME_VERSION "{}"\n'.format(versions()['runtime']))
        stream.write('#define HOME_VARIABLES(X) \\\n')
        stream.write(' \\\n'.join('\tX({}, "{}", "{}")'.format(*row) for row in ENVIRONMENT) + '\n')


def set_env(with_hal):
    """The script that people source, in bash or zsh."""
    lines = []
    rows = ENVIRONMENT + [(how, 'LD_LIBRARY_PATH', path) for how, path in LOADER_PATH]
    for how, name, path in rows:
        entry = '"$npusim_home{}"'.format('/' + path if path else '')
        lines.append('export {}={}'.format(name, entry) if how == 'SET' else
                     'npusim_add {} {} {}'.format(how, name, entry))
    if with_hal:
        lines.append('[ -e /dev/davinci_manager ] || npusim_add LAST LD_LIBRARY_PATH '
                     '"$npusim_home/{}"'.format(HAL_FOLDER))
    return (HERE / 'set_env.sh.in').read_text().replace('@VARIABLES@', '\n'.join(lines))


def package(name, targets):
    lines = ['include("${CMAKE_CURRENT_LIST_DIR}/../npusim.cmake")',
             'npusim_headers({}_headers)'.format(name)]
    lines += ['npusim_library({} {} {}_headers)'.format(*row, name) for row in targets.items()]
    return '\n'.join(lines) + '\n'


def version_header(name, version):
    """As CANN's packages have one each, which its CMake modules look for."""
    prefix = name.upper().replace('-', '_')
    parts = version.split('.')
    rows = [('VERSION_STR', '"{}"'.format(version)), *zip(('MAJOR', 'MINOR', 'PATCH'), parts),
            ('PRERELEASE', '""'),
            ('VERSION_NUM', '({} * 10000000 + {} * 100000 + {} * 1000)'.format(*parts))]
    return '#ifndef {0}_VERSION_H\n#define {0}_VERSION_H\n{1}#endif\n'.format(
        prefix, ''.join('#define {}_{} {}\n'.format(prefix, *row) for row in rows))


def texts(arch, with_hal):
    """Path -> what the file says."""
    version = versions()
    info = 'Version={}\nversion_dir=cann\ntimestamp={}\n'
    files = {
        'set_env.sh': set_env(with_hal),
        'version.cfg': '# version: 1.0\nruntime_running_version=[{0}:{0}]\n'
                       'toolkit_running_version=[{0}:{0}]\n'.format(version['runtime']),
        arch + '-linux/ascend_toolkit_install.info':
            'package_name=Ascend-cann-toolkit\nversion={}\ninnerversion={}\narch={}\nos=linux\n'
            .format(version['runtime'], INNER_VERSION, arch),
        'opp/version.info': info.format(version['ops-legacy'], TIMESTAMP),
        # npusim home --system: /etc/ascend_install.info
        'driver/ascend_install.info': 'Driver_Install_Path_Param=/usr/local/Ascend\n'
                                      'Driver_Install_Type=full\nUserName=root\nUserGroup=root\n',
        'driver/version.info': 'Version={}\nInnerversion={}\n'.format(version['driver'],
                                                                      INNER_VERSION),
        'lib64/cmake/npusim.cmake': (HERE / 'npusim.cmake').read_text(),
    }
    for name in set(version) - {'driver'} | {'npusim'}:
        files['share/info/{}/version.info'.format(name)] = info.format(
            version.get(name, version['runtime']), TIMESTAMP)
    for name in set(version) - {'driver'} | {'cann'}:
        files['include/version/{}_version.h'.format(name.replace('-', '_'))] = version_header(
            name, version.get(name, version['runtime']))
    for name, targets in PACKAGES.items():
        if with_hal or name != 'ascend_hal':
            files['lib64/cmake/{0}/{0}-config.cmake'.format(name)] = package(name, targets)
    for name, source in MODULES.items():
        files['python/site-packages/' + name] = (HERE.parent / source).read_text()
    for name in RT_HEADERS:
        files['pkg_inc/runtime/{}.h'.format(name)] = RT_HEADER
    if with_hal:
        files['pkg_inc/driver/ascend_hal.h'] = HAL_HEADER
    return files


def write_tree(out, stubs, arch, include, acl, hal, stub_folder, smi, command, install=None):
    if install and os.environ.get('MESON_INSTALL_DRY_RUN'):
        return
    prefix = pathlib.Path(os.environ['MESON_INSTALL_DESTDIR_PREFIX'] if install else '/')
    out = prefix / out
    with_hal = hal != '-'
    files = texts(arch, with_hal)
    links = {path.replace('$ARCH', arch): out / to for path, to in LINKS.items()}
    for name in ('acl', 'npusim', 'runtime', 'securec.h'):
        links['include/' + name] = prefix / include / name
    for name in ACL:
        for folder in ('lib64', 'devlib', 'runtime/lib64'):
            links[folder + '/' + name] = prefix / acl / name
    if with_hal:
        for folder in ('devlib', HAL_FOLDER):
            links[folder + '/' + HAL] = prefix / hal / HAL
        for name in MANAGEMENT:
            links[HAL_FOLDER + '/' + name] = prefix / hal / name
    links['bin/npu-smi'], links['bin/npusim'] = prefix / smi, prefix / command
    for name in [BOUNDED, *('lib{}.so'.format(name) for name in libraries(stubs))]:
        links['lib64/' + name] = prefix / stub_folder / name

    os.umask(0o022)  # programs refuse a lib64 that others may write
    shutil.rmtree(out, ignore_errors=True)
    for path in [*FOLDERS, *(os.path.dirname(path) for path in [*files, *links])]:
        (out / path).mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        (out / path).write_text(text)
    for path, target in links.items():
        (out / path).symlink_to(os.path.relpath(target, (out / path).parent))


if __name__ == '__main__':
    {'libraries': lambda stubs: print('\n'.join(libraries(stubs))), 'stub': write_stub,
     'environment': write_environment, 'tree': write_tree}[sys.argv[1]](*sys.argv[2:])
