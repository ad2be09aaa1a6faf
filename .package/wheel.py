# SPDX-License-Identifier: Apache-2.0
"""npusim as pip installs it: the command, and the links that a wheel cannot hold."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def make_links():
    with open(os.path.join(HERE, 'links'), encoding='utf-8') as rows:
        for row in rows:
            name, target = row.rstrip('\n').split('\t')
            path = os.path.join(HERE, name)
            if not os.path.islink(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                try:
                    os.symlink(target, path)
                except FileExistsError:  # another process was first
                    pass


def main():
    try:
        make_links()
    except OSError as error:
        sys.exit('npusim: {}: {}; run "npusim info" once as the user who installed it, '
                 'which makes the links'.format(error.filename2 or error.filename, error.strerror))
    command = os.path.join(HERE, 'bin', 'npusim')
    os.execv(command, [command, *sys.argv[1:]])
