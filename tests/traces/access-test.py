#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What a replay touches and moves: accesses to the memory that recorded calls got, whose TLB figures
# follow from closed forms; copies and fills; processes that use the same names; and the addresses
# that a real card gave. The real file is another's; without its folder that case is skipped.

import csv
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from command import MIB, NPUSIM, Skip, case, main, measured, npusim, real, write_trace

GIB = 1 << 30
TLB_ENTRIES = 2048  # of the second level of the Ascend910B1's profile


def run(path, *options):
    return npusim('replay', '--json', '-', '--soc', 'Ascend910B1', *options, path)


def replay(lines, *options):
    with tempfile.TemporaryDirectory() as folder:
        done = run(write_trace(pathlib.Path(folder, 'calls.npt'), *lines), *options)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    result = json.loads(done.stdout)
    assert result['devices'][0]['differing_results'] == 0, result
    return result


def mapped(count, page, size=GIB):
    """Handles of 1 GiB, or another size, mapped one after another."""
    lines = ['reserve r1 size={} flags=1'.format(max(count * size, GIB))]
    for i in range(count):
        lines += ['create h{} size={} device=0 page={}'.format(i + 1, size, page),
                  'map r1+{} size={} handle=h{}'.format(i * size, size, i + 1)]
    return lines


def touched(lines, pattern, reads, *options, phases=1):
    """The figures of accesses that are made when all is mapped, and after each idle call."""
    lines = lines + ['call op=step'] * (len(lines) * (phases - 1))
    result = replay(lines, '--access', pattern, '--access-every', str(len(lines) // phases),
                    '--access-reads', str(reads), *options)
    return result['devices'][0]['access']


# ---- accesses to what calls got ------------------------------------------------------------------

@case
def random_reads_miss_as_often_as_the_closed_form_says():
    reads = 100000
    for gib in (8, 16):
        pages = gib * GIB // (2 * MIB)
        figures = touched(mapped(gib, '2m'), 'random', reads)
        # until the TLB is full each miss adds a page: N ln(N / (N - C)) reads with C misses
        filling = pages * math.log(pages / (pages - TLB_ENTRIES))
        rate = 1 - TLB_ENTRIES / pages
        wanted = TLB_ENTRIES + (reads - filling) * rate
        sigma = math.sqrt((reads - filling) * rate * (1 - rate))
        print('# {} pages: {} walks, {:.0f} wanted, sigma {:.0f}'.format(
            pages, figures['walks'], wanted, sigma))
        assert figures['reads'] == reads and figures['bytes'] == reads * 512
        assert abs(figures['walks'] - wanted) < 3 * sigma
        assert figures['tlb_hits'] + figures['walks'] == reads


@case
def what_the_tlb_covers_is_walked_to_once():
    assert touched(mapped(4, '2m'), 'random', 100000)['walks'] == 2048
    assert touched(mapped(16, '1g'), 'random', 100000)['walks'] == 16


@case
def a_hot_part_is_as_large_as_asked_for():
    # all reads in the first tenth of 16 GiB: 820 of 8192 pages
    figures = touched(mapped(16, '2m'), 'hot:100/10', 100000)
    assert figures['walks'] == math.ceil(8192 * 0.1), figures
    assert touched(mapped(16, '1g'), 'hot:100/10', 100000)['walks'] == 2
    # half of the reads in a half of it is no preference; 90 in 10 per cent spare most walks
    figures = {pattern: touched(mapped(16, '2m'), pattern, 100000)['walks']
               for pattern in ('random', 'hot:50/50', 'hot', 'hot:90/10')}
    assert figures['hot'] == figures['hot:90/10']
    assert abs(figures['hot:50/50'] - figures['random']) < 1000
    # the cold tenth of the reads misses nearly always, the hot ones nearly never
    assert 0.08 < figures['hot'] / 100000 < 0.12, figures


@case
def a_sweep_walks_to_each_page_and_again_if_there_are_more_than_entries(folder):
    small = folder / 'small.ini'  # a sweep of its 128 pages takes a quarter of a second
    small.write_text('[Profile]\nbase=Ascend910B1\n[MMU]\ntlb_l2_entries=128\n')
    quarter = GIB // 4
    for count, walks in ((1, 128), (2, 2 * 256)):
        figures = touched(mapped(count, '2m', quarter), 'seq', 1, '--soc', small, phases=2)
        assert (figures['bytes'], figures['walks']) == (2 * count * quarter, walks), figures


@case
def blocks_come_with_maps_and_mallocs_and_go_with_them():
    lines = ['malloc a1 size={} device=0 page=2m'.format(8 * MIB)]
    once = replay(lines, '--access', 'seq')['devices'][0]['access']
    assert once['reads'] == 1 and once['bytes'] == MIB
    # what is gone is not read: a read of it would be refused
    lines += ['mfree a1', 'reserve r1 size={} flags=1'.format(GIB),
              'create h1 size={} device=0 page=2m'.format(2 * MIB),
              'map r1+0 size={} handle=h1'.format(2 * MIB), 'unmap r1+0', 'release h1',
              'malloc a2 size=4096 device=host page=4k',
              'malloc a3 size={} device=0 page=2m'.format(2 * MIB)]
    figures = replay(lines, '--access', 'random', '--access-reads', '2000')['devices'][0]['access']
    assert figures['reads'] == 3 * 2000


@case
def what_the_page_table_leads_to_is_mapped():
    lines = mapped(2, '2m') + ['malloc a1 size={} device=0 page=2m'.format(64 * MIB),
                               'mfree a1']
    assert replay(lines)['devices'][0]['mapped_bytes_at_peak'] == 2 * GIB + 64 * MIB
    lines = mapped(1, '1g') + ['malloc a1 size=8192 device=0 page=4k']
    assert replay(lines)['devices'][0]['mapped_bytes_at_peak'] == GIB + 8192


@case
def giant_pages_give_more_bandwidth_where_walks_cost():
    rates = {page: (lambda f: f['bytes'] / f['time_ns'])(touched(mapped(16, page), 'random', 50000))
             for page in ('2m', '1g')}
    print('# {2m:.1f} GB/s with 2 MiB pages, {1g:.1f} with 1 GiB'.format(**rates))
    assert rates['1g'] > 1.3 * rates['2m']


@case
def wrong_accesses_say_what_is_right(folder):
    wrong = [
        (['--access', 'hot:0/10'], 'hot:T/M'), (['--access', 'hot:90'], 'hot:T/M'),
        (['--access', 'hot:90/101'], '1 to 100'), (['--access', 'cold'], 'hot and hot:T/M'),
        (['--access-every', '5'], '--access-every needs --access'),
        (['--access', 'random', '--access-reads', '0'], '--access-reads=0: a whole number from 1'),
        (['--access', 'seq', '--access-every', 'x'], '--access-every=x: a whole number from 1'),
    ]
    path = write_trace(folder / 'calls.npt')
    for options, words in wrong:
        done = run(path, *options)
        assert done.returncode == 2 and words in done.stderr, (options, done.stderr)


# ---- copies --------------------------------------------------------------------------------------

COPIES = ['device id=0 op=set', 'reserve r1 size={} flags=1'.format(4 * GIB),
          'create h1 size={} device=0 page=2m'.format(GIB),
          'map r1+0 size={} handle=h1'.format(GIB),
          'malloc a1 size={} device=0 page=2m'.format(GIB),
          'malloc a2 size={} device=host page=4k'.format(2 * MIB),
          'copy size={} dst=r1+0 src=host'.format(GIB),
          'copy size={} dst=a1+0 src=r1+0'.format(GIB),
          'copy size={} dst=host src=a1+4096'.format(GIB // 2),
          'copy size={} dst=a2+0 src=r1+{}'.format(2 * MIB, 2 * MIB),
          'fill size={} dst=r1+0'.format(GIB)]


@case
def copies_are_made_again_and_take_no_memory(folder):
    path = write_trace(folder / 'calls.npt', *COPIES)
    run, mib = measured('replay', path)
    assert run.returncode == 0, run.stderr
    copies = replay(COPIES)['devices'][0]['copies']
    bytes_of = {name: figures['bytes'] for name, figures in copies.items()}
    assert bytes_of == {'host_to_device': GIB, 'device_to_device': GIB, 'fill': GIB,
                        'device_to_host': GIB // 2 + 2 * MIB}, bytes_of
    assert all(figures['refused'] == 0 for figures in copies.values())
    # the host's link is far slower than the device's memory
    rates = {name: figures['bytes'] / figures['time_ns'] for name, figures in copies.items()}
    assert rates['device_to_device'] > 5 * rates['host_to_device'] > 0, rates
    if os.environ.get('ASAN_OPTIONS') is None and os.environ.get('TSAN_OPTIONS') is None:
        assert mib < 256, mib


@case
def copies_can_be_left_out():
    whole, without = replay(COPIES), replay(COPIES, '--no-copies')
    assert 'copies' not in without['devices'][0]
    spent = sum(f['time_ns'] for f in whole['devices'][0]['copies'].values())
    assert abs(whole['simulated_ns'] - without['simulated_ns'] - spent) <= 10


@case
def copies_between_devices_are_made():
    lines = ['device id={} op=set'.format(d) for d in (0, 1)]
    lines += ['malloc a{} size={} device={} page=2m'.format(d + 1, 64 * MIB, d) for d in (0, 1)]
    lines += ['copy size={} dst=a2+0 src=a1+0'.format(64 * MIB)]
    devices = replay(lines, '--devices', '2')['devices']
    assert 'copies' not in devices[0]
    figures = devices[1]['copies']['device_to_device']
    assert figures['calls'] == 1 and figures['bytes'] == 64 * MIB and figures['time_ns'] > 0


@case
def a_copy_of_what_is_not_there_is_left_out():
    result = replay(COPIES[:6] + ['copy size=1 dst=a9+0 src=host', 'fill size=1 dst=r1+{}'.format(
        2 * GIB)])
    assert result['devices'][0]['calls_left_out'] == 2


PROGRAM = """
import ctypes, sys
acl = ctypes.CDLL('libascendcl.so')
p, size, buffer = ctypes.c_void_p(), ctypes.c_size_t(4096), ctypes.create_string_buffer(4096)
codes = [acl.aclInit(None), acl.aclrtSetDevice(0),
         acl.aclrtMalloc(ctypes.byref(p), size, 0),
         acl.aclrtMemset(p, size, 0x5a, size),
         acl.aclrtMemcpy(buffer, size, p, size, 2)]
print(codes, buffer.raw[0], buffer.raw[4095])
"""


@case
def contents_stay_where_they_are_not_wanted():
    if os.environ.get('ASAN_OPTIONS') or os.environ.get('TSAN_OPTIONS'):
        raise Skip('a sanitizer wants to be loaded first')
    got = {}
    for contents in ('on', 'off'):
        environment = dict(os.environ, NPUSIM_CONTENTS=contents)
        done = subprocess.run([NPUSIM, 'run', '--', sys.executable, '-c', PROGRAM],
                              capture_output=True, text=True, env=environment)
        got[contents] = done.stdout.strip() or done.stderr
    assert got == {'on': '[0, 0, 0, 0, 0] 90 90', 'off': '[0, 0, 0, 0, 0] 0 0'}, got


# ---- processes -----------------------------------------------------------------------------------

@case
def names_are_of_their_process():
    def each(process, mib):
        return [':{}.1 {}'.format(process, line) for line in (
            'device id=0 op=set', 'reserve r1 size={} flags=1'.format(GIB),
            'create h1 size={} device=0 page=2m'.format(mib * MIB),
            'map r1+0 size={} handle=h1'.format(mib * MIB),
            'malloc a1 size={} device=0 page=2m'.format(2 * mib * MIB))]

    lines = [line for pair in zip(each(1, 20), each(2, 40)) for line in pair]
    result = replay(lines + [':1.1 unmap r1+0', ':1.1 release h1', ':2.1 mfree a1'])
    device = result['devices'][0]
    physical = [at // MIB for at in device['series']['physical_bytes']]
    assert device['calls_left_out'] == 0
    assert physical == [0, 0, 0, 0, 20, 60, 60, 60, 100, 180, 180, 160, 80], physical


@case
def a_reset_takes_back_what_its_process_has():
    lines = []
    for process in (1, 2):
        lines += [':{}.1 {}'.format(process, line) for line in (
            'device id=0 op=set', 'device id=0 op=set', 'reserve r1 size={} flags=1'.format(GIB),
            'create h1 size={} device=0 page=2m'.format(20 * MIB),
            'map r1+0 size={} handle=h1'.format(20 * MIB),
            'malloc a1 size={} device=0 page=2m'.format(10 * MIB))]
    lines += [':2.1 device id=0 op=reset', ':2.1 device id=0 op=reset', ':1.1 unmap r1+0']
    device = replay(lines)['devices'][0]
    physical = [at // MIB for at in device['series']['physical_bytes']]
    assert physical[-4:] == [60, 60, 30, 30], physical


# ---- a real card ---------------------------------------------------------------------------------

def real_rows():
    with real('msmemscope/memscope_dump_20250428113810.csv').open() as file:
        rows = [row for row in csv.DictReader(file)
                if (row['Event'], row['Event Type'], row['Device Id']) == ('MALLOC', 'HAL', '0')]
    # one program's calls; the file has them under two processes, one of which began earlier
    early = [row for row in rows if row['Process Id'] == '2523740' and int(row['ID']) <= 16]
    return early + [row for row in rows if row['Process Id'] == '2523738' and int(row['ID']) > 16]


def addresses_of(sizes, folder):
    out = folder / 'out.npt'
    path = write_trace(folder / 'in.npt',
                 *('malloc a{} size={} device=0 page=2m'.format(i + 1, size)
                   for i, size in enumerate(sizes)))
    done = run(path, '--trace', out)
    assert done.returncode == 0, done.stderr
    return [int(at, 16) for at in re.findall(r' malloc a\d+ .*va=0x([0-9a-f]+)', out.read_text())]


@case
def addresses_are_those_of_a_real_card(folder):
    rows = real_rows()
    sizes = [int(re.search(r'size:(\d+)', row['Attr']).group(1)) for row in rows]
    card = [int(row['Ptr']) for row in rows]
    # until CANN's own parts, which have heaps of their own, get memory
    assert addresses_of(sizes[:5], folder) == card[:5]
    # programs' 2 MiB pages: one heap, all the way
    heap = [(at, size) for at, size in zip(card, sizes) if at >> 30 == 0x12c040000000 >> 30]
    assert len(heap) == 8
    got = addresses_of([16384] + [size for _, size in heap], folder)[1:]
    assert got == [at for at, _ in heap], [hex(at) for at in got]
    # 4 KiB pages, until the file lacks a row: it frees an address that it never got
    heap = [(at, size) for at, size in zip(card, sizes) if at >> 30 == 0x12c180000000 >> 30]
    got = addresses_of([size for _, size in heap], folder)
    steps = [at - got[0] for at in got], [at - heap[0][0] for at, _ in heap]
    assert steps[0][:8] == steps[1][:8] and len(heap) == 9


main()
