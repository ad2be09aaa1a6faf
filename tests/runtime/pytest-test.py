#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The pytest plugin, and Python's acl module: pytest from outside, over small suites.
# usage: pytest-test.py NPUSIM; 77 where this machine's Python has no pytest or no pytest-xdist

import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
from tap import expect, run_cases

NPUSIM = os.path.abspath(sys.argv[1])
PYTHON = None

ALLOCATOR = '''
import acl, ctypes, os

SIZE = 2 << 20
PROP = dict(handleType=0, allocationType=0, memAttr=4, location=dict(id=0, type=1), reserve=0)

def started():
    assert acl.init() == 0 and acl.rt.set_device(0) == 0

def good(answer):
    *values, code = answer if isinstance(answer, tuple) else (answer,)
    assert code == 0, (answer, acl.get_recent_err_msg())
    return values[0] if values else None

class Block:
    def __init__(self, size=SIZE):
        self.size = size
        self.va = good(acl.rt.reserve_mem_address(size, 0, 0, 1))
        self.handle = good(acl.rt.malloc_physical(size, PROP, 0))
        good(acl.rt.map_mem(self.va, size, 0, self.handle, 0))

    def unmap(self):
        good(acl.rt.unmap_mem(self.va))

    def free(self):
        self.unmap()
        good(acl.rt.free_physical(self.handle))
        good(acl.rt.release_mem_address(self.va))

def touch(va):
    return ctypes.string_at(va + 100, 1)
'''

CONFTEST = '''
import pytest
from allocator import Block, started

@pytest.fixture(scope='session', autouse=True)
def acl_started():
    started()

@pytest.fixture(scope='session')
def pool():
    return Block()  # as long as the process

@pytest.fixture
def block():
    block = Block()
    yield block
    block.free()
'''

TESTS = '''
import os, pathlib, pytest, acl
from allocator import Block, good, touch
'''
FAULT = re.compile(r'npusim\[\d+\] error: the program touched 0x[0-9a-f]+: 100 bytes into the ')


class Suite:
    def __init__(self, folder, tests):
        self.folder = folder
        folder.joinpath('allocator.py').write_text(ALLOCATOR)
        folder.joinpath('conftest.py').write_text(CONFTEST)
        folder.joinpath('test_suite.py').write_text(TESTS + tests)

    def start(self, command, **env):
        keep = {name: value for name, value in os.environ.items() if not name.startswith(
            ('NPUSIM_', 'PYTEST_', 'PYTHON', 'ASCEND_', 'LD_LIBRARY_PATH'))}
        done = subprocess.run([str(word) for word in command], cwd=self.folder, text=True,
                              env={**keep, 'PYTHONDONTWRITEBYTECODE': '1', 'LC_ALL': 'C.UTF-8',
                                   **env},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=240)
        return done, done.stdout + done.stderr

    def pytest(self, *args, options=(), **env):
        return self.start([NPUSIM, 'run', *options, '--', PYTHON, '-m', 'pytest', '-p',
                           'no:cacheprovider', '-p', 'pytest_npusim', *args], **env)

    def outcomes(self, *args, **more):
        """Test -> what pytest calls its outcomes, and all that was printed."""
        done, text = self.pytest('-rA', *args, **more)
        found = {}
        for outcome, test in re.findall(r'^(PASSED|FAILED|ERROR|SKIPPED) test_suite\.py::(\w+)',
                                        text, re.MULTILINE):
            found.setdefault(test, set()).add(outcome)
        return found, text, done


def site_packages():
    home = subprocess.run([NPUSIM, 'home'], stdout=subprocess.PIPE, text=True).stdout.strip()
    return pathlib.Path(home, 'python/site-packages')


def junit(path):
    """Test -> the text of its failure or error, or None."""
    found = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter('testcase'):
        texts = [(part.get('message') or '') + (part.text or '') for part in case
                 if part.tag in ('failure', 'error')]
        found[case.get('name')] = '\n'.join(texts) if texts else None
    return found


CASES = []


def case(function):
    CASES.append(function)
    return function


# ---- nodes ----

SHARED = '''
@pytest.mark.parametrize('number', range(6))
def test_owns_device(number, block):
    """Where processes share a device, its free memory changes under this one's feet."""
    free, total, code = acl.rt.get_mem_info(1)
    for _ in range(20):
        block = Block(acl.rt.get_mem_info(1)[1] // 4 // (2 << 20) * (2 << 20))
        block.free()
        assert acl.rt.get_mem_info(1) == (free, total, code)
    pathlib.Path('nodes').open('a').write(os.environ['NPUSIM_NODE'] + '\\n')
'''


