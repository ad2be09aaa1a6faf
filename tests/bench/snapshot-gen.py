#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Writes a memory snapshot of any length, as PyTorch does, for measuring readers and the page:
# blocks of a training loop from a few hundred call stacks, some of them live from the first event
# to the last. The same arguments give the same bytes.
# usage: snapshot-gen.py FILE [EVENTS]; EVENTS is 900001 if it is not given

import pickle
import random
import sys

MIB = 1 << 20
BASE = 0x12c1c0000000
UNITS = 4096  # of 2 MiB: the memory
LIVE = 6000   # blocks that live for a while


def stacks(dice):
    """Frames of call sites, outermost last."""
    step = [dict(name='step', filename='/src/train.py', line=40),
            dict(name='main', filename='/src/train.py', line=90)]
    return [[dict(name=dice.choice(['forward', 'backward', 'norm', 'attend', 'gather']),
                  filename='/src/model/layer{}.py'.format(i % 40), line=10 + i),
             dict(name='call', filename='/x/site-packages/torch/nn/module.py', line=1500 + i % 7)]
            + step for i in range(300)]


def history(count):
    dice = random.Random(1)
    sites = stacks(dice)
    size = UNITS * 2 * MIB
    events = [dict(action='segment_alloc', addr=BASE, size=size, stream=0, time_us=1000, frames=[])]
    free = [BASE + i * MIB for i in range(UNITS * 2)]
    dice.shuffle(free)
    live, now = [], 1000

    def add(action, address, bytes_, site):
        nonlocal now
        now += dice.choice([1, 1, 2, 3, 5, 30])
        events.append(dict(action=action, addr=address, size=bytes_, stream=0, time_us=now,
                           frames=sites[site]))

    while len(events) + 3 <= count:
        wanted = LIVE if len(events) // 20000 % 2 else LIVE // 3  # it comes and goes, as steps do
        if len(live) < wanted or not live:
            block = (free.pop(), 512 * (1 + dice.randrange(64)) * dice.choice([1, 4, 32]),
                     dice.randrange(300))
            live.append(block)
            add('alloc', *block)
        else:
            at = dice.randrange(len(live) // 8, len(live)) if dice.random() < 0.9 else \
                dice.randrange(len(live))
            block = live.pop(at)
            free.append(block[0])
            add('free_requested', *block)
            add('free_completed', *block)
            if dice.random() < 0.8:
                block = (free.pop(), block[1], block[2])
                live.append(block)
                add('alloc', *block)
    while len(events) < count:
        add('alloc', free.pop(), 512, 0)
    return events, size


def state(events, size):
    live = {}
    for event in events:
        if event['action'] == 'alloc':
            live[event['addr']] = event
        elif event['action'] == 'free_completed':
            del live[event['addr']]
    blocks, at = [], BASE
    for address in sorted(live):
        bytes_, frames = live[address]['size'], live[address]['frames']
        if address > at:
            blocks.append(dict(address=at, size=address - at, requested_size=0, state='inactive',
                               frames=[]))
        blocks.append(dict(address=address, size=bytes_, requested_size=bytes_,
                           state='active_allocated', frames=frames))
        at = address + bytes_
    blocks.append(dict(address=at, size=BASE + size - at, requested_size=0, state='inactive',
                       frames=[]))
    return [dict(device=0, address=BASE, total_size=size, stream=0, segment_type='large',
                 segment_pool_id=(0, 0), is_expandable=False, frames=[], blocks=blocks)]


def main():
    events, size = history(int(sys.argv[2]) if len(sys.argv) > 2 else 900001)
    with open(sys.argv[1], 'wb') as file:
        pickle.dump(dict(segments=state(events, size), device_traces=[events]), file, 4)


main()
