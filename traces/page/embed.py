#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Puts the page of npusim report together, but for its data, as two C strings of bytes.
# usage: embed.py OUT VERSION PAGE STYLE LICENSE LIBRARY SCRIPT...

import pathlib
import re
import sys


def array(name, data):
    rows = [', '.join(str(byte) for byte in data[i:i + 24]) for i in range(0, len(data), 24)]
    return ('const unsigned char {}[] = {{\n{}\n}};\nconst unsigned long {}_bytes = {};\n'
            .format(name, ',\n'.join(rows), name, len(data)))


def main():
    out, version, page, style, licence, library, *scripts = sys.argv[1:]
    parts = {
        'VERSION': version,
        'STYLE': pathlib.Path(style).read_text(encoding='utf-8'),
        'SCRIPT': '\n'.join(pathlib.Path(script).read_text(encoding='utf-8')
                            for script in scripts),
        'LICENSE': pathlib.Path(licence).read_text(encoding='utf-8').rstrip(),
        'LIBRARY': pathlib.Path(library).read_text(encoding='utf-8').rstrip(),
    }
    for name in ('STYLE', 'SCRIPT', 'LICENSE', 'LIBRARY'):
        if re.search(r'</(script|style)', parts[name], re.I):
            sys.exit('embed.py: {} would end its own element'.format(name))
    text = pathlib.Path(page).read_text(encoding='utf-8')
    before, after = text.split('@DATA@')

    def fill(piece):
        return re.sub(r'@([A-Z]+)@', lambda m: parts[m.group(1)], piece).encode()

    pathlib.Path(out).write_text(
        '/* SPDX-License-Identifier: Apache-2.0\n *\n'
        ' * The page of npusim report before and after its data: written by embed.py. */\n'
        '#include "page/page.h"\n\n'
        + array('report_page_before', fill(before)) + '\n'
        + array('report_page_after', fill(after)), encoding='ascii')


main()
