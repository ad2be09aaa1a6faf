#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Files that would make the command grow, hang or crash, files that are something else than what is
# wanted, and places that output must not go to.
# usage: hostile-test.py NPUSIM SAMPLE FOLDER-OF-FILES

import base64
import gzip
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import zlib

from command import (BASE, MIB, NPUSIM, Device, Skip, case, environment, expect, main, measured,
                     npusim, replay, same, snapshot, wait_until, write, write_trace)

SAMPLE = pathlib.Path(sys.argv[2])
CORPUS = pathlib.Path(sys.argv[3])  # right and wrong files, a folder for each reader
LIMIT = 32


def has(text, *parts):
    for part in parts:
        expect(part in text, repr(part), 'is not in', repr(text[:2000]))


def refused(args, status, *says):
    run = npusim(*args)
    same(run.returncode, status, '{} ({})'.format(args, run.stderr[:500]))
    has(run.stderr, *says)
    return run


# ---- memory ----

def beyond(args, *says):
    """It stops at the limit with status 4, says what wanted more, and has not had it."""
    run, peak = measured(*args, '--memory', '{}M'.format(LIMIT))
    same(run.returncode, 4, '{} ({})'.format(args, run.stderr[:500]))
    has(run.stderr, *says, '{}.00 MiB that --memory allows'.format(LIMIT))
    # sanitizers hold memory of their own
    if 'libasan' not in loaded() and 'libtsan' not in loaded():
        expect(peak <= LIMIT + 64, 'peak', peak, 'MiB')


def loaded(known=[]):
    if not known:
        known.append(subprocess.run(['ldd', NPUSIM], stdout=subprocess.PIPE, text=True).stdout)
    return known[0]


def packed(path, *parts):
    with gzip.open(path, 'wb', 1) as out:
        for part in parts:
            out.write(part)
    return path


@case
def pickles_that_unpack_to_gigabytes_stop_at_the_limit(folder):
    if 'ASAN_OPTIONS' in os.environ:
        raise Skip('a sanitizer keeps what was freed: memory says nothing')
    path = folder / 'bomb.pickle.gz'
    for part in (b']' * 1024, b'}' * 1024, b'N' * 1024, b'}}s' * 1024, b'(NNNNNNNNNNNNNNt' * 64,
                 b'(' * 1024, b'\x8c\x00' * 512):
        packed(path, b'\x80\x04}', *[part] * 8192)
        beyond(['replay', path], 'bomb.pickle.gz: pickle at byte ')
    beyond(['replay', packed(path, b'\x80\x04Nr\xff\xff\x6f\x00', b'0N' * 4000000)],
           'pickle at byte 3')
    beyond(['replay', packed(path, b'\x80\x04', *[bytes(MIB)] * 40)], ' of what it unpacks to')
    beyond(['convert', path, folder / 'out.npt'], ' of what it unpacks to')
    beyond(['diff', path, path], ' of what it unpacks to')


@case
def what_a_history_keeps_alive_stops_at_the_limit(folder):
    path = folder / 'a.npt.gz'
    packed(path, b'npusim-trace 1\n',
           b''.join(b'alloc b%d size=512 device=0\n' % number for number in range(400000)))
    for args in (['replay', path], ['diff', path, SAMPLE], ['convert', path, folder / 'out.csv']):
        # where it stops: at a record, or at the bytes of the next ones
        beyond(args, 'npusim {}: '.format(args[0]), ': it needs more memory than')
    small = folder / 'b.npt.gz'
    packed(small, b'npusim-trace 1\n',
           *[b'alloc b%d size=512 device=0\nfree b%d device=0\n' % (n, n) for n in range(1000)])
    same(npusim('replay', small, '--memory', '1G').returncode, 0, 'within the limit')


@case
def json_that_grows_stops_at_the_limit(folder):
    path = folder / 'a.json.gz'
    packed(path, b'{"program": "npusim replay",\n"x": [', *[b'1,' * 500] * 1000, b'1]}')
    for args in (['report', path, '-o', folder / 'a.html'], ['diff', path, path],
                 ['convert', path, folder / 'a.csv']):
        beyond(args, 'a.json.gz: line 2, column ')
    packed(path, b'{"x": "', *[bytes(b'x' * MIB)] * 40, b'"}')
    beyond(['report', path, '-o', folder / 'a.html'], 'a.json.gz: byte ',
           ' of what it unpacks to')


