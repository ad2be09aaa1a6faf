#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The rules of CONTRIBUTING.md that a machine can see in the sources: licence lines, private paths,
# unfinished work, width, length, who may include whom (the layers of ARCHITECTURE.md), no circle of
# includes. Prints TAP, one case a rule, and what it found to standard error.

import os
import pathlib
import re
import sys

C_SUFFIXES = {'.c', '.h', '.cpp'}
SCRIPT_SUFFIXES = {'.py', '.sh', '.ini', '.map'}
SCRIPT_NAMES = {'meson.build', 'meson_options.txt', 'dev', 'run'}
TEXT_SUFFIXES = {'.md', '.txt', '.1', '.in', '.symbols', '.case', '.supp'}
SKIPPED_FOLDERS = {'.git', 'build', 'subprojects', '__pycache__', '.cache'}

MAX_COLUMNS = 100
MAX_FILE_LINES = {'traces': 600}  # of a folder at the top
MAX_FILE_LINES_ELSEWHERE = 800
MAX_FUNCTION_LINES = 100

# The layers: a room, and the rooms and files that its files may include beside their own and
# include/. A room is a folder with all below it, or a file; of two that fit the longer counts.
# Arrows go down only: a room names those that stand above it in this table.
ROOMS = {
    'include': [],
    'runtime/base': [],
    'runtime/trace': ['runtime/base'],
    'runtime/driver': ['runtime/base', 'runtime/trace'],
    'runtime/validate': ['runtime/base', 'runtime/driver'],
    'runtime/core/core.h': ['runtime/base', 'runtime/driver'],
    'runtime/core/object': ['runtime/base', 'runtime/driver', 'runtime/core/core.h'],
    'runtime/core': ['runtime/base', 'runtime/driver', 'runtime/core/core.h',
                     'runtime/core/object'],
    'runtime/acl': ['runtime/base', 'runtime/core/core.h', 'runtime/core'],
    'runtime/home': ['runtime/base'],
    'runtime/cuda': ['runtime/base', 'runtime/trace', 'runtime/core/core.h', 'runtime/core'],
    'sim': ['runtime/base'],
    'backend-sim/node': ['runtime/base', 'sim'],
    'backend-sim/process': ['runtime/base', 'sim', 'backend-sim/node'],
    'backend-sim/memory': ['runtime/base', 'sim', 'backend-sim/node', 'backend-sim/process'],
    'backend-sim/cuda': ['runtime/base', 'sim', 'backend-sim/node', 'backend-sim/process',
                         'backend-sim/memory'],
    'backend-sim/queue': ['runtime/base', 'sim', 'backend-sim/node', 'backend-sim/process',
                          'backend-sim/memory', 'backend-sim/cuda'],
    'backend-sim/hal': ['runtime/base', 'runtime/driver', 'sim', 'backend-sim/node',
                        'backend-sim/process', 'backend-sim/memory', 'backend-sim/cuda',
                        'backend-sim/queue'],
    'backend-sim': ['runtime/base', 'runtime/driver', 'sim', 'backend-sim/node',
                    'backend-sim/process', 'backend-sim/memory', 'backend-sim/cuda',
                    'backend-sim/queue', 'backend-sim/hal'],
    'backend-hw': ['runtime/base', 'runtime/driver'],
    'traces/format': ['runtime/base', 'runtime/trace'],
    'traces/read': ['runtime/base', 'runtime/trace', 'traces/format'],
    'traces/policy': ['traces/read', 'traces/format'],
    'traces/track': ['traces/policy', 'traces/read', 'traces/format'],
    'traces/play': ['runtime/base', 'sim/profile.h', 'traces/track', 'traces/policy', 'traces/read',
                    'traces/format'],
    'traces/record': ['runtime/acl/malloc-rule.h', 'runtime/base', 'runtime/trace',
                      'traces/format'],
    'traces/check': ['sim/fit.h'],
    'traces/show': ['runtime/base', 'traces/play', 'traces/track', 'traces/policy', 'traces/read',
                    'traces/format'],
    'traces/sweep': [],
    'traces/page': ['runtime/trace', 'traces/track', 'traces/policy', 'traces/read',
                    'traces/format'],
    'traces/samples': [],
    'traces/command': ['runtime/base', 'backend-sim/node/node.h', 'sim/bench/bench.h',
                       'sim/profile.h', 'runtime/validate/rules.h', 'traces/show', 'traces/page',
                       'traces/check', 'traces/record', 'traces/play', 'traces/track',
                       'traces/policy', 'traces/read', 'traces/format'],
}

