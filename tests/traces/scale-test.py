#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Memory of a replay is for what lives at a time, not for the length of the file: two made-up
# histories of each kind, one three times as long as the other, and both longer than what is kept in
# memory. The answers are what the generator says, and no event is lost on the way.

import json
import pathlib
import subprocess
import sys
import tempfile

from command import MIB, case, main, measured, same

GENERATE = sys.argv[2]
SHORT, LONG = 70000, 210000


def replay(folder, kind, events, *options):
    path, out = pathlib.Path(folder, kind), pathlib.Path(folder, 'result.json')
    with path.open('wb') as file:
        subprocess.run([GENERATE, kind, str(events)], stdout=file, check=True)
    run, mib = measured('replay', '--json', out, *options, path)
    same(run.returncode, 0, run.stderr)
    return json.loads(out.read_text()), mib


def compare(kind, *options):
    with tempfile.TemporaryDirectory() as folder:
        results, mib = zip(*[replay(folder, kind, n, *options) for n in (SHORT, LONG)])
    print('# {} {}: {:.1f} MiB for {} events, {:.1f} for {}'.format(
        kind, ' '.join(options), mib[0], SHORT, mib[1], LONG))
    for result, events in zip(results, (SHORT, LONG)):
        assert 0 <= result['events'] - events <= 1 and result['events_done'] == result['events']
        device = result['devices'][0]
        assert device['unknown_frees'] == 0 and device['differing_results'] == 0
    # the table of what lives has its size early; 16 bytes an event, 2.1 MiB, would be seen
    assert mib[1] < mib[0] + 1.5, 'memory grows with the file'
    return results[1]['devices'][0]


@case
def calls():
    device = compare('calls')
    assert device['vmm_calls'] >= LONG


@case
def blocks():
    device = compare('blocks')
    events = device['events']
    assert sum(events.values()) == LONG
    assert events['segment_alloc'] + events['segment_free'] == LONG / 100


@case
def dump_of_msmemscope_with_rows_out_of_order():
    device = compare('memscope')
    events = device['events']
    # each free finds what it frees, and each block ends before its address comes again
    assert set(events) == {'alloc', 'free_completed', 'segment_alloc', 'segment_free'}
    assert sum(events.values()) == LONG
    assert device['peak_physical_bytes'] <= 64 * 20 * MIB


@case
def under_a_policy():
    device = compare('memscope', '--policy', 'caching')
    assert device['policy_events']['segment_alloc'] > 0


main()
