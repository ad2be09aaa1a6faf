#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Configures the project without each of its optional parts, as a server without SystemC does: every
# build file must get by without what an earlier one left out.

import subprocess
import sys
import tempfile

PARTS = ('sim', 'hw', 'tests', 'docs')
# docs matters to traces/ alone, which is there without hw.
CASES = (['sim'], ['hw', 'docs'], ['tests'], ['sim', 'hw', 'tests', 'docs'])


def main():
    root, meson = sys.argv[1], sys.argv[2:]
    failures = 0
    print('1..{}'.format(len(CASES)))
    with tempfile.TemporaryDirectory() as folder:
        for number, parts in enumerate(CASES, 1):
            # Configured again, so that the compiler is asked its questions once.
            options = ['-D{}={}'.format(part, 'disabled' if part in parts else 'auto')
                       for part in PARTS] + (['--reconfigure'] if number > 1 else [])
            run = subprocess.run([*meson, 'setup', folder, root, *options],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            good = run.returncode == 0
            failures += not good
            print('{} {} without {}'.format('ok' if good else 'not ok', number, ' '.join(parts)))
            if not good:
                print('\n'.join('# ' + line for line in run.stdout.splitlines()[-8:]))
    return failures > 0


if __name__ == '__main__':
    sys.exit(main())
