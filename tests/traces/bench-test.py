#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npusim bench from outside: every pattern, operation and page size, traces, profiles changed,
# text against JSON, wrong values, and figures against what follows from the profile alone.
# usage: bench-test.py NPUSIM

import configparser
import itertools
import json
import math
import os
import pathlib
import pty
import random
import re
import shutil
import subprocess

import jedec
from command import NPUSIM, case, environment, expect, main, npusim, same

ROOT = pathlib.Path(__file__).resolve().parents[2]
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def profile():
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'sim' / 'profiles' / 'Ascend910B1.ini')
    return parser


PROFILE = profile()
TCK = PROFILE.getint('HBM', 'tck_ps')
PEAK = (PROFILE.getint('HBM', 'stacks') * PROFILE.getint('HBM', 'channels') *
        PROFILE.getint('HBM', 'pseudo_channels') * 8 * 2 * 1000 / TCK)  # GB/s: 8 bytes, two beats


def clocks(*keys):
    return sum(PROFILE.getint('HBM', key) for key in keys)


def points(*args):
    run = npusim('bench', '--json', '-', *args)
    same((run.returncode, run.stderr), (0, ''), args)
    return json.loads(run.stdout)


def bench(*args):
    result, = points(*args)
    return result


def ordered(r):
    times = [r[name + '_ps'] for name in ('min', 'p50', 'p90', 'p99', 'max')]
    same(times, sorted(times), 'percentiles in order')
    expect(r['min_ps'] <= r['mean_ps'] <= r['max_ps'], r)


def near(got, wanted, part, what):
    expect(abs(got - wanted) <= part * wanted, what, got, 'is not', wanted)


# ---- what can be asked for ----

@case
def every_pattern_operation_and_page_size(folder):
    for pattern, op, page in itertools.product(('sequential', 'random', 'strided', 'chase'),
                                               ('read', 'write', 'mixed'), ('4k', '2m', '1g')):
        count = 300 if pattern == 'chase' else 15000
        size = 16 * MIB if page == '4k' else 2 * GIB
        r = bench('--pattern', pattern, '--op', op, '--page', page, '--size', size,
                  '--count', count, '--engines', 3)
        what = (pattern, op, page)
        same((r['accesses'], r['bytes']), (count, count * 128), what)
        near(r['gb_s'], r['bytes'] * 1000 / r['ps'], 1e-6, what)
        expect(r['gb_s'] <= PEAK, what)
        same(r['tlb_l1_hits'] + r['tlb_l2_hits'] + r['tlb_misses'], r['tlb_requests'], what)
        same((r['l2_reads'] > 0, r['l2_writes'] > 0), (op != 'write', op != 'read'), what)
        same(r['l2_walk_reads'], r['walk_levels'], what)
        ordered(r)


@case
def text_and_json_say_the_same(folder):
    path = folder / 'out.json'
    run = npusim('bench', '--json', path, '--count', 20000, '--op', 'mixed', '--size', '1g')
    same((run.returncode, run.stderr), (0, ''), 'bench')
    r, = json.loads(path.read_text())
    share = lambda part, whole: '{:.2f} %'.format(100 * part / whole if whole else 0)
    hits = r['tlb_l1_hits'] + r['tlb_l2_hits']
    for text in ('accesses         {accesses}, {bytes} bytes in '.format(**r),
                 'bandwidth        {:.2f} GB/s\n'.format(r['gb_s']),
                 'latency          ' + '  '.join(
                     '{} {:.1f}'.format(name, r[name + '_ps'] / 1e3)
                     for name in ('min', 'mean', 'p50', 'p90', 'p99', 'max')) + ' ns\n',
                 'TLB Hit Rate     ' + share(hits, r['tlb_requests']),
                 'TLB Miss Rate    ' + share(r['tlb_misses'], r['tlb_requests']),
                 'walks            {}, {:.1f} ns each'.format(r['walks'],
                                                              r['walk_ps'] / r['walks'] / 1e3),
                 'TLB reach        {:.2f} GiB of {} entries\n'.format(r['tlb_live_bytes'] / GIB,
                                                                      r['tlb_l2_entries']),
                 share(r['l2_read_hits'], r['l2_reads']) + ' of reads, ' +
                 share(r['l2_write_hits'], r['l2_writes']) + ' of writes, ' +
                 share(r['l2_walk_hits'], r['l2_walk_reads']) + ' of walks, {} conflicts\n'.format(
                     r['l2_conflicts']),
                 'HBM row hits     ' + share(r['hbm_row_hits'],
                                             r['hbm_row_hits'] + r['hbm_row_misses']) +
                 ' of requests, ' + share(r['hbm_bursts'] - r['hbm_row_misses'],
                                          r['hbm_bursts']) + ' of bursts'):
        expect(text in run.stdout, repr(text), 'is not in', run.stdout)


