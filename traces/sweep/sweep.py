# SPDX-License-Identifier: Apache-2.0
#
# npusim sweep: runs bench or replay once for each choice of values, each row in a process of its
# own, several at a time, and under an MPI on its ranks. The manual page is npusim-sweep(1).
#
# Each process appends what it has finished to a file of its own, rows*.jsonl, soon synced, so that
# nothing is lost and no two write to one file; a merge of these files makes rows.csv, rows.sqlite,
# seeds.csv and plot.html. Rank 0 hands the rows out, and runs some itself; on each node as many
# ranks run rows as it has processors for.
# usage: sweep.py NPUSIM VERSION WORD..., by `npusim sweep` alone
#
# What not every rank needs at its start is imported where it is needed: imports take longest of it.

import argparse
import contextlib
import ctypes
import errno
import fcntl
import functools
import hashlib
import itertools
import json
import math
import os
import pathlib
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time

NPUSIM, VERSION = sys.argv[1:3]
HERE = pathlib.Path(__file__).absolute().parent
LIBRARIES = [folder / name  # that rows use, installed or as built
             for folder in (HERE, HERE / 'acl', *(HERE.parent / name for name in (
                 'sim', 'backend-sim', 'runtime')))
             for name in ('bench.so', 'backend-sim.so', 'libascendcl.so')]
LOADED = {'bench': 'bench.so', 'replay': 'backend-sim.so'}  # before the rows begin
ROWS_MAX = 10_000_000
PIPE_BYTES = 1 << 16
STATUS_BYTES = 4
ROW_BYTES = 2 << 20  # of a row's words, as `npusim sweep --rows` reads them
SHOW_SECONDS = 0.2
LOOK_MS = 200  # for what ranks send
AHEAD_SECONDS = 1  # a row that takes longer holds up none that is ahead
SYNC_SECONDS = 1
LOG_SECONDS = 60  # without a terminal
DATABASE_COLUMNS = 2000  # that SQLite takes at the most
INPUT_BYTES = 1 << 20  # that are read at a time
STATES = 'ok', 'failed'
PLOT_ROWS = 10_000  # that a browser draws at once
OWN_COLUMNS = 'row', 'status', 'reason', 'seconds'
FRACTION = (r'-?[0-9]{0,15}\.[0-9]{1,17}(e[+-]?[0-9]{1,2})?|'
            r'-?[0-9]{1,15}e[+-]?[0-9]{1,2}|-[0-9]{1,15}')
NAMES = ('file', 'node', 'page', 'site-rule', 'soc', 'SoCInfo.soc_name', 'SoCInfo.short_name',
         'SoCInfo.near_nodes', 'HBM.map')  # axes that may look like numbers
WRITTEN = 'commands', 'profile', 'trace'  # options that name a file to write
ONE_FILE = '{0}{1}={2}: all rows would write one file; --{1}=FILE{3} gives each its own'
ROW = '{row}'  # in such a name: the row's number
BY_OTHERS = {'count': {'file', 'pattern'}, 'op': {'file', 'pattern'},
             'page': {'policy'}}  # options without a value of their own: what it depends on
SHAPING = tuple('NPUSIM_' + name for name in (  # what is read of the environment that counts
    'BACKEND', 'CONTRACT', 'DEVICES', 'FAULT', 'HBM', 'HOST_MEMORY', 'RUNTIME_MEMORY', 'SITE_RULE',
    'SOC', 'TIMING'))
SHORT = errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM  # for a while, maybe
OF_THE_RUN = 'seconds', 'wall_us'  # what two runs of a row need not share: no columns
# What ranks send: a row's number, to rank 0 of one that it may give to another; or one of these.
# Who has said that it wants a row says too when it has a place for it, and when it runs none.
HAS_NONE, HAS_PLACE, WANTS_ROW, NO_MORE = -4, -3, -2, -1


class Refused(Exception):
    """Wrong usage."""


class Failed(Exception):
    pass


# ---- what is run ----

def parse_size(text):
    """A whole number, K, M, G or T behind it for powers of 1024; None: it is none."""
    found = re.fullmatch('([0-9]{1,20})([KMGT]?)', text, re.I | re.A)
    return found and int(found[1]) << 10 * ' KMGT'.index(found[2].upper() or ' ')


def values_of(text, axis):
    """The values that one word of an axis stands for: a range, or itself."""
    ends = re.fullmatch(r'(\w+)\.\.(\w+?)(?:([*+])(\w+))?', text)
    first, last, step = (parse_size(ends[i] or '1') if ends else None for i in (1, 2, 4))
    if None in (first, last, step):
        return [text]
    if first <= last and ends[3] != '*' and step > 0:
        return map(str, range(first, last + 1, step))
    if first > last or first < 1 or step < 2:
        raise Refused('{}: {} goes nowhere'.format(axis, text))
    powers = (first * step ** i for i in itertools.count())
    return map(str, itertools.takewhile(lambda power: power <= last, powers))


