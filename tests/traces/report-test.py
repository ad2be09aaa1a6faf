#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npusim record and npusim report from outside; the page in headless Chromium where there is one.
# usage: report-test.py NPUSIM SAMPLE-WORKLOAD SAMPLE-TRACE

import json
import pathlib
import re
import shutil
import subprocess
import sys

from command import Skip, case, expect, main, npusim, replay, same

WORKLOAD, SAMPLE = sys.argv[2], sys.argv[3]


def dom(page, folder):
    """The page as the browser has it after its scripts; what it looked for on a network."""
    browser = shutil.which('chromium')
    if browser is None:
        raise Skip('there is no chromium')
    log = folder / 'net.json'
    run = subprocess.run(
        [browser, '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
         '--disable-background-networking', '--disable-component-update', '--disable-sync',
         '--user-data-dir=' + str(folder / 'profile'), '--enable-logging=stderr',
         '--log-net-log=' + str(log), '--virtual-time-budget=4000', '--dump-dom',
         page.as_uri()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=90)
    same(run.returncode, 0, run.stderr)
    expect('CONSOLE' not in run.stderr, run.stderr)
    return run.stdout


@case
def several_processes_become_one_trace(folder):
    trace = folder / 'two.npt'
    script = '{0} >/dev/null & {0} >/dev/null; wait; exit 5'.format(WORKLOAD)
    run = npusim('record', '-o', trace, '--', 'sh', '-c', script)
    same(run.returncode, 5, run.stderr)
    text = trace.read_text()
    same(len(re.findall('^info process=', text, re.M)), 2, 'processes')
    stamps = {int(p) for p in re.findall(r' :(\d+)\.', text)}
    same(stamps, {1, 2}, 'process numbers')
    expect(not pathlib.Path(str(trace) + '.parts').exists(), 'the parts are left')
    one = replay(SAMPLE)['devices'][0]
    same(replay(trace)['devices'][0]['obtained_bytes'], 2 * one['obtained_bytes'], 'obtained')


@case
def a_killed_program_leaves_a_trace(folder):
    trace = folder / 'killed.npt.gz'
    script = '{} >/dev/null; kill -9 $$'.format(WORKLOAD)
    run = npusim('record', '-o', trace, '--', 'sh', '-c', script)
    same(run.returncode, 137, run.stderr)
    expect(replay(trace)['events'] > 0, 'no events')


@case
def a_part_that_breaks_off_is_merged_up_to_its_last_line(folder):
    parts = folder / 'parts'
    parts.mkdir()
    (parts / 'a.npt').write_text('npusim-trace 1\n'
                                 'info start=1000\n@5 :1.1 export s1 handle=h1 key=0x7\n')
    (parts / 'b.npt').write_text('npusim-trace 1\ninfo start=1001\n'
                                 '@9 :1.1 import h1 share=s4 device=0 key=0x7\n@10 :1.1 crea')
    run = npusim('record', '--merge', parts, '-o', folder / 'm.npt')
    same(run.returncode, 0, run.stderr)
    expect('broke off' in run.stderr, run.stderr)
    same((folder / 'm.npt').read_text().splitlines()[3:],
         ['@5 :1.1 export s1 handle=h1 key=0x7',
          '@10 :2.1 import h1 share=s1 device=0 key=0x7'], 'merged')


@case
def a_page_draws_without_errors_and_without_a_network(folder):
    (folder / 'a.json').write_text(json.dumps(replay(SAMPLE)))
    run = npusim('report', folder / 'a.json', folder / 'a.json', '-o', folder / 'r.html')
    same(run.returncode, 0, run.stderr)
    text = (folder / 'r.html').read_text()
    expect(not re.search(r'<(?:script|link|img)[^>]* (?:src|href)=', text), 'it loads something')
    got = dom(folder / 'r.html', folder)
    root = re.search('<html[^>]*>', got).group()
    expect('data-ready="yes"' in root and 'data-error' not in root, root)
    expect(int(re.search(r'data-drawn="(\d+)"', root).group(1)) >= 4, root)
    log = (folder / 'net.json').read_text()
    # the browser's own look-ups at its maker's are not the page's
    hosts = set(re.findall(r'"url":"(?:https?|wss?)://([^/":]*)', log))
    own = {host for host in hosts if host.endswith(('.google.com', '.googleapis.com'))}
    same(hosts - own, set(), 'asked of a network')


@case
def what_is_no_result_is_refused(folder):
    for text, says in (('{', 'x.json'), ('{"a": 1}', 'no result'),
                       ('{"program": "npusim replay", "schema": 99, "devices": []}', '99')):
        (folder / 'x.json').write_text(text)
        run = npusim('report', folder / 'x.json', '-o', folder / 'x.html')
        same(run.returncode, 1, run.stderr)
        expect(says in run.stderr, run.stderr)


if __name__ == '__main__':
    main()