@case
def a_module_that_is_none_is_told(folder):
    """The command in another folder: no module beside it, then a library that is another."""
    (folder / 'bin').mkdir()
    (folder / 'sim').mkdir()
    command = shutil.copy(NPUSIM, folder / 'bin')
    env = environment(LD_LIBRARY_PATH=str(pathlib.Path(NPUSIM).parents[1] / 'runtime'))
    for says in ('there is no bench.so', 'npusim_bench_run'):
        run = subprocess.run([command, 'bench', '--count', '10'], env=env, capture_output=True,
                             text=True)
        same((run.returncode, run.stdout), (1, ''), says)
        expect(says in run.stderr, says, 'is not in', run.stderr)
        libc = re.search(r'/\S*/libc[.]so\S*', pathlib.Path('/proc/self/maps').read_text())
        shutil.copy(libc.group(), folder / 'sim' / 'bench.so')


@case
def members_are_those_of_the_manual(folder):
    page = (ROOT / 'traces' / 'man' / 'npusim-bench.1').read_text()
    documented = set(re.findall(r'\w+', ' '.join(re.findall(r'^\.Ic (.*)', page, re.M))))
    same(set(bench('--count', 10)), documented, 'members')


@case
def the_same_run_gives_the_same_result(folder):
    args = '--engines', 7, '--op', 'mixed', '--count', 30000
    same(bench(*args), bench(*args), 'twice')


@case
def profiles_are_chosen_changed_and_read(folder):
    path = folder / 'mine.ini'
    path.write_text('[Profile]\nbase=Ascend910B1\n[MMU]\ntlb_l2_entries=64\ntlb_l2_ways=8\n')
    args = '--count', 5000
    mine = bench('--soc', path, *args)
    same(bench('--soc', path, '--page', '2M', *args), mine, 'upper and lower case')
    same((mine['tlb_l2_entries'], mine['changed']), (64, ['MMU.tlb_l2_entries=64']),
         '--soc of a file')
    same(bench('--set', 'MMU.tlb_l2_entries=64', '--set', 'MMU.tlb_l2_ways=8', *args), mine,
         '--set')
    same(bench('--soc', path, '--set', 'MMU.tlb_l2_entries=2048', *args), bench(*args),
         '--set over --soc')
    path.write_text('[Profile]\nbase=Ascend910B1\n[SoCInfo]\nsoc_name=Mine\n')
    mine = bench('--soc', path, *args)
    same(mine['soc'], 'Mine', 'soc')
    expect({'SoCInfo.soc_name=Mine', 'L2.ways=16'} <= set(mine['changed']), 'all keys', mine)
    expect(bench('--soc', 'H100', *args) != bench(*args), '--soc')


def traced(folder, *lines):
    path = folder / 'trace'
    path.write_text('\n'.join(lines) + '\n')
    return path


@case
def a_trace_is_read_in_each_format(folder):
    """The same reads and writes, as DRAMsim3, Ramulator (two kinds), Ramulator 2 and DRAMSys have
    them."""
    addresses = [random.Random(1).randrange(1 << 20) * 64 for _ in range(3000)]
    args = '--size', '64m', '--access', 64, '--pattern', 'trace'
    plain = bench(*args, traced(folder, '# reads', *map(hex, addresses)))
    same((plain['count'], plain['accesses'], plain['l2_writes']), (3000, 3000, 0), 'reads')
    for line in ('{:#x} READ 7', '{:#X} R', 'LD {}', '0x{:x}', '3 {}', '31:\tread\t{:#x}',
                 '0: (16) read {:#x}'):
        path = traced(folder, *(line.format(a) for a in addresses))
        same(bench(*args, path), plain, line)
    same(bench(*args, '--count', 6000, path)['accesses'], 6000, 'twice')
    both = bench(*args, traced(folder, *('{} {} 9'.format(a, ('READ', 'write')[i % 5 == 4])
                                         for i, a in enumerate(addresses))))
    same((both['l2_reads'], both['l2_writes']), (2400, 600), 'writes')
    for read, write in (('{} R', '{} W'), ('LD {:#x}', 'ST {:#x}'),
                        (' 7: read {:#x}', '8:\t(16)\twrite\t{:#x}\t0x' + 'f' * 128)):
        same(bench(*args, traced(folder, *((read, write)[i % 5 == 4].format(a)
                                           for i, a in enumerate(addresses)))), both, read)
    same((plain['op'], both['op']), ('traced', 'traced'), 'op')
    expect(0.6 * plain['gb_s'] < both['gb_s'] < 1.1 * plain['gb_s'],
           'no pause between read and write', plain['gb_s'], both['gb_s'])
    pairs = zip(addresses[::2], addresses[1::2])
    same(bench(*args, traced(folder, *('5 {} {}'.format(*pair) for pair in pairs)))['l2_writes'],
         1500, 'a processor')


