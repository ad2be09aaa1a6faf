#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npusim replay from outside: snapshots whose answers are known, in every form that they come in;
# files that are damaged or hostile; traces of calls; the recorder against the replay.
# usage: replay-test.py NPUSIM SAMPLE-WORKLOAD SAMPLE-TRACE

import functools
import gzip
import json
import os
import pathlib
import pickle
import pty
import signal
import subprocess
import sys
import tempfile
import time

from command import (BASE, MIB, NPUSIM, Device, case, environment, expect, main, npusim,
                     random_device, replay, same, snapshot, wait_until, write, write_trace)

WORKLOAD, SAMPLE = sys.argv[2:4]


def refused(path, *says):
    """The command refuses a file: status 1, one line that names it, nothing on stdout."""
    run = npusim('replay', path, '--json', '-')
    same(run.returncode, 1, 'status')
    same(run.stdout, '', 'stdout')
    same(run.stderr.count('\n'), 1, 'lines of ' + run.stderr)
    for text in (str(path),) + says:
        expect(text in run.stderr, repr(text), 'is not in', run.stderr)


def calls_of(device):
    return {name: kind['calls'] for name, kind in device['vmm_calls_by_kind'].items()}


# ---- snapshots ----

def small_device():
    """2 MiB and 20 MiB mapped and 6 MiB allocated before; then one of each call."""
    device = Device()
    device.segment_map(BASE, 2 * MIB, 'small')
    device.segment_map(BASE + (1 << 40), 40 * MIB)
    device.segment_alloc(BASE + (2 << 40), 6 * MIB)
    device.alloc(BASE, 1000)
    device.start()
    device.segment_map(BASE + (1 << 40) + 40 * MIB, 20 * MIB)
    device.alloc(BASE + (1 << 40) + 40 * MIB, 15 * MIB)
    device.segment_alloc(BASE + (3 << 40), 2 * MIB)
    device.free(BASE)
    device.segment_unmap(BASE + (1 << 40), 20 * MIB)
    device.segment_free(BASE + (2 << 40))
    device.segment_map(BASE + (1 << 40) + 100 * MIB, 2 * MIB, 'small')
    return device


