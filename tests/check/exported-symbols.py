#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compares what a shared library exports with its checked-in list; see README.md beside this file.
# Also checks its DT_SONAME, and that it needs no library that it must not know.

import argparse
import fnmatch
import os
import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def read_list(path, errors):
    with open(path, encoding='ascii') as stream:
        lines = [line.partition('#')[0].strip() for line in stream]
    names = [line for line in lines if line]
    for before, after in zip(names, names[1:]):
        if before >= after:
            errors.append('{}: {} stands before {}; the list is sorted, each name once'.format(
                path, before, after))
    return set(names)


def exported(library, errors):
    names = set()
    for line in output_of('nm', '-D', '--defined-only', '--format=posix', library).splitlines():
        name = line.split()[0]
        if '@' in name:
            errors.append('{} carries a version; symbols are exported without one'.format(name))
        names.add(name.partition('@')[0])
    return names


def check_dynamic(library, soname, forbidden, errors):
    dynamic = output_of('readelf', '-d', '-W', library)
    found = re.search(r'\(SONAME\).*\[(.*)\]', dynamic)
    if soname is not None and (found is None or found.group(1) != soname):
        errors.append('DT_SONAME is {}, and should be {}'.format(
            found.group(1) if found else 'not set', soname))
    for needed in re.findall(r'\(NEEDED\).*\[(.*)\]', dynamic):
        for pattern in forbidden:
            if fnmatch.fnmatch(needed, pattern):
                errors.append('it needs {}, which it must not know'.format(needed))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('library')
    parser.add_argument('list', help='one name a line, sorted; # starts a comment')
    parser.add_argument('--soname')
    parser.add_argument('--forbid-needed', action='append', default=[], metavar='PATTERN')
    options = parser.parse_args()

    os.environ['LC_ALL'] = 'C'
    errors = []
    wanted = read_list(options.list, errors)
    found = exported(options.library, errors)
    errors += ['{}: exported, but not in the list'.format(name) for name in sorted(found - wanted)]
    errors += ['{}: in the list, but not exported'.format(name) for name in sorted(wanted - found)]
    check_dynamic(options.library, options.soname, options.forbid_needed, errors)
    if errors:
        print('{} and {} disagree:'.format(options.library, options.list))
        print('\n'.join('  ' + error for error in errors))
        sys.exit(1)
    print('{}: {} names, as listed'.format(options.library, len(found)))


if __name__ == '__main__':
    main()
