#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npusim sweep and npusim profile from outside: rows against single runs, plans, shards, seeds,
# failures, interrupts and resumption; under mpirun, where there is one, too.
# usage: sweep-test.py NPUSIM SAMPLE HAS-MPI

import contextlib
import csv
import fcntl
import functools
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from command import (LATER, NPUSIM, Skip, case, die_of_signals, environment, expect, main, need,
                     npusim, random_device, same, snapshot, wait_until, write)

SAMPLE, HAS_MPI = pathlib.Path(sys.argv[2]), sys.argv[3] == 'true'
MPIRUN = ['mpirun', '--oversubscribe', '--allow-run-as-root', '-n']
FEW = '--count', '1000', '--size', '64m'
die_of_signals()


def sweep(out, *args, status=0):
    run = npusim('sweep', '--out', out, *args, errors='surrogateescape')
    same((run.returncode, run.stderr), (status, ''), args)
    return run.stdout


def rows(out, table='rows'):
    """The table's rows, as dictionaries without what is NULL."""
    db = sqlite3.connect(out / 'rows.sqlite')
    db.row_factory = sqlite3.Row
    found = [{key: row[key] for key in row.keys() if row[key] is not None}
             for row in db.execute('SELECT * FROM {} ORDER BY rowid'.format(table))]
    db.close()
    return found


def lines(out):
    """All that was ever appended; the end of a killed writer's file is no line."""
    return [json.loads(line) for path in sorted(out.glob('rows*.jsonl'))
            for line in path.read_text().split('\n')[:-1]]


def refused(says, *args, status=2):
    run = npusim('sweep', *args)
    same((run.returncode, run.stdout), (status, ''), args)
    for text in says:
        expect(text in run.stderr, repr(text), 'is not in', run.stderr)


def flat(result):
    lists = {'{}.{}'.format(key, i): each for key, value in result.items()
             if isinstance(value, list) for i, each in enumerate(value)}
    return {**{key: value for key, value in result.items() if not isinstance(value, list)}, **lists}


# What the page needs of a browser.
DOCUMENT = """
const page = require('fs').readFileSync(process.argv[2], 'utf8');
class Node {
  constructor(tag) { this.tag = tag; this.children = []; this.attributes = {}; }
  setAttribute(key, value) { this.attributes[key] = value; }
  append(...nodes) { this.children.push(...nodes); }
  replaceChildren() { this.children = []; }
  add() {}
  addEventListener() {}
}
class Option {}
const nodes = {};
const document = {
  getElementById: id => nodes[id] = nodes[id] || new Node(id),
  createElementNS: (space, tag) => new Node(tag),
};
document.getElementById('rows').textContent =
  page.match(/id="rows">([^]*?)<.script>/)[1];
document.getElementById('kind').value = 'lines';
"""


def drawn(out, script):
    """What a script says behind the page's own, under node, with a document of few words."""
    need('node')
    own = re.findall(r'<script>(.*?)</script>', (out / 'plot.html').read_text(), re.S)[0]
    (out / 'page.js').write_text(DOCUMENT + own + script)
    run = subprocess.run(['node', out / 'page.js', out / 'plot.html'], capture_output=True,
                         text=True)
    same((run.returncode, run.stderr), (0, ''), 'node')
    return run.stdout


def children(pid):
    return [int(child) for task in pathlib.Path('/proc/{}/task'.format(pid)).glob('*/children')
            for child in task.read_text().split()]


def end(run):
    if run.poll() is None:
        run.terminate()
        run.communicate(timeout=60)


def started(*args, front=()):
    run = subprocess.Popen(list(map(str, [*front, NPUSIM, 'sweep', *args])), env=environment(),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           start_new_session=True)
    LATER.callback(end, run)
    return run


def begun(out, finished, *args, front=()):
    """A sweep that has appended so many rows."""
    run = started('--out', out, *args, front=front)
    wait_until(lambda: run.poll() is not None or len(lines(out)) >= finished, 'no rows')
    same(run.poll(), None, 'runs')
    return run


def endless_row(run):
    """The process of a row, when it has run for some time; and the one that it is a fork of."""
    def rows():  # others may have children, too, that a sanitizer ends with
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return [(row, parent) for parent in children(run.pid) if b'\0--rows\0' in
                    pathlib.Path('/proc/{}/cmdline'.format(parent)).read_bytes()
                    for row in children(parent)]
    wait_until(rows, 'no row runs')
    time.sleep(0.2)
    return rows()[0]


# ---- rows ----

@case
def rows_are_single_runs_of_the_cross_product(folder):
    out = folder / 'out'
    axes = {'MMU.tlb_l2_entries': (64, 2048), 'page': ('4k', '2m'), 'access': (64, 4096, 8192)}
    sweep(out, '--vary', 'MMU.tlb_l2_entries=64,2K', '--vary', 'page=4k,2m', '--vary',
          'access=64,4k..8k*2', 'bench', *FEW)
    table = rows(out)
    for row, (entries, page, access) in itertools.zip_longest(
            table, itertools.product(*axes.values())):
        run = npusim('bench', *FEW, '--json', '-', '--page', page, '--access', access, '--set',
                     'MMU.tlb_l2_entries={}'.format(entries))
        result, = json.loads(run.stdout)
        same(row, {'row': row['row'], 'status': 'ok', 'reason': '', 'MMU.tlb_l2_entries': entries,
                   **flat(result)}, (entries, page, access))
    with open(out / 'rows.csv', newline='') as file:
        for row, line in itertools.zip_longest(table, csv.DictReader(file)):
            same({key: value for key, value in line.items() if value or key in row},
                 {key: str(value) for key, value in row.items()}, 'CSV')


@case
def geometry_is_swept(folder):
    """Each of the keys alone would contradict the others."""
    out = folder / 'out'
    sweep(out, '--vary', 'HBM.stacks=1,8', '--vary', 'HBM.rows=32K,64K', '--vary',
          'MMU.tlb_l2_ways=7', 'bench', *FEW, '--set', 'HBM.map=auto', '--set',
          'MMU.tlb_l2_entries=7')
    table = rows(out)
    same(len(table), 4, 'rows')
    for row in table:
        bits = {1: 0, 8: 3}[row['HBM.stacks']]
        expect('HBM.map=o5 c2 s{} h3x p1x g2 c3 b2 r{}'.format(
            bits, {32768: 15, 65536: 16}[row['HBM.rows']]) in row.values(), row)
    expect(table[0]['hbm_bytes_per_us'] * 8 == table[2]['hbm_bytes_per_us'], table)