def contents(paths):
    digest = hashlib.sha256()
    for path in sorted(filter(os.path.isfile, {*map(str, paths)})):
        with open(path, 'rb') as file:
            for part in iter(functools.partial(file.read, INPUT_BYTES), b''):
                digest.update(part)
    return digest.hexdigest()


class Plan:
    """The verb and its words, and axes; a row has one value of each, the last turns fastest.
    `texts` are the axes, each behind where it stands."""

    def __init__(self, words, texts):
        self.words, self.texts, self.axes, self.where, self.count = words, texts, {}, {}, 1
        for where, text in texts:
            key, _, values = (part.strip() for part in text.partition('='))
            listed = itertools.chain.from_iterable(
                values_of(word.strip(), where + text) for word in values.split(',') if word.strip())
            listed = list(itertools.islice(listed, ROWS_MAX + 1))
            if not key or not listed:
                raise Refused('{}{}: KEY=A,B,C is wanted'.format(where, text))
            if key in OWN_COLUMNS or not key.isprintable():
                raise Refused('{}{}: no axis can have this name'.format(where, text))
            if key in self.axes:
                raise Refused('{}{}: there is an axis {} already'.format(where, text, key))
            self.axes[key], self.where[key] = listed, where
            self.count *= len(listed)
            if self.count > ROWS_MAX:
                raise Refused('{}{} makes it more than {} rows'.format(where, text, ROWS_MAX))
        if not words or words[0] not in LOADED:
            raise Refused('bench or replay is wanted behind the options, not {!r}'.format(
                words[0] if words else ''))
        if not texts:
            raise Refused('--vary, --plan or --seeds is wanted, before {}'.format(words[0]))
        listed = re.findall(r'^--([\w-]+)(=?)', self.ask(words[0], '--list-options'), re.M)
        self.options = {name for name, takes_value in listed if takes_value} - {'json'}  # its own
        self.flags = {name for name, takes_value in listed if not takes_value}
        for word in itertools.takewhile('--'.__ne__, words[1:]):  # not 10,000 times by its rows
            name = word[2:].partition('=')[0]
            if word.startswith('--') and name not in {*self.options, *self.flags}:
                raise Refused("{} has no option --{} (sweep's go first)".format(words[0], name))
        for option, value, _ in self.given():
            if option in WRITTEN and ROW not in value:
                raise Refused(ONE_FILE.format('--', option, value, ROW))
        for key in self.axes:
            if key in WRITTEN:
                raise Refused(ONE_FILE.format(self.where[key], key, '...', ROW))
            if key == 'seed' and key not in self.options:
                raise Refused('{}a {} has no seed: --seeds is for bench'.format(
                    self.where[key], words[0]))
            if key in self.flags and not {*self.axes[key]} <= {'yes', 'no'}:
                raise Refused('{}{}=...: yes, no or both are wanted'.format(self.where[key], key))
            known = [*self.options, *self.flags, 'file']
            if words[0] == 'bench' and key not in known:
                known += re.findall(r'^\S+', self.ask('profile', 'keys'), re.M)
            if key == 'json' or words[0] == 'bench' and key not in known:
                import difflib
                near = difflib.get_close_matches(key, known, 1)
                raise Refused('{}{}=...: {} has no such option, and a profile no such key '
                              "('npusim profile keys'){}".format(
                                  self.where[key], key, words[0],
                                  ': is {} meant?'.format(*near) if near else ''))
        self.rows = '1 row' if self.count == 1 else '{} rows'.format(self.count)
        self.identity, self.scratch = self.identify(), None

    @staticmethod
    @functools.lru_cache(None)
    def ask(*words):
        run = subprocess.run([NPUSIM, *words], stdout=subprocess.PIPE, encoding='utf-8')
        if run.returncode:
            raise Failed('npusim {}: exit status {}'.format(shlex.join(words), run.returncode))
        return run.stdout

    def values(self, row):
        for key in reversed(self.axes):
            row, at = divmod(row, len(self.axes[key]))
            yield key, self.axes[key][at]

    def command(self, row):
        words = [*self.words, '--json=-']
        for option, value, at in self.given():
            if option in WRITTEN:
                name = value.replace(ROW, str(row))
                if self.scratch:
                    name = os.path.join(self.scratch, option + os.path.basename(name))
                words[at] = words[at].replace(value, name)
        for key, value in self.values(row):
            if key in self.flags:
                words.extend(['--' + key] if value == 'yes' else [])
            else:
                words.append(value if key == 'file' else '--{}={}'.format(
                    key if key in self.options else 'set=' + key, value))
        command = os.fsencode(shlex.join(words))
        if b'\0' in command:
            raise ValueError('a NUL is in it')
        if len(command) >= ROW_BYTES:
            raise ValueError('its words are {} bytes, more than {}'.format(
                len(command), ROW_BYTES - 1))
        return command + b'\0'

    def columns(self, row):
        """The values, as numbers where they are, and a database takes them."""
        for key, value in reversed(list(self.values(row))):
            number = float(value) if re.fullmatch(FRACTION, value, re.I) else parse_size(value)
            yield key, (value.encode('utf-8', 'backslashreplace').decode()
                        if key in NAMES or number is None or
                        isinstance(number, int) and number >= 1 << 63 else number)

    def given(self):
        """Each option that the words have, its value, and the word that has it; a file has none."""
        words = enumerate(self.words[1:], 1)
        for at, word in words:
            option, equals, value = word.partition('=')
            if not option.startswith('--'):
                yield '', word, at
            elif option[2:] in self.options:
                at, value = (at, value) if equals else next(words, (at, ''))
                yield option[2:], value, at

    def identify(self):
        """What is the same for all rows of a sweep, a line each; built-in profiles are the
        build's."""
        inputs = (*(value for option, value, _ in self.given() if option not in WRITTEN),
                  *self.axes.get('file', []), *self.axes.get('soc', []),
                  os.environ.get('NPUSIM_SOC', ''))
        lines = [('version', VERSION), ('build', contents([NPUSIM, *LIBRARIES])),
                 *((name, os.environ[name]) for name in SHAPING if name in os.environ),
                 ('files', contents(inputs)), ('command', ' '.join(self.words)),
                 *(('vary', text) for _, text in self.texts)]
        return [json.dumps('{}={}'.format(*line))[1:-1] for line in lines]