@case
def results_become_csv_within_the_limit(folder):
    path, out = folder / 'a.json', folder / 'a.csv'

    def write_result(*devices):
        path.write_text(json.dumps(dict(program='npusim replay', schema=2, devices=devices)))

    write_result(*[{'x%d' % n: n for n in range(20000)}] * 5)
    same(npusim('convert', path, out).returncode, 0, 'the same columns')
    write_result({'x%d' % n: n for n in range(20000)}, dict(x3=7), dict(y=1))
    same(npusim('convert', path, out).returncode, 0, 'many columns')
    heads, *rows = (line.split(',')[4:] for line in out.read_text().splitlines())
    same(heads, ['x%d' % n for n in range(20000)] + ['y'], 'columns')
    same(rows, [[str(n) for n in range(20000)] + [''], ['', '', '', '7'] + [''] * 19997,
                [''] * 20000 + ['1']], 'rows')
    write_result(*[{'x%d' % (40 * n + m): n for m in range(40)} for n in range(1000)])
    beyond(['convert', path, out], 'a.json: its CSV: ')
    beyond(['report', path, '--csv', out], 'a.json: its CSV: ')
    write_result(*[dict(device=n) for n in range(1025)])
    refused(['convert', path, out], 1, 'a.json: devices[1024] is no object, or one too many')
    write_result(dict(series=dict({'x%d' % n: [1] for n in range(1000)}, event=[1] * 40000)))
    beyond(['convert', '--series', path, out], 'a.json: its CSV: ')


@case
def of_devices_with_one_number_the_first_is_compared(folder):
    paths = [folder / 'a.json', folder / 'b.json']
    for value, path in enumerate(paths):
        devices = [{'x%d' % n: value for n in range(300)}] + [{}] * 999
        path.write_text(json.dumps(dict(program='npusim replay', schema=2, devices=devices)))
    run = npusim('diff', *paths, '--json', '-')
    same((run.returncode, run.stderr), (1, ''), 'they differ')
    same(len(json.loads(run.stdout)['figures']), 300, 'once')


@case
def names_and_stacks_take_no_more_time_than_their_size(folder):
    # texts that GLib's hash has in one place, and slices that lie in one another
    path = folder / 'a.npt.gz'
    names = (''.join('FY' if n >> bit & 1 else 'Ez' for bit in range(17)) for n in range(1 << 17))
    packed(path, b'npusim-trace 1\n', ''.join(
        'alloc b%d size=512 device=0 site=%s\n' % (n, name)
        for n, name in enumerate(names)).encode())
    same(npusim('convert', path, folder / 'a.csv').returncode, 0, 'names')
    events = [dict(ph='X', cat='cpu_op', name='', pid=1, tid=1, ts=n, dur=99999)
              for n in range(20000)]
    args = {'Device Type': 1, 'Device Id': 0, 'Addr': 512, 'Bytes': 512, 'Total Allocated': 0}
    events += [dict(ph='i', name='[memory]', pid=1, tid=1, ts=n, args=dict(args, Addr=512 * n))
               for n in range(20000, 40000)]
    path = folder / 'a.json'
    path.write_text(json.dumps(dict(traceEvents=events)))
    same(npusim('convert', path, folder / 'a.csv').returncode, 0, 'slices')


COLUMNS = ('ID', 'Event', 'Event Type', 'Timestamp(ns)', 'Process Id', 'Thread Id', 'Device Id',
           'Ptr', 'Attr', 'Call Stack(Python)', 'Call Stack(C)')


def database(path, *statements):
    try:
        import sqlite3
    except ImportError:
        raise Skip('this Python has no sqlite3')
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(*(statement if isinstance(statement, tuple) else (statement,)))
    db.commit()
    db.close()
    return path


