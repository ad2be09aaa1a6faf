#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npusim convert from outside: a converted file replays as its source does, a Chrome trace is one,
# and what fails leaves nothing behind.
# usage: convert-test.py NPUSIM SAMPLE-TRACE DATA

import csv
import gzip
import io
import json
import pathlib
import resource
import subprocess
import sys

from command import (BASE, DATA, MIB, Device, Skip, case, environment, expect, main, npusim,
                     random_device, replay, same, snapshot, write)

SAMPLE = pathlib.Path(sys.argv[2])


def convert(*args):
    run = npusim('convert', *args)
    same((run.returncode, run.stderr), (0, ''), args)
    return run.stdout


def figures(result):
    """A result without what tells of the file and of this computer."""
    devices = [{name: value for name, value in device.items() if name != 'first_contradiction'}
               for device in result['devices']]
    return {name: value for name, value in result.items()
            if name not in ('file', 'kind', 'about', 'wall_us')} | {'devices': devices}


def has_the_figures_of_its_source(source, folder, *more):
    trace = folder / 'converted.npt.gz'
    convert(source, trace)
    for args in [(), *more]:
        same(figures(replay(trace, *args)), figures(replay(source, *args)), (source, args))
    return trace


def replays_as_its_source(source, folder, *more):
    run = npusim('diff', source, has_the_figures_of_its_source(source, folder, *more))
    same(run.returncode, 0, run.stdout + run.stderr)


POLICIES = [('--policy', 'native'), ('--policy', 'caching'), ('--policy', 'expandable'),
            ('--policy', 'caching', '--access', 'random'), ('--access', 'seq')]


@case
def snapshots_replay_as_before(folder):
    for seed in range(3):
        devices = {0: random_device(seed), 2: random_device(seed + 50)}
        replays_as_its_source(write(folder / 's.pkl', snapshot(devices)), folder, *POLICIES)


@case
def what_has_no_memory_is_counted_by_its_name(folder):
    device = random_device(3)
    device.event('snapshot', 0, 0)
    device.events.append(dict(action='oom', device_free=7 * MIB, size=9 * MIB, stream=-1,
                              frames=[], time_us=10**9))
    replays_as_its_source(write(folder / 'n.pkl', snapshot({0: device})), folder)
    events = replay(folder / 'converted.npt.gz')['devices'][0]['events']
    same((events['snapshot'], events['oom']), (1, 1), 'events')
    text = gzip.decompress((folder / 'converted.npt.gz').read_bytes()).decode()
    expect('oom size={} device=0'.format(9 * MIB) in text and 'free={}'.format(7 * MIB) in text)


@case
def call_sites_are_kept(folder):
    device = Device()
    device.segment_alloc(BASE, 20 * MIB)
    for index in range(4):
        device.alloc(BASE + index * MIB, 4096 + index)
        device.events[-1]['frames'] = [
            dict(filename='/src/model %d.py' % (index % 2), line=7 + index % 2, name='forward')]
    replays_as_its_source(write(folder / 'c.pkl', snapshot({0: device})), folder)
    lines = [line for line in gzip.decompress((folder / 'converted.npt.gz').read_bytes())
             .decode().splitlines() if ' alloc b' in line]
    same([line.rpartition('site=')[2][:1] for line in lines], ['f', 'f', '1', '2'], 'sites')


def stacked(path, names):
    """A block for each name, whose stack has C++ outside and inside of torch's and our Python."""
    device = Device()
    device.segment_alloc(BASE, 20 * MIB)
    for index, name in enumerate(names):
        device.alloc(BASE + index * MIB, 4096 + index)
        device.events[-1]['frames'] = [
            dict(name=function, filename=file, line=line) for function, file, line in [
                ('torch::unwind::unwind()', '??', 0),
                ('c10::cuda::alloc', 'CUDACachingAllocator.cpp', 0),
                ('cfunction_call', '/src/conda/python-3.12.3/Objects/methodobject.c', 537),
                *[('f%d' % depth, '/env/site-packages/torch/nn/functional.py', depth)
                  for depth in range(40)],
                (name, '/src/me/train.py', 7),
                ('_PyEval_Vector', '/src/conda/python-3.12.3/Python/ceval.c', 1)]]
    return write(path, snapshot({0: device}))


def tops(path, *args):
    holders = replay(path, *args)['devices'][0]['moments'][0]['holders']
    return [(holder['site'], len(holder['frames'])) for holder in holders]


