#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# libnpusim-record.so over our own libascendcl.so, the closest thing to CANN's that is here: what it
# writes tells the same as what the runtime itself records; threads, forks, kills, libraries that
# are opened with RTLD_LOCAL, and programs without any.
# usage: preload-test.py NPUSIM LIBRARY LIBASCENDCL PROGRAM OPENED SAMPLE SYMBOLS

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

from command import case, environment, expect, main, npusim, same

LIBRARY, ASCENDCL, PROGRAM, OPENED, SAMPLE = map(os.path.abspath, sys.argv[2:7])
SYMBOLS = pathlib.Path(sys.argv[7])
KILLS = int(os.environ.get('NPUSIM_TEST_KILLS', '20'))


def own_environment(folder, preload, **more):
    name = folder.name.replace('npusim-command-', '')
    env = environment(NPUSIM_NODE='preload-' + name, LD_LIBRARY_PATH=os.path.dirname(ASCENDCL),
                      NPUSIM_FAILURES='off', **more)
    # where the program carries a sanitizer, it is not the first library any more
    env['ASAN_OPTIONS'] = env.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'
    if preload:
        env['LD_PRELOAD'] = LIBRARY
    return env


def run(command, env, **more):
    options = dict(stdin=subprocess.DEVNULL)
    options.update(more)
    return subprocess.run(list(map(str, command)), env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, **options)


def traced(folder, name, command, preload, **more):
    """Runs it with a trace, which it returns as lines."""
    path = folder / name
    done = run(command, own_environment(folder, preload, NPUSIM_TRACE=str(path)), **more)
    same(done.returncode, 0, '{} ({})'.format(command, done.stderr))
    return path.read_text().split('\n')[:-1]


def events(lines):
    """Without what differs: stamps, and calls that only one of the two levels has."""
    plain = (re.sub(r'^(?:[@+~]\d+ )*(?=:)', '', line) for line in lines[1:])
    return [line for line in plain if not re.match(r'info |\S+ call |call ', line)]


def readable(path):
    """A summary by npusim itself: the file is a right trace. Its number of events."""
    done = npusim('replay', path, '--json', '-')
    same(done.returncode, 0, 'replay of {} ({})'.format(path, done.stderr))
    return json.loads(done.stdout)['events']


def differences(ours, theirs):
    return ['{!r} and not {!r}'.format(a, b) for a, b in zip(ours, theirs) if a != b][:5]


# ---- the same as the runtime's own ----

@case
def the_sample_is_recorded_as_the_runtime_records_it(folder):
    ours = events(traced(folder, 'preload.npt', [SAMPLE], True))
    theirs = events(traced(folder, 'runtime.npt', [SAMPLE], False))
    expect(len(theirs) > 1000)
    same(differences(ours, theirs), [], 'lines')
    same(len(ours), len(theirs), 'lines')


@case
def every_verb_is_recorded_as_the_runtime_records_it(folder):
    ours = events(traced(folder, 'preload.npt', [PROGRAM, 'all'], True))
    theirs = events(traced(folder, 'runtime.npt', [PROGRAM, 'all'], False))
    # what the API says by flags of an export, the driver is told by a call of its own
    ours = [line.replace(' flags=1 key=', ' flags=0 key=') for line in ours]
    same(differences(ours, theirs), [], 'lines')
    same(len(ours), len(theirs), 'lines')
    words = {line.split(' ')[1] for line in ours}
    same(words, {'device', 'reserve', 'unreserve', 'create', 'release', 'retain', 'map', 'unmap',
                 'access', 'export', 'import', 'malloc', 'mfree', 'copy', 'fill'}, 'verbs')
    readable(folder / 'preload.npt')


@case
def the_head_says_where_it_comes_from(folder):
    lines = traced(folder, 'head.npt', [PROGRAM, 'all'], True)
    same(lines[0], 'npusim-trace 1', 'first line')
    expect(re.fullmatch(r'info program=preload-program pid=\d+ start=\d+ run=\S+ backend=cann',
                        lines[1]), lines[1])
    same([line for line in lines if line.startswith('info soc')],
         ['info soc=Ascend910B1 devices=8'], 'what the library says')
    # what each call took, no simulated time, and one thread; of a call with two lines on the first
    took = [line for line in lines if re.match(r'info |@\d+ \+\d+ :1\.1 ', line)]
    again = [line for line in lines if re.match(r'@\d+ :1\.1 access ', line)]
    same(len(took) + len(again), len(lines) - 1, lines)
    same(len(again), sum(' access ' in line for line in took), lines)


