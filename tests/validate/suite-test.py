#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# No false alarm: the C programs and the conformance cases of this build under NPUSIM_VALIDATE. What
# is reported is what expected.txt says, line by line: TEST RULE COUNT, and why. Equal reports, by
# their stacks, count once. "fails" is no rule: it is how many cases of a program fail under
# validation, since they look at what it writes. Prints TAP; --update writes the file anew.
# usage: suite-test.py BUILD-FOLDER EXPECTED [--update]

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD, EXPECTED = map(pathlib.Path, sys.argv[1:3])
TESTS = re.compile(r'contract-(cases-docs|cases-driver|copies|host-memory|stress)|cuda-(vmm|runtime'
                   r'|cost).*|runtime-(acl|failures|gone|process|rt|stall)|hal-(sequence|functions)'
                   r'|hal-contract-(sim|hw)-docs')


def expectations():
    """(test, rule) -> (count, why)"""
    found = {}
    for line in EXPECTED.read_text(encoding='utf-8').splitlines():
        words, _, why = line.partition('#')
        if words.strip():
            test, rule, count = words.split()
            found[test, rule] = int(count), why.strip()
    return found


def run(test, folder):
    """The reports as (rule, text), and how the program ended where that is unusual."""
    path = pathlib.Path(folder, test['name'])
    env = {name: value for name, value in os.environ.items() if not name.startswith('NPUSIM_')}
    env.update(test['env'])
    env.update(NPUSIM_NODE='suite-{}-{}'.format(test['name'], os.getpid()), NPUSIM_VALIDATE='on',
               NPUSIM_VALIDATE_FILE=str(path), NPUSIM_VALIDATE_LIMIT='100000')
    if '-cases' in test['name']: # they end in the middle of things
        env['NPUSIM_VALIDATE_RULES'] = '-leak'
    done = subprocess.run(test['cmd'], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding='utf-8', errors='replace', check=False, timeout=280)
    lines = path.read_text(encoding='utf-8').splitlines() if path.exists() else []
    reports = [(report['rule'], '{}\n    {}'.format(report['text'], '\n    '.join(
        report['stack'] or report['made_stack']))) for report in map(json.loads, lines)]
    failed = re.search(r'\n (\d+) FAILED TESTS?', done.stdout)
    reports += [('fails', line) for line in re.findall(r'(?m)^\[  FAILED  \] (.*\S) \(\d+ ms\)$',
                                                       done.stdout)]
    if done.returncode not in (0, 1) or (done.returncode == 1) != (failed is not None):
        reports.append(('ends', 'with status {}'.format(done.returncode)))
    return reports


def differences(name, reports, expected):
    counts = collections.Counter(rule for rule, _ in reports)
    rules = set(counts) | {rule for test, rule in expected if test == name}
    for rule in sorted(rules):
        wanted = expected.get((name, rule), (0, ''))[0]
        if counts[rule] != wanted:
            yield '{} {}: {} reported, {} expected'.format(name, rule, counts[rule], wanted)
            yield from (text for other, text in reports if other == rule)


def update(results, expected):
    with EXPECTED.open('w', encoding='utf-8') as out:
        out.write('# SPDX-License-Identifier: Apache-2.0\n'
                  '# What tests do wrong on purpose (suite-test.py --update): test, rule, count.\n')
        for name, reports in results:
            for rule, count in sorted(collections.Counter(rule for rule, _ in reports).items()):
                why = expected.get((name, rule), (0, 'new'))[1]
                out.write('{:<24} {:<14} {:>3}  # {}\n'.format(name, rule, count, why))


def main():
    tests = json.loads((BUILD / 'meson-info/intro-tests.json').read_text(encoding='utf-8'))
    tests = sorted((test for test in tests if TESTS.fullmatch(test['name'])),
                   key=lambda test: 'cases' not in test['name']) # the longest first
    expected = expectations()
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(zip((test['name'] for test in tests),
                           pool.map(lambda test: run(test, folder), tests)))
    if '--update' in sys.argv:
        update(results, expected)
        return 0
    failed = 0
    print('1..{}'.format(len(results) + 1))
    for number, (name, reports) in enumerate(results, 1):
        wrong = list(differences(name, reports, expected))
        failed += bool(wrong)
        print('{} {} - {}'.format('not ok' if wrong else 'ok', number, name))
        for text in wrong:
            print('# ' + text.replace('\n', '\n# '))
    gone = {test for test, _ in expected} - {name for name, _ in results}
    print('{} {} - {}'.format('not ok' if gone or not results else 'ok', len(results) + 1,
                              'all that is expected ran'), *sorted(gone))
    return 1 if failed or gone or not results else 0


if __name__ == '__main__':
    sys.exit(main())
