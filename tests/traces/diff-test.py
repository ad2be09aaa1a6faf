#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npusim diff from outside: traces and results whose differences are known.
# usage: diff-test.py NPUSIM SAMPLE-TRACE MAN-FOLDER

import copy
import json
import pathlib
import re
import subprocess
import sys

from command import (BASE, MIB, NPUSIM, Device, case, environment, expect, main, npusim,
                     random_device, replay, same, snapshot, write, write_trace)

SAMPLE, MAN = sys.argv[2], pathlib.Path(sys.argv[3])


def diff(a, b, *args):
    """The JSON of a comparison that works; its status tells the same."""
    run = npusim('diff', a, b, '--json', '-', *args)
    expect(run.returncode in (0, 1) and run.stderr == '', run.returncode, run.stderr)
    result = json.loads(run.stdout)
    same(run.returncode, 0 if result['equal'] else 1, 'status')
    text = npusim('diff', a, b, *args)
    same(text.returncode, run.returncode, 'status of the text')
    same(text.stdout.startswith('no difference'), result['equal'], text.stdout)
    return result


def figures(result):
    return {(figure['group'], figure['name']): (figure['a'], figure['b'])
            for figure in result['figures']}


def counts(result):
    return [result['alignment'][name] for name in ('same', 'changed', 'removed', 'added', 'places')]


@case
def a_file_is_equal_to_itself(folder):
    path = write(folder / 'a.pkl', snapshot({0: random_device(1), 3: random_device(2)}))
    for file in (path, SAMPLE):
        result = diff(file, file)
        same((result['equal'], result['figures'], result['hunks']), (True, [], []), file)


def shifted(device, by):
    out = copy.deepcopy(device)
    for event in out.events:
        event['addr'] += by
    out.blocks = {at + by: size for at, size in out.blocks.items()}
    out.segments = {at + by: size for at, size in out.segments.items()}
    out.mapped = {at + by: pool for at, pool in out.mapped.items()}
    return out


@case
def addresses_are_not_compared(folder):
    device = random_device(4)
    a = write(folder / 'a.pkl', snapshot({0: device}))
    b = write(folder / 'b.pkl', snapshot({0: shifted(device, 74 * MIB)}))
    expect(diff(a, b)['equal'], npusim('diff', a, b).stdout)
    lines = ['create h1 size=2097152 device=0', 'alloc b1 size=5 device=0', 'free b1 device=0']
    renamed = [line.replace('h1', 'h70').replace('b1', 'b12') for line in lines]
    expect(diff(write_trace(folder / 'a.npt', *lines),
                write_trace(folder / 'b.npt', *renamed))['equal'])


@case
def an_event_more_is_found_where_it_is(folder):
    lines = ['alloc b{} size={} device=0'.format(i, 512 * (i % 37 + 1)) for i in range(300)]
    lines += ['free b{} device=0'.format(i) for i in range(300)]
    more = lines[:100] + ['alloc b900 size=777 device=0'] + lines[100:]
    result = diff(write_trace(folder / 'a.npt', *lines), write_trace(folder / 'b.npt', *more))
    same(counts(result), [600, 0, 0, 1, 1], 'alignment')
    hunk, = result['hunks']
    same((hunk['a_start'], hunk['a_count'], hunk['b_start'], hunk['b_count']), (98, 6, 98, 7),
         'place')
    same([line[0] for line in hunk['lines']], list('   +   '), 'lines')
    expect('size=777' in hunk['lines'][3], hunk['lines'])
    same(result['sizes'], [dict(device=0, verb='alloc', size=777, a=0, b=1)], 'sizes')
    same(figures(result)['device 0', 'live, at the end'], (0, 777), 'live')
    back = diff(folder / 'b.npt', folder / 'a.npt')
    same(counts(back), [600, 0, 1, 0, 1], 'the other way')


@case
def another_size_is_a_change_and_its_free_is_none(folder):
    lines = ['alloc b{} size={} device=0'.format(i, 4096 + i) for i in range(20)]
    lines += ['free b{} device=0'.format(i) for i in range(20)]
    changed = [line.replace('size=4103', 'size=9000') for line in lines]
    result = diff(write_trace(folder / 'a.npt', *lines), write_trace(folder / 'b.npt', *changed))
    same(counts(result), [39, 1, 0, 0, 1], 'alignment')


