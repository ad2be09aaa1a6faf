# SPDX-License-Identifier: Apache-2.0
"""pytest on npusim: a node for each process, reports and leaks that fail the test that made them.

runtime/PYTEST.md tells how to use it. The module needs pytest alone, never loads the library
itself, and does nothing unless it is asked to or pytest runs under `npusim run`.
"""

import ctypes
import gc
import json
import os
import re
import shutil
import signal
import sys
import tempfile

import pytest
from _pytest.reports import TestReport
from _pytest.runner import runtestprotocol

# Option and entry of the ini file, both with npusim in front; variable; help.
SETTINGS = [
    ('soc', 'NPUSIM_SOC', 'the SoC to model, such as Ascend910B4, or the file of a profile'),
    ('devices', 'NPUSIM_DEVICES', 'how many devices the server has, 1 to 16'),
    ('hbm', 'NPUSIM_HBM', 'memory of each device, such as 64G'),
    ('contract', 'NPUSIM_CONTRACT', 'docs or driver: whose answers count'),
    ('validate', 'NPUSIM_VALIDATE', 'on or strict: look for errors that a device does not tell of'),
]
SWITCHES = [
    ('', 'run the tests on npusim'),
    ('leaks', 'a test fails that leaves handles, mappings or other memory behind'),
    ('isolate', 'run each test in a child process, which may crash'),
]
# Where the workers of pytest-xdist keep their reports: a folder of the process that has them.
FOLDER = 'PYTEST_NPUSIM_FOLDER'
NODE_NAME_MOST = 63


def option_name(word):
    return '--npusim-' + word if word else '--npusim'


def ini_name(word):
    return 'npusim_' + word if word else 'npusim'


def pytest_addoption(parser, pluginmanager):
    # Given by -p, it is not to come a second time as the entry point of an installed package.
    if pluginmanager.hasplugin('pytest_npusim'):
        pluginmanager.set_blocked('npusim')
    group = parser.getgroup('npusim', 'npusim, a model of an Ascend server')
    for word, text in SWITCHES:
        group.addoption(option_name(word), action='store_true', default=False, help=text)
        parser.addini(ini_name(word), text, type='bool', default=False)
    for word, _, text in SETTINGS:
        group.addoption(option_name(word), metavar=word.upper(), default=None, help=text)
        parser.addini(ini_name(word), text, default='')


def switch(config, word):
    name = ini_name(word)
    return bool(getattr(config.known_args_namespace, name, False) or config.getini(name))


def setting(config, word, variable):
    """What the option says, else the environment, else the ini file."""
    return (getattr(config.known_args_namespace, ini_name(word), None) or
            os.environ.get(variable) or config.getini(ini_name(word)))


def is_wanted(config):
    given = any(getattr(config.known_args_namespace, ini_name(word), None)
                for word in [row[0] for row in SWITCHES + SETTINGS])
    return given or config.getini('npusim') or 'NPUSIM_RUN' in os.environ


# ---- before any test, and any conftest, is loaded ----

def find_command():
    """The npusim that belongs to this file, or to this Python, or the one of PATH."""
    here = os.path.dirname(os.path.realpath(__file__))
    for folder in (os.path.join(here, *['..'] * 5, 'bin'), os.path.dirname(sys.executable)):
        path = os.path.normpath(os.path.join(folder, 'npusim'))
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return shutil.which('npusim')


def set_variables(config):
    for word, variable, _ in SETTINGS:
        value = setting(config, word, variable)
        if value:
            os.environ[variable] = value


def become_run(config):
    """The loader reads its path when a process starts: so pytest starts again, under npusim run."""
    command = find_command()
    if command is None:
        raise pytest.UsageError('--npusim: there is no npusim in PATH, or beside ' + __file__)
    program = list(getattr(sys, 'orig_argv', ()))[1:]
    if not program:
        program = ['-m', 'pytest', *map(str, config.invocation_params.args)]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command, [command, 'run', '--', sys.executable, *program])


def worker_id():
    return os.environ.get('PYTEST_XDIST_WORKER', '')


def prepare_environment(config):
    if switch(config, 'leaks'):
        os.environ.setdefault('NPUSIM_STACKS', 'short')
    node = os.environ.get('NPUSIM_NODE') or 'pytest-{}'.format(os.getpid())
    if worker_id():  # in its environment is the node of the process that has started it
        node = '{}-{}'.format(node[:NODE_NAME_MOST - len(worker_id()) - 1], worker_id())
    os.environ['NPUSIM_NODE'] = node


@pytest.hookimpl(hookwrapper=True, tryfirst=True)  # before pytest takes stdout and stderr
def pytest_load_initial_conftests(early_config):
    if is_wanted(early_config):
        set_variables(early_config)
        if 'NPUSIM_RUN' not in os.environ:
            become_run(early_config)
        prepare(early_config)
    yield