@case
def a_trace_is_the_pattern_that_it_was_made_of(folder):
    lines = [hex(i * 128) for i in range(20000)]
    got = bench('--pattern', 'trace', '--engines', 4, traced(folder, *lines))
    wanted = bench('--pattern', 'sequential', '--engines', 4, '--count', 20000)
    for result in got, wanted:
        del result['pattern'], result['file'], result['op']
    same(got, wanted, 'sequential')


@case
def wrong_traces_are_told(folder):
    for text, *says in [('0x40\nnonsense\n', 'trace:2', '"nonsense"', 'ADDRESS'),
                        ('0x40 X\n', '"0x40 X"'), ('LD\n', '"LD"'), ('', 'no access'),
                        ('1 2 x\n', '"1 2 x"'), ('0x40 R W\n', '"0x40 R W"'),
                        ('LD 64 R\n', '"LD 64 R"'), ('5: read\n', '"5: read"'),
                        ('5: (16 read 64\n', '"5: (16 read 64"'),
                        ('0x10000000000\n', 'trace:1', '--size above'),
                        ('5 0xffffffffffff 0\n', 'trace:1', '--size above'),
                        ('0x8000000000001000 R\n', 'trace:1', '--size above'),
                        ('x' * 999 + '\n', '"' + 'x' * 40 + '"')]:
        (folder / 'trace').write_text(text)
        run = npusim('bench', '--pattern', 'trace', folder / 'trace')
        same((run.returncode, run.stdout), (2, ''), text)
        for word in says:
            expect(word in run.stderr, word, 'is not in', run.stderr)
    run = npusim('bench', '--pattern', 'trace', '-', stdin=None, input='nonsense\n')
    same(run.returncode, 2, run.stderr)
    expect('-:1: "nonsense"' in run.stderr, run.stderr)
    name = os.fsencode(folder) + b'/l\xe9.trc'
    with open(name, 'w') as file:
        file.write('64\n')
    expect('l\ufffd.trc' in bench('--pattern', 'trace', os.fsdecode(name))['file'], 'a name')
    profile = name.replace(b'.trc', b'.ini')
    with open(profile, 'w') as file:
        file.write('[Profile]\nbase=Ascend910B2\n')
    same(bench('--count', 1, '--soc', os.fsdecode(profile))['soc'], 'Ascend910B2', 'its name')
    for option in '--count', '--set', '--op':
        run = npusim('bench', option, '\udce9', errors='surrogateescape')
        expect(run.returncode == 2 and '\udce9' in run.stderr, option, run.stderr)
    run = npusim('bench', '--pattern', 'trace', folder / 'none')
    same(run.returncode, 1, 'a file that is not there')


@case
def values_that_depend_on_one_another_are_set_together(folder):
    same(bench('--count', 10, '--set', 'MMU.tlb_l2_ways=7', '--set',
               'MMU.tlb_l2_entries=7')['tlb_l2_entries'], 7, 'ways and entries')


@case
def wrong_values_are_status_2_and_named(folder):
    for args, *says in [
            (['--pattern', 'zigzag'], '--pattern=zigzag', 'chase'),
            (['--op', 'erase'], '--op=erase', 'mixed'),
            (['--page', '64k'], '--page=64k', '2m'),
            (['--size', '12q'], '--size=12q'),
            (['--size', '-1'], '--size=-1'),
            (['--size', '5000g'], '--size=5000g', 'to 4.00 TiB'),
            (['--size', '3k'], '3072', 'whole pages of 2097152'),
            (['--size', '900g'], 'at most'),
            (['--access', '96'], '96', 'must divide the size'),
            (['--access', '0'], '0', 'must divide the size'),
            (['--pattern', 'strided', '--stride', '100'], '100', 'multiple of the access'),
            (['--count', '0'], '0 accesses'),
            (['--warmup', '-3'], '--warmup=-3'),
            (['--seed', 'x'], '--seed=x'),
            (['--engines', '0'], '--engines=0'),
            (['--engines', '73'], '73', '1 to 72'),
            (['--soc', 'Ascend1'], 'Ascend1', 'Ascend910B1'),
            (['--soc', './none.ini'], './none.ini'),
            (['--set', 'HBM.nothing=1'], 'HBM.nothing'),
            (['--set', 'MMU.walkers=0'], 'walkers'),
            (['--pattern', 'trace'], 'which file'),
            (['more'], "'more'")]:
        run = npusim('bench', *args)
        same((run.returncode, run.stdout), (2, ''), args)
        for text in says:
            expect(text in run.stderr, args, 'says', run.stderr)