@case
def a_plan_is_a_file_too(folder):
    (folder / 'plan').write_text('# sizes\nsize=64m..256m*2 # three\n\nseed=3..5\n')
    sweep(folder / 'out', '--plan', folder / 'plan', '--vary', 'access=8..20+8', 'bench',
          '--count', '100')
    same([(r['size'] >> 20, r['seed'], r['access']) for r in rows(folder / 'out')],
         list(itertools.product((64, 128, 256), (3, 4, 5), (8, 16))), 'rows')


@case
def replays_are_swept(folder):
    copy = shutil.copy(SAMPLE, folder / 'other.npt.gz')
    out = folder / 'out'
    sweep(out, '--vary', 'file={},{}'.format(SAMPLE, copy), '--vary',
          'max_split_size_mb=64,512', 'replay', '--policy', 'caching')
    for row, (path, split) in itertools.zip_longest(
            rows(out), itertools.product((SAMPLE, copy), (64, 512))):
        result = json.loads(npusim('replay', path, '--json', '-', '--policy', 'caching', '--set',
                                   'max_split_size_mb={}'.format(split)).stdout)
        device = result['devices'][0]
        same((row['max_split_size_mb'], row['file']), (split, result['file']), 'asked')
        for key, value in device.items():
            if isinstance(value, (int, float, str)):
                same(row['devices.0.' + key], value, key)


@case
def numbers_are_numbers_and_names_are_names(folder):
    sweep(folder / 'fractions', '--vary', 'policy=caching', '--vary',
          'garbage_collection_threshold=0.6,.75,0.6000000000000001,6e-1,7.5E-01,.05e+1', 'replay',
          SAMPLE)
    same([row['garbage_collection_threshold'] for row in rows(folder / 'fractions')],
         [0.6, 0.75, 0.6000000000000001, 0.6, 0.75, 0.5], 'fractions')
    words = ['1e20', '2E-30', '-3e+2', 'e3', '1e', '1e-', '1e999', '0x1e3', '5e3K']
    sweep(folder / 'words', '--vary', 'fault=' + ','.join(words), 'replay', SAMPLE, status=1)
    same([row['fault'] for row in rows(folder / 'words')], [1e20, 2e-30, -300.0, *words[3:]],
         'words')
    large = [str((1 << 63) - 1), str(1 << 63), '9' * 20, '9' * 5000, '8388608T', '1' * 400 + '.5']
    sweep(folder / 'large', '--vary', 'size=64m,' + ','.join(large), 'bench', *FEW, status=1)
    table = rows(folder / 'large')
    same([row['size'] for row in table], [64 << 20, (1 << 63) - 1, *large[1:]], 'large')
    same([row['status'] for row in table], ['ok'] + ['failed'] * 6, 'large')
    files = [folder / '1k', folder / '1024']
    for file in files:
        file.write_text('64\n')
    run = npusim('sweep', '--out', 'names', '--vary', 'file=1k,1024', '--seeds', '2', 'bench',
                 '--pattern', 'trace', cwd=folder)
    same((run.returncode, run.stderr), (0, ''), 'names')
    same([(row['file'], row['seeds']) for row in rows(folder / 'names', 'seeds')],
         [('1k', 2), ('1024', 2)], 'names')
    sweep(folder / 'socs', '--vary', 'SoCInfo.soc_name=1e5,100000', '--seeds', 2, 'bench', *FEW)
    same([row['SoCInfo.soc_name'] for row in rows(folder / 'socs', 'seeds')], ['1e5', '100000'],
         'names of SoCs')


@case
def many_devices_and_moments_have_tables(folder):
    """More than a database takes."""
    devices = {number: random_device(number) for number in range(16)}
    for device in devices.values():
        for number, event in enumerate(device.events):
            event['frames'] = [{'filename': 'a.py', 'line': 1, 'name': 'f{}'.format(number)}] * 9
    write(folder / 'snapshot.pickle', snapshot(devices))
    out = folder / 'out'
    sweep(out, '--vary', 'policy=native,caching', 'replay', '--devices=16', '--at=5', '--at=50',
          '--at=90', '--at=150', '--at=200', '--at=end', folder / 'snapshot.pickle')
    with open(out / 'rows.csv', newline='') as file:
        lines = list(csv.DictReader(file))
    columns = list(lines[0])
    expect(len(columns) > 2000 and 'devices.15.moments.6.blocks' in columns, len(columns))
    expect(not any('.holders.' in column for column in columns), columns)
    for row, line in itertools.zip_longest(rows(out), lines):
        same(len(row.keys() - {*columns[:2000]}), 0, 'further columns')
        for key in columns[:2000]:
            same(str(row.get(key, '')), line[key].replace('True', '1'), key)


@case
def a_python_without_a_database_writes_the_others(folder):
    (folder / 'sqlite3.py').write_text('raise ModuleNotFoundError("No module named \'_sqlite3\'")')
    (folder / 'out').mkdir()
    (folder / 'out' / 'rows.sqlite').write_text('rows of before')
    run = npusim('sweep', '--out', folder / 'out', '--seeds', '2', 'bench', *FEW,
                 env=environment(PYTHONPATH=str(folder)))
    same((run.returncode, run.stdout, run.stderr),
         (1, '', "npusim sweep: No module named '_sqlite3'\n"), 'run')
    expect(not (folder / 'out' / 'rows.sqlite').exists(), 'it has not these rows')
    same(sorted(path.name for path in (folder / 'out').glob('[!r]*.[!t]*')),
         ['plot.html', 'seeds.csv'], 'files')
    same((folder / 'out' / 'rows.csv').read_text().count('\n'), 3, 'rows')