@case
def the_same_frees_in_another_order_are_seen(folder):
    lines = ['alloc b1 size=512 device=0', 'alloc b2 size=512 device=0', 'alloc b3 size=8 device=0',
             'free b1 device=0', 'alloc b4 size=16 device=0', 'free b2 device=0']
    swapped = lines[:3] + ['free b2 device=0', lines[4], 'free b1 device=0']
    result = diff(write_trace(folder / 'a.npt', *lines), write_trace(folder / 'b.npt', *swapped))
    same(counts(result), [4, 2, 0, 0, 1], 'alignment')
    same(result['figures'], [], 'figures')


@case
def a_call_refused_in_one_alone_is_told(folder):
    lines = ['create h{} size=2097152 device=0'.format(i) for i in range(1, 9)]
    refused = lines[:5] + [lines[5] + ' => 207001'] + lines[6:]
    result = diff(write_trace(folder / 'a.npt', *lines), write_trace(folder / 'b.npt', *refused))
    refusal, = result['refusals']
    same((refusal['a_code'], refusal['b_code'], refusal['b_event']), (0, 207001, 6), 'refusal')
    same(figures(result)['device 0', 'create, refused'], (0, 1), 'count')
    same(figures(result)['device 0', 'physical, peak'], (16 * MIB, 14 * MIB), 'physical')


@case
def a_device_that_is_reset_takes_its_memory_back(folder):
    lines = [':1.1 device id=0 op=set', ':1.1 create h1 size=2097152 device=0',
             ':2.1 malloc a1 size=4194304 device=0 page=2m', ':1.1 device id=0 op=reset']
    result = diff(write_trace(folder / 'a.npt', *lines), write_trace(folder / 'b.npt', *lines[:3]))
    same(figures(result), {('device 0', 'physical, at the end'): (4 * MIB, 6 * MIB),
                           ('device 0', 'device_reset'): (1, 0)}, 'figures')


@case
def two_allocators_of_one_workload(folder):
    small, large = Device(), Device()
    small.segment_alloc(BASE, 20 * MIB)
    small.segment_alloc(BASE + (1 << 40), 20 * MIB)
    large.segment_alloc(BASE, 40 * MIB)
    for device, base in ((small, BASE), (large, BASE)):
        for index in range(50):
            device.alloc(base + index * 8192, 100 * index + 1)
        for index in range(50):
            device.free(base + index * 8192)
    result = diff(write(folder / 'a.pkl', snapshot({0: small})),
                  write(folder / 'b.pkl', snapshot({0: large})))
    got = figures(result)
    same(got['device 0', 'segment_alloc'], (2, 1), 'count')
    expect(('device 0', 'alloc') not in got and ('device 0', 'segments, peak') not in got, got)
    same([(s['size'], s['a'], s['b']) for s in result['sizes']],
         [(20 * MIB, 2, 0), (40 * MIB, 0, 1)], 'sizes')
    same(result['alignment']['same'], 150, 'alignment')


@case
def long_histories_with_nothing_in_common_end(folder):
    a = ['alloc b{} size={} device=0'.format(i, 2 * i + 1) for i in range(20000)]
    b = ['alloc b{} size={} device=0'.format(i, 2 * i + 2) for i in range(30000)]
    result = diff(write_trace(folder / 'a.npt', *a), write_trace(folder / 'b.npt', *b),
                  '--limit', 1)
    _, changed, removed, added, _ = counts(result)
    same((changed + removed, changed + added), (20000, 30000), 'alignment')
    hunk = result['hunks'][0]
    expect(len(hunk['lines']) < 100, 'a hunk without an end')
    same((hunk['a_count'], hunk['b_count']), (20000, 30000), 'its length')
    expect(hunk['lines'][-1].endswith(' more)'), hunk['lines'][-1])


@case
def the_head_and_the_kind(folder):
    a = write_trace(folder / 'a.npt', 'info soc=Ascend910B1 program=x', 'alloc b1 size=1 device=0')
    b = write_trace(folder / 'b.npt', 'info soc=Ascend910B4 program=x', 'alloc b1 size=1 device=0')
    c = write_trace(folder / 'c.npt', 'alloc b1 size=1 device=0')
    same(figures(diff(a, b)), {('', 'soc'): ('Ascend910B1', 'Ascend910B4')}, 'head')
    expect(diff(a, c)['equal'], 'a head that is not there')


# ---- results ----

def result_file(folder, name, result):
    path = folder / name
    path.write_text(json.dumps(result))
    return path