@case
def databases_work_within_their_size(folder):
    names = ', '.join('"{}"'.format(c) for c in COLUMNS)
    values = ("i", "'SYSTEM'", "'x'", "i", "1", "1", "'0'", "'0x1'", "''", "''", "''")
    select = ', '.join('{} AS "{}"'.format(v, c) for v, c in zip(values, COLUMNS))
    numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) '
    view = 'CREATE VIEW memscope_dump AS ' + numbers + 'SELECT ' + select + ' FROM n'
    path = folder / 'a.db'
    for end in ('', ' WHERE i < 0'):
        refused(['replay', database(path, view + end)], 1, 'a.db: ', 'memscope_dump, behind row ',
                'more steps than a table in a file of this size')
    wide = view.replace("''", 'hex(zeroblob(8000000))').replace("'x'", 'hex(zeroblob(8000000))')
    beyond(['replay', database(path, wide)], 'a.db: ', 'the database, memscope_dump, behind row ')
    table = 'CREATE TABLE memscope_dump ({})'.format(names)
    row = 'INSERT INTO memscope_dump VALUES (1, ?, ?, 5, 1, 1, 0, 1, ?, ?, ?)'
    big = (row, ('SYSTEM', 'x', '', bytes(20 * MIB), ''))
    refused(['replay', database(path, table, big)], 1, 'a value of more than 16 MiB')
    got = npusim('replay', database(path, table, (row, ('SYSTEM', 'x', '', '', ''))))
    same((got.returncode, got.stderr), (0, ''), 'a table')


@case
def comments_without_an_end_are_read_once_or_refused(folder):
    path = folder / 'a.npt.gz'
    packed(path, b'npusim-trace 1\n', *[b'# nothing\n' * 10000] * 300)
    run = npusim('replay', path, '--memory', '64M')
    same((run.returncode, run.stderr), (0, ''), 'comments')
    path = folder / 'a.json'
    for comment in ('// no\n', '/* no */', '# no\n'):
        path.write_text('\n  ' + '{\n' + comment + '}')
        refused(['report', path, '-o', folder / 'a.html'], 1, 'a.json: line 3, column 1: a comment')
    path.write_text('[{}, {}]\n {}')
    refused(['report', path, '-o', folder / 'a.html'], 1, 'line 2, column 2: one more document')


@case
def the_limit_is_a_size(folder):
    for verb in (['replay', SAMPLE], ['report', SAMPLE], ['diff', SAMPLE, SAMPLE],
                 ['convert', SAMPLE, '-']):
        for value in ('5', '15M', 'much', '-1', ''):
            refused([*verb, '--memory', value], 2, '--memory=' + value, 'from 16.00 MiB on')


@case
def damaged_files_are_read_or_refused_by_name(folder):
    files = [SAMPLE, *(max(kind.iterdir(), key=lambda path: path.stat().st_size)
                       for kind in sorted(CORPUS.iterdir()))]
    outcomes = {}
    for number, whole in enumerate(files):
        data = whole.read_bytes()
        middle = len(data) // 2
        for what, bad in [('cut', data[:middle]), ('cut near the end', data[:-1]),
                          ('cut near the start', data[:20]),
                          ('a bit', data[:middle] + bytes([data[middle] ^ 64]) + data[middle + 1:]),
                          ('zeros', data[:middle] + bytes(64) + data[middle + 64:]),
                          ('ones', data[:middle] + b'\xff' * 64 + data[middle + 64:]),
                          ('twice', data + data), ('without its start', data[3:]),
                          ('a hole', data[:middle] + data[middle + 7:]),
                          ('packed and cut', gzip.compress(data, 1)[:-9])]:
            path = folder / 'damaged-{}'.format(number)
            path.write_bytes(bad)
            run = npusim('convert', '--to', 'csv', path, '-')
            expect(run.returncode in (0, 1), whole.name, what, run.returncode, run.stderr)
            if run.returncode:
                expect(run.stderr.startswith('npusim convert: {}: '.format(path)) and
                       run.stderr.count('\n') == 1, whole.name, what, run.stderr)
            outcomes[run.returncode] = outcomes.get(run.returncode, 0) + 1
    expect(sum(outcomes.values()) >= 80 and outcomes[1] >= 40, outcomes)


@case
def long_names_and_stacks_are_read_in_part(folder):
    name = 'x' * 30000000
    frame = dict(name=name, filename='/usr/lib/python3/dist-packages/' + name, line=1)
    events = [dict(action='alloc', addr=BASE + 512 * n, size=512, stream=0, time_us=1,
                   frames=[frame] * 20000) for n in range(20)]
    events += [dict(action=name, addr=0, size=0, stream=0)] * 20
    path = write(folder / 'a.pickle', dict(segments=[], device_traces=[events]))
    same(npusim('convert', path, folder / 'a.npt', '--memory', '256M').returncode, 0, 'status')
    rows = 'ID,Event,Event Type,Timestamp(ns),Process Id,Thread Id,Device Id,Ptr,Attr,' \
           'Call Stack(Python),Call Stack(C)\n'
    stack = 'f (a.py:1)\n' * 1000000
    (folder / 'a.csv').write_text(
        rows + '1,MALLOC,PTA,5,1,1,0,4096,{size:512},"' + stack + '",\n')
    same(npusim('replay', folder / 'a.csv', '--memory', '64M').returncode, 0, 'status')
    (folder / 'a.csv').write_text(rows + '1' + ',' * 9000000)
    refused(['replay', folder / 'a.csv', '--memory', '64M'], 1, 'line 2: a row of more than')