# ---- where rows go ----

def flatten(name, value):
    """Members of objects as NAME.MEMBER, those of lists as NAME.INDEX, but no lists of numbers, nor
    the hundreds of members of who held memory."""
    if isinstance(value, dict):
        for member, part in value.items():
            if member != 'holders':
                yield from flatten(name + '.' + member if name else member, part)
    elif isinstance(value, list):
        for i, part in enumerate(value):
            if isinstance(part, (dict, list, str)):
                yield from flatten('{}.{}'.format(name, i), part)
    else:
        yield name, value


def values(columns, rows):
    return ([row.get(column) for column in columns] for row in rows)


@contextlib.contextmanager
def naming(path):
    """An error of what is written says where."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


class Folder:
    def __init__(self, path, plan):
        self.path, self.plan, self.file, self.rows = path and pathlib.Path(path), plan, None, {}
        self.unsynced = None  # or since when there is something
        if path:
            self.check()
            self.read()

    def check(self):
        try:
            there = (self.path / 'sweep.txt').read_text('utf-8', 'replace').splitlines()
        except FileNotFoundError:
            return
        for old, new in itertools.zip_longest(there, self.plan.identity, fillvalue=''):
            if old != new:
                raise Refused('{} is of another sweep: it has "{}", this one "{}"; give another '
                              '--out'.format(self.path, old, new))

    def begin(self, own):
        """Opens this process's file."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not (self.path / 'sweep.txt').exists():
            with self.whole('sweep.txt') as file:
                file.write('\n'.join(self.plan.identity) + '\n')
        self.check()  # another process may have written it at the same time
        self.file = open(self.path / 'rows{}.jsonl'.format(own), 'ab+')
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failed('{}: another process is at it'.format(self.file.name)) from None
        # What a killed process has left of its last line goes.
        self.file.seek(0)
        self.file.truncate(self.file.read().rfind(b'\n') + 1)

    def append(self, row):
        with naming(self.file.name):
            self.file.write(json.dumps(row).encode() + b'\n')
            self.file.flush()
        self.unsynced = self.unsynced or time.monotonic()

    def sync(self, seconds):
        """What is older; a disk may take longer than rows do."""
        if self.unsynced and time.monotonic() - self.unsynced >= seconds:
            with naming(self.file.name):
                os.fsync(self.file.fileno())
            self.unsynced = None

    def read(self):
        """All rows by number. Of two answers the one counts that has not failed, else the later."""
        self.rows = {}
        for path in sorted(self.path.glob('rows*.jsonl')):
            for line in path.read_bytes().split(b'\n')[:-1]:
                try:
                    row = json.loads(line)
                    is_row = (row['row'] in range(self.plan.count) and row['status'] in STATES and
                              isinstance(row['reason'], str) and
                              isinstance(row['seconds'], (int, float)) and
                              not {dict, list} & {*map(type, row.values())})
                except (ValueError, TypeError, KeyError, RecursionError):
                    is_row = False
                # A machine that crashed may have left anything: what is no row runs again.
                if is_row and self.rows.get(row['row'], {}).get('status') != 'ok':
                    self.rows[row['row']] = row

    def count(self, status):
        return sum(row['status'] == status for row in self.rows.values())

    @contextlib.contextmanager
    def whole(self, name):
        """A file that takes its name when it is written."""
        path = self.path / '.{}.{}'.format(name, os.getpid())
        try:
            with naming(self.path / name):
                with open(path, 'w', newline='', encoding='utf-8') as file:
                    yield file
                path.replace(self.path / name)
        finally:
            with contextlib.suppress(OSError):  # the folder's file system may be read-only by now
                path.unlink()

    def merge(self):
        """Writes the tables, of all processes' rows; one process at a time."""
        # Of a folder on NFS, and of a file that is not open to write, it would exclude nobody.
        with open(self.path / 'sweep.txt', 'rb+') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.read()
            self.write_tables()

    def write_tables(self):
        import csv
        rows = [self.rows[number] for number in sorted(self.rows)]
        # Rows that have failed get the options of the others, where these have one value.
        done = [row for row in rows if row['status'] == 'ok']
        given = {option for option, _, _ in self.plan.given()}
        keys = {key for key in (*self.plan.options, *self.plan.flags, 'file', 'version')
                if key in given or not BY_OTHERS.get(key, set()) & {*self.plan.axes}}
        known = {key: value for row in done[:1] for key, value in row.items()
                 if key in keys and all(other.get(key) == value for other in done)}
        rows = [row if row['status'] == 'ok' else {**known, **row} for row in rows]
        names = ('row', 'status', 'reason', *self.plan.axes), *rows
        columns = [key for key in dict.fromkeys(itertools.chain.from_iterable(names))
                   if key not in OF_THE_RUN]
        tables = {'rows': (columns, rows)}
        if 'seed' in self.plan.axes:
            tables['seeds'] = self.seeds(rows)
        for name, (columns, lines) in tables.items():
            with self.whole(name + '.csv') as file:
                out = csv.writer(file, lineterminator='\n')
                out.writerow(columns)
                out.writerows(values(columns, lines))
        self.plot(rows)
        (self.path / 'rows.sqlite').unlink(missing_ok=True)  # of other rows
        import sqlite3  # not all builds of Python have it
        with self.whole('rows.sqlite') as file:
            try:
                db = sqlite3.connect(file.name)
                db.execute('PRAGMA journal_mode = OFF')
                for name, (columns, lines) in tables.items():
                    del columns[DATABASE_COLUMNS:]
                    db.execute('CREATE TABLE {}({})'.format(name, ', '.join(
                        '"{}"'.format(column.replace('"', '""')) for column in columns)))
                    db.executemany('INSERT INTO {} VALUES({})'.format(
                        name, ', '.join('?' * len(columns))), values(columns, lines))
                db.commit()
                db.close()
            except sqlite3.Error as error:
                raise OSError(0, str(error)) from error

    def plot(self, rows):
        """A page with lines by any two columns, and heat maps."""
        page = (HERE / 'plot.html').read_text('utf-8')
        columns = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
        about = ' '.join(self.plan.words)
        if len(rows) > PLOT_ROWS:  # not every nth: an axis may turn as fast
            about += '. Of {} rows {}, chosen at random'.format(len(rows), PLOT_ROWS)
            import random
            chosen = random.Random(0).sample(range(len(rows)), PLOT_ROWS)
            rows = [rows[i] for i in sorted(chosen)]
        data = json.dumps({'columns': columns, 'axes': list(self.plan.axes),
                           'rows': list(values(columns, rows)),
                           'about': about}).replace('<', '\\u003c')
        with self.whole('plot.html') as file:
            file.write(page.replace('@ROWS@', data, 1))

    def seeds(self, rows):
        """For each choice of the other values the mean of each result, and NAME_sd."""
        others, groups = [key for key in self.plan.axes if key != 'seed'], {}
        asked = {'row', *OF_THE_RUN, *self.plan.axes, *self.plan.options}
        for row in rows:
            if row['status'] == 'ok':
                groups.setdefault(tuple(row[key] for key in others), []).append(row)
        lines = []
        for choice, group in groups.items():
            line = dict(zip(others, choice), seeds=len(group))
            for key, value in group[0].items():
                if isinstance(value, (int, float)) and key not in asked:
                    values = [row[key] for row in group if row.get(key) is not None]
                    line[key] = math.fsum(values) / len(values)
                    off = [value - values[0] for value in values]
                    mean = math.fsum(off) / len(off)
                    line[key + '_sd'] = (math.hypot(*(each - mean for each in off)) /
                                         math.sqrt(len(off) - 1) if off[1:] else None)
            lines.append(line)
        return list(dict.fromkeys([*others, 'seeds', *itertools.chain.from_iterable(lines)])), lines