@case
def workers_have_nodes_of_their_own(folder):
    suite = Suite(folder, SHARED)
    done, text = suite.pytest('-n', '2')
    expect(done.returncode == 0 and '6 passed' in text, text)
    nodes = set(folder.joinpath('nodes').read_text().split())
    expect(len(nodes) == 2 and all(re.fullmatch(r'run-\S+-gw[01]', name) for name in nodes), nodes)


@case
def options_and_ini_entries_describe_server(folder):
    suite = Suite(folder, '''
def test_server(npusim):
    print('got', npusim.soc, npusim.devices, npusim.contract, acl.rt.get_device_count(),
          acl.get_soc_name())
''')
    folder.joinpath('pytest.ini').write_text(
        '[pytest]\nnpusim_soc = Ascend910B4\nnpusim_devices = 2\nnpusim_contract = driver\n')
    for args, env, wanted in [
            ([], {}, 'got Ascend910B4 2 driver (2, 0) Ascend910B4'),
            (['--npusim-devices', '3', '--npusim-contract', 'docs'], {},
             'got Ascend910B4 3 docs (3, 0) Ascend910B4'),
            (['--npusim-devices', '3', '-n', '1'], {}, 'got Ascend910B4 3 driver'),
            ([], {'NPUSIM_SOC': 'Ascend910B3'}, 'got Ascend910B3 2 driver (2, 0) Ascend910B3'),
            (['--npusim-soc', 'Ascend910B2'], {'NPUSIM_SOC': 'Ascend910B3'},
             'got Ascend910B2 2 driver (2, 0) Ascend910B2')]:
        done, text = suite.pytest('-rP', *args, **env)
        expect(done.returncode == 0 and wanted in text, wanted, text)


# ---- leaks ----

LEAKS = '''
def test_clean(block):
    pass
def test_uses_pool(pool):
    pass
@pytest.mark.npusim_leaks
def test_leaves_mapping():
    Block()
def test_leaves_handle():
    Block().unmap()
@pytest.mark.npusim_leaks(False)
def test_may_leave():
    Block()
def test_keeps(npusim):
    Block()
    npusim.keep()
def test_after(block, pool):
    pass
'''


@case
def tests_that_leave_memory_fail(folder):
    suite = Suite(folder, LEAKS)
    for args in ['--npusim-leaks'], ['--npusim-leaks', '-n', '1'], ['--npusim-leaks',
                                                                      '--npusim-isolate']:
        got, text, _ = suite.outcomes(*args)
        bad = {test for test, outcomes in got.items() if outcomes - {'PASSED'}}
        expect(bad == {'test_leaves_mapping', 'test_leaves_handle'} and len(got) == 7, args, text)
        expect('left by test_suite.py::test_leaves_mapping:\n' in text, text)
        expect(re.search(r'  mapping 0x[0-9a-f]+, 2097152 \(2 MiB\), device 0, of handle', text),
               text)
    got, text, _ = suite.outcomes()
    bad = {test for test, outcomes in got.items() if outcomes - {'PASSED'}}
    expect(bad == {'test_leaves_mapping'}, 'by the marker alone', text)


# ---- reports ----

RACE = '''
def test_before(block):
    pass
def test_frees_too_early(block):
    stream, host = good(acl.rt.create_stream()), good(acl.rt.malloc_host(block.size))
    memory = good(acl.rt.malloc(block.size, 0))
    good(acl.rt.memcpy_async(memory, block.size, host, block.size, 1, stream))
    acl.rt.free(memory)
    acl.rt.synchronize_stream(stream)
    good(acl.rt.free_host(host))
def test_after(block):
    pass
'''


@case
def reports_of_the_validation_fail_their_test(folder):
    suite = Suite(folder, RACE)
    for args in [], ['-n', '1'], ['-s'], ['--npusim-isolate']:
        got, text, done = suite.outcomes('--npusim-validate', 'on', '--junitxml', 'out.xml', *args)
        bad = {test for test, outcomes in got.items() if outcomes - {'PASSED'}}
        expect(bad == {'test_frees_too_early'} and len(got) == 3, args, text)
        expect('reported during the call of test_suite.py::test_frees_too_early' in text, text)
        said = junit(folder / 'out.xml')['test_frees_too_early']
        expect('pending-free' in said and 'the work was queued by' in said, said)
        expect(args == ['-s'] or 'aclrtFree gives' not in done.stderr, 'said twice', done.stderr)


# ---- crashes ----

CRASH = '''
def test_before():
    pass
def test_touches(block):
    print('seen before')
    touch(block.va)
def test_after(block):
    pass
'''