@case
def whole_stacks_and_their_lines_survive(folder):
    path = stacked(folder / 's.pkl', ['step', 'step', 'grow'])
    same(tops(path), [('step (/src/me/train.py:7)', 45), ('grow (/src/me/train.py:7)', 45)], 'by')
    replays_as_its_source(path, folder)
    convert(path, folder / 'a.npt')
    same(tops(folder / 'a.npt'), tops(path), 'converted')
    rule = ('--site-rule', 'cfunction')
    (top, depth), = tops(path, *rule)
    expect(top.startswith('cfunction_call ') and depth == 45, top, depth)
    convert(path, folder / 'b.npt', *rule)
    same((folder / 'b.npt').read_bytes(), (folder / 'a.npt').read_bytes(), 'a rule changes no file')
    report = npusim('report', path, *rule, '--json', '-')
    same(json.loads(report.stdout)[0]['devices'][0]['moments'][0]['holders'][0]['site'],
         top, 'report')
    for verb in (['replay', path], ['convert', path, '-', '--to', 'csv'], ['diff', path, path]):
        run = npusim(*verb, '--site-rule', '(')
        same(run.returncode, 2, verb)
        expect('--site-rule=(: a regular expression is wanted' in run.stderr, run.stderr)


@case
def text_dumps_replay_as_before(folder):
    log = folder / 'mem_log_dev1.txt'
    log.write_text('1 4096 512 0\n1 8192 1024 7\n0 4096 512 0\n0 65536 256 0\n')
    replays_as_its_source(log, folder, ('--policy', 'caching'))


@case
def real_files_replay_as_before(folder):
    files = sorted(DATA.glob('torch_*/*.pkl*')) + sorted(DATA.glob('msmemscope/*.*'))
    if not files:
        raise Skip('there is no ' + str(DATA))
    for path in files:
        # long ones are alike: a policy hands out the blocks of the short ones
        few = path.suffix != '.db' and not path.name.startswith('serve')
        more = [('--policy', 'caching')] if few else []
        has_the_figures_of_its_source(path, folder, *more)


@case
def a_trace_is_copied_line_by_line(folder):
    convert(SAMPLE, folder / 'a.npt')
    same((folder / 'a.npt').read_bytes(), gzip.decompress(SAMPLE.read_bytes()), 'lines')
    (folder / 'b.npt').write_text('npusim-trace 1\n# a word\n@5 :1.1 reserve r1 size=4096\n'
                                  'frobnicate x\n@9 :1.1 crea')
    same(convert('--to', 'trace', folder / 'b.npt', '-'),
         'npusim-trace 1\n# a word\n@5 :1.1 reserve r1 size=4096\nfrobnicate x\n', 'broken off')


@case
def one_device_is_taken_out(folder):
    devices = {0: random_device(8), 1: random_device(9)}
    path = write(folder / 'd.pkl', snapshot(devices))
    convert('--device', 1, path, folder / 'd.npt')
    got, = replay(folder / 'd.npt')['devices']
    devices[1].check(got)
    (folder / 'e.npt').write_text(
        'npusim-trace 1\nreserve r1 size=4194304\ncreate h1 size=2097152 device=0\n'
        'create h2 size=2097152 device=1\nmap r1+0 size=2097152 handle=h1\n'
        'map r1+2097152 size=2097152 handle=h2\nunmap r1+0\nunmap r1+2097152\n'
        'release h1\nrelease h2\nunreserve r1\n')
    same(convert('--device', 1, '--to', 'trace', folder / 'e.npt', '-').splitlines()[1:],
         ['reserve r1 size=4194304', 'create h2 size=2097152 device=1',
          'map r1+2097152 size=2097152 handle=h2', 'unmap r1+2097152', 'release h2',
          'unreserve r1'], 'lines')
    run = npusim('convert', '--device', 3, path, folder / 'x.npt')
    same(run.returncode, 1, 'status')
    expect('device 3' in run.stderr and '0, 1' in run.stderr, run.stderr)


# ---- Chrome ----