@case
def results_errno_and_messages_are_the_real_ones(folder):
    lines = traced(folder, 'outcomes.npt', [PROGRAM, 'outcomes'], True)
    for text in ('reserve r2 size=4194304 flags=1 va=0x0 => 100000', 'unmap r1+0 => 507899',
                 'device id=99 op=set => 107001', 'unreserve r1'):
        same(len([line for line in lines if line.endswith(' ' + text)]), 1, text)


# ---- threads and processes ----

@case
def threads_are_told_apart(folder):
    lines = events(traced(folder, 'threads.npt', [PROGRAM, 'threads'], True))
    for verb, count in (('map', 800), ('unmap', 800), ('create', 4), ('release', 4)):
        same(len([line for line in lines if line.split(' ')[1] == verb]), count, verb)
    for thread in range(2, 6):
        mine = [line.split(' ')[1] for line in lines if line.startswith(':1.{} '.format(thread))]
        same(mine, ['device', 'create', 'reserve'] + ['map', 'unmap'] * 200 +
             ['unreserve', 'release'], 'thread {}'.format(thread))
    readable(folder / 'threads.npt')


@case
def children_write_parts_of_their_own(folder):
    env = own_environment(folder, True, NPUSIM_TRACE=str(folder / 'part-%p.npt'))
    done = run([PROGRAM, 'family'], env)
    same(done.returncode, 0, done.stderr)
    parts = sorted(folder.glob('part-*.npt'), key=lambda path: path.stat().st_size)
    same(len(parts), 4, 'parts')
    pids = set()
    for path in parts:
        lines = path.read_text().split('\n')
        pid = re.search(r' pid=(\d+) ', lines[1]).group(1)
        same(path.name, 'part-{}.npt'.format(pid), 'name of a part')
        pids.add(pid)
        readable(path)
    same(len(pids), 4, 'processes')
    # the child after the parent's calls: its call failed; the two that made all calls tell the same
    expect('reserve r1 size=2097152 flags=1 va=0x0 => ' in parts[0].read_text() or
           'reserve r1 size=2097152 flags=1 va=0x0 => ' in parts[1].read_text())
    same(events(parts[2].read_text().split('\n')), events(parts[3].read_text().split('\n')),
         'fork and exec')


@case
def each_process_has_a_file_without_a_pattern_too(folder):
    for preload in (True, False):
        name = 'one' if preload else 'two'
        env = own_environment(folder, preload, NPUSIM_TRACE=str(folder / (name + '.npt')))
        same(run([PROGRAM, 'family'], env).returncode, 0, 'status')
        parts = sorted(folder.glob(name + '*'))
        same(len(parts), 4 if preload else 3, parts)  # the runtime hears no call after the fork
        plain = 0
        for path in parts:
            pid = re.search(r' pid=(\d+) ', path.read_text().split('\n')[1]).group(1)
            plain += path.name == name + '.npt'
            expect(path.name in (name + '.npt', '{}.{}.npt'.format(name, pid)), path)
            readable(path)
        same(plain, 1, 'the first')


@case
def programs_of_one_run_keep_their_files(folder):
    env = own_environment(folder, True, NPUSIM_TRACE=str(folder / 'run.npt'), NPUSIM_RUN='one')
    script = '{0} all && {0} all && exec {0} all'.format(PROGRAM)
    same(run(['sh', '-c', script], env).returncode, 0, 'status')
    parts = sorted(folder.glob('run*'))
    same(len(parts), 3, parts)
    same(len({tuple(events(path.read_text().split('\n'))) for path in parts}), 1, 'traces')
    env['NPUSIM_RUN'] = 'two'
    same(run([PROGRAM, 'outcomes'], env).returncode, 0, 'status')
    expect('=> 107001' in (folder / 'run.npt').read_text(), 'the next run begins anew')


@case
def a_killed_process_leaves_a_readable_part(folder):
    dice = random.Random(7)
    for number in range(KILLS):
        path = folder / 'killed-{}.npt'.format(number)
        env = own_environment(folder, True, NPUSIM_TRACE=str(path))
        with subprocess.Popen([PROGRAM, 'forever'], env=env, stdout=subprocess.PIPE) as program:
            same(program.stdout.read(1), b'x', 'the program')
            time.sleep(dice.random() * 0.01)
            program.send_signal(signal.SIGKILL)
            program.wait()
        # the kernel may cut the line that it is writing; all others are whole
        lines = events(path.read_text().split('\n')[:-1])
        loop = [line.split(' ')[1] for line in lines if ' map ' in line or ' unmap ' in line]
        same(loop, (['map', 'unmap'] * len(loop))[:len(loop)], 'lines of ' + path.name)
        same(readable(path), len(lines), 'events of ' + path.name)
        path.unlink()


# ---- libraries that are opened, or are not there ----

def wrapped_names():
    return re.findall(r'^\t(aclrt\w+);$', SYMBOLS.read_text(), re.MULTILINE)


