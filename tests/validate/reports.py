# SPDX-License-Identifier: Apache-2.0
#
# What validation reports of the tests' programs, against expected.txt: lines of TEST RULE COUNT,
# and why. Equal reports, by their stacks, count once.

import collections
import json
import os


def environment():
    """Without settings, but for where a sanitizer leaves room."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith('NPUSIM_') or name == 'NPUSIM_WINDOW'}


def expectations(path):
    """(test, rule) -> (count, why)"""
    found = {}
    for line in path.read_text(encoding='utf-8').splitlines():
        words, _, why = line.partition('#')
        if words.strip():
            test, rule, count = words.split()
            found[test, rule] = int(count), why.strip()
    return found


def read(path):
    """The reports of NPUSIM_VALIDATE_FILE as (rule, text)."""
    lines = path.read_text(encoding='utf-8').splitlines() if path.exists() else []
    return [(report['rule'], '{}\n    {}'.format(report['text'], '\n    '.join(
        report['stack'] or report['made_stack']))) for report in map(json.loads, lines)]


def differences(name, reports, expected):
    counts = collections.Counter(rule for rule, _ in reports)
    rules = set(counts) | {rule for test, rule in expected if test == name}
    for rule in sorted(rules):
        wanted = expected.get((name, rule), (0, ''))[0]
        if counts[rule] != wanted:
            yield '{} {}: {} reported, {} expected'.format(name, rule, counts[rule], wanted)
            yield from (text for other, text in reports if other == rule)


def update(path, results):
    """Writes the rows of tests anew, (name, reports) each; the others stay."""
    expected = expectations(path)
    rows = [(test, rule, *row) for (test, rule), row in expected.items()
            if test not in {name for name, _ in results}]
    for name, reports in results:
        rows += [(name, rule, count, expected.get((name, rule), (0, 'new'))[1]) for rule, count
                 in sorted(collections.Counter(rule for rule, _ in reports).items())]
    path.write_text('# SPDX-License-Identifier: Apache-2.0\n'
                    '# What tests do wrong on purpose (--update writes it): test, rule, count.\n' +
                    ''.join('{:<24} {:<14} {:>3}  # {}\n'.format(*row) for row in rows),
                    encoding='utf-8')
