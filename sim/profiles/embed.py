#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes of keys.ini and the profiles' ini files either the tables of profile.c (OUTPUT.h): the keys,
# and the profiles' names and texts, without comments; or what `npusim profile` shows (OUTPUT.c): a
# line for each key, and each profile whole, with meaning, range and source above each value. Checks
# that each value has a source; the reader checks the values.
# usage: embed.py OUTPUT KEYS.ini INI...

import os
import sys

UNITS = {'bytes_per_us': 'bytes/us', 'bytes': 'bytes', '_tck': 'clocks', '_khz': 'kHz',
         '_ns': 'ns', '_ps': 'ps'}
KINDS = {'text': 'KIND_STRING', 'flag': 'KIND_BOOL', 'uint': 'KIND_UNSIGNED', 'u32': 'KIND_U32',
         'u64': 'KIND_U64'}
TIME, PAGES = '1000000000', '1G'
# Of struct sim_call_cost: member, kind, least, most, meaning.
COST = [('base_ns', 'u64', '0', TIME, ''),
        ('message_ns', 'u64', '0', TIME, ': each message to the device'),
        ('pages_per_message', 'u64', '1', PAGES, ': pages that one message has room for'),
        ('page_ns', 'u64', '0', TIME, ': each page'),
        ('giant_units', 'u64', '1', '256K', ': pages that a 1 GiB page counts as'),
        ('head_pages', 'u64?', '0', PAGES, ': first pages of a call, which cost more'),
        ('head_page_ns', 'u64?', '0', TIME, ': what each of the first pages costs more')]


class Key:
    def __init__(self, group, name, kind, member, least, most, meaning):
        self.group, self.name, self.kind, self.member = group, name, kind, member
        self.least, self.most, self.meaning = self.number(least), self.number(most), meaning

    @staticmethod
    def number(text):
        if text[-1] in 'KMGT':
            return int(text[:-1]) << 10 * ('KMGT'.index(text[-1]) + 1)
        return 0 if text == '-' else int(text)

    def row(self):
        member = 'PLACE({})'.format(self.member)
        return '\t{{ "{}", "{}", {}, {}, UINT64_C({}), UINT64_C({}), {} }},\n'.format(
            self.group, self.name, KINDS[self.kind.rstrip('?')], member,
            1 if self.kind == 'text' else self.least,
            1 if self.kind == 'flag' else self.most, 'true' if '?' in self.kind else 'false')

    def range(self):
        if self.kind in ('text', 'flag'):
            return {'text': 'text', 'flag': 'true or false'}[self.kind]
        unit = [' ' + UNITS[end] for end in UNITS if self.name.endswith(end)]
        return '{} to {}{}'.format(self.least, self.most, *(unit or ['']))


def read_keys(path):
    group = None
    with open(path, encoding='utf-8') as file:
        for line in map(str.strip, file):
            if line.startswith('['):
                group = line[1:-1]
            elif line and not line.startswith('#'):
                name, kind, member, least, most, meaning = line.split(None, 5)
                if kind != 'cost':
                    yield Key(group, name, kind, member, least, most, meaning)
                    continue
                for part, kind, least, most, more in COST:
                    yield Key(group, name + '_' + part, kind, member + '.' + part, least, most,
                              meaning + more)


class Profile:
    def __init__(self, path):
        """Of each value, what stands above it: the nearest comment of its paragraph."""
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.values, self.text, self.base = {}, [], None
        group, above, last = None, '', ''
        with open(path, encoding='utf-8') as file:
            for line in map(str.strip, file):
                if line.startswith('#'):
                    above = (above + ' ' if last.startswith('#') else '') + line[1:].strip()
                elif line.startswith('['):
                    group = line[1:-1]
                elif line:
                    key, value = line.split('=', 1)
                    self.values[group, key] = value, above
                else:
                    above = ''
                if line and not line.startswith('#'):
                    self.text.append(line)
                last = line
        if ('Profile', 'base') in self.values:
            self.base = self.values['Profile', 'base'][0]

    def value_of(self, key, profiles):
        if (key.group, key.name) in self.values:
            value, source = self.values[key.group, key.name]
            if not source:
                sys.exit('{}.ini: no source above {}'.format(self.name, key.name))
            return value, source
        if self.base:
            return profiles[self.base].value_of(key, profiles)
        return '0', 'none; the model does without'

    def shown(self, keys, profiles):
        group = None
        for key in keys:
            if key.group != group:
                yield '{}[{}]'.format('\n' if group else '', key.group)
                group = key.group
            value, source = self.value_of(key, profiles)
            yield '# {} ({}). Source: {}'.format(key.meaning, key.range(), source)
            yield '{}={}'.format(key.name, value)


def c_string(lines):
    return ''.join('\t\t"{}\\n"\n'.format(line.replace('\\', '\\\\').replace('"', '\\"')
                                        .replace('\n', '\\n')) for line in lines)


def table(name, rows):
    return 'const struct sim_profile_text {}[] = {{\n{}\t{{ NULL, NULL }},\n}};\n'.format(
        name, ''.join('\t{{ "{}",\n{} }},\n'.format(*row) for row in rows))


def main():
    output, keys, inis = sys.argv[1], list(read_keys(sys.argv[2])), sys.argv[3:]
    profiles = {p.name: p for p in map(Profile, sorted(inis))}
    head = ('/* SPDX-License-Identifier: Apache-2.0\n *\n'
            ' * Made by embed.py from the ini files beside it: change those.\n */\n')
    with open(output, 'w', encoding='utf-8') as out:
        if output.endswith('.c'):
            lines = ['{:42} {:28} {}'.format(k.group + '.' + k.name, k.range(), k.meaning)
                     for k in keys]
            out.write(head + '#include "sim/profile.h"\n\n'
                      'const char sim_profile_keys[] =\n' + c_string(lines) + ';\n' +
                      table('sim_profile_texts',
                            [(name, c_string(p.shown(keys, profiles)))
                             for name, p in sorted(profiles.items())]))
            return
        out.write(head + 'static const struct key keys[] = {\n' +
                  ''.join(key.row() for key in keys) + '};\n\nstatic ' +
                  table('sim_profile_data', [(name, c_string(p.text))
                                             for name, p in sorted(profiles.items())]) +
                  'static const char *const sim_profile_data_names[] = {\n' +
                  ''.join('\t"{}",\n'.format(name) for name in sorted(profiles)) +
                  '\tNULL,\n};\n')


main()
