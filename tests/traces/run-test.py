#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npusim run as the parent of its program: signals, the terminal, debuggers and launchers, what ends
# when; the settings that it checks; what it says of libraries and of captured reports.
# usage: run-test.py NPUSIM RUN-PROGRAM SAMPLE-WORKLOAD

import ctypes
import json
import os
import pathlib
import pty
import resource
import select
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

from command import (NPUSIM, Skip, case, die_of_signals, environment, expect, main, need, npusim,
                     same, wait_until)

RUN_PROGRAM, WORKLOAD = (pathlib.Path(name).resolve() for name in sys.argv[2:4])
FOREIGN = RUN_PROGRAM.parent
NOBODY = "npusim run: no process of this run loaded npusim's libascendcl: "
LOAD = 'import ctypes; ctypes.CDLL("libascendcl.so")'
PATIENCE = 60  # seconds, for what takes none
die_of_signals()


def start(*command, front=(), env=None, **more):
    more = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'text': True, **more}
    return subprocess.Popen([*front, NPUSIM, 'run', *map(str, command)],
                            env=env or environment(), **more)


def ends(process, status, what=''):
    out, err = process.communicate(timeout=PATIENCE)
    same(process.returncode, status, what or err)
    return out, err


def is_alive(pid):
    try:
        stat = pathlib.Path('/proc', str(pid), 'stat').read_text()
    except OSError:
        return False
    return stat.rpartition(')')[2].split()[0] not in 'ZX'


# ---- signals ----

# A signal that comes just before a read does not wait for its end: it is in the pipe.
COUNTER = '''
import os, select, signal, sys
def note(number, frame):
    print('got', signal.Signals(number).name, flush=True)
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), note)
woken, wakes = os.pipe()
os.set_blocking(wakes, False)
signal.set_wakeup_fd(wakes)
print('ready', os.getpid(), os.getppid(), flush=True)
text = None
while text != b'':
    if woken in select.select([0, woken], [], [])[0]:
        os.read(woken, 100)
        continue
    text = os.read(0, 1000)
    for line in text.decode().splitlines():
        print('heard', line, flush=True)
sys.exit(9)
'''
PASSED = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGWINCH', 'SIGTSTP', 'SIGCONT', 'SIGUSR1',
          'SIGUSR2', 'SIGALRM', 'SIGABRT', 'SIGRTMIN']


@case
def signals_are_passed_on_once_each():
    run = start('--', sys.executable, '-c', COUNTER, *PASSED, stdin=subprocess.PIPE)
    ready = run.stdout.readline().split()
    same((ready[0], ready[2]), ('ready', str(run.pid)), 'run is the parent')
    for name in PASSED:
        run.send_signal(getattr(signal, name))
        same(run.stdout.readline(), 'got {}\n'.format(name), name)
    out, _ = run.communicate('end\n', timeout=PATIENCE)
    same((run.returncode, out), (9, 'heard end\n'), 'nothing came twice')


@case
def a_queued_signal_keeps_its_value():
    run = start('--', sys.executable, '-c', """
import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print('ready', flush=True)
info, mask = (ctypes.c_int * 32)(), (ctypes.c_ulong * 16)(1 << signal.SIGUSR1 - 1)
ctypes.CDLL(None).sigwaitinfo(mask, info)
print(*info[:3], info[6])
""")
    run.stdout.readline()
    same(ctypes.CDLL(None).sigqueue(run.pid, int(signal.SIGUSR1), ctypes.c_void_p(42)), 0)
    out, _ = ends(run, 0)
    same(out.split(), [str(int(signal.SIGUSR1)), '0', '-1', '42'], 'signal, errno, SI_QUEUE, value')


@case
def signals_that_the_program_sends_to_its_group_do_not_come_back():
    script = COUNTER.replace("print('heard", "os.killpg(0, signal.SIGUSR1); print('heard")
    run = start('--', sys.executable, '-c', script, 'SIGUSR1', stdin=subprocess.PIPE,
                start_new_session=True)
    run.stdin.write('go\nthere\n')
    run.stdin.close()
    run.stdin = None
    out, _ = ends(run, 9)
    same(out.count('got SIGUSR1'), 2, out)


@case
def the_programs_signal_ends_run_without_a_second_core(folder):
    for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM, signal.SIGPIPE,
                   signal.SIGRTMIN):
        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        run = start('--', 'sh', '-c', 'kill -{:d} $$'.format(number), cwd=folder, preexec_fn=lambda:
                    resource.setrlimit(resource.RLIMIT_CORE, (most, most)),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status = os.waitpid(run.pid, 0)
        run.returncode = 0
        same((os.WIFSIGNALED(status), os.WTERMSIG(status)), (True, number), number)
        expect(not os.WCOREDUMP(status), 'a core of run')


@case
def the_program_finds_signals_as_run_did():
    def setting():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    def lines(text):
        return [line for line in text.splitlines() if line.startswith(('SigBlk', 'SigIgn'))]

    command = ['cat', '/proc/self/status']
    plain = subprocess.run(command, preexec_fn=setting, stdout=subprocess.PIPE, text=True).stdout
    out, _ = ends(start('--', *command, preexec_fn=setting), 0)
    same(lines(out), lines(plain), 'signals')


@case
def an_alarm_from_before_reaches_the_program():
    run = start('--', 'sleep', 1000, preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, .3))
    ends(run, -signal.SIGALRM)


@case
def a_program_that_stops_and_goes_on_alone_is_waited_for():
    run = start('--', sys.executable, '-c', COUNTER, 'SIGCONT', stdin=subprocess.PIPE)
    pid = int(run.stdout.readline().split()[1])
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: ') T' in pathlib.Path('/proc', str(pid), 'stat').read_text(), 'stopped')
    os.kill(pid, signal.SIGCONT)
    out, _ = run.communicate('end\n', timeout=PATIENCE)
    same((run.returncode, out), (9, 'got SIGCONT\nheard end\n'), 'the program')


