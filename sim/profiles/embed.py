#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Turns the profiles' ini files into a header for profile.c: names sorted, texts as they are. Checks
# nothing of their content.
# usage: embed.py OUTPUT.h INI...

import os
import sys


def c_string(text):
    lines = []
    for line in text.splitlines():
        # A comment costs room and says nothing to the parser.
        if not line.strip() or line.lstrip().startswith('#'):
            continue
        lines.append('\t\t"' + line.replace('\\', '\\\\').replace('"', '\\"') + '\\n"')
    return '\n'.join(lines)


def main():
    output, inis = sys.argv[1], sys.argv[2:]
    profiles = {os.path.splitext(os.path.basename(path))[0]: path for path in inis}
    with open(output, 'w', encoding='utf-8') as out:
        out.write('/* SPDX-License-Identifier: Apache-2.0\n *\n')
        out.write(' * Made by embed.py from the ini files beside it: change those.\n */\n')
        out.write('static const struct {\n\tconst char *name, *text;\n} sim_profile_data[] = {\n')
        for name in sorted(profiles):
            with open(profiles[name], encoding='utf-8') as ini:
                out.write('\t{ "%s",\n%s },\n' % (name, c_string(ini.read())))
        out.write('\t{ NULL, NULL },\n};\n\n')
        out.write('static const char *const sim_profile_data_names[] = {\n')
        for name in sorted(profiles):
            out.write('\t"%s",\n' % name)
        out.write('\tNULL,\n};\n')


main()
