#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The figures that have a target, of the last `meson test --benchmark` in a build folder, as one
# table. A figure that misses its target is marked; it fails nothing.
# usage: table.py BUILD-FOLDER

import json
import pathlib
import re
import sys

FIGURE = re.compile(r'^(.*\S) +(\d+\.\d\d) (\S.*?) +at (least|most) (\S+)$')


def figures(log):
    """(what, value, unit, least or most, target) in the order of the runs."""
    for line in log.read_text().splitlines():
        for printed in (json.loads(line).get('stdout') or '').splitlines():
            found = FIGURE.match(printed)
            if found:
                what, value, unit, bound, target = found.groups()
                yield what, float(value), unit, bound, float(target)


def main():
    logs = pathlib.Path(sys.argv[1], 'meson-logs')
    rows = list(figures(logs / 'benchmarks.json'))
    if not rows:
        return
    print('\n{:<52} {:>20}  {}'.format('against its target', 'measured', 'target'))
    for what, value, unit, bound, target in rows:
        met = value >= target if bound == 'least' else value <= target
        print('{:<52} {:>9.2f} {:<10}  at {} {:g}{}'.format(
            what, value, unit, bound, target, '' if met else '  MISSED'))


if __name__ == '__main__':
    main()
