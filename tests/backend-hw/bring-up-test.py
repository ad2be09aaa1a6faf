#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Plays backend-hw/BRING-UP.md through: each command of its page, as it stands there, in the
# environment that CANN's set_env.sh leaves, with npusim's libascend_hal.so as the server's driver
# and npusim's libascendcl.so in CANN's place. Only which cases run is cut down. Prints TAP.
# usage: bring-up-test.py NPUSIM LIBASCEND_HAL LIBASCENDCL SOURCE

import os
import pathlib
import re
import subprocess
import sys
import tempfile

NPUSIM, HAL, ACL, SOURCE = (pathlib.Path(name).resolve() for name in sys.argv[1:])
PAGE = (SOURCE / 'backend-hw' / 'BRING-UP.md').read_text(encoding='ascii')


def commands():
    for block in re.findall(r'^```\n(.*?)^```$', PAGE, re.M | re.S):
        for line in block.splitlines():
            if line.startswith('npusim '):
                yield line


def environment(folder):
    cann = folder / 'ascend-toolkit' / 'latest'
    (cann / 'lib64').mkdir(parents=True)
    (cann / 'lib64' / 'libascendcl.so').symlink_to(ACL)
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(('NPUSIM_', 'ASCEND_', 'LD_LIBRARY'))}
    env.update(NPUSIM_HAL=str(HAL), NPUSIM_DEVICES='2', ASCEND_HOME_PATH=str(cann),
               NPUSIM_NODE='bring-up-{}'.format(os.getpid()),
               ASCEND_TOOLKIT_HOME=str(cann), ASCEND_AICPU_PATH=str(cann),
               ASCEND_OPP_PATH=str(cann / 'opp'),
               LD_LIBRARY_PATH='{0}/lib64:{0}/lib64/plugin/opskernel'.format(cann),
               PATH='{}:{}'.format(NPUSIM.parent, os.environ['PATH']))
    return env


def as_here(command, folder):
    """Names that stand for the reader's own, fewer cases, and less memory to measure with."""
    calls = sorted((folder / 'answers' / 'calls').glob('*.npt'))
    command = command.replace('snapshot.pkl', str(SOURCE / 'traces/samples/serving.npt.gz'))
    command = command.replace('calls/4711.npt', 'calls/' + (calls[0].name if calls else ''))
    if command.startswith('npusim check') and '--only' not in command:
        command += ' --only map.'
    if '--record answers-all' in command:
        command += ' --safe 64M'
    return command.replace('--safe 1G', '--safe 64M').replace('32G', '256M')


def main():
    failed = 0
    number = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = environment(folder)
        for number, command in enumerate(commands(), 1):
            line = as_here(command, folder)
            done = subprocess.run(line, shell=True, cwd=folder, env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=280, check=False)
            failed += done.returncode != 0
            print('{}ok {} {}'.format('not ' if done.returncode else '', number,
                                      command.replace('#', '')), flush=True)
            if done.returncode:
                print('# {}\n# {}'.format(line, done.stdout[-3000:].replace('\n', '\n# ')))
        # what the page says is there to be sent
        wanted = ['answers/server.txt', 'answers/profile.ini.txt', 'answers-all/steps.tsv',
                  'cann.txt', 'quiet.ini']
        missing = [path for path in wanted if not (folder / path).exists()]
        failed += bool(missing)
        number += 1
        print('{}ok {} what to send is there {}'.format('not ' if missing else '', number,
                                                        ' '.join(missing)))
    print('1..{}'.format(number))
    sys.exit(1 if failed or number < 7 else 0)


main()
