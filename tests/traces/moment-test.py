#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What a result says of a moment, and of memory over time, against the same figures computed from
# the file by the definitions of npusim-replay(1) alone. Real files are others'; without them
# their cases are skipped.
# usage: moment-test.py NPUSIM SAMPLE-TRACE DATA

import gzip
import json
import pickle
import sys

from command import (BASE, MIB, Device, case, expect, main, npusim, random_device, real,
                     real_cases, replay, same, snapshot, write)

SAMPLE = sys.argv[2]
GIB = 1 << 30
POLICIES = ['as-recorded', 'native', 'caching', 'expandable']
LOST = ('internal_bytes', 'external_bytes', 'page_rounding_bytes')


def moment_of(device, name):
    found = [moment for moment in device['moments'] if moment['moment'] == name]
    same(len(found), 1, 'moments named ' + name)
    return found[0]


def holders_of(moment):
    return [(holder['site'], holder['bytes'], holder['blocks']) for holder in moment['holders']]


# ---- the definitions, once more ----

def up(size, to):
    return -(-size // to) * to


def pages(size):
    return up(size, 4096 if size <= MIB else 2 * MIB)


def label(frames):
    """The line that stands for a stack."""
    def text(frame):
        return '{name} ({filename}:{line})'.format(**frame)
    def kind(frame):
        name, file = frame['name'], frame['filename']
        package = file.rpartition('-packages/')[2].split('/')[0] if '-packages/' in file else None
        if file[:1] in ('', '?', '<'):
            return 5
        if file.endswith('.py'):
            if package or '/lib/python3' in file:
                return 3 if package in ('torch', 'torch_npu') else 1 if package else 4
            return 0
        plumbing = any(word in name + file for word in
                       ('c10', 'torch', 'at::', 'std::', 'python', 'CachingAllocator'))
        return 4 if plumbing else 2
    return text(min(frames, key=kind)) if frames else '(no call site in the file)'


class History:
    """A snapshot's device, event by event, from what was there when its window began."""

    def __init__(self, data, number):
        self.events = data['device_traces'][number]
        self.memory, self.blocks = {}, {}
        self.live = self.taken = self.asked = self.whole = 0
        for segment in data['segments']:
            if segment['device'] == number:
                self.read(segment)
        for event in reversed(self.events):
            self.undo(event)

    def read(self, segment):
        step = 2 * MIB if segment['is_expandable'] else segment['total_size']
        for at in range(segment['address'], segment['address'] + segment['total_size'], step):
            self.get(at, step)
        for block in segment['blocks']:
            if block['state'] != 'inactive':
                frames = block.get('frames')
                self.begin(block['address'], block['requested_size'],
                           label(frames) if frames else '(before the file begins)')

    def begin(self, address, size, site):
        self.end(address)
        self.blocks[address] = (size, site)
        self.live += size
        self.taken += up(size, 512)

    def end(self, address):
        size, _ = self.blocks.pop(address, (0, None))
        self.live -= size
        self.taken -= up(size, 512)

    def get(self, address, size):
        self.memory[address] = size
        self.asked += size
        self.whole += pages(size)

    def give(self, address):
        size = self.memory.pop(address, 0)
        self.asked -= size
        self.whole -= pages(size)

    def change(self, action, address, size, frames, before):
        if action == 'alloc':
            self.begin(address, size, before or label(frames))
        elif action == 'free_completed':
            self.end(address)
        elif action == 'segment_alloc':
            self.get(address, size)
        elif action == 'segment_free':
            self.give(address)
        elif action in ('segment_map', 'segment_unmap'):
            for at in range(address, address + size, 2 * MIB):
                if action == 'segment_map':
                    self.get(at, 2 * MIB)
                else:
                    self.give(at)

    UNDONE = {'alloc': 'free_completed', 'free_completed': 'alloc', 'segment_alloc': 'segment_free',
              'segment_free': 'segment_alloc', 'segment_map': 'segment_unmap',
              'segment_unmap': 'segment_map'}

    def undo(self, event):
        if event['action'] in self.UNDONE:
            self.change(self.UNDONE[event['action']], event['addr'], event['size'], [],
                        '(before the file begins)')

    def states(self):
        """Goes through the events; the number of each, 0 for the start."""
        yield 0
        for number, event in enumerate(self.events, 1):
            if event['action'] in self.UNDONE:
                self.change(event['action'], event['addr'], event['size'],
                            event.get('frames', []), None)
            yield number

    def sums(self):
        rounding = self.whole - self.asked
        return dict(live_bytes=self.live, physical_bytes=self.whole, page_rounding_bytes=rounding,
                    internal_bytes=self.taken - self.live,
                    external_bytes=self.whole - rounding - self.taken)

    def holders(self):
        sums = {}
        for size, site in self.blocks.values():
            bytes_, blocks = sums.get(site, (0, 0))
            sums[site] = (bytes_ + size, blocks + 1)
        return sums


def check_series(device, history):
    """Each point of the series has the sums of its event; the peak is the first event of most."""
    series = device['series']
    at = {event: i for i, event in enumerate(series['event'])}
    best, peak = None, None
    for number in history.states():
        sums = history.sums()
        for key, value in sums.items() if number in at else ():
            same(series[key][at[number]], value, '{} at {}'.format(key, number))
        most = (sums['physical_bytes'], sums['live_bytes'])
        if best is None or most > best:
            best, peak = most, (number, sums)
    return peak


def holders_after(history, number):
    for at in history.states():
        if at == number:
            return history.holders()


def check_peak(device, peak, history):
    """`history`: from its start once more."""
    number, sums = peak
    moment = moment_of(device, 'peak')
    same(moment['event'], number, 'event of the peak')
    for key, value in sums.items():
        same(moment[key], value, key)
    holders = holders_after(history, number)
    same(sum(blocks for _, blocks in holders.values()), moment['blocks'], 'blocks')
    got = {site: (bytes_, blocks) for site, bytes_, blocks in holders_of(moment)}
    same(len(got) + moment['other_holders']['sites'], len(holders), 'sites')
    for site, figures in got.items():
        same(figures, holders.get(site), site)
    wanted = sorted((bytes_ for bytes_, _ in holders.values()), reverse=True)[:20]
    same([bytes_ for _, bytes_, _ in holders_of(moment)], wanted, 'the order')


def check_maps(device):
    for moment in device['moments']:
        ranges, frames = moment['address_map'], moment['frame_map']
        same(sum(ranges['physical_bytes']), moment['physical_bytes'], 'memory in the map')
        same(sum(ranges['live_bytes']), moment['live_bytes'] + moment['internal_bytes'], 'live')
        same(sum(frames['used_bytes']), moment['physical_bytes'], 'frames')
        expect(len(ranges['address']) <= 2000 and len(frames['frame']) <= 2000)
        ends = [a + b for a, b in zip(ranges['address'], ranges['bytes'])]
        expect(all(end <= start for end, start in zip(ends, ranges['address'][1:])), 'order')
        at = 0
        for frame, count in zip(frames['frame'], frames['count']):
            same(frame, at, 'frames follow one another')
            at += count
        same(at * frames['frame_bytes'], device['device_bytes'], 'the whole device')


def check_identity(device):
    series = device['series']
    for i, physical in enumerate(series['physical_bytes']):
        parts = [series[key][i] for key in ('live_bytes',) + LOST]
        same(sum(parts), physical, 'event {}'.format(series['event'][i]))
        expect(min(parts) >= 0, parts)


# ---- snapshots with known answers ----

class Sited(Device):
    """Blocks have the call sites that they are told."""

    def alloc(self, address, size, *frames):
        super().alloc(address, size)
        self.events[-1]['frames'] = [dict(name=name, filename=file, line=line)
                                     for name, file, line in frames]


STEP = ('step', '/x/lib/site-packages/torch/optim/adam.py', 9)


def sited_device():
    device = Sited()
    device.segment_alloc(BASE, 20 * MIB)
    device.alloc(BASE, MIB, ('old', 'old.py', 1))
    device.start()
    device.alloc(BASE + 2 * MIB, 3 * MIB + 1, STEP, ('train', '/src/train.py', 7))
    device.alloc(BASE + 6 * MIB, 1000, ('load', '/src/data.py', 3))
    device.alloc(BASE + 7 * MIB, 500, ('view', '/x/site-packages/torch/a.py', 5), STEP,
                 ('train', '/src/train.py', 7))
    device.alloc(BASE + 8 * MIB, 4000)
    device.free(BASE + 6 * MIB)
    device.free(BASE)
    return device


@case
def holders_are_the_lines_that_asked(folder):
    path = write(folder / 'a.pkl', snapshot({0: sited_device()}))
    got, = replay(path)['devices']
    peak = moment_of(got, 'peak')
    same(peak['event'], 4, 'the event with the most live')
    same(holders_of(peak), [('train (/src/train.py:7)', 3 * MIB + 501, 2),
                            ('(before the file begins)', MIB, 1),
                            ('(no call site in the file)', 4000, 1),
                            ('load (/src/data.py:3)', 1000, 1)], 'holders')
    same(peak['holders'][0]['frames'], ['step ({}:9)'.format(STEP[1]), 'train (/src/train.py:7)'],
         'the stack with the most')
    same(peak['other_holders'], dict(sites=0, bytes=0, blocks=0), 'others')
    same(peak['internal_bytes'], 511 + 24 + 12 + 96, 'internal')
    same(peak['largest_free_bytes'], 12 * MIB - 4096, 'the largest free range')
    expect('The largest holder: train (/src/train.py:7), 3.00 MiB in 2 blocks.' in peak['words'],
           peak['words'])


@case
def a_moment_can_be_chosen(folder):
    device = sited_device()
    path = write(folder / 'a.pkl', snapshot({0: device}))
    asked = [word for at in ('end', 2, 'peak', 'oom', 99) for word in ('--at', at)]
    got, = replay(path, *asked)['devices']
    same([(m['moment'], m['event']) for m in got['moments']],
         [('peak', 4), ('end', 8), ('event', 2)], 'moments')
    same(moment_of(got, 'end')['live_bytes'], device.live, 'live at the end')
    same(sum(h['blocks'] for h in moment_of(got, 'event')['holders']), 3, 'after two events')
    expect('--at 99: the device has no such event' in npusim('replay', path, '--at', 99).stdout)
    # an event a microsecond, counted from 0 in the file
    got, = replay(path, '--at', '3us', '--at', '0.005ms', '--at', '1s')['devices']
    same([(m['moment'], m['event']) for m in got['moments'][1:]], [('time', 5), ('time', 7)],
         'times')
    for args, says in ((['--at', 'noon'], 'a time such as 1.5ms'),
                       (['--at', '1'] * 7, 'more than 6')):
        run = npusim('replay', path, *args)
        same((run.returncode, run.stdout), (2, ''), args)
        expect(says in run.stderr, run.stderr)


@case
def more_than_twenty_holders_are_summed(folder):
    device = Sited()
    device.segment_alloc(BASE, 20 * MIB)
    for i in range(30):
        device.alloc(BASE + i * 65536, 1000 + i, ('f', 'a.py', i + 1))
    got, = replay(write(folder / 'a.pkl', snapshot({0: device})))['devices']
    peak = moment_of(got, 'peak')
    same([h['bytes'] for h in peak['holders']], [1029 - i for i in range(20)], 'the largest')
    same(peak['other_holders'], dict(sites=10, bytes=sum(range(1000, 1010)), blocks=10), 'others')


# ---- sums at every sample ----

@case
def memory_over_time_is_as_the_manual_defines_it(folder):
    for seed in range(8):
        device = random_device(seed)
        data = snapshot({0: device})
        got, = replay(write(folder / 'r.pkl', data))['devices']
        peak = check_series(got, History(data, 0))
        same(moment_of(got, 'peak')['event'], peak[0], 'event of the peak')
        check_maps(got)


@case
def physical_memory_is_the_sum_of_its_parts_under_every_policy(folder):
    for seed in range(4):
        path = write(folder / 'r.pkl', snapshot({0: random_device(seed)}))
        for policy in POLICIES:
            got, = replay(path, '--policy', policy, '--at', 'end')['devices']
            check_identity(got)
            check_maps(got)


@case
def a_policy_says_what_it_rounds(folder):
    device = Device()
    device.segment_alloc(BASE, 20 * MIB)
    device.alloc(BASE, 5 * MIB)
    device.alloc(BASE + 6 * MIB, 100)
    path = write(folder / 'a.pkl', snapshot({0: device}))
    for policy, page, wanted in (
            ('native', '2m', dict(physical_bytes=6 * MIB + 4096, page_rounding_bytes=MIB + 3996,
                                  internal_bytes=0, external_bytes=0)),
            ('native', '1g', dict(physical_bytes=2 * GIB, internal_bytes=0, external_bytes=0,
                                  page_rounding_bytes=2 * GIB - 5 * MIB - 100)),
            # torch_npu adds 32 bytes, then takes multiples of 512
            ('caching', '2m', dict(physical_bytes=22 * MIB, page_rounding_bytes=0,
                                   internal_bytes=512 + 412)),
            ('caching', '1g', dict(physical_bytes=GIB + 2 * MIB, page_rounding_bytes=0,
                                   internal_bytes=512 + 412,
                                   largest_free_bytes=GIB - 5 * MIB - 512))):
        got, = replay(path, '--policy', policy, '--page', page)['devices']
        peak = moment_of(got, 'peak')
        for key, value in wanted.items():
            same(peak[key], value, '{} {} {}'.format(policy, page, key))


@case
def reserved_addresses_are_counted(folder):
    device = Device()
    device.segment_map(BASE, 2 * MIB, 'small')
    device.segment_map(BASE + (3 << 40), 40 * MIB)
    device.segment_alloc(BASE + (1 << 40), 6 * MIB)
    path = write(folder / 'a.pkl', snapshot({0: device}))
    got, = replay(path)['devices']
    same(got['series']['reserved_bytes'][-1], 2 * GIB + 6 * MIB, 'as recorded')
    lines = ['npusim-trace 1', 'reserve r1 size=4194304', 'create h1 size=2097152 device=0',
             'map r1 size=2097152 handle=h1', 'malloc a1 size=2097153 device=0 page=2m',
             'unmap r1', 'release h1', 'unreserve r1', 'mfree a1']
    (folder / 'a.npt').write_text('\n'.join(lines) + '\n')
    series = replay(folder / 'a.npt')['devices'][0]['series']
    same(series['reserved_bytes'], [MIB * n for n in (4, 4, 4, 8, 8, 8, 4, 0)], 'of calls')
    same(series['physical_bytes'], [MIB * n for n in (0, 2, 2, 6, 6, 4, 4, 0)], 'physical')


# ---- a lack of memory ----

def crowded():
    """Segments whose second half alone is in use, and then a block that fits in no half."""
    device = Sited()
    for i in range(6):
        device.segment_alloc(BASE + (i << 40), 200 * MIB)
        device.alloc(BASE + (i << 40), 200 * MIB, ('warm', 'crowd.py', 1))
    for i in range(6):
        device.free(BASE + (i << 40))
    for i in range(6):
        for half in range(2):
            device.alloc(BASE + (i << 40) + half * 100 * MIB, 100 * MIB - 512,
                         ('fill', 'crowd.py', 2 + half))
    for i in range(6):
        device.free(BASE + (i << 40))
    device.segment_alloc(BASE + (7 << 40), 300 * MIB)
    device.alloc(BASE + (7 << 40), 300 * MIB, ('burst', 'crowd.py', 9))
    return device


@case
def a_lack_of_memory_is_explained(folder):
    path = write(folder / 'a.pkl', snapshot({0: crowded()}))
    got, = replay(path, '--policy', 'caching', '--hbm', '1500M')['devices']
    out, moment = got['out_of_memory'], moment_of(got, 'oom')
    same((out['bytes'], out['site']), (300 * MIB, 'burst (crowd.py:9)'), 'who asked')
    expect(out['device_free_bytes'] + moment['physical_bytes'] <= got['device_bytes'], out)
    same(moment['live_bytes'], 6 * (100 * MIB - 512), 'live')
    same(holders_of(moment), [('fill (crowd.py:3)', 6 * (100 * MIB - 512), 6)], 'holders')
    same(moment['largest_free_bytes'], 100 * MIB, 'the largest free range')
    words = moment['words']
    for text in ('no room for 300.00 MiB more, which burst (crowd.py:9) asked for',
                 '600.00 MiB were live and 612.00 MiB free, the largest free range 100.00 MiB',
                 'enough in sum, and no piece of it is large enough: fragmentation',
                 'come to 900.00 MiB of ', 'would fit if all that is free lay together'):
        expect(text in words, repr(text), 'is not in', words)
    run = npusim('replay', path, '--policy', 'caching', '--hbm', '1500M')
    expect('fragmentation.' in ' '.join(run.stdout.split()), run.stdout)
    expect('out_of_memory' not in replay(path, '--policy', 'expandable', '--hbm', '1500M')
           ['devices'][0], 'expandable segments have room')


@case
def what_no_allocator_has_room_for_is_told(folder):
    device = Device()
    device.segment_alloc(BASE, 700 * MIB)
    device.alloc(BASE, 700 * MIB)
    device.segment_alloc(BASE + (1 << 40), 500 * MIB)
    device.alloc(BASE + (1 << 40), 500 * MIB)
    path = write(folder / 'a.pkl', snapshot({0: device}))
    for policy in POLICIES:
        got, = replay(path, '--policy', policy, '--hbm', '1G')['devices']
        words = moment_of(got, 'oom')['words']
        expect('no allocator has room for it' in words and 'fragmentation' not in words, words)
        check_identity(got) if policy != 'as-recorded' else None


@case
def a_block_without_memory_is_not_live(folder):
    device = Device()
    for i in range(8):
        device.segment_alloc(BASE + (i << 40), 300 * MIB)
        device.alloc(BASE + (i << 40), 300 * MIB)
    for i in range(8):
        device.free(BASE + (i << 40))
    path = write(folder / 'a.pkl', snapshot({0: device}))
    for policy in ('as-recorded', 'native', 'caching', 'expandable'):
        got, = replay(path, '--policy', policy, '--hbm', '1G')['devices']
        lost = got['blocks_without_memory'] if policy != 'as-recorded' else 5
        expect(0 < lost < 8, lost)
        expect(got['peak_physical_bytes'] <= got['device_bytes'], got['peak_physical_bytes'])
        same(got['peak_live_bytes'], (8 - lost) * 300 * MIB, 'live')
        same((got['series']['live_bytes'][-1], got['unknown_frees']), (0, 0), 'at the end')
        check_identity(got)


# ---- other files ----

@case
def a_trace_of_calls_has_no_call_sites(folder):
    got, = replay(SAMPLE)['devices']
    for moment in got['moments']:
        expect('holders' not in moment and 'live_bytes' not in moment['address_map'], moment)
        same(sum(moment['address_map']['physical_bytes']), moment['physical_bytes'], 'memory')
    check_identity(got)


@case
def columns_of_other_files_are_call_sites(folder):
    (folder / 'memory_block.csv').write_text(
        'start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,file_name,line_num,'
        'type,producer_task,task_name,node_name,graph_name,user_tasks,\n'
        '1,9,0x1000,0,common,700,net.py,12,x,,t,Default/conv,g,,\n'
        '2,9,0x2000,0,common,300,net.py,12,x,,t,Default/conv,g,,\n'
        '3,9,0x3000,0,common,50,,,x,,task 7,,g,,\n')
    got, = replay(folder / 'memory_block.csv', '--policy', 'native')['devices']
    same(holders_of(moment_of(got, 'peak')), [('Default/conv (net.py:12)', 1000, 2),
                                              ('task 7 ()', 50, 1)], 'MindSpore')
    (folder / 'dump.csv').write_text(
        'ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,'
        'Call Stack(Python),Call Stack(C)\n'
        '1,MALLOC,HAL,N/A,1,1,1,0,4096,"{addr:4096,size:2097152,owner:,MID:7}",,\n'
        '2,MALLOC,PTA,N/A,2,1,1,0,4096,"{addr:4096,size:500,owner:,MID:7}",'
        '"/x/site-packages/torch/a.py(1): f\n/src/b.py(2): g",c\n'
        '3,MALLOC,PTA,N/A,3,1,1,0,8192,"{addr:8192,size:300,owner:,MID:7}",,"main (prog)"\n')
    got, = replay(folder / 'dump.csv')['devices']
    same(holders_of(moment_of(got, 'peak')), [('/src/b.py(2): g', 500, 1), ('main (prog)', 300, 1)],
         'msMemScope')


# ---- profiles ----

def messages(data):
    """The fields of a message of protobuf: (number, value)."""
    at, out = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value if value < 1 << 63 else value - (1 << 64)

    while at < len(data):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        out.append((tag >> 3, value))
    return out


def pprof_of(path):
    """What pprof sees of the file: [inuse_objects, inuse_space] by frames, (name, file, line)."""
    fields = messages(gzip.decompress(path.read_bytes()))
    strings = [value.decode() for number, value in fields if number == 6]
    types = [dict(messages(value)) for number, value in fields if number == 1]
    same([(strings[t[1]], strings[t[2]]) for t in types],
         [('inuse_objects', 'count'), ('inuse_space', 'bytes')], 'types')
    functions = {f[1]: f for f in (dict(messages(v)) for n, v in fields if n == 5)}
    locations = {}
    for location in (dict(messages(v)) for n, v in fields if n == 4):
        line = dict(messages(location[4]))
        function = functions[line[1]]
        locations[location[1]] = (strings[function[2]], strings[function[4]], line.get(2, 0))
    out = {}
    for sample in (messages(v) for n, v in fields if n == 2):
        stack = tuple(locations[value] for number, value in sample if number == 1)
        expect(stack not in out, stack)
        out[stack] = [value for number, value in sample if number == 2]
    return out


def folded_of(path):
    lines = [line.rpartition(' ') for line in path.read_text().splitlines()]
    same(len({stack for stack, _, _ in lines}), len(lines), 'a line a stack')
    return {tuple(reversed(stack.split(';'))): int(bytes_) for stack, _, bytes_ in lines}


def speedscope_of(path):
    data = json.loads(path.read_text())
    names = [frame['name'] for frame in data['shared']['frames']]
    out = {}
    for sign, profile in zip((1, -1), data['profiles']):
        same(sum(profile['weights']), profile['endValue'], 'the end')
        expect(all(weight > 0 for weight in profile['weights']), profile)
        for sample, weight in zip(profile['samples'], profile['weights'], strict=True):
            out[tuple(names[i] for i in reversed(sample))] = sign * weight
    return out


def text(frame):
    name, file, line = frame
    place = '{}:{}'.format(file, line) if line else file
    return '{} ({})'.format(name, place) if file else name


def profiles_of(folder, path, *args):
    """The three profiles, which say the same; blocks and bytes by stack."""
    files = [folder / name for name in ('a.pb.gz', 'a.folded', 'a.speedscope.json')]
    for file in files:
        run = npusim('replay', path, '--profile', file, *args)
        same((run.returncode, run.stderr), (0, ''), file)
    stacks = {tuple(map(text, stack)): values for stack, values in pprof_of(files[0]).items()}
    bytes_ = {stack: values[1] for stack, values in stacks.items() if values[1]}
    same(speedscope_of(files[2]), bytes_, 'speedscope')
    same(folded_of(files[1]), {tuple(frame.replace(';', ',') for frame in stack): value
                               for stack, value in bytes_.items()}, 'folded')
    return stacks


@case
def profiles_are_the_holders_by_stack(folder):
    device = sited_device()
    odd = ('f<script>";\\', '/src/a b.py', 3), ('<module>', '<string>', 1)
    device.alloc(BASE + 15 * MIB, 77, *odd)
    device.alloc(BASE + 16 * MIB, 88, *odd)
    path = write(folder / 'a.pkl', snapshot({0: device}))
    peak = moment_of(replay(path)['devices'][0], 'peak')
    got = profiles_of(folder, path)
    same(sum(bytes_ for _, bytes_ in got.values()), peak['live_bytes'], 'peak')
    got = profiles_of(folder, path, '--at', 'end')
    peak = moment_of(replay(path, '--at', 'end')['devices'][0], 'end')
    same(sum(bytes_ for _, bytes_ in got.values()), peak['live_bytes'], 'bytes')
    same(sum(blocks for blocks, _ in got.values()), sum(h[2] for h in holders_of(peak)), 'blocks')
    same(got[tuple(text(frame) for frame in odd)], [2, 165], 'an odd name')
    first = peak['holders'][0]
    expect(tuple(first['frames']) in got, first, got)
    # what grew, and what shrank
    count = len(device.events)
    end = profiles_of(folder, path, '--at', 'end')
    for since in (0, count // 2, count - 1):
        before = profiles_of(folder, path, '--at', since)
        wanted = {stack: [a - b for a, b in zip(end.get(stack, (0, 0)), before.get(stack, (0, 0)))]
                  for stack in end.keys() | before.keys()}
        grown = profiles_of(folder, path, '--at', 'end', '--since', since)
        same(grown, {stack: values for stack, values in wanted.items() if any(values)}, since)
    back = profiles_of(folder, path, '--at', count - 1, '--since', 'end')
    same(back, {stack: [-a, -b] for stack, (a, b) in grown.items()}, 'backwards')


@case
def a_profile_of_growth_is_of_devices_that_reached_both_moments(folder):
    long, short = sited_device(), Sited()
    short.segment_alloc(BASE, 20 * MIB)
    short.alloc(BASE, 77, ('f', '/src/short.py', 1))
    short.free(BASE)
    path = write(folder / 'a.pkl', snapshot({0: long, 1: short}))
    ends = [moment_of(device, 'end') for device in replay(path, '--at', 'end')['devices']]
    live = [end['live_bytes'] for end in ends]
    same((live[0] > 0, live[1]), (True, 0), 'live')
    same(ends[1]['holders'], [], 'holders of nothing')
    got = profiles_of(folder, path, '--at', 'end')
    same(sum(bytes_ for _, bytes_ in got.values()), live[0], 'end')
    got = profiles_of(folder, path, '--at', 'end', '--since', 2)
    same(got[('f (/src/short.py:1)',)], [-1, -77], 'both reached it')
    long.alloc(BASE + 15 * MIB, 99, ('g', '/src/long.py', 1))
    short.alloc(BASE, 77, ('f', '/src/short.py', 1))
    path = write(folder / 'a.pkl', snapshot({0: long, 1: short}))
    got = profiles_of(folder, path, '--at', 'end', '--since', len(long.events) - 1)
    same(got, {('g (/src/long.py:1)',): [1, 99]}, 'only one reached it')


@case
def a_profile_that_cannot_be_written_says_why(folder):
    path = write(folder / 'a.pkl', snapshot({0: sited_device()}))
    for args, status, *says in [
            ([path, '--profile', 'x.svg'], 2, 'x.svg', '.folded', '.speedscope.json', '.pb.gz'),
            ([path, '--since', 3], 2, '--since 3 needs --profile'),
            ([path, '--profile', folder / 'a.folded', '--since', 'x'], 2, '--since x', '1.5ms'),
            ([path, '--profile', folder / 'a.folded', '--at', 'oom'], 1, 'no such moment'),
            ([path, '--profile', folder / 'a.folded', '--at', 10**9], 1, 'no such moment'),
            ([path, '--profile', folder / 'no' / 'a.folded'], 1, 'No such file'),
            ([SAMPLE, '--profile', folder / 'a.folded'], 1, 'no call stacks')]:
        run = npusim('replay', *args)
        same(run.returncode, status, (args, run.stderr))
        for part in says:
            expect(part in run.stderr, part, 'is not in', run.stderr)
        expect(not (folder / 'a.folded').exists(), args)


# ---- latency ----

@case
def latencies_are_those_of_the_calls(folder):
    path = write(folder / 'a.pkl', snapshot({0: crowded()}))
    for policy in POLICIES:
        got, = replay(path, '--policy', policy, '--hbm', '1500M')['devices']
        for kind in got['vmm_calls_by_kind'].values():
            latency = kind['latency']
            histogram = latency['histogram']
            same(sum(histogram['calls']), kind['calls'], 'calls')
            order = [latency[key] for key in ('min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns')]
            same(order, sorted(order), 'order')
            expect(latency['min_ns'] <= kind['time_ns'] / kind['calls'] <= latency['max_ns'] + 1)
            expect(histogram['up_to_ns'] == sorted(histogram['up_to_ns']), histogram)
            expect(latency['max_ns'] <= histogram['up_to_ns'][-1], latency)


# ---- real files ----

# As counted by hand: MiB at the start (physical, live), at the peak (physical, live), obtained.
REAL = {
    'torch_npu/snapshot_1768383987920985470.pkl': {0: (0, 0, 526, 449.66, 526)},
    'torch_npu/snapshot_expandable.pkl': {0: (108, 89.96, 614, 569.66, 506)},
    'torch_npu/snapshot_with_empty_cache.pkl': {0: (108, 89.96, 632, 569.66, 802)},
    'torch_npu/snapshot_with_empty_cache_expandable.pkl': {0: (108, 89.96, 614, 569.66, 786)},
    'torch_npu/snapshot_with_multi_devices.pkl': {0: (108, 89.96, 614, 569.66, 786),
                                                  1: (0, 0, 526, 449.66, 526)},
    'torch_h100/train-default.pkl.gz': {0: (0, 0, 2442, 1991.27, 2442)},
    'torch_h100/train-exp.pkl.gz': {0: (0, 0, 2084, 1991.27, 2084)},
    'torch_h100/serve-default.pkl.gz': {0: (0, 0, 4844, 1733.50, 9036)},
    'torch_h100/serve-exp.pkl.gz': {0: (0, 0, 1802, 1733.50, 3776)},
}
EVENTS = {
    'torch_npu/snapshot_1768383987920985470.pkl': dict(alloc=3216, free_completed=3216,
                                                       segment_alloc=52),
    'torch_npu/snapshot_expandable.pkl': dict(alloc=2899, free_completed=2574, segment_map=45),
    'torch_npu/snapshot_with_empty_cache.pkl': dict(segment_alloc=79, segment_free=54),
    'torch_npu/snapshot_with_empty_cache_expandable.pkl': dict(segment_map=75, segment_unmap=10),
    'torch_h100/train-default.pkl.gz': dict(alloc=3948, free_completed=3945, segment_alloc=100),
    'torch_h100/train-exp.pkl.gz': dict(segment_map=87),
    'torch_h100/serve-default.pkl.gz': dict(alloc=14944, free_completed=14944, segment_alloc=482,
                                            segment_free=418),
    'torch_h100/serve-exp.pkl.gz': dict(segment_map=208, segment_unmap=15),
}


def check_real(name):
    path = real(name)
    with (gzip.open if name.endswith('.gz') else open)(path, 'rb') as file:
        data = pickle.load(file)
    got = {device['device']: device for device in replay(path)['devices']}
    same(sorted(got), sorted(REAL[name]), 'devices')
    for number, device in got.items():
        for key, mib in zip(('start_physical_bytes', 'start_live_bytes', 'peak_physical_bytes',
                             'peak_live_bytes', 'obtained_bytes'), REAL[name][number]):
            same('{:.2f}'.format(device[key] / MIB), '{:.2f}'.format(mib), key)
        same(device['device_peak_bytes'], device['peak_physical_bytes'], 'on the device')
        same(device['unknown_frees'], 0, 'unknown frees')
        check_maps(device)
        peak = check_series(device, History(data, number))
        check_peak(device, peak, History(data, number))
    for action, count in EVENTS.get(name, {}).items():
        same(got[0]['events'][action], count, action)
    # its sibling's blocks are the same, and a policy hands out no other memory
    for policy in POLICIES[1:] if 'exp' not in path.name else ():
        for device in replay(path, '--policy', policy)['devices']:
            check_identity(device)
            check_maps(device)


real_cases(REAL, check_real)


if __name__ == '__main__':
    main()