@case
def what_events_tell_is_read_in_part(folder):
    told = [['y' * 5000] * 2000] * 2000  # which pickle names again and again
    events = [dict(action='alloc', addr=BASE + 512 * n, size=512, stream=0, time_us=1,
                   user_metadata=[n, told], forward_frames=told) for n in range(500)]
    path = write(folder / 'a.pickle', dict(segments=[], device_traces=[events],
                                           allocator_settings={'x' * 5000 + str(n): 'z' * 5000
                                                               for n in range(40)}))
    same(npusim('convert', path, folder / 'a.npt', '--memory', '64M').returncode, 0, 'status')
    same(npusim('replay', folder / 'a.npt').returncode, 0, 'what was written is read')


# ---- JSON that is no result ----

@case
def deep_json_is_refused_with_its_place(folder):
    path = folder / 'deep.json'
    for text in ('[' * 100000, '{"a":' * 100000, '[' * 129 + ']' * 129,
                 '{"a": ' + '[' * 100000 + ']' * 100000 + '}'):
        path.write_text('\n' + text)
        for args, status in ((['report', path, '-o', folder / 'a.html'], 1),
                             (['diff', path, path], 2), (['convert', path, folder / 'a.csv'], 1)):
            refused(args, status, 'deep.json: line 2, column ', 'more than 128 deep')
        refused(['replay', path], 1, 'it is JSON')
    path.write_text('[' * 128 + ']' * 128)
    refused(['report', path, '-o', folder / 'a.html'], 1, 'no result')


@case
def half_of_a_surrogate_pair_is_refused_with_its_place(folder):
    path = folder / 'a.json'
    for text in ('\\ud83d', '\\ud83d\\u0041', '\\ud83d\\ud83d\\ude00', '\\uDE00a', '\\ud83d\\u'):
        path.write_text('{"segments": [],\n"x": "' + text + '"}')
        refused(['replay', path], 1, 'a.json: line 2, column ', 'half of a surrogate pair')
    path.write_text('{"segments": [], "x": "\\\\ud83d \\ud83d\\uDE00"}')
    same(npusim('replay', path).returncode, 0, 'a whole pair, and no escape')


@case
def rows_at_places_that_no_number_holds_are_compared(folder):
    a, b = folder / 'a.json', folder / 'b.json'

    def series(path, rows, end):
        path.write_text('{"program": "npusim replay", "schema": 2, "devices": [{"device": 0, '
                        '"series": {"event": [' + rows + '1e999], "live_bytes": [' +
                        '7, ' * bool(rows) + end + ']}}]}')

    for rows in ('1, ', ''):
        series(a, rows, '8')
        series(b, rows, '9')
        run = npusim('diff', a, b, '--json', '-')
        same((run.returncode, run.stderr), (1, ''), rows)
        figure, = json.loads(run.stdout)['figures']
        same((figure['name'], figure['change']), ('series.live_bytes, furthest apart', 1), rows)
        same(npusim('diff', a, a).stdout, npusim('diff', b, b).stdout, 'no difference')


@case
def numbers_that_json_does_not_have_are_null(folder):
    def number(text):
        path = folder / (text + '.json')
        path.write_text('{"program": "npusim replay", "schema": 2, "devices": [], "x": %s}' % text)
        return path

    def refuse(constant):
        raise AssertionError(constant + ' is no JSON')

    for a, b, change in (('1.5', '1e999', None), ('-1e999', '1.5', None),
                         ('1.5e308', '-1.5e308', None), ('1.5', '2.5', 1)):
        run = npusim('diff', number(a), number(b), '--json', '-')
        same((run.returncode, run.stderr), (1, ''), (a, b))
        figure, = json.loads(run.stdout, parse_constant=refuse)['figures']
        same([figure['a'], figure['b'], figure['change']],
             [None if '999' in text else float(text) for text in (a, b)] + [change], (a, b))


