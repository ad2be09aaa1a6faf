#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The page of npusim report: its data beside the figures of a replay, and in headless Chromium what
# it shows to those who click, zoom, filter, step and compare.
# usage: page-test.py NPUSIM SAMPLE-WORKLOAD SAMPLE-TRACE PAGE-FOLDER DATA

import base64
import contextlib
import hashlib
import json
import pathlib
import random
import re
import sqlite3
import struct
import sys
import tempfile
import zlib

from browser import emptied
from command import (BASE, MIB, Device, case, environment, expect, main, npusim, random_device,
                     real_cases, real, replay, same, snapshot, write, write_trace)

WORKLOAD, SAMPLE, FOLDER = sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
EVIL = '<script>document.documentElement.dataset.error="x"</script>'


# ---- the data ----

def report(folder, *files):
    page = folder / 'page.html'
    run = npusim('report', *files, '-o', page)
    same(run.returncode, 0, run.stderr)
    return page


class Data:
    """The history in a page, as its head says it is packed."""

    def __init__(self, page, number=0):
        text = re.search('<script type="text/plain" id="history-{}">([^<]*)<'.format(number),
                         page.read_text()).group(1)
        data = zlib.decompress(base64.b64decode(text))
        end = 4 + struct.unpack('<I', data[:4])[0]
        self.head = json.loads(data[4:end])
        self.columns = {}
        for name, values, size in self.head['columns']:
            planes = [data[end + b * values:end + (b + 1) * values] for b in range(size)]
            end += size * values
            self.columns[name] = [sum(plane[i] << 8 * b for b, plane in enumerate(planes))
                                  for i in range(values)]
        same(end, len(data), 'bytes')

    def column(self, name, device=0):
        return self.columns['{}.{}'.format(device, name)]

    def grown(self, name, device=0):
        out, sum_ = [], 0
        for value in self.column(name, device):
            sum_ += -(value + 1) // 2 if value % 2 else value // 2
            out.append(sum_)
        return out

    def physical(self, device=0):
        """After each event: of its rows the last."""
        return dict(zip(self.grown('row.event', device), self.grown('row.physical', device)))

    def live(self, event, device=0):
        total = 0
        for made, life, size in zip(self.grown('block.event', device),
                                    self.column('block.life', device),
                                    self.column('block.size', device)):
            total += size if made <= event and (life == 0 or made + life > event) else 0
        return total

    def frames(self, site):
        first = sum(self.columns['site.depth'][:site])
        return [self.head['texts'][number] for number in
                self.columns['site.frame'][first:first + self.columns['site.depth'][site]]]


def check(data, result, every=1):
    """The data at the points of a replay's series."""
    for d, device in enumerate(result['devices']):
        same(data.head['devices'][d][0], device['device'], 'device')
        physical, now = data.physical(d), 0
        numbers = data.grown('event.number', d)
        points = list(zip(*(device['series'][name] for name in
                            ('event', 'live_bytes', 'physical_bytes'))))
        for number, live, held in points[::every]:
            event = numbers.index(number) + 1 if number else 0
            now = max((e for e in physical if e <= event), default=None)
            same((data.live(event, d), physical.get(now, 0)), (live, held),
                 'live and physical after event {}'.format(number))


@case
def the_data_has_what_a_replay_measures(folder):
    for seed in range(12):
        path = write(folder / 'x.pkl', snapshot({0: random_device(seed),
                                                 2: random_device(seed + 100)}))
        check(Data(report(folder, path)), replay(path))


@case
def a_converted_file_has_the_same_data(folder):
    path = write(folder / 'x.pkl', snapshot({0: random_device(3)}))
    same(npusim('convert', '--to', 'trace', path, folder / 'x.npt').returncode, 0)
    pages = [Data(report(folder, file)) for file in (path, folder / 'x.npt')]
    for name in ('block.event', 'block.life', 'block.size', 'block.address', 'event.verb',
                 'row.physical', 'row.address'):
        same(pages[1].column(name), pages[0].column(name), name)


def recording(folder):
    trace = folder / 'one.npt'
    run = npusim('record', '-o', trace, '--', WORKLOAD,
                 env=environment(ASAN_OPTIONS='verify_asan_link_order=0', NPUSIM_STACKS='short'))
    same(run.returncode, 0, run.stderr)
    return trace


@case
def calls_stand_for_blocks_where_no_allocator_tells_of_them(folder):
    trace = recording(folder)
    lines = [line for line in trace.read_text().splitlines(True)
             if not re.search(r'(alloc|free) b\d', line)]
    (folder / 'calls.npt').write_text(''.join(lines))
    for path, recorded in ((trace, False), (folder / 'calls.npt', True)):
        data, result = Data(report(folder, path)), replay(path)
        same(data.head['recorded'], recorded, path)
        numbers, physical = data.grown('event.number'), data.physical()
        series = result['devices'][0]['series']
        for number, held in zip(series['event'], series['physical_bytes']):
            event = numbers.index(number) + 1 if number else 0
            now = max((e for e in physical if e <= event), default=None)
            same(physical.get(now, 0), held, 'physical after event {}'.format(number))
            if recorded:
                same(data.live(event), held, 'blocks after event {}'.format(number))
    frames = [frame for site in set(data.column('block.site')) for frame in data.frames(site)]
    expect(any('main' in frame for frame in frames), 'no frame of the program', frames)
    expect(all(data.column('block.address')), 'an address')


@case
def calls_take_what_the_file_says_or_else_what_the_model_takes(folder):
    for took, modelled in (('', True), ('+1500 ', False)):
        path = write_trace(folder / 'x.npt', 'info soc=Ascend910B1 devices=1',
                           '@10 ' + took + ':1.1 create h1 size=2097152 device=0 page=2m',
                           '@99 :1.1 release h1')
        page = report(folder, path)
        same(Data(page).column('row.took'), [0 if modelled else 1501, 0], took)
        with emptied() as browser:
            opened(browser, page)
            calls = browser.run(TIMELINE + '.history.calls')
            same(browser.run(TIMELINE + '.history.modelled'), modelled, took)
            if modelled:
                same([c['name'] for c in calls], ['aclrtMallocPhysical', 'aclrtFreePhysical'])
                expect(all(c['ns'] > 1000 for c in calls), calls)
            else:
                same(calls, [dict(event=1, ns=1500, name='create')])