def prepare(config):
    config.pluginmanager.register(Plugin(config), 'npusim-session')


def plugin_of(config):
    return config.pluginmanager.get_plugin('npusim-session')


def pytest_configure(config):
    config.addinivalue_line('markers', 'npusim_leaks(check=True): the test fails if handles, '
                                       'mappings or other memory that it made are left')
    # loaded by a conftest: the library may be there already, but has hardly opened a device
    if plugin_of(config) is None and is_wanted(config):
        if 'NPUSIM_RUN' not in os.environ:
            raise pytest.UsageError('pytest_npusim is loaded by a conftest: give -p pytest_npusim, '
                                    'or start pytest by npusim run')
        prepare(config)


# ---- what the library tells ----

class Reports:
    """The file to which processes append their reports: those that come between two looks."""

    def __init__(self, path, copy):
        """copy: where else they go, of the user's own; or None."""
        self.path, self.copy = path, copy
        self.start = self.size()  # what is there already is not a test's

    def size(self):
        try:
            return os.stat(self.path).st_size
        except OSError:
            return 0

    def take(self):
        if self.size() <= self.start:
            return ''
        with open(self.path, 'rb') as stream:
            stream.seek(self.start)
            text = stream.read()
        # nobody else is to show them: npusim run at its end, or who asks why this process is dead
        os.truncate(self.path, self.start)
        if self.copy:
            with open(self.copy, 'ab') as stream:
                stream.write(text)
        return text.decode('utf-8', 'replace')


LINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