@case
def exec_becomes_the_program():
    run = start('--exec', '--', 'sh', '-c', 'echo $$; exit 6')
    out, err = ends(run, 6)
    same((out, err), ('{}\n'.format(run.pid), ''), 'in place')


# ---- the terminal ----

class Shell:
    """A shell with one job, run, on a terminal of its own, as far as job control goes."""

    def __init__(self, *command, options=()):
        self.text = ''
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            self.serve([NPUSIM, 'run', *options, '--', *command])

    @staticmethod
    def serve(argv):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execve(argv[0], argv, environment())
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            os.tcsetpgrp(0, os.getpgrp())
            if not os.WIFSTOPPED(status):
                break
            print('job stopped', signal.Signals(os.WSTOPSIG(status)).name, flush=True)
            sys.stdin.readline()
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        print('job ended', os.WEXITSTATUS(status) if os.WIFEXITED(status) else
              signal.Signals(os.WTERMSIG(status)).name, flush=True)
        os._exit(0)

    def expect(self, word):
        """What there was before the word."""
        end = time.monotonic() + PATIENCE
        while word not in self.text:
            expect(select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0],
                   repr(word), 'does not come after', repr(self.text))
            self.text += os.read(self.terminal, 4096).decode()
        before, _, self.text = self.text.partition(word)
        return before

    def type(self, text):
        os.write(self.terminal, text.encode())

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@case
def control_c_reaches_the_program_once():
    shell = Shell(sys.executable, '-c', COUNTER, 'SIGINT', 'SIGQUIT')
    shell.expect('ready')
    for key, name in (('\x03', 'SIGINT'), ('\x1c', 'SIGQUIT'), ('\x03', 'SIGINT')):
        shell.type(key)
        shell.expect('got ' + name)
    shell.type('end\n')
    same('got' in shell.expect('heard end'), False, 'nothing came twice')
    shell.type('\x04')
    shell.expect('job ended 9')
    shell.end()


@case
def control_c_ends_a_program_that_has_no_handler_for_it():
    shell = Shell('sh', '-c', 'echo ready; exec sleep 1000')
    shell.expect('ready')
    shell.type('\x03')
    shell.expect('job ended SIGINT')
    shell.end()


@case
def control_z_stops_the_job_until_it_is_continued():
    shell = Shell(sys.executable, '-c', COUNTER, 'SIGCONT')
    shell.expect('ready')
    for _ in range(2):
        shell.type('\x1a')
        shell.expect('job stopped SIGTSTP')
        shell.type('fg\n')
        shell.expect('got SIGCONT')
        shell.type('more\n')
        shell.expect('heard more')
    shell.type('\x04')
    shell.expect('job ended 9')
    shell.end()


@case
def control_z_is_the_programs_if_it_handles_it():
    shell = Shell(sys.executable, '-c', COUNTER, 'SIGTSTP')
    shell.expect('ready')
    shell.type('\x1a')
    shell.expect('got SIGTSTP')
    shell.type('more\n')
    expect('stopped' not in shell.expect('heard more'), 'run stopped, the program did not')
    shell.type('\x04')
    shell.expect('job ended 9')
    shell.end()


@case
def a_program_that_stops_itself_on_a_terminal_stops_the_job():
    shell = Shell('sh', '-c', 'echo ready; kill -STOP $$; echo again')
    shell.expect('job stopped SIGSTOP')
    shell.type('fg\n')
    shell.expect('again')
    shell.expect('job ended 0')
    shell.end()


@case
def a_terminal_that_hangs_up_ends_the_program():
    pid, terminal = pty.fork()  # run leads the session, as in a container: it alone gets SIGHUP
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL) # under nohup it is ignored
        os.execve(NPUSIM, [NPUSIM, 'run', '--', 'sh', '-c', 'echo $$; exec sleep 1000'],
                  environment())
    program = int(os.read(terminal, 100).split()[0])
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    same(os.WIFSIGNALED(status) and os.WTERMSIG(status), signal.SIGHUP, 'run')
    expect(not is_alive(program), 'the program')


# ---- launchers and debuggers ----

@case
def timeout_ends_the_program(folder):
    need('timeout')
    for options in ([], ['--foreground'], ['-s', 'KILL']):
        run = start('--', 'sh', '-c', 'echo $$ >pid; exec sleep 1000', cwd=folder,
                    env=environment(TMPDIR=str(folder)), front=['timeout', *options, '1'])
        ends(run, -signal.SIGKILL if 'KILL' in options else 124, options)
        if (folder / 'pid').exists():
            pid = int((folder / 'pid').read_text() or 0)
            wait_until(lambda: not is_alive(pid), 'the program lives on')


