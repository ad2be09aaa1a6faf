#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The npusim command from outside, but for replay: help and usage, run, info, node; and the manual
# pages against what the command says of itself.
# usage: command-test.py NPUSIM MAN-FOLDER PAGE...; the pages are those that the build made

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys

from command import (NPUSIM, Device, case, environment, expect, main, need, npusim, replay, same,
                     snapshot, write)

PAGES = {path.name: path for path in [*pathlib.Path(sys.argv[2]).glob('*.1'),
                                      *map(pathlib.Path, sys.argv[3:])]}
VERBS = re.findall(r'^  (\w+) {2}', npusim('--help').stdout, re.M)


def run_of(script, *options, **more):
    return npusim('run', *options, '--', 'sh', '-c', script, **more)


# ---- help and usage ----

@case
def help_and_version_are_on_stdout(folder):
    for args in (['--help'], ['-h'], ['help']):
        run = npusim(*args)
        same((run.returncode, run.stderr), (0, ''), args)
        for verb in ('run', 'replay', 'node', 'info'):
            expect(verb in VERBS and re.search(r'^  {} '.format(verb), run.stdout, re.M), verb)
    for args in (['--version'], ['-V']):
        run = npusim(*args)
        same((run.returncode, run.stderr), (0, ''), args)
        expect(re.fullmatch(r'npusim \d+\.\d+\.\d+\n', run.stdout), run.stdout)
    for verb in VERBS:
        run = npusim(verb, '--help')
        same((run.returncode, run.stderr), (0, ''), verb)
        expect('Usage:' in run.stdout and 'npusim ' + verb in run.stdout, run.stdout)
        same(npusim('help', verb).stdout, run.stdout, 'help ' + verb)


@case
def wrong_usage_is_status_2_and_says_what_is_wrong(folder):
    for args, *says in [
            ([], 'Usage: npusim VERB'),
            (['frobnicate'], "'frobnicate'", '--help'),
            (['reprot'], "is report meant?"),
            (['run', '--sock', 'Ascend910B1', '--', 'true'], '--sock', 'is --soc meant?'),
            (['replay', 'a', '--polcy=native'], '--polcy', 'is --policy meant?'),
            (['run', '--soc', 'Ascend910B9', '--', 'true'], 'is Ascend910B', 'meant?'),
            (['explain', 'rac'], "is race meant?"),
            (['bench', '--pattern', 'sequental'], '--pattern', 'is sequential meant?'),
            (['bench', '--soc', 'Ascend910B9'], '--soc', 'is Ascend910B', 'meant?'),
            (['bench', '--set', 'MMU.tlb_l2_way=8'], '--set', 'is MMU.tlb_l2_ways meant?'),
            (['bench', '--set', 'MMU.walkers=0'], '--set', 'walkers'),
            (['bench', '--set', 'MMU.walkers=0', '--set', 'MMU.tlb_l2_way=8'],
             'MMU.walkers=0: must be 1 to 1024\n'),
            (['bench', '--soc', 'Ascend910B1.ini'], 'No such file or directory\n'),
            (['replay', 'a', '--policy', 'expandble'], '--policy', 'is expandable meant?'),
            (['run', '--junit', 'x.xml', '--exec', '--', 'true'], '--junit', '--exec'),
            (['run', '--json', '-', '--', 'true'], "stdout is the program's"),
            (['node', '--reset', 'a', '--json', '-'], '--json', '--reset'),
            (['replay'], 'it takes FILE', "'npusim replay --help'"),
            (['replay', 'a', 'b'], "'b' is one word too many"),
            (['replay', '--colour', 'a'], '--colour'),
            (['replay', 'a', '--devices', '0'], '--devices=0', '1 to 16'),
            (['run'], 'it takes -- PROGRAM'),
            (['run', '--'], 'it takes -- PROGRAM'),
            (['run', '--node', 'a/b', '--', 'true'], '--node=a/b', 'letters'),
            (['run', '--timing', 'fast', '--', 'true'], '--timing=fast', 'on, off'),
            (['run', '--contract', 'doc', '--', 'true'], 'docs meant'),
            (['run', '--hbm', 'much', '--', 'true'], '64G'),
            (['run', '--backend', 'gpu', '--', 'true'], 'hw, sim, auto'),
            (['help', 'frobnicate'], "'frobnicate'"),
            (['info', 'x'], 'no argument', "'x'"),
            (['node', 'a', 'b'], "'b' is one word too many"),
            (['node', '--reset', 'a', 'b'], 'one name', 'without b')]:
        run = npusim(*args)
        same((run.returncode, run.stdout), (2, ''), args)
        for text in says:
            expect(text in run.stderr, repr(text), 'is not in', run.stderr)


