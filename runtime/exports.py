#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes what a face of the runtime is known by, from the headers that declare its functions: the
# export list, one name a line and sorted; the version script; and the lists that C is made of.
#   acl HEADER... OUT.symbols OUT.map OUT.h: all that the headers declare. OUT.h has the
#     functions of rt/other.h, which are not modelled, by what they return.
#   cuda functions.h names.txt OUT.symbols OUT.map OUT.h: the functions of functions.h and the names
#     of names.txt. OUT.h has X(symbol, name, since) of what is not modelled, X(name, symbol) of
#     second names.

import re
import sys

ACL = re.compile(r'^(?:ACL_FUNC_VISIBILITY|NPUSIM_PUBLIC)\s+([^;{(]*?)\b(\w+)\(([^;]*)\);', re.M)
ACL_LISTS = {'aclError': 'ERROR({1}, ({2}))\n', 'uint32_t': 'UINT32({1}, ({2}))\n'}
ACL_POINTER = 'POINTER({0}, {1}, ({2}))\n'
CUDA = re.compile(r'^\tX\((\w+),', re.M)


def read(path):
    with open(path, encoding='ascii') as stream:
        return stream.read()


def acl_lists(headers):
    names, lists = set(), ''
    for header in headers:
        found = ACL.findall(read(header))
        names.update(name for _, name, _ in found)
        if header.endswith('/rt/other.h'):
            lists = ''.join(ACL_LISTS.get(row[0].strip(), ACL_POINTER).format(*row)
                            for row in found)
    return names, lists


def macro(name, rows):
    return '#define {}(X) \\\n'.format(name) + ' \\\n'.join('\tX({})'.format(', '.join(row))
                                                            for row in rows) + '\n'


def cuda_lists(functions, more):
    modelled = set(CUDA.findall(read(functions)))
    unmodelled, aliases = [], []
    for line in read(more).splitlines():
        name, _, since = line.partition('#')[0].strip().partition(' ')
        if since:
            base = re.sub(r'_v\d+$', '', re.sub(r'_pt[sd][sz]$', '', name))
            unmodelled.append((name, base, since))
        elif name:
            symbol = re.sub(r'_pt[sd][sz]$', '', name)
            aliases.append((name, symbol if symbol != name else name + '_v2'))
    for name, symbol in aliases:
        if symbol not in modelled:
            sys.exit('{}: {} is the second name of {}, which {} does not have'.format(
                more, name, symbol, functions))
    names = modelled | {row[0] for row in unmodelled + aliases}
    return names, macro('CUDA_UNMODELLED', unmodelled) + macro('CUDA_ALIASES', aliases)


def main():
    face, inputs, (out_list, out_script, out_header) = sys.argv[1], sys.argv[2:-3], sys.argv[-3:]
    names, lists = acl_lists(inputs) if face == 'acl' else cuda_lists(*inputs)
    if not names or not lists:
        sys.exit('{}: no name to export'.format(' '.join(inputs)))
    with open(out_list, 'w', encoding='ascii') as stream:
        stream.writelines(name + '\n' for name in sorted(names))
    with open(out_script, 'w', encoding='ascii') as stream:
        stream.write('{{ global: {}; local: *; }};\n'.format('; '.join(sorted(names))))
    with open(out_header, 'w', encoding='ascii') as stream:
        stream.write('/* Made by the build: runtime/exports.py. */\n' + lists)


main()
