#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Functions of libascend_hal.so that a preloaded library has too are called in their place, once a
# call, and reach the driver's own; without such a library nothing is opened for it.
# usage: interposed-test.py PROGRAM HOOK LIBASCEND-HAL

import os
import subprocess
import sys

PROGRAM, HOOK, HAL = map(os.path.realpath, sys.argv[1:])


def run(backend, preload):
    env = dict(os.environ, NPUSIM_BACKEND=backend, NPUSIM_NODE='interposed-%d' % os.getpid(),
               LD_DEBUG='files')
    env.pop('NPUSIM_HAL', None)
    if backend == 'hw':
        env['NPUSIM_HAL'] = HAL
    if preload:  # AddressSanitizer's library, if there is one, is behind it
        env['ASAN_OPTIONS'] = env.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'
        env['LD_PRELOAD'] = ':'.join(filter(None, [env.get('LD_PRELOAD'), HOOK]))
    done = subprocess.run([PROGRAM], env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=100)
    lines = done.stderr.splitlines()
    calls = [line for line in lines if ' depth ' in line]
    opened = any('calling init' in line and '/libascend_hal.so' in line for line in lines)
    return (done.returncode, done.stdout.strip()), calls, opened


number = 0


def check(name, got, wanted):
    global number
    number += 1
    print('{}ok {} - {}'.format('' if got == wanted else 'not ', number, name))
    if got != wanted:
        print('# {!r}, not {!r}'.format(got, wanted))


CALLED = ['halMemCreate depth 0', 'halMemAlloc depth 0']
for backend in ('sim', 'hw'):
    check(backend + ' with hooks', run(backend, True), ((0, '0 0 0'), CALLED, True))
    check(backend + ' without', run(backend, False), ((0, '0 0 0'), [], backend == 'hw'))
print('1..4')