def chrome(path, folder):
    convert(path, folder / 'c.json')
    trace = json.loads((folder / 'c.json').read_text())
    events, last = trace['traceEvents'], {}
    named = {event['pid'] for event in events if event['ph'] == 'M'}
    for event in events:
        expect(event['ph'] in ('M', 'X', 'C', 'i', 'b', 'e', 's', 't', 'f'), event)
        expect(event['pid'] in named, 'a process without a name', event)
        if event['ph'] == 'M':
            expect(event['name'] in ('process_name', 'thread_name') and event['args']['name'])
            continue
        track = (event['pid'], event['tid'], event['ph'],
                 event['name'] if event['ph'] == 'C' else '')
        expect(event['ts'] >= last.get(track, 0), 'out of order', event)
        last[track] = event['ts']
        if event['ph'] == 'X':
            expect(event['dur'] >= 0, event)
            last[track] = event['ts'] + event['dur'] - 0.001
    check_flows(events)
    return trace, events


def check_flows(events):
    """Each begins once, and each step of it is where a slice of its thread begins."""
    slices = {(e['pid'], e['tid'], e['ts']) for e in events if e['ph'] == 'X'}
    begun = set()
    for event in events:
        if event['ph'] in 'stf':
            expect((event['pid'], event['tid'], event['ts']) in slices, 'in no slice', event)
            expect((event['ph'] == 's') != (event['id'] in begun), event)
            begun.add(event['id'])


def lives(events, category):
    """[name, begin, end or None, args] of the slices of blocks or segments."""
    out, open_ = [], {}
    for event in events:
        if event['ph'] not in 'be' or event['cat'] != category:
            continue
        key = (event['pid'], event['id2']['local'])
        expect((event['ph'] == 'b') != (key in open_), event)
        if event['ph'] == 'b':
            open_[key] = [event['name'], event['ts'], None, event['args']]
            out.append(open_[key])
        else:
            life = open_.pop(key)
            expect(event['ts'] >= life[1], event)
            life[2] = event['ts']
    return out


def peak(events, name):
    return max(event['args']['bytes'] for event in events
               if event['ph'] == 'C' and event['name'] == name)


@case
def a_trace_of_calls_is_a_chrome_trace(folder):
    trace, events = chrome(SAMPLE, folder)
    result = replay(SAMPLE)['devices'][0]
    same(trace['otherData']['time'], 'host', 'time')
    text = gzip.decompress(SAMPLE.read_bytes()).decode()
    same(sum(event['ph'] == 'X' and event['name'] == 'create' for event in events),
         text.count(' create h'), 'slices')
    same(peak(events, 'physical'), result['peak_physical_bytes'], 'physical')
    same(peak(events, 'live'), result['peak_live_bytes'], 'live')
    expect(any(event['ph'] == 'X' and event['dur'] > 0 for event in events), 'no length')
    made = {e['id'] for e in events if e['ph'] == 's'}
    expect(len(made) > 10 and any(e['ph'] == 'f' for e in events), len(made), 'flows')
    expect(len({e['id'] for e in events if e['ph'] == 't'} & made) > 5, 'uses')


@case
def a_snapshot_is_a_chrome_trace(folder):
    device = random_device(5)
    device.events.append(dict(action='oom', device_free=1, size=2, stream=0, frames=[],
                              time_us=10**9))
    trace, events = chrome(write(folder / 's.pkl', snapshot({1: device})), folder)
    same(peak(events, 'live'), device.peak_live, 'live')
    same(peak(events, 'physical'), device.peak_physical, 'physical')
    expect('oom: out of memory' in [e['name'] for e in events if e['ph'] == 'i'], 'oom')
    same([e for e in events if e['ph'] == 'X'], [], 'no slice without a length')


@case
def the_time_is_told_by_what_has_one(folder):
    """It counts from a microsecond before the first event that has one; those before have 0."""
    device = Device()
    for n in range(4):
        device.segment_alloc(BASE + n * 64 * MIB, 2 * MIB)
    for event, time in zip(device.events, (None, 1718344343000500, 1718344343000800, None)):
        event.update(time_us=time) if time else event.pop('time_us')
    path = folder / 's.pkl'
    trace, events = chrome(write(path, snapshot({0: device})), folder)
    begins = [e['ts'] for e in events if e['ph'] == 'b']
    same((trace['otherData']['time'], begins), ('host', [0, 1, 301, 301]), 'snapshot')
    for stamps, clock in ((('', '@5000 ~1000 ', '~9000000 '), 'host'),
                          (('', '~5000000 ', ''), 'simulated'),
                          (('', '', ''), 'a microsecond an event')):
        path = folder / 't.npt'
        path.write_text('npusim-trace 1\n' + ''.join(
            stamp + 'alloc b%d size=512 device=0\n' % n
            for n, stamp in enumerate(stamps)))
        trace, events = chrome(path, folder)
        begins = [e['ts'] for e in events if e['ph'] == 'b']
        same((trace['otherData']['time'], begins),
             (clock, [1, 2, 3] if clock.startswith('a ') else [0, 5, 5]), stamps)


