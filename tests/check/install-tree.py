#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build into an empty folder away from it, as a packager does (DESTDIR), then builds a
# program against what was installed, by pkg-config alone and by the home that looks like CANN's,
# and runs it there on the model: nothing that is installed may know the prefix. The command starts
# also where a foreign libascendcl.so is first on the loader's path.

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile


def run(*command, env=None, cwd=None):
    """Standard output of a command that must succeed."""
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env=env, cwd=cwd)
    if result.returncode != 0:
        sys.exit('{}\nended with status {}:\n{}'.format(shlex.join(map(str, command)),
                                                        result.returncode, result.stdout))
    return result.stdout


def check_files(prefix, files):
    missing = [name for name in files if not (prefix / name).exists()]
    if missing:
        sys.exit('not installed: ' + ', '.join(missing))
    for link in prefix.rglob('*'):
        if link.is_symlink() and os.path.isabs(os.readlink(link)):
            sys.exit('{} points to an absolute path'.format(link))
    for name in prefix.rglob('*'):
        if name.parent.name == 'lib' and name.suffix == '.so' or '-linux-gnu' in str(
                name.parent) and '.so' in name.name:
            sys.exit('{} is on the default library path'.format(name))


def build_by_home(options, prefix, scratch):
    """What npusim home writes elsewhere leads to what is installed, and npusim run runs it."""
    home, command = scratch / 'home', prefix / options.command
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(('NPUSIM_', 'ASCEND_', 'LD_LIBRARY'))}
    run(command, 'home', home, env=env)
    for place in (home, next(prefix.rglob('set_env.sh')).parent):
        for link in place.rglob('*'):
            if not link.exists():
                sys.exit('{} leads nowhere'.format(link))
            if link.is_symlink() and str(options.build) in os.path.realpath(link):
                sys.exit('{} leads to the build'.format(link))
    program = scratch / 'program-home'
    run(*shlex.split(options.cc), '-I{}/include'.format(home), options.program, '-o', program,
        '-L{}/lib64'.format(home), '-lascendcl', '-lhccl', *options.flag)
    print('home: ' + run(command, 'run', '--', program, env=env, cwd=scratch).strip())


def build_and_run(options, prefix, scratch):
    pc_folder = next(prefix.rglob('npusim.pc')).parent
    env = dict(os.environ, PKG_CONFIG_PATH=str(pc_folder))
    pkg_config = ['pkg-config', 'npusim']
    flags = run(*pkg_config, '--cflags', '--libs', env=env).split()
    acl_folder = run(*pkg_config, '--variable=acldir', env=env).strip()

    env = {name: value for name, value in os.environ.items() if not name.startswith('NPUSIM_')}
    env.update(LD_LIBRARY_PATH=acl_folder, NPUSIM_BACKEND='sim',
               NPUSIM_NODE='install-tree-{}'.format(os.getpid()))
    for compiler, language in ((options.cc, 'c'), (options.cxx, 'c++')):
        program = scratch / ('program-' + language)
        run(*shlex.split(compiler), '-Wall', '-Wextra', '-Werror', '-x', language, options.program,
            '-x', 'none', '-o', program, *flags, *options.flag)
        print(language + ': ' + run(program, env=env, cwd=scratch).strip())


def start_beside_a_foreign_library(options, prefix, scratch):
    folder = scratch / 'foreign'
    folder.mkdir()
    run(*shlex.split(options.cc), '-shared', '-x', 'c', os.devnull, '-o', folder / 'libascendcl.so')
    env = dict(os.environ, LD_LIBRARY_PATH=str(folder))
    print(run(prefix / options.command, '--version', env=env, cwd=scratch).strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', type=pathlib.Path, required=True)
    parser.add_argument('--prefix', required=True)
    parser.add_argument('--program', type=pathlib.Path, required=True)
    parser.add_argument('--cc', default='cc')
    parser.add_argument('--cxx', default='c++')
    parser.add_argument('--flag', action='append', default=[], help='for the compiler')
    parser.add_argument('--command', help='an installed program that must say its version')
    parser.add_argument('files', nargs='*', help='what must be there, under the prefix')
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix='npusim-install-') as name:
        scratch = pathlib.Path(name)
        run('meson', 'install', '-C', options.build, '--no-rebuild', '--destdir', scratch / 'dest')
        prefix = pathlib.Path(str(scratch / 'dest') + options.prefix)
        check_files(prefix, options.files)
        build_and_run(options, prefix, scratch)
        if options.command is not None:
            start_beside_a_foreign_library(options, prefix, scratch)
            build_by_home(options, prefix, scratch)


if __name__ == '__main__':
    main()