@case
def numbers_without_a_fraction_stay_numbers(folder):
    path, page = folder / 'a.json', folder / 'a.html'
    text = 'x": 1e+18.0, "inf.0 \\'
    path.write_text('{"program": "npusim replay", "schema": 2, "devices": [], "text": %s, "list": '
                    '[1e18, -1e22, 1e999, -1e999, 1.5]}' % json.dumps(text))
    same(npusim('report', path, '-o', page, '--json', folder / 'b.json').returncode, 0, 'report')
    for written in ((folder / 'b.json').read_text(),
                    re.search('id="data">([^<]*)', page.read_text())[1]):
        got, = json.loads(written)
        same((got['list'], got['text']), ([1e18, -1e22, None, None, 1.5], text), written)


@case
def what_a_profile_lacks_is_told_with_the_file(folder):
    path = write_trace(folder / 'a.npt', '@1 alloc b1 size=512 device=0')
    for words, says in ((['--at=end'], 'the file has no call stacks'),
                        (['--at=7', '--since=5'], 'the file has no call stacks')):
        refused(['replay', path, *words, '--profile', folder / 'a.folded'], 1,
                'npusim replay: {}: {}'.format(path, says))


@case
def a_control_character_in_a_name_is_escaped(folder):
    path, page = folder / 'a.npt', folder / 'a.html'
    path.write_text('npusim-trace 1\n@1 segment_alloc a1 size=2097152 device=0\n'
                    '@2 alloc b1 size=512 device=0 at=a1+0 site=x%1Fy%01%22%20(a.py:3)\n')
    name = 'x\x1fy\x01" (a.py:3)'
    same(replay(path)['devices'][0]['moments'][0]['holders'][0]['site'], name, 'result')
    events = json.loads(npusim('convert', '--to', 'chrome', path, '-').stdout)['traceEvents']
    same([e['args']['stack'] for e in events if e.get('cat') == 'block'], [[name]], 'Chrome')
    same(npusim('replay', path, '--profile', folder / 'a.speedscope.json').returncode, 0, 'profile')
    profile = json.loads((folder / 'a.speedscope.json').read_text())
    expect({'name': name} in profile['shared']['frames'], profile)
    same(npusim('report', path, '-o', page).returncode, 0, 'report')
    data, history = re.findall(r'<script type="[a-z/]*" id="[a-z0-9-]*">([^<]*)', page.read_text())
    same(json.loads(data)[0]['devices'][0]['moments'][0]['holders'][0]['site'], name, 'page')
    packed_head = zlib.decompress(base64.b64decode(history))
    length, = struct.unpack('<I', packed_head[:4])
    expect(name in json.loads(packed_head[4:4 + length])['texts'], packed_head[:4 + length])


SEGMENT = dict(device=0, address=BASE, total_size=2 * MIB, allocated_size=512, active_size=512,
               stream=0, segment_type='small', is_expandable=False, frames=[],
               blocks=[dict(address=BASE, size=512, requested_size=512, state='active_allocated'),
                       dict(address=BASE + 512, size=2 * MIB - 512, state='inactive')])


@case
def snapshots_of_all_kinds_are_read(folder):
    device = Device()
    device.segment_alloc(BASE, 2 * MIB)
    device.alloc(BASE, 512)
    name = 'pas \u00e0 pas \U0001f600'
    device.events[-1]['frames'] = [dict(name=name, filename='/src/a.py', line=3)]
    whole = snapshot({0: device})
    state = [SEGMENT]
    pickles = [write(folder / 'whole.pickle', whole), write(folder / 'state.pickle', state)]
    texts = []
    for value, pickled in zip((whole, state), pickles):
        path = folder / (pickled.stem + '.json')
        path.write_text(json.dumps(value))
        texts.append(path)
        same(npusim('diff', path, pickled).returncode, 0, path)
        want, got = replay(pickled), replay(path)
        for result in (want, got):
            del result['file'], result['wall_us']
        same(got, want, path)
        run = npusim('convert', path, folder / 'a.csv')
        same((run.returncode, run.stderr), (0, ''), path)
        run = npusim('report', path, '-o', folder / 'a.html')
        same(run.returncode, 0, run.stderr)
    holder = replay(texts[0])['devices'][0]['moments'][0]['holders'][0]
    same(holder['site'], name + ' (/src/a.py:3)', 'letters')
    # a state alone: what is live, and that it is all
    for path in (texts[1], pickles[1]):
        got = replay(path)
        has(got['about'], 'it has no history', '_record_memory_history()')
        same((got['devices'][0]['start_live_bytes'], got['events']), (512, 0), path)
        text = npusim('convert', '--to', 'trace', path, '-').stdout
        has(text, 'it%20has%20no%20history', 'start=1')
    for damaged in ('[', '{"segments": [}', '{"segments": 1}', json.dumps(whole)[:-9]):
        texts[0].write_text(damaged)
        refused(['replay', texts[0]], 1, str(texts[0]) + ': ')
    texts[0].write_text('{"segments":\n[}')
    refused(['replay', texts[0]], 1, 'whole.json: line 2, column ', ': it is no valid JSON: ')
    refused(['replay', write(folder / 'b.pickle', [1])], 1, 'segment 0 is no dict')
    refused(['replay', write(folder / 'b.pickle', 1)], 1, 'it is no dict and no list')