@case
def blocks_are_slices_with_their_call_sites(folder):
    device = Device()
    device.segment_alloc(BASE, 20 * MIB)
    device.start()
    device.alloc(BASE, 512)
    device.events[-1]['frames'] = [dict(name='f', filename='/x/site-packages/torch/a.py', line=1),
                                   dict(name='step', filename='/src/a.py', line=3)]
    device.alloc(BASE + 512, 512)
    device.free(BASE)
    device.segment_alloc(BASE + 64 * MIB, 2 * MIB)
    device.segment_free(BASE + 64 * MIB)
    _, events = chrome(write(folder / 's.pkl', snapshot({0: device})), folder)
    first, second = lives(events, 'block')
    # events are a microsecond apart, the first at 0; a free has two
    same((first[0], first[2] - first[1]), ('step (/src/a.py:3)', 3), 'a block')
    same((first[3]['site'], first[3]['stack'][0], len(first[3]['stack'])),
         ('step (/src/a.py:3)', 'f (/x/site-packages/torch/a.py:1)', 2), 'site')
    same((second[0], second[2]), ('block', None), 'never freed')
    before, after = lives(events, 'segment')
    same((before[1], before[2], before[3]['size']), (0, None, 20 * MIB), 'before the window')
    same(after[2] - after[1], 1, 'a segment')


@case
def refusals_and_threads_are_shown(folder):
    path = folder / 'r.npt'
    path.write_text('npusim-trace 1\n~1000000 :1.1 create h1 size=5 device=0 => 207001\n'
                    '~1000000 :2.7 call op=a"b\\c%0Ad\n~3000000 :1.1 reserve r1 size=4096\n')
    trace, events = chrome(path, folder)
    same(trace['otherData']['time'], 'simulated', 'time')
    same([(e['pid'], e['tid'], e['name']) for e in events if e['ph'] == 'i'],
         [(1, 1, 'create refused')], 'instants')
    same({(e['pid'], e['tid'], e['name'], e['ts'], e['dur']) for e in events if e['ph'] == 'X'},
         {(1, 1, 'create', 1.0, 2.0), (1, 1, 'reserve', 3.0, 1.0),
          (2, 7, 'a"b\\c\nd', 1.0, 1.0)}, 'slices')


@case
def calls_are_as_long_as_they_took(folder):
    path = folder / 't.npt'
    path.write_text('npusim-trace 1\n@1000 +5000 :1.1 reserve r1 size=4096\n'
                    '@9000 +700 :1.1 reserve r2 size=4096\n'
                    '@20000 :1.1 reserve r3 size=4096\n'
                    '@30000 +90000 :1.1 reserve r4 size=4096\n')
    _, events = chrome(path, folder)
    same([(e['ts'], e['dur']) for e in events if e['ph'] == 'X'],
         [(1.0, 5.0), (9.0, 0.7), (20.0, 1.0), (30.0, 90.0)], 'slices')


# ---- CSV ----

@case
def a_trace_is_rows(folder):
    device = random_device(6)
    path = write(folder / 's.pkl', snapshot({0: device}))
    rows = list(csv.DictReader(io.StringIO(convert('--to', 'csv', path, '-'))))
    events = [row for row in rows if row['event'] != '0']
    same([row['verb'] for row in events],
         [event['action'].replace('free_completed', 'free') for event in device.events], 'verbs')
    same([int(row['size']) for row in events], [event['size'] for event in device.events], 'size')
    same(max(int(row['live_bytes']) for row in rows), device.peak_live, 'live')
    same(int(rows[-1]['physical_bytes']), device.physical, 'physical')


@case
def a_result_is_rows(folder):
    path = folder / 'r.json'
    path.write_text(json.dumps(replay(SAMPLE)))
    device, = json.loads(path.read_text())['devices']
    row, = csv.DictReader(io.StringIO(convert('--to', 'csv', path, '-')))
    same(int(row['peak_physical_bytes']), device['peak_physical_bytes'], 'figure')
    convert('--series', path, folder / 's.csv.gz')
    rows = list(csv.DictReader(gzip.open(folder / 's.csv.gz', 'rt')))
    same([int(row['live_bytes']) for row in rows], device['series']['live_bytes'], 'series')