@case
def a_host_touch_is_its_tests_failure(folder):
    suite = Suite(folder, CRASH)
    for args in ['-n', '1'], ['--npusim-isolate'], ['-n', '1', '--npusim-isolate']:
        done, text = suite.pytest('--junitxml', 'out.xml', *args)
        expect(done.returncode == 1 and '1 failed, 2 passed' in text, args, text)
        got = junit(folder / 'out.xml')
        texts = [said for said in got.values() if said]
        expect(len(texts) == 1 and FAULT.search(texts[0]), args, got, text)
        expect('isolate' not in args[-1] or 'seen before' in text, text)


@case
def run_knows_the_test_that_took_pytest_with_it(folder):
    suite = Suite(folder, CRASH)
    done, text = suite.pytest('-p', 'no:faulthandler', options=['--junit', 'run.xml'])
    expect(done.returncode == -11, done.returncode, text)
    got = junit(folder / 'run.xml')
    expect(list(got) == ['test_suite.py::test_before', 'test_suite.py::test_touches'], got)
    said = got['test_suite.py::test_touches']
    expect(FAULT.search(said) and 'signal 11' in said, said)
    done, text = suite.pytest('-n', '1', options=['--junit', 'run.xml'])
    got = junit(folder / 'run.xml')
    said = got.pop('test_suite.py::test_touches')
    expect(FAULT.search(said) and 'in the middle' not in said, said)
    expect(got == {'test_suite.py::test_before': None, 'test_suite.py::test_after': None}, got)
    done, text = suite.pytest('-k', 'not touches', options=['--junit', 'run.xml'])
    expect(done.returncode == 0 and junit(folder / 'run.xml') == {
        'test_suite.py::test_before': None, 'test_suite.py::test_after': None}, text)


# ---- without npusim run ----

@case
def an_option_starts_pytest_on_npusim(folder):
    site = site_packages()
    suite = Suite(folder, 'def test_owns(npusim, block):\n    assert acl.get_soc_name() == "Ascend'
                          '910B2"\n')
    path = '{}:{}'.format(os.path.dirname(NPUSIM), os.environ['PATH'])
    command = [PYTHON, '-m', 'pytest', '-p', 'no:cacheprovider']
    for more in ['-p', 'pytest_npusim', '--npusim'], ['-p', 'pytest_npusim', '--npusim', '-n', '1']:
        done, text = suite.start([*command, *more, '--npusim-soc', 'Ascend910B2'], PATH=path,
                                 PYTHONPATH=str(site))
        expect(done.returncode == 0 and '1 passed' in text, text)
    # as an installed package: an entry point, and the plugin named once more
    package = folder / 'npusim-1.dist-info'
    package.mkdir()
    package.joinpath('METADATA').write_text('Metadata-Version: 2.1\nName: npusim\nVersion: 1\n')
    package.joinpath('entry_points.txt').write_text('[pytest11]\nnpusim = pytest_npusim\n')
    env = dict(PATH=path, PYTHONPATH='{}:{}'.format(folder, site))
    for more in ['--npusim'], ['-p', 'pytest_npusim', '--npusim']:
        done, text = suite.start([*command, *more, '--npusim-soc', 'Ascend910B2'], **env)
        expect(done.returncode == 0 and '1 passed' in text, more, text)
    folder.joinpath('conftest.py').write_text('')
    folder.joinpath('test_suite.py').write_text(
        'import os\ndef test_plain(): assert "NPUSIM_NODE" not in os.environ\n'
        'def test_needs(npusim): pass\n')
    done, text = suite.start(command, **env)
    expect('1 passed, 1 skipped' in text, 'a suite that does not ask is left alone', text)
    done, text = suite.start([*command, '--npusim'], PATH='/nowhere',
                             PYTHONPATH=str(shutil.copy(site / 'pytest_npusim.py', folder)
                                            and folder))
    expect(done.returncode == 4 and 'there is no npusim in PATH' in text, text)


@case
def settings_are_checked_before_the_start(folder):
    suite = Suite(folder, 'print("loaded")\ndef test_nothing(): pass\n')
    path = '{}:{}'.format(os.path.dirname(NPUSIM), os.environ['PATH'])
    for option, entry, wanted in ((['--npusim-devices', '99'], '', 'NPUSIM_DEVICES=99'),
                                  ([], 'npusim_soc = Ascend9', 'NPUSIM_SOC=Ascend9')):
        folder.joinpath('pytest.ini').write_text('[pytest]\n{}\n'.format(entry))
        done, text = suite.start([PYTHON, '-m', 'pytest', '-s', '-p', 'pytest_npusim', '--npusim',
                                  *option], PATH=path, PYTHONPATH=str(site_packages()))
        expect(done.returncode == 2 and wanted in text and 'loaded' not in text, text)


# ---- pyACL ----