@case
def gdb_follows_into_the_program():
    need('gdb')
    run = subprocess.run(['gdb', '-q', '-nx', '-batch', '-ex', 'set startup-with-shell off', '-ex',
                          'run', '--args', NPUSIM, 'run', '--', 'false'],
                         env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    if 'ot permitted' in run.stdout:
        raise Skip('processes may not be traced here')
    expect('executing new program' in run.stdout and 'exited with code 01' in run.stdout,
           run.stdout)


@case
def mpirun_starts_runs_and_gets_their_status():
    need('mpirun')
    front = ['mpirun', '--allow-run-as-root', '--oversubscribe', '-n', '2']
    out, err = ends(start('--', 'sh', '-c', 'echo rank $OMPI_COMM_WORLD_RANK', front=front), 0)
    same(sorted(out.split()), ['0', '1', 'rank', 'rank'], err)
    ends(start('--', 'sh', '-c', 'exit 3', front=front), 3)


# ---- what lives how long ----

@case
def killing_run_kills_the_program_alone(folder):
    run = start('--', 'sh', '-c', 'sleep 1000 & echo $$ $!; wait', stderr=subprocess.DEVNULL,
                env=environment(TMPDIR=str(folder)))
    program, child = map(int, run.stdout.readline().split())
    run.kill()
    same(run.wait(PATIENCE), -signal.SIGKILL, 'run')
    wait_until(lambda: not is_alive(program), 'the program lives on')
    expect(is_alive(child), 'what the program had started is gone')
    os.kill(child, signal.SIGKILL)
    run.stdout.close()


@case
def a_daemon_is_not_waited_for():
    run = start('--', 'sh', '-c', 'setsid sleep 1000 & echo $!', stderr=subprocess.DEVNULL)
    daemon = int(run.stdout.readline())
    same(run.wait(PATIENCE), 0, 'run')
    expect(is_alive(daemon), 'the daemon is gone')
    os.kill(daemon, signal.SIGKILL)
    same(run.stdout.read(), '', 'stdout')


@case
def pipes_end_when_the_program_closes_them():
    read_end, write_end = os.pipe()
    run = start('--', 'sh', '-c', 'exec >&- {}>&-; read line; exit 4'.format(write_end),
                stdin=subprocess.PIPE, pass_fds=[write_end])
    os.close(write_end)
    same((run.stdout.read(), os.read(read_end, 1)), ('', b''), 'what the program closed')
    same(run.poll(), None, 'the program goes on')
    run.stdin.write('go\n')
    ends(run, 4)
    os.close(read_end)


@case
def a_closed_pipe_ends_the_program_and_run():
    need('yes')
    run = start('--', 'yes', stderr=subprocess.DEVNULL)
    run.stdout.readline()
    run.stdout.close()
    same(run.wait(PATIENCE), -signal.SIGPIPE, 'run')
    run = start('--', 'sh', '-c', 'exit 8')  # nobody reads what run itself says
    run.stderr.close()
    same(run.wait(PATIENCE), 8, 'run')


@case
def closed_standard_files_stay_closed():
    for fd in (0, 1, 2):
        run = start('--', sys.executable, '-c',
                    'import os\ntry: os.fstat({})\nexcept OSError: os._exit(5)'.format(fd),
                    preexec_fn=lambda: os.close(fd))
        ends(run, 5, fd)


@case
def a_run_inside_a_run_says_its_own_part():
    out, err = ends(start('--', NPUSIM, 'run', '--', 'sh', '-c', 'echo $PPID; exit 3'), 3)
    same(err.count(NOBODY), 1, err)
    out, err = ends(start('--', NPUSIM, 'run', '--', sys.executable, '-c', LOAD), 0)
    same(err, '', 'both have joined')


# ---- settings ----

@case
def wrong_settings_are_told_before_the_program_runs(folder):
    (folder / 'file').write_text('')
    soc_file = folder / 'soc.ini'
    soc_file.write_text('[Profile]\nbase=Ascend910B1\n[MMU]\nno_such_key=1\n')
    near_file = folder / 'near.ini'
    near_file.write_text('[Profile]\nbase=Ascend910B1\n[MMU]\ntlb_l1_entrys=1\n')
    for options, variables, *says in [
            (['--soc', 'Ascend910B9'], {}, 'Ascend910B9', 'Ascend910B1'),
            (['--soc', 'ascend910b1'], {}, 'ascend910b1', 'is Ascend910B1 meant?'),
            (['--soc', soc_file], {}, 'no_such_key'),
            (['--soc', near_file], {}, 'is tlb_l1_entries meant?'),
            (['--soc', folder / 'none.ini'], {}, 'none.ini'),
            (['--soc', 'Ascend910B1.ini'], {}, 'No such file or directory\n'),
            (['--hbm', '3M'], {}, '3M', '2 MiB'),
            (['--hbm', '900T'], {}, '--hbm=900T'),
            (['--contract', 'Docs'], {}, 'is docs meant?'),
            (['--node', '.x'], {}, '--node=.x'),
            (['--trace', folder / 'no/x.npt'], {}, '--trace=', 'no/x.npt'),
            (['--trace', folder / 'file/x.npt'], {}, 'file/x.npt'),
            (['--cuda', '--trace', folder / 'no/x.npt'], {}, 'no/x.npt'),
            (['--exec', '--soc', 'Ascend910B9'], {}, 'Ascend910B9'),
            ([], {'NPUSIM_FAULT': 'halBogus:2:oom'}, 'halBogus:2:oom', 'no such call'),
            ([], {'NPUSIM_FAULT': 'halMemCreate:0:oom'}, 'halMemCreate:0:oom'),
            (['--cuda'], {'NPUSIM_FAULT': 'halBogus:2:oom'}, 'halBogus:2:oom'),
            ([], {'NPUSIM_SOC': 'Ascend910B9'}, 'Ascend910B9'),
            ([], {'NPUSIM_TRACE': str(folder / 'no/x')}, 'no/x'),
            ([], {'NPUSIM_PATIENCE': '-1'}, 'NPUSIM_PATIENCE=-1'),
            (['--backend', 'hw'], {'NPUSIM_HAL': str(folder / 'none.so')}, 'none.so')]:
        run = npusim('run', *options, '--', 'echo', 'ran', env=environment(**variables))
        same((run.returncode, run.stdout), (2, ''), (options, variables, run.stderr))
        for text in says:
            expect(text in run.stderr, repr(text), 'is not in', run.stderr)
    run = npusim('record', '--soc', 'ascend910b1', '-o', folder / 'x.npt', '--', 'echo', 'ran')
    same((run.returncode, run.stdout), (2, ''), run.stderr)
    same(sorted(path.name for path in folder.iterdir()), ['file', 'near.ini', 'soc.ini'], 'files')


@case
def a_check_leaves_no_trace(folder):
    for trace in ('plain.npt', '%p.npt'):
        ends(start('--trace', folder / trace, '--', 'true'), 0)
    same(list(folder.iterdir()), [], 'files')


@case
def processes_of_a_run_leave_each_others_traces_alone(folder):
    for _ in range(2):  # those of the run before are written again
        run = npusim('run', '--trace', folder / 'x.npt', '--', 'sh', '-c',
                     '"$0" -c "$1" && "$2" run -- "$0" -c "$1"', sys.executable,
                     LOAD + '.aclInit(None)', NPUSIM)
        same(run.returncode, 0, run.stderr)
        plain = (folder / 'x.npt').read_text()
        expect('run-' in plain.splitlines()[1], plain[:200])
        (other,) = (path for path in folder.iterdir() if path.name != 'x.npt')
        same(len(other.read_text().splitlines()), len(plain.splitlines()), 'lines')
        other.unlink()


# ---- libraries ----

def says(*command, status=0, env=None):
    run = npusim('run', '--', *command, env=env)
    same(run.returncode, status, run.stderr)
    return run.stderr


@case
def a_run_that_nobody_joins_says_so_in_one_line(folder):
    text = says('true')
    expect(text.startswith(NOBODY + 'true ') and text.count('\n') == 1, text)
    for cause in ('LD_LIBRARY_PATH', 'set_env.sh', 'path'):
        expect(cause in text, text)
    same(says('true', env=environment(NPUSIM_LOG='error')), '', 'below warnings')
    same(says(sys.executable, '-c', LOAD), '', 'a program that loads the library')
    same(says('sh', '-c', '"$0" -c "$1"; :', sys.executable, LOAD), '', 'a child that does')
    same(npusim('run', '--', WORKLOAD).stderr, '', 'a program that is linked with it')
    run = npusim('run', '--cuda', '--', sys.executable, '-c', 'import ctypes; '
                 'ctypes.CDLL("libcuda.so.1")')
    same((run.returncode, run.stderr), (0, ''), 'the CUDA library')
    expect("npusim's libcuda:" in npusim('run', '--cuda', '--', 'true').stderr, 'CUDA')


@case
def programs_that_can_load_nothing_are_told_apart(folder):
    image = bytearray(pathlib.Path('/bin/true').read_bytes())
    start_of, size, count = (int.from_bytes(image[at:at + width], sys.byteorder)
                             for at, width in ((32, 8), (54, 2), (56, 2)))
    for at in range(start_of, start_of + size * count, size):
        if image[at:at + 4] == (3).to_bytes(4, sys.byteorder):  # PT_INTERP
            image[at:at + 4] = bytes(4)
    kinds = {'static': (bytes(image), 'is linked statically'),
             'script': (b'#!/bin/sh\nexit 0\n', 'set_env.sh')}
    for name, (data, text) in kinds.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o755)
        run = npusim('run', '--', folder / name)
        expect(NOBODY in run.stderr and text in run.stderr, name, run.stderr)


