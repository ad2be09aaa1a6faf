#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# npu-smi of npusim run --npu-smi, read as public programs read it, and the driver's management
# libraries, which tell the same.
# usage: smi-test.py NPUSIM DCMI-PROGRAM

import os
import pathlib
import platform
import re
import sys

from command import case, expect, main, npusim, same

DCMI = str(pathlib.Path(sys.argv[2]).resolve())
HOLD = '''import acl, subprocess, sys
acl.init()
acl.rt.set_device(1)
memory, code = acl.rt.malloc(64 << 20, 0)
sys.stdout.write(subprocess.run(sys.argv[1], shell=True, stdout=subprocess.PIPE,
                                text=True).stdout)
sys.stdout.flush()
acl.rt.free(memory)
acl.rt.reset_device(1)
'''


def smi(command, *options, status=0):
    run = npusim('run', '--npu-smi', *options, '--', 'sh', '-c', command)
    same(run.returncode, status, run.stderr)
    return run.stdout if status == 0 else run.stderr


def fields(text):
    return dict(re.findall(r'^\t(\S.*?) +: (.*)$', text, re.MULTILINE))


@case
def only_where_asked_for():
    run = npusim('run', '--', 'sh', '-c', 'command -v npu-smi')
    own = smi('command -v npu-smi').rstrip()
    expect(os.path.islink(own), own)
    expect(own not in run.stdout, run.stdout)


@case
def info_has_the_name_in_line_seven():  # llama.cpp: NR==7 {print $3}
    lines = smi('npu-smi info', '--soc', 'Ascend910B3').splitlines()
    same(lines[6].split()[2], '910B3')
    same(len({len(line) for line in lines}), 1, 'widths')
    expect(re.match(r'\| npu-smi \S+ +Version: \S+ ', lines[1]), lines[1])
    same(sum('No running processes found in NPU' in line for line in lines), 8)
    same(smi('npu-smi info', '--soc', 'Ascend910_9382').splitlines()[6].split()[2], 'Ascend910')


@case
def info_shows_who_holds_how_much():  # vllm-ascend's cpu_binding.py reads rows of integers
    run = npusim('run', '--npu-smi', '--devices', '2', '--', sys.executable, '-c', HOLD,
                 'npu-smi info; npu-smi info -t usages -i 1; npu-smi info -t proc-mem -i 1')
    same(run.returncode, 0, run.stderr)
    rows = re.findall(r'^\| +(\d+) +(\d+) +\| (\d+) +\| (\S+) +\| (\d+) +\|$', run.stdout,
                      re.MULTILINE)
    same([(npu, chip, used) for npu, chip, _, _, used in rows], [('1', '0', '66')])
    expect('No running processes found in NPU 0' in run.stdout, run.stdout)
    expect(re.search(r' 66 / \d+ ', run.stdout), run.stdout)
    same(fields(run.stdout)['Process id'], rows[0][2])
    same(fields(run.stdout)['Process memory(MB)'], '66')


@case
def list_begins_with_the_count():  # deepspeed splits the first line at its colon
    text = smi('npu-smi info -l', '--devices', '4')
    same(text.splitlines()[0].split(':')[1].strip(), '4')
    text = smi('npu-smi info -l', '--devices', '4', '--soc', 'Ascend910_9382')
    same(text.splitlines()[0].split(':')[1].strip(), '2')
    same(re.findall(r'Chip Count +: (\d)', text), ['2', '2'])


@case
def a_reader_that_leaves_is_no_failure():  # npu-smi info | head -n 1
    run = npusim('run', '--npu-smi', '--', 'sh', '-c',
                 '{ sleep 1; npu-smi info -l; echo $? >&2; } | true')
    same(run.stderr.splitlines()[:1], ['141'], 'ended by SIGPIPE, and quiet')


