#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Fills the lists of members in the manual page of npusim replay: from each table of figures, the
# names and the sentences of its rows.
# usage: manual.py OUT PAGE SOURCE...

import pathlib
import re
import sys

STRING = r'"(?:[^"\\]|\\.)*"'


def text_of(strings):
    return ''.join(s[1:-1] for s in strings).replace('\\n', '\n').replace('\\"', '"')


def mdoc(text):
    """A sentence a line; `name`, `--option`, each also in parentheses, and "words" as macros."""
    def macro(match):
        opened, option, name, quoted, mark = match.groups()
        words = f'Qq {quoted}' if quoted else f'Fl -{name}' if option else f'Ic {name}'
        return '\n.' + 'Pq ' * bool(opened) + words + (mark and ' ' + mark) + '\n'
    text = re.sub(r'(?<=\.) (?=[A-Z])', '\n', text)
    text = re.sub(r'\s*(\(?)(?:`(--)?([^`]*)`|"([^"]*)")\)?([,.;:]?)\s*', macro, text)
    return text.replace('\n\n', '\n').strip('\n')


def items(body):
    """The list of a table; rows without a sentence are told of with the next that has one."""
    lines, names = [], []
    for row in re.finditer(r'\{ (' + STRING + r'),((?:[^{}"]|' + STRING + r')*)\}', body):
        if 'in_text_only' in row.group(2):
            continue
        names.append(text_of([row.group(1)]))
        sentence = text_of(re.findall(STRING, row.group(2)))
        if sentence:
            lines += ['.It Ic ' + ' , '.join(names), mdoc(sentence)]
            names = []
    if names:
        sys.exit('manual.py: no sentence is for ' + ', '.join(names))
    return '\n'.join(['.Bl -tag -width Ds'] + lines + ['.El'])


def main():
    out, page, *sources = sys.argv[1:]
    tables = {}
    for source in sources:
        text = pathlib.Path(source).read_text(encoding='utf-8')
        for name, body in re.findall(r'^(?:static )?const struct member (\w+)\[\] = \{\n(.*?)^\};',
                                     text, re.M | re.S):
            tables[name] = items(body)
    text = re.sub(r'^@(\w+)@$', lambda m: tables.pop(m.group(1)),
                  pathlib.Path(page).read_text(encoding='utf-8'), flags=re.M)
    if tables:
        sys.exit('manual.py: the page has no place for ' + ', '.join(tables))
    pathlib.Path(out).write_text(text, encoding='utf-8')


main()