@case
def output_that_cannot_be_written_is_a_failure(folder):
    for args in (['--version'], ['info'], ['--help'], ['replay', '--help'], ['info', '--json', '-'],
                 ['run', '--list-options'], ['sweep', '--help'], ['sweep', '--list-options']):
        with open('/dev/full', 'w') as full:
            run = subprocess.run([NPUSIM, *args], env=environment(), stdout=full,
                                 stderr=subprocess.PIPE, text=True, timeout=60)
        same(run.returncode, 1, 'status')
        expect('No space left' in run.stderr, run.stderr)
    one = ['check', '--backend', 'sim', '--device', 0, '--only', 'access.null_or_zero']
    for option, file, says in (('--output', '/dev/full', 'No space left'),
                               ('--output', folder / 'no/x', 'No such file'),
                               ('--calibrate', folder / 'no/x', 'No such file')):
        run = npusim(*one, option, file)
        same(run.returncode, 1, 'status')
        expect('npusim check: {}'.format(file) in run.stderr and says in run.stderr, run.stderr)


# ---- run ----

@case
def the_status_is_the_programs(folder):
    for status in (0, 1, 7, 255):
        same(run_of('exit {}'.format(status)).returncode, status, 'status')
    same(npusim('run', 'true').returncode, 0, 'without --')


@case
def signals_reach_the_program_and_come_back(folder):
    same(run_of('kill -TERM $$').returncode, -signal.SIGTERM, 'killed')
    same(run_of('kill -SEGV $$').returncode, -signal.SIGSEGV, 'killed')
    run = subprocess.Popen([NPUSIM, 'run', '--', 'sh', '-c',
                            'trap "echo caught; exit 3" USR1; echo ready; while :; do sleep .01; '
                            'done'], env=environment(), stdout=subprocess.PIPE, text=True)
    same(run.stdout.readline(), 'ready\n', 'the program')
    run.send_signal(signal.SIGUSR1)
    same(run.communicate(timeout=60)[0], 'caught\n', 'the program')
    same(run.returncode, 3, 'status')


@case
def a_program_that_cannot_run_is_named(folder):
    plain = folder / 'plain'
    plain.write_text('#!/bin/sh\n')
    plain.chmod(0o644)
    for program, status, says in [('npusim-no-such-program', 127, 'No such file'),
                                  (folder / 'missing', 127, 'No such file'),
                                  (folder, 126, 'ermission denied'),
                                  (plain, 126, 'ermission denied')]:
        run = npusim('run', '--', program)
        same((run.returncode, run.stdout), (status, ''), program)
        expect(str(program) in run.stderr and says in run.stderr, run.stderr)


@case
def arguments_are_the_programs_own(folder):
    run = npusim('run', '--', 'printf', '[%s]', '--help', '-x', '', 'a b', '--')
    same((run.returncode, run.stdout), (0, '[--help][-x][][a b][--]'), 'arguments')
    same(npusim('run', 'printf', '[%s]', '--soc', 'x').stdout, '[--soc][x]', 'arguments')


def variables(*options, env=None):
    run = npusim('run', *options, '--', 'env', '-0', env=env)
    same(run.returncode, 0, options)
    expect(re.fullmatch('npusim run: no process of this run loaded .*: env .*\n', run.stderr),
           run.stderr)
    return dict(entry.split('=', 1) for entry in run.stdout.split('\0') if entry)


@case
def options_are_variables_of_the_program(folder):
    got = variables('--soc', 'Ascend910B4', '--devices', 2, '--hbm', '8G', '--contract', 'driver',
                    '--timing', 'off', '--backend', 'sim', '--trace', 'x.npt')
    for name, value in [('SOC', 'Ascend910B4'), ('DEVICES', '2'), ('HBM', '8G'),
                        ('CONTRACT', 'driver'), ('TIMING', 'off'), ('BACKEND', 'sim'),
                        ('TRACE', os.path.abspath('x.npt'))]:
        same(got['NPUSIM_' + name], value, name)
    got = variables()
    same(got['NPUSIM_BACKEND'], 'sim', 'the default of run')
    expect('NPUSIM_SOC' not in got, got)
    got = variables('--soc', 'Ascend910B2', env=environment(NPUSIM_SOC='Ascend910B3',
                                                            NPUSIM_BACKEND='auto'))
    same((got['NPUSIM_SOC'], got['NPUSIM_BACKEND']), ('Ascend910B2', 'auto'), 'options win')