@case
def a_program_with_the_static_cuda_runtime_is_told_before_it_starts(folder):
    program = folder / 'linked'
    program.write_bytes(pathlib.Path('/bin/echo').read_bytes() + b'\0cuGetExportTable\0')
    program.chmod(0o755)
    run = npusim('run', '--cuda', '--', program, 'begun', env=environment(NPUSIM_LOG='warn'))
    same((run.returncode, run.stdout), (0, 'begun\n'))
    expect('static CUDA runtime' in run.stderr and '-cudart shared' in run.stderr, run.stderr)
    for command in (('run', '--', program), ('run', '--cuda', '--', 'true')):
        expect('static CUDA' not in npusim(*command).stderr, command)
    same(npusim('run', '--cuda', '--', program, env=environment(NPUSIM_LOG='error')).stderr, '')


@case
def a_program_that_gets_another_library_is_told_before_and_after():
    text = says(RUN_PROGRAM, status=42)
    before, after = text.splitlines()
    for name in ('libascendcl.so', 'libascend_hal.so'):
        file = '{} from {}'.format(name, FOREIGN / name)
        expect(file in before and file in after, name, text)
    expect(before.count('(RPATH from file') == 2 and after.startswith(NOBODY), text)
    text = says(RUN_PROGRAM, status=42, env=environment(NPUSIM_BACKEND='hw', NPUSIM_HAL=str(
        FOREIGN / '../../backend-sim/hal/libascend_hal.so')))
    expect('libascendcl.so from' in text and 'libascend_hal' not in text, text)
    file = FOREIGN / 'libascend_hal.so'
    text = says('true', env=environment(LD_PRELOAD=str(file)))
    expect('libascend_hal.so from {} (LD_PRELOAD)'.format(file) in text, text)


@case
def the_command_finds_its_own_library_behind_a_vendors(folder):
    env = environment(LD_LIBRARY_PATH=str(FOREIGN))
    same(says(sys.executable, '-c', LOAD, env=env), '', 'run')
    same(npusim('info', env=env).returncode, 0, 'info')


@case
def a_script_that_puts_another_folder_in_front_is_noticed(folder):
    (folder / 'set_env.sh').write_text(
        'export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH\n'.format(FOREIGN))
    script = '. {}/set_env.sh; exec "$0" -c "$1"'.format(folder)
    text = says('sh', '-c', script, sys.executable, LOAD)
    expect(NOBODY in text and 'set_env.sh' in text, text)