def held_objects():
    """What this process holds, identity -> line; empty where nothing has loaded the library."""
    try:
        library = ctypes.CDLL('libascendcl.so', mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return {}
    lines = []
    if not hasattr(library, 'npusimHeld'):  # another's libascendcl.so
        return {}
    library.npusimHeld(LINE(lambda _, text: lines.append(text.decode('utf-8', 'replace'))), None)
    held = {}
    for line in lines:
        found = re.match(r'  ([a-z ]+ 0x[0-9a-f]+), .*?(?:, (by .*?))?'
                         r'(?:, [\d.]+ ms of simulated time ago)?$', line)
        if found:
            held[found.groups()] = line.strip()
    return held


# ---- a session ----

class Plugin:
    def __init__(self, config):
        self.config = config
        prepare_environment(config)
        self.folder = self.prepare_reports(config)
        self.known = set()  # what fixtures of more than one test made
        self.before = {}    # what there was when a test began

    def prepare_reports(self, config):
        """Opens self.reports; the folder, where this process has made one. npusim run's file serves
        one process that has its tests in it: if it crashes, run shows what is there."""
        path, copy, made = os.environ.get('NPUSIM_REPORT_FILE'), None, None
        options = config.known_args_namespace
        workers = getattr(options, 'numprocesses', None) or getattr(options, 'tx', None)
        own = (worker_id() or workers or getattr(options, 'capture', 'fd') == 'no' or
               switch(config, 'isolate'))
        if path and 'NPUSIM_REPORT_STDERR' not in os.environ and not worker_id():
            path, copy = None, path
        if own or not path:
            if not worker_id() or FOLDER not in os.environ:
                made = os.environ[FOLDER] = tempfile.mkdtemp(prefix='npusim-pytest-')
            path = os.path.join(os.environ[FOLDER], (worker_id() or 'main') + '.report')
            os.environ['NPUSIM_REPORT_FILE'] = path
            os.environ.pop('NPUSIM_REPORT_STDERR', None)
        self.reports = Reports(path, copy)
        return made

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self):
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def pytest_report_header(self):
        return 'npusim: {}, devices: {}, contract {}, node {}'.format(
            os.environ.get('NPUSIM_SOC') or 'Ascend910B1',
            os.environ.get('NPUSIM_DEVICES') or '8', os.environ.get('NPUSIM_CONTRACT') or 'docs',
            os.environ['NPUSIM_NODE'])

    # ---- leaks ----

    def checks_leaks(self, item):
        marker = item.get_closest_marker('npusim_leaks')
        if marker is None:
            return switch(self.config, 'leaks')
        return marker.args[0] if marker.args else marker.kwargs.get('check', True)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == 'function':
            yield
            return
        before = set(held_objects())
        yield
        self.known.update(set(held_objects()) - before)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        if self.checks_leaks(item):
            self.before = held_objects()
            self.known.intersection_update(self.before)
        yield

    def leaks_of(self, item):
        if not self.checks_leaks(item):
            return ''
        gc.collect()
        left = [line for key, line in held_objects().items()
                if key not in self.before and key not in self.known]
        return 'left by {}:\n{}\n'.format(item.nodeid, ''.join('  ' + line + '\n' for line in left)
                                          ) if left else ''

    # ---- reports ----

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        text = self.reports.take()
        if text:
            text = 'reported during the {} of {}:\n{}'.format(call.when, item.nodeid, text)
        if call.when == 'teardown':
            text += self.leaks_of(item)
        if text:
            add_to_report(report, text)

    # ---- a test in a child ----

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        if not switch(self.config, 'isolate'):
            return None
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self.run_in_child(item):
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def run_in_child(self, item):
        """The reports of a test, which cannot take more with it than a process."""
        sys.stdout.flush()
        sys.stderr.flush()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            self.be_child(item, writer)
        os.close(writer)
        with os.fdopen(reader, 'rb') as stream:
            text = stream.read()
        _, status = os.waitpid(child, 0)
        late = self.reports.take()  # of the end of the process
        try:
            restore = item.config.hook.pytest_report_from_serializable
            reports = [restore(config=item.config, data=row) for row in json.loads(text)]
        except ValueError:
            return [self.crash_report(item, status, late)]
        if late:
            add_to_report(reports[-1], 'reported at the end of {}:\n{}'.format(item.nodeid, late))
        return reports

    def be_child(self, item, writer):
        status = 1
        try:
            reports = runtestprotocol(item, log=False)
            keep = item.config.hook.pytest_report_to_serializable
            data = [keep(config=item.config, report=report) for report in reports]
            self.reports.take()
            with os.fdopen(writer, 'wb') as stream:
                stream.write(json.dumps(data, default=str).encode())
            status = 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def crash_report(self, item, status, text):
        if os.WIFSIGNALED(status):
            how = 'ended by signal {}'.format(signal.Signals(os.WTERMSIG(status)).name)
        else:
            how = 'ended with status {} in the middle'.format(os.WEXITSTATUS(status))
        report = TestReport(
            item.nodeid, item.location, dict.fromkeys(item.keywords, 1), 'failed',
            'the process of {} {}\n{}'.format(item.nodeid, how, text), 'call')
        capture = self.config.pluginmanager.get_plugin('capturemanager')
        if capture is not None:
            for name, said in zip(('stdout', 'stderr'), capture.read_global_capture() or ('', '')):
                if said:
                    report.sections.append(('Captured {} call'.format(name), said))
        return report

    # ---- a test that takes a worker of pytest-xdist with it ----

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem, report):
        path = os.path.join(os.environ[FOLDER], report.node.gateway.id + '.report')
        reports = Reports(path, None)
        reports.start = 0  # what the worker has left
        text = reports.take()
        if text:
            report.longrepr = '{}\n{}'.format(report.longrepr, text)

    # ---- notes for npusim run --junit, which has them if this process does not end ----

    def note(self, **what):
        path = os.environ.get('NPUSIM_TEST_FILE')
        if path and not worker_id():
            with open(path, 'a', encoding='utf-8') as stream:
                stream.write(json.dumps(what) + '\n')

    def pytest_runtest_logstart(self, nodeid):
        self.note(test=nodeid, event='start')

    def pytest_runtest_logreport(self, report):
        text = report.longreprtext if report.outcome != 'passed' else ''
        self.note(test=report.nodeid, event=report.outcome, seconds=report.duration, text=text)
        if report.when not in ('setup', 'call', 'teardown'):  # pytest-xdist's of a dead worker
            self.note(test=report.nodeid, event='end')

    def pytest_runtest_logfinish(self, nodeid):
        self.note(test=nodeid, event='end')


def add_to_report(report, text):
    """The report fails, with the text in what it says: terminals and JUnit show that."""
    if report.failed and hasattr(report.longrepr, 'addsection'):
        report.longrepr.addsection('npusim', text)
    elif report.failed:
        report.longrepr = '{}\n{}'.format(report.longrepr, text)
    elif report.passed:
        report.outcome, report.longrepr = 'failed', text
    else:
        report.sections.append(('npusim', text))


# ---- the fixture ----

class Server:
    """The simulated server that the tests of this process run on."""

    def __init__(self, plugin):
        self._plugin = plugin
        self.soc = os.environ.get('NPUSIM_SOC') or 'Ascend910B1'
        self.devices = int(os.environ.get('NPUSIM_DEVICES') or 8)
        self.contract = os.environ.get('NPUSIM_CONTRACT') or 'docs'
        self.node = os.environ['NPUSIM_NODE']

    def held(self):
        """A line for each reservation, mapping, handle and allocation of this process."""
        return list(held_objects().values())

    def keep(self):
        """What is held now is no leak: an allocator's pool has grown, say."""
        self._plugin.known.update(held_objects())


@pytest.fixture(scope='session')
def npusim(pytestconfig):
    """The server; the test is skipped where it does not run on npusim."""
    plugin = plugin_of(pytestconfig)
    if plugin is None:
        pytest.skip('not on npusim: pytest --npusim, or npusim run -- pytest')
    return Server(plugin)