@case
def a_small_history_call_by_call(folder):
    device = small_device()
    result = replay(write(folder / 'a.pkl', snapshot({0: device})))
    got, = result['devices']
    device.check(got)
    same(got['device'], 0, 'device')
    same(got['start_physical_bytes'], 48 * MIB, 'start')
    same(got['peak_physical_bytes'], 70 * MIB, 'peak')
    same(got['obtained_bytes'], 24 * MIB, 'obtained')
    same(got['peak_live_bytes'], 15 * MIB + 1000, 'live')
    same(calls_of(got), {'aclrtMallocPhysical': 2, 'aclrtMapMem': 2, 'aclrtUnmapMem': 1,
                         'aclrtFreePhysical': 1, 'aclrtMallocAlign32': 1, 'aclrtFree': 1}, 'calls')
    same(got['vmm_calls'], 8, 'calls')
    expect(got['vmm_time_ns'] > 0 and got['page_table_bytes'] > 0, got)
    same(sum(kind['time_ns'] for kind in got['vmm_calls_by_kind'].values()) // 100,
         got['vmm_time_ns'] // 100, 'time')


@case
def every_protocol_and_gzip_say_the_same(folder):
    device = random_device(7)
    results = []
    for protocol in (2, 3, 4, 5):
        for suffix in ('.pkl', '.pkl.gz'):
            path = write(folder / ('p' + str(protocol) + suffix), snapshot({0: device}), protocol)
            results.append(replay(path)['devices'])
            device.check(results[-1][0])
    expect(all(result == results[0] for result in results))


@case
def random_histories_have_the_figures_of_their_allocator(folder):
    for seed in range(12):
        device = random_device(seed)
        device.check(replay(write(folder / 'r.pkl', snapshot({0: device})))['devices'][0])


@case
def each_device_has_its_own_answer(folder):
    devices = {0: random_device(20), 1: small_device(), 3: random_device(21)}
    got = replay(write(folder / 'm.pkl', snapshot(devices)))['devices']
    same([device['device'] for device in got], [0, 1, 3], 'devices')
    for device in got:
        devices[device['device']].check(device)


@case
def a_device_that_the_model_lacks_is_named(folder):
    path = write(folder / 'm.pkl', snapshot({3: small_device()}))
    run = npusim('replay', path, '--devices', 2)
    same(run.returncode, 1, 'status')
    expect('device 3' in run.stderr and '--devices 4' in run.stderr, run.stderr)
    replay(path, '--devices', 4)


@case
def parts_of_what_one_event_mapped_can_be_unmapped(folder):
    device = Device()
    device.segment_map(BASE, 60 * MIB)
    device.segment_unmap(BASE + 4 * MIB, 2 * MIB)
    device.segment_unmap(BASE + 20 * MIB, 20 * MIB)
    device.segment_map(BASE + 4 * MIB, 2 * MIB)
    got, = replay(write(folder / 'a.pkl', snapshot({0: device})))['devices']
    device.check(got)
    # the first 20 MiB are ten handles, since one of them is unmapped alone
    same(calls_of(got)['aclrtMallocPhysical'], 10 + 1 + 1 + 1, 'handles')


@case
def addresses_may_be_far_apart_and_go_on_for_long(folder):
    device = Device()
    for at in range(0, 300 << 30, 10 << 30):
        device.segment_map(BASE + at, 2 * MIB)
    for at in range(0, 260 << 30, 1 << 30):
        device.segment_map(BASE + (3 << 40) + at + (1 << 30) - 2 * MIB, 4 * MIB)
    device.check(replay(write(folder / 'a.pkl', snapshot({0: device})))['devices'][0])


@case
def unknown_actions_are_counted_by_name(folder):
    device = small_device()
    device.event('workspace_snapshot', 0, 0)
    device.event('snap\u00e9 "x"', 0, 0)
    device.event('oom', 0, 1 << 40, device_free=5)
    device.check(replay(write(folder / 'a.pkl', snapshot({0: device})))['devices'][0])
    run = npusim('replay', folder / 'a.pkl')
    expect('1 workspace_snapshot (skipped)' in run.stdout, run.stdout)


@case
def running_out_of_memory_is_an_answer(folder):
    device = Device()
    for i in range(60):
        device.segment_map(BASE + i * 20 * MIB * 5, 100 * MIB)
    device.segment_alloc(BASE + (1 << 40), 500 * MIB)
    device.segment_free(BASE + (1 << 40))
    for i in range(60):
        device.segment_unmap(BASE + i * 20 * MIB * 5, 100 * MIB)
    path = write(folder / 'a.pkl', snapshot({0: device}))
    got, = replay(path, '--hbm', '4G')['devices']
    same(got['peak_physical_bytes'], 3900 * MIB, 'what the device gave, of 6500 MiB')
    expect(got['device_peak_bytes'] < 4096 * MIB, got['device_peak_bytes'])
    failed = got['out_of_memory']
    expect(failed['bytes'] == 20 * MIB and 30 < failed['event'] < 42, failed)
    run = npusim('replay', path, '--hbm', '4G')
    same(run.returncode, 0, 'status')
    expect('OUT OF MEMORY' in run.stdout and 'event {} '.format(failed['event']) in run.stdout,
           run.stdout)


@case
def an_empty_snapshot_is_replayed(folder):
    same(replay(write(folder / 'a.pkl', dict(segments=[], device_traces=[])))['devices'][0]
         ['vmm_calls'], 0, 'calls')


# ---- files that are not right ----

@case
def every_kind_of_damage_is_refused(folder):
    data = pickle.dumps(snapshot({0: small_device()}), 4)
    path = folder / 'a.pkl'
    for cut in [3, 10, 11, 12, 100, len(data) // 2, len(data) - 1]:
        path.write_bytes(data[:cut])
        refused(path, 'pickle damaged at byte')
    packed = folder / 'a.pkl.gz'
    whole = gzip.compress(data)
    packed.write_bytes(whole[:len(whole) // 2])
    refused(packed, 'gzip damaged at byte', 'ends early')
    packed.write_bytes(whole[:40] + bytes([whole[40] ^ 0xff]) + whole[41:])
    refused(packed, 'damaged at byte')
    for data, says in [(b'', 'empty'), (b'\x7fELF', 'not a kind'), (b'\x80\x06N.', 'not a kind'),
                       (pickle.dumps([1], 2), 'no dict'), (pickle.dumps({}, 2), 'segments')]:
        path.write_bytes(data)
        refused(path, says)
    refused(folder / 'missing', 'No such file')
    refused(folder, 'directory')


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, ('touch ' + self.path,)


@case
def code_in_a_pickle_is_refused_and_does_not_run(folder):
    planted = folder / 'planted'
    for protocol in (2, 3, 4, 5):
        value = snapshot({0: small_device()})
        value['external_annotations'] = Payload(str(planted))
        path = write(folder / 'a.pkl', value, protocol)
        refused(path, 'pickle refused at byte', 'GLOBAL')
        expect(not planted.exists())
        pickle.loads(path.read_bytes())
        expect(planted.exists(), 'the payload is none')
        planted.unlink()


def with_events(*events, segments=()):
    return dict(segments=list(segments),
                device_traces=[[dict(action=action, addr=addr, size=size, stream=0)
                                for action, addr, size in events]])


@case
def histories_that_make_no_sense_are_refused_with_their_place(folder):
    path = folder / 'a.pkl'
    segment = dict(device=0, address=BASE, total_size=2 * MIB, is_expandable=True,
                   segment_type='small', blocks=[])
    for value, *says in [
            (with_events(('segment_map', BASE + 5, 2 * MIB)), 'event 1', 'multiples of 2 MiB'),
            (with_events(('alloc', BASE, 1), ('segment_map', BASE, 5)), 'event 2'),
            (with_events(('segment_map', BASE, 2 * MIB), ('segment_map', BASE, 2 * MIB)),
             'event 2', 'mapped already'),
            (with_events(('segment_map', BASE, 4 * MIB), ('segment_map', BASE + 2 * MIB, 4 * MIB)),
             'event 2'),
            (with_events(('segment_alloc', BASE, 2 * MIB), ('segment_alloc', BASE, 2 * MIB)),
             'event 2', 'there already'),
            (with_events(('segment_alloc', BASE, 0)), 'event 1', 'aclrtMallocAlign32'),
            (with_events(('segment_alloc', BASE, -1)), 'device_traces[0][0]'),
            (with_events(('alloc', 1 << 62, 1 << 62)), 'address space'),
            (with_events(('alloc', BASE, 1 << 80)), 'size'),
            (with_events(segments=[dict(segment, total_size=3 * MIB)]), 'device 0, the start',
             '2 MiB'),
            (with_events(segments=[dict(segment, device=1 << 40)]), 'segments[0]', 'device'),
            (with_events(segments=[dict(segment, blocks=None)]), 'segments[0]', 'blocks')]:
        refused(write(path, value), *says)


@case
def a_small_file_cannot_become_a_large_history(folder):
    event = dict(action='alloc', addr=BASE, size=1)
    refused(write(folder / 'a.pkl', dict(segments=[], device_traces=[[event] * 1000] * 1000)),
            'more than its size allows')


@case
def deep_pickles_need_no_stack(folder):
    path = folder / 'a.pkl'
    path.write_bytes(b'\x80\x02' + b']' * 3000000 + b'a' * 2999999 + b'.')
    refused(path, 'no dict')


# ---- npusim traces ----

@case
def calls_are_made_again(folder):
    path = write_trace(folder / 'a.npt',
                       'info soc=Ascend910B4 about=a%20test',
                       'reserve r1 size=1073741824 flags=1 va=0x1',
                       'create h1 size=2097152 device=2 page=2m',
                       'map r1+4194304 size=2097152 handle=h1',
                       'alloc b1 size=1000000 device=2 va=0x2',
                       'retain h1 at=r1+4194304',
                       'release h1', 'release h1',
                       'create h2 size=2097152 device=2 page=2m',
                       'create h3 size=2097152 device=2 page=2m rounded=2097152',
                       'release h3', 'release h2',
                       'malloc a1 size=4194304 device=2 page=2m', 'mfree a1',
                       'malloc a2 size=4096 device=host page=4k', 'mfree a2',
                       'free b1 device=2', 'unmap r1+4194304', 'unreserve r1',
                       'frobnicate h1', 'copy size=5 dst=host src=host')
    result = replay(path)
    got, = result['devices']
    same(result['recorded_soc'], 'Ascend910B4', 'soc')
    same(result['about'], 'a test', 'about')
    same(got['device'], 2, 'device')
    same(got['peak_physical_bytes'], 6 * MIB, 'h1 lives until it is unmapped')
    same(got['obtained_bytes'], 10 * MIB, 'obtained')
    same(got['peak_live_bytes'], 1000000, 'live')
    same((got['differing_results'], got['calls_left_out']), (0, 0), 'calls')
    same(calls_of(got)['aclrtMemRetainAllocationHandle'], 1, 'retain')
    expect('1 line skipped' in npusim('replay', path).stdout)


@case
def stalls_of_creating_have_a_line_of_their_own(folder):
    """Of a 910B: one for each GiB by which the process holds more than ever before."""
    gib = 1024 * MIB
    lines = ['create h1 size={} device=0 page=2m'.format(3 * gib), 'release h1',
             'create h2 size={} device=0 page=2m'.format(2 * gib),
             'create h3 size={} device=0 page=2m'.format(3 * gib // 2)]
    path = write_trace(folder / 'a.npt', *lines[:1])
    stall = replay(path)['create_stall_ns'] // 3
    expect(stall > 10 ** 7, stall)
    path = write_trace(folder / 'b.npt', *lines)
    all_of_it = replay(path)
    same(all_of_it['create_stall_ns'], 3 * stall, 'no more than 3.5 GiB were held')
    expect(all_of_it['simulated_ns'] > all_of_it['create_stall_ns'])
    expect('{:.3f} ms of it are stalls'.format(3 * stall / 1e6) in npusim('replay', path).stdout)
    other = ('--soc', 'Ascend910_9391')
    same(replay(path, *other)['create_stall_ns'], 0, 'a 910C')
    expect('stalls' not in npusim('replay', path, *other).stdout)


@case
def results_that_differ_are_counted(folder):
    path = write_trace(folder / 'a.npt',
                       'create h1 size=2097152 device=0 page=2m => 207001',
                       'create h2 size=0 device=0 page=2m',
                       'create h3 size=2097152 device=4294967295 page=2m => 107001',
                       'map host size=2097152 handle=h1 => 107000',
                       'map r9 size=2097152 handle=h1',
                       'release h7')
    got, = replay(path)['devices']
    same(got['differing_results'], 2, 'the first and the second')
    same(got['calls_left_out'], 2, 'the last two')


@case
def what_was_refused_and_works_goes_back_at_the_end(folder):
    path = write_trace(folder / 'a.npt',
                       'create host size=2097152 device=0 page=2m => 207001',
                       'reserve host size=2097152 => 507899',
                       'malloc host size=2097152 device=0 page=2m => 207001',
                       'create host size=2097152 device=0 page=2m => 207001')
    got, = replay(path)['devices']  # which fails where anything is said of what is left
    same((got['differing_results'], got['calls_left_out']), (4, 0), 'calls')
    same(got['peak_physical_bytes'], 6 * MIB, 'peak')


@case
def shared_memory_is_counted_once(folder):
    path = write_trace(folder / 'a.npt',
                       ':1.1 create h1 size=20971520 device=0 page=2m',
                       ':1.1 export s1 handle=h1',
                       ':2.1 import h1 share=s1 device=0',
                       ':2.1 reserve r1 size=1073741824',
                       ':2.1 map r1 size=20971520 handle=h1',
                       ':1.1 release h1',
                       ':2.1 unmap r1',
                       ':2.1 release h1',
                       ':2.1 create h2 size=2097152 device=0 page=2m')
    got, = replay(path)['devices']
    same(got['peak_physical_bytes'], 20 * MIB, 'peak')
    same(got['obtained_bytes'], 22 * MIB, 'obtained')
    same((got['differing_results'], got['calls_left_out']), (0, 0), 'calls')


@case
def an_allocators_lines_are_replayed_without_calls(folder):
    path = write_trace(folder / 'a.npt',
                       'segment_map r1+0 size=20971520 device=1',
                       ':2.1 segment_map r1+0 size=2097152 device=0',
                       'segment_alloc a1 size=2097152 device=1',
                       'alloc b1 size=77 device=1',
                       'free b1 device=1 op=requested',
                       'free b1 device=1',
                       'segment_free a1 device=1',
                       'segment_unmap r1+0 size=20971520 device=1')
    zero, one = replay(path)['devices']
    same((zero['peak_physical_bytes'], one['peak_physical_bytes']), (2 * MIB, 22 * MIB), 'peaks')
    same(one['peak_live_bytes'], 77, 'live')
    same(calls_of(one)['aclrtMallocPhysical'], 1, 'handles')


@case
def a_segment_goes_with_the_size_that_it_came_with(folder):
    lines = ['segment_alloc a7 size=4194304 device=0 start=1',
             'segment_alloc a1 size=20971520 device=0', 'segment_free a1 device=0',
             'segment_alloc a1 size=2097152 device=0', 'segment_free a7 device=0',
             'segment_free a1 device=0']
    device, = replay(write_trace(folder / 'a.npt', *lines))['devices']
    same(device['series']['physical_bytes'], [4 * MIB, 24 * MIB, 4 * MIB, 6 * MIB, 2 * MIB, 0],
         'physical')
    told = [line + ' size={}'.format({'1': 20 * MIB, '7': 4 * MIB}[line[14]])
            if line.startswith('segment_free') else line for line in lines[:5]]
    device, = replay(write_trace(folder / 'b.npt', *told, lines[5]))['devices']
    same(device['series']['physical_bytes'], [4 * MIB, 24 * MIB, 4 * MIB, 6 * MIB, 2 * MIB, 0],
         'with sizes')


@case
def blocks_are_read_where_at_says_that_they_lie(folder):
    lines = ['segment_alloc a2 size=20971520 device=0', 'segment_map r1+0 size=2097152 device=0',
             'alloc b1 size=4096 device=0', 'alloc b2 size=1048576 device=0 at=r1+4096',
             'alloc b3 size=4194304 device=0 at=a2+1024', 'free b2 device=0', 'free b3 device=0',
             'alloc b4 size=512 device=0']
    device, = replay(write_trace(folder / 'a.npt', *lines), '--access', 'seq')['devices']
    same(device['access']['reads'], 2, 'reads of what has a place')
    same(device['access']['bytes'], 2 * MIB, 'bytes')
    same((device['unknown_frees'], device['series']['live_bytes'][-1]), (0, 4608), 'live')
    # a name that a block has is not that of a segment
    lines = ['segment_alloc a1 size=2097152 device=0', 'alloc b1 size=4096 device=0']
    device, = replay(write_trace(folder / 'b.npt', *lines), '--access', 'random')['devices']
    same(device.get('access', {}).get('reads', 0), 0, 'reads of what has no place')


@case
def bad_lines_are_refused_with_their_number(folder):
    for line, says in [('create h1 size=x device=0', "size is 'x', which is no number"),
                       ('map', 'map needs'),
                       ('segment_map r1+1 size=2097152 device=0', 'multiples of 2 MiB'),
                       ('segment_free a1 device=0', 'no segment')]:
        refused(write_trace(folder / 'a.npt', '# a comment', line), 'line 3: ', says)
    (folder / 'b.npt').write_text('npusim-trace 2\n')
    refused(folder / 'b.npt', 'version is 2')


@case
def a_trace_that_breaks_off_is_read_to_its_last_line(folder):
    path = folder / 'a.npt'
    path.write_text('npusim-trace 1\ncreate h1 size=2097152 device=0\ncreate h2 size=2')
    same(replay(path)['devices'][0]['peak_physical_bytes'], 2 * MIB, 'peak')
    expect('breaks off' in npusim('replay', path).stdout)


LONG = tempfile.TemporaryDirectory(prefix='npusim-replay-')


@functools.lru_cache(None)
def long_trace():
    """A million lines and more."""
    path = pathlib.Path(LONG.name, 'long.npt.gz')
    block = ''.join('create h{0} size=2097152 device=0 page=2m\nmap r1+{1} size=2097152 '
                    'handle=h{0}\nunmap r1+{1}\nrelease h{0}\n'.format(i, i * 2 * MIB)
                    for i in range(512)).encode()
    with gzip.open(path, 'wb', 1) as out:
        out.write(b'npusim-trace 1\nreserve r1 size=1073741824\n')
        for _ in range(500):
            out.write(block)
    return path


def handles_interrupts(pid):
    for line in pathlib.Path('/proc/{}/status'.format(pid)).read_text().splitlines():
        if line.startswith('SigCgt:'):
            return int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1
    return False


@case
def an_interrupt_leaves_a_valid_partial_result(folder):
    path, out = long_trace(), folder / 'out.json'
    run = subprocess.Popen([NPUSIM, 'replay', str(path), '--json', str(out)], env=environment(),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    wait_until(lambda: run.poll() is not None or handles_interrupts(run.pid), 'no replay begins')
    time.sleep(0.2)
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=60)
    same(run.returncode, 130, 'status')
    same(stderr, '', 'stderr')
    result = json.loads(out.read_text())
    same(result['complete'], False, 'complete')
    expect(0 < result['events_done'] < result['events'] == 1024001, result['events_done'])
    expect('interrupted after' in stdout and 'partial' in stdout, stdout)


@case
def a_long_replay_shows_its_progress_on_a_terminal_only():
    ours, theirs = pty.openpty()
    run = subprocess.Popen([NPUSIM, 'replay', str(long_trace()), '--timing', 'off'],
                           env=environment(), stdin=subprocess.DEVNULL, stderr=theirs,
                           stdout=subprocess.DEVNULL)
    os.close(theirs)
    shown = b''
    try:
        while b'%' not in shown:
            shown += os.read(ours, 4096)
    except OSError:
        pass
    run.kill()
    run.wait()
    os.close(ours)
    expect(b'[' in shown and b'events' in shown, shown)


# ---- the recorder ----

def figures(stdout):
    return {key: int(value) for key, value in (line.split('=') for line in stdout.split())}


@case
def a_recorded_program_replays_as_it_says_itself(folder):
    trace = folder / 'a.npt'
    run = npusim('run', '--trace', trace, '--', WORKLOAD)
    same((run.returncode, run.stderr), (0, ''), 'the workload')
    said = figures(run.stdout)
    got, = replay(trace)['devices']
    for key in ('peak_physical_bytes', 'peak_live_bytes', 'obtained_bytes', 'vmm_calls'):
        same(got[key], said[key], key)
    same(got['events']['alloc'], said['blocks'], 'blocks')
    same((got['differing_results'], got['calls_left_out'], got['unknown_frees']), (0, 0, 0), 'odd')


@case
def the_sample_is_what_the_workload_records(folder):
    run = npusim('run', '--', WORKLOAD)
    said = figures(run.stdout)
    expect(os.path.getsize(SAMPLE) < 100 * 1024)
    got, = replay(SAMPLE)['devices']
    for key in ('peak_physical_bytes', 'peak_live_bytes', 'obtained_bytes', 'vmm_calls'):
        same(got[key], said[key], key)
    expect(0.02 < got['fragmentation'] < 0.5, got['fragmentation'])


if __name__ == '__main__':
    main()
