#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# NPUSIM_TRACE and NPUSIM_FAULT reach programs that call the driver's functions themselves; where a
# call goes through several libraries of npusim, or a process uses both faces, each call is recorded
# and counted once. Prints TAP.

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
from tap import expect, run_cases

COMMAND, HAL, ALONE, BOTH = sys.argv[1:5]
# a folder with a foreign libascendcl.so, and a driver
FOREIGN, DRIVER = map(os.path.abspath, sys.argv[5:])
OWN = ['reserve', 'create', 'map', 'fill', 'unmap', 'release', 'unreserve']
NODE = 'layers-{}'.format(os.getpid())


def run(program, command=(), **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith('NPUSIM_')}
    env.update(NPUSIM_NODE=NODE, NPUSIM_DEVICES='2', NPUSIM_HBM='8G', NPUSIM_LEAKS='off', **more)
    return subprocess.run([*command, program], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=60)


def verbs(path):
    """Each line's verb, and op= of one without a verb of its own, without stamps."""
    found = []
    for line in path.read_text(encoding='ascii').splitlines()[2:]:
        words = line.split()
        while words[0][0] in '@+~:':
            del words[0]
        found.append(words[0] if words[0] != 'call' else words[1].partition('=')[2])
    return found


def only(found, wanted):
    return [verb for verb in found if verb in wanted]


def trace_of_the_driver_alone(folder):
    done = run(ALONE, NPUSIM_TRACE=str(folder / 'alone'))
    expect(done.returncode == 0, done.stdout, done.stderr)
    found = verbs(folder / 'alone')
    expect(found == ['device', *OWN], found)
    head = (folder / 'alone').read_text(encoding='ascii').splitlines()[1]
    expect(' backend=sim ' in head and ' devices=2' in head, head)


def trace_of_the_command(folder):
    done = run(ALONE, [COMMAND, 'run', '--trace', str(folder / 'run'), '--'])
    expect(done.returncode == 0, done.stdout, done.stderr)
    expect(verbs(folder / 'run') == ['device', *OWN], verbs(folder / 'run'))


def recording(folder, *options):
    """Behind the folders of a vendor's installation."""
    (folder / 'driver').mkdir(exist_ok=True)
    hal = folder / 'driver' / 'libascend_hal.so'
    hal.unlink(missing_ok=True)
    hal.symlink_to(DRIVER)
    out = folder / 'recording.npt'
    done = run(ALONE, [COMMAND, 'record', *options, '-o', str(out), '--'],
               LD_LIBRARY_PATH='{}:{}'.format(hal.parent, FOREIGN))
    expect(done.returncode == 0, done.stdout, done.stderr)
    text = out.read_text(encoding='ascii')
    return text, [verb for verb in verbs(out) if verb != 'info']


def record_takes_our_libraries_behind_a_vendors_folders(folder):
    text, found = recording(folder)
    expect(' backend=sim' in text and found == ['device', *OWN], found, text)


def record_sees_what_a_vendors_driver_is_asked(folder):
    text, found = recording(folder, '--hal')
    expect(' backend=hw\n' in text and found == ['device', *OWN], found, text)
    done = run(ALONE, [COMMAND, 'record', '--hal', '--preload', '--'])
    expect(done.returncode == 2 and 'give one' in done.stderr, done.stderr)


def fault_of_the_driver_alone(_):
    done = run(ALONE, NPUSIM_FAULT='halMemCreate:1:oom')
    expect('halMemCreate 6 NPUSIM_FAULT: call 1 of halMemCreate was made to fail with 6\n'
           in done.stdout, done.stdout, done.stderr)
    expect('halMemAddressFree 0\n' in done.stdout, done.stdout)


def failures_are_told_once(_):
    fault = 'halMemMap:1:busy,halMemCreate:2:invalid'
    done = run(ALONE, NPUSIM_FAULT=fault)
    expect(done.stderr.count(' warn: NPUSIM_FAULT: call 1 of halMemMap') +
           done.stderr.count(' warn: halMemMap: NPUSIM_FAULT: call 1') == 1 and
           ' warn: 3 failures of 3 kinds; the first: ' in done.stderr, done.stderr)
    # over backend-hw it is the ACL that tells of its calls, and the program's own are told too
    done = run(BOTH, NPUSIM_FAULT='halMemCreate:1:invalid', NPUSIM_BACKEND='hw', NPUSIM_HAL=HAL)
    expect(' warn: aclrtMallocPhysical: ' in done.stderr and 'warn: halMemCreate' not in done.stderr
           and done.stderr.count(' warn: 1 failure of 1 kind; ') == 1, done.stderr)


def fault_is_in_the_trace(folder):
    run(ALONE, NPUSIM_FAULT='mem_map:1:busy', NPUSIM_TRACE=str(folder / 'fault'))
    lines = (folder / 'fault').read_text(encoding='ascii').splitlines()
    expect([line for line in lines if ' map ' in line and line.endswith(' => 507899')], lines)


def wrong_fault_is_said(_):
    done = run(ALONE, NPUSIM_FAULT='mem_craete:1:oom')
    expect(done.returncode != 0 and 'is halMemCreate meant?' in done.stderr, done.stderr)


def both_faces_share_one_trace(folder):
    done = run(BOTH, NPUSIM_TRACE=str(folder / 'both'))
    expect(done.returncode == 0, done.stdout, done.stderr)
    found = only(verbs(folder / 'both'), OWN)
    expect(found == ['create', 'release', *OWN], found)


def both_faces_share_one_count(_):
    done = run(BOTH, NPUSIM_FAULT='halMemCreate:2:oom')
    expect('aclrtMallocPhysical 0\n' in done.stdout, done.stdout, done.stderr)
    expect('halMemCreate 6 ' in done.stdout, done.stdout)


def backend_hw_over_our_library_traces_once(folder):
    done = run(BOTH, NPUSIM_TRACE=str(folder / 'hw'), NPUSIM_BACKEND='hw', NPUSIM_HAL=HAL)
    expect(done.returncode == 0, done.stdout, done.stderr)
    found = only(verbs(folder / 'hw'), OWN)
    expect(found == ['create', 'release', *OWN], found)
    expect(verbs(folder / 'hw').count('device') == 1, verbs(folder / 'hw'))


def backend_hw_over_our_library_counts_once(_):
    done = run(BOTH, NPUSIM_FAULT='halMemCreate:2:oom', NPUSIM_BACKEND='hw', NPUSIM_HAL=HAL)
    expect('aclrtMallocPhysical 0\n' in done.stdout, done.stdout, done.stderr)
    expect('halMemCreate 6 ' in done.stdout, done.stdout)


TESTS = [trace_of_the_driver_alone, trace_of_the_command,
         record_takes_our_libraries_behind_a_vendors_folders,
         record_sees_what_a_vendors_driver_is_asked, fault_of_the_driver_alone,
         failures_are_told_once, fault_is_in_the_trace, wrong_fault_is_said,
         both_faces_share_one_trace,
         both_faces_share_one_count, backend_hw_over_our_library_traces_once,
         backend_hw_over_our_library_counts_once]

run_cases([(test.__name__, test) for test in TESTS])