# ---- running ----

class Ranks:
    """Those of the MPI that has started this; without one, the only one."""

    def __init__(self, options):
        self.rank, self.size, self.module = 0, 1, None
        processors = sorted(os.sched_getaffinity(0))
        self.jobs = len(processors)
        started = {'OMPI_COMM_WORLD_SIZE', 'PMIX_RANK', 'PMI_RANK'} & set(os.environ)
        if not started or options.shard or options.dry_run:
            return
        try:
            # What the MPI loads itself looks for its functions in the process.
            self.module = ctypes.CDLL(str(HERE / 'sweep-ranks.so'), ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise Failed('an MPI has started this, and {}: build npusim with it, or use --shard '
                         'without'.format(error)) from error
        known = (ctypes.c_int * 4)()
        if not self.module.sweep_ranks_begin(hash(tuple(processors)) & 0x7fffffff, known):
            raise Failed('the MPI that has started this cannot be joined')
        self.rank, self.size, before, alike = known  # on the same processors
        self.jobs = int(before < self.jobs)
        with contextlib.suppress(OSError):  # a container may refuse either
            if os.sched_getscheduler(0) == os.SCHED_OTHER:  # who wakes up interrupts no row
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        with contextlib.suppress(OSError):
            if self.jobs and alike >= len(processors) and not options.jobs:
                os.sched_setaffinity(0, {processors[before]})  # none that runs rows moves about

    def send(self, to, what):
        self.module.sweep_ranks_send(to, ctypes.c_long(what))

    def receive(self, file, ms):
        """(from whom, what) of all that comes; waits for it while the file has nothing to read."""
        message = (ctypes.c_long * 2)()
        while self.size > 1 and self.module.sweep_ranks_receive(file, ms, message):
            yield tuple(message)
            ms = 0

    def end(self):
        if self.module:
            self.module.MPI_Finalize()


class Worker:
    """A process that runs rows, one after the other, each in a fork: what rows need it has loaded
    once. `npusim sweep --rows` is its other end."""

    def __init__(self, plan):
        self.plan, self.row, self.seconds, self.status = plan, None, None, None
        module = next((path for path in LIBRARIES if path.name == LOADED[plan.words[0]] and
                       path.exists()), '')  # none: the row says so
        self.out, self.said = (open(os.memfd_create('row'), 'w+b') for _ in range(2))
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # A terminal's interrupt is not for it.
            self.process = subprocess.Popen([NPUSIM, 'sweep', '--rows', module], stdin=theirs,
                                            stdout=self.out, stderr=self.said,
                                            start_new_session=True)

    def begin(self, row, command, seconds):
        """False: it has died."""
        self.row, self.since, self.seconds, self.status = row, time.monotonic(), seconds, None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for at in range(0, len(command), PIPE_BYTES):
                self.socket.send(command[at:at + PIPE_BYTES])
            return True
        return False

    def ran(self):
        return time.monotonic() - self.since

    def has_ended(self):
        """Then status is the row's, as Popen has it."""
        if self.seconds and self.ran() > self.seconds:
            self.process.kill()
            self.process.wait()
        try:
            said = self.socket.recv(STATUS_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            said = b''
        if not said:  # it has died, or could not fork and is the row
            self.status = self.process.poll()
            return self.status is not None
        self.status = int.from_bytes(said, sys.byteorder, signed=True)
        return True

    def end(self):
        self.process.kill()
        self.process.wait()
        for file in self.out, self.said, self.socket:
            file.close()

    def reason(self, took):
        """Why it has failed, or what it warns of."""
        self.said.seek(0)
        said, status = self.said.read().decode(errors='replace'), self.status
        if self.seconds and took > self.seconds and status == -signal.SIGKILL:
            return 'took longer than {} s'.format(self.seconds)
        if status < 0:
            return 'died of signal {} ({}){}'.format(
                -status, signal.strsignal(-status),
                ': is the machine out of memory?' if status == -signal.SIGKILL else '')
        found = re.findall('^npusim {}: (.*)'.format(self.plan.words[0]), said, re.M)
        return found[-1] if found else status and 'exit status {}: {}'.format(status, said) or ''

    def line(self):
        took, status = self.ran(), 'failed'
        line, reason = {}, self.reason(took)
        self.out.seek(0)
        try:
            if self.status == 0:
                result = json.load(self.out)
                result, = result if isinstance(result, list) else [result]
                line, status = dict(flatten('', result)), 'ok'
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            reason = 'its answer is no JSON: {}'.format(error)
        except ValueError:
            reason = 'it has {} results, a row takes one'.format(len(result))
        # The axes not as the verb calls them: two files of a profile may have one name.
        line = {'row': self.row, 'status': status, 'reason': reason, 'seconds': took, **line,
                **dict(self.plan.columns(self.row))}
        for file in self.out, self.said:
            file.truncate(file.seek(0))
        return line


class Sweep:
    def __init__(self, options, plan, folder, ranks):
        self.options, self.plan, self.folder, self.ranks = options, plan, folder, ranks
        self.jobs = options.jobs or ranks.jobs
        self.running, self.idle, self.waiting, self.stopped = [], [], [], 0
        self.poll, self.no_more = select.epoll(), False
        index, count = options.shard or (1, 1)
        undone = None, *(['failed'] if options.retry_failed else [])
        self.left_over = [row for row in range(index - 1, plan.count, count)
                          if folder.rows.get(row, {}).get('status') in undone]
        self.rows = [] if ranks.rank else self.left_over[::-1]
        self.wanting, self.ranks_left = {}, ranks.size - 1  # of rank 0
        self.said, self.short = set(), False  # of the others

    def start(self, row):
        try:
            command = self.plan.command(row)
            while self.idle:
                worker = self.idle.pop()
                if worker.begin(row, command, self.options.timeout):
                    break
                worker.end()
            else:
                worker = Worker(self.plan)
                worker.begin(row, command, self.options.timeout)
            self.poll.register(worker.socket, select.EPOLLIN | select.EPOLLONESHOT)
            self.running.append(worker)
        except (OSError, ValueError) as error:
            if getattr(error, 'errno', None) not in SHORT:
                self.folder.append({'row': row, 'status': 'failed', 'seconds': 0, 'reason':
                                    'it cannot be started: {}'.format(error),
                                    **dict(self.plan.columns(row))})
            elif self.running:
                self.waiting.append(row)
            else:
                raise Failed('no process can be started: {}'.format(error.strerror)) from error

    def fill(self):
        """Rows that could not be started, one for each time that something has happened; others."""
        if self.waiting and len(self.running) < self.jobs:
            self.start(self.waiting.pop())
        while self.rows and not self.waiting and len(self.running) < self.jobs:
            self.start(self.rows.pop())

    def hand_out(self):
        """Rows ahead only while there are many, so that the last ones are run at the same time."""
        for rank in sorted(self.wanting, key=self.wanting.get):
            if len(self.rows) > (self.ranks.size if self.wanting[rank] == WANTS_ROW else 0):
                self.ranks.send(rank, self.rows.pop())
                del self.wanting[rank]
        without = sum(said == HAS_NONE for said in self.wanting.values())
        self.no_more = (without == self.ranks_left and
                        not (self.rows or self.running or self.waiting))

    def ask(self):
        """For a row; where they are short, for one ahead, so that it need not wait for it."""
        has_place = len(self.running) < self.jobs
        for what, is_so in ((WANTS_ROW, has_place or self.short), (HAS_PLACE, has_place),
                            (HAS_NONE, not self.running), (NO_MORE, self.jobs == 0)):
            if is_so and not self.waiting and what not in self.said:
                self.said.add(what)
                if what == HAS_NONE:  # rank 0 may write the tables then
                    self.folder.sync(0)
                self.ranks.send(0, what)

    def reap(self):
        for worker in [each for each in self.running if each.has_ended()]:
            self.running.remove(worker)
            self.poll.unregister(worker.socket)
            self.short = worker.ran() < AHEAD_SECONDS
            if self.stopped:
                continue
            self.folder.append(worker.line())
            if worker.process.poll() is None:
                self.idle.append(worker)
            else:
                worker.end()

    def end_workers(self):
        for worker in self.running + self.idle:
            worker.end()

    def show(self, since):
        total = len(self.left_over)
        done = total - sum(map(len, (self.rows, self.running, self.waiting)))
        left = (time.monotonic() - since) * (total - done) / max(1, done)
        with contextlib.suppress(OSError):  # nobody may be left to read it
            print(('\r{} of {} {}, {:.0f} s left \033[K' if sys.stderr.isatty() else
                   'npusim sweep: {} of {} {}, {:.0f} s left\n').format(
                       done, total, 'row' if total == 1 else 'rows', left),
                  end='', file=sys.stderr, flush=True)

    def on_signal(self, number, frame):
        self.stopped = number
        signal.signal(number, signal.SIG_DFL)

    def catch_signals(self):
        signal.signal(signal.SIGCHLD, lambda *_: None)  # ends a pause(); ignored, no status
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.on_signal)

    def pause(self, awake):
        """Until a row ends, or a message comes to who needs it now."""
        at_work = self.ranks.size == 1 or self.ranks.rank and len(self.running) >= self.jobs > 0
        events = dict(self.poll.poll(SHOW_SECONDS)) if at_work else {}
        if self.waiting and self.ranks.rank and all(
                worker.ran() > AHEAD_SECONDS for worker in self.running):
            self.ranks.send(0, self.waiting.pop())  # another runs it sooner
            self.short = False
        for source, what in self.ranks.receive(self.poll.fileno(), 0 if at_work else LOOK_MS):
            if self.ranks.rank:
                self.said.clear()
                self.no_more = what == NO_MORE
                self.waiting.extend([] if self.no_more else [what])
            elif what >= 0:
                self.rows.append(what)
            elif what == NO_MORE:
                self.ranks_left -= 1
            elif what == WANTS_ROW or source in self.wanting:  # else a row is on its way to it
                self.wanting[source] = what
        if awake in (events or dict(self.poll.poll(0))):
            os.read(awake, PIPE_BYTES)

    def run(self):
        self.catch_signals()
        awake, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes)
        self.poll.register(awake, select.EPOLLIN)
        since = shown = time.monotonic()
        terminal = sys.stderr.isatty()
        often = SHOW_SECONDS if terminal else LOG_SECONDS
        try:
            while not self.stopped:
                self.fill()
                if self.ranks.rank:
                    self.ask()
                else:
                    self.hand_out()
                if self.no_more:
                    break
                self.folder.sync(SYNC_SECONDS)
                self.pause(awake)
                self.reap()
                if self.ranks.rank == 0 and time.monotonic() - shown > often:
                    shown = time.monotonic()
                    self.show(since)
        finally:
            self.end_workers()
            self.folder.sync(0)
            if terminal and self.ranks.rank == 0:
                sys.stderr.write('\r\033[K')

    def finish(self):
        """Merges, whatever came: what is finished is there. Returns the exit status."""
        try:
            if self.ranks.rank == 0:
                self.folder.merge()
        finally:
            if self.ranks.rank == 0 and self.no_more:
                for rank in range(1, self.ranks.size):
                    self.ranks.send(rank, NO_MORE)
            if not self.stopped:
                self.ranks.end()
        if self.ranks.rank:
            return self.stopped and 128 + self.stopped
        failed = [row for _, row in sorted(self.folder.rows.items()) if row['status'] == 'failed']
        print('{}/rows.csv: {} of {} done, {} failed'.format(
            self.folder.path, self.folder.count('ok'), self.plan.rows, len(failed)))
        if failed:
            print('row {row}: {reason:.200}'.format(**failed[0]))
        return 128 + self.stopped if self.stopped else 1 if failed else 0

    def estimate(self):
        """Runs the first, the middle and the last of what is to do, and keeps none."""
        self.catch_signals()
        import tempfile
        lines, last = [], len(self.left_over) - 1
        self.folder.append = lines.append
        with tempfile.TemporaryDirectory(prefix='npusim-sweep-') as self.plan.scratch:
            for at in sorted({0, last // 2, last} if self.left_over else ()):
                self.start(self.left_over[at])
                while self.running and not self.stopped:
                    self.poll.poll(SHOW_SECONDS)
                    self.reap()
            self.end_workers()
        if self.stopped:
            return 128 + self.stopped
        failed = [line for line in lines if line['status'] == 'failed']
        for line in failed:
            sys.stderr.write('npusim sweep: row {row}: {reason}\n'.format(**line))
        took = [row['seconds'] for row in (*self.folder.rows.values(), *lines)]
        each = sum(took) / max(1, len(took))
        print('{}, {} done, {} failed, {} to do: about {} s, {:.2f} s a row, {} at a time'.format(
            self.plan.rows, self.folder.count('ok'), self.folder.count('failed'),
            len(self.left_over), math.ceil(each * len(self.left_over) / self.jobs), each,
            self.jobs))
        return 1 if failed else 0


# ---- the command ----

class Formatter(argparse.RawDescriptionHelpFormatter):
    """As the other verbs: --name=VALUE."""

    def _format_action_invocation(self, action):
        value = '' if action.nargs == 0 else '=' + action.metavar
        return ', '.join(action.option_strings) + value


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, "npusim sweep: {}\n'npusim sweep --help' shows what it takes.\n".format(
            message))

    def format_help(self):
        return super().format_help().replace('usage:', 'Usage:', 1)

    def _print_message(self, message, file=None):
        file.write(message)  # argparse does not heed that it fails


def at_least_one(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError('{}: a whole number from 1 on is wanted'.format(text))
    return int(text)


def shard(text):
    found = re.fullmatch(r'(\d+)/(\d+)', text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError('{}: I/N is wanted, I from 1 to N'.format(text))
    return int(found[1]), int(found[2])


def parser():
    p = Parser(prog='npusim sweep', allow_abbrev=False, add_help=False, formatter_class=Formatter,
               usage='npusim sweep [OPTION...] bench|replay [WORD...]',
               description='Runs bench or replay once for each choice of values, each in a process '
               'of its own,\ninto DIR/rows.csv and DIR/rows.sqlite. The same command again does '
               'what is left.')
    add = p.add_argument
    add('-h', '--help', '--help-all', action='help', help='shows this')
    add('--vary', metavar='KEY=A,B,C', action='append', default=[],
        help='an option of the verb, a key of the profile (bench) or a setting of the policy '
        '(replay), and its values')
    add('--plan', metavar='FILE', help='more of them, one a line')
    add('--seeds', metavar='N', type=at_least_one, help='seeds 0 to N - 1 (bench); mean and spread')
    add('--out', metavar='DIR', help='where the rows go')
    add('-j', '--jobs', metavar='N', type=at_least_one,
        help='rows at a time (default: as many as it has processors; of an MPI\'s rank: 1, or 0 '
        'if others have them all)')
    add('--shard', metavar='I/N', type=shard, help='every Nth row alone, from the Ith on')
    add('--timeout', metavar='SECONDS', type=at_least_one,
        help='a row that takes longer has failed')
    add('--retry-failed', action='store_true', help='runs rows that have failed again')
    add('--merge', action='store_true', help='writes the tables of what is there, and runs no row')
    add('--dry-run', action='store_true',
        help='runs three rows, keeps none, and says how many there are and how long they take')
    add('words', nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return p


def list_options(p):
    """For a shell that completes words."""
    for action in p._actions:
        if action.option_strings and action.dest != 'help':
            print('{}{}\t{}'.format(action.option_strings[-1], '' if action.nargs == 0 else '=',
                                    action.help))


def read_plan(path):
    lines = os.fsdecode(pathlib.Path(path).read_bytes()).split('\n')
    texts = (line.partition('#')[0].strip() for line in lines)
    return [('{}:{}: '.format(path, at), text) for at, text in enumerate(texts, 1) if text]


def main():
    p = parser()
    try:
        if sys.argv[3:] == ['--list-options']:
            return list_options(p)
        options = p.parse_args(sys.argv[3:])
        if not options.out and not options.dry_run:
            raise Refused('--out=DIR is wanted, before bench or replay')
        texts = read_plan(options.plan) if options.plan is not None else []
        texts += (('--vary=', text) for text in options.vary)
        if options.seeds:
            texts.append(('', 'seed=0..{}'.format(options.seeds - 1)))
        plan = Plan(options.words[options.words[:1] == ['--']:], texts)
        if options.merge and not pathlib.Path(options.out or '').is_dir():
            raise Refused('--merge: {} is no folder of a sweep'.format(options.out))
        folder = Folder(options.out, plan)
        ranks = Ranks(options)
        sweep = Sweep(options, plan, folder, ranks)
        if options.dry_run:
            return sweep.estimate()
        folder.begin('-rank{}'.format(ranks.rank) if ranks.module else
                     '-shard{}of{}'.format(*options.shard) if options.shard else '')
        if not options.merge:
            sweep.run()
        return sweep.finish()
    except Refused as error:
        p.error(error)
    except (Failed, ImportError, OSError) as error:
        said = error.strerror or error if isinstance(error, OSError) else error
        named = '{}: '.format(error.filename) if getattr(error, 'filename', None) else ''
        sys.stderr.write('npusim sweep: {}{}\n'.format(named, said))
        return 1


def end():
    """Leaves with main()'s status, or with 1 if its output could not be written."""
    sys.stderr = sys.stderr or open(os.devnull, 'w')
    sys.stdout = sys.stdout or open(os.devnull, 'w')
    sys.stdout.reconfigure(errors='backslashreplace')
    try:
        status = main()
    except SystemExit as left:
        status = left.code
    except KeyboardInterrupt:  # before a row
        status = 128 + signal.SIGINT
    try:
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write('npusim sweep: the output cannot be written: {}\n'.format(error.strerror))
        status = 1
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(status or 0)  # Python would write once more, and take longer to tidy up


end()