@case
def wrong_plans_are_status_2_and_named(folder):
    out = '--out', folder / 'out'
    for says, *args in [
            (['--out=DIR'], 'bench'),
            (['bench or replay'], *out),
            (["not 'check'"], *out, 'check'),
            (['--vary=page', 'KEY=A,B,C'], *out, '--vary', 'page', 'bench'),
            (['--vary=page=', 'KEY=A,B,C'], *out, '--vary', 'page=', 'bench'),
            (['an axis page already'], *out, '--vary', 'page=2m', '--vary', 'page=1g', 'bench'),
            (['MMU.walker', 'no such key', 'is MMU.walkers meant?'], *out, '--vary',
             'MMU.walker=1', 'bench'),
            (['colour', 'no such option'], *out, '--vary', 'colour=1', 'bench'),
            (['a replay has no seed', '--seeds is for bench'], *out, '--seeds', '2',
             'replay', SAMPLE),
            (['--vary=json', "('npusim profile keys')\n"], *out, '--vary', 'json=a', 'bench'),
            (['bench has no option --out', 'go first'], *out, '--seeds', '2', 'bench', '--out=b'),
            (['bench has no option --sise'], *out, '--seeds', '2', 'bench', '--sise=64m'),
            (['bench has no option --json'], *out, '--seeds', '2', 'bench', '--json=a{row}'),
            (['--commands=a: all rows', '--commands=FILE{row}'], *out, '--seeds', '2', 'bench',
             '--commands', 'a'),
            (['--vary=profile=...: all rows', '--profile=FILE{row}'], *out, '--vary',
             'profile=a,b', 'replay', SAMPLE),
            (['replay has no option --help'], *out, '--vary', 'policy=native', 'replay', '--help'),
            (['--vary, --plan or --seeds'], *out, 'bench'),
            *((['goes nowhere'], *out, '--vary', 'size=' + values, 'bench')
              for values in ('0..9*2', '9..1', '1g..64m*2', '64m,9..1+4', '1..9+0', '1..9*1')),
            (['--vary=status', 'no axis'], *out, '--vary', 'status=1', 'replay', SAMPLE),
            (['no axis'], *out, '--vary', os.fsdecode(b'k\xe9=1'), 'replay', SAMPLE),
            (['no folder of a sweep'], *out, '--merge', '--seeds', '2', 'bench'),
            (['more than 10000000 rows'], *out, '--vary', 'seed=1..10000', '--vary',
             'count=1..1001', 'bench'),
            (['more than 10000000 rows'], *out, '--vary', 'size=1..99999999999999999999', 'bench'),
            (['3/2', 'from 1 to N'], *out, '--shard', '3/2', 'bench'),
            (['--shard', '1: I/N'], *out, '--shard', '1', 'bench')]:
        refused(says, *args)
    plan = folder / 'plan'
    for says, line in [('size: KEY=A,B,C is wanted', 'size # none'),
                       ('size=9..1: 9..1 goes nowhere', 'size=9..1'),
                       ('trace=...: all rows would write one file', 'trace=a'),
                       ('page=1g: there is an axis page already', 'page=1g'),
                       ('row=1: no axis can have this name', 'row=1'),
                       ('colour=...: bench has no such option', 'colour=1')]:
        plan.write_text('# two\npage=2m\n\n{}\n'.format(line))
        refused(['npusim sweep: {}:4: {}'.format(plan, says)], *out, '--plan', plan, 'bench')
    plan.write_text('# a\fb\u2028c\nseed=1\n')
    refused(['{}:2: a replay has no seed'.format(plan)], *out, '--plan', plan, 'replay', SAMPLE)
    plan.write_text('no-copies=1')
    refused(['{}:1: no-copies=...: yes, no'.format(plan)], *out, '--plan', plan, 'replay', SAMPLE)
    refused(['--rows is for sweep.py alone'], '--rows', SAMPLE)
    refused(['npusim sweep: nowhere: No such file'], *out, '--plan', 'nowhere', 'bench', status=1)
    refused(['Is a directory'], *out, '--plan=', '--seeds', '2', 'bench', status=1)
    expect(not (folder / 'out').exists(), 'a folder was made')


@case
def two_files_of_a_profile_are_two_devices(folder):
    shown = npusim('profile', 'show', 'Ascend910B1').stdout
    a, b, out = folder / 'a.ini', folder / 'b.ini', folder / 'out'
    a.write_text(shown)
    b.write_text(re.sub(r'(?m)^tlb_l2_entries=.*', 'tlb_l2_entries=64', shown))
    sweep(out, '--vary', 'soc={},{}'.format(a, b), '--vary', 'size=64M', '--seeds', 2, 'bench',
          '--count', '1000')
    same([(r['soc'], r['size']) for r in rows(out)],
         [(str(path), 64 << 20) for path in (a, a, b, b)], 'rows')
    same([(r['soc'], r['seeds']) for r in rows(out, 'seeds')], [(str(a), 2), (str(b), 2)], 'seeds')


@case
def seeds_have_a_mean_and_a_spread(folder):
    out = folder / 'out'
    sweep(out, '--vary', 'access=64,256', '--seeds', 4, 'bench', *FEW)
    table, seeds = rows(out), rows(out, 'seeds')
    same([(r['access'], r['seeds']) for r in seeds], [(64, 4), (256, 4)], 'lines')
    expect('gb_s' in seeds[0] and not {'size', 'size_sd', 'count', 'soc'} & {*seeds[0]}, seeds[0])
    for row, some in zip(seeds, (table[:4], table[4:])):
        same([r['seed'] for r in some], [0, 1, 2, 3], 'seed')
        for key in 'ps', 'gb_s', 'tlb_misses':
            values = [r[key] for r in some]
            for got, wanted in ((row[key], statistics.mean(values)),
                                (row[key + '_sd'], statistics.stdev(values))):
                expect(abs(got - wanted) <= 1e-9 * abs(wanted), key, got, wanted)
    expect((out / 'seeds.csv').read_text().startswith('access,seeds,'), 'seeds.csv')


@case
def a_dry_run_keeps_nothing(folder):
    said = sweep(folder / 'out', '--dry-run', '--vary', 'seed=1..5000', 'bench', *FEW)
    expect(said.startswith('5000 rows, 0 done, 0 failed, 5000 to do: about '), said)
    same(npusim('sweep', '--dry-run', '--seeds', 2, 'bench', *FEW).returncode, 0, 'without --out')
    for words in (['bench', *FEW, '--commands', folder / 'hbm-{row}'],
                  ['replay', SAMPLE, '--no-copies', '--trace=calls-{row}.npt']):
        axis = 'seed=1' if words[0] == 'bench' else 'access=none'
        run = npusim('sweep', '--dry-run', '--vary', axis, *words, cwd=folder,
                     env=environment(TMPDIR=str(folder)))
        same((run.returncode, run.stderr), (0, ''), words)
        expect(run.stdout.startswith('1 row, 0 done'), run)
    same(list(folder.iterdir()), [], 'files')
    alone = subprocess.run([need('taskset'), '-c', str(min(os.sched_getaffinity(0))), NPUSIM,
                            'sweep', '--dry-run', '--seeds', '2', 'bench', *FEW],
                           env=environment(), capture_output=True, text=True)
    expect(alone.stdout.endswith(', 1 at a time\n'), alone)


