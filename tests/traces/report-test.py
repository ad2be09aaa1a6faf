#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npusim record and npusim report from outside; the page in headless Chromium where there is one.
# usage: report-test.py NPUSIM SAMPLE-WORKLOAD SAMPLE-TRACE

import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

from browser import emptied
from command import (BASE, MIB, NPUSIM, Device, case, environment, expect, main, npusim, replay,
                     same, snapshot, wait_until, write, write_trace)

WORKLOAD, SAMPLE = sys.argv[2], sys.argv[3]


SECTIONS = ['At a glance', 'Memory over time', 'Fragmentation over time',
            'Calls that get, give and map memory', 'Page table, TLB and HBM',
            'Memory at one point in time', 'All figures']


class Page:
    """The page of some results as the browser has it after its scripts."""

    def __init__(self, folder, *results, broken=None):
        files = []
        for i, result in enumerate(results):
            files.append(folder / 'result-{}.json'.format(i + 1))
            files[-1].write_text(json.dumps(result))
        self.file = folder / 'report.html'
        run = npusim('report', *files, '-o', self.file)
        same(run.returncode, 0, run.stderr)
        with emptied() as browser:
            browser.open(self.file)
            browser.settle()
            same((browser.errors, browser.asked), ([], []), 'errors, and what a network was asked')
            self.root = browser.run('Object.assign({}, document.documentElement.dataset)')
            expect('error' not in self.root, self.root)
            same(self.root.get('broken'), broken, 'parts that could not be shown')
            self.sections = browser.run('[...document.querySelectorAll("section > h2")]'
                                        '.map((h) => h.textContent)')
            self.text = ' '.join(browser.run('document.querySelector("main").textContent').split())
            self.charts, self.strips = browser.run(
                '["svg.chart", "canvas.strip"].map((s) => document.querySelectorAll(s).length)')

    def shows(self, *texts):
        for text in texts:
            expect(text in self.text, repr(text), 'is not in', self.text)


def snapshot_file(folder):
    """Segments of which one half is in use, and then a block that fits in no half."""
    device = Device()

    def alloc(address, size, *stack):
        device.alloc(address, size)
        device.events[-1]['frames'] = [dict(name=name, filename=file, line=line)
                                       for name, file, line in stack]

    for i in range(4):
        device.segment_alloc(BASE + (i << 40), 400 * MIB)
        alloc(BASE + (i << 40), 400 * MIB, ('warm', '/src/train.py', 2))
    for i in range(4):
        device.free(BASE + (i << 40))
    for i in range(4):
        for half in range(2):
            alloc(BASE + (i << 40) + half * 200 * MIB, 200 * MIB - 512,
                  ('empty', '/x/site-packages/torch/a.py', 4), ('layer', '/src/model.py', 7 + half))
    for i in range(4):
        device.free(BASE + (i << 40))
    device.segment_alloc(BASE + (9 << 40), 300 * MIB)
    alloc(BASE + (9 << 40), 300 * MIB, ('burst', '/src/train.py', 9))
    return write(folder / 'crowd.pkl', snapshot({0: device}))


