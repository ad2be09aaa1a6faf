#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# NPUSIM_VALIDATE: each rule finds what it is for, with both call stacks, and stays silent where the
# program is right; answers are those of a run without it. Prints TAP.

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
from tap import Skip, expect, run_cases

PROGRAM, COMMAND, DOCUMENT, FAKE = sys.argv[1:5]
BACKEND = dict(word.split('=', 1) for word in sys.argv[5:]) # its variables, NPUSIM_...
NODE = 'validate-{}'.format(os.getpid())

# Case, the reports as (rule, call, the other call).
WRONG = [
    ('streams_race', [('race', 'aclrtMemcpyAsync', 'aclrtMemcpyAsync')] * 2),
    ('event_too_early', [('race', 'aclrtMemcpyAsync', 'aclrtMemcpyAsync')] * 2),
    ('notify_too_early', [('race', 'aclrtMemcpyAsync', 'aclrtMemcpyAsync')] * 2),
    ('host_race', [('race', 'aclrtMemcpy', 'aclrtMemcpyAsync')] * 2),
    ('unmap_pending', [('pending-unmap', 'aclrtUnmapMem', 'aclrtMemcpyAsync')]),
    ('unregister_pending', [('pending-unmap', 'aclrtHostUnregister', 'aclrtMemcpyAsync')]),
    ('free_pending', [('pending-free', 'aclrtFree', 'aclrtMemcpyAsync')]),
    ('free_host_pending', [('pending-free', 'aclrtFreeHost', 'aclrtMemcpyAsync')]),
    ('free_twice', [('double-free', 'aclrtFree', 'aclrtFree')]),
    ('free_host_twice', [('double-free', 'aclrtFreeHost', 'aclrtFreeHost')]),
    ('free_as_host', [('wrong-free', 'aclrtFree', None)]),
    ('use_after_free', [('stale-address', 'aclrtMemcpy', 'aclrtFree')]),
    ('use_handle_after_release', [('stale-handle', 'aclrtMapMem', 'aclrtFreePhysical')]),
    ('leak', [('leak', None, None)] * 2),
    ('lose_pinned_over_reset', [('leak', None, None)]),
    ('kind_wrong', [('kind', 'aclrtMemcpy', None)]),
    ('kind_wrong_queued', [('kind', 'aclrtMemcpyAsync', None)]),
    ('overlaps', [('overlap', 'aclrtMemcpy', None)]),
    ('overlaps_queued', [('overlap', 'aclrtMemcpyAsync', None)]),
    ('copies_past_end', [('bounds', 'aclrtMemcpy', None)]),
    ('copies_far_past_end', [('bounds', 'aclrtMemcpy', None)]),
    ('fills_past_end', [('bounds', 'aclrtMemset', None)]),
    ('reads_past_host_end', [('bounds', 'aclrtMemcpy', None)]),
    ('fills_behind_end', [('bounds', 'aclrtMemset', None)]),
    ('rewrites_source', [('host-read', 'aclrtSynchronizeStream', 'aclrtMemcpyAsync')]),
    ('rewrites_source_in_turn', [('host-read', 'aclrtSynchronizeEvent', 'aclrtMemcpyAsync')]),
    ('reads_unwritten', [('uninitialised', 'aclrtMemcpy', None)]),
    ('reads_unwritten_mapping', [('uninitialised', 'aclrtMemcpyAsync', None)]),
    ('reads_partly_written', [('uninitialised', 'aclrtMemcpy', None)]),
    ('copies_unwritten_on', [('uninitialised', 'aclrtMemcpy', None)] * 2),
    ('block_past_end', [('bounds', 'aclrtMemset', None)]),
    ('block_unwritten', [('uninitialised', 'aclrtMemcpy', None)]),
    ('block_given_back', [('stale-address', 'aclrtMemset', 'npusimBlockFree')]),
    ('block_given_back_twice', [('double-free', 'npusimBlockFree', 'npusimBlockFree')]),
    ('grows', [('growth', 'npusimMark', None)]),
    ('peer_without_access', [('access', 'aclrtMemcpyAsync', None)]),
    ('rows_without_access', [('access', 'aclrtMemcpy2dAsync', None)]),
    ('access_lost_later', [('access', 'aclrtMemcpyAsync', None)]),
    ('mapped_without_access', [('access', 'cuMemsetD8_v2', None)]),
    ('copies_after_failed_map', [('follows-from', call, 'aclrtMapMem') for call in
                                 ('aclrtMemcpy', 'aclrtMemcpyAsync', 'aclrtUnmapMem')]),
    ('releases_what_is_mapped', [('follows-from', 'aclrtReleaseMemAddress', 'aclrtUnmapMem')]),
    ('copies_without_peer', [('follows-from', 'aclrtMemcpyAsync', 'aclrtDeviceEnablePeerAccess')]),
    ('frees_what_has_key', [('kept', None, 'aclrtFree'), ('kept', 'aclrtFree', None)]),
    ('frees_before_key', [('kept', 'aclrtFree', None)]),
    ('exports_for_nobody', [('kept', None, 'aclrtFreePhysical')]),
    ('importer_reads_unwritten', [('uninitialised', 'aclrtMemcpy', None)]),
    ('reads_what_importer_left', [('uninitialised', 'aclrtMemcpy', None)]),
    ('writes_together', [('shared-write', 'aclrtMemcpyAsync', None)] * 2),
    ('fills_while_other_writes', [('shared-write', call, None) for call in
                                  ('aclrtMemcpyAsync', 'aclrtMemset')]),
    ('leaves_handle', [('leak', None, None)]),
    ('frees_what_is_kept', [('kept', None, 'aclrtFreePhysical')]),
    ('takes_driver_number', [('placement', 'aclrtMallocPhysical', None)]),
    ('takes_own_number', [('placement', 'aclrtMemSetAccess', None)]),
    ('far_node', [('placement', 'aclrtMemcpyAsync', None)]),
    ('far_pinned', [('placement', 'aclrtMemcpy', None)]),
    ('far_registered', [('placement', 'aclrtMemcpy', None)]),
]
RIGHT = [
    'streams_apart', 'streams_read_one', 'streams_event', 'streams_notify', 'through_a_third',
    'wait_before_record', 'host_synchronized', 'host_event', 'host_query', 'host_device',
    'host_transitive',
    'host_function', 'fills', 'devices_event', 'unmap_synchronized', 'free_synchronized',
    'free_with_sync', 'kinds_right', 'overlaps_not', 'copies_to_end', 'rewrites_when_done',
    'rewrites_in_host_function', 'host_function_fills_source', 'engine_rewrites_source',
    'polls_for_flag', 'written_by_other_mapping', 'written_by_host', 'reads_what_importer_wrote',
    'importer_does_not_tell', 'writes_apart', 'writes_in_turn', 'writes_behind_flag',
    'frees_after_key', 'writes_beside_copy', 'unregister_synchronized',
    'written_in_other_stream', 'blocks_in_turn', 'release_under_mappings', 'peer_with_access',
    'mapped_with_access', 'maps_again', 'frees_after_importer', 'takes_right_numbers',
    'near_nodes', 'near_pinned', 'asks_for_node',
]
RIGHT_ANYWHERE = ('streams_event', 'host_event', 'unmap_synchronized', 'free_synchronized',
                  'rewrites_when_done')