@case
def the_library_is_found_before_any_other(folder):
    got = variables(env=environment(LD_LIBRARY_PATH='/opt/vendor'))
    first, hal, *others, only_linked = got['LD_LIBRARY_PATH'].split(':')
    same(others, ['/opt/vendor'], 'what was there')
    expect((pathlib.Path(hal) / 'libascend_hal.so').exists(), hal)
    for name in ('libascendcl.so', 'libascendcl.so.1', 'libacl_rt.so', 'libruntime.so'):
        expect((pathlib.Path(first) / name).exists(), name)
    same(variables(env={k: v for k, v in environment().items() if k != 'LD_LIBRARY_PATH'})
         ['LD_LIBRARY_PATH'], ':'.join([first, hal, only_linked]), 'no empty entry')


@case
def each_run_has_a_node_of_its_own(folder):
    nodes = [variables()['NPUSIM_NODE'] for _ in range(3)]
    same(len(set(nodes)), 3, 'nodes')
    same(variables('--node', 'mine')['NPUSIM_NODE'], 'mine', 'joined')
    expect(variables(env=environment(NPUSIM_NODE='outer'))['NPUSIM_NODE'] != 'outer')


@case
def a_run_inside_a_run_is_fresh_unless_it_joins(folder):
    outer, fresh, joined = run_of(
        'echo $NPUSIM_NODE; "$0" run -- sh -c "echo \\$NPUSIM_NODE"; '
        '"$0" run --node $NPUSIM_NODE -- sh -c "echo \\$NPUSIM_NODE"'.replace('$0', NPUSIM)
    ).stdout.split()
    expect(outer != fresh and outer == joined, outer, fresh, joined)


# ---- info and node ----

def settings(stdout):
    rows = stdout.partition('\nsettings\n')[2].splitlines()
    return {row.split()[0]: row.split()[1:3] for row in rows}


@case
def info_shows_the_model_and_where_settings_come_from(folder):
    run = npusim('info', '--soc', 'Ascend910B4', '--devices', 2,
                 env=environment(NPUSIM_TIMING='off', NPUSIM_NODE='info-test'))
    same((run.returncode, run.stderr), (0, ''), 'info')
    for text in (r'^npusim +\d', r'^SoC +Ascend910B4$', r'^devices +2$', r'^runtime +1\.17\.0',
                 r'^drivers +sim$', r'^contract +docs$', r'^  device 1  +[\d.]+ GiB free'):
        expect(re.search(text, run.stdout, re.M), text, 'is not in', run.stdout)
    got = settings(run.stdout)
    same(got['NPUSIM_SOC'], ['Ascend910B4', 'option'], 'an option')
    same(got['NPUSIM_TIMING'], ['off', 'environment'], 'of the environment')
    same(got['NPUSIM_CONTRACT'], ['docs', 'default'], 'a default')


@case
def info_and_node_are_json(folder):
    run = npusim('info', '--devices', 2, '--json', '-', env=environment(NPUSIM_TIMING='off'))
    same((run.returncode, run.stderr), (0, ''), 'info')
    got = json.loads(run.stdout)
    same((got['soc'], len(got['devices']), got['drivers']), ('Ascend910B1', 2, 'sim'), 'info')
    expect(0 < got['devices'][1]['free_bytes'] <= got['devices'][1]['total_bytes'], got)
    same([row for row in got['settings'] if row['name'] == 'NPUSIM_TIMING'],
         [dict(name='NPUSIM_TIMING', value='off', origin='environment')], 'settings')
    text = settings(npusim('info').stdout)
    same([row['name'] for row in got['settings']], list(text), 'names')
    expect(len(got['differences']) > 10, got)
    run = npusim('info', '--backend', 'hw', '--json', folder / 'info.json',
                 env=environment(NPUSIM_HAL='/nowhere/lib.so'))
    same((run.returncode, run.stdout), (1, ''), 'no backend')
    expect('settings' in json.loads((folder / 'info.json').read_text()))
    run = npusim('node', '--json', '-', 'no-such-node')
    same((run.returncode, run.stdout), (1, ''), 'no node')


