#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compares the functions that the ACL headers declare, as a compiler sees them, with the exports of
# libascendcl.so that the build derived; those of rt/unmodelled.h with the list that the unmodelled
# functions are made of; and those of each other header with the index in acl_rt.h, in which build
# files search. What the library really exports tests/check/exported-symbols.py looks at.

import argparse
import pathlib
import re
import shlex
import subprocess
import sys

DECLARATION = re.compile(r'\b(acl\w+)\s*\(')


def declared(compiler, include, header):
    """Functions that `header` declares, itself or through what it includes."""
    text = subprocess.run(shlex.split(compiler) + ['-E', '-x', 'c', '-I' + str(include), '-'],
                          input='#include "{}"\n'.format(header), check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    text = re.sub(r'^#.*$', '', text, flags=re.MULTILINE)
    names = set()
    for statement in text.split(';'):
        # Pointers to functions in typedefs have their name in parentheses, so it is not found.
        if 'typedef' in statement or '{' in statement:
            continue
        found = DECLARATION.search(statement)
        if found:
            names.add(found.group(1))
    return names


def exported(path):
    """The names of a version script that exports.py made."""
    return set(re.findall(r'^\t(\w+);$', path.read_text(), re.MULTILINE))


def compare(what, left, left_name, right, right_name):
    errors = ['{}: in {}, but not in {}'.format(name, left_name, right_name)
              for name in sorted(left - right)]
    errors += ['{}: in {}, but not in {}'.format(name, right_name, left_name)
               for name in sorted(right - left)]
    print('{} - {}: {} names'.format('not ok' if errors else 'ok', what, len(left)))
    for error in errors:
        print('#   ' + error)
    return not errors


def without_comments(path):
    return re.sub(r'/\*.*?\*/', '', path.read_text(), flags=re.DOTALL)


def indexed(path):
    """The index in the comment of acl_rt.h: (header, function) of each name."""
    text = path.read_text().partition('* Index.')[2].partition('*/')[0]
    pairs = set()
    for entry in re.split(r'^ \* - ', text, flags=re.MULTILINE)[1:]:
        header, _, names = entry.partition(':')
        pairs |= {(header, name) for name in re.findall(r'\bacl\w+', names)}
    return {'{} {}'.format(*pair) for pair in pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--root', type=pathlib.Path, required=True)
    parser.add_argument('--cc', default='cc')
    parser.add_argument('--map', type=pathlib.Path, required=True)
    parser.add_argument('--list', type=pathlib.Path, required=True)
    options = parser.parse_args()
    include = options.root / 'include'

    print('1..4')
    everything = declared(options.cc, include, 'acl/acl.h')
    exports = {name for name in exported(options.map) if name.startswith('acl')}
    good = compare('headers and exports', everything, 'the headers', exports,
                   'libascendcl.map')

    headers = include / 'acl' / 'rt'
    other = set(DECLARATION.findall(without_comments(headers / 'unmodelled.h')))
    unmodelled = set(re.findall(r'^(?:ERROR|UINT32)\((\w+)|^POINTER\([^,]*, (\w+)',
                                options.list.read_text(), re.MULTILINE))
    unmodelled = {first or second for first, second in unmodelled}
    good &= compare('functions that are not modelled', other, 'rt/unmodelled.h', unmodelled,
                    'acl-unmodelled-list.h')

    stand = {'rt/{} {}'.format(header.name, name) for header in headers.glob('*.h')
             if header.name not in ('unmodelled.h', 'types.h', 'unmodelled-types.h')
             for name in DECLARATION.findall(without_comments(header))}
    good &= compare('index of acl_rt.h', stand, 'rt/*.h', indexed(include / 'acl' / 'acl_rt.h'),
                    'acl_rt.h')

    ours = {name for name in exported(options.map) if not name.startswith('acl')}
    rt = set(re.findall(r'\b(rt\w+)\s*\(', without_comments(include / 'runtime' / 'rt.h')))
    good &= compare('names of our own, and of libruntime.so', ours, 'libascendcl.map',
                    rt | {name for name in ours if name.startswith('npusim')}, 'npusim*, rt.h')
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
