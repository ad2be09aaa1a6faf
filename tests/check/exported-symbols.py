#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compares what a shared library exports with what it is to export; see README.md beside this file.
# Also checks its DT_SONAME, and that it needs no library that it must not know.

import argparse
import fnmatch
import os
import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def read_list(path):
    """The version that a version script of exports.py gives its names, or '', and the names."""
    with open(path, encoding='ascii') as stream:
        text = stream.read()
    return text.partition('{')[0].strip(), set(re.findall(r'^\t(\w+);$', text, re.MULTILINE))


def exported(library, version, errors):
    names = set()
    for line in output_of('nm', '-D', '--defined-only', '--format=posix', library).splitlines():
        name, _, found = line.split()[0].partition('@@')
        if name == version:
            continue  # the version is a symbol too
        if found != version:
            errors.append('{} has the version "{}", and should have "{}"'.format(
                name, found, version))
        names.add(name)
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
    parser.add_argument('list', help='the version script that exports.py made')
    parser.add_argument('--count', type=int, help='how many names there are')
    parser.add_argument('--soname')
    parser.add_argument('--forbid-needed', action='append', default=[], metavar='PATTERN')
    options = parser.parse_args()

    os.environ['LC_ALL'] = 'C'
    errors = []
    version, wanted = read_list(options.list)
    found = exported(options.library, version, errors)
    errors += ['{}: exported, but not in the list'.format(name) for name in sorted(found - wanted)]
    errors += ['{}: in the list, but not exported'.format(name) for name in sorted(wanted - found)]
    if options.count is not None and len(wanted) != options.count:
        errors.append('{} names, and {} are known'.format(len(wanted), options.count))
    check_dynamic(options.library, options.soname, options.forbid_needed, errors)
    if errors:
        print('{} and {} disagree:'.format(options.library, options.list))
        print('\n'.join('  ' + error for error in errors))
        sys.exit(1)
    print('{}: {} names, as listed'.format(options.library, len(found)))


if __name__ == '__main__':
    main()