@case
def snapshots_as_json_stop_at_the_limit(folder):
    packed(folder / 'a.json.gz', b'{"segments": [', *[b'{},' * 500] * 1000, b'{}]}')
    beyond(['replay', folder / 'a.json.gz'], 'a.json.gz: line 1, column ')
    packed(folder / 'a.json.gz', b'{"traceEvents": [', *[b'{},' * 500] * 1000, b'{}]}')
    beyond(['replay', folder / 'a.json.gz'], 'a.json.gz: line 1, column ')


@case
def timelines_without_memory_are_named_with_what_to_do_instead(folder):
    path = folder / 'a.json'
    timeline = dict(schemaVersion=1, deviceProperties=[{'id': 0}],
                    traceEvents=[dict(ph='X', name='aten::add', ts=1, dur=2)])
    for value in (timeline, timeline['traceEvents']):
        path.write_text(json.dumps(value))
        for args, status in ((['replay', path], 1), (['report', path, '-o', folder / 'a.html'], 1),
                             (['diff', path, path], 2), (['convert', path, folder / 'a.csv'], 1)):
            refused(args, status, str(path) + ': it is a timeline for Chrome or Perfetto',
                    'profile_memory=True', '_dump_snapshot(FILE)')


# ---- histories ----

@case
def a_snapshot_without_a_history_says_so(folder):
    path = write(folder / 'a.pickle', dict(segments=[SEGMENT], device_traces=[[]]))
    got = replay(path)
    has(got['about'], 'it has no history', '_record_memory_history()')
    has(npusim('replay', path).stdout, 'it has no history')
    device = Device()
    device.segment_alloc(BASE, 2 * MIB)
    expect('about' not in replay(write(path, snapshot({0: device}))), 'there is a history')


def history(path, *events):
    """A snapshot of one segment, with these events behind the one that made it."""
    lines = [dict(action=action, addr=addr, size=size, stream=0, time_us=number + 1, **more)
             for number, (action, addr, size, more) in enumerate(
                 [('segment_alloc', BASE, 20 * MIB, {}), *events])]
    segment = dict(SEGMENT, total_size=20 * MIB, segment_type='large',
                   blocks=[dict(address=BASE, size=20 * MIB, state='inactive')])
    return write(path, dict(segments=[segment], device_traces=[lines]))


@case
def a_recorded_lack_of_memory_is_explained(folder):
    block = ('alloc', BASE, 4 * MIB, {})
    for asked, free, *says in [
            (30 * MIB, 8 * MIB, '30.00 MiB', '8.00 MiB free', 'would not have been enough'),
            (24 * MIB, 8 * MIB, '24.00 MiB', 'fragmentation', '--policy expandable'),
            (6 * MIB, 8 * MIB, 'The device had enough', 'set_per_process_memory_fraction')]:
        path = history(folder / 'a.pickle', block,
                       ('oom', 0, asked, dict(device_free=free)), ('free_completed', *block[1:]))
        for policy in ('as-recorded', 'caching'):
            got = replay(path, '--policy', policy)['devices'][0]['recorded_out_of_memory']
            same(got, dict(event=3, bytes=asked, device_free_bytes=free, physical_bytes=20 * MIB,
                           live_bytes=4 * MIB), policy)
        text = ' '.join(npusim('replay', path).stdout.split())
        has(text, 'At event 3 the allocator ran out of memory', *says, 'held 20.00 MiB',
            'blocks used 4.00 MiB')
    clean = history(folder / 'a.pickle', block)
    expect('recorded_out_of_memory' not in replay(clean)['devices'][0], 'none')