# ---- what fails ----

@case
def a_file_that_cannot_be_written_leaves_what_was_there(folder):
    run = npusim('convert', '--to', 'csv', SAMPLE, '/dev/full')
    same(run.returncode, 1, 'status')
    expect('/dev/full' in run.stderr and 'No space' in run.stderr, run.stderr)
    (folder / 'bad.npt').write_text('npusim-trace 1\ncreate h1 size=1 device=0\ncreate\n')
    target = folder / 'kept.csv'
    target.write_text('before')
    run = npusim('convert', folder / 'bad.npt', target)
    same(run.returncode, 1, 'status')
    expect('line 3' in run.stderr, run.stderr)
    same(target.read_text(), 'before', 'what was there')
    run = npusim('convert', SAMPLE, folder / 'missing' / 'x.json')
    same(run.returncode, 1, 'status')
    expect('missing' in run.stderr and 'No such file' in run.stderr, run.stderr)
    convert(SAMPLE, target)
    expect(target.read_text().startswith('event,'), 'not replaced')
    same(sorted(path.name for path in folder.iterdir()), ['bad.npt', 'kept.csv'], 'files')
    (folder / 'link.csv').symlink_to('kept.csv')
    target.write_text('before')
    convert(SAMPLE, folder / 'link.csv')
    expect((folder / 'link.csv').is_symlink() and target.read_text().startswith('event,'), 'link')


def piped(file, *args):
    """What the command makes of a file that comes through a pipe."""
    with subprocess.Popen(['cat', file], stdout=subprocess.PIPE) as cat:
        run = npusim(*args, stdin=cat.stdout)
    same((run.returncode, run.stderr), (0, ''), args)
    return run.stdout


@case
def what_comes_through_a_pipe_is_read_as_a_file_is(folder):
    result, target = folder / 'r.json', folder / 'x.csv'
    result.write_text(json.dumps(replay(SAMPLE)))
    convert(SAMPLE, target)
    for name in ('-', '/dev/stdin'):
        same(piped(SAMPLE, 'convert', name, '-', '--to', 'csv'), target.read_text(), name)
        expect('no difference' in piped(SAMPLE, 'diff', SAMPLE, name), name)
        expect('no difference' in piped(result, 'diff', name, result), name)
        expect('5091 events' in piped(SAMPLE, 'replay', name), name)
        expect('<html' in piped(result, 'report', name, '-o', '-'), name)


@case
def what_comes_once_may_be_given_twice(folder):
    for name in ('-', '/dev/stdin'):
        expect('no difference' in piped(SAMPLE, 'diff', name, name), name)


def with_small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))


@case
def a_device_that_never_ends_is_not_kept(folder):
    for args in (['convert', '/dev/zero', folder / 'x.npt'], ['replay', '/dev/zero']):
        run = npusim(*args, env=environment(TMPDIR=str(folder)), preexec_fn=with_small_files)
        same((run.returncode, run.stdout), (1, ''), args)
        expect('/dev/zero' in run.stderr, run.stderr)


@case
def wrong_usage_says_what_there_is(folder):
    (folder / 'r.json').write_text(json.dumps(replay(SAMPLE)))
    for args, status, *says in [
            ([SAMPLE], 2, 'it takes A B'),
            ([SAMPLE, 'x.foo'], 2, 'x.foo', '.npt', '.json', '.csv', '--to'),
            ([SAMPLE, '-'], 2, '--to'),
            (['--to', 'svg', SAMPLE, 'x'], 2, '--to=svg', 'trace, chrome, csv'),
            (['--device', -5, SAMPLE, 'x.csv'], 2, '--device=-5'),
            ([folder / 'r.json', folder / 'x.npt'], 1, 'CSV', 'a trace of npusim'),
            (['--series', SAMPLE, folder / 'x.csv'], 1, '--series'),
            (['--device', 7, folder / 'r.json', folder / 'x.csv'], 1, 'nothing of device 7'),
            ([folder / 'no', folder / 'x.csv'], 1, 'no')]:
        run = npusim('convert', *args)
        same((run.returncode, run.stdout), (status, ''), args)
        for text in says:
            expect(text in run.stderr, text, 'is not in', run.stderr)


if __name__ == '__main__':
    main()