@case
def each_call_and_frame_of_a_replay_is_told(folder):
    path = write(folder / 'x.pkl', snapshot({0: random_device(9)}))
    for at in 1, 60, 150:
        device = replay(path, '--each-call', '--at', str(at))['devices'][0]
        each, frames = device['each_call'], device['frames']
        same(len(each['event']), device['vmm_calls'], 'calls')
        expect(abs(sum(each['took_ns']) - device['vmm_time_ns']) <= len(each['took_ns']), 'time')
        for name, figures in device['vmm_calls_by_kind'].items():
            same(each['function'].count(each['functions'].index(name)), figures['calls'], name)
        frame_map = next(m for m in device['moments'] if m['event'] == at)['frame_map']
        used = {frame + i for frame, count, owner in zip(*(frame_map[name] for name in
                ('frame', 'count', 'owner'))) if owner for i in range(count)}
        there = [row for row in zip(*(frames[name] for name in
                 ('since', 'until', 'physical', 'bytes'))) if row[0] <= at < row[1]]
        same({frame for _, _, start, size in there
              for frame in range(start // (2 * MIB), -(-(start + size) // (2 * MIB)))}, used, at)


@case
def what_copies_touched_is_known(folder):
    path = write_trace(folder / 'copies.npt', 'info soc=Ascend910B1 devices=1',
                       'reserve r1 size=1073741824 flags=1 va=0x100000000000',
                       'create h1 size=2097152 device=0 page=2m',
                       'map r1+2097152 size=2097152 handle=h1',
                       'malloc a1 size=4096 device=0 page=4k va=0x120000000000',
                       'malloc a2 size=4096 device=0 page=4k va=0x120000001000',
                       'malloc a3 size=4096 device=0 page=4k va=0x120000002000',
                       'copy size=4096 dst=a2+0 src=host', 'fill size=8 dst=r1+4194296',
                       'copy size=1 dst=host src=a2+4095', 'mfree a1')
    data = Data(report(folder, path))
    same(data.head['uses'], 'copied or filled')
    same(data.column('block.size'), [2 * MIB, 4096, 4096, 4096], 'blocks')
    same([u and u - 1 + e for u, e in zip(data.column('block.used'), data.grown('block.event'))],
         [8, 0, 9, 0], 'events that used them last')
    with emptied() as browser:
        opened(browser, folder / 'page.html')
        go_to(browser, '#moment')
        panel = browser.run('window.npusim.explorer.moment.node.textContent')
        expect('2 frames of 2 MiB: 0 hold no live block' in panel, panel)
        go_to(browser, '#growth')
        same(browser.run('[...document.querySelectorAll('
                         '"[aria-label=\'blocks never used\'] tbody tr")]'
                         '.map((r) => r.children[1].textContent)'), ['4'], 'a3 alone')
        browser.run('window.npusim.explorer.pin(2)')
        browser.settle()
        pinned = text_of(browser, '#pinned')
        expect('Last copied or filledevent 9' in pinned, pinned)


@case
def what_operators_accessed_is_known(folder):
    head = ('ID,Event,Event Type,Name,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,'
            'Call Stack(Python),Call Stack(C)')
    rows = ['MALLOC,HAL,N/A,{},1,1,0,%d,"{{addr:%d,size:4194304}}"' % (BASE, BASE)]
    for i in range(3):
        rows.append('MALLOC,PTA,N/A,{},1,1,0,%d,"{{size:512}}"' % (BASE + 512 * i))
    rows += ['ACCESS,READ,add,{},1,1,0,%d,"{{dtype:float,size:16}}"' % (BASE + 512 + 496),
             'ACCESS,UNKNOWN,mul,{},1,1,0,N/A,"{{size:N/A}}"',
             'FREE,PTA,N/A,{},1,1,0,%d,"{{}}"' % (BASE + 512),
             'MALLOC,PTA,N/A,{},1,1,0,%d,"{{size:512}}"' % (BASE + 512),
             'ACCESS,WRITE,mul,{},1,1,0,N/A,"{{addr:%d,size:1024}}"' % (BASE + 512)]
    (folder / 'x.csv').write_text('\n'.join([head] + [
        '{},'.format(i) + row.format(1779862930549834990 + 1000000 * i) + ',,'
        for i, row in enumerate(rows)]) + '\n')
    same(npusim('convert', '--to', 'trace', folder / 'x.csv', folder / 'x.npt').returncode, 0)
    for file in 'x.csv', 'x.npt':
        data = Data(report(folder, folder / file))
        same(data.head['uses'], 'read or written', file)
        same([u and u - 1 + e for u, e in zip(data.column('block.used'),
                                              data.grown('block.event'))], [0, 5, 9, 9], file)
    with emptied() as browser:
        opened(browser, folder / 'page.html')
        go_to(browser, '#growth')
        text = browser.run('window.npusim.explorer.growth.node.textContent')
        expect(re.search('Blocks never read or written.*512 B7', text), text)
        same(browser.run('document.querySelectorAll('
                         '"[aria-label=\'blocks never used\'] tbody tr").length'), 1, 'unused')


@case
def a_handle_is_used_where_it_is_mapped(folder):
    head = ['info soc=Ascend910B1 devices=1',
            'reserve r1 size=1073741824 flags=1 va=0x100000000000',
            'create h1 size=2097152 device=0 page=2m']
    at_first, further = ('map r1{} size=2097152 handle=h1'.format(n) for n in ('', '+2097152'))
    other = ['unreserve r1', 'malloc a1 size=4096 device=0 page=4k va=0x100000001000']
    for lines, used in (
            ([at_first, 'unmap r1', further, 'copy size=8 dst=r1+2097152 src=host'], [6]),
            ([at_first, further, 'copy size=8 dst=r1+2097152 src=host'], [5]),
            ([at_first, further, 'unmap r1+2097152', 'fill size=8 dst=r1+2097152',
              'fill size=8 dst=r1+9'], [7]),
            ([at_first, 'unmap r1', *other, 'copy size=8 dst=a1 src=host'], [0, 7]),
            ([at_first, further, 'device id=0 op=reset', other[1].replace('001000', '201000'),
              'copy size=8 dst=a1 src=host'], [0, 7]),
            ([further, 'unmap r1+4194304 => 107000', 'fill size=8 dst=r1+2097160'], [5]),
            ([further, 'unmap r1+2097152 => 107000', 'fill size=8 dst=r1+2097160'], [5]),
            ([at_first + ' => 107000', 'fill size=8 dst=r1'], [0])):
        data = Data(report(folder, write_trace(folder / 'x.npt', *head, *lines)))
        same([u and u - 1 + e for u, e in zip(data.column('block.used'),
                                              data.grown('block.event'))], used, lines)


def real_file(name):
    import tempfile
    path = real(name)
    with tempfile.TemporaryDirectory() as folder:
        check(Data(report(pathlib.Path(folder), path)), replay(path), 97)


real_cases(['torch_h100/train-default.pkl.gz', 'torch_h100/serve-exp.pkl.gz',
            'torch_npu/snapshot_expandable.pkl', 'torch_npu/snapshot_with_multi_devices.pkl'],
           real_file)


@case
def the_library_is_the_one_that_is_noted():
    noted = re.search('SHA-256: `([0-9a-f]{64})`', (FOLDER / 'VENDORED.md').read_text()).group(1)
    data = (FOLDER / 'd3.min.js').read_bytes()
    same(hashlib.sha256(data).hexdigest(), noted, 'checksum')
    expect(len(data) <= 100000, len(data))


# ---- the page ----

def steps_file(folder, name='steps.pkl', keep=2):
    """Ten steps; each leaves a block of a place of its own, and frees what it works with. One frame
    tries to be a part of the page."""
    device, dice = Device(), random.Random(7)

    def alloc(address, size, *stack):
        device.alloc(address, size)
        device.events[-1]['frames'] = [dict(name=n, filename=f, line=i) for n, f, i in stack]

    device.segment_alloc(BASE, 400 * MIB)
    alloc(BASE, 100 * MIB, ('load', '/src/weights.py', 3), ('main', '/src/train.py', 90))
    for step in range(10):
        for i in range(20):
            alloc(BASE + (120 + i * 8) * MIB, MIB * dice.randrange(1, 8),
                  (EVIL if i == 3 else 'forward', '/src/model.py', 10 + i),
                  ('main', '/src/train.py', 91))
        alloc(BASE + (300 + step * keep) * MIB, keep * MIB, ('cache', '/src/cache.py', 5),
              ('main', '/src/train.py', 92))
        for i in range(20):
            device.free(BASE + (120 + i * 8) * MIB)
    device.events.append(dict(action='oom', size=900 * MIB, device_free=MIB, stream=0, frames=[],
                              time_us=len(device.events)))
    return write(folder / name, snapshot({0: device}))


VIEW = 'window.npusim.explorer.view'
TIMELINE = 'window.npusim.explorer.timeline'


def opened(browser, page, fragment=''):
    browser.open(page, fragment)
    browser.settle()
    same((browser.errors, browser.asked), ([], []), 'errors, and what a network was asked')


def text_of(browser, selector):
    return browser.run('document.querySelector({!r}).textContent'.format(selector))


def go_to(browser, selector):
    browser.run('document.querySelector({!r}).scrollIntoView()'.format(selector))
    browser.settle()
    browser.settle()


def press_button(browser, name, within='body'):
    browser.run('[...document.querySelector({!r}).querySelectorAll("button")]'
                '.find((b) => b.textContent === {!r}).click()'.format(within, name))
    browser.settle()


@case
def every_pixel_column_of_the_stack_is_as_high_as_what_is_live(folder):
    page = report(folder, write(folder / 'x.pkl', snapshot({0: random_device(5, 8000)})))
    with emptied(width=420) as browser:
        opened(browser, page)
        for smallest in '', '2K':
            browser.run('window.npusim.explorer.setFilter({{ min: {!r} }})'.format(smallest))
            wrong = browser.run('''(() => {
                const t = %s, h = t.history;
                t.drawNow();
                const [low, high] = t.heights, wrong = [];
                t.columns.forEach((e, x) => {
                    const { rows } = t.raster;
                    const lit = (y) => rows[(t.height - 1 - y) * t.width + x] !== t.look.back;
                    let painted = t.height;
                    while (painted > 0 && !lit(painted - 1))
                        painted--;
                    const wanted = h.total[e] / (high - low) * t.height;
                    if (Math.abs(painted - wanted) > 2.01)
                        wrong.push([x, painted, wanted]);
                });
                return wrong.slice(0, 5);
            })()''' % TIMELINE)
            same(wrong, [], 'columns of another height, from {!r}'.format(smallest))
            # what is found under the pointer, which adds up sizes, has the colour that is there
            wrong = browser.run('''(() => {
                const t = %s, wrong = [];
                for (let i = 0; i < 4000; i++) {
                    const x = i * 37 %% t.width, y = i * 101 %% t.height;
                    const { block } = t.find(x, y + 0.5);
                    const near = [-1, 0, 1].map((d) => t.raster.rows[(y + d) * t.width + x]);
                    if (block >= 0 && !near.includes(t.look.colours[block]))
                        wrong.push([x, y, block]);
                }
                return wrong.slice(0, 5);
            })()''' % TIMELINE)
            same(wrong, [], 'another block than is drawn, from {!r}'.format(smallest))


@case
def a_click_pins_the_block_that_is_there(folder):
    page = report(folder, steps_file(folder))
    with emptied() as browser:
        opened(browser, page)
        left, top, width, height = browser.box('canvas.over')
        browser.mouse('mouseMoved', left + width / 2, top + height - 20)
        browser.settle()
        tip = text_of(browser, '.tip')
        expect('100.00 MiB' in tip and 'load (src/weights.py:3)' in tip, tip)
        expect(re.search(r'Made at: .*, \d+ events ago', tip), tip)
        browser.click(left + width / 2, top + height - 20)
        same(browser.run(VIEW + '.pin'), 0, 'the block at the bottom')
        pinned = text_of(browser, '#pinned')
        for wanted in 'Size100.00 MiB', 'Freed atnever', 'Segment0x12c1c0000000, 400.00 MiB', \
                'main (/src/train.py:90)', 'Above it':
            expect(wanted in pinned, wanted, pinned)
        at = browser.run(VIEW + '.at')
        browser.press('.')
        browser.press('.')
        browser.press(',')
        same(browser.run(VIEW + '.at'), at + 1, 'steps')
        # by address the segment begins at the bottom as well
        browser.run('document.querySelectorAll(".controls select")[0].value = "address"; '
                    'document.querySelectorAll(".controls select")[0]'
                    '.dispatchEvent(new Event("change"))')
        browser.settle()
        browser.run(VIEW + '.pin = -1')
        browser.click(left + width / 2, top + height - 10)
        same(browser.run(VIEW + '.pin'), 0, 'the block at the lowest address')


@case
def wheel_drag_keys_and_map_move_the_view_and_the_link_keeps_it(folder):
    page = report(folder, steps_file(folder))
    with emptied() as browser:
        opened(browser, page)
        left, top, width, height = browser.box('canvas.over')
        browser.mouse('mouseWheel', left + width / 4, top + 50, deltaX=0, deltaY=-600)
        browser.settle()
        low, high = browser.run(VIEW + '.x')
        expect(0 < low < 0.25 < high < 0.6, low, high)
        browser.mouse('mousePressed', left + 300, top + 50, button='left', clickCount=1)
        for x in range(290, 190, -10):
            browser.mouse('mouseMoved', left + x, top + 50, button='left', buttons=1)
        browser.mouse('mouseReleased', left + 200, top + 50, button='left', clickCount=1)
        browser.settle()
        moved = browser.run(VIEW + '.x')
        same([round(v, 6) for v in moved],
             [round(v + 100 / width * (high - low), 6) for v in (low, high)], 'dragged')
        browser.run('document.querySelector("canvas.over").focus()')
        browser.press('ArrowLeft')
        expect(browser.run(VIEW + '.x')[0] < moved[0], 'an arrow')
        browser.press('+')
        kept = browser.run(VIEW + '.x')
        expect(kept[1] - kept[0] < moved[1] - moved[0], 'a plus')
        browser.run('window.npusim.explorer.setFilter({ text: "cache" })')
        browser.run(VIEW + '.pin = 21; window.npusim.explorer.go(30)')
        browser.wait('location.hash.includes("at=30")')
        kept = browser.run(VIEW + '.x')
        link = browser.run('location.hash')
        same(browser.errors, [], 'errors')
        opened(browser, page, link)
        same(browser.run('(({ at, pin, filter }) => ({ at, pin, filter }))(' + VIEW + ')'),
             dict(at=30, pin=21, filter=dict(text='cache')), 'what the link says')
        expect(abs(browser.run(VIEW + '.x')[0] - kept[0]) < 1e-6, 'the view of the link')
        same(browser.run(TIMELINE + '.wanted.reduce((a, b) => a + b, 0)'), 10, 'blocks that fit')
        browser.run('document.querySelector("canvas.over").focus()')
        browser.press('Escape')
        browser.settle()
        same(browser.run(VIEW + '.x'), [0, 1], 'the whole')
        hidden = 'document.querySelector("#pinned").hidden'
        same(browser.run(hidden), True, 'nothing is pinned')
        browser.press('Enter')
        browser.settle()
        same(browser.run(hidden), False, 'the block of the moment is')
        map_left, map_top, map_width, _ = browser.box('canvas.map')
        browser.run(TIMELINE + '.setRange("x", 0, 0.1)')
        browser.mouse('mousePressed', map_left + map_width / 2, map_top + 9, button='left',
                      buttons=1, clickCount=1)
        browser.mouse('mouseReleased', map_left + map_width / 2, map_top + 9, button='left')
        browser.settle()
        expect(abs(sum(browser.run(VIEW + '.x')) / 2 - 0.5) < 0.05, browser.run(VIEW + '.x'))


@case
def a_link_may_say_anything(folder):
    page = report(folder, steps_file(folder))
    with emptied() as browser:
        opened(browser, page, '#f.text=true&f.end=false&at=1.5')
        same(browser.run('(({ at, filter }) => [at, filter])(' + VIEW + ')'),
             [2, dict(text='true', end=False)], 'view')
        same(browser.run(TIMELINE + '.wanted.reduce((a, b) => a + b, 0)'), 0, 'blocks that fit')


@case
def a_moment_tells_who_held_what_and_what_would_fit(folder):
    path = steps_file(folder)
    page, result = report(folder, path), replay(path, '--at', '25')
    moment = next(m for m in result['devices'][0]['moments'] if m['event'] == 25)
    with emptied() as browser:
        opened(browser, page)
        browser.run('window.npusim.explorer.go(25)')
        go_to(browser, '#moment')
        holders = browser.run('window.npusim.explorer.moment.holders.rows'
                              '.map((r) => [r.name, r.blocks, r.bytes])')
        for h in moment['holders']:
            expect([h['site'], h['blocks'], h['bytes']] in holders, h, holders)
        same(len(holders), len(moment['holders']) + moment['other_holders']['sites'], 'holders')
        panel = browser.run('window.npusim.explorer.moment.node.textContent')
        expect('The largest free range is' in panel and EVIL in panel, panel)
        same(browser.run('document.querySelectorAll("script").length'), 3, 'scripts')
        # one more of what is free, of what is not
        free = browser.run('Math.max(...window.npusim.explorer.moment.pieces'
                           '.filter((p) => p.block < 0).map((p) => p.end - p.start))')
        same(free, moment['largest_free_bytes'], 'largest free range')
        count = 'window.npusim.explorer.moment.icicle.cells.querySelectorAll(".cell").length'
        cells = browser.run(count)
        expect(cells > 1, cells)
        browser.run('window.npusim.explorer.moment.icicle.zoomTo('
                    '[...window.npusim.explorer.moment.icicle.at.children.values()][0])')
        browser.settle()
        expect(0 < browser.run(count) <= cells)


@case
def calls_and_frames_of_any_moment_are_shown(folder):
    path = write(folder / 'x.pkl', snapshot({0: random_device(9)}))
    result = replay(path, '--each-call', '--at', '150')['devices'][0]
    page = report(folder, path)
    frame_map = next(m for m in result['moments'] if m['event'] == 150)['frame_map']
    frames = sum(c for c, owner in zip(frame_map['count'], frame_map['owner']) if owner)
    with emptied() as browser:
        opened(browser, page)
        browser.run('window.npusim.explorer.go(150)')
        go_to(browser, '#moment')
        panel = browser.run('window.npusim.explorer.moment.node.textContent')
        expect('Frames of the device' in panel and '{} frames of 2 MiB'.format(frames) in panel,
               frames, panel)
        left, top, width, _ = browser.box('canvas.strip[aria-label*="frame"]')
        browser.mouse('mouseMoved', left + width / 3, top + 5)
        expect(re.search(r'Frame at 0x\w+, mapped at 0x\w+: .* live in \d+ block', browser.run(
            'window.npusim.explorer.moment.node.textContent')), 'what a frame holds')
        # a bar in the lane of calls, and the call in the table, at an event that made one
        event = next(e for e in result['each_call']['event'] if e > 20)
        lit = browser.run("""((e) => {
            const t = %s, pen = t.lanes.getContext('2d');
            const bar = document.createElement('canvas').getContext('2d');
            bar.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--c3');
            bar.fillRect(0, 0, 1, 1);
            const wanted = bar.getImageData(0, 0, 1, 1).data.join();
            const x = 72 + Math.floor(t.xScale()(e)), height = t.lanes.height;
            const column = pen.getImageData(x, 0, 1, height).data;
            return Array.from({ length: height }, (v, y) => column.slice(4 * y, 4 * y + 4).join())
                .includes(wanted);
        })(%d)""" % (TIMELINE, event))
        expect(lit, 'a bar')
        browser.run('window.npusim.explorer.go({})'.format(event))
        go_to(browser, '#events')
        row = text_of(browser, '#events ~ div tr.here, tr.here')
        expect(re.search(r'segment_\w+, aclrt\w+ [\d.]+ (µs|ms)', row), row)
        same(browser.run(TIMELINE + '.history.calls.length'), len(result['each_call']['event']))


@case
def pages_are_shown_where_a_replay_tells_of_some_frames_only(folder):
    count = 21500
    lines = [line.format(2 * MIB * i, i + 1) for i in range(count) for line in (
        'create h{1} size=2097152 device=0 page=2m', 'map r1+{0} size=2097152 handle=h{1}')]
    path = write_trace(folder / 'x.npt', 'info soc=Ascend910B1 devices=1',
                       'reserve r1 size={} flags=1 va=0x100000000000'.format(2 * MIB * count),
                       *lines)
    with emptied() as browser:
        opened(browser, report(folder, path))
        browser.run('window.npusim.explorer.go(43001)')
        go_to(browser, '#moment')
        panel = browser.run('window.npusim.explorer.moment.node.textContent')
        expect('21,500 pages of 2 MiB: 0 hold no live block, 0 are less than half live.' in panel,
               panel[-2000:])


@case
def segments_have_a_timeline_of_their_own(folder):
    page = report(folder, write(folder / 'x.pkl', snapshot({0: random_device(4)})))
    with emptied() as browser:
        opened(browser, page)
        go_to(browser, '#moment')
        browser.run('(() => { const s = document.querySelector(".controls select"); '
                    's.value = "1"; s.dispatchEvent(new Event("change")); })()')
        browser.settle()
        go_to(browser, '#growth')
        same(browser.errors, [], 'errors')
        expect('held' in text_of(browser, '.moment'), text_of(browser, '.moment'))
        words = browser.run('window.npusim.explorer.growth.words.textContent')
        expect(re.search(r'From start to event .*: \S+ \S+ held\.$', words), words)
        browser.settle()
        same(browser.run('(({ total, physical }) => [...total].findIndex((n, e) => '
                         'n !== physical[e]))(' + TIMELINE + '.history)'), -1,
             'segments are the physical memory')
        browser.wait('location.hash.includes("h=1")')
        left, top, width, height = browser.box('canvas.over')
        browser.click(left + width / 2, top + height - 20)
        expect('Segment0x' in text_of(browser, '#pinned'), text_of(browser, '#pinned'))


@case
def the_pinned_block_leads_to_its_neighbours_and_who_freed_it(folder):
    device = Device()
    device.segment_alloc(BASE, 20 * MIB)
    for i in range(3):
        device.alloc(BASE + 4 * MIB * i, 4 * MIB)
    device.free(BASE + 4 * MIB)
    for event in device.events:
        if event['action'].startswith('free'):
            event['frames'] = [dict(name='let_go', filename='/src/x.py', line=9)]
    with emptied() as browser:
        opened(browser, report(folder, write(folder / 'x.pkl', snapshot({0: device}))))
        browser.run('window.npusim.explorer.pin(1)')
        browser.settle()
        pinned = text_of(browser, '#pinned')
        expect('Freed bylet_go (/src/x.py:9)' in pinned, pinned)
        expect(re.search(r'Segment0x\w+, 20.00 MiB, 8.00 MiB of it free in 1 piece', pinned),
               pinned)
        for row, block in (('Above it', 2), ('Below it', 1), ('Below it', 0)):
            browser.run('[...document.querySelectorAll("#pinned dt")].find((d) => '
                        'd.textContent === {!r}).nextSibling.querySelector("button").click()'
                        .format(row))
            browser.settle()
            # by the end the middle one is gone: what lies beside is told of its own time
            same(browser.run(VIEW + '.pin'), block, row)
            browser.run('window.npusim.explorer.go(4)')
            browser.settle()
        browser.run('window.npusim.explorer.setFilter({ text: "0x12c1c0400" })')
        same(browser.run(TIMELINE + '.wanted.reduce((a, b) => a + b, 0)'), 1, 'by its address')
        press_button(browser, 'unpin')
        same(browser.run('document.querySelector("#pinned").hidden'), True, 'unpinned')


def told_file(folder):
    """A private pool beside the default one, rounding, metadata, stacks of frees, settings."""
    device = Device()
    for i in range(2):
        device.segment_alloc(BASE + 20 * MIB * i, 20 * MIB)
        device.events[-1]['frames'] = [dict(name='grow', filename='/src/pool.py', line=4)]
    for i, size in enumerate((1000, 3 * MIB, 700)):
        device.alloc(BASE + 10 * MIB * i, size)
        device.events[-1].update(user_metadata='step {}'.format(i), compile_context='N/A')
    device.events[-1]['forward_frames'] = ['  File "/src/net.py", line 7, in forward\n']
    device.free(BASE)
    for event in device.events[-2:]:
        event.update(user_metadata='teardown', frames=[dict(name='let_go', filename='/src/x.py',
                                                            line=9)])
    state = snapshot({0: device})
    pools = dict(zip([BASE, BASE + 20 * MIB], [(0, 0), (1, 5)]))
    for segment in state['segments']:
        segment['segment_pool_id'] = pools[segment['address']]
        for block in segment['blocks']:
            if block['state'] == 'active_allocated' and block['address'] == BASE + 10 * MIB:
                extra = 2 * MIB
                at = segment['blocks'].index(block) + 1
                block['size'] += extra
                segment['blocks'][at]['address'] += extra
                segment['blocks'][at]['size'] -= extra
    state['allocator_settings'] = dict(max_split_size=-1, expandable_segments=False,
                                       garbage_collection_threshold=0.8,
                                       roundup_power2_divisions={'1': 4, '2': 0})
    return write(folder / 'told.pkl', state)


@case
def what_else_a_snapshot_tells_is_shown(folder):
    path = told_file(folder)
    same(npusim('convert', '--to', 'trace', path, folder / 'x.npt').returncode, 0)
    for file in path, folder / 'x.npt':
        data = Data(report(folder, file))
        frames = {f for own, bits in zip(data.column('block.site'), data.column('block.ended'))
                  if bits for f in data.frames(bits - 1 ^ own)}
        same(frames, {'let_go (/src/x.py:9)'}, file)
        frames = {f for site in data.column('row.site') for f in data.frames(site)}
        expect('grow (/src/pool.py:4)' in frames, file, frames)
        expect('max_split_size: -1\nexpandable_segments: False\n' in data.head['settings'] and
               'roundup_power2_divisions: 1: 4, 2: 0' in data.head['settings'], data.head)
    page = report(folder, path)
    data = Data(page)
    same(data.column('block.over'), [0, 2 * MIB, 1024 - 700], 'rounding that the file tells of')
    with emptied() as browser:
        opened(browser, page)
        browser.run('window.npusim.explorer.go(5)')
        go_to(browser, '#moment')
        panel = browser.run('window.npusim.explorer.moment.node.textContent')
        # of the first, which is gone at the end, to a multiple of 512 bytes
        for wanted in '2.00 MiBlost to rounding', '20.00 MiBprivate pool (1, 5)':
            expect(wanted in panel, wanted, panel)
        same(browser.run('window.npusim.explorer.timeline.history.lost(0)'), 24, 'to 512 bytes')
        browser.run('window.npusim.explorer.pin(2)')
        browser.settle()
        pinned = text_of(browser, '#pinned')
        for wanted in ('Noteduser_metadata: step 2', 'forward_frames:   File "/src/net.py", line 7',
                       'Lost to rounding324 B', 'private pool (1, 5)', '324 B lost to rounding'):
            expect(wanted in pinned, wanted, pinned)
        go_to(browser, '#events')
        rows = browser.run('window.npusim.explorer.events.node.textContent')
        expect('free: user_metadata: teardown' in rows, rows)
        settings = text_of(browser, '#timeline details dl')
        expect('garbage_collection_threshold0.8' in settings, settings)


@case
def all_of_it_is_named_for_those_who_do_not_see_it(folder):
    """What checkers of accessibility look at: names, roles, headings, ids, contrast."""
    page = report(folder, steps_file(folder), steps_file(folder, 'more.pkl', keep=3))
    for dark in False, True:
        with emptied(dark=dark) as browser:
            opened(browser, page)
            browser.run('window.npusim.explorer.pin(3)')
            for part in '#moment', '#events', '#growth', '#comparison':
                go_to(browser, part)
            wrong = browser.run("""(() => {
                const wrong = [], all = (selector) => [...document.querySelectorAll(selector)];
                const label = (e) => e.getAttribute('aria-label');
                const named = (e) => label(e) || (e.tagName === 'BUTTON' && e.textContent.trim())
                    || (e.labels && [...e.labels].some((l) => l.textContent.trim()));
                all('input, select, button').filter((e) => !named(e))
                    .forEach((e) => wrong.push('no name: ' + e.outerHTML.slice(0, 80)));
                all('canvas, svg').filter((e) => !e.closest('[aria-hidden]') && !label(e))
                    .forEach((e) => wrong.push('no name: ' + e.outerHTML.slice(0, 80)));
                all('th:not([scope])').forEach((e) => wrong.push('no scope: ' + e.textContent));
                all('.wide').filter((e) => e.tabIndex < 0)
                    .forEach(() => wrong.push('cannot be scrolled by keys'));
                const ids = all('[id]').map((e) => e.id);
                wrong.push(...ids.filter((id, i) => ids.indexOf(id) !== i));
                let level = 0;
                for (const h of all('h1, h2, h3, h4')) {
                    const next = Number(h.tagName[1]);
                    if (next > level + 1)
                        wrong.push('a level is left out: ' + h.textContent);
                    level = next;
                }
                const light = (text) => {
                    const [r, g, b] = text.match(/[\\d.]+/g).map((v) => (v /= 255) <= 0.03928
                        ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
                };
                const style = (e, name) => getComputedStyle(e)[name];
                for (const e of all('p, td, th, button, summary, dt, dd, .frame, .cell, label')) {
                    let back = e;
                    while (back && style(back, 'backgroundColor') === 'rgba(0, 0, 0, 0)')
                        back = back.parentElement;
                    const a = light(style(e, 'color'));
                    const b = light(style(back || document.body, 'backgroundColor'));
                    const contrast = Math.max(a, b) / Math.min(a, b);
                    if (e.textContent.trim() && contrast < 4.5)
                        wrong.push('contrast ' + contrast.toFixed(1) + ': ' + e.textContent);
                }
                return [document.documentElement.lang, document.title !== '', wrong.slice(0, 12)];
            })()""")
            same(wrong, ['en', True, []], 'dark' if dark else 'light')


@case
def events_step_and_growth_names_what_stays(folder):
    page = report(folder, steps_file(folder))
    with emptied() as browser:
        opened(browser, page)
        press_button(browser, 'Failure')
        at = browser.run(VIEW + '.at')
        same(at, browser.run(TIMELINE + '.history.events'), 'the failure is the last event')
        go_to(browser, '#events')
        table = browser.run('window.npusim.explorer.events.node.textContent')
        expect('oom' in table and '1.00 MiB were free' in table, table)
        press_button(browser, 'Previous')
        same(browser.run(VIEW + '.at'), at - 1, 'an event before')
        press_button(browser, 'Peak')
        same(browser.run(VIEW + '.at'), browser.run(TIMELINE + '.history.peak'), 'the peak')
        go_to(browser, '#growth')
        rows = browser.run('window.npusim.explorer.growth.table.rows'
                           '.map((r) => [r.name, r.bytes, r.blocks])')
        same(rows[0] if rows[0][0].startswith('load') else rows[1],
             ['load (/src/weights.py:3)', 100 * MIB, 1], 'loaded')
        expect(['cache (/src/cache.py:5)', 20 * MIB, 10] in rows and len(rows) == 2, rows)


@case
def a_block_that_outlives_the_others_of_its_place_is_named(folder):
    device = Device()
    device.segment_alloc(BASE, 20 * MIB)
    device.alloc(BASE + 10 * MIB, MIB)
    for i in range(5):
        device.alloc(BASE + i * MIB, MIB)
        device.free(BASE + i * MIB)
    with emptied() as browser:
        opened(browser, report(folder, write(folder / 'x.pkl', snapshot({0: device}))))
        go_to(browser, '#growth')
        rows = ('[...document.querySelectorAll("[aria-label=\'blocks that live long\'] tbody tr")]'
                '.map((r) => [...r.children].slice(0, 3).map((c) => c.textContent))')
        events = len(device.events)
        same(browser.run(rows), [['1.00 MiB', str(events - 2), '2']], 'age, and the others')
        # the lanes: live, physical, and what is held but not live, each as high as it is
        lit = browser.run("""(() => {
            const t = %s, pen = t.lanes.getContext('2d'), x = 72 + (t.width >> 1);
            const at = (y) => [...pen.getImageData(x, y, 1, 1).data];
            const line = (name) => {
                const bar = document.createElement('canvas').getContext('2d');
                bar.fillStyle = getComputedStyle(document.documentElement)
                    .getPropertyValue('--' + name);
                bar.fillRect(0, 0, 1, 1);
                return bar.getImageData(0, 0, 1, 1).data;
            };
            const near = (a, b) => a.reduce((sum, v, i) => sum + Math.abs(v - b[i]), 0);
            const best = (name, from, to) => [...Array(to - from).keys()].map((i) => from + i)
                .sort((a, b) => near(at(a), line(name)) - near(at(b), line(name)))[0];
            return [best('c1', 0, 74), best('text', 0, 74), best('c2', 80, 120)];
        })()""" % TIMELINE)
        for got, wanted in zip(lit, (72 - 56 * 1.5 / 20, 72 - 56, 118 - 36 * 0.92)):
            expect(abs(got - wanted) < 4, got, wanted, lit)


@case
def a_database_of_memscope_has_a_timeline(folder):
    head = ['ID', 'Event', 'Event Type', 'Name', 'Timestamp(ns)', 'Process Id', 'Thread Id',
            'Device Id', 'Ptr', 'Attr', 'Call Stack(Python)', 'Call Stack(C)']
    rows, now = [], 1779862930549834990
    for i in range(30):
        rows.append([i, 'MALLOC' if i < 20 else 'FREE', 'PTA' if i else 'HAL', 'N/A',
                     now + 1000000 * i, 1, 1, '0', hex(BASE + (i % 20) * MIB),
                     '{{"addr":"{:#x}","size":"{}"}}'.format(BASE + i % 20 * MIB,
                                                              MIB if i else 64 * MIB),
                     '/src/a.py(11): step\n', ''])
    del rows[20]
    with contextlib.closing(sqlite3.connect(folder / 'dump.db')) as db:
        db.execute('CREATE TABLE memscope_dump ({})'.format(','.join(
            '"{}" TEXT'.format(name) for name in head)))
        db.executemany('INSERT INTO memscope_dump VALUES ({})'.format(','.join('?' * len(head))),
                       rows)
        db.commit()
    page = report(folder, folder / 'dump.db')
    data = Data(page)
    same((data.head['time'], len(data.column('block.size')), data.live(20), data.live(29)),
         ('host', 19, 19 * MIB, 10 * MIB), 'blocks with times')
    with emptied() as browser:
        opened(browser, page)
        browser.run(VIEW + '.axis = "time"; {}.drawNow()'.format(TIMELINE))
        same(browser.run('{0}.history.time.at(-1) - {0}.history.time[1]'.format(TIMELINE)), 29e6)
        same(browser.run(TIMELINE + '.history.stacks.name({}.history.site[3])'.format(TIMELINE)),
             '/src/a.py(11): step')


@case
def two_recordings_are_compared_by_stack(folder):
    page = report(folder, steps_file(folder), steps_file(folder, 'more.pkl', keep=3))
    with emptied() as browser:
        opened(browser, page)
        browser.run('(() => { const s = document.querySelectorAll("#comparison select")[2]; '
                    's.value = "end"; s.dispatchEvent(new Event("change")); })()')
        text = text_of(browser, '#comparison tbody')
        expect(re.search(r'main \(src/train.py:92\)\+10.00 MiB20.00 MiB30.00 MiB0', text), text)
        at = 'document.querySelectorAll("#comparison select")[2]'
        same(browser.run('[...{}.options].map((o) => o.value)'.format(at)), ['peak', 'end', 'oom'])
        browser.run('{0}.value = "oom"; {0}.dispatchEvent(new Event("change"))'.format(at))
        same(text_of(browser, '#comparison tbody'), text, 'the failure is the last event')
        go_to(browser, '#comparison')
        browser.wait('document.querySelectorAll("#comparison svg.chart > path").length === 4')


@case
def only_moments_that_both_have_are_compared(folder):
    path = steps_file(folder)
    result = replay(path, '--at', 'end')
    moments = result['devices'][0]['moments']
    expect({'peak', 'end'} <= {m['moment'] for m in moments}, moments)
    for kept, offered in (['end', ['end']], ['at', []]):
        for m in moments:
            m['moment'] = kept if m['moment'] in ('end', 'at') else 'no such'
        (folder / 'r.json').write_text(json.dumps(result))
        page = report(folder, folder / 'r.json', steps_file(folder, 'more.pkl', keep=3))
        with emptied() as browser:
            opened(browser, page)
            same(browser.run('[...document.querySelectorAll("#comparison select")].slice(2)'
                             '.flatMap((s) => [...s.options].map((o) => o.value))'), offered, kept)
            text = text_of(browser, '#comparison')
            expect(('One of them has no such moment.' in text) == (not offered), text)
            if offered:
                expect('10.00 MiB' in text_of(browser, '#comparison [role=status]'), text)


@case
def many_results_have_contents_and_a_filter(folder):
    result = replay(steps_file(folder))
    files = []
    for i in range(55):
        files.append(folder / 'r{:02}.json'.format(i))
        files[-1].write_text(json.dumps(dict(result, policy='policy{}'.format(i))))
    page = report(folder, *files)
    with emptied() as browser:
        opened(browser, page)
        height = browser.run('document.documentElement.scrollHeight')
        expect(height < 12000, height)
        browser.run('(() => { const i = document.querySelector("#results input[type=search]"); '
                    'i.value = "policy1"; i.dispatchEvent(new Event("input")); })()')
        press_button(browser, 'All of these', '#results')
        browser.settle()
        same(browser.run('document.querySelectorAll("#summary .card").length'), 11, 'results')
        expect(browser.run('document.querySelectorAll("nav button").length') > 6, 'contents')
        press_button(browser, 'None', '#results')
        same((browser.run('document.querySelectorAll("#summary .card").length'), browser.errors,
              browser.run('document.documentElement.dataset.broken || ""')), (0, [], ''), 'none')


@case
def a_share_of_nothing_is_not_told(folder):
    result = replay(steps_file(folder))
    for moment in result['devices'][0]['moments']:
        moment['live_bytes'] = 0
    (folder / 'r.json').write_text(json.dumps(result))
    with emptied() as browser:
        opened(browser, report(folder, folder / 'r.json'))
        shares = browser.run('[...document.querySelectorAll("table")]'
                             '.filter((t) => /programBlocksLive/.test(t.textContent))'
                             '.flatMap((t) => [...t.querySelectorAll("tbody tr")])'
                             '.map((r) => r.lastElementChild.textContent)')
        expect(shares and not any(shares), shares)


@case
def a_phone_and_the_dark_show_all_of_it(folder):
    page = report(folder, steps_file(folder))
    for width, dark in ((420, False), (1300, True), (420, True)):
        with emptied(width=width, dark=dark) as browser:
            opened(browser, page)
            same(browser.run('document.documentElement.scrollWidth'), width, 'width')
            back = browser.run('getComputedStyle(document.body).backgroundColor')
            expect((back == 'rgb(22, 22, 21)') == dark, back)


@case
def filters_colours_and_the_axis_change_what_is_drawn(folder):
    page = report(folder, steps_file(folder))
    with emptied() as browser:
        opened(browser, page)
        kept = 'window.npusim.explorer.timeline.wanted.reduce((a, b) => a + b, 0)'
        all_ = browser.run(kept)
        for change, wanted in (('min: "100M"', 1), ('min: "", max: "2M", text: "cache.py"', 10),
                               ('max: "", text: "", life: "100"', 10), ('life: "", end: true', 11),
                               ('end: false, text: "no such"', 0), ('text: ""', all_)):
            browser.run('window.npusim.explorer.setFilter({ ' + change + ' })')
            same(browser.run(kept), wanted, change)
        for mode, least in (('site', 20), ('stream', 1), ('size', 6), ('age', 30), ('life', 2),
                            ('category', 2)):
            browser.run(VIEW + '.colour = {!r}; window.npusim.explorer.timeline.refresh()'.format(
                mode))
            colours = browser.run('new Set({}.look.colours).size'.format(TIMELINE))
            expect(colours >= least, mode, colours)
        browser.run('window.npusim.explorer.drawControls()')
        # a pattern that is edited
        browser.run('(() => { const i = document.querySelectorAll(".legend input")[2]; '
                    'i.value = "weights"; i.dispatchEvent(new Event("input")); })()')
        expect(browser.run('{0}.look.key(0)'.format(TIMELINE)) == 'parameters', 'a category')
        names = text_of(browser, '.legend summary')
        expect('parameters' in names, 'the legend', names)
        at = browser.run(TIMELINE + '.columns[Math.floor({0}.width / 2)]'.format(TIMELINE))
        browser.run(VIEW + '.axis = "time"; {}.drawNow()'.format(TIMELINE))
        # an event takes a microsecond in this file, but for the last
        middle = browser.run(TIMELINE + '.columns[Math.floor({0}.width / 2)]'.format(TIMELINE))
        expect(abs(middle - at) < 12, at, middle)


@case
def a_view_is_saved_as_a_picture(folder):
    page = report(folder, steps_file(folder))
    with emptied() as browser:
        opened(browser, page)
        for layout in 'stack', 'address':
            browser.run(VIEW + '.layout = {!r}; '.format(layout) + TIMELINE + '.drawNow()')
            sizes = browser.run('Promise.all([{0}.savePng(), {0}.saveSvg()])'.format(TIMELINE))
            expect(sizes[0] > 5000 and sizes[1] > 20000, layout, sizes)
        same(browser.errors, [], 'errors')


if __name__ == '__main__':
    main()
