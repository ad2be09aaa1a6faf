#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The validation as a tool: the options of the command, statuses, growth, suppressions, the forms of
# reports, processes; and call stacks in the reports of leaks, of memory that is short, and in
# recordings. Prints TAP.

import errno
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
from tap import Skip, expect, run_cases

PROGRAM, COMMAND, LIBRARY, CUDA = map(os.path.abspath, sys.argv[1:])
NODE = 'tool-{}'.format(os.getpid())

PYTHON_PROGRAM = '''
import ctypes
acl = ctypes.CDLL({!r}, mode=ctypes.RTLD_LOCAL)
acl.aclInit(None)
acl.aclrtSetDevice(0)
memory = ctypes.c_void_p()
for step in range(4):
    acl.aclrtMalloc(ctypes.byref(memory), ctypes.c_size_t(2 << 20), 0)
    assert acl.npusimMark(b'step') == 0
acl.aclrtFree(memory)
acl.aclrtFree(memory)
'''

CUDA_PROGRAM = '''
import ctypes
cu = ctypes.CDLL({!r})
memory, context = ctypes.c_uint64(), ctypes.c_void_p()
assert cu.npusimMark(b'step') == 3 # before cuInit
assert cu.cuInit(0) == 0
cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cu.cuCtxSetCurrent(context)
for step in range(4):
    assert cu.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(2 << 20)) == 0
    assert cu.npusimMark(b'step') == 0
assert cu.npusimBlock(memory, ctypes.c_size_t(512)) == 0
assert cu.cuMemsetD8_v2(memory, ctypes.c_ubyte(1), ctypes.c_size_t(1024)) == 0
assert cu.npusimBlockFree(memory) == 0
assert cu.npusimBlockFree(memory) == 0
assert cu.npusimBlock(None, ctypes.c_size_t(512)) == 1
assert cu.npusimBlock(memory, ctypes.c_size_t(0)) == 1
assert cu.npusimMark(None) == 1
'''


def start(argv, folder, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith('NPUSIM_')}
    env.update({'NPUSIM_NODE': NODE, 'NPUSIM_DEVICES': '1', 'NPUSIM_HBM': '1G',
                'NPUSIM_LEAKS': 'off', 'NPUSIM_FAILURES': 'off', **more})
    return subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=60, cwd=folder)


def run(case, folder, **more):
    return start([PROGRAM, case], folder, **{'NPUSIM_VALIDATE': 'on', **more})


def command(words, folder, **more):
    return start([COMMAND] + words, folder, **more)


def summary(done):
    """The rules of the last line, with their counts."""
    last = done.stderr.strip().splitlines()[-1:]
    return re.findall(r'([a-z-]+) (\d+)', last[0].partition(':')[2].partition(';')[0]) \
        if last and 'finding' in last[0] else []


# ---- the command ----

def option(folder):
    for words, code in ((['--validate'], 0), (['--validate=strict'], 0),
                        (['--soc', 'Ascend910B2', '--validate', '--error-exitcode', '9'], 9),
                        (['--validate=off'], 0)):
        done = command(['run'] + words + [PROGRAM, 'free_twice'], folder)
        expect(done.returncode == code, words, done)
        expect(('double-free' in done.stderr) == ('--validate=off' not in words), words, done)
    done = command(['run', '--', '/bin/echo', '--validate'], folder, NPUSIM_LOG='error')
    expect(done.stdout == '--validate\n', done)
    done = command(['run', '/bin/echo', '--validate'], folder, NPUSIM_LOG='error')
    expect(done.stdout == '--validate\n', done)


def options_refused(folder):
    done = command(['run', '--validate=onn', PROGRAM, 'clean'], folder)
    expect(done.returncode == 2 and '--validate=onn' in done.stderr, done)
    done = command(['run', '--error-exitcode', '9', PROGRAM, 'clean'], folder)
    expect(done.returncode == 2 and '--validate' in done.stderr, done)
    done = command(['run', '--validate', '--error-exitcode=256', PROGRAM, 'clean'], folder)
    expect(done.returncode == 2 and '--error-exitcode=256' in done.stderr, done)