PRIVATE_PATH = re.compile(r'(?<![\w.$}-])/(?:home|Users|root|wor[k]|mnt)/\w')
UNFINISHED = re.compile(r'\b(?:TO' r'DO|FIX' r'ME|XX' r'X)\b|not (?:yet )?impl' r'emented', re.I)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
# Where an include in quotes is looked for, after the folder of the file that has it.
INCLUDE_PATH = ['.', 'include', 'runtime', 'sim', 'backend-sim', 'backend-hw', 'traces', 'tests']


class Tree:
    """All files of the project that people write, as lines."""

    def __init__(self, root):
        self.files = {}
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders
                                if name not in SKIPPED_FOLDERS and not name.startswith('build-'))
            for name in sorted(names):
                path = pathlib.Path(folder, name)
                if self.is_text(path):
                    text = path.read_text(encoding='utf-8', errors='replace')
                    self.files[path.relative_to(root)] = text.split('\n')

    @staticmethod
    def is_text(path):
        return (path.suffix in C_SUFFIXES | SCRIPT_SUFFIXES | TEXT_SUFFIXES
                or path.name in SCRIPT_NAMES)

    def lines(self, suffixes=None):
        for path, lines in self.files.items():
            if suffixes is None or path.suffix in suffixes:
                for number, line in enumerate(lines, 1):
                    yield path, number, line


def licence_line(tree):
    for path, lines in tree.files.items():
        if path.suffix in C_SUFFIXES | SCRIPT_SUFFIXES or path.name in SCRIPT_NAMES:
            if not any('SPDX-License-Identifier: Apache-2.0' in line for line in lines[:3]):
                yield path, 1, 'no SPDX-License-Identifier: Apache-2.0 in the first lines'


def private_paths(tree):
    for path, number, line in tree.lines():
        if PRIVATE_PATH.search(line):
            yield path, number, 'a path of one machine: ' + line.strip()


def unfinished_work(tree):
    for path, number, line in tree.lines():
        if UNFINISHED.search(line):
            yield path, number, line.strip()


def white_space(tree):
    for path, number, line in tree.lines():
        if line != line.rstrip():
            yield path, number, 'white space at the end of the line'
    for path, lines in tree.files.items():
        if lines[-1] != '' or lines[-2:] == ['', '']:
            yield path, len(lines), 'the file does not end with one end of line'


def since_lines(tree):
    """No header says of a function of npusim's that it came with a version still to come."""
    build = '\n'.join(tree.files[pathlib.Path('meson.build')])
    version = re.search(r"^  version: '(\d+)\.(\d+)", build, re.MULTILINE).groups()
    for path, number, line in tree.lines({'.h'}):
        since = re.search(r'Since: (\d+)\.(\d+)', line)
        if since and path.parts[:2] == ('include', 'npusim') and \
                tuple(map(int, since.groups())) > tuple(map(int, version)):
            yield path, number, 'later than this version, {}.{}'.format(*version)


def width(tree):
    for path, number, line in tree.lines(C_SUFFIXES | {'.py', '.build'}):
        columns = len(line.expandtabs(8))
        if columns > MAX_COLUMNS and 'http' not in line:
            yield path, number, '{} columns, and {} is the limit'.format(columns, MAX_COLUMNS)


def length_of_files(tree):
    for path, lines in tree.files.items():
        limit = MAX_FILE_LINES.get(path.parts[0], MAX_FILE_LINES_ELSEWHERE)
        if path.suffix in C_SUFFIXES and len(lines) - 1 > limit:
            yield path, 1, '{} lines, and {} is the limit'.format(len(lines) - 1, limit)