@case
def a_dry_run_says_what_fails_and_ends_when_it_is_told_to():
    for says, *args in [('row 1: ', '--vary', 'size=64m,900g', 'bench', '--count', '1000'),
                        ('took longer than 1 s', '--timeout', '1', '--vary', 'count=1000000000',
                         'bench', '--size', '64m')]:
        run = npusim('sweep', '--dry-run', *args)
        expect(run.returncode == 1 and says in run.stderr and 'to do' in run.stdout, run)
    for begun_by in endless_row, lambda run: wait_until(lambda: children(run.pid), 'asks nothing'):
        run = started('--dry-run', '--vary', 'count=1000000000', 'bench')
        begun_by(run)
        run.send_signal(signal.SIGINT)
        same((*run.communicate(timeout=60), run.returncode), ('', '', 130), 'interrupted')


@case
def the_page_has_the_rows_and_draws_them(folder):
    out = folder / 'a<b'
    sweep(out, '--vary', 'access=64,256', '--vary', 'page=4k,2m', 'bench', *FEW)
    page = (out / 'plot.html').read_text()
    data = re.search(r'<script type="application/json" id="rows">(.*?)</script>', page, re.S)[1]
    data = json.loads(data)
    same([dict(zip(data['columns'], row))['ps'] for row in data['rows']],
         [row['ps'] for row in rows(out)], 'rows')
    expect('http' not in re.sub(r'http://www.w3.org/2000/svg', '', page), 'it loads nothing')
    said = drawn(out, """
const count = name => plot.children.filter(e => e.tag === name).length;
const seen = [count('circle'), count('path') > 2];
kind.value = 'heat map'; x.value = 'access'; y.value = 'page'; z.value = 'gb_s';
draw();
console.log(JSON.stringify([...seen, count('rect')]));
""")
    same(json.loads(said), [4, True, 4], 'points, lines, cells')