@case
def files_that_cannot_be_had_are_status_1(folder):
    run = npusim('bench', '--count', 10, '--json', folder / 'none' / 'out.json')
    same(run.returncode, 1, 'status')
    expect('none' in run.stderr, run.stderr)


@case
def json_says_what_ran(folder):
    asked = {'pattern': 'strided', 'op': 'mixed', 'page': '4k', 'size': 16 * MIB, 'access': 256,
             'stride': 8192, 'count': 3000, 'warmup': 500, 'engines': 5, 'seed': 9}
    r = bench('--soc', 'Ascend910B3', '--set', 'L2.ways=8',
              *('--{}={}'.format(*each) for each in asked.items()))
    same({key: r[key] for key in asked}, asked, 'asked')
    same((r['soc'], r['changed']), ('Ascend910B3', ['L2.ways=8']), 'profile')
    says = subprocess.run([NPUSIM, '--version'], env=environment(), capture_output=True, text=True)
    same('npusim ' + r['version'], says.stdout.strip(), 'version')


@case
def another_seed_is_another_order(folder):
    one, two = (bench('--count', 20000, '--seed', seed) for seed in (0, 1))
    expect(one['ps'] != two['ps'] and one['tlb_misses'] != two['tlb_misses'], one, two)


@case
def a_long_run_shows_progress_on_a_terminal(folder):
    ours, its = pty.openpty()
    command = [NPUSIM, 'bench', '--count', '6000000', '--size', '32g']
    run = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=its)
    os.close(its)
    shown = b''
    while b' %' not in shown:
        shown += os.read(ours, 1000)
    expect(re.search(rb'\[#* *\] +\d+ %', shown), shown)
    run.kill()
    run.wait()
    os.close(ours)


# ---- the commands of the HBM ----

def hbm_of(**changed):
    """[HBM] of the profile, but for its map."""
    hbm = {key: PROFILE.getint('HBM', key) for key in PROFILE['HBM']
           if key not in ('map', 'refresh', 'refresh_per_bank')}
    return {**hbm, 'refresh': 1, 'refresh_per_bank': 0, **changed}


def commands(folder, *args, **changed):
    """What is wrong with them, and how many there are of each."""
    hbm = hbm_of(**changed)
    sets = itertools.chain.from_iterable(
        ('--set', 'HBM.{}={}'.format(key, value)) for key, value in changed.items())
    bench('--commands', folder / 'commands', *args, *sets)
    return jedec.check(folder / 'commands', hbm)


def mixture(folder, count):
    """Random reads and writes, over an L2 that keeps few of them, in two channels."""
    rand = random.Random(3)
    sets = 'SoCInfo.l2_bytes=256K', 'HBM.stacks=1', 'HBM.channels=2', 'HBM.map=auto'
    return (*('--set=' + each for each in sets), '--engines', 24, '--pattern', 'trace', traced(
        folder, *('{:#x} {}'.format(rand.randrange(1 << 26) * 128, rand.choice('RRW'))
                  for _ in range(count))))


@case
def commands_keep_the_rules_of_jedec(folder):
    mixed = mixture(folder, 3000)
    for changed, args in [({'refresh': 0}, mixed), ({}, mixed), ({'refresh_per_bank': 1}, mixed),
                          ({}, (*mixed, '--access', 32)),
                          ({}, ('--count', 15000, '--engines', 48)),
                          ({}, ('--count', 2000, '--pattern', 'sequential', '--op', 'write',
                                '--access', '4k', '--set', 'SoCInfo.l2_bytes=1M'))]:
        wrong, counts = commands(folder, *args, **changed)
        same(wrong[:3], [], (changed, args))
        expect(counts['activate'] > counts['precharge'] > 100, counts)
        expect(bool(counts['refresh'] + counts['refresh_bank']) == changed.get('refresh', True),
               counts)
        expect(counts['read'] > 1000 if args[0] == '--count' and args[1] == 15000 else
               counts['write'] > 1000, args, counts)