@case
def acl_module_has_the_conventions_of_pyacl(folder):
    folder.joinpath('program.py').write_text('''
import acl, acl.rt
from acl.rt import memcpy
def check(ret, message):
    if ret != 0:
        raise Exception('{} failed ret={}'.format(message, ret))
check(acl.init(), 'acl.init')
check(acl.rt.set_device(0), 'acl.rt.set_device')
context, ret = acl.rt.create_context(0)
check(ret, 'create_context')
assert acl.rt.get_context() == (context, 0)
stream, ret = acl.rt.create_stream()
check(ret, 'create_stream')
assert acl.rt.get_run_mode() == (1, 0)
count, ret = acl.rt.get_device_count()
free, total, ret = acl.rt.get_mem_info(1)
assert ret == 0 and 0 < free <= total
data = bytes(range(256)) * 16
source = acl.util.bytes_to_ptr(data)
device, ret = acl.rt.malloc(len(data), 0)
check(ret, 'malloc')
assert acl.rt.get_mem_info(1)[0] < free
check(memcpy(device, len(data), source, len(data), 1), 'memcpy')
host, ret = acl.rt.malloc_host(len(data))
event, ret = acl.rt.create_event()
check(acl.rt.memcpy_async(host, len(data), device, len(data), 2, stream), 'memcpy_async')
check(acl.rt.record_event(event, stream), 'record_event')
check(acl.rt.synchronize_stream(stream), 'synchronize_stream')
assert acl.util.ptr_to_bytes(host, len(data)) == data
check(acl.rt.memset(device, len(data), 7, len(data)), 'memset')
check(memcpy(host, len(data), device, len(data), 2), 'memcpy')
assert acl.util.ptr_to_bytes(host, 4) == bytes([7] * 4)
check(acl.rt.destroy_event(event), 'destroy_event')
try:
    import numpy
except ImportError:
    print('no numpy')
else:
    array = acl.util.ptr_to_numpy(host, (2, len(data) // 8), 5)
    assert array.dtype == numpy.int32 and array.shape == (2, 512) and array[1, 511] == 0x07070707
    assert acl.util.numpy_to_ptr(array) == host
prop = dict(handleType=0, allocationType=0, memAttr=4, location=dict(id=0, type=1), reserve=0)
size, ret = acl.rt.mem_get_allocation_granularity(prop, 0)
assert (size, ret) == (2 << 20, 0)
va, ret = acl.rt.reserve_mem_address(size, 0, 0, 1)
handle, ret = acl.rt.malloc_physical(size, prop, 0)
check(acl.rt.map_mem(va, size, 0, handle, 0), 'map_mem')
assert acl.rt.map_mem(va, size, 0, handle, 0) != 0
shareable, ret = acl.rt.mem_export_to_shareable_handle(handle, 0, 0)
check(ret, 'export')
pid, ret = acl.rt.device_get_bare_tgid()
check(acl.rt.mem_set_pid_to_shareable_handle(shareable, [pid]), 'set_pid')
for call in acl.rt.unmap_mem, acl.rt.release_mem_address:
    check(call(va), call.__name__)
check(acl.rt.free_physical(handle), 'free_physical')
for wrong in (lambda: acl.rt.malloc('much', 0), lambda: acl.rt.free(None), lambda: acl.rt.free(),
              lambda: acl.util.bytes_to_ptr('text')):
    try:
        wrong()
    except TypeError:
        continue
    raise Exception('no TypeError')
assert acl.rt.free(1) != 0 and acl.get_recent_err_msg()
check(acl.rt.free(device), 'free')
check(acl.rt.free_host(host), 'free_host')
check(acl.rt.destroy_stream(stream), 'destroy_stream')
check(acl.rt.destroy_context(context), 'destroy_context')
check(acl.rt.reset_device(0), 'reset_device')
check(acl.finalize(), 'acl.finalize')
print(acl.get_soc_name(), 'good')
''')
    suite = Suite(folder, '')
    done, text = suite.start([NPUSIM, 'run', '--', PYTHON, 'program.py'])
    expect(done.returncode == 0 and 'Ascend910B1 good' in done.stdout, text)
    done, text = suite.start([PYTHON, '-c', 'import acl'], PYTHONPATH=str(site_packages()))
    expect(done.returncode == 1 and 'ImportError: libascendcl.so: ' in text, text)


def find_python():
    for python in sys.executable, '/usr/bin/python3':
        if shutil.which(python) and subprocess.run([python, '-c', 'import pytest, xdist'],
                                                   stderr=subprocess.DEVNULL).returncode == 0:
            return python
    print('there is no pytest, or no pytest-xdist, for Python')
    return sys.exit(77)


def main():
    global PYTHON
    PYTHON = find_python()
    run_cases([(function.__name__, function) for function in CASES
               if len(sys.argv) == 2 or function.__name__ in sys.argv[2:]])


if __name__ == '__main__':
    main()
