#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes the export list of libascend_hal.so from the headers that declare its functions: the list,
# one name a line and sorted, and the version script. The linker refuses a name that nothing
# defines.

import re
import sys

ENTRY = re.compile(r'^(?:(?:NPU_CALL|NPU_QUERY|REFUSED)\(|(?:NPU_OP|UNMODELLED)\([^,]+, [^,]+, )'
                   r'(\w+)', re.M)
DECLARED = re.compile(r'^HAL_EXPORT [^;(]*?(\w+)[(;]', re.M)


def main():
    headers, (out_list, out_script) = sys.argv[1:-2], sys.argv[-2:]
    names = set()
    for header in headers:
        with open(header, encoding='ascii') as stream:
            text = stream.read()
        found = ENTRY.findall(text) + DECLARED.findall(text)
        if not found:
            sys.exit('{}: no name to export'.format(header))
        names.update(found)
    with open(out_list, 'w', encoding='ascii') as stream:
        stream.writelines(name + '\n' for name in sorted(names))
    with open(out_script, 'w', encoding='ascii') as stream:
        stream.write('{{ global: {}; local: *; }};\n'.format('; '.join(sorted(names))))


main()
