#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Counts the single test cases of the last `meson test` in a build folder, names those that failed
# and prints 'N passed, N failed' (', N skipped') as its last line. Status 0 if some passed and none
# failed. Runs no test.

import json
import pathlib
import re
import sys
import xml.etree.ElementTree

CASE_LINE = re.compile(r'^\[ +(OK|FAILED|SKIPPED) +\] (\S+) \(\d+ ms\)', re.MULTILINE)
TAP_LINE = re.compile(r'^(not )?ok\b[ \d]*(?:- )?([^#\n]*)(# *skip)?', re.MULTILINE | re.I)


def gtest_report(path):
    """(name, result) of each case in a report of GoogleTest's."""
    for case in xml.etree.ElementTree.parse(path).getroot().iter('testcase'):
        name = '{}.{}'.format(case.get('classname'), case.get('name'))
        if case.find('failure') is not None:
            yield name, 'failed'
        elif case.find('skipped') is not None or case.get('result') == 'skipped':
            yield name, 'skipped'
        elif case.get('status') == 'run':
            yield name, 'passed'


def gtest_output(text):
    """The same from what was printed, of a program that ended before it could write its report."""
    words = {'OK': 'passed', 'FAILED': 'failed', 'SKIPPED': 'skipped'}
    for word, name in CASE_LINE.findall(text):
        yield name, words[word]


def tap_output(text):
    for number, (wrong, name, directive) in enumerate(TAP_LINE.findall(text), 1):
        result = 'skipped' if directive else 'failed' if wrong else 'passed'
        yield name.strip() or str(number), result


def cases_of(run, protocol, build):
    """Every case of one program, with one more for a failure that is not a case's."""
    name = run['name'].split(' / ')[-1]
    wrong = run['result'] not in ('OK', 'SKIP', 'EXPECTEDFAIL')
    text = run.get('stdout') or ''
    cases = []
    if protocol == 'gtest':
        report = build / (name + '.xml')
        try:
            cases = list(gtest_report(report))
        except (FileNotFoundError, xml.etree.ElementTree.ParseError):
            cases = list(gtest_output(text))
    elif protocol == 'tap':
        cases = list(tap_output(text))
    cases = [(name + ': ' + case, result) for case, result in cases]
    if wrong and not any(result == 'failed' for _, result in cases):
        cases.append((name + ': ' + run['result'].lower(), 'failed'))
    elif not cases:
        cases.append((name, 'skipped' if run['result'] == 'SKIP' else 'passed'))
    return cases


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: summary.py BUILD-FOLDER')
    build = pathlib.Path(sys.argv[1])
    tests = json.loads((build / 'meson-info' / 'intro-tests.json').read_text())
    protocols = {test['name']: test['protocol'] for test in tests}

    cases = []
    log = build / 'meson-logs' / 'testlog.json'
    if log.exists():
        for line in log.read_text(errors='replace').splitlines():
            run = json.loads(line)
            cases += cases_of(run, protocols.get(run['name'].split(' / ')[-1]), build)

    of = {word: [name for name, result in cases if result == word]
          for word in ('passed', 'failed', 'skipped')}
    if of['failed']:
        print('Failed:')
        print('\n'.join('  ' + name for name in of['failed']))
    print('{} passed, {} failed'.format(len(of['passed']), len(of['failed'])) +
          (', {} skipped'.format(len(of['skipped'])) if of['skipped'] else ''))
    sys.exit(0 if of['passed'] and not of['failed'] else 1)


if __name__ == '__main__':
    main()