def settings_before_the_start(folder):
    touched = pathlib.Path(folder, 'started')
    bad = pathlib.Path(folder, 'bad.supp')
    bad.write_text('{\n  name\n  leak\n}\n', encoding='utf-8')
    long = pathlib.Path(folder, 'long.supp')
    entry = '{{\n  name\n  npusim:leak\n  fun:{}\n}}\n'
    long.write_text(entry.format('main') + entry.format('a' * 300000), encoding='utf-8')
    other = pathlib.Path(folder, 'other.sarif')
    other.write_text('{"runs": []}', encoding='utf-8')
    os.mkfifo(pathlib.Path(folder, 'pipe.sarif'))
    for name, value, said in (('RULES', '-leaks', 'is leak meant?'),
                              ('SUPPRESS', str(bad), 'the entry at line 1'),
                              ('SUPPRESS', str(long), 'the entry at line 6'),
                              ('SUPPRESS', 'none.supp', 'none.supp'),
                              ('FILE', 'none/reports', 'none/reports'),
                              ('FILE', str(other), 'no SARIF file of npusim'),
                              ('FILE', 'pipe.sarif', os.strerror(errno.ESPIPE)),
                              ('LIMIT', '-1', '0 to 1000000'),
                              ('FORMAT', 'sarif', 'NPUSIM_VALIDATE_FILE')):
        done = command(['run', '--validate', '--', '/bin/touch', str(touched)], folder,
                       **{'NPUSIM_VALIDATE_' + name: value})
        expect(done.returncode == 2 and said in done.stderr and not touched.exists(), name, done)
    done = command(['run', '--validate', '--', PROGRAM, 'clean'], folder,
                   NPUSIM_VALIDATE_FILE='unused')
    expect(done.returncode == 0 and done.stderr == '', done)


def check(folder):
    words = ['check', '--backend', 'sim', '--only', 'classic.*', '--format', 'tap']
    plain, on = command(words, folder), command(words + ['--validate'], folder)
    expect(plain.returncode == on.returncode and plain.stdout == on.stdout, plain, on)
    expect('validate: ' in on.stderr and 'validate: leak' not in on.stderr, on.stderr)
    done = command(words + ['--validate'], folder, NPUSIM_VALIDATE_RULES='raze')
    expect(done.returncode == 2 and 'raze' in done.stderr, done)


def captured(folder):
    """Reports of a process whose stderr somebody keeps are shown at the end."""
    done = command(['run', '--validate', '--', '/bin/sh', '-c',
                    '"{}" find_two 2>/dev/null'.format(PROGRAM)], folder)
    expect('stderr was captured' in done.stderr and 'double-free' in done.stderr
           and '2 findings' in done.stderr, done.stderr)


# ---- statuses ----

def leaks_fail(folder):
    for case, leaks, mode, code in (('lose', 'fail', 'off', 1), ('lose', 'fail:7', 'off', 7),
                                    ('clean', 'fail:7', 'off', 0), ('lose', 'fail:7', 'on', 7),
                                    ('lose', 'full', 'off', 0)):
        done = run(case, folder, NPUSIM_LEAKS=leaks, NPUSIM_VALIDATE=mode)
        expect(done.returncode == code, case, leaks, mode, done)
        expect(('device allocation' in done.stderr) == (case == 'lose'), done.stderr)
        expect(mode == 'off' or summary(done) == [('leak', '1')], done.stderr)
    done = run('lose', folder, NPUSIM_LEAKS='fail:7', NPUSIM_VALIDATE_EXIT='9')
    expect(done.returncode == 9, done)
    done = run('lose', folder, NPUSIM_LEAKS='fail:0')
    expect('fail:CODE' in done.stdout + done.stderr, done)


def limit(folder):
    done = run('find_two', folder, NPUSIM_VALIDATE_LIMIT='1')
    expect(len(re.findall('validate: (double-free|leak): ', done.stderr)) == 1
           and 'NPUSIM_VALIDATE_LIMIT=1' in done.stderr, done.stderr)
    expect(sorted(summary(done)) == [('double-free', '1'), ('leak', '1')], done.stderr)


# ---- growth ----

def growth(folder):
    done = run('grow', folder, NPUSIM_VALIDATE_RULES='growth')
    expect(summary(done) == [('growth', '3')], done.stderr)
    expect(done.stderr.count('validate: growth: ') == 1, done.stderr)
    expect("since mark 'step' 2 of 1 to 3, 1 more of allocation is held: 1 made, 0 retained, 0 "
           'given back; in all 3' in done.stderr, done.stderr)
    rows = done.stderr.split("grown from mark 'step' 1 to 5:\n")[1].splitlines()
    expect(re.fullmatch(r' +8.00 MiB +4 +4 +0 +0  allocation: aclrtMalloc, take at .*', rows[1]),
           rows)
    done = run('retain', folder, NPUSIM_VALIDATE_RULES='growth')
    rows = done.stderr.split("grown from mark 'retained' 1 to 4:\n")[1].splitlines()
    expect(re.fullmatch(r' +0 B +3 +0 +3 +0  handle: aclrtMallocPhysical, .*', rows[1]), rows)
    done = run('warm_up', folder)
    expect(done.stderr == '' and done.stdout == '', done)
    done = run('grow', folder, NPUSIM_VALIDATE='off')
    expect(done.stderr == '' and done.stdout == '', done)