@case
def the_page_of_many_rows_has_some(folder):
    out, args = folder / 'out', ['--vary', 'access=64,128', '--seeds', 10000, 'bench', *FEW]
    sweep(out, '--shard', '19999/20000', *args)
    row, = lines(out)
    with open(out / 'rows.jsonl', 'w') as file:
        for number in range(20000):
            file.write(json.dumps({**row, 'row': number, 'access': (64, 128)[number // 10000],
                                   'seed': number % 10000}) + '\n')
    sweep(out, '--merge', *args)
    same(len(rows(out)), 20000, 'all')
    page = (out / 'plot.html').read_text()
    data = json.loads(re.search(r'id="rows">(.*?)</script>', page, re.S)[1])
    same(len(data['rows']), 10000, 'chosen')
    access = [dict(zip(data['columns'], row))['access'] for row in data['rows']]
    expect(4500 < access.count(64) < 5500, access.count(64))
    expect('Of 20000 rows 10000' in data['about'], data['about'])


# ---- shards, failures, interrupts ----

def same_tables(out, whole):
    for name in 'rows.csv', 'seeds.csv':
        same((out / name).read_text(), (whole / name).read_text(), name)
    numbers = [line['row'] for line in lines(out)]
    same(sorted(numbers), list(range(len(numbers))), 'every row once')


FEW_SEEDS, SEEDS = (('--seeds', n, 'bench', '--count', '200', '--size', '64m') for n in (50, 200))
WHOLE = tempfile.TemporaryDirectory(prefix='npusim-sweep-')


@functools.lru_cache(None)
def whole():
    """What others have in parts, run at once."""
    out = pathlib.Path(WHOLE.name, 'whole')
    sweep(out, *SEEDS)
    return out


@case
def tables_without_a_row_are_written(folder):
    sweep(folder / 'shard', '--shard', '5/8', '--seeds', '2', 'bench', *FEW)
    run = started('--out', folder / 'signal', '--vary', 'count=1000000000', 'bench')
    endless_row(run)
    run.send_signal(signal.SIGINT)
    same((run.communicate(timeout=60)[1], run.returncode), ('', 130), 'signal')
    for out in folder / 'shard', folder / 'signal':
        same(rows(out), [], out)
        same((out / 'rows.csv').read_text().count('\n'), 1, 'a head')
        if shutil.which('node'):
            same(drawn(out, 'console.log(plot.children.map(e => e.textContent).join());'),
                 'no row is finished\n', 'the page')


@case
def shards_make_up_the_whole(folder):
    args = '--seeds', 10, 'bench', *FEW
    sweep(folder / 'whole', *args)
    for shard in 3, 1, 2:
        sweep(folder / 'parts', '--shard', '{}/3'.format(shard), *args)
    same_tables(folder / 'parts', folder / 'whole')
    same(sorted(path.name for path in (folder / 'parts').glob('*.jsonl')),
         ['rows-shard{}of3.jsonl'.format(i) for i in (1, 2, 3)], 'files')


@case
def a_failed_row_says_why_and_is_retried_if_asked(folder):
    out = folder / 'out'
    args = '--vary', 'size=64m,900g,128m', 'bench', '--count', '1000'
    said = sweep(out, *args, status=1)
    expect('2 of 3 rows done, 1 failed\nrow 1: size' in said, said)
    expect('1 of 1 row done, 0' in sweep(folder / 'one', '--vary', 'seed=1', *args[2:]), 'one')
    same([r['status'] for r in rows(out)], ['ok', 'failed', 'ok'], 'status')
    expect('must be whole pages' in rows(out)[1]['reason'], rows(out)[1])
    same(rows(out)[1]['size'], 900 << 30, 'what was asked for')
    options = 'version', 'soc', 'pattern', 'file', 'op', 'page', 'access', 'count', 'seed'
    for key in options:
        same(rows(out)[1][key], rows(out)[0][key], key)
    same(set(rows(out)[1]) - {*options}, {'row', 'status', 'reason', 'size', 'stride', 'warmup',
                                          'engines'}, 'no result')
    sweep(out, *args, status=1)
    same(len(lines(out)), 3, 'nothing is left to do')
    sweep(out, '--retry-failed', *args, status=1)
    same([line['row'] for line in lines(out)][3:], [1], 'failed again')


@case
def a_failed_row_has_no_value_of_other_files(folder):
    trace = folder / 'a.trc'
    trace.write_text('64\n128\n')
    for given, known in ((), {}), (('--count=7',), {'count': 7}):
        out = folder / 'out{}'.format(len(given))
        sweep(out, '--vary', 'file={},{}'.format(trace, folder / 'none'), 'bench',
              '--pattern=trace', *given, status=1)
        failed = rows(out)[1]
        same({**failed, **known}, failed, 'what was given')
        same({'count', 'op', 'size', 'page'} - {*failed}, {'count', 'op'} - {*known}, 'not known')
    sweep(folder / 'policy', '--vary', 'policy=native,none', 'replay', SAMPLE, status=1)
    ok, failed = rows(folder / 'policy')
    expect('page' in ok and 'page' not in failed and failed['access'] == 'none', failed)


@case
def a_row_that_dies_or_hangs_has_failed(folder):
    args = ['--vary', 'count=1000,1000000000,2000', 'bench', '--size', '64m']
    killed = 'died of signal 9 (Killed): is the machine out of memory?'
    for number, says in (9, killed), (11, 'died of signal 11 (Segmentation fault)'):
        for which in range(2):
            out = folder / '{}-{}'.format(number, which)
            run = begun(out, 1, '-j', 1, *args)
            os.kill(endless_row(run)[which], number)
            run.communicate(timeout=60)
            same(run.returncode, 1, 'status')
            same([r['reason'] for r in rows(out)], ['', says, ''], 'that row alone')
    sweep(out, '--retry-failed', '--timeout', 1, *args, status=1)
    same([r['reason'] for r in rows(out)], ['', 'took longer than 1 s', ''], 'why')


@case
def python_has_nothing_to_warn_of(folder):
    run = npusim('sweep', '--out', folder / 'out', '--timeout', 1, '--vary', 'count=1000000000',
                 'bench', '--size', '64m',
                 env=environment(PYTHONWARNINGS='error', PYTHONDEVMODE='1',
                                 PYTHONWARNDEFAULTENCODING='1'))
    same((run.returncode, run.stderr), (1, ''), 'run')
    same(rows(folder / 'out')[0]['reason'], 'took longer than 1 s', 'reason')


@case
def no_row_outlives_its_sweep(folder):
    run = started('--out', folder / 'out', '--vary', 'count=1000000000', 'bench')
    processes = endless_row(run)
    run.kill()
    run.communicate(timeout=60)
    wait_until(lambda: not any(map(os.path.exists, map('/proc/{}'.format, processes))), 'it ends')


@case
def where_a_process_cannot_fork_it_runs_one_row(folder):
    if os.getuid() != 0:
        raise Skip('only root can be a user without processes')
    folder.chmod(0o777)
    front = [need('setpriv'), '--reuid=64321', '--regid=64321', '--clear-groups', need('prlimit')]
    env = environment(PATH='/usr/bin:/bin', HOME=str(folder), ASAN_OPTIONS=':'.join(
        [os.environ.get('ASAN_OPTIONS', ''), 'detect_leaks=0']))  # for which there is no process
    if subprocess.run([*front, 'sh', '-c', 'python3 -c 1 && exec "$0" --version', NPUSIM],
                      env=env, capture_output=True).returncode:
        raise Skip('another user cannot run python3 or this command')
    for most in 2, 3:
        run = subprocess.run([*front, '--nproc={}'.format(most), NPUSIM, 'sweep', '--out',
                              folder / str(most), '-j', '3', '--seeds', '9', 'bench', *FEW],
                             env=env, capture_output=True, text=True)
        same((run.returncode, run.stderr), (0, ''), most)
        same([r['status'] for r in rows(folder / str(most))], ['ok'] * 9, most)
    args = ['--timeout', '1', '--vary', 'count=1000,1000000000', 'bench', '--size', '64m']
    for place in ['--out', folder / 'late'], ['--dry-run']:
        run = subprocess.run([*front, '--nproc=2', NPUSIM, 'sweep', '-j', '1', *place, *args],
                             env=env, capture_output=True, text=True, timeout=60)
        expect('row 1: took longer than 1 s\n' in run.stdout + run.stderr, run)
        same(run.returncode, 1, place)


@case
def an_interrupted_sweep_goes_on_where_it_was(folder):
    out, finished = folder / 'out', []
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
        before = len(finished)
        run = begun(out, before + 3, '-j', 2, *FEW_SEEDS)
        run.send_signal(number)
        said = run.communicate(timeout=60)[0]
        same(run.returncode, -9 if number == signal.SIGKILL else 128 + number, 'status')
        finished = lines(out)
        if number != signal.SIGKILL:
            same(said, '{}/rows.csv: {} of {} rows done, 0 failed\n'.format(
                out, len(finished), FEW_SEEDS[1]), 'how far it got')
        expect(before + 3 <= len(finished) < FEW_SEEDS[1], finished)
        if number != signal.SIGKILL:
            same(len(rows(out)), len(finished), 'the tables have what is finished')
    (out / 'rows.csv').unlink()
    sweep(out, '--merge', *FEW_SEEDS)
    same(len(rows(out)), len(finished), 'the same tables, and no row more')
    expect((out / 'rows.csv').exists(), 'rows.csv')
    with open(out / 'rows.jsonl', 'a') as file:
        file.write('{"row":79,"sta')
    sweep(out, *FEW_SEEDS)
    head = (whole() / 'rows.csv').read_text().splitlines()[:1 + FEW_SEEDS[1]]
    same((out / 'rows.csv').read_text().splitlines(), head, 'as if run at once')
    same(sorted(line['row'] for line in lines(out)), list(range(FEW_SEEDS[1])), 'every row once')


@case
def a_spoilt_line_runs_again(folder):
    out = pathlib.Path(shutil.copytree(whole(), folder / 'out'))
    path = out / 'rows.jsonl'
    path.write_bytes(path.read_bytes().split(b'\n', 1)[1] + b'\0\0\0\0\n[1]\n7\n'
                     b'{"row":"a","status":"ok"}\n{"row":0}\n{"row":200,"status":"ok"}\n' +
                     b'[' * 100000 + b'\n{"row":1,"status":"ok","x":{}}\n'
                     b'{"row":0,"status":"failed","seconds":1}\n'
                     b'{"row":0,"status":"failed","reason":7,"seconds":1}\n'
                     b'{"row":0,"status":"failed","reason":"","seconds":"1"}\n')
    sweep(out, '--merge', *SEEDS)
    same(len(rows(out)), SEEDS[1] - 1, 'rows')
    sweep(out, *SEEDS)
    for name in 'rows.csv', 'seeds.csv':
        same((out / name).read_text(), (whole() / name).read_text(), name)


@case
def a_merge_waits_for_another(folder):
    """The lock is of a file: one of a folder stays on its node."""
    locks = pathlib.Path('/proc/locks')
    if not locks.exists():
        raise Skip('there is no /proc/locks')
    out, args = folder / 'out', ['--seeds', '1', 'bench', *FEW]
    sweep(out, *args)
    with open(out / 'sweep.txt', 'r+') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = started('--out', out, *args)
        waits = re.compile(r'-> FLOCK .* {} '.format(run.pid))
        wait_until(lambda: waits.search(locks.read_text()), 'it waits')
    run.communicate(timeout=60)
    same(run.returncode, 0, 'it goes on')


@case
def another_sweep_is_refused(folder):
    out, profile = folder / 'out', folder / 'mine.ini'
    profile.write_text('[Profile]\nbase=Ascend910B1\n')
    args = ['--vary', 'seed=1,2', 'bench', '--soc', profile, *FEW]
    sweep(out, '--out', out, *args)
    refused(['"command=', '--count 1000', 'another --out'], '--out', out, '--vary', 'seed=1,2',
            'bench', '--soc', profile)
    refused(['vary=seed=1,2'], '--out', out, '--vary', 'seed=1,2,3', *args[2:])
    profile.write_text('[Profile]\nbase=Ascend910B1\n[MMU]\nwalkers=3\n')
    refused(['"files='], '--out', out, *args)
    profile.write_text('[Profile]\nbase=Ascend910B1\n')
    text = (out / 'sweep.txt').read_text()
    for line in 'version=', 'build=':
        (out / 'sweep.txt').write_text(text.replace(line, line + '9'))
        refused(['"{}9'.format(line)], '--out', out, *args)
    (out / 'sweep.txt').write_bytes(b'\xff\0')
    refused(['of another sweep'], '--out', out, *args)
    (out / 'sweep.txt').write_text(text)
    sweep(out, '--out', out, *args)
    run = npusim('sweep', '--out', out, '--out', out, *args, env=environment(NPUSIM_HBM='4G'))
    expect(run.returncode == 2 and 'NPUSIM_HBM=4G' in run.stderr, run)


@case
def rows_of_other_inputs_do_not_mix(folder):
    out, trace = folder / 'out', folder / 'in.npt.gz'
    args = ['--vary', 'no-copies=no,yes', 'replay', trace]
    shutil.copy(SAMPLE, trace)
    sweep(out, *args)
    same([r['no-copies'] for r in rows(out)], ['no', 'yes'], 'a flag')
    with open(trace, 'ab') as file:
        file.write(b'\0')
    refused(['"files='], '--out', out, *args)
    refused(['--vary=no-copies', 'yes, no'], '--out', folder / 'b', '--vary', 'no-copies=1',
            'replay', trace)


@case
def what_a_run_writes_is_no_input(folder):
    """Nor the variables that say where, which differ from process to process."""
    args = ['--vary', 'seed=1,2', 'bench', *FEW, '--commands', folder / 'commands-{row}']
    for shard in '1/2', '2/2', '1/2':
        run = npusim('sweep', '--out', folder / 'out', '--shard', shard, *args,
                     env=environment(NPUSIM_TRACE=str(folder / 't.npt')))
        same((run.returncode, run.stderr), (0, ''), shard)
    for row in range(2):
        npusim('bench', *FEW, '--seed', row + 1, '--commands', folder / 'alone')
        same((folder / 'commands-{}'.format(row)).read_text(), (folder / 'alone').read_text(),
             'each row has its own')


@case
def the_row_is_in_names_of_files_that_are_written_alone(folder):
    out, trace = folder / 'out', folder / 't{row}.trc'
    trace.write_text('64\n')
    args = '--seeds', 2, 'bench', '--pattern=trace', trace, '--commands', folder / 'hbm-{row}'
    sweep(out, *args)
    same([r['file'] for r in rows(out)], [str(trace)] * 2, 'read')
    expect((folder / 'hbm-1').exists(), 'written')
    trace.write_text('128\n')
    refused(['"files='], '--out', out, *args)


@case
def any_name_is_a_name(folder):
    for name in b'a\xe9.npt.gz', b'a\nb.npt.gz':
        out, path = folder / os.fsdecode(name[:-7]), folder / os.fsdecode(name)
        shutil.copy(SAMPLE, path)
        for again in range(2):
            sweep(out, '--vary', 'no-copies=yes', 'replay', path)
    (folder / 'plan').write_bytes(b'file=' + os.fsencode(folder) + b'/a\xe9.npt.gz\n')
    sweep(folder / 'out', '--plan', folder / 'plan', 'replay')
    paths = [os.fsencode(folder) + b'/t\xe9.trc', os.fsencode(folder) + b'/t\xe8.trc']
    for path in paths:
        with open(path, 'w') as file:
            file.write('64\n')
    sweep(folder / 'two', '--vary', os.fsdecode(b'file=' + b','.join(paths)), '--seeds', '2',
          'bench', '--pattern', 'trace')
    same(len(rows(folder / 'two', 'seeds')), 2, 'two names')


@case
def what_makes_no_row_has_failed(folder):
    sweep(folder / 'out', '--vary', 'pattern=published', 'bench', status=1)
    same(rows(folder / 'out')[0]['reason'].split(' has ')[1].split(' ', 1)[1],
         'results, a row takes one', 'reason')
    (folder / 'plan').write_bytes(b'file=a\0b,' + b'c' * (2 << 20) + b',' + b'c' * 200000 + b'\n')
    args = '--plan', folder / 'plan', 'bench', '--pattern', 'trace'
    sweep(folder / 'odd', *args, status=1)
    nul, long, run = (r['reason'] for r in rows(folder / 'odd'))
    same((nul, re.sub('[0-9]{7} bytes', 'N bytes', long)),
         ('it cannot be started: a NUL is in it',
          'it cannot be started: its words are N bytes, more than 2097151'), 'odd')
    expect('File name too long' in run, run)
    dry = npusim('sweep', '--dry-run', *args)
    expect(dry.returncode == 1 and 'row 0: ' + nul in dry.stderr and 'row 1: ' + long in dry.stderr,
           dry)
    plain = npusim('sweep', '--out', folder / 'ascii', '--vary', 'soc=\u00fc', 'bench',
                   env=environment(PYTHONIOENCODING='ascii'))
    same((plain.returncode, plain.stderr), (1, ''), 'ascii')
    expect('row 0: --soc: \\xfc: there is no SoC' in plain.stdout, plain)
    few = subprocess.run(['sh', '-c', 'ulimit -n 24; exec "$@"', 'sh', NPUSIM, 'sweep', '--out',
                          folder / 'few', '-j', '64', '--seeds', '64', 'bench', *FEW],
                         env=environment(), capture_output=True, text=True)
    same((few.returncode, few.stderr), (0, ''), 'few descriptors: fewer at a time')
    same(len(rows(folder / 'few')), 64, 'rows')
    full = subprocess.run(['sh', '-c', 'ulimit -f 16; exec "$@"', 'sh', NPUSIM, 'sweep', '--out',
                           folder / 'full', '--seeds', '64', 'bench', *FEW], env=environment(),
                          capture_output=True, text=True)
    expect(full.returncode == 1 and 'rows.jsonl' in full.stderr, full)


@case
def what_cannot_be_asked_is_no_wrong_usage(folder):
    """Where memory is short, say."""
    fake = folder / 'npusim'
    fake.write_text('#!/bin/sh\nkill -9 $$\n')
    fake.chmod(0o755)
    script = pathlib.Path(NPUSIM).with_name('sweep.py')
    run = subprocess.run([sys.executable, script, fake, '1', '--out', folder / 'out', '--seeds=2',
                          'bench', *FEW], env=environment(), capture_output=True, text=True)
    same((run.returncode, run.stdout, run.stderr),
         (1, '', 'npusim sweep: npusim bench --list-options: exit status -9\n'), 'run')


FAKE = """#!/bin/sh
case "$*" in
*--list-options*) printf -- '--count=\\tx\\n';;
*--row*) echo 'npusim bench: warning: too fast' >&2; echo '[{"ps":1}]'; sleep 0.1;;
esac
"""


@case
def warnings_are_kept_and_a_log_has_progress(folder):
    """Of a command that does little else, and a script that waits less."""
    (folder / 'fake').write_text(FAKE)
    (folder / 'fake').chmod(0o755)
    own = (pathlib.Path(NPUSIM).parent / 'sweep.py').read_text()
    (folder / 'sweep.py').write_text(re.sub('LOG_SECONDS = [0-9]+', 'LOG_SECONDS = 0.15', own))
    shutil.copy(pathlib.Path(NPUSIM).parent / 'plot.html', folder)
    args = [sys.executable, folder / 'sweep.py', folder / 'fake', '1', '--out', folder / 'out',
            '-j', '1', '--vary', 'count=1,2,3,4', 'bench']
    run = subprocess.run(args, capture_output=True, text=True)
    same(run.returncode, 0, run)
    expect(re.match(r'npusim sweep: [0-4] of 4 rows, \d+ s left\n', run.stderr), run.stderr)
    same([(r['status'], r['reason']) for r in rows(folder / 'out')],
         [('ok', 'warning: too fast')] * 4, 'rows')
    for name in 'bench.so', 'acl/libascendcl.so', 'fake':
        (folder / 'acl').mkdir(exist_ok=True)
        with open(folder / name, 'a') as file:
            file.write('# another build')
        other = subprocess.run(args, capture_output=True, text=True)
        expect(other.returncode == 2 and 'build=' in other.stderr, 'another build', other)
        (folder / 'out' / 'sweep.txt').write_text(re.sub(
            'build=.*', re.search('build=[^"]*(?=";)', other.stderr)[0],
            (folder / 'out' / 'sweep.txt').read_text()))
    args[args.index(folder / 'out')] = folder / 'full'
    with open('/dev/full', 'w') as full:
        same(subprocess.run(args, stdout=subprocess.DEVNULL, stderr=full).returncode, 0, 'full log')


@case
def one_process_at_a_time_has_a_file(folder):
    out = folder / 'out'
    args = ['-j', 1, '--vary', 'count=1000,1000000000', 'bench', '--size', '64m']
    run = begun(out, 1, *args)
    other = npusim('sweep', '--out', out, *args)
    expect('another process is at it' in other.stderr and other.returncode == 1, other)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=60)