@case
def memory_that_the_model_cannot_have_is_refused(folder):
    profile = folder / 'small-blocks.ini'
    profile.write_text('[Profile]\nbase=Ascend910B1\n[L2]\nblock_bytes=128\n')
    for soc, size, status, most in (('Ascend910B1', '64', 1, '(2 TiB)'),
                                    ('Ascend910B1', '3T', 1, '(2 TiB)'),
                                    (profile, '256G', 1, '(128 GiB)'),
                                    (profile, '128G', 0, '')):
        run = npusim('info', '--soc', soc, '--hbm', size, '--devices', 1)
        same(run.returncode, status, run.stderr)
        expect('NPUSIM_HBM={}:'.format(size) in run.stderr or status == 0, run.stderr)
        expect(most in run.stderr, most, 'is not in', run.stderr)


@case
def a_profiles_file_is_a_soc_everywhere(folder):
    (folder / 'mine.ini').write_text('[Profile]\nbase=Ascend910B4\n')
    trace = folder / 'a.npt'
    trace.write_text('npusim-trace 1\nalloc b1 size=1 device=0\n')
    soc = '--soc', './mine.ini', '--devices', 1
    for args in (['info', *soc], ['run', *soc, '--', NPUSIM, 'info'], ['replay', *soc, trace],
                 ['record', *soc, '-o', 'b.npt', '--', NPUSIM, 'info'],
                 ['bench', *soc[:2], '--count', 100],
                 ['check', *soc, '--backend', 'sim', '--only', 'access.null_or_zero']):
        run = npusim(*args, cwd=folder)
        same(run.returncode, 0, '{}: {}'.format(args, run.stderr))
        expect(args[0] not in ('info', 'run') or re.search('SoC +Ascend910B4', run.stdout),
               run.stdout)
    run = npusim('replay', '--page', '1G', '--policy', 'native', '--hbm', '8g', trace)
    same((run.returncode, run.stderr), (0, ''), 'upper and lower case')


@case
def info_of_a_backend_that_is_not_there_says_why_and_shows_the_settings(folder):
    run = npusim('info', '--backend', 'hw', env=environment(NPUSIM_HAL='/nowhere/lib.so'))
    same(run.returncode, 1, 'status')
    expect('/nowhere/lib.so' in run.stderr or 'hw' in run.stderr, run.stderr)
    same(settings(run.stdout)['NPUSIM_BACKEND'], ['hw', 'option'], 'settings')