CUDA = ('mapped_without_access', 'mapped_with_access', 'leaves_handle', 'asks_for_node')
FAILS = ('maps_again',)  # and the runtime says so
ENVIRONMENT = {case: {'ASCEND_RT_VISIBLE_DEVICES': '1'} for case in
               ('takes_driver_number', 'takes_own_number', 'takes_right_numbers')}
ENVIRONMENT['access_lost_later'] = {'NPUSIM_DEVICES': '3'}
ENVIRONMENT['near_pinned'] = ENVIRONMENT['asks_for_node'] = {'NPUSIM_DEVICES': '5'}
ENVIRONMENT['releases_what_is_mapped'] = {'NPUSIM_FAULT': 'halMemUnmap:1:busy'}
ENVIRONMENT['copies_without_peer'] = {'NPUSIM_FAULT': 'halDeviceEnableP2P:1:busy'}
# These run in one process, one after another.
TOGETHER = [case for case in RIGHT if case not in (*CUDA, *FAILS, *ENVIRONMENT, 'near_nodes')]


def run(case, mode, folder, cases=None, **more):
    path = pathlib.Path(folder) / case
    if path.exists():
        path.unlink()
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(('NPUSIM_', 'LD_LIBRARY_PATH'))}
    env.update(NPUSIM_NODE=NODE, NPUSIM_DEVICES='2', NPUSIM_HBM='8G', NPUSIM_LEAKS='off',
               NPUSIM_VALIDATE=mode, NPUSIM_VALIDATE_FILE=str(path), **BACKEND)
    env.update(ENVIRONMENT.get(case, {}), **more)
    program = str(pathlib.Path(PROGRAM).with_name('validate-cuda')) if case in CUDA else PROGRAM
    done = subprocess.run([program, *(cases or [case])], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    if done.returncode == 77:
        raise Skip('set_mempolicy() is refused here')
    text = path.read_text(encoding='utf-8') if path.exists() else ''
    return done, [json.loads(line) for line in text.splitlines()]


def first(stack):
    return stack[0] if stack else None


def finds(case, wanted, folder):
    """What is wanted, and the answers of a run without validation."""
    done, reports = run(case, 'on', folder)
    expect(done.returncode == 0, done.returncode, done.stderr)
    found = [(report['rule'], first(report['stack']), first(report.get('other_stack', [])))
             for report in reports]
    # Equal reports, by rule and stacks, are written once.
    expect(sorted(set(found), key=str) == sorted(set(wanted), key=str), found, done.stderr)
    for report in reports:
        for stack in report['stack'], report.get('other_stack', []), report['made_stack']:
            mains = [at for at, frame in enumerate(stack, 1) if frame.startswith('main ')]
            expect(mains in ([], [len(stack)]), 'main is the last', stack)
        frames = report['stack'] or report['made_stack']
        frames += report.get('other_stack', []) + report['made_stack']
        expect(any(re.match(case + '|(use|holds)_share|share_while|unregister', frame)
                   and '/validate-' in frame for frame in frames) or case == 'leak', report)
        expect(report['text'] in done.stderr, report['text'], done.stderr)
        expect(case not in CUDA or 'aclrt' not in report['text'] + report['right'], report)
    last = done.stderr.strip().splitlines()[-1]
    expect('finding' in last and wanted[0][0] in last, last)
    off, reports = run(case, 'off', folder)
    expect(off.stdout == done.stdout, off.stdout, done.stdout)
    expect('validate:' not in off.stderr and not reports, off.stderr)


def modes():
    """And how stacks are taken: above the back end, so that once is enough."""
    return [('on', 'short'), *([] if BACKEND else [('on', 'off')]), ('strict', 'short')]


@functools.lru_cache(None)
def run_together(mode, stacks):
    with tempfile.TemporaryDirectory() as folder:
        done, reports = run('together', mode, folder, TOGETHER, NPUSIM_STACKS=stacks,
                            NPUSIM_FAILURES='off')
    is_silent = (done.returncode, done.stderr, reports) == (0, '', []) and ': ' not in done.stdout
    return is_silent, done, reports


def together():
    """Each alone may be silent where one finds what another has left."""
    for mode, stacks in modes():
        expect(run_together(mode, stacks)[0], mode, stacks, *run_together(mode, stacks)[1:])


def silent(case, folder):
    for mode, stacks in modes():
        if case in TOGETHER and run_together(mode, stacks)[0]:
            continue
        done, reports = run(case, mode, folder, NPUSIM_STACKS=stacks, NPUSIM_FAILURES='off')
        expect(done.returncode == 0, done.returncode)
        expect(': ' not in done.stdout and not reports, done.stdout, done.stderr)
        expect(done.stderr == '' or (case in FAILS and 'validate:' not in done.stderr),
               done.stderr)


def early_read(folder):
    """A target of a queued copy holds no plausible bytes until they are there."""
    for mode, early in (('off', 1), ('on', 255)):
        done, reports = run('reads_too_early', mode, folder)
        expect(done.stdout == 'early {}, then 7\nflag 1, then 7\n'.format(early), mode,
               done.stdout)
        expect(not reports and done.stderr == '', done.stderr)


def poison(folder):
    """NPUSIM_POISON: what new memory of a device holds."""
    for byte, held in (('0', 0), ('0xff', 255), ('17', 17)):
        done, _ = run('new_memory', 'off', folder, NPUSIM_POISON=byte)
        expect(done.stdout == ' {}'.format(held) * 6, byte, done.stdout, done.stderr)
    done, _ = run('new_memory', 'off', folder, NPUSIM_POISON='256')
    expect(done.returncode == 3 and '0 to 0xff' in done.stderr, done.stderr)


def strict(folder):
    """A call that would unmap what queued work uses is refused as the driver refuses a busy one."""
    done, reports = run('unmap_pending', 'strict', folder)
    expect(done.stdout == 'unmap 507899\n', done.stdout, done.stderr)
    expect([report['rule'] for report in reports] == ['pending-unmap'], reports)
    done, _ = run('unmap_pending', 'on', folder)
    expect(done.stdout.startswith('unmap 0\n'), done.stdout)


def closed(folder):
    """Under strict a load or store of what a queued copy uses traps where it is."""
    for case, does in (('rewrites_source', 'read'), ('reads_target', 'write')):
        done, reports = run(case, 'strict', folder)
        expect([report['rule'] for report in reports] == ['host-read'] and done.returncode == 0,
               reports, done)
        expect(reports[0]['stack'][0].startswith(case + ' at ')
               and reports[0]['other_stack'][0] == 'aclrtMemcpyAsync', reports)
        expect('is to {}: nobody has waited'.format(does) in reports[0]['text'], reports)
    for mode, said in (('on', 'read 5 0\nthen 5\n'), ('strict', 'read -1 1\nthen 5\n')):
        done, reports = run('gives_target_to_kernel', mode, folder)
        expect(done.stdout == said and not reports, mode, done)


def vendor(folder):
    """Over a driver that knows of no model: order, lifetime and codes."""
    wanted = dict(WRONG)
    for case in ('streams_race', 'event_too_early', 'host_race', 'unmap_pending', 'free_pending',
                 'free_twice', 'kind_wrong', 'overlaps', 'rewrites_source', 'grows') + \
            RIGHT_ANYWHERE:
        for mode in ('on', 'strict'):
            done, reports = run(case, mode, folder, NPUSIM_BACKEND='hw', NPUSIM_HAL=FAKE,
                                NPUSIM_VALIDATE_RULES='-leak')
            found = {(report['rule'], first(report['stack']), first(report.get('other_stack')))
                     for report in reports}
            expect(found == set(wanted.get(case, ())) and done.returncode == 0, case, mode, found,
                   done)


def quarantine(folder):
    """Under strict an address that was given back is nobody else's, while there are others."""
    done, reports = run('maps_where_it_was', 'strict', folder)
    expect(done.stdout == 'elsewhere 1\nmap 507899\n', done.stdout, done.stderr)
    expect([report['rule'] for report in reports] == ['stale-address'], reports)
    done, reports = run('maps_where_it_was', 'on', folder)
    expect(done.stdout == 'elsewhere 0\n' and not reports, done.stdout)
    done, reports = run('reserves_in_turn', 'strict', folder, NPUSIM_LEAKS='summary')
    expect(done.stdout == 'wanted 1\n' and done.stderr == '' and not reports, done.stdout,
           done.stderr)


def rules(folder):
    done, reports = run('leak', 'on', folder, NPUSIM_VALIDATE_RULES='-leak')
    expect(not reports and done.stderr == '', done.stderr)
    done, reports = run('streams_race', 'on', folder, NPUSIM_VALIDATE_RULES='leak')
    expect(not reports and done.stderr == '', done.stderr)
    done, _ = run('leak', 'on', folder, NPUSIM_VALIDATE_RULES='-leaks')
    expect(done.returncode == 3, done)


def leaves_several(folder):
    done, _ = run('leaves_imported', 'on', folder)
    expect('2 imported ranges of ' in done.stderr and ' in all are left at the end' in done.stderr,
           done)


def each_failure_is_explained_once(folder):
    for case, count in ('rows_without_access', 200), ('access_lost_later', 2):
        done, _ = run(case, 'on', folder)
        expect('finding' in done.stderr and 'access {};'.format(count) in done.stderr, done.stderr)


def exit_status(folder):
    done, _ = run('leak', 'on', folder, NPUSIM_VALIDATE_EXIT='9')
    expect(done.returncode == 9, done.returncode)
    done, _ = run('fills', 'on', folder, NPUSIM_VALIDATE_EXIT='9')
    expect(done.returncode == 0, done.returncode)


def without_stacks(folder):
    done, reports = run('streams_race', 'on', folder, NPUSIM_STACKS='off')
    expect({report['rule'] for report in reports} == {'race'} and not reports[0]['stack'], reports)


def document():
    """Each rule is explained, has a row in the document, and a case above that finds it."""
    lines = subprocess.run([COMMAND, 'explain'], stdout=subprocess.PIPE, text=True, check=True)
    ids = [line.split()[0] for line in lines.stdout.splitlines()]
    text = pathlib.Path(DOCUMENT).read_text(encoding='utf-8')
    for rule in ids:
        expect('| `{}` |'.format(rule) in text, rule)
        expect(any(rule == report[0] for _, wanted in WRONG for report in wanted), rule)
        said = subprocess.run([COMMAND, 'explain', rule], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        expect(said.startswith(rule + ': ') and 'Right would be: ' in said, said)
    done = subprocess.run([COMMAND, 'explain', 'raze'], stderr=subprocess.PIPE, text=True,
                          check=False)
    expect(done.returncode == 2 and "no rule 'raze'" in done.stderr, done)


def main():
    tests = [('finds/' + case, lambda f, c=case, w=wanted: finds(c, w, f))
             for case, wanted in WRONG if not BACKEND or case not in CUDA]
    tests += [('silent/' + case, lambda f, c=case: silent(c, f)) for case in RIGHT
              if not BACKEND or case not in CUDA]
    tests += [('silent/together', together), ('strict', strict), ('closed', closed),
              ('quarantine', quarantine), ('rules', rules),
              ('leaves_several', leaves_several), ('exit_status', exit_status),
              ('each_failure_is_explained_once', each_failure_is_explained_once),
              ('without_stacks', without_stacks), ('early_read', early_read), ('poison', poison)]
    if not BACKEND: # theirs does not matter
        tests += [('vendor', vendor), ('document', document)]
    run_cases(tests)


if __name__ == '__main__':
    main()