@case
def functions_of_an_opened_library_are_recorded(folder):
    path = folder / 'opened.npt'
    env = own_environment(folder, True, NPUSIM_TRACE=str(path))
    del env['LD_LIBRARY_PATH']
    done = run([OPENED, ASCENDCL, '1'], env, stdin=None, input=' '.join(wrapped_names()))
    same((done.returncode, done.stderr), (0, ''), 'opened')
    words = [line.split(' ')[1] for line in events(path.read_text().split('\n')[:-1])]
    same(words, ['device', 'reserve', 'create', 'map', 'unmap', 'release', 'unreserve'], 'verbs')


@case
def the_same_program_runs_without_the_recorder(folder):
    done = run([OPENED, ASCENDCL, '0'], own_environment(folder, False), stdin=None,
               input=' '.join(wrapped_names()))
    same((done.returncode, done.stderr), (0, ''), 'opened')


@case
def a_program_without_an_acl_library_runs(folder):
    path = folder / 'none.npt'
    env = own_environment(folder, True, NPUSIM_TRACE=str(path))
    del env['LD_LIBRARY_PATH']
    done = run([OPENED], env)
    same(done.returncode, 0, done.stderr)
    same(done.stderr.count('\n'), 1, 'lines on stderr: ' + done.stderr)
    expect('no ACL library with aclrtMalloc is loaded' in done.stderr, done.stderr)
    same(path.exists(), False, 'a trace')
    same(run(['sh', '-c', 'echo $(echo well)'], env).stdout, 'well\n', 'a shell')
    same(run([OPENED], own_environment(folder, False)).returncode, 0, 'without the recorder')


@case
def without_a_file_nothing_is_recorded(folder):
    for value, says in ((None, 'names no file'), (str(folder / 'no' / 'file'), 'No such file')):
        more = {} if value is None else {'NPUSIM_TRACE': value}
        done = run([PROGRAM, 'all'], own_environment(folder, True, **more))
        same(done.returncode, 0, done.stderr)
        same(done.stderr.count('\n'), 1, 'lines on stderr: ' + done.stderr)
        expect(says in done.stderr, done.stderr)
        same(list(folder.iterdir()), [], 'files')


@case
def a_full_disk_ends_the_recording_and_not_the_program(folder):
    done = run([PROGRAM, 'all'], own_environment(folder, True, NPUSIM_TRACE='/dev/full'))
    same(done.returncode, 0, done.stderr)
    same(done.stderr.count('\n'), 1, 'lines on stderr: ' + done.stderr)
    expect('NPUSIM_TRACE=/dev/full cannot be written: No space left' in done.stderr, done.stderr)


@case
def devices_are_those_of_the_server(folder):
    path = folder / 'visible.npt'
    env = own_environment(folder, True, NPUSIM_TRACE=str(path), ASCEND_RT_VISIBLE_DEVICES='3,5')
    same(run([PROGRAM, 'all'], env).returncode, 0, 'status')
    devices = set(re.findall(r' (?:device|id)=(\w+)', path.read_text()))
    same(devices, {'3', '5', 'host'}, 'devices')


# ---- npusim record ----

@case
def npusim_record_preloads_and_merges(folder):
    out = folder / 'out.npt.gz'
    env = own_environment(folder, False)
    done = npusim('record', '--preload', '-o', out, '--', PROGRAM, 'family', env=env)
    same(done.returncode, 0, done.stderr)
    expect('of 4 processes' in done.stderr, done.stderr)
    same([path.name for path in folder.iterdir()], ['out.npt.gz'], 'files')
    text = subprocess.run(['gzip', '-dc', str(out)], stdout=subprocess.PIPE, check=True,
                          text=True).stdout
    for process in range(1, 5):
        for said in 'program=preload-program', 'backend=cann':
            expect('\ninfo process={} {}\n'.format(process, said) in text, (process, said))
    same(sorted(set(re.findall(r'^@\d+ \+\d+ :(\d+)\.', text, re.M))),
         ['1', '2', '3', '4'], 'processes')
    for line in re.findall(r'^info .*soc=.*$', text, re.M):
        expect(line.startswith('info process='), line)
    readable(out)


@case
def a_share_has_one_name_in_both_processes(folder):
    out = folder / 'share.npt'
    done = npusim('record', '--preload', '-o', out, '--', PROGRAM, 'share',
                  env=own_environment(folder, False))
    same(done.returncode, 0, done.stderr)
    text = out.read_text()
    expect(re.search(r' :1\.1 export s1 handle=h1 flags=1 key=(\w+)\n', text), text)
    expect(re.search(r' :2\.1 import h1 share=s1 device=0 key=(\w+) site=\S+\n', text), text)


if __name__ == '__main__':
    main()