@case
def nodes_are_listed_and_ended():
    name = 'node-test-{}'.format(os.getpid())
    run = npusim('node', name)
    same((run.returncode, run.stdout), (1, ''), 'no such node')
    expect(name in run.stderr, run.stderr)
    hold = 'import ctypes, sys; acl = ctypes.CDLL("libascendcl.so"); acl.aclInit(None); ' \
           'acl.aclrtSetDevice(0); print("here", flush=True); sys.stdin.read()'
    held = subprocess.Popen([NPUSIM, 'run', '--exec', '--node', name, '--', sys.executable, '-c',
                             hold], env=environment(), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    command = os.path.basename(sys.executable)
    try:
        same(held.stdout.readline(), 'here\n', 'it has joined')
        listed = npusim('node', name).stdout
        expect('node {}: 8 x Ascend910B1, 1 process\n'.format(name) in listed, listed)
        expect(re.search(r'^ +{}  {}'.format(held.pid, command), listed, re.M), listed)
        node, = json.loads(npusim('node', name, '--json', '-').stdout)
        same((node['name'], node['soc'], len(node['devices'])), (name, 'Ascend910B1', 8), 'JSON')
        process, = node['processes']
        same((process['pid'], process['command'], len(process['bytes'])), (held.pid, command, 8),
             'JSON')
        same(node['devices'][1]['used_bytes'], 0, 'JSON')
        every = npusim('node')
        same((every.returncode, every.stderr), (0, ''), 'all nodes')
        expect('node ' + name in every.stdout, every.stdout)
        files = pathlib.Path('/proc/{}/fd'.format(held.pid))
        segment, = [file for file in files.iterdir()
                    if os.readlink(str(file)).startswith('/memfd:npusim-node:' + name)][:1]
        with segment.open('r+b') as spoiled:
            spoiled.write(os.urandom(65536))
        listed = npusim('node', name)
        same((listed.returncode, listed.stdout.splitlines()[0]),
             (0, 'node {}: the control segment of process {} is damaged; end it with '
                 '`npusim node --reset {}`'.format(name, held.pid, name)), listed.stderr)
        expect(re.search(r'^ +{}  {}'.format(held.pid, command), listed.stdout, re.M), listed)
        same(npusim('node', '--reset', name).returncode, 0, 'reset')
        same(held.wait(timeout=60), -signal.SIGTERM, 'the process')
        same(npusim('node', name).returncode, 1, 'the node is gone')
        same(npusim('node', '--reset', name).returncode, 1, 'nothing to reset')
    finally:
        held.kill()
        held.communicate()


# ---- for shells, and for machines ----

COMPLETION = pathlib.Path(__file__).resolve().parents[2] / 'traces/completion'


def completed(shell, script, *words):
    need(shell)
    path = '{}:{}'.format(os.path.dirname(NPUSIM), os.environ['PATH'])
    run = subprocess.run([shell, *script, *map(str, words)], env=environment(PATH=path),
                         cwd=COMPLETION, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         timeout=60)
    same((run.returncode, run.stderr), (0, ''), shell)
    return set(run.stdout.split())


def check_completion(complete):
    same(complete('re'), {'replay', 'record', 'report'}, 'verbs')
    same(complete('replay', '--acc'), {'--access=', '--access-reads=', '--access-every='},
         'options')
    same(complete('help', 'inf'), {'info'}, 'help')
    same(complete('run', '--jun'), {'--junit='}, 'an option of run')


@case
def bash_completes_words(folder):
    check_completion(lambda *words: completed(
        'bash', ['--norc', '-c', 'source ./npusim.bash; COMP_WORDS=(npusim "$@"); COMP_CWORD=$#; '
                 '_npusim npusim "${!#}"; printf "%s\\n" "${COMPREPLY[@]}"', 'bash'], *words))


@case
def zsh_completes_words(folder):
    script = ('_describe() { print -l -- ${${(P)@[-1]}%%:*} | grep -- "^$words[CURRENT]" }; '
              'words=(npusim "$@"); CURRENT=$#words; . ./_npusim')
    check_completion(lambda *words: completed('zsh', ['-fc', script, 'zsh'], *words))


@case
def fish_completes_words(folder):
    check_completion(lambda *words: completed(
        'fish', ['--no-config', '-c', 'source npusim.fish; complete -C "$argv" | cut -f1',
                 '--'], ' '.join(['npusim', *words])))


@case
def every_option_is_listed(folder):
    verbs = npusim('--list-options').stdout.splitlines()
    same([row.split('\t')[0] for row in verbs], VERBS, 'verbs')
    for verb in VERBS:
        listed = {row.split('\t')[0] for row in npusim(verb, '--list-options').stdout.splitlines()}
        shown = set(re.findall(r'^ +(?:-\w, )?(--[a-z-]+=?)', npusim(verb, '--help').stdout, re.M))
        same(listed, shown - {'--help', '--validate='} | (listed & {'--validate='}), verb)


@case
def what_is_not_on_a_terminal_has_no_colour(folder):
    trace = folder / 'a.npt'
    trace.write_text('npusim-trace 1\ncreate h1 size=2097152 device=0\n')
    for args in (['--help'], ['info'], ['replay', trace], ['explain', 'race'], ['frobnicate']):
        run = npusim(*args)
        expect('\033' not in run.stdout + run.stderr, args)


def on_terminal(*args, **env):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(NPUSIM, [NPUSIM, *map(str, args)], environment(**{'TERM': 'xterm', **env}))
    text = b''
    try:
        while True:
            part = os.read(terminal, 4096)
            if not part:
                break
            text += part
    except OSError:  # Linux's end of a terminal
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return text.decode()


@case
def a_terminal_shows_errors_and_warnings_in_colour(folder):
    leaves = ('import ctypes; acl = ctypes.CDLL("libascendcl.so"); acl.aclrtSetDevice(0); '
              'acl.aclrtMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(99), 0)')
    for args, colour, text in (
            (['info', '--frobnicate'], '\033[31mnpusim info:\033[0m ', 'frobnicate'),
            (['run', '--', sys.executable, '-c', leaves], '\033[33mnpusim[', 'not freed')):
        shown = on_terminal(*args)
        expect(colour in shown and text in shown, shown)
        for env in (dict(NO_COLOR='1'), dict(TERM='dumb')):
            shown = on_terminal(*args, **env)
            expect('\033' not in shown and text in shown, env, shown)


# ---- the manual ----

def page(name):
    return PAGES[name].read_text()


def plain(text):
    """The page's text without its macros' marks."""
    return text.replace('\\-', '-').replace('\\&', '')


@case
def every_verb_has_a_page_that_the_first_page_names(folder):
    first = page('npusim.1')
    for verb in VERBS:
        expect('.Xr npusim-{} 1'.format(verb) in first, verb)
        same(page('npusim-{}.1'.format(verb)).splitlines()[3].split()[:2],
             ['.Dt', 'NPUSIM-' + verb.upper()], verb)


@case
def every_option_is_in_its_verbs_page(folder):
    for verb in VERBS:
        text = page('npusim-{}.1'.format(verb))
        shown = npusim(verb, '--help-all').stdout
        options = set(re.findall(r'^ +(?:-\w, )?--([a-z-]+)', shown, re.M))
        expect('help' in options, shown)
        for option in options - {'help', 'help-all', 'help-model'}:
            expect(re.search(r'^\.It Fl -{}\b'.format(option), text, re.M), verb, option)
        for option in re.findall(r'^\.It Fl -([a-z-]+)', text, re.M):
            expect(option in options, 'the page of', verb, 'has --' + option)


@case
def every_variable_is_in_the_first_page(folder):
    text = page('npusim.1').partition('.Sh ENVIRONMENT')[2].partition('.Sh ')[0]
    documented = dict(re.findall(r'^\.It Ev (NPUSIM_\w+)\n((?:(?!\.It ).*\n)*)', text, re.M))
    none = environment()
    del none['NPUSIM_NODE']
    known = settings(npusim('info', env=none).stdout)
    same(sorted(documented), sorted(known), 'variables')
    for name, (value, _) in known.items():
        found = re.search(r'^Default: \.?(.*)\.$', plain(documented[name]), re.M)
        expect(found, name, 'has no default in the page')
        same(found.group(1), 'none' if value == '-' else value, 'default of ' + name)


NAMED_BY_THE_FILE = {'events', 'options', 'vmm_calls_by_kind', 'copies'}


def members(value):
    """Every name in a result that the schema gives."""
    if isinstance(value, list):
        return set().union(*map(members, value))
    if not isinstance(value, dict):
        return set()
    names = set()
    for name, inner in value.items():
        names.add(name)
        if name not in NAMED_BY_THE_FILE or not isinstance(inner, dict):
            names |= members(inner)
        else:
            names |= members(list(inner.values()))
    return names


@case
def the_schema_names_every_member_of_a_result(folder):
    text = plain(page('npusim-replay.1')).partition('.Sh THE RESULT')[2]
    device = Device()
    device.segment_alloc(1 << 40, 200 << 20)
    device.alloc(1 << 40, 150 << 20)
    device.events[-1]['frames'] = [dict(name='f', filename='a.py', line=1)]
    path = write(folder / 'a.pkl', snapshot({0: device}))
    (folder / 'a.npt').write_text('npusim-trace 1\ninfo soc=x about=y\nalloc b1 size=1 device=0\n'
                                  'create h1 size=2097152 device=0\nmap r1 size=5 handle=h1\n'
                                  'create h2 size=1099511627776 device=0\n')
    listed = re.findall(r'^\.(?:It )?Ic (.*)', text, re.M)
    known = {word.strip(',.;()') for line in listed for word in line.split()}
    for args in ([folder / 'a.npt'], [path, '--policy', 'caching', '--hbm', '128M'],
                 [path, '--policy', 'expandable', '--access', 'random', '--at', 'end'],
                 [path, '--set', 'dialect=cuda', '--policy', 'caching', '--page', '1g']):
        result = replay(*args)
        same(result['schema'], int(re.search(r'schema version (\d+)', text).group(1)), 'version')
        same(members(result) - known, set(), 'members that the page does not have')


@case
def pages_are_well_formed(folder):
    need('groff')
    for path in sorted(PAGES.values()):
        run = subprocess.run(['groff', '-mandoc', '-Tutf8', '-ww', '-z', str(path)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        same((run.returncode, run.stdout), (0, ''), path.name)


if __name__ == '__main__':
    main()
