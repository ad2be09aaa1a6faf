#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Turns published.ini, which says what its keys mean, into the rows of bench.c.
# usage: published.py OUTPUT.h INI

import configparser
import json
import sys


NODES = {'host': 'SIM_NODE_HOST', 'remote': 'SIM_PEER(1, 0)',
         'remote-host': 'SIM_PEER(1, SIM_NODE_HOST)'}


def size(text):
    return int(text[:-1]) << {'K': 10, 'M': 20}[text[-1]] if text[-1] in 'KM' else int(text)


def model(row):
    """Members beside those that are shown."""
    if 'call' in row:
        calls = [call.split() for call in row['call'].split(',')]
        yield 'calls', '{ %s }' % ', '.join('{ SIM_CALL_%s, %s }' % (call.upper(), pages)
                                            for call, pages in calls)
        yield 'call_count', len(calls)
    if 'creations' in row:
        yield 'creations', row['creations']
    if 'copy' in row:
        engine, dst, src, length = row['copy'].split()
        yield 'engine', 'SIM_ENGINE_' + engine.upper()
        yield 'dst', NODES.get(dst, dst)
        yield 'src', NODES.get(src, src)
        yield 'shown.remote', str('remote' in row['copy']).lower()
        yield 'bytes', size(length)
        yield 'copies', row.get('copies', '1')


def main():
    ini = configparser.ConfigParser(delimiters='=', interpolation=None)
    with open(sys.argv[2], encoding='utf-8') as file:
        ini.read_file(file)
    with open(sys.argv[1], 'w', encoding='utf-8') as out:
        for name in ini.sections():
            soc, what = name.split(': ')
            row = ini[name]
            measured, unit = row['measured'].split()
            shown = (*map(json.dumps, (soc, what, unit, row['source'], row.get('note', ''))),
                     measured, row.get('ratio', '1'))
            members = [('shown', '{ ' + ', '.join(shown) + ' }'), *model(row)]
            out.write('{ %s },\n' % ', '.join('.%s = %s' % member for member in members))


main()