def random_hbm(rand):
    """Clocks of a memory that nobody makes, and refreshes close together."""
    some = {key: rand.randint(*limits) for key, limits in {
        'cl': (10, 40), 'cwl': (2, 20), 'rcd_rd': (10, 30), 'rcd_wr': (8, 24), 'rp': (10, 30),
        'wr': (10, 32), 'rtp': (4, 12), 'rrd_s': (2, 8), 'wtr_s': (1, 14), 'rtw': (4, 20),
        'rfc': (200, 600), 'refi': (1000, 7000), 'rfc_sb': (100, 300), 'refi_sb': (50, 600),
    }.items()}
    more = {'ras': some['rcd_rd'] + rand.randint(10, 40), 'ccd_l': 2 * rand.randint(1, 12),
            'rrd_l': some['rrd_s'] + rand.randint(0, 4),
            'faw': 4 * some['rrd_s'] + rand.randint(0, 16),
            'wtr_l': some['wtr_s'] + rand.randint(0, 20)}
    clocks = {key + '_tck': value for key, value in
              {**some, **more, 'rc': more['ras'] + some['rp']}.items()}
    return {**clocks, 'stacks': rand.choice([1, 2]), 'channels': rand.choice([1, 2, 4]),
            'burst_length': rand.choice([4, 8]), 'ccd_s_tck': rand.choice([2, 3, 4]),
            'pseudo_channels': rand.choice([1, 2]), 'queue_requests': 8 << rand.randint(0, 3),
            'refresh_per_bank': rand.randint(0, 1)}


def random_load(rand, count):
    """Addresses at random, in a row, of few rows of few banks, or of the first two."""
    last, kind, what = 0, rand.randrange(4), rand.choice(['R', 'W', 'RW', 'RRRRRRRW'])
    for _ in range(count):
        last += rand.randint(0, 3) * 128
        place = [rand.randrange(1 << 30), last,
                 rand.randrange(8) << 20 | rand.randrange(1 << 17),
                 rand.choice([rand.randrange(1 << 30), last])][kind]
        yield '{:#x} {}'.format(place, rand.choice(what))


@case
def commands_of_any_memory_keep_the_rules(folder):
    rand = random.Random(9)
    for _ in range(25):
        hbm, size = random_hbm(rand), rand.choice([32, 64, 128, 256, 512])
        trace = traced(folder, *random_load(rand, 2000))
        wrong, counts = commands(
            folder, '--set=SoCInfo.l2_bytes=256K', '--set=HBM.map=auto', '--pattern', 'trace',
            '--engines', rand.randint(1, 48), '--access', size, trace, **hbm)
        same(wrong[:3], [], (hbm, size))
        expect(counts['activate'] > 10, counts)


@case
def the_check_of_commands_sees_what_is_wrong(folder):
    """A longer parameter than the one that was run with breaks its rule, and no other."""
    commands(folder, *mixture(folder, 2500), refresh=0)
    hbm = hbm_of(refresh=0)
    for key, more, says in (
            ('rcd_rd', 2, 'after activate'), ('rcd_wr', 99, 'after activate'),
            ('ras', 2, 'after activate'), ('rp', 2, 'after precharge'), ('rc', 2, 'after activate'),
            ('rtp', 99, 'after read'), ('wr', 99, 'after write'), ('wtr_s', 9, 'after write'),
            ('wtr_l', 9, 'after write'), ('rtw', 2, 'after read'), ('faw', 99, 'five activations'),
            ('ccd_s', 2, 'of the same all'), ('ccd_l', 2, 'of the same group'),
            ('rrd_s', 9, 'of the same all'), ('rrd_l', 9, 'of the same group')):
        longer = {**hbm, key + '_tck': hbm[key + '_tck'] + more}
        wrong, _ = jedec.check(folder / 'commands', longer)
        expect(wrong, key)
        for line in wrong:
            expect(says in line, key, line)


@case
def the_check_of_commands_sees_what_is_wrong_with_refreshes(folder):
    for each in 0, 1:
        mixed = mixture(folder, 6000)
        commands(folder, *mixed, refresh_per_bank=each)
        hbm, of = hbm_of(refresh_per_bank=each), '_sb' if each else ''
        for key, more, says in (('rfc' + of, 1, 'in a refresh'), ('rp', 1, 'after precharge'),
                                ('refi' + of, 1, 'an interval'), ('refi' + of, -1, 'an interval')):
            longer = {**hbm, key + '_tck': hbm[key + '_tck'] + more}
            wrong, _ = jedec.check(folder / 'commands', longer)
            expect(any(says in line for line in wrong), key, wrong[:3])
        lines = (folder / 'commands').read_text().splitlines(keepends=True)
        for without, says in (('refresh', 'no refresh'), ('precharge', 'a row is open')):
            (folder / 'less').write_text(''.join(each for each in lines if without not in each))
            wrong, _ = jedec.check(folder / 'less', hbm)
            expect(any(says in line for line in wrong), without, wrong[:3])