@case
def a_process_with_two_libraries_warns():
    call = 'import ctypes; a = ctypes.CDLL("libascendcl.so"); ctypes.CDLL({!r}); a.aclInit(0)'
    for name in ('libascendcl.so', 'libascend_hal.so'):
        text = says(sys.executable, '-c', call.format(str(FOREIGN / name)))
        expect(text.count('\n') == 1 and str(FOREIGN / name) in text and 'warn' in text, text)
        expect('dlopen()' in text, text)
    ours = FOREIGN / '../../backend-sim/hal/libascend_hal.so'
    same(says(sys.executable, '-c', call.format(str(ours))), '', 'our own libascend_hal.so')
    text = says('sh', '-c', 'LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{} exec "$0" -c "$1"'.format(FOREIGN),
                sys.executable, call.format(str(FOREIGN / 'libascendcl.so')))
    expect('LD_LIBRARY_PATH has its folder' in text, text)
    text = says(sys.executable, '-c', 'import ctypes; ctypes.CDLL({!r}); {}'.format(
        str(FOREIGN / 'libascendcl.so'), LOAD.partition('; ')[2]))
    expect(NOBODY in text, 'the one that is there is taken for the other', text)


# ---- reports ----

REPORT = 'stat -c "%a %n" $NPUSIM_REPORT_FILE; echo "a report" >>$NPUSIM_REPORT_FILE'


@case
def captured_reports_are_shown_at_the_end():
    run = start('--', 'sh', '-c', REPORT + '; echo $NPUSIM_REPORT_STDERR; kill -SEGV $$')
    stderr = os.fstat(run.stderr.fileno())
    out, err = ends(run, -signal.SIGSEGV)
    (mode, path), (where,) = (line.split() for line in out.splitlines())
    same((mode, where), ('600', '{}:{}'.format(stderr.st_dev, stderr.st_ino)), 'file and stderr')
    expect('whose stderr was captured:\na report\n' in err, err)
    expect(not pathlib.Path(path).exists(), path)


@case
def files_of_run_are_gone_afterwards(folder):
    for command, status in ((['true'], 0), (['npusim-no-such-program'], 127)):
        run = npusim('run', '--', *command, env=environment(TMPDIR=str(folder)))
        same((run.returncode, list(folder.iterdir())), (status, []), command)
    run = npusim('run', '--', 'true', env=environment(TMPDIR=str(folder / 'none')))
    expect(run.returncode == 0 and str(folder / 'none') in run.stderr, run.stderr)
    run = npusim('run', '--junit', str(folder / 'j.xml'), '--', 'sh', '-c', REPORT,
                 env=environment(TMPDIR=str(folder / 'none')))
    expect(run.stderr.count('/none/') == 1 and '/tmp is used' in run.stderr, run.stderr)
    expect('captured:\na report\n' in run.stderr, run.stderr)
    path = run.stdout.split()[1]
    expect(path.startswith('/tmp/npusim-run-') and not pathlib.Path(path).exists(), path)
    alone = ['unshare', '-rm', 'sh', '-c', 'mount -t tmpfs -o ro none /tmp && exec "$@"', 'sh']
    if subprocess.run([*alone, 'test', '-x', NPUSIM], stderr=subprocess.DEVNULL).returncode == 0:
        for named in ([], ['TMPDIR=/tmp']):
            run = subprocess.run([*alone, 'env', '-u', 'TMPDIR', *named, NPUSIM, 'run', '--',
                                  'true'], env=environment(HOME='/'), stderr=subprocess.PIPE,
                                 cwd='/', text=True)
            same((run.returncode, run.stderr.count('/tmp/npusim-run-')), (0, 1), run.stderr)
            expect(not run.stderr.startswith('npusim run: TMPDIR'), run.stderr)
            expect('lost; set TMPDIR to a folder that takes files' in run.stderr, run.stderr)


@case
def a_report_file_of_the_user_is_left_to_him(folder):
    file = folder / 'mine'
    file.write_text('')
    file.chmod(0o600)
    run = npusim('run', '--', 'sh', '-c', REPORT, env=environment(NPUSIM_REPORT_FILE=str(file)))
    same((run.returncode, run.stdout, file.read_text()),
         (0, '600 {}\n'.format(file), 'a report\n'), 'the file')
    expect('captured' not in run.stderr, run.stderr)
    run = npusim('run', '--', NPUSIM, 'run', '--', 'sh', '-c', REPORT)
    same(run.stderr.count('a report'), 1, run.stderr)


# ---- JUnit ----

ACL = '''
import ctypes, os
acl = ctypes.CDLL('libascendcl.so')
assert acl.aclInit(None) == 0 and acl.aclrtSetDevice(0) == 0
p = ctypes.c_void_p()
assert acl.aclrtMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 20), 0) == 0
'''


def junit_of(path):
    """The suite's figures, and name -> (what it is, text) of each test."""
    suite, = xml.etree.ElementTree.parse(path).getroot()
    figures = {name: int(suite.get(name)) for name in ('tests', 'failures', 'errors', 'skipped')}
    tests = {}
    for test in suite.iter('testcase'):
        expect(float(test.get('time')) >= 0)
        what = list(test)
        tests[test.get('name')] = (what[0].tag, what[0].text or '') if what else ('passed', '')
    same(figures['tests'], len(tests), figures)
    return figures, tests, suite.findtext('system-err') or ''