@case
def mapping_has_columns_that_blanks_part():
    rows = [re.split(r'\s{2,}', line.strip())
            for line in smi('npu-smi info -m', '--devices', '2').splitlines()]
    same(rows[0], ['NPU ID', 'Chip ID', 'Chip Logic ID', 'Chip Name'])
    same(rows[1:], [['0', '0', '0', 'Ascend 910B1'], ['0', '1', '-', 'Mcu'],
                    ['1', '0', '1', 'Ascend 910B1'], ['1', '1', '-', 'Mcu']])
    text = smi('npu-smi info -m', '--devices', '2', '--soc', 'Ascend910_9382')
    same([line.split()[:4] for line in text.splitlines()[1:3]],
         [['0', '0', '0', '0'], ['0', '1', '1', '1']])


@case
def board_tells_a2_from_a3():  # vllm-ascend: Chip Type or NPU Name, not both
    a2 = fields(smi('npu-smi info -t board -i 0 -c 0', '--soc', 'Ascend910B4'))
    same((a2['Chip Name'], a2['Chip Type'], 'NPU Name' in a2), ('910B4', 'Ascend', False))
    a3 = fields(smi('npu-smi info -t board -i 0 -c 1', '--soc', 'Ascend910_9382'))
    same((a3['Chip Name'], a3['NPU Name'], 'Chip Type' in a3), ('Ascend910', '9382', False))
    whole = fields(smi('npu-smi info -t board -i 0'))
    same((whole['PCI Vendor ID'], 'Chip Name' in whole), ('0x19E5', False))


@case
def figures_are_the_nodes():
    text = smi('npu-smi info -t memory -i 1; npu-smi info -t usages -i 1 -c 0', '--hbm', '32G')
    found = re.findall(r'HBM Capacity\(MB\) {15}: (\d+)', text)  # mind-cluster
    same(len(found), 2)
    expect(28 << 10 < int(found[0]) <= 32 << 10, found)
    same(fields(smi('npu-smi info -t common -i 0'))['Aicore Count'][-2:], '24')  # op-plugin
    for line in smi('npu-smi info -t health -i 0 -c 0').splitlines():
        expect('Health' not in line or line.endswith('OK'), line)


@case
def spod_info_is_of_a_910c():
    text = smi('npu-smi info -t spod-info -i 1 -c 1', '--soc', 'Ascend910_9382')
    same([line.partition(' :')[0].strip() for line in text.splitlines()],
         ['SDID', 'Super Pod Size', 'Super Pod ID', 'Server Index'])
    expect('not support' in smi('npu-smi info -t spod-info -i 0 -c 0', status=1))
    expect('-c' in smi('npu-smi info -t spod-info -i 0', '--soc', 'Ascend910_9382', status=1))


def topology(*options):
    """Names of the rows, what lies between each two, the CPUs near to each."""
    text = smi('npu-smi info -t topo', *options)
    table, _, legend = text.partition('\n\nLegend:\n\n')
    lines = table.splitlines()
    rows = [line.split() for line in lines[1:]]
    names = [row[0] for row in rows]
    same(lines[0].split()[:len(names)], names)
    expect(all(re.search(r'(?m)^  {} += '.format(kind), legend)
               for row in rows for kind in row[1:len(names) + 1]), text)
    same('CPU Affinity' in lines[0], all(len(row) == len(names) + 2 for row in rows), text)
    return names, [row[1:len(names) + 1] for row in rows], [row[len(names) + 1:] for row in rows]


@case
def topology_is_that_of_the_links():
    names, links, near = topology()
    same(names, ['NPU{}'.format(i) for i in range(8)])
    same(links, [['X' if i == k else 'HCCS' for i in range(8)] for k in range(8)])
    for cpus in near:  # vllm-ascend binds itself to the last word
        expect(re.match(r'\d+(-\d+)?(,\d+(-\d+)?)*$', cpus[0]), cpus)
    names, links, near = topology('--soc', 'Ascend910_9382', '--devices', '4')
    same(names, ['Phy-ID{}'.format(i) for i in range(4)])
    same(links, [['X', 'SIO', 'HCCS', 'HCCS'], ['SIO', 'X', 'HCCS', 'HCCS'],
                 ['HCCS', 'HCCS', 'X', 'SIO'], ['HCCS', 'HCCS', 'SIO', 'X']])
    same([len(cpus) for cpus in near], [0 if platform.machine() == 'aarch64' else 1] * 4)
    same(topology('--devices', '1')[1], [['X']])