@case
def a_recorded_workload_has_its_blocks(folder):
    # where the program carries a sanitizer, it is not the first library any more
    env = environment(ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0')
    for more in ([], ['--preload']):
        trace = folder / 'one.npt'
        run = npusim('record', *more, '-o', trace, '--', WORKLOAD, env=env)
        same(run.returncode, 0, run.stderr)
        blocks = int(re.search(r'^blocks=(\d+)$', run.stdout, re.M).group(1))
        found = re.findall('alloc b', trace.read_text())
        same((len(found), blocks > 0), (blocks, True), 'blocks')


@case
def a_dash_is_standard_output_whatever_has_its_name(folder):
    (folder / '-').mkdir()
    run = npusim('replay', '--json', '-', os.path.abspath(SAMPLE), cwd=folder)
    same((run.returncode, run.stderr), (0, ''))
    json.loads(run.stdout)


@case
def what_is_no_file_is_never_replaced(folder):
    result = folder / 'r.json'
    same(npusim('replay', '--json', result, SAMPLE).returncode, 0)
    pipe = folder / 'pipe'
    os.mkfifo(pipe)
    for verb in (['record', '-o', pipe, '--', WORKLOAD], ['replay', '--json', pipe, SAMPLE],
                 ['report', '-o', pipe, result], ['convert', '--to', 'csv', SAMPLE, pipe]):
        with open(folder / 'got', 'wb') as got:
            reader = subprocess.Popen(['cat', pipe], stdout=got)
        run = npusim(*verb)
        same((run.returncode, reader.wait(timeout=60)), (0, 0), run.stderr)
        expect((folder / 'got').stat().st_size > 1000 and pipe.is_fifo(), verb)
    link = folder / 'link'
    (folder / 'target').write_text('old')
    link.symlink_to('target')
    for verb in (['record', '-o', link, '--', WORKLOAD], ['replay', '--json', link, SAMPLE],
                 ['report', '-o', link, result], ['convert', '--to', 'csv', SAMPLE, link]):
        (folder / 'target').write_text('old')
        same(npusim(*verb).returncode, 0, verb)
        expect(link.is_symlink() and (folder / 'target').stat().st_size > 1000, verb)
    same(sorted(p.name for p in folder.iterdir()), ['got', 'link', 'pipe', 'r.json', 'target'],
         'files')


@case
def what_cannot_run_leaves_no_trace(folder):
    for program, status in ((folder, 126), (folder / 'missing', 127)):
        same(npusim('record', '-o', folder / 't.npt', '--', program).returncode, status, 'status')
    run = npusim('record', '-o', folder, '--', WORKLOAD)
    same((run.returncode, run.stdout), (1, ''), 'a folder')
    expect('is a folder' in run.stderr, run.stderr)
    same(list(folder.iterdir()), [], 'files')


@case
def a_trace_is_no_result_and_a_result_no_trace(folder):
    result, empty = folder / 'r.json', folder / 'empty'
    same(npusim('replay', '--json', result, SAMPLE).returncode, 0)
    empty.touch()
    text = folder / 'text'
    text.write_text('neither\n')
    for args, says in ((['report', text], 'it is no JSON: a result is wanted, which npusim '
                        'replay --json RESULT writes'), (['report', text], 'not a kind of file'),
                       (['report', empty], 'the file is empty'),
                       (['replay', result], 'it is JSON, as a result of npusim replay'),
                       (['report', folder], 'Is a directory'),
                       (['report', folder / 'no'], 'No such file')):
        run = npusim(*args)
        same((run.returncode, run.stdout), (1, ''), args)
        expect(says in run.stderr and str(args[1]) in run.stderr, run.stderr)
    part = snapshot_file(folder)
    part.write_bytes(part.read_bytes()[:300])
    run = npusim('report', part)
    same(run.stderr, 'npusim report: {}: pickle damaged at byte 298: the file ends inside a value\n'
         .format(part), 'a part')
    same((run.returncode, run.stdout), (1, ''), 'a part')


@case
def a_snapshot_or_a_trace_is_replayed_for_its_report(folder):
    """The page has what it has of their results."""
    for path in snapshot_file(folder), pathlib.Path(SAMPLE):
        result, wanted, got = (folder / name for name in ('r.json', 'wanted.json', 'got.json'))
        same(npusim('replay', '--json', result, path).returncode, 0)
        same(npusim('report', '--json', wanted, result).returncode, 0)
        run = npusim('report', '--json', got, path)
        same((run.returncode, run.stdout, run.stderr), (0, '', ''), path)
        wanted, got = (json.loads(file.read_text()) for file in (wanted, got))
        same(wanted[0].pop('result_file'), 'r.json', 'a result')
        same(got[0].pop('result_file'), path.name, 'a trace')
        for result in got[0], wanted[0]:
            del result['wall_us']
        same(got, wanted, path)


@case
def several_processes_become_one_trace(folder):
    trace = folder / 'two.npt'
    script = '{0} >/dev/null & {0} >/dev/null; wait; exit 5'.format(WORKLOAD)
    run = npusim('record', '-o', trace, '--', 'sh', '-c', script)
    same(run.returncode, 5, run.stderr)
    text = trace.read_text()
    same(len(re.findall(r'^info process=\d+ program=', text, re.M)), 2, 'processes')
    stamps = {int(p) for p in re.findall(r' :(\d+)\.', text)}
    same(stamps, {1, 2}, 'process numbers')
    expect(not pathlib.Path(str(trace) + '.parts').exists(), 'the parts are left')
    one = replay(SAMPLE)['devices'][0]
    same(replay(trace)['devices'][0]['obtained_bytes'], 2 * one['obtained_bytes'], 'obtained')


def replaying(folder, path):
    """A report of a long trace, and its replay."""
    run = subprocess.Popen([NPUSIM, 'report', path, '-o', str(folder / 'page.html')],
                           env=environment(TMPDIR=str(folder)), stdin=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    children = pathlib.Path('/proc/{0}/task/{0}/children'.format(run.pid))

    def arguments(child):
        return pathlib.Path('/proc/{}/cmdline'.format(child)).read_bytes().split(b'\0')[1:2]

    wait_until(lambda: run.poll() is not None or (found := children.read_text().split()) and
               arguments(found[0]) == [b'replay'], 'no replay begins')
    return run, int(children.read_text().split()[0])


def long_trace(folder):
    return str(write_trace(folder / 'long.npt', *[
        'create h1 size=2097152 device=0 page=2m', 'release h1'] * 500000))


@case
def an_interrupted_report_leaves_nothing_behind(folder):
    temporary = folder / 'tmp'
    temporary.mkdir()
    run, replay = replaying(temporary, long_trace(folder))
    run.send_signal(signal.SIGTERM)
    same(run.wait(60), -signal.SIGTERM, 'status')
    same(list(temporary.iterdir()), [], 'temporary files')
    stat = pathlib.Path('/proc/{}/stat'.format(replay))
    wait_until(lambda: not stat.exists() or stat.read_text().rpartition(')')[2].split()[0] == 'Z',
               'the replay goes on')


@case
def a_replay_that_is_killed_is_the_reason(folder):
    path = long_trace(folder)
    for number in signal.SIGKILL, signal.SIGSEGV:
        run, replay = replaying(folder, path)
        os.kill(replay, number)
        same((run.communicate(timeout=60)[1], run.returncode),
             ('npusim report: {}: the replay: Child process killed by signal {}\n'.format(
                 path, int(number)), 1), number)


@case
def a_killed_program_leaves_a_trace(folder):
    trace = folder / 'killed.npt.gz'
    script = '{} >/dev/null; kill -9 $$'.format(WORKLOAD)
    run = npusim('record', '-o', trace, '--', 'sh', '-c', script)
    same(run.returncode, 137, run.stderr)
    expect(replay(trace)['events'] > 0, 'no events')


@case
def a_part_that_breaks_off_is_merged_up_to_its_last_line(folder):
    parts = folder / 'parts'
    parts.mkdir()
    (parts / 'a.npt').write_text('npusim-trace 1\n'
                                 'info start=1000\n@5 :1.1 export s1 handle=h1 key=0x7\n')
    (parts / 'b.npt').write_text('npusim-trace 1\ninfo start=1001\n'
                                 '@9 :1.1 import h1 share=s4 device=0 key=0x7\n@10 :1.1 crea')
    run = npusim('record', '--merge', folder, '-o', folder / 'm.npt')
    same((run.returncode, run.stdout), (1, ''), 'a folder without traces')
    expect('{}: none of the '.format(folder) in run.stderr, run.stderr)
    expect(not (folder / 'm.npt').exists(), 'left behind')
    run = npusim('record', '--merge', parts, '-o', folder / 'm.npt')
    same(run.returncode, 0, run.stderr)
    expect('broke off' in run.stderr, run.stderr)
    same((folder / 'm.npt').read_text().splitlines()[3:],
         ['@5 :1.1 export s1 handle=h1 key=0x7',
          '@10 :2.1 import h1 share=s1 device=0 key=0x7'], 'merged')


@case
def a_page_draws_every_part_without_errors_and_without_a_network(folder):
    path = snapshot_file(folder)
    small = ['--hbm', '2G', '--access', 'random', '--at', 'end']
    results = [replay(path, *small, '--policy', policy)
               for policy in ('as-recorded', 'native', 'caching', 'expandable')]
    results.append(replay(path, '--policy', 'caching', '--page', '1g', '--access', 'random'))
    page = Page(folder, *results)
    text = page.file.read_text()
    expect(not re.search(r'<(?:script|link|img)[^>]* (?:src|href)=', text), 'it loads something')
    same(page.sections, ['Results', 'Comparison', *SECTIONS], 'sections')
    # all on one axis; memory and kinds of each; fragmentation
    same(page.charts, 1 + 5 + 5 + 1, 'charts')
    same(page.strips, 5 * 2, 'maps')
    page.shows('5 replays side by side', 'caching, 1G pages', 'caching, 2M pages', 'TLB misses',
               'Bandwidth', 'layer (src/model.py:8)', 'Who held it', 'Frames of the device',
               'Fragmentation by kind')


@case
def a_lack_of_memory_and_who_has_room_are_told(folder):
    path = snapshot_file(folder)
    results = [replay(path, '--policy', policy, '--hbm', '1900M')
               for policy in ('caching', 'expandable')]
    expect('out_of_memory' in results[0]['devices'][0], 'caching has room')
    expect('out_of_memory' not in results[1]['devices'][0], 'expandable has none')
    page = Page(folder, *results)
    page.shows('the device had no room for 300.00 MiB more, which burst (src/train.py:9) asked '
               'for.', 'fragmentation. What was live', 'With expandable there was room for all.')


@case
def a_trace_of_calls_gives_a_whole_page(folder):
    page = Page(folder, replay(SAMPLE))
    same(page.sections, SECTIONS, 'sections')
    page.shows('No call sites in this file.', 'a language model is served', 'Median',
               'physical memory; where blocks lie is not told')


@case
def what_a_result_lacks_is_left_out(folder):
    result = replay(snapshot_file(folder))
    for name in ('series', 'moments', 'vmm_calls_by_kind'):
        del result['devices'][0][name]
    page = Page(folder, result)
    same(page.sections, ['At a glance', 'Page table, TLB and HBM', 'All figures'], 'sections')
    page.shows('1.86 GiB')
    same(page.charts, 0, 'charts')
    # as results were before there were moments: a series of two lists, no latency
    result = replay(snapshot_file(folder))
    device = result['devices'][0]
    del device['moments']
    device['series'] = {name: device['series'][name]
                        for name in ('event', 'live_bytes', 'physical_bytes')}
    for kind in device['vmm_calls_by_kind'].values():
        del kind['latency']
    page = Page(folder, result)
    same(page.sections, SECTIONS[:5] + SECTIONS[6:], 'sections')
    same(page.charts, 2, 'charts')
    page = Page(folder, dict(result, devices=[]))
    same(page.charts, 0, 'charts of no device')


@case
def a_part_in_another_shape_spoils_itself_alone(folder):
    result = replay(snapshot_file(folder))
    result['devices'][0]['moments'][0]['address_map'] = {'address': [1]}
    result['devices'][0]['vmm_calls_by_kind'] = {'aclrtFree': None}
    page = Page(folder, result, broken='calls moments')
    page.shows('This part of a result cannot be shown', 'Memory over time', 'All figures')
    result['devices'][0]['series'] = 'none'
    expect('Memory over time' not in Page(folder, result, broken='calls moments').sections)


@case
def a_partial_result_is_marked(folder):
    result = dict(replay(SAMPLE), complete=False, events_done=12)
    Page(folder, result).shows('interrupted after 12 events')


@case
def nothing_in_a_result_can_leave_its_place(folder):
    result = replay(SAMPLE)
    evil = ('</script><script>document.documentElement.dataset.error="x"</script>'
            '<img src=//x.y>&amp;')
    result.update(file=evil, about=evil, policy=evil)
    Page(folder, result).shows('<img src=//x.y>&amp;')


@case
def figures_and_series_are_written_as_csv_and_json(folder):
    path = snapshot_file(folder)
    results = [replay(path, '--policy', policy) for policy in ('native', 'caching')]
    files = [folder / 'a,b.json', folder / 'c.json']
    for file, result in zip(files, results):
        file.write_text(json.dumps(result))
    del results[1]['devices'][0]['series']
    files[1].write_text(json.dumps(results[1]))
    run = npusim('report', *files, '--csv', folder / 'f.csv', '--csv-series', folder / 's.csv',
                 '--json', folder / 'all.json')
    same((run.returncode, run.stdout, run.stderr), (0, '', ''), 'report')
    expect(not (folder / 'report.html').exists(), 'a page that no one asked for')
    rows = list(csv.DictReader((folder / 'f.csv').open()))
    same([row['result'] for row in rows], [str(file) for file in files], 'results')
    same([row['policy'] for row in rows], ['native', 'caching'], 'policies')
    for row, result in zip(rows, results):
        for name, value in result['devices'][0].items():
            if isinstance(value, (int, float)):
                same(float(row[name]), float(value), name)
    rows = list(csv.DictReader((folder / 's.csv').open()))
    series = results[0]['devices'][0]['series']
    same(list(rows[0]), ['result', 'policy', 'device'] + list(series), 'columns')
    for name, values in series.items():
        same([int(row[name]) for row in rows], values, name)
    same(json.loads((folder / 'all.json').read_text()),
         [dict(result, result_file=file.name) for file, result in zip(files, results)], 'JSON')
    same(npusim('report', files[0], '--csv-series', '-').stdout,
         (folder / 's.csv').read_text(), 'on the standard output')


@case
def what_is_no_result_is_refused(folder):
    result = replay(SAMPLE)
    for text, says in (('{', 'line 1, column 1: it is no valid JSON'),
                       ('{"a":\n 1,\n "b" 2}', 'line 3, column 4: it is no valid JSON'),
                       ('', 'x.json'), ('[]', 'no result'),
                       ('{"a": 1}', 'no result'),
                       ('{"program": "npusim replay", "schema": 99, "devices": []}',
                        'schema is 99, this npusim reads schema 2'),
                       (json.dumps(dict(result, schema=1)), 'schema is 1'),
                       (json.dumps(dict(result, schema='2')), 'schema is 0'),
                       (json.dumps(dict(result, devices={})), 'no result'),
                       (json.dumps(dict(result, devices=[3])), 'devices[0] is no object'),
                       (json.dumps(result)[:-100], 'it is no valid JSON')):
        (folder / 'x.json').write_text(text)
        run = npusim('report', folder / 'x.json', '-o', folder / 'x.html')
        same((run.returncode, run.stdout), (1, ''), text[:60])
        expect(says in run.stderr and str(folder / 'x.json') in run.stderr, run.stderr)
        expect(not (folder / 'x.html').exists(), 'a page')


if __name__ == '__main__':
    main()