@case
def commands_that_are_booked_in_one_step_are_refused(folder):
    run = npusim('bench', '--commands', folder / 'commands', '--access', '1m', '--count', 100,
                 '--set', 'HBM.map=o5 c5 s2 h3 p1 g2 b2 r16')
    same((run.returncode, run.stdout), (1, ''), 'status')
    expect('smaller --access' in run.stderr, run.stderr)
    run = npusim('bench', '--commands', folder / 'none' / 'commands', '--count', 100)
    same(run.returncode, 1, 'no such folder')


# ---- what the figures must be ----

@case
def accesses_of_any_size_are_counted_once(folder):
    for access in ('16k', '32k', '1m'):
        r = bench('--engines', 8, '--pattern', 'sequential', '--access', access, '--size', '8g',
                  '--count', 1024)
        same((r['accesses'], r['bytes']), (1024, 1024 * r['access']), access)
        near(r['gb_s'], 8 * PROFILE.getint('Engine', 'vector_core_bytes_per_us') / 1000, 0.1,
             access)
        # The last byte comes no sooner than the core can ask for it.
        expect(r['min_ps'] >= (r['access'] - 16 * KIB) * 10**6 /
               PROFILE.getint('Engine', 'vector_core_bytes_per_us'), access, r['min_ps'])