@case
def the_pieces_at_a_recorded_lack_of_memory_are_told(folder):
    frames = [dict(name='step', filename='/src/train.py', line=7)]
    for blocks, asked, free, *says in [
            ([(5, 2), (12, 1)], 12, 1, '17.00 MiB', 'in 3 pieces, the largest 7.00 MiB',
             'With expandable segments it could have been served: 14.00 MiB'),
            ([(5, 2), (12, 1)], 30, 1, 'No policy could have served it', 'the 21.00 MiB'),
            ([(n + .5, .25) for n in range(20)], 10, 0, 'in 21 pieces, the largest 768.00 KiB',
             'Only without segments'),
            ([(0, 5)], 10, 0, 'in 1 piece, the largest 15.00 MiB', 'large enough, and not for')]:
        events = [('alloc', BASE + int(at * MIB), int(size * MIB), dict(frames=frames))
                  for at, size in blocks]
        path = history(folder / 'a.pickle', *events,
                       ('oom', 0, asked * MIB, dict(device_free=free * MIB)),
                       *[('free_completed', *event[1:]) for event in events])
        moment = [m for m in replay(path)['devices'][0]['moments'] if m['moment'] == 'oom'][0]
        has(moment['words'], 'At event {}, where {}.00 MiB'.format(len(events) + 2, asked), *says)
        same((moment['holders'][0]['site'], moment['live_bytes']),
             ('step (/src/train.py:7)', sum(event[2] for event in events)), 'who held it')


@case
def a_history_that_contradicts_itself_is_reported_with_its_event(folder):
    path = folder / 'a.pickle'
    block, free = ('alloc', BASE, 4096, {}), ('free_completed', BASE, 4096, {})
    for events, count, says in [
            ([block, free], 0, None),
            ([block, free, block, free], 0, None),
            ([block, free, free], 1, 'event 4 frees 0x{:x}, where no block is live'.format(BASE)),
            ([block, free, free, free], 2, 'event 4 frees '),
            ([block, block], 1, 'event 3 allocates 4096 bytes, 0x{0:x}, over the block of 4096 '
             'bytes at 0x{0:x} that is live since event 2'.format(BASE)),
            ([block, ('alloc', BASE + 512, 512, {})], 1, 'event 3 allocates 512 bytes'),
            ([('alloc', BASE + 512, 512, {}), block], 1, 'event 3 allocates 4096 bytes'),
            ([block, ('alloc', BASE + 4096, 512, {})], 0, None)]:
        history(path, *events)
        for policy in ('as-recorded', 'caching'):
            got = replay(path, '--policy', policy)['devices'][0]
            same(got['contradictions'], count, (events, policy))
            expect((got.get('first_contradiction') or '').startswith(says or ''),
                   got.get('first_contradiction'))
        if says:
            has(npusim('replay', path).stdout, 'contradictions', says)
    trace = write_trace(folder / 'a.npt', 'alloc b1 size=512 device=0', 'free b1 device=0',
                        'free b1 device=0')
    has(replay(trace)['devices'][0]['first_contradiction'], 'line 4 frees b1')


# ---- output ----

@case
def links_of_others_in_shared_folders_are_not_followed(folder):
    if os.geteuid() != 0:
        raise Skip('only root can make a link of another user')
    shared, victim = folder / 'shared', folder / 'victim'
    shared.mkdir()
    shared.chmod(0o1777)
    victim.write_text('kept')
    (shared / 'out.csv').symlink_to(victim)
    (shared / 'deep').symlink_to(folder)
    os.chown(shared / 'out.csv', 12345, 12345, follow_symlinks=False)
    os.chown(shared / 'deep', 12345, 12345, follow_symlinks=False)
    bench = ['bench', '--count', 10]
    for path in (shared / 'out.csv', shared / 'deep' / 'victim'):
        for args in (['convert', '--to', 'csv', SAMPLE, path], [*bench, '--json', path],
                     ['convert', '--to', 'trace', SAMPLE, path],
                     ['replay', SAMPLE, '--json', path], ['check', '--backend', 'sim', '-o', path]):
            run = refused(args, 1, str(path) + ' cannot be written', 'symbolic link of user 12345')
            same(run.stdout, '', 'it is known before any work')
        same(victim.read_text(), 'kept', 'the file behind the link')
    # of the caller, of the folder's owner, and where only its owner writes: as anywhere
    os.chown(shared / 'out.csv', 0, 0, follow_symlinks=False)
    same(npusim('convert', '--to', 'csv', SAMPLE, shared / 'out.csv').returncode, 0, 'own link')
    os.chown(shared / 'out.csv', 12345, 12345, follow_symlinks=False)
    os.chown(shared, 12345, 12345)
    same(npusim('convert', '--to', 'csv', SAMPLE, shared / 'out.csv').returncode, 0, 'its owner')
    expect((shared / 'out.csv').is_symlink() and victim.read_text() != 'kept', 'the link stays')