def junit(folder, code, *options, status=0, env=None):
    path = folder / 'out.xml'
    path.unlink(missing_ok=True)
    _, err = ends(start('--junit', path, *options, '--', sys.executable, '-c', code, env=env),
                  status)
    figures, tests, said = junit_of(path)
    name, = tests
    expect(name.startswith(sys.executable + ' -c'), name)
    same(figures['failures'], int(status != 0), figures)
    return (*tests[name], said, err)


@case
def junit_has_what_npusim_said_of_a_program(folder):
    what, text, said, _ = junit(folder, ACL + 'acl.aclrtFree(p)')
    same((what, text, said), ('passed', '', ''), 'a program that ends well')
    what, text, said, _ = junit(folder, ACL + 'os._exit(3)', status=3)
    expect(what == 'failure' and 'the process ended with status 3' in text, text)
    what, text, said, err = junit(folder, ACL + 'ctypes.string_at(p.value + 8, 1)', status=-11)
    expect(what == 'failure' and 'signal 11' in text and 'the program touched 0x' in text, text)
    expect(err.count('the program touched 0x') == 1, err)
    leaky = environment(NPUSIM_LEAKS='fail:5')
    what, text, said, _ = junit(folder, ACL, status=5, env=leaky)
    expect('status 5' in text and 'device allocation 0x' in text, text)
    what, text, said, _ = junit(folder, ACL + 'acl.aclrtFree(p); acl.aclrtFree(p)', '--validate',
                                '--error-exitcode', 9, status=9)
    expect('validate: double-free: ' in text and '1 failure of 1 kind' in text, text)
    what, text, said, _ = junit(folder, ACL + 'acl.aclrtFree(ctypes.c_void_p(5)); acl.aclrtFree(p)')
    expect(what == 'passed' and 'aclrtFree' in said, said)
    what, text, said, _ = junit(folder, 'import sys; sys.exit(1) # <&\x1b>\n', status=1)
    expect('status 1' in text, text)


@case
def a_summary_is_json(folder):
    path = folder / 'out.json'
    for code, status, key, text, loaded in [
            (ACL + 'acl.aclrtFree(p); os._exit(4)', 4, 'status', '', True),
            (ACL + 'ctypes.string_at(p.value, 1)', -11, 'signal', 'the program touched 0x', True),
            ('pass', 0, 'status', '', False)]:
        ends(start('--json', path, '--', sys.executable, '-c', code), status)
        got = json.loads(path.read_text())
        same((got[key], got['library_loaded']), (abs(status), loaded), got)
        same(got['program'], [sys.executable, '-c', code], 'program')
        expect(text in got['text'] and got['seconds'] > 0, got)
    ends(start('--json', path, '--', sys.executable, '-c', 'pass', 'a\udcff\x1f'), 0)
    same(json.loads(path.read_text())['program'][-1], 'a\ufffd\x1f', 'no UTF-8')


@case
def junit_has_the_tests_that_a_harness_notes(folder):
    note = '''
import json, os, sys
def note(test, event, **more):
    with open(os.environ['NPUSIM_TEST_FILE'], 'a') as file:
        print(json.dumps(dict(test=test, event=event, **more)), file=file)
note('a', 'start'); note('a', 'passed', seconds=.5); note('a', 'passed'); note('a', 'end')
note('b', 'start'); note('b', 'failed', seconds=1, text='b < a'); note('b', 'end')
note('c', 'start'); note('c', 'skipped'); note('c', 'end')
'''
    path = folder / 'out.xml'
    for more, status, tests in [
            ('', 0, 3), ('sys.exit(1)', 1, 3), ('os.abort()', -6, 3),
            ('note("d", "start"); os.abort()', -6, 4), ('note("d", "start")', 0, 4)]:
        ends(start('--junit', path, '--', sys.executable, '-c', note + more), status)
        figures, got, _ = junit_of(path)
        same((figures['tests'], figures['failures'], figures['skipped']),
             (tests, tests - 2, 1), more)
        same([got[name] for name in 'abc'],
             [('passed', ''), ('failure', 'b < a\n'), ('skipped', '')], more)
        expect('d' not in got or 'in the middle of this test' in got['d'][1], got)
    # whose end no test can be blamed for
    fine = note.replace("'failed'", "'passed'")
    ends(start('--junit', path, '--', sys.executable, '-c', fine + 'sys.exit(2)'), 2)
    figures, got, _ = junit_of(path)
    same((figures['tests'], figures['failures']), (4, 1), got)