def length_of_functions(tree):
    """A function's body is from a { to a } in the first column."""
    for path, lines in tree.files.items():
        start = None
        for number, line in enumerate(lines if path.suffix in C_SUFFIXES else [], 1):
            if line == '{':
                start = number
            elif line.startswith('}'):
                length = number - start - 1 if start is not None else 0
                if line == '}' and length > MAX_FUNCTION_LINES:
                    yield path, start, 'a function of {} lines, and {} is the limit'.format(
                        length, MAX_FUNCTION_LINES)
                start = None


def owner_of(tree, path, name):
    """The project's own file that an include means, and None for one that is generated."""
    for folder in [path.parent] + [pathlib.Path(folder) for folder in INCLUDE_PATH]:
        target = pathlib.Path(os.path.normpath(folder / name))
        if target in tree.files:
            return target
    return None


def includes(tree):
    """(file, line, included file of the project)."""
    for path, number, line in tree.lines(C_SUFFIXES):
        found = INCLUDE.match(line)
        target = owner_of(tree, path, found.group(1)) if found else None
        if target is not None and target != path:
            yield path, number, target


def room_of(path):
    """The room of a file; None: the layers do not name it."""
    for folder in (path, *path.parents):
        if str(folder) in ROOMS:
            return str(folder)
    return None


def who_includes_whom(tree):
    for path, number, target in includes(tree):
        room, other = room_of(path), room_of(target)
        if room is None or other == 'include' or other == room:
            continue
        if other not in ROOMS[room] and str(target) not in ROOMS[room]:
            yield path, number, '{} may not include {}'.format(room, target)


def files_have_rooms(tree):
    for path in tree.files:
        if path.suffix in C_SUFFIXES and path.parts[0] != 'tests' and room_of(path) is None:
            yield path, 1, 'the layers name no room for it'


def locks_are_listed(tree):
    """Each file that has a mutex stands in ARCHITECTURE.md's list of locks."""
    page = '\n'.join(tree.files[pathlib.Path('ARCHITECTURE.md')])
    listed = set(re.findall(r'[\w-]+\.[ch]\b', page.partition('## Locks')[2]))
    for path, number, line in tree.lines(C_SUFFIXES):
        if (re.match(r'(?:static |\t)*(?:pthread_mutex_t|GMutex|GRecMutex|GRWLock) \w', line)
                and path.parts[0] != 'tests' and path.name not in listed):
            yield path, number, 'a lock that ARCHITECTURE.md does not list'


def no_circle_of_rooms(tree):
    known = []
    for room, below in ROOMS.items():
        for other in below:
            folder = other if other in ROOMS else room_of(pathlib.Path(other))
            if folder not in known:
                yield pathlib.Path('tests/check/tree.py'), 1, '{} stands above {}'.format(
                    room, other)
        known.append(room)


def no_circle_of_files(tree):
    """A source and its header count as one."""
    edges, places = {}, {}
    for path, number, target in includes(tree):
        source, dest = path.with_suffix(''), target.with_suffix('')
        if source != dest:
            edges.setdefault(source, set()).add(dest)
            places[source, dest] = path, number

    def reaches(start, goal):
        seen, left = set(), [start]
        while left:
            node = left.pop()
            if node == goal:
                return True
            if node not in seen:
                seen.add(node)
                left += edges.get(node, ())
        return False

    for (source, dest), (path, number) in places.items():
        if reaches(dest, source):
            yield path, number, 'a circle: {} includes {}, and that comes back'.format(
                source, dest)


RULES = [licence_line, private_paths, unfinished_work, white_space, since_lines, width,
         length_of_files, length_of_functions, files_have_rooms, locks_are_listed,
         no_circle_of_rooms, who_includes_whom, no_circle_of_files]


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: tree.py ROOT')
    tree = Tree(pathlib.Path(sys.argv[1]).resolve())
    failed = 0
    print('1..{}'.format(len(RULES)))
    for number, rule in enumerate(RULES, 1):
        findings = sorted(set(rule(tree)), key=lambda finding: (str(finding[0]), finding[1]))
        failed += bool(findings)
        print('{}ok {} {}'.format('not ' if findings else '', number,
                                  rule.__name__.replace('_', ' ')))
        for path, line, text in findings:
            print('{}:{}: {}'.format(path, line, text), file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