@case
def a_link_to_nothing_makes_what_it_names(folder):
    (folder / 'there').mkdir()
    link, target = folder / 'link.csv', folder / 'there/target.csv'
    for to in ('there/target.csv', target, 'other.csv'):
        link.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
        (folder / 'other.csv').unlink(missing_ok=True)
        (folder / 'other.csv').symlink_to('there/../there/target.csv')
        link.symlink_to(to)
        same(npusim('convert', '--to', 'csv', SAMPLE, link).returncode, 0, to)
        expect(link.is_symlink() and target.read_text().startswith('event,'), to)
    link.unlink()
    link.symlink_to('missing/target.csv')
    refused(['convert', SAMPLE, link], 1, 'cannot be written', 'No such file')
    missing, file = folder / 'missing/x', folder / 'other.csv'
    for to, says in (('', 'No such file'), (str(file) + '/', 'Not a directory'),
                     (missing, '{} cannot be written: {}: No such file'.format(
                         missing, missing.parent))):
        run = refused(['replay', SAMPLE, '--json=' + str(to)], 1, 'cannot be written', says)
        same(run.stdout, '', 'it is known before any work')
    link.unlink()
    link.symlink_to(link)
    refused(['convert', SAMPLE, link], 1, 'cannot be written', 'Too many levels')
    expect(link.is_symlink(), 'the link stays')
    same(sorted(path.name for path in folder.rglob('*.part*')), [], 'left over')


@case
def what_cannot_take_its_name_is_called_as_it_was_given(folder):
    if os.geteuid() != 0:
        raise Skip('only root can be another user')
    shared, target, link = folder / 'shared', folder / 'shared/out.json', folder / 'link.json'
    shared.mkdir()
    shared.chmod(0o1777)
    folder.chmod(0o755)
    target.write_text('kept')  # by root, in a folder where others take no name of root's
    link.symlink_to(target)
    run = subprocess.run([NPUSIM, 'bench', '--count', '10', '--json', link], user=12345,
                         group=12345, extra_groups=[], capture_output=True, text=True)
    if 'out.json' not in run.stderr and 'link.json' not in run.stderr:
        raise Skip('another user cannot run this command')
    same(run.returncode, 1, run.stderr)
    expect('{} cannot be written: Operation not permitted'.format(link) in run.stderr, run.stderr)
    same((target.read_text(), [path.name for path in shared.iterdir()]), ('kept', ['out.json']),
         'left over')


@case
def bench_looks_at_its_output_first(folder):
    for path, says in ((folder / 'no/x.json', 'No such file'), (folder, 'Is a directory')):
        run = refused(['bench', '--count', 1000, '--json', path], 1, says)
        same(run.stdout, '', 'nothing was simulated')


@case
def an_interrupted_check_reports_the_cases_that_have_run(folder):
    record = folder / 'record'
    run = subprocess.Popen([NPUSIM, 'check', '--backend', 'sim', '--format', 'tap', '--record',
                            str(record), '-o', str(folder / 'report.tap')], env=environment(),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # each process of a case leaves a trace: the first cases have run
    wait_until(lambda: len(list((record / 'calls').glob('*'))) >= 20, 'no case runs')
    run.send_signal(signal.SIGINT)
    has(run.communicate(timeout=60)[1], 'Interrupt: the report has the ')
    same(run.returncode, 130, 'status')
    lines = (folder / 'report.tap').read_text().splitlines()
    ran = [line for line in lines if line.startswith('ok ')]
    expect(1 <= len(ran) < 500, len(ran), 'cases')
    expect((record / 'report.txt').stat().st_size > 0, 'the record')


main()