# ---- suppressions ----

def suppressions(folder):
    done = run('find_two', folder, NPUSIM_VALIDATE_SUPPRESS='print')
    entries = re.findall(r'^\{\n.*?^\}\n', done.stderr, re.DOTALL | re.MULTILINE)
    expect(len(entries) == 2 and 'npusim:double-free\n   fun:aclrtFree\n   fun:free_twice\n'
           in entries[0], done.stderr)
    known = pathlib.Path(folder, 'known.supp')
    patterns = (entries[0] + entries[1],
                '# both\n{\n all\n npusim:*\n}\n',
                '{\n a\n npusim:double-free\n ...\n fun:find_*\n}\n'
                '{\n b\n npusim:leak\n fun:aclrtMalloc\n src:tool-program.c:*\n obj:*\n ...\n'
                ' src:tool-program.c\n}\n')
    for text in patterns:
        known.write_text(text, encoding='utf-8')
        done = run('find_two', folder, NPUSIM_VALIDATE_SUPPRESS='known.supp',
                   NPUSIM_VALIDATE_EXIT='9')
        expect(done.returncode == 0 and done.stderr == '', text, done)
    for text in ('{\n a\n npusim:double-free\n fun:find_*\n}\n', '{\n b\n npusim:race\n}\n'):
        known.write_text(text, encoding='utf-8')
        done = run('find_two', folder, NPUSIM_VALIDATE_SUPPRESS='known.supp')
        expect(len(summary(done)) == 2, text, done.stderr)
    known.write_text(entries[0], encoding='utf-8')
    done = run('find_two', folder, NPUSIM_VALIDATE_SUPPRESS='known.supp')
    expect('1 finding: leak 1; 1 suppressed;' in done.stderr, done.stderr)


# ---- reports for programs ----

def callback(folder):
    # each message is of the program's call, though its function called others meanwhile
    texts = ('aclrtFree: halMemFree: pp 0x', 'aclrtMemcpy: drvMemcpy: dst: byte 0 of 4 at 0x',
             'aclrtSetDevice: deviceId=3: device 3 does not exist: valid  107001')
    for free in (texts[0], 'aclrtFree: NPUSIM_FAULT: call 2 of halMemFree was made to fail'):
        done = run('call_back', folder, NPUSIM_STACKS='full', NPUSIM_DEVICES='4',
                   ASCEND_RT_VISIBLE_DEVICES='0,3',
                   NPUSIM_FAULT='halMemFree:2:invalid' if 'FAULT' in free else '')
        for line, start in zip(done.stdout.splitlines(), (
                'heard: double-free at tool-program.c:1, 7, right: 1, stacks: 1', free,
                'heard: stale-address at tool-program.c:1, 7, right: 1, stacks: 1', texts[1],
                'heard: placement at tool-program.c:1, 7, right: 1, stacks: 0', texts[2])):
            expect(line.startswith(start), start, done)
        expect(done.stdout.count('\n') == 6, done)
    done = run('call_back', folder, NPUSIM_VALIDATE='off')
    expect(done.stdout == 'callback 207000\n', done)


def sarif(folder):
    path = pathlib.Path(folder, 'found.sarif')
    for results in (2, 3):
        run('find_two' if results == 2 else 'lose', folder, NPUSIM_VALIDATE_FILE='found.sarif')
        document = json.loads(path.read_text(encoding='utf-8'))
        found = document['runs'][0]
        expect(document['version'] == '2.1.0' and len(found['results']) == results, document)
    first = found['results'][0]
    place = first['locations'][0]['physicalLocation']
    expect(first['ruleId'] == 'double-free' and first['message']['text'], first)
    expect(place['artifactLocation']['uri'].endswith('tool-program.c')
           and place['region']['startLine'] > 1, place)
    expect({stack['message']['text'] for stack in first['stacks']} ==
           {'this call', 'it was given back by', 'the memory was made by'}, first['stacks'])
    frames = [[frame['location']['message']['text'] for frame in stack['frames']]
              for stack in first['stacks']]
    expect(all(names.index('main') == len(names) - 1 for names in frames), frames)
    ids = {rule['id'] for rule in found['tool']['driver']['rules']}
    expect({result['ruleId'] for result in found['results']} <= ids, ids)
    path.unlink()
    run('clean', folder, NPUSIM_VALIDATE_FILE='found.sarif')
    expect(json.loads(path.read_text(encoding='utf-8'))['runs'][0]['results'] == [], path)