def dcmi(*options, mib=None):
    """Lines of chips, of the supernode's records, the driver's version, what is around a chip."""
    run = npusim('run', *options, '--', DCMI, *([] if mib is None else [str(mib)]))
    same(run.returncode, 0, run.stderr)
    lines = [line.split() for line in run.stdout.splitlines()]
    same(lines[-1][0], 'driver')
    return ([line for line in lines[:-1] if line[0].isdigit()],
            [[int(word) for word in line[1:]] for line in lines if line[0] == 'spod'],
            lines[-1][1], [line[1:] for line in lines if line[0] == 'around'])


@case
def management_library_numbers_cards_and_chips():
    for devices in (1, 8):
        chips, spods, *_ = dcmi('--soc', 'Ascend910B3', '--devices', devices)
        same([chip[:7] for chip in chips],
             [[str(i), '0', str(i), str(i), 'Ascend', '910B3', '-'] for i in range(devices)])
        same(spods, [])
        chips, spods, *_ = dcmi('--soc', 'Ascend910_9382', '--devices', devices)
        same([chip[:7] for chip in chips],
             [[str(i // 2), str(i % 2), str(i), str(i), 'Ascend', 'Ascend910', '9382']
              for i in range(devices)])
        same(len(spods), devices)


@case
def management_library_has_the_figures_of_npu_smi():
    for soc in ('Ascend910B1', 'Ascend910_9391'):
        options = ('--soc', soc, '--devices', '2', '--hbm', '32G')
        chips, _, version, _ = dcmi(*options)
        asked = fields(smi('npu-smi info -t memory -i 0; npu-smi info -t common -i 0', *options))
        for chip in chips:
            same(chip[7:], [asked['Aicore Count'], asked['HBM Capacity(MB)'], '0', '0'])
        held, *_ = dcmi(*options, mib=64)
        same([int(chip[9]) for chip in held], [66, 0])  # as npu-smi's table above
        home = pathlib.Path(npusim('home').stdout.rstrip())
        expect('Version={}\n'.format(version) in (home / 'driver/version.info').read_text())
        same(smi('npu-smi -v').split()[-1], version)


@case
def management_library_knows_links_and_surroundings():  # as npu-smi shows them
    kinds = ['X', 'SYS', 'PHB', 'HCCS', 'PXB', 'PIX', 'SIO', 'HCCS_SW']
    for options in ((), ('--soc', 'Ascend910_9382', '--devices', '4')):
        around = dcmi(*options)[3]
        _, links, cpus = topology(*options)
        same([[kinds[int(word)] for word in chip[4:]] for chip in around], links)
        text = smi('npu-smi info', *options)
        for chip, near in zip(around, cpus):
            same(near or [chip[3]], [chip[3]])
            expect(' {} '.format(chip[0]) in text, text)
            expect(re.search(r'\| OK  +\| {}  +{}  +0 / 0 '.format(*chip[1:3]), text), text)


def uses(text):
    """By chip: how much is used, which chip it is, and who holds how many bytes."""
    found = re.findall(r'(?m)^use (\d+) (\w+ \w+ \w+ \w+ \w+)((?: \d+:\d+)*)$', text)
    return [(int(percent), die, re.findall(r'(\d+):(\d+)', holders))
            for percent, die, holders in found]


@case
def management_library_knows_who_holds_memory():  # gpustack, xpu's exporters, msServiceProfiler
    a3 = '--soc', 'Ascend910_9382'
    pod = '--supernode', 'smi-use-{}'.format(os.getpid()), '--server', '2'
    for places, *options in (([(0, 0), (1, 0)],), ([(0, 0), (0, 1)], *a3),
                             ([(0, 0), (0, 1)], *a3, *pod)):
        run = npusim('run', '--npu-smi', '--devices', '2', '--hbm', '2G', *options, '--',
                     sys.executable, '-c', HOLD, DCMI + '; npu-smi info; ' + '; '.join(
                         'npu-smi info -t {} -i {} -c {}'.format(what, *place)
                         for place in places for what in ('usages', 'board')))
        same(run.returncode, 0, run.stderr)
        found = uses(run.stdout)
        same([int(rate) for rate in re.findall(r'HBM Usage Rate\(%\) +: (\d+)', run.stdout)],
             [percent for percent, *_ in found])
        same(re.findall(r'VDie ID +: (.*)', run.stdout), [die for _, die, _ in found])
        same(len({die for _, die, _ in found}), 2)
        rows = re.findall(r'(?m)^\| +\d+ +\d+ +\| (\d+) +\| \S+ +\| (\d+) +\|$', run.stdout)
        expect(found[0][0] == 0 and found[1][0] > 2, found)
        same(found[0][2], [])
        same([(pid, int(held) >> 20) for pid, held in found[1][2]],
             [(pid, int(mib)) for pid, mib in rows])
        same(len(rows), 1)


@case
def management_library_lists_whole_ranges_of_processors():  # 31 characters at the most
    for cpus, told in (('0-31', '0-31'), ('0-3,100-107,200-207,300-307,400', None),
                       ('0-23,48-71,96-119,144-167,192-215', '0-23,48-71,96-119,144-167'),
                       ('0-3,100-107,200-207,300-307,400-407', '0-3,100-107,200-207,300-307'),
                       ('0-3,100-107,200-207,300-307,400,408', '0-3,100-107,200-207,300-307,400')):
        run = npusim('run', '--devices', '1', '--', 'env', 'DCMI_CPUS=' + cpus, DCMI)
        same(run.returncode, 0, run.stderr)
        same(re.findall(r'(?m)^around \S+ \S+ \S+ (\S+)', run.stdout), [told or cpus])


@case
def devices_that_do_not_tell_of_themselves():  # a 910C's second chip is on no card then
    fault = 'NPUSIM_FAULT=halGetDeviceInfo:1+:busy'
    for soc, seconds in (('Ascend910B1', 0), ('Ascend910_9382', 8)):
        run = npusim('run', '--soc', soc, '--', 'env', fault, DCMI)
        expect(run.returncode in (0, 1), run.returncode, run.stderr)
        text = smi(fault + ' npu-smi info', '--soc', soc)
        same(len(re.findall(r'\| OK  +\| NA  +NA  +0 / 0 ', text)), seconds, text)


@case
def management_library_knows_the_supernode():
    pod = 'smi-pod-{}'.format(os.getpid())
    options = ('--soc', 'Ascend910_9391', '--supernode', pod, '--server', '3')
    _, spods, *_ = dcmi(*options)
    same([spod[0] for spod in spods],
         [3 << 22 | i >> 1 << 18 | (i & 1) << 16 | i for i in range(len(spods))])
    same({spod[3] for spod in spods}, {3})
    text = smi('npu-smi info -t spod-info -i 1 -c 1', *options)
    same([int(word) for word in re.findall(r': (\d+)$', text, re.MULTILINE)], spods[3])
    _, spods, *_ = dcmi('--soc', 'Ascend910_9391', '--supernode', 'none', '--devices', '2')
    same([spod[2:] for spod in spods], [[0xffffffff, 1023]] * 2)


@case
def says_what_is_wrong():
    expect('Invalid card id.' in smi('npu-smi info -t board -i 8', status=1))
    expect('Error parameter of -c' in smi('npu-smi info -t board -i 0 -c 4', status=1))
    expect('Error parameter of -i' in smi('npu-smi info -t board', status=1))
    expect('Error parameter of -t' in smi('npu-smi info -t weather -i 0', status=1))
    expect('Usage' in smi('npu-smi inform', status=1))
    expect('Usage' in smi('npu-smi set -t weather -i 0', status=1))


@case
def settings_are_taken():  # hami-adp's device plugin, ACLTest
    smi('echo Y | npu-smi set -t device-share -i 0 -c 0 -d 1 && '
        'npu-smi set -t custom-op-secverify-enable -i 0 -d 1')


if __name__ == '__main__':
    main()
