#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compiles each header by itself, with nothing before it, twice in a row. Public headers, in
# include/: as C and as C++17 without a warning, those of acl/ as C11 and with -pedantic. Others
# (--internal): in the language that they are written in; not NAME-list.h, nor what asks for macros
# with #error, which mean something only where those are given. Prints TAP, and the compiler's
# messages to standard error.

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

WARNINGS = ['-Wall', '-Wextra', '-Werror']
FOLDERS = ['runtime', 'sim', 'backend-sim', 'backend-hw', 'traces', 'tests']
CPLUSPLUS = re.compile(
    r'^\s*(class|namespace|template)\b|^#include <(systemc|tlm|string|vector)>', re.MULTILINE)


def compile_alone(command, flags, includes, header):
    """Compiler messages; none if it compiles."""
    source = '#include "{0}"\n#include "{0}"\nextern int alone;\n'.format(header)
    result = subprocess.run(command + flags + WARNINGS + ['-fsyntax-only'] + includes + ['-'],
                            input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)
    return result.stdout if result.returncode != 0 or result.stdout else ''


def jobs_for(options, root):
    cc, cxx = shlex.split(options.cc), shlex.split(options.cxx)
    c11 = ('C11', cc, ['-x', 'c', '-std=c11', '-pedantic'])
    gnu11 = ('C', cc, ['-x', 'c', '-std=gnu11', '-D_GNU_SOURCE'])
    cpp17 = ('C++17', cxx, ['-x', 'c++', '-std=c++17'])
    cpp17_pedantic = ('C++17', cxx, ['-x', 'c++', '-std=c++17', '-pedantic'])
    if not options.internal:
        for header in sorted((root / 'include').rglob('*.h')):
            is_acl = (root / 'include' / 'acl') in header.parents
            yield (header, *(c11 if is_acl else gnu11))
            yield (header, *(cpp17_pedantic if is_acl else cpp17))
        return
    for folder in FOLDERS:
        for header in sorted((root / folder).rglob('*.h')):
            text = re.sub(r'#ifdef __cplusplus.*?#endif', '', header.read_text(), flags=re.DOTALL)
            if header.name.endswith('-list.h') or '#error' in text:
                continue
            is_cpp = CPLUSPLUS.search(text)
            yield (header, *(cpp17 if is_cpp else gnu11))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--root', type=pathlib.Path, required=True)
    parser.add_argument('--cc', default='cc')
    parser.add_argument('--cxx', default='c++')
    parser.add_argument('--internal', action='store_true')
    parser.add_argument('-I', action='append', default=[], dest='includes', metavar='FOLDER')
    options = parser.parse_args()

    root = options.root.resolve()
    jobs = list(jobs_for(options, root))
    includes = ['-I' + str(root / 'include')]
    if options.internal:
        glib = subprocess.run(['pkg-config', '--cflags', 'glib-2.0', 'json-glib-1.0'], check=True,
                              text=True, stdout=subprocess.PIPE).stdout.split()
        includes += ['-I' + str(root / folder) for folder in ['.'] + FOLDERS] + glib
        includes += ['-I' + folder for folder in options.includes]

    print('1..{}'.format(len(jobs)))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        messages = pool.map(lambda job: compile_alone(job[2], job[3], includes, job[0]), jobs)
        for number, (job, text) in enumerate(zip(jobs, messages), 1):
            failed += text != ''
            print('{}ok {} {} as {}'.format('not ' if text else '', number,
                                              job[0].relative_to(root), job[1]))
            for line in text.splitlines()[:20]:
                print(line, file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