def need_python():
    if 'TSAN_OPTIONS' in os.environ:
        raise Skip('ThreadSanitizer cannot be loaded late')


def github(folder):
    run('find_two', folder, NPUSIM_VALIDATE_FILE='notes', NPUSIM_VALIDATE_FORMAT='github')
    lines = pathlib.Path(folder, 'notes').read_text(encoding='utf-8').splitlines()
    expect(len(lines) == 2, lines)
    expect(re.match(r'::error file=[^:,]*tool-program\.c,line=\d+,title=npusim double-free::'
                    r'aclrtFree is called .*%0A', lines[0]), lines[0])
    done = run('lose', folder, NPUSIM_VALIDATE_FORMAT='github')
    expect('\n::error ' in done.stderr, done.stderr)
    need_python()
    script = pathlib.Path(folder, 'script.py')
    moves = 'import os\nos.chdir("/")\nmemory'
    script.write_text(PYTHON_PROGRAM.format(LIBRARY).replace('memory', moves, 1), encoding='utf-8')
    done = start([sys.executable, str(script)], folder, NPUSIM_VALIDATE='on',
                 NPUSIM_VALIDATE_FORMAT='github')
    expect('\n::error file=script.py,' in done.stderr, done.stderr)


# ---- processes ----

def fork(folder):
    done = run('fork_late', folder, NPUSIM_VALIDATE_EXIT='9')
    expect(done.stdout == 'child 0\n' and done.returncode == 9, done)
    expect(done.stderr.count('1 finding: double-free 1') == 1, done.stderr)
    done = run('fork_early', folder, NPUSIM_VALIDATE_EXIT='9', NPUSIM_VALIDATE_FILE='of-%p.json')
    expect(done.stdout == 'child 9\n' and done.returncode == 0, done)
    expect(done.stderr.count('2 findings: ') == 1, done.stderr)
    counts = sorted(len(path.read_text(encoding='utf-8').splitlines())
                    for path in pathlib.Path(folder).glob('of-*.json'))
    expect(counts == [0, 2], counts)


def exec_(folder):
    done = run('exec_other', folder, NPUSIM_VALIDATE_FILE='both.json')
    rules = [json.loads(line)['rule'] for line in
             pathlib.Path(folder, 'both.json').read_text(encoding='utf-8').splitlines()]
    expect(rules == ['double-free', 'leak'] and summary(done) == [('leak', '1')], rules, done)


def dlopen(folder):
    """A program that opens the library late, and for itself: Python."""
    need_python()
    done = start([sys.executable, '-c', PYTHON_PROGRAM.format(LIBRARY)], folder,
                 NPUSIM_VALIDATE='on')
    expect(done.returncode == 0, done)
    expect(sorted(rule for rule, _ in summary(done)) == ['double-free', 'growth', 'leak'],
           done.stderr)
    expect('npusimMark\n' in done.stderr and 'aclrtFree\n' in done.stderr, done.stderr)


def cuda(folder):
    """A program of CUDA marks and tells of blocks, too."""
    need_python()
    done = start([sys.executable, '-c', CUDA_PROGRAM.format(CUDA)], folder, NPUSIM_VALIDATE='on')
    expect(done.returncode == 0, done)
    expect(sorted(rule for rule, _ in summary(done)) == ['bounds', 'double-free', 'growth', 'leak'],
           done.stderr)
    done = start([sys.executable, '-c', CUDA_PROGRAM.format(CUDA)], folder, NPUSIM_VALIDATE='on',
                 NPUSIM_STACKS='off')
    expect('bounds: a fill writes ' in done.stderr, done.stderr)


# ---- call stacks elsewhere ----

