#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# No false alarm: the C programs of this build and CUDA's conformance cases under NPUSIM_VALIDATE
# (the ACL's: exact-test.py). What is reported is what expected.txt says. "fails" is no rule: it is
# how many cases of a program fail under validation, since they look at what it writes. Prints TAP;
# --update writes the file anew.
# usage: suite-test.py BUILD-FOLDER EXPECTED [--update]

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import reports as validation

BUILD, EXPECTED = map(pathlib.Path, sys.argv[1:3])
TESTS = re.compile(r'contract-(copies|host-memory|stress)|cuda-(vmm|runtime'
                   r'|cost).*|runtime-(acl|failures|gone|process|rt|stall)|hal-(sequence|functions)'
                   r'|hal-contract-(sim|hw)-docs')

LONGEST = ['runtime-gone', 'cuda-vmm-cases', 'contract-stress', 'runtime-acl'] # by the clock


def run(test, folder):
    """The reports as (rule, text), and how the program ended where that is unusual."""
    path = pathlib.Path(folder, test['name'])
    env = validation.environment()
    env.update(test['env'])
    env.update(NPUSIM_NODE='suite-{}-{}'.format(test['name'], os.getpid()), NPUSIM_VALIDATE='on',
               NPUSIM_VALIDATE_FILE=str(path), NPUSIM_VALIDATE_LIMIT='100000')
    if '-cases' in test['name']: # they end in the middle of things
        env['NPUSIM_VALIDATE_RULES'] = '-leak'
    done = subprocess.run(test['cmd'], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding='utf-8', errors='replace', check=False, timeout=280)
    reports = validation.read(path)
    failed = re.search(r'\n (\d+) FAILED TESTS?', done.stdout)
    reports += [('fails', line) for line in re.findall(r'(?m)^\[  FAILED  \] (.*\S) \(\d+ ms\)$',
                                                       done.stdout)]
    if done.returncode not in (0, 1) or (done.returncode == 1) != (failed is not None):
        reports.append(('ends', 'with status {}'.format(done.returncode)))
    return reports


def main():
    tests = json.loads((BUILD / 'meson-info/intro-tests.json').read_text(encoding='utf-8'))
    tests = sorted((test for test in tests if TESTS.fullmatch(test['name'])),
                   key=lambda test: LONGEST.index(test['name'])
                   if test['name'] in LONGEST else len(LONGEST))
    expected = validation.expectations(EXPECTED)
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(zip((test['name'] for test in tests),
                           pool.map(lambda test: run(test, folder), tests)))
    if '--update' in sys.argv:
        validation.update(EXPECTED, results)
        return 0
    failed = 0
    print('1..{}'.format(len(results) + 1))
    for number, (name, reports) in enumerate(results, 1):
        wrong = list(validation.differences(name, reports, expected))
        failed += bool(wrong)
        print('{} {} - {}'.format('not ok' if wrong else 'ok', number, name))
        for text in wrong:
            print('# ' + text.replace('\n', '\n# '))
    gone = ({test for test, _ in expected if not test.startswith('validate-')} -
            {name for name, _ in results})
    print('{} {} - {}'.format('not ok' if gone or not results else 'ok', len(results) + 1,
                              'all that is expected ran'), *sorted(gone))
    return 1 if failed or gone or not results else 0


if __name__ == '__main__':
    sys.exit(main())