# ---- MPI ----

def need_mpi():
    if not HAS_MPI:
        raise Skip('npusim was built without an MPI (libopenmpi-dev)')
    need('mpirun')


def need_open_mpi_4():
    if '(Open MPI) 4.' not in subprocess.run(['mpirun', '--version'], capture_output=True,
                                             text=True).stdout:
        raise Skip('only Open MPI 4 is known to take these options')


@case
def ranks_share_the_rows_and_survive_the_death_of_one(folder):
    need_mpi()
    out = folder / 'out'
    run = begun(out, 100, *SEEDS, front=[*MPIRUN, '4'])
    first, other, *_ = children(run.pid)
    os.kill(first, signal.SIGSTOP)  # that all others run meanwhile would be another test
    os.kill(other, signal.SIGKILL)
    run.communicate(timeout=120)
    expect(run.returncode != 0 and 100 <= len(lines(out)) < 200, run.returncode, len(lines(out)))
    again = started('--out', out, *SEEDS, front=[*MPIRUN, '4'])
    same((again.communicate(timeout=120)[0], again.returncode),
         ('{}/rows.csv: 200 of 200 rows done, 0 failed\n'.format(out), 0), 'again')
    same_tables(out, whole())
    same(len(list(out.glob('rows-rank*.jsonl'))), 4, 'a file each')