def leak_report(folder):
    for more in ({'NPUSIM_STACKS': 'short'}, {}):
        done = run('lose', folder, NPUSIM_VALIDATE='off', NPUSIM_LEAKS='full', **more)
        expect(re.search(r'device allocation 0x\w+, .* by aclrtMalloc, take at \S*tool-program.c:'
                         r'\d+, ', done.stderr), done.stderr)
    done = run('lose', folder, NPUSIM_VALIDATE='off', NPUSIM_LEAKS='full', NPUSIM_STACKS='off')
    expect('by driver call ' in done.stderr, done.stderr)


def who_holds(folder):
    done = run('fill_up', folder, NPUSIM_VALIDATE='off', NPUSIM_STACKS='short')
    expect('code 207001\n' in done.stdout, done)
    expect(re.search(r'; of this process: 77\d.00 MiB by aclrtMalloc, take at '
                     r'\S*tool-program.c:\d+\n', done.stdout), done.stdout)
    done = run('fill_up', folder, NPUSIM_VALIDATE='off')
    expect('of this process' not in done.stdout, done.stdout)
    done = run('fill_host', folder, NPUSIM_VALIDATE='off', NPUSIM_STACKS='short')
    expect('code 207001\n' in done.stdout, done)
    expect('of this process' not in done.stdout, done.stdout)


def lines_of_clang(folder):
    """A compiler need not write which unit of a program has which addresses; clang does not."""
    plain = pathlib.Path(folder, 'tool-program')
    subprocess.run(['objcopy', '--remove-section=.debug_aranges', PROGRAM, plain], check=True)
    done = start([plain, 'call_back'], folder, NPUSIM_VALIDATE='on',
                 LD_LIBRARY_PATH=os.path.dirname(LIBRARY))
    expect(re.search(r'  this call:\n    aclrtFree\n    free_twice at \S*tool-program.c:\d+\n',
                     done.stderr), done)


def messages_say_where(folder):
    done = run('release_twice', folder, NPUSIM_VALIDATE='off', NPUSIM_STACKS='short')
    expect(re.search(r'made by aclrtMallocPhysical, take_physical at \S*tool-program.c:\d+, was '
                     r'freed by aclrtFreePhysical, release_twice at \S*tool-program.c:\d+: ',
                     done.stdout), done.stdout)
    done = run('release_twice', folder, NPUSIM_VALIDATE='off')
    expect(re.search(r'made by driver call \d+, was freed by driver call \d+ '
                     r'\(NPUSIM_STACKS=short says where\)', done.stdout), done.stdout)


def messages_are_whole(folder):
    done = run('copy_too_much', folder, NPUSIM_VALIDATE='off', NPUSIM_STACKS='short')
    whole = re.findall(
        r': dst: byte 2097152 of 4194304 \(4 MiB\) at 0x\w+ is not mapped: 0x\w+, 2097152 '
        r'\(2 MiB\) into the reservation at 0x\w+, 4194304 \(4 MiB\), with nothing mapped here: '
        r'\[0x\w+, 0x\w+\) was given back by aclrtUnmapMem, \.\.\.\w+_unmap_it_from_here at '
        r'\S*tool-program.c:\d+; the byte before it is 0x\w+, 2097151 \(about 2.00 MiB\) into the '
        r'mapping at 0x\w+, 2097152 \(2 MiB\), device 0; map memory there first', done.stdout)
    expect(len(whole) == 8, done.stdout)


def handles_say_who_destroyed_them(folder):
    hint = 'destroyed, or its device was reset (NPUSIM_STACKS=short says where)'
    for stacks, how in [('off', hint),
                        ('short', 'destroyed by aclrtDestroyEvent, destroy_twice at ')]:
        done = run('destroy_twice', folder, NPUSIM_VALIDATE='off', NPUSIM_STACKS=stacks)
        first, second = done.stdout.splitlines()
        expect('is no event of this process: it was ' + how in first, done.stdout)
        expect(second.endswith('is no event of this process: it was destroyed, or its device was '
                               'reset, and another has its place since'), done.stdout)


def listed(folder, name, stacks):
    """What `npusim node` shows of a process: before it stops, while it is stopped, as JSON."""
    env = {**os.environ, 'NPUSIM_NODE': name, 'NPUSIM_STACKS': stacks}
    with subprocess.Popen([PROGRAM, 'hold_on'], env=env, stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE) as holder:
        expect(holder.stdout.readline() == 'ready\n', 'ready')
        shown = [command(['node', name] + more, folder).stdout for more in ([], ['--json=-'])]
        os.kill(holder.pid, signal.SIGSTOP)
        shown.append(command(['node', name], folder).stdout)
        os.kill(holder.pid, signal.SIGCONT)
        holder.stdin.close()
        expect(holder.wait(timeout=60) == 0, holder.returncode)
    return shown