@case
def no_stage_lets_more_pass_than_it_can(folder):
    rand = random.Random(16)
    engine = lambda kind: PROFILE.getint('Engine', kind + '_bytes_per_us')
    for _ in range(12):
        page = rand.choice(('4k', '2m', '1g'))
        asked = {'pattern': rand.choice(('sequential', 'random', 'strided')),
                 'op': rand.choice(('read', 'write', 'mixed')), 'page': page,
                 'size': rand.choice((16, 64)) * MIB if page == '4k' else rand.choice((1, 8)) * GIB,
                 'access': 1 << rand.randrange(5, 21), 'engines': rand.randrange(1, 73)}
        asked['count'] = max(asked['engines'], min(20000, GIB // 4 // asked['access']))
        asked['warmup'] = rand.choice((0, asked['count']))
        asked['stride'] = asked['access'] * rand.randrange(1, 9)
        r = bench(*('--{}={}'.format(*each) for each in asked.items()))
        vectors = min(asked['engines'], PROFILE.getint('SoCInfo', 'vector_core_cnt'))
        cores = (vectors * engine('vector_core') + (asked['engines'] - vectors) * engine('core'))
        l2 = PROFILE.getint('L2', 'bytes_per_us')
        same((r['accesses'], r['cores_bytes_per_us'], r['l2_bytes_per_us'],
              r['hbm_bytes_per_us']), (asked['count'], cores, l2, PEAK * 1000), asked)
        us = r['ps'] / 1e6 * 1.0001
        expect(r['bytes'] <= cores * us, asked, r)
        expect(128 * (r['l2_reads'] + r['l2_writes'] + r['l2_walk_reads']) <= l2 * us, asked, r)
        # 64 pseudo channels have up to 32 writes of a line in front of them.
        expect(r['hbm_read_bytes'] + r['hbm_write_bytes'] <= PEAK * 1000 * us + 64 * 32 * 128,
               asked, r)


@case
def bursts_of_any_length_follow_one_another_on_the_bus():
    """Column commands as near as they may be asked for: all cores have the peak of one stack."""
    for burst, apart, op in itertools.product((2, 4, 8, 16), (0, 1, 2), ('read', 'write')):
        r = bench('--pattern', 'sequential', '--op', op, '--engines', 48, '--access', '4k',
                  '--count', 6000, '--set', 'SoCInfo.l2_bytes=256K', '--set', 'HBM.map=auto',
                  '--set', 'HBM.stacks=1', '--set', 'HBM.channels=1', '--set', 'HBM.ccd_l_tck=0',
                  '--set', 'HBM.burst_length={}'.format(burst), '--set',
                  'HBM.ccd_s_tck={}'.format(apart))
        most = r['hbm_bytes_per_us'] * min(1, burst / 2 / max(1, apart)) / 1000
        expect(0.8 * most <= r['gb_s'] <= 1.01 * most, burst, apart, op, r['gb_s'], 'of', most)


@case
def random_reads_hit_the_l2_by_capacity(folder):
    """An L2 of 6 MiB after five times its capacity: capacity / footprint, to three sigma."""
    capacity, count = 6 * MIB, 200000
    for access, footprint in itertools.product((64, 128, 512), (8, 12, 24)):
        r = bench('--set', 'SoCInfo.l2_bytes=6M', '--size', footprint * MIB, '--access', access,
                  '--count', count, '--warmup', 5 * capacity // access)
        p, got = capacity / (footprint * MIB), r['l2_read_hits'] / r['l2_reads']
        near(got, p, 0.02, (access, footprint))
        expect(abs(got - p) <= 3 * math.sqrt(p * (1 - p) / count), got, p, access, footprint)


@case
def published_measurements_are_met_or_explained(folder):
    published = configparser.ConfigParser(delimiters='=', interpolation=None)
    published.read(pathlib.Path(__file__).parents[2] / 'sim/bench/published.ini')
    rows = points('--pattern', 'published')
    same(len(rows), len(published.sections()), 'all rows of published.ini')
    expect(sum('ratio' in row for row in rows) > 20, rows)
    expect(any('ratio' not in row for row in rows), 'rows without a model are listed')
    for row in rows:
        expect(row['source'] and row['measured'] > 0, row)
        if 'ratio' in row:
            near(row['ratio'], row['measured'] / row['modelled'], 1e-6, row)
            expect(row['note'] or row['expected'] == 1, row)
            near(row['ratio'], row['expected'], 0.1, row)
    table = npusim('bench', '--pattern', 'published').stdout
    for row in rows:
        expect(row['what'] in table, row['what'], 'is not in', table)


@case
def other_servers_are_reached_at_the_published_rates(folder):
    rows = points('--pattern', 'remote')
    fitted = [row for row in rows if 'submitted by the device' in row['source']]
    same((len(rows), len(fitted)), (16, 6), rows)
    for row in fitted:
        near(row['ratio'], 1, 0.02, row)
    same(sum('16 KiB' in row['what'] for row in rows), 3, 'rows that show the latency')


@case
def a_warm_up_is_not_counted(folder):
    args = '--size', '64m', '--engines', 8, '--access', '4k', '--pattern', 'sequential'
    cold, warm = bench(*args, '--count', 16384), bench(*args, '--count', 16384, '--warmup', 16384)
    same((cold['l2_read_hits'], cold['warmup_ps']), (0, 0), 'cold')
    same((warm['l2_read_hits'], warm['hbm_read_bytes'], warm['accesses']),
         (warm['l2_reads'], 0, 16384), 'warm')
    near(warm['warmup_ps'], cold['ps'], 0.001, 'the warm-up is the cold run')
    run = npusim('bench', *args, '--count', 16384, '--warmup', 16384)
    expect('warm-up          16384 accesses in ' in run.stdout, run.stdout)


@case
def random_reads_of_a_line_or_less_open_a_row_each(folder):
    for access in (64, 128):
        r = bench('--access', access, '--size', '32g', '--count', 100000)
        expect(r['hbm_row_hits'] <= 0.02 * r['hbm_row_misses'], 'requests', r)
        near(r['hbm_bursts'], 4 * (r['hbm_row_hits'] + r['hbm_row_misses']), 0.001, 'bursts')


@case
def outstanding_bytes_limit_what_is_under_way(folder):
    """Little's law: with room for one access a core's reads are as far apart as they take."""
    for access in (64, 512):
        one, two = (bench('--access', access, '--count', 5000, '--size', '1g',
                          '--set', 'Engine.core_outstanding_bytes={}'.format(n * access))
                    for n in (1, 8))
        near(one['ps'], 5000 * one['mean_ps'], 0.03, access)
        expect(two['ps'] * 5 < one['ps'], access, one['ps'], two['ps'])


def l2_hit_ps():
    """A line that is there: the core's TLB, the L2's latency, one line at its bandwidth."""
    line = PROFILE.getint('L2', 'line_bytes') * 10**6 / PROFILE.getint('L2', 'bytes_per_us')
    return PROFILE.getint('MMU', 'tlb_l1_ps') + PROFILE.getint('L2', 'hit_ps') + line


@case
def chase_in_one_page_is_the_l2s_hit_latency(folder):
    r = bench('--pattern', 'chase', '--page', '4k', '--size', '4k', '--count', 5000)
    near(r['min_ps'], l2_hit_ps(), 0.001, 'min')
    near(r['p50_ps'], l2_hit_ps(), 1 / 32, 'p50')
    near(r['p99_ps'], l2_hit_ps(), 1 / 32, 'p99')
    same((r['walks'], r['tlb_misses'], r['l2_reads'] - r['l2_read_hits'],
          r['l2_walk_reads'] - r['l2_walk_hits']),
         (1, 1, 4096 // 128, r['walk_levels']), 'first touches')
    near(r['ps'], r['accesses'] * r['mean_ps'], 0.01, 'one after another')


@case
def chase_in_open_rows_is_the_hbms_hit_latency(folder):
    """1 MiB is a row in each bank; hardly anything fits into this L2."""
    r = bench('--pattern', 'chase', '--page', '4k', '--size', '1m', '--count', 30000,
              '--set', 'MMU.tlb_l1_entries=256', '--set', 'SoCInfo.l2_bytes=64k',
              '--set', 'HBM.refresh=false')
    rows = MIB // KIB
    expect(rows <= r['hbm_row_misses'] <= rows + 2 * r['walk_levels'],
           'each row is opened once, but for walks', r['hbm_row_misses'])
    # Four bursts of 32 bytes; the request waits for the next clock.
    hit = l2_hit_ps() + (clocks('cl_tck') + 3 * clocks('ccd_l_tck') + 2) * TCK
    near(r['p50_ps'], hit, 1 / 32, 'p50')
    near(r['p90_ps'], hit, 1 / 32, 'p90')
    reads = r['l2_reads']
    misses = (reads - r['l2_read_hits']) / reads
    opening = rows * clocks('rcd_rd_tck') * TCK
    mean = l2_hit_ps() + misses * (hit - l2_hit_ps() + TCK / 2) + opening / reads
    near(r['mean_ps'] - r['walk_ps'] / reads, mean, 0.01, 'mean')
    ordered(r)


@case
def random_reads_miss_the_tlb_by_the_closed_form(folder):
    """Fully associative, random: misses are 1 - entries / pages, to three sigma and the start."""
    for entries, page, size in ((1024, '2m', 8 * GIB), (512, '2m', 8 * GIB), (4, '1g', 8 * GIB)):
        count = 200000
        pages = size // (2 * MIB if page == '2m' else GIB)
        r = bench('--page', page, '--size', size, '--count', count,
                  '--set', 'MMU.tlb_l2_ways={}'.format(min(entries, 8)),
                  '--set', 'MMU.tlb_l2_entries={}'.format(entries),
                  '--set', 'MMU.tlb_l2_ways={}'.format(entries))
        p = 1 - entries / pages
        same(r['tlb_requests'], count, 'one a read')
        near(r['tlb_misses'], count * p, (3 * math.sqrt(p * (1 - p) * count) + entries) / count / p,
             'misses with {} entries'.format(entries))
        same(r['tlb_live_bytes'], entries * size // pages, 'reach')
        same(r['walks'], r['tlb_misses'], 'each miss walks')


@case
def sequential_reads_and_writes_have_the_bandwidth(folder):
    for op, count in ('read', 60000), ('write', 200000):  # the L2 keeps some writes
        r = bench('--pattern', 'sequential', '--op', op, '--engines', 48, '--access', '8k',
                  '--size', '4g', '--count', count)
        expect(0.85 * PEAK <= r['gb_s'] <= PEAK, op, r['gb_s'], 'of', PEAK)


@case
def sequential_reads_hit_open_rows(folder):
    r = bench('--pattern', 'sequential', '--access', '64k', '--size', '1g', '--count', 16384)
    misses = r['l2_reads'] - r['l2_read_hits']
    same(misses, GIB // 128, 'nothing is read twice')
    same(r['hbm_read_bytes'], (misses + r['l2_walk_reads'] - r['l2_walk_hits']) * 128, 'bytes')
    expect(r['hbm_row_misses'] < 0.05 * r['hbm_bursts'], 'row hits of bursts', r)


@case
def giant_pages_need_fewer_walks(folder):
    huge, giant = (bench('--page', page, '--size', '32g', '--count', 50000)
                   for page in ('2m', '1g'))
    same(giant['walks'], 32, 'a walk for each page')
    expect(huge['walks'] > 0.8 * 50000, huge['walks'])
    expect(giant['mean_ps'] < huge['mean_ps'], giant['mean_ps'], huge['mean_ps'])


if __name__ == '__main__':
    main()