@case
def results_differ_by_their_figures(folder):
    one = replay(SAMPLE)
    other = copy.deepcopy(one)
    other['wall_us'] += 99999
    other['file'] = 'elsewhere'
    a, b = result_file(folder, 'a.json', one), result_file(folder, 'b.json', other)
    expect(diff(a, b)['equal'], 'what is no figure')
    device = other['devices'][0]
    device['peak_live_bytes'] *= 2
    device['vmm_calls'] += 1
    place = len(device['series']['live_bytes']) // 2
    device['series']['live_bytes'][place] += 12345
    device['out_of_memory'] = dict(line=7, bytes=99)
    result = diff(a, result_file(folder, 'b.json', other))
    same(sorted(name for group, name in figures(result)),
         ['out_of_memory.bytes', 'out_of_memory.line', 'peak_live_bytes',
          'series.live_bytes, furthest apart', 'vmm_calls'], 'figures')
    by_name = {figure['name']: figure for figure in result['figures']}
    same(by_name['peak_live_bytes']['percent'], 100, 'percent')
    same(by_name['vmm_calls']['change'], 1, 'change')
    same(by_name['out_of_memory.bytes']['a'], None, 'not there')
    series = by_name['series.live_bytes, furthest apart']
    same((series['change'], series['axis'], series['at']),
         (12345, 'event', device['series']['event'][place]), 'series')


@case
def devices_of_results_are_matched_by_their_number(folder):
    path = write(folder / 'a.pkl', snapshot({1: random_device(1), 2: random_device(2)}))
    one = replay(path)
    other = copy.deepcopy(one)
    other['devices'].reverse()
    a = result_file(folder, 'a.json', one)
    expect(diff(a, result_file(folder, 'b.json', other))['equal'], 'order')
    other['devices'].pop()
    same(figures(diff(a, result_file(folder, 'b.json', other))),
         {('device 1', 'device'): ('there', None)}, 'a device less')


# ---- what fails ----

@case
def trouble_is_status_2_and_says_what_is_wrong(folder):
    result = result_file(folder, 'r.json', replay(SAMPLE))
    junk = folder / 'junk'
    junk.write_bytes(b'\x00junk')
    bad = write_trace(folder / 'bad.npt', 'alloc b1 size=1 device=0', 'alloc')
    for args, *says in [
            (['a'], 'it takes A B'),
            (['a', 'b', 'c'], 'it takes A B', "'c'"),
            ([SAMPLE, SAMPLE, '--limit', '-1'], '--limit=-1', 'from 0 to'),
            ([result, SAMPLE], 'r.json', SAMPLE, 'a result', 'a trace'),
            ([SAMPLE, result], 'r.json', SAMPLE),
            ([SAMPLE, folder / 'none'], 'none'),
            ([junk, SAMPLE], 'junk', 'not a kind'),
            ([SAMPLE, bad], 'bad.npt', 'line 3'),
            ([SAMPLE, SAMPLE, '--json', folder / 'no' / 'x'], 'No such file')]:
        run = npusim('diff', *args)
        same(run.returncode, 2, args)
        for text in says:
            expect(text in run.stderr, text, 'is not in', run.stderr)
    for other in (SAMPLE, write_trace(folder / 'o.npt', 'alloc b1 size=1 device=0')):
        with open('/dev/full', 'w') as full:
            run = subprocess.run([NPUSIM, 'diff', SAMPLE, other], env=environment(), stdout=full,
                                 stderr=subprocess.PIPE, text=True, timeout=60)
        same(run.returncode, 2, 'status where the output cannot be written')
        expect('No space left' in run.stderr, run.stderr)


@case
def the_manual_names_every_member(folder):
    page = (MAN / 'npusim-diff.1').read_text()
    schema = page.partition('.Sh THE JSON')[2].partition('.Sh EXIT')[0]
    words = set(re.findall(r'\w+', schema))
    a = write_trace(folder / 'a.npt', 'create h1 size=2097152 device=0 => 207001')
    b = write_trace(folder / 'b.npt', 'create h1 size=4194304 device=0')
    one = replay(SAMPLE)
    other = copy.deepcopy(one)
    other['devices'][0]['series']['live_bytes'][3] += 5
    results = diff(result_file(folder, 'a.json', one), result_file(folder, 'b.json', other))

    def names(value):
        if isinstance(value, dict):
            return set(value).union(*map(names, value.values()))
        return set().union(*map(names, value)) if isinstance(value, list) else set()

    missing = (names(diff(a, b)) | names(results)) - words
    same(missing, set(), 'not in the page')


if __name__ == '__main__':
    main()
