# SPDX-License-Identifier: Apache-2.0
#
# Checks a file of HBM commands, in DRAMsim3's format, against the rules of JESD235 for a pseudo
# channel: the distances of commands of one bank, one bank group, and all banks; which rows are
# open; at most four activations in tFAW; refreshes, with all rows closed, and how often they come.

import collections


class Channel:
    def __init__(self, clocks, burst, per_bank):
        self.t, self.burst, self.per_bank = clocks, burst, per_bank
        self.least = {command: self.distances(command)
                      for command in ('activate', 'precharge', 'read', 'write')}
        self.last = collections.defaultdict(dict)  # of a scope: command -> clock
        self.row = {}
        self.activations = collections.deque(maxlen=4)
        self.refreshed = {}  # bank, or None for all: the clock

    def distances(self, command):
        """(scope, command before, least clocks) of what must be before it."""
        t, after_write = self.t, self.t['cwl'] + self.burst
        if command == 'activate':
            return [('bank', 'activate', t['rc']), ('bank', 'precharge', t['rp']),
                    ('group', 'activate', t['rrd_l']), ('all', 'activate', t['rrd_s'])]
        if command == 'precharge':
            return [('bank', 'activate', t['ras']), ('bank', 'read', t['rtp']),
                    ('bank', 'write', after_write + t['wr'])]
        turn = {'read': [('all', 'write', after_write + t['wtr_s']),
                         ('group', 'write', after_write + t['wtr_l'])],
                'write': [('all', 'read', t['rtw'])]}[command]
        # An activation takes two clocks of the row bus: it counts from the second.
        return turn + [('bank', 'activate', t['rcd_rd' if command == 'read' else 'rcd_wr'] + 1),
                       ('group', command, t['ccd_l']),
                       ('all', command, max(t['ccd_s'], self.burst))]

    def refresh_length(self):
        return self.t['rfc_sb' if self.per_bank else 'rfc']

    def refresh_interval(self):
        return self.t['refi_sb'] * self.t['banks'] if self.per_bank else self.t['refi']

    def check_end(self, clock):
        """What is wrong at the last clock. The first refresh may take two intervals, since banks
        that are refreshed one by one begin in turn."""
        interval = self.refresh_interval()
        for key in self.row if self.per_bank else [None]:
            if clock - self.refreshed.get(key, interval) > interval:
                yield 'no refresh for {}'.format(clock - self.refreshed.get(key, 0))

    def check(self, clock, command, group, bank, row):
        """What is wrong with it, in words."""
        bank = group, bank
        if command.startswith('refresh'):
            banks = [bank] if self.per_bank else list(self.row)
            for each in banks:
                if self.row.get(each) is not None:
                    yield 'a row is open'
                if clock - self.last['bank', each].get('precharge', -10**9) < self.t['rp']:
                    yield 'refresh after precharge'
            key = bank if self.per_bank else None
            interval = self.refresh_interval()
            if clock - self.refreshed.get(key, clock - interval) != interval:
                yield 'an interval of {}'.format(clock - self.refreshed[key])
            self.refreshed[key] = clock
            return
        for key in (bank, None):
            if key in self.refreshed and clock - self.refreshed[key] < self.refresh_length():
                yield '{} in a refresh'.format(command)
        scopes = {'bank': bank, 'group': group, 'all': None}
        for scope, before, least in self.least[command]:
            then = self.last[scope, scopes[scope]].get(before)
            if then is not None and clock - then < least:
                yield '{} {} clocks after {} of the same {}, not {}'.format(
                    command, clock - then, before, scope, least)
        if command == 'activate':
            if len(self.activations) == 4 and clock - self.activations[0] < self.t['faw']:
                yield 'five activations in {}'.format(clock - self.activations[0])
            self.activations.append(clock)
            if self.row.get(bank) is not None:
                yield 'a row is open already'
            self.row[bank] = row
        elif self.row.get(bank) != row:
            yield '{} of row {}, and {} is open'.format(command, row, self.row.get(bank))
        if command == 'precharge':
            self.row[bank] = None
        for scope, value in scopes.items():
            self.last[scope, value][command] = clock


def saying(line, what):
    return ['{}: {}'.format(line, each) for each in what]


def check(path, profile):
    """Lines that break a rule, as text; `profile`: [HBM] of its ini file, as integers."""
    clocks = {key[:-4]: value for key, value in profile.items() if key.endswith('_tck')}
    clocks['banks'] = profile['bank_groups'] * profile['banks']
    channels, wrong, last = {}, [], 0
    counts = collections.Counter()
    for line in open(path):
        words = line.split()
        clock, command = int(words[0]), words[1]
        channel, _, group, bank = map(int, words[2:6])
        row, column = int(words[6], 16), int(words[7], 16)
        counts[command] += 1
        if clock < last or column >= profile['columns'] or row >= profile['rows']:
            wrong.append('{}: not in order, or no such place'.format(line))
        last = clock
        if channel not in channels:
            channels[channel] = Channel(clocks, profile['burst_length'] // 2,
                                        profile['refresh_per_bank'])
        wrong += saying(line, channels[channel].check(clock, command, group, bank, row))
    if profile['refresh']:
        for channel in channels.values():
            wrong += saying('the end', channel.check_end(last))
    return wrong, counts
