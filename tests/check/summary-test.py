#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What tests/harness/summary.py counts: a run of a small Meson project whose tests pass, fail, skip,
# crash, hang or are not there, whose log is then shown to it case by case. Prints TAP.

import json
import pathlib
import subprocess
import sys
import tempfile

GTEST = '''
import sys
cases = {cases!r}
leaks = {leaks!r}
rows = []
for name, result in cases:
    print('[ RUN      ] a.' + name)
    if result == 'crash':
        sys.stdout.flush()
        import os
        os.kill(os.getpid(), 9)
    word = dict(ok='      OK', failed=' FAILED ', skipped=' SKIPPED')[result]
    print('[{{}} ] a.{{}} (0 ms)'.format(word.rjust(8), name))
    inner = dict(ok='', failed='<failure message="m"/>', skipped='<skipped message="m"/>')[result]
    rows.append('<testcase name="{{}}" status="run" classname="a">'.format(name) + inner +
                '</testcase>')
for arg in sys.argv:
    if arg.startswith('--gtest_output=xml:'):
        with open(arg[19:], 'w') as out:
            out.write('<testsuites><testsuite name="a">' + ''.join(rows) +
                      '</testsuite></testsuites>')
sys.exit(leaks or any(result == 'failed' for _, result in cases))
'''


def gtest(*cases, leaks=False):
    return GTEST.format(cases=cases, leaks=leaks)


# Title; tests as (name, protocol, program); the closing line; the status of summary.py.
CASES = [
    ('gtest cases', [
        ('one', 'gtest', gtest(('x', 'ok'), ('y', 'ok'), ('z', 'skipped'))),
        ('two', 'gtest', gtest(('x', 'ok')))],
     '3 passed, 0 failed, 1 skipped', 0),
    ('a failed case', [
        ('one', 'gtest', gtest(('x', 'ok'), ('y', 'failed'), ('z', 'failed')))],
     '1 passed, 2 failed', 1),
    ('a crash after two cases', [
        ('one', 'gtest', gtest(('x', 'ok'), ('y', 'skipped'), ('z', 'crash')))],
     '1 passed, 1 failed, 1 skipped', 1),
    ('an exit status that no case explains', [
        ('one', 'gtest', gtest(('x', 'ok'), leaks=True))],
     '1 passed, 1 failed', 1),
    ('a test that hangs', [
        ('one', 'gtest', 'import time\nprint("[ RUN      ] a.x", flush=True)\ntime.sleep(60)')],
     '0 passed, 1 failed', 1),
    ('TAP', [
        ('one', 'tap', 'print("1..4\\nok 1 - a\\nnot ok 2 - b\\nok 3 # SKIP no\\nok 4")\nexit(1)')],
     '2 passed, 1 failed, 1 skipped', 1),
    ('exit statuses', [
        ('one', 'exitcode', 'pass'), ('two', 'exitcode', 'exit(1)'),
        ('three', 'exitcode', 'exit(77)'), ('four', 'exitcode', 'print("ok 1")')],
     '2 passed, 1 failed, 1 skipped', 1),
    ('no tests', [], '0 passed, 0 failed', 1),
    ('skips only', [('one', 'exitcode', 'exit(77)')], '0 passed, 0 failed, 1 skipped', 1),
]


def build_project(folder):
    """One project with the tests of all cases, each named after its case and itself; all run."""
    lines = ["project('example')", "python = import('python').find_installation()"]
    for case, (_, tests, _, _) in enumerate(CASES):
        for name, protocol, program in tests:
            name = '{}-{}'.format(case, name)
            (folder / (name + '.py')).write_text(program)
            lines.append("test('{0}', python, args: files('{0}.py'), protocol: '{1}', "
                         "suite: '{2}', timeout: {3})".format(
                             name, protocol, 'x' if name.endswith('one') else 'y',
                             1 if 'sleep' in program else 60))
    (folder / 'meson.build').write_text('\n'.join(lines) + '\n')
    subprocess.run(['meson', 'setup', 'build'], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['meson', 'test', '-C', 'build', '--no-rebuild'], cwd=folder,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (folder / 'build/meson-logs/testlog.json').rename(folder / 'all.json')


def summarise(summary, folder, case):
    """The last line that summary.py prints of the runs of a case's tests alone, and its status."""
    log = folder / 'build' / 'meson-logs' / 'testlog.json'
    runs = (folder / 'all.json').read_text().splitlines(keepends=True)
    log.unlink(missing_ok=True)
    if CASES[case][1]:
        log.write_text(''.join(run for run in runs if json.loads(run)['name'].split(' / ')[-1]
                               .startswith('{}-'.format(case))))
    result = subprocess.run([sys.executable, summary, folder / 'build'], text=True,
                            stdout=subprocess.PIPE)
    return result.stdout.rstrip('\n').split('\n')[-1], result.returncode


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: summary-test.py SUMMARY.PY')
    failed = 0
    print('1..{}'.format(len(CASES)))
    with tempfile.TemporaryDirectory(prefix='npusim-summary-') as name:
        folder = pathlib.Path(name)
        build_project(folder)
        for case, (title, _, wanted_line, wanted_status) in enumerate(CASES):
            wanted, got = (wanted_line, wanted_status), summarise(sys.argv[1], folder, case)
            failed += got != wanted
            print('{}ok {} {}'.format('' if got == wanted else 'not ', case + 1, title))
            if got != wanted:
                print('{}: wanted {}, got {}'.format(title, wanted, got), file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