def node_says_who_holds(folder):
    shown, text, stopped = listed(folder, NODE + '-held', 'short')
    for line in (r'6.00 MiB of device 0 in 1 device allocation by aclrtMalloc, take',
                 r'2.00 MiB of device 0 in 1 exported handle by aclrtMallocPhysical, take_physical',
                 r'4.00 MiB of device 0 in 1 handle by aclrtMallocPhysical, take_physical',
                 r'4.00 MiB of device 0 in 1 mapping by aclrtMapMem, hold_on'):
        expect(re.search(r'^ +' + line + r' at \S*tool-program.c:\d+$', shown, re.M), shown)
    process, = json.loads(text)[0]['processes']
    expect(process['answer'] == 'whole' and len(process['holds']) == 4, text)
    expect(sum(one['bytes'] for one in process['holds'] if one['kind'] != 'mapping') == 12 << 20 and
           all('tool-program.c:' in one['by'] for one in process['holds']), text)
    expect('does not say what it holds: it is stopped, or busy\n' in stopped, stopped)
    shown, text, _ = listed(folder, NODE + '-held', 'off')
    expect(' by ' not in shown and '(3 allocations, 1 exported' in shown, shown)
    process, = json.loads(text)[0]['processes']
    expect((process['answer'], process['holds']) == ('whole', []), text)


def recording(folder):
    """Who held memory is in a recording, and in the report of it."""
    done = command(['record', '-o', 'calls.npt', '--', PROGRAM, 'fill_up'], folder)
    lines = [line for line in pathlib.Path(folder, 'calls.npt').read_text(encoding='utf-8')
             .splitlines() if ' malloc ' in line]
    site = re.compile(r' site=take%20\(\S*tool-program\.c:\d+\)%0Ahold_much%20\(')
    expect(len(lines) >= 4 and '__libc' not in lines[0] and all(map(site.search, lines[:3])),
           lines, done)
    done = command(['replay', 'calls.npt', '--json', 'report.json'], folder)
    text = pathlib.Path(folder, 'report.json').read_text(encoding='utf-8')
    expect(re.search(r'"site" ?: ?"take \([^"]*tool-program\.c:', text), done, text[:3000])
    done = command(['record', '-o', 'calls.npt', '--', PROGRAM, 'lose'], folder,
                   NPUSIM_STACKS='off')
    expect(' site=' not in pathlib.Path(folder, 'calls.npt').read_text(encoding='utf-8'), done)


def recording_in_front(folder):
    """As the runtime's own, for any ACL library; of Python, too."""
    library = os.path.dirname(LIBRARY)
    done = command(['record', '--preload', '-o', 'calls.npt', '--', PROGRAM, 'fill_up'], folder,
                   LD_LIBRARY_PATH=library)
    lines = [line for line in pathlib.Path(folder, 'calls.npt').read_text(encoding='utf-8')
             .splitlines() if ' malloc ' in line]
    site = re.compile(r' site=take%20\(\S*tool-program\.c:\d+\)%0Ahold_much%20\(')
    expect(len(lines) >= 4 and all(map(site.search, lines[:3])), lines, done)
    need_python()
    done = command(['record', '--preload', '-o', 'calls.npt', '--', sys.executable, '-c',
                    PYTHON_PROGRAM.format(LIBRARY)], folder, LD_LIBRARY_PATH=library)
    text = pathlib.Path(folder, 'calls.npt').read_text(encoding='utf-8')
    expect(' site=<module>%20(<string>:8)\n' in text, text, done)
    command(['record', '--preload', '-o', 'calls.npt', '--', PROGRAM, 'lose'], folder,
            LD_LIBRARY_PATH=library, NPUSIM_STACKS='off')
    expect(' site=' not in pathlib.Path(folder, 'calls.npt').read_text(encoding='utf-8'), done)


TESTS = [option, options_refused, settings_before_the_start, check, captured, leaks_fail, limit,
         growth, suppressions, callback, sarif, github, fork, exec_, dlopen, cuda, leak_report,
         who_holds, lines_of_clang, messages_say_where, messages_are_whole,
         handles_say_who_destroyed_them, node_says_who_holds, recording, recording_in_front]

run_cases([(test.__name__, test) for test in TESTS])