@case
def junit_of_ctest_has_a_file_for_each_process(folder):
    need('ctest')
    folder.joinpath('good.py').write_text(ACL + 'acl.aclrtFree(p)')
    folder.joinpath('bad.py').write_text(ACL + 'ctypes.string_at(p.value, 1)')
    folder.joinpath('CTestTestfile.cmake').write_text(''.join(
        'add_test({0} "{1}" run --junit "{2}/%p.xml" -- "{3}" "{2}/{0}.py")\n'.format(
            name, NPUSIM, folder, sys.executable) for name in ('good', 'bad')))
    run = subprocess.run(['ctest', '-j', '2'], cwd=folder, env=environment(), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect('1 tests failed out of 2' in run.stdout, run.stdout)
    files = [junit_of(path)[1] for path in folder.glob('*.xml')]
    outcomes = {name: value[0] for tests in files for name, value in tests.items()}
    same(outcomes, {'{} {}/{}.py'.format(sys.executable, folder, name): what
                    for name, what in [('good', 'passed'), ('bad', 'failure')]}, 'files')


@case
def junit_that_cannot_be_written_is_an_error(folder):
    out, err = ends(start('--junit', folder / 'no/x.xml', '--', 'echo', 'ran'), 1)
    expect(out == '' and 'no/x.xml' in err, out, err)


# ---- servers of a supernode ----

TELL_SERVER = '''
import ctypes, os
lib, value = ctypes.CDLL("libascendcl.so"), ctypes.c_int64()
lib.aclGetRecentErrMsg.restype = ctypes.c_char_p
assert lib.aclInit(None) == 0 and lib.aclrtSetDevice(1) == 0, lib.aclGetRecentErrMsg()
assert lib.rtGetDeviceInfo(1, 0, 26, ctypes.byref(value)) == 0  # the SDID
print(value.value >> 22, value.value & 0x3fffff, os.environ.get("HCCL_IF_IP"))
'''


def tell_server(*options, **env):
    return start(*options, '--', sys.executable, '-c', TELL_SERVER, env=environment(**env))


def server_of(*options, **env):
    return ends(tell_server(*options, **env), 0)[0].split()


@case
def a_program_is_of_the_server_that_is_named():
    pod = 'pod-{}'.format(os.getpid())
    same(server_of('--supernode', pod, '--server', 3), ['3', '65537', '127.0.0.4'])
    same(server_of('--supernode', pod, '--server', 3, HCCL_IF_IP='10.0.0.1'),
         ['3', '65537', '10.0.0.1'], 'what is set stays')
    same(server_of('--supernode', 'none', '--soc', 'Ascend910_9391'), ['1023', '65537', 'None'])
    for options, says in ((('--server', 1), 'NPUSIM_SUPERNODE'),
                          (('--supernode', pod, '--servers', 2, '--server', 2), '0 to 1'),
                          (('--supernode', pod, '--soc', 'Ascend910B1'), 'in no supernode'),
                          (('--supernode', pod, '--hbm', '65G'), '64')):
        _, err = tell_server(*options).communicate()
        expect(says in err, says, 'is not in', err)


@case
def a_launchers_processes_find_their_server():
    by_rank = ('--servers', 4, '--server-from', 'RANK/WORLD_SIZE')
    for rank, server in ((0, 0), (1, 0), (2, 1), (7, 3)):
        same(server_of(*by_rank, RANK=str(rank), WORLD_SIZE='8')[0], str(server), rank)
    by_group = ('--servers', 4, '--server-from', 'GROUP_RANK')
    same(server_of(*by_group, GROUP_RANK='2')[0], '2')
    same(server_of(*by_group)[0], '0', 'the launcher itself')
    _, err = tell_server(*by_group, GROUP_RANK='4').communicate()
    expect('GROUP_RANK=4' in err, err)


@case
def a_program_runs_on_each_server(folder):
    script = TELL_SERVER + 'import sys; print("err", file=sys.stderr, end=""); sys.stdin.read()'
    out, err = ends(start('--servers', 3, '--each', '--json', folder / 'x.json', '--',
                          sys.executable, '-c', script), 0)
    same(sorted(out.splitlines()),
         ['[server {0}] {0} 65537 127.0.0.{1}'.format(k, k + 1) for k in range(3)])
    same(sorted(err.splitlines()), ['[server {}] err'.format(k) for k in range(3)])
    same(json.loads((folder / 'x.json').read_text())['status'], 0)
    _, err = ends(start('--servers', 2, '--each', '--', 'no-such-program'), 127)
    same(err, '[server 0] npusim run: no-such-program: No such file or directory\n')
    for options in ([], ['--servers', 2, '--server', 1],
                    ['--servers', 2, '--server-from', 'RANK'], ['--servers', 2, '--exec']):
        _, err = ends(start('--each', *options, '--', 'echo', 'ran'), 2)
        expect('--each goes without --server' in err if options else
               '--each and --rank-table go with --servers' in err, err)


@case
def too_few_files_for_the_servers_are_told():
    for most in range(6, 10):
        _, err = start('--servers', 2, '--each', '--', 'true', preexec_fn=lambda:
                       resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))).communicate(
                           timeout=PATIENCE)
        expect('true: Too many open files' in err, most, err)


@case
def output_of_servers_that_has_no_room_is_told():
    with open('/dev/full', 'w') as full:
        _, err = ends(start('--servers', 1, '--each', '--', 'sh', '-c', 'trap "" PIPE; echo hi',
                            stdout=full), 1)
    expect('the output cannot be written: No space left on device' in err, err)


@case
def what_is_reported_on_a_server_is_said_once():
    _, err = start('--servers', 2, '--each', '--', sys.executable, '-c', """
import ctypes, os
lib, at = ctypes.CDLL("libascendcl.so"), ctypes.c_void_p()
assert lib.aclInit(None) == 0 and lib.aclrtSetDevice(0) == 0
assert lib.aclrtMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 21), 0) == 0
os.environ["NPUSIM_SERVER"] == "1" and ctypes.string_at(at.value, 1)
""").communicate(timeout=PATIENCE)
    expect('on server 1 ended with signal 11' in err, err)
    same(err.count('the program touched'), 1, err)


PIDS = 'echo $$ >$NPUSIM_SERVER.pid; ' \
       'setsid sh -c \'trap "" TERM; echo $$ >$0.orphan; sleep 1000\' ' \
       '$NPUSIM_SERVER & while [ ! -s $NPUSIM_SERVER.orphan ]; do sleep .01; done; '


def are_gone(folder, count):
    pids = [int(path.read_text()) for path in folder.iterdir()]
    same(len(pids), count, 'processes')
    for pid in pids:
        expect(not is_alive(pid), pid, 'lives on')


@case
def the_first_server_that_fails_ends_the_others(folder):
    script = PIDS + '[ $NPUSIM_SERVER = 1 ] || wait; for k in 0 2; do ' \
                    'while [ ! -s $k.orphan ]; do sleep .01; done; done; exit 7'
    _, err = ends(start('--servers', 3, '--each', '--', 'sh', '-c', script, cwd=folder), 7)
    expect("the program on server 1 ended with status 7: the other servers' are ended" in err, err)
    are_gone(folder, 6)


