# SPDX-License-Identifier: Apache-2.0
#
# What the tests of the npusim command share: a run of it, snapshots written by a small allocator
# that knows what the answers are.

import gzip
import json
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
from tap import LATER, Skip, expect, run_cases

MIB = 1 << 20
# Meson names the folders of all libraries there: each process would look for each library in each.
os.environ.pop('LD_LIBRARY_PATH', None)


def need(tool):
    """Where it lies; without it a case is skipped."""
    if shutil.which(tool) is None:
        raise Skip('there is no ' + tool)
    return shutil.which(tool)


CASES = []


def case(function):
    CASES.append(function)
    return function


def same(got, wanted, what=''):
    expect(got == wanted, '{}: got {!r}, wanted {!r}'.format(what, got, wanted))


def main():
    run_cases([(function.__name__.replace('_', ' '), function) for function in CASES])


# ---- the command ----

NPUSIM = os.path.abspath(sys.argv[1])


def environment(**more):
    """The caller's, without what would steer the command, and a node that nobody else has; its
    python3 is that of the tests."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith('NPUSIM_')}
    path = '{}:{}'.format(os.path.dirname(sys.executable), keep.get('PATH', ''))
    return {**keep, 'LC_ALL': 'C.UTF-8', 'PATH': path,
            'NPUSIM_NODE': 'test-{}'.format(os.getpid()), **more}


def die_of_signals():
    """Programs of a test end by SIGSEGV under a sanitizer, too."""
    for sanitizer in 'ASAN_OPTIONS', 'TSAN_OPTIONS':
        if sanitizer in os.environ:
            os.environ[sanitizer] += ':handle_segv=0'


def npusim(*args, env=None, stdin=subprocess.DEVNULL, **options):
    return subprocess.run([NPUSIM, *map(str, args)], env=env or environment(),
                          stdin=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, **options)


# Runs a command from a process that is small itself, and says what it held at the most, in KiB.
MEASURE = ('import os, sys\n'
           'pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)\n'
           '_, status, usage = os.wait4(pid, 0)\n'
           'print(usage.ru_maxrss)\n'
           'sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)\n')


def measured(*args):
    """A run of the command, and the most memory that it held, in MiB."""
    run = subprocess.run([sys.executable, '-S', '-c', MEASURE, NPUSIM, *map(str, args)],
                         env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=120)
    return run, int(run.stdout.split()[-1]) / 1024


def wait_until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        expect(time.monotonic() < end, what)
        time.sleep(0.005)


def replay(path, *args):
    """The JSON of a replay that works and says nothing else."""
    run = npusim('replay', path, '--json', '-', *args)
    same(run.returncode, 0, 'status of replay ({})'.format(run.stderr))
    same(run.stderr, '', 'stderr of replay')
    return json.loads(run.stdout)


# ---- traces and snapshots ----

def write_trace(path, *lines):
    """A file with these lines behind the first."""
    path.write_text('npusim-trace 1\n' + ''.join(line + '\n' for line in lines))
    return path


class Device:
    """An allocator that writes its history as PyTorch does, and keeps the figures beside it."""

    def __init__(self):
        self.segments = {}  # address -> size, of aclrtMalloc
        self.mapped = {}    # address -> pool, of each 2 MiB of expandable segments
        self.blocks = {}    # address -> size
        self.events = []
        self.counts = {}
        self.physical = self.live = 0
        self.start()

    def start(self):
        """What has been until now is from before the window."""
        self.events.clear()
        self.counts.clear()
        self.start_physical = self.peak_physical = self.physical
        self.start_live = self.peak_live = self.live
        self.obtained = 0

    def event(self, action, address, size, **more):
        self.counts[action] = self.counts.get(action, 0) + 1
        self.events.append(dict(action=action, addr=address, size=size, stream=0, frames=[],
                                time_us=len(self.events), **more))

    def grow(self, size):
        self.physical += size
        self.obtained += size
        self.peak_physical = max(self.peak_physical, self.physical)

    def segment_alloc(self, address, size):
        self.segments[address] = size
        self.grow(size)
        self.event('segment_alloc', address, size)

    def segment_free(self, address):
        size = self.segments.pop(address)
        self.physical -= size
        self.event('segment_free', address, size)

    def segment_map(self, address, size, pool='large'):
        for at in range(address, address + size, 2 * MIB):
            expect(at not in self.mapped)
            self.mapped[at] = pool
        self.grow(size)
        self.event('segment_map', address, size)

    def segment_unmap(self, address, size):
        for at in range(address, address + size, 2 * MIB):
            del self.mapped[at]
        self.physical -= size
        self.event('segment_unmap', address, size)

    def alloc(self, address, size):
        self.blocks[address] = size
        self.live += size
        self.peak_live = max(self.peak_live, self.live)
        self.event('alloc', address, size)

    def free(self, address):
        size = self.blocks.pop(address)
        self.event('free_requested', address, size)
        self.live -= size
        self.event('free_completed', address, size)

    def runs(self):
        """Expandable memory as it is listed: a segment for each stretch of one pool."""
        out = []
        for at in sorted(self.mapped):
            if out and out[-1][0] + out[-1][1] == at and out[-1][2] == self.mapped[at]:
                out[-1][1] += 2 * MIB
            else:
                out.append([at, 2 * MIB, self.mapped[at]])
        return out

    def state(self, device):
        """The segments of the snapshot."""
        out = []
        for address, size, pool, expandable in (
                [(a, s, 'large', False) for a, s in self.segments.items()] +
                [(a, s, pool, True) for a, s, pool in self.runs()]):
            blocks, at = [], address
            for start in sorted(b for b in self.blocks if address <= b < address + size):
                if start > at:
                    blocks.append(dict(address=at, size=start - at, requested_size=0,
                                       state='inactive', frames=[]))
                rounded = (self.blocks[start] + 511) // 512 * 512
                blocks.append(dict(address=start, size=rounded, state='active_allocated',
                                   requested_size=self.blocks[start], frames=[]))
                at = start + rounded
            if at < address + size:
                blocks.append(dict(address=at, size=address + size - at, requested_size=0,
                                   state='inactive', frames=[]))
            out.append(dict(device=device, address=address, total_size=size, stream=0,
                            allocated_size=0, active_size=0, requested_size=0,
                            segment_type=pool, segment_pool_id=(0, 0), frames=[],
                            is_expandable=expandable, blocks=blocks))
        return out

    def check(self, result):
        for key, wanted in [('start_physical_bytes', self.start_physical),
                            ('start_live_bytes', self.start_live),
                            ('peak_physical_bytes', self.peak_physical),
                            ('peak_live_bytes', self.peak_live),
                            ('obtained_bytes', self.obtained),
                            ('device_peak_bytes', self.peak_physical),
                            ('unknown_frees', 0),
                            ('events', self.counts)]:
            same(result[key], wanted, key)


def snapshot(devices):
    return dict(segments=[segment for number, device in sorted(devices.items())
                          for segment in device.state(number)],
                device_traces=[devices[number].events if number in devices else []
                               for number in range(max(devices) + 1)],
                allocator_settings=dict(PYTORCH_CUDA_ALLOC_CONF='', max_split_size=-1,
                                        garbage_collection_threshold=0.0, is_wide=1 << 70,
                                        roundup_power2_divisions={'1': 0, '64': 0}))


def write(path, value, protocol=4):
    data = pickle.dumps(value, protocol)
    path.write_bytes(gzip.compress(data) if path.suffix == '.gz' else data)
    return path


# ---- real files: they are others'; where they are not, their cases are skipped ----

DATA = pathlib.Path(os.environ.get('NPUSIM_TEST_DATA') or sys.argv[-1])


def real(name):
    if not (DATA / name).exists():
        raise Skip('there is no {} in {}'.format(name, DATA))
    return DATA / name


def real_cases(names, check):
    """A case for each file: check(name)."""
    for name in names:
        def run(folder, name=name):
            check(name)
        run.__name__ = 'real file ' + pathlib.PurePath(name).name
        case(run)


BASE = 0x12c1c0000000


def random_device(seed, steps=300):
    """Both kinds of segment, in both pools; memory that is there when the window begins."""
    dice = random.Random(seed)
    device = Device()
    slots = {'small': [], 'large': []}
    for step in range(steps):
        if step == steps // 4:
            device.start()
        what = dice.randrange(10)
        pool = dice.choice(['small', 'large'])
        unit = 2 * MIB if pool == 'small' else 20 * MIB
        pool_base = BASE + (1 << 40 if pool == 'small' else 0)
        if what < 3:
            free = [i for i in range(40) if i not in slots[pool]]
            slot = dice.choice(free or [None])
            if slot is not None:
                slots[pool].append(slot)
                device.segment_map(pool_base + slot * unit, unit, pool)
        elif what < 4 and slots[pool]:
            slot = dice.choice(slots[pool])
            address = pool_base + slot * unit
            if not any(address <= b < address + unit for b in device.blocks):
                slots[pool].remove(slot)
                device.segment_unmap(address, unit)
        elif what < 5:
            address = BASE + (2 << 40) + dice.randrange(64) * 32 * MIB
            if address not in device.segments:
                device.segment_alloc(address, dice.choice([2, 6, 20, 22]) * MIB)
        elif what < 6 and device.segments:
            address = dice.choice(sorted(device.segments))
            size = device.segments[address]
            if not any(address <= b < address + size for b in device.blocks):
                device.segment_free(address)
        elif what < 9 and slots[pool]:
            address = pool_base + dice.choice(slots[pool]) * unit + dice.randrange(32) * 4096
            if address not in device.blocks:
                device.alloc(address, dice.randrange(1, 4097))
        elif device.blocks:
            device.free(dice.choice(sorted(device.blocks)))
    return device
