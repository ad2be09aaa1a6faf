#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The validation changes no answer: all conformance cases under the documents' contract, and those
# whose answers differ under the driver's, without it and with it. Compared are the report of the
# cases, and what each of their processes asked the driver and was answered, codes and addresses;
# and what is reported with what expected.txt says, without stacks. Prints TAP; --update writes the
# file anew.
# usage: exact-test.py NPUSIM EXPECTED CASES [--update]

import os
import pathlib
import re
import subprocess
import sys

import reports
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
from tap import expect, run_cases

COMMAND, EXPECTED, CASES = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
STAMPS = re.compile(r'^(?:[@~:][\d.]+ )+')


def copy_cases(folder, text):
    """The cases in which this stands; how many they are."""
    cases = [case for path in CASES.glob('*.case') for case in
             re.split(r'(?m)^(?=case )', path.read_text(encoding='utf-8'))[1:] if text in case]
    folder.mkdir()
    (folder / 'all.case').write_text(''.join(cases), encoding='utf-8')
    return len(cases)


def start(folder, contract, words):
    folder.mkdir()
    env = reports.environment()
    env.update(NPUSIM_TRACE=str(folder / '%p.npt'), NPUSIM_STACKS='off', NPUSIM_LEAKS='off',
               NPUSIM_VALIDATE_FILE=str(folder / 'reports'), NPUSIM_VALIDATE_LIMIT='100000')
    return subprocess.Popen([COMMAND, 'check', '--backend', 'sim', '--device', '0', '--format',
                             'tap', '--contract', contract, '--cases',
                             str(folder.with_name('cases')), *words], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answers(folder):
    """What each process was answered, without times, in an order that does not depend on ids."""
    found = []
    for path in folder.glob('*.npt'):
        lines = [STAMPS.sub('', line) for line in path.read_text(encoding='utf-8').splitlines()
                 if not line.startswith(('info', '#'))]
        # keys of shares are random
        found.append([re.sub(r' key=\w+', '', line) for line in lines[1:]])
    return sorted(found)


def compare(folder, contract):
    count = copy_cases(folder / 'cases', '' if contract == 'docs' else '| driver ')
    runs = {mode: start(folder / (contract + mode), contract, words)
            for mode, words in (('off', []), ('on', ['--validate']))}
    said = {mode: run.communicate(timeout=300) for mode, run in runs.items()}
    if said['off'][0] != said['on'][0] or '\nok {} '.format(count) not in said['off'][0]:
        return 'the reports differ', said['off'][0], said['on'][0]
    if 'validate: ' not in said['on'][1] or 'validate: ' in said['off'][1]:
        return ('nothing was validated', said['on'][1])
    name, found = 'validate-exact-' + contract, reports.read(folder / (contract + 'on') / 'reports')
    if '--update' in sys.argv:
        reports.update(EXPECTED, [(name, found)])
    # cases that name addresses fail where the window lies elsewhere, and then other rules apply
    unexpected = 'NPUSIM_WINDOW' not in os.environ and tuple(
        reports.differences(name, found, reports.expectations(EXPECTED)))
    if unexpected:
        return unexpected
    off, on = (answers(folder / (contract + mode)) for mode in ('off', 'on'))
    if not count <= len(off) == len(on):
        return ('traces', len(off), len(on))
    return next(((a, b) for a, b in zip(off, on) if a != b), None)


def changes_no_answer(folder, contract):
    wrong = compare(folder, contract)
    expect(wrong is None, *(str(part)[:4000] for part in wrong or ()))


run_cases([(contract, lambda folder, contract=contract: changes_no_answer(folder, contract))
           for contract in ('docs', 'driver')])