@case
def signals_and_control_c_end_all_servers(folder):
    script = PIDS + 'echo ready; wait'
    run = start('--servers', 2, '--each', '--', 'sh', '-c', script, cwd=folder)
    same(sorted(run.stdout.readline() for _ in range(2)),
         ['[server 0] ready\n', '[server 1] ready\n'])
    run.send_signal(signal.SIGTERM)
    ends(run, -signal.SIGTERM)
    are_gone(folder, 4)
    shell = Shell(sys.executable, '-c', """
import os, signal, time
def note(number, frame):
    got.append(number)
got = []
signal.signal(signal.SIGINT, note)
print("ready", flush=True)
while not got:
    time.sleep(.01)
time.sleep(.5)
print("got", len(got), flush=True)
""", options=('--servers', '2', '--each'))
    for _ in range(2):
        shell.expect('ready')
    shell.type('\x03')
    before = shell.expect('job ended 0')
    same(sorted(line[line.find('['):] for line in before.splitlines() if 'got' in line),
         ['[server 0] got 1', '[server 1] got 1'], before)
    shell.end()


@case
def control_z_stops_all_servers_until_they_are_continued():
    shell = Shell(sys.executable, '-c', """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])
print("ready", flush=True)
signal.sigwait([signal.SIGCONT])
print("goes on")
""", options=('--servers', '2', '--each'))
    for _ in range(2):
        shell.expect('ready')
    shell.type('\x1a')
    shell.expect('job stopped SIGTSTP')
    shell.type('fg\n')
    before = shell.expect('job ended 0')
    same(before.count('goes on'), 2, before)
    shell.end()


RANKS = '''
import ctypes, json, os
lib, value, count = ctypes.CDLL("libascendcl.so"), ctypes.c_int64(), ctypes.c_uint32()
table = json.load(open(os.environ["RANK_TABLE_FILE"]))
me, = (server for server in table["server_list"] if server["host_ip"] == os.environ["HCCL_IF_IP"])
assert lib.aclInit(None) == 0 and lib.aclrtGetDeviceCount(ctypes.byref(count)) == 0
assert count.value == len(me["device"])
for device in me["device"]:
    number = int(device["device_id"])
    assert lib.aclrtSetDevice(number) == 0
    assert lib.rtGetDeviceInfo(number, 0, 26, ctypes.byref(value)) == 0
    print(device["rank_id"], int(device["super_device_id"]) == value.value)
'''


@case
def a_rank_table_has_what_the_servers_are(folder):
    for shape, devices in ((('--devices', 2), 2), ((), 16)):
        out, _ = ends(start('--servers', 3, '--each', '--rank-table', folder / 'ranks.json', *shape,
                            '--', sys.executable, '-c', RANKS), 0)
        same(sorted(line.split()[2:] for line in out.splitlines()),
             sorted([str(rank), 'True'] for rank in range(3 * devices)))
        table = json.loads((folder / 'ranks.json').read_text())
        same((table['version'], table['server_count']), ('1.2', '3'))
        names = [{'server_id': server['server_id']} for server in table['server_list']]
        same(table['super_pod_list'], [{'super_pod_id': '0', 'server_list': names}])
        addresses = [device['device_ip'] for server in table['server_list']
                     for device in server['device']]
        same(len(set(addresses)), 3 * devices, addresses)
    for options, status, says in ((['ranks.json'], 2, '--rank-table go with --servers'),
                                  (['-', '--servers', 2], 2, 'stdout is the program'),
                                  (['no/x', '--servers', 2], 1, 'no/x')):
        out, err = ends(start('--rank-table', *options, '--', 'echo', 'ran', cwd=folder), status)
        expect(out == '' and says in err, out, err)


@case
def servers_are_listed_and_stopped():
    pod = 'pod-list-{}'.format(os.getpid())
    wait = 'import sys; print("here", flush=True); sys.stdin.read()'
    held = [subprocess.Popen([NPUSIM, 'run', '--supernode', pod, '--server', str(k), '--',
                              sys.executable, '-c', TELL_SERVER + wait], text=True,
                             env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for k in (0, 5)]
    for process in held:
        while process.stdout.readline() != 'here\n':
            expect(process.poll() is None, 'it has ended')
    listed = npusim('node', pod).stdout
    expect('supernode {}: servers of 16 x Ascend910_9391, 2 processes\n'.format(pod) in listed,
           listed)
    same([line.split()[1] for line in listed.splitlines() if line.startswith('  server')],
         ['0', '5'], listed)
    same(len(npusim('node').stdout.partition('supernode ' + pod)[2].splitlines()) >= 3, True)
    node, = json.loads(npusim('node', pod, '--json', '-').stdout)
    same([k for k, server in enumerate(node['servers']) if server['processes']], [0, 5])
    same(sorted(process['server'] for process in node['processes']), [0, 5])
    for server, says in ((48, '0 to 47'), (5, '')):
        run = npusim('node', '--stop', server, pod)
        same(run.returncode, 1 if says else 0, run.stderr)
        expect(says in run.stderr, run.stderr)
    same(held[1].wait(timeout=PATIENCE), -signal.SIGTERM, 'the stopped server')
    expect(', stopped\n' in npusim('node', pod).stdout, 'stopped')
    _, err = tell_server('--supernode', pod, '--server', 5).communicate()
    expect('was stopped' in err, err)
    same(held[0].communicate('')[0], '', 'the other server goes on')
    same(held[0].returncode, 0, 'and ends')


if __name__ == '__main__':
    main()