TWENTY = '--seeds', 20, 'bench', '--count', '100000', '--size', '64m'


def ranks_with_rows(out, *front, words=TWENTY):
    """Those of all ranks that have run one, when every row is done."""
    run = subprocess.run(list(map(str, [*front, NPUSIM, 'sweep', '--out', out, *words])),
                         env=environment(), capture_output=True, text=True)
    same((run.returncode, sorted(line['row'] for line in lines(out))), (0, list(range(20))), run)
    return [int(re.search('rank([0-9]+)', path.name)[1])
            for path in sorted(out.glob('rows-rank*.jsonl')) if path.stat().st_size]


def two_processors():
    need_mpi()
    need('taskset')
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip('two processors are needed')
    return sorted(os.sched_getaffinity(0))[:2]


@case
def no_more_ranks_run_rows_than_have_a_processor(folder):
    first, other = two_processors()
    front = '--bind-to', 'none', 'taskset', '-c'
    both = '{},{}'.format(first, other)
    same(ranks_with_rows(folder / 'both', *MPIRUN, '4', *front, both), [0, 1], 'on two')
    same(ranks_with_rows(folder / 'one', *MPIRUN, '2', *front, first), [0], 'on one')
    same(ranks_with_rows(folder / 'asked', *MPIRUN, '2', *front, first, words=('-j', 1, *TWENTY)),
         [0, 1], 'as many as asked for')
    run = NPUSIM, 'sweep', '--out', folder / 'own', *TWENTY, ':', '-n', '1', 'taskset', '-c'
    same(ranks_with_rows(folder / 'own', *MPIRUN, '1', *front, first, *run, first, *run, other),
         [0, 2], 'each on its own')


