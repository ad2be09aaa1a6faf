#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# How much sooner a sweep of many small rows is done by several at a time, and by the ranks of an
# MPI, than by one: the shortest of interleaved runs. The processor time of each beside it: more of
# it for the same rows, or a wall time far above it, tells of a busy machine.
# usage: sweep-bench.py NPUSIM HAS-MPI [ROWS]

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

NPUSIM, HAS_MPI = sys.argv[1], sys.argv[2] == 'true'
ROWS = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
REPEATS = 3
LOAD = '--seeds', str(ROWS), 'bench', '--count', '100000', '--size', '1g'
MPIRUN = 'mpirun', '--oversubscribe', '--allow-run-as-root', '-n'
SHARE = 0.95  # of the processors that a sweep can have


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder, front, jobs):
    """Seconds on the wall, and of processors."""
    out = folder / 'out'
    shutil.rmtree(out, ignore_errors=True)
    wall, used = time.monotonic(), processor_time()
    said = subprocess.run([*front, NPUSIM, 'sweep', '--out', out, *jobs, *LOAD], check=True,
                          capture_output=True, text=True).stdout
    wall, used = time.monotonic() - wall, processor_time() - used
    assert '{0} of {0} rows done, 0 failed'.format(ROWS) in said, said
    return wall, used


def main():
    ways = {'-j {}'.format(n): (n, '-j 1', (), ('-j', str(n))) for n in (1, 2, 4)}
    if HAS_MPI and shutil.which('mpirun'):
        ways.update(('ranks: {}'.format(n), (n, 'ranks: 1', (*MPIRUN, str(n)), ()))
                    for n in (1, 2, 4))
    times = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(REPEATS):
            for name, (_, _, front, jobs) in ways.items():
                times[name].append(run(pathlib.Path(folder), front, jobs))
    for name, (count, one, _, _) in ways.items():
        wall, used = map(min, zip(*times[name]))
        what = '{} rows, {}'.format(ROWS, name)
        print('{} {:.2f} s, {:.2f} s of processors'.format(what, wall, used))
        if count > 1:
            share = SHARE * min(count, len(os.sched_getaffinity(0)))
            print('{} over one {:.2f} x at least {:g}'.format(
                what, min(times[one])[0] / wall, share), flush=True)


main()
