# SPDX-License-Identifier: Apache-2.0
#
# What tests in Python share: cases, and their TAP.

import contextlib
import pathlib
import signal
import sys
import tempfile
import traceback


# What ends with a case, however that ends.
LATER = contextlib.ExitStack()


class Skip(Exception):
    """A case cannot be run here, and why."""


def expect(condition, *what):
    if not condition:
        raise AssertionError(' '.join(map(str, what)) or 'not as expected')


def run_cases(cases):
    """Runs every (name, function), prints TAP and ends; one that takes a folder has its own."""
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print('1..{}'.format(len(cases)))
    for number, (name, function) in enumerate(cases, 1):
        try:
            with tempfile.TemporaryDirectory(prefix='npusim-test-') as folder, LATER:
                function(*[pathlib.Path(folder)][:function.__code__.co_argcount])
            print('ok {} - {}'.format(number, name))
        except Skip as reason:
            print('ok {} - {} # SKIP {}'.format(number, name, reason))
        except Exception:
            failed += 1
            traceback.print_exc()
            print('not ok {} - {}'.format(number, name))
        sys.stdout.flush()
    sys.exit(1 if failed else 0)