@case
def ranks_that_fill_the_processors_have_one_each(folder):
    first, other = two_processors()
    both = {first, other}
    front = '--bind-to', 'none', 'taskset', '-c', '{},{}'.format(first, other)
    asked = '-j', 1, *SEEDS
    for count, words, each in ((4, SEEDS, [{first}, {other}, both, both]), (1, SEEDS, [both]),
                               (2, asked, [both, both])):
        run = begun(folder / 'out{}'.format(count), 1, *words,
                    front=[*MPIRUN, str(count), *front])
        wanted = sorted(map(sorted, each))
        wait_until(lambda: sorted(sorted(os.sched_getaffinity(rank)) for rank in
                                  children(run.pid)) == wanted, 'other processors')
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)


@case
def each_node_has_its_processors(folder):
    """Of two nodes that are this one, started by an agent that goes nowhere."""
    first, _ = two_processors()
    need_open_mpi_4()
    agent = folder / 'agent'
    # Daemons that make one folder at the same time can fail.
    agent.write_text('#!/bin/sh\nexport TMPDIR="{}/$1"\nmkdir "$TMPDIR"\nshift\n'
                     'exec sh -c "$*"\n'.format(folder))
    agent.chmod(0o755)
    same(ranks_with_rows(folder / 'out', *MPIRUN, '4', '--bind-to', 'none', '--host', 'a:2,b:2',
                         '--mca', 'plm_rsh_agent', agent, '--mca', 'rtc', '^hwloc', '--mca', 'btl',
                         'tcp,self', 'taskset', '-c', first), [0, 2], 'one of each')


@case
def tables_that_cannot_be_written_are_called_by_their_names(folder):
    for name in ('rows.sqlite', 'rows.csv', 'plot.html'):
        out = folder / name
        (out / name).mkdir(parents=True)
        run = npusim('sweep', '--out', out, '--seeds', 2, 'bench', *FEW)
        same((run.returncode, run.stderr.splitlines()[-1]),
             (1, 'npusim sweep: {}: Is a directory'.format(out / name)), run.stderr)
        same([path.name for path in out.glob('.*')], [], 'left over')


@case
def tables_that_cannot_be_written_end_all_ranks(folder):
    """Also where the MPI ends none itself."""
    need_mpi()
    need_open_mpi_4()
    (folder / 'out' / 'rows.csv').mkdir(parents=True)
    run = started('--out', folder / 'out', *TWENTY, front=[*MPIRUN, '2', '--enable-recovery'])
    said = run.communicate(timeout=60)
    same(len(lines(folder / 'out')), 20, said)
    same('rows.csv' in said[1], True, said)


@case
def a_long_row_holds_up_no_other(folder):
    need_mpi()
    counts = [1000] * 20
    counts[10] = 10 ** 9
    run = begun(folder / 'out', 19, '--vary', 'count=' + ','.join(map(str, counts)), 'bench',
                '--size', '64m', front=[*MPIRUN, '2'])
    run.terminate()
    run.communicate(timeout=60)


@case
def a_rank_that_cannot_begin_ends_all(folder):
    need_mpi()
    (folder / 'out').mkdir()
    with open(folder / 'out' / 'rows-rank1.jsonl', 'a') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        run = started('--out', folder / 'out', *TWENTY, front=[*MPIRUN, '2'])
        said = run.communicate(timeout=60)[1]
    expect(run.returncode != 0 and 'rows-rank1.jsonl: another process is at it' in said, said)


@case
def a_process_that_dies_without_a_row_costs_none(folder):
    need_mpi()
    out = folder / 'out'
    run = begun(out, 20, *SEEDS, front=[*MPIRUN, '2'])
    first, other = sorted(children(run.pid), key=lambda pid: b'\0OMPI_COMM_WORLD_RANK=0\0' not in
                          pathlib.Path('/proc/{}/environ'.format(pid)).read_bytes())
    os.kill(first, signal.SIGSTOP)  # who hands the rows out
    quiet = [time.monotonic(), 0]

    def idle():
        if any(map(children, children(other))) or len(lines(out)) != quiet[1]:
            quiet[:] = time.monotonic(), len(lines(out))
        return time.monotonic() - quiet[0] > 1
    wait_until(idle, 'no row runs')
    for process in children(other):
        os.kill(process, signal.SIGKILL)
    os.kill(first, signal.SIGCONT)
    said = run.communicate(timeout=60)
    same((run.returncode, said), (0, ('{}/rows.csv: 200 of 200 rows done, 0 failed\n'.format(out),
                                      '')), 'all rows')


@case
def a_command_without_the_module_says_so(folder):
    (folder / 'bin').mkdir()
    command = shutil.copy(NPUSIM, folder / 'bin')
    shutil.copy(pathlib.Path(NPUSIM).parent / 'sweep.py', folder / 'bin')
    env = environment(OMPI_COMM_WORLD_SIZE='2', LD_LIBRARY_PATH=str(
        pathlib.Path(NPUSIM).parents[1] / 'runtime'))
    run = subprocess.run([command, 'sweep', '--seeds', '2', '--out', folder / 'out', 'bench'],
                         env=env, capture_output=True, text=True)
    expect(run.returncode == 1 and 'use --shard' in run.stderr and
           'sweep-ranks.so' in run.stderr, run)


# ---- profiles ----

@case
def profiles_are_listed_explained_and_start_a_device(folder):
    names = [line.split()[0] for line in npusim('profile', 'list').stdout.splitlines()]
    expect(len(names) == 13 and 'Ascend910B1' in names, names)
    keys = npusim('profile', 'keys').stdout.splitlines()
    shown = npusim('profile', 'show', 'Ascend910B3').stdout
    same(len(keys), sum(not line.startswith('#') and '=' in line for line in shown.splitlines()),
         'keys')
    for name in names:  # as files their keys are looked at, as built in they are not
        path = pathlib.Path(__file__).resolve().parents[2] / 'sim/profiles/{}.ini'.format(name)
        run = npusim('info', '--soc', path, '--node', 'sweep-{}'.format(os.getpid()))
        same(run.returncode, 0, run.stderr)
    path = folder / 'mine.ini'
    path.write_text(shown.replace('\nwalkers=16\n', '\nwalkers=4\n'))
    result, = json.loads(npusim('bench', '--soc', path, '--json', '-', *FEW).stdout)
    same((result['soc'], result['changed']), ('Ascend910B3', ['MMU.walkers=4']), 'of a file')
    for says, *args in (('known are Ascend910B1', 'show', 'Ascend1'), ('list, keys', 'show'),
                        ('it takes list | keys',)):
        run = npusim('profile', *args)
        same((run.returncode, run.stdout), (2, ''), args)
        expect(says in run.stderr, run.stderr)


main()
