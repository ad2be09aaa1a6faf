#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# A host touch of device memory under what has SIGSEGV itself: each environment touches device
# memory, and then, with no driver, a page of its own that nobody may reach. The first has our
# report once, and both end the same. And LeakSanitizer has nothing to say of a program that leaves
# its device memory to the exit, but finds what it loses of its own; and threads, and children of
# fork(), go as without a sanitizer. Ends with 77 where a tool is missing.

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REPORT = re.compile(r'npusim\[\d+\] error: the program touched 0x[0-9a-f]+: 100 bytes into the '
                    r'allocation at 0x[0-9a-f]+, .* of device 0\. .*\n')
SOURCE = pathlib.Path(__file__).with_name('touch-program.c')
KINDS = 'device', 'plain'

PYTHON_TOUCH = '''
import ctypes, faulthandler, mmap, sys
program = ctypes.CDLL({program!r})
program.touch_target.restype = ctypes.c_void_p
program.touch_write.argtypes = [ctypes.c_void_p]
def target(kind): return program.touch_target(kind.encode())
def touch(kind): program.touch_write(target(kind))
'''

PYTEST_FILE = '''
import os
from touch import touch
def test_before(): print('seen by nobody')
def test_touch(): touch(os.environ['KIND'])
def test_after(): pass
'''

JAVA = '''
public class Touch {
    static native void touch(String kind);
    static native void open(String kind);
    static int nulls(int count) {
        int seen = 0;
        for (int i = 0; i < count; i++)
            try { ((Object) null).hashCode(); } catch (NullPointerException e) { seen++; }
        return seen;
    }
    public static void main(String[] args) {
        System.load(args[0]);
        open(args[1]);
        System.out.println(nulls(20000) + " null checks");
        touch(args[1]);
        System.out.println("after");
    }
}
'''

JNI = '''
#include <jni.h>
void *touch_target(const char *what);
void touch_write(void *target);
static void *target;
JNIEXPORT void JNICALL Java_Touch_open(JNIEnv *env, jclass self, jstring kind)
{
	(void)self;
	target = touch_target((*env)->GetStringUTFChars(env, kind, NULL));
}
JNIEXPORT void JNICALL Java_Touch_touch(JNIEnv *env, jclass self, jstring kind)
{
	(void)env, (void)self, (void)kind;
	touch_write(target);
}
'''

GO = '''
package main
// void *touch_target(const char *what);
// void touch_write(void *target);
import "C"
import ("fmt"; "os"; "unsafe")
var nowhere *int
func recovered() (why any) {
	defer func() { why = recover() }()
	return *nowhere
}
func main() {
	target := C.touch_target(C.CString(os.Args[1]))
	fmt.Println(recovered())
	if os.Args[2] == "c" { C.touch_write(target) }
	*(*byte)(unsafe.Pointer(uintptr(target) + 100)) = 1
	fmt.Println("after")
}
'''

LEAVES = '''
#include "acl/acl.h"
int main(int argc, char **argv)
{
	aclrtPhysicalMemProp prop = { ACL_MEM_HANDLE_TYPE_NONE, ACL_MEM_ALLOCATION_TYPE_PINNED,
				      ACL_HBM_MEM_HUGE, { 0, ACL_MEM_LOCATION_TYPE_DEVICE }, 0 };
	size_t bytes = 2 << 20;
	aclrtDrvMemHandle handle;
	void *p, *plain;

	(void)argv;
	return aclrtSetDevice(0) || aclrtReserveMemAddress(&p, bytes, 0, NULL, 1) ||
	       aclrtMallocPhysical(&handle, bytes, &prop, 0) ||
	       aclrtMapMem(p, bytes, 0, handle, 0) ||
	       aclrtMalloc(&plain, bytes, ACL_MEM_MALLOC_HUGE_FIRST) ||
	       (argc > 1 && (aclrtFree(plain) || aclrtUnmapMem(p) || aclrtFreePhysical(handle) ||
			     aclrtReleaseMemAddress(p) || aclrtResetDevice(0)));
}
'''

LOSES = '''
#include "acl/acl.h"
#include <pthread.h>
#include <stdlib.h>
static aclError lose(void *device, size_t bytes)
{
	char *lost = calloc(1, bytes);
	return aclrtHostRegisterV2(lost, bytes, ACL_HOST_REG_PINNED) ||
	       aclrtHostUnregister(lost) ||
	       aclrtMemcpy(device, bytes, lost, bytes, ACL_MEMCPY_HOST_TO_DEVICE);
}
static void *run(void *none)
{
	void *device;
	return aclrtSetDevice(0) || aclrtMalloc(&device, 5000, ACL_MEM_MALLOC_HUGE_FIRST) ||
	       lose(device, 70) || lose(device, 5000) || aclrtFree(device) ? "failed" : none;
}
int main(void)
{
	pthread_t thread; /* whose stack and registers are gone */
	void *failed;
	return pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, &failed) || failed;
}
'''

# A call that fails in a child of a process that has a device, and two threads that do not fail.
FORKS = '''
#include "acl/acl.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
void *fails(void *none)
{
	aclrtFree(NULL);
	return none;
}
static void *works(void *none)
{
	void *device;
	return aclrtSetDevice(0) || aclrtMalloc(&device, 5000, ACL_MEM_MALLOC_HUGE_FIRST) ||
	       aclrtFree(device) ? &device : none;
}
int main(void)
{
	pthread_t thread;
	void *failed = NULL;
	for (int i = 0; i < 2 && failed == NULL; i++)
		if (pthread_create(&thread, NULL, works, NULL) || pthread_join(thread, &failed))
			return 1;
	if (fork() == 0) {
		fails(NULL);
		_exit(0);
	}
	return failed != NULL || wait(NULL) < 0;
}
'''


def skip(why):
    print(why)
    sys.exit(77)


def tool(name):
    path = shutil.which(name)
    return path or skip('there is no {} on this machine'.format(name))


class Rig:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.acl = os.path.abspath(options.acl)
        self.report = folder / 'report'
        keep = {name: value for name, value in os.environ.items()
                if not name.startswith(('NPUSIM_', 'ASAN_', 'TSAN_', 'PYTEST_', 'PYTHON'))}
        self.env = dict(keep, NPUSIM_NODE='touch-{}'.format(os.getpid()), NPUSIM_BACKEND='sim',
                        NPUSIM_REPORT_FILE=str(self.report), LC_ALL='C.UTF-8',
                        LD_LIBRARY_PATH=os.path.dirname(self.acl), PYTHONDONTWRITEBYTECODE='1')

    def cc(self, output, *args):
        """Compiles; 77 where the compiler lacks a sanitizer."""
        command = [*self.options.cc.split(), '-g', '-o', str(self.folder / output), *map(str, args)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            said = '{}:\n{}'.format(' '.join(command), done.stdout)
            skip(said) if '-fsanitize' in said else sys.exit(said)
        return str(self.folder / output)

    def program(self, output, *flags):
        return self.cc(output, *flags, '-I', self.options.include, SOURCE, self.acl)

    def library(self):
        return self.program('libtouch.so', '-shared', '-fPIC')

    def run(self, command, env=()):
        done = subprocess.run(list(map(str, command)), env={**self.env, **dict(env)},
                              cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        reports = self.report.read_text() if self.report.exists() else ''
        self.report.unlink(missing_ok=True)
        return done, reports

    def compare(self, name, command, *seen, same_output=True, env=lambda kind: (),
                on_stderr=True, lost=None):
        """command(kind) for both kinds. `seen` is what the program itself prints in both, `lost`
        what a tool says that lost a race of its own: then once more."""
        for _ in range(20):
            results = [self.run(command(kind), env(kind)) for kind in KINDS]
            if lost is None or all(lost not in run.stderr for run, _ in results):
                break
        (device, reports), (plain, none) = results
        problems = []
        if device.returncode != plain.returncode:
            problems.append('the status is not that of the program alone')
        if same_output and device.stdout != plain.stdout:
            problems.append('stdout is not that of the program alone')
        if not REPORT.fullmatch(reports) or none:
            problems.append('the report file has not just one report')
        if len(REPORT.findall(device.stderr)) != on_stderr or REPORT.search(plain.stderr):
            problems.append('stderr has not just one report')
        for text in seen:
            if text not in plain.stdout + plain.stderr:
                skip('{} does not say {!r} of a program alone: {}'.format(name, text, plain))
            if text not in device.stdout + device.stderr:
                problems.append('{!r} is missing'.format(text))
        print('{}: {}'.format(name, '; '.join(problems) or 'good'), flush=True)
        if problems:
            for run, reports in results:
                print(run.args, run.returncode, run.stdout, run.stderr, reports, sep='\n')
        return not problems


# ---- the environments ----

def plain(rig):
    program = rig.program('touch')
    return rig.compare('no handler', lambda kind: [program, kind], 'before')


def sanitizer(rig, name, says):
    program = rig.program('touch-' + name, '-fsanitize=' + name)
    source = rig.folder / 'forks.c'
    source.write_text(FORKS)
    forks = rig.cc('forks', '-fsanitize=' + name, '-I', rig.options.include, source, rig.acl,
                   '-pthread')
    done, _ = rig.run([forks], {'NPUSIM_VALIDATE': 'on', name[0].upper() + 'SAN_OPTIONS': ''})
    good = done.returncode == 0 and re.fullmatch(
        r'npusim.*warn: aclrtFree: .* by aclrtFree, fails at .*\n', done.stderr)
    if not good:
        print(done)
    if rig.options.npusim:
        done, _ = rig.run([os.path.abspath(rig.options.npusim), 'record', '--preload',
                           '-o', 'trace', '--', forks],
                          {'ASAN_OPTIONS': 'verify_asan_link_order=0'})
        if done.returncode != 0 or ' malloc ' not in rig.folder.joinpath('trace').read_text():
            print(done)
            good = False
    return rig.compare(name, lambda kind: [program, kind], 'before', says) and good


def asan(rig):
    return sanitizer(rig, 'address', 'AddressSanitizer: SEGV on unknown address')


def tsan(rig):
    return sanitizer(rig, 'thread', 'ThreadSanitizer: SEGV on unknown address')


def leaks(rig):
    programs = {}
    for name, text in dict(leaves=LEAVES, loses=LOSES).items():
        source = rig.folder / (name + '.c')
        source.write_text(text)
        programs[name] = rig.cc(name, '-fsanitize=address', '-I', rig.options.include, source,
                                rig.acl, '-pthread')
    good = True
    for name, args, settings in [('leaves', [], {'NPUSIM_LEAKS': 'off'}),
                                 ('leaves', [], {'NPUSIM_LEAKS': 'off', 'NPUSIM_STACKS': 'full'}),
                                 ('leaves', ['gives back'], {'NPUSIM_LEAKS': 'fail'}),
                                 ('leaves', ['gives back'], {'NPUSIM_VALIDATE': 'on'}),
                                 ('loses', [], {}), ('loses', [], {'NPUSIM_VALIDATE': 'on'})]:
        done, _ = rig.run([programs[name], *args], {'ASAN_OPTIONS': 'detect_leaks=1', **settings})
        for why in 'detect_leaks is not supported', 'LeakSanitizer has encountered a fatal error':
            if why in done.stderr:
                skip(done.stderr)
        found = re.findall(r'leak of .* byte.*|SUMMARY: .*', done.stderr) or done.stderr
        right = ['leak of 5000 byte(s) in 1 object(s) allocated from:',
                 'leak of 70 byte(s) in 1 object(s) allocated from:',
                 'SUMMARY: AddressSanitizer: 5070 byte(s) leaked in 2 allocation(s).']
        if (done.stdout, done.returncode, found) != (('', 0, '') if name == 'leaves'
                                                     else ('', 1, right)):
            print(done)
            good = False
    return good


def write_python(rig):
    rig.folder.joinpath('touch.py').write_text(PYTHON_TOUCH.format(program=rig.library()))
    rig.folder.joinpath('test_touch.py').write_text(PYTEST_FILE)


def faulthandler(rig):
    write_python(rig)
    scripts = {
        'before': 'from touch import *; faulthandler.enable(); touch(sys.argv[1])',
        'after': 'from touch import *; p = target(sys.argv[1]); faulthandler.enable(); '
                 'program.touch_write(p)',
        'disabled': 'from touch import *; faulthandler.enable(); target(sys.argv[1]); '
                    'faulthandler.disable(); touch(sys.argv[1])',
        'enabled again': 'from touch import *; faulthandler.enable(); target(sys.argv[1]); '
                         'faulthandler.disable(); p = target(sys.argv[1]); '
                         'faulthandler.enable(); program.touch_write(p)',
    }
    return all([rig.compare('faulthandler ' + name,
                            lambda kind, text=text: [sys.executable, '-c', text, kind],
                            *([] if name == 'disabled' else ['Segmentation fault']))
                for name, text in scripts.items()])


def pytest_command(module):
    for python in sys.executable, '/usr/bin/python3':
        found = shutil.which(python) and subprocess.run(
            [python, '-c', 'import ' + module], stderr=subprocess.DEVNULL).returncode == 0
        if found:
            return [python, '-m', 'pytest', '-p', 'no:cacheprovider', 'test_touch.py']
    return skip('there is no {} for Python'.format(module))


def pytest(rig, *more, module='pytest', says=('Fatal Python error: Segmentation fault',)):
    command = pytest_command(module)
    write_python(rig)
    return rig.compare(module, lambda kind: [*command, *more], *says, same_output=False,
                       env=lambda kind: [('KIND', kind)], on_stderr=False)


def xdist(rig):
    return pytest(rig, '-n', '1', module='xdist',
                  says=("crashed while running 'test_touch.py::test_touch'", '1 failed, 2 passed'))


def npusim_run(rig):
    """README's example: the report reaches who started it, once."""
    command, started = pytest_command('pytest'), [os.path.abspath(rig.options.npusim), 'run', '--']
    write_python(rig)
    own = rig.env.pop('NPUSIM_REPORT_FILE')
    if not rig.run([*started, 'printenv', 'NPUSIM_REPORT_FILE'])[0].stdout:
        rig.env['NPUSIM_REPORT_FILE'] = own
    done, reports = rig.run([*started, *command], [('KIND', 'device')])
    good = done.returncode == -11 and len(REPORT.findall(done.stderr + reports)) == 1
    if not good:
        print(done, reports, sep='\n')
    return good


def gdb(rig):
    debugger, program = tool('gdb'), rig.program('touch')
    once_more = dict(device=['-ex', 'continue'], plain=[])  # the signal as it is passed on
    return rig.compare('gdb', lambda kind: [debugger, '-nx', '-batch', '-ex', 'run', '-ex', 'bt 1',
                                            *once_more[kind], '-ex', 'continue', '--args',
                                            program, kind],
                       'received signal SIGSEGV', 'touch_write', 'terminated with signal SIGSEGV',
                       same_output=False, lost='get registers: No such process')


def java(rig):
    jvm, compiler = tool('java'), tool('javac')
    shown = subprocess.run([jvm, '-XshowSettings:properties', '-version'], stderr=subprocess.PIPE,
                           text=True).stderr
    home = re.search(r'java\.home = (.*)', shown)
    headers = pathlib.Path(home.group(1) if home else '/') / 'include'
    if not (headers / 'jni.h').exists():
        skip('there is no jni.h in {}'.format(headers))
    rig.folder.joinpath('Touch.java').write_text(JAVA)
    rig.folder.joinpath('jni.c').write_text(JNI)
    library = rig.cc('libtouch.so', '-shared', '-fPIC', '-I', headers, '-I', headers / 'linux',
                     '-I', rig.options.include, rig.folder / 'jni.c', SOURCE, rig.acl)
    subprocess.run([compiler, '-J-XX:TieredStopAtLevel=1', '-J-XX:+UseSerialGC', '-proc:none', '-d',
                    rig.folder, rig.folder / 'Touch.java'], check=True)
    return rig.compare('java', lambda kind: [jvm, '-Xint', '-XX:-CreateCoredumpOnCrash',
                                             '-XX:ErrorFile=' + str(rig.folder / 'hs_err.log'),
                                             '-XX:+UseSerialGC', '-cp', rig.folder, 'Touch',
                                             library, kind],
                       '20000 null checks', 'SIGSEGV (0xb) at pc', 'touch_write',
                       same_output=False)


def go(rig):
    compiler = tool('go')
    rig.library()
    rig.folder.joinpath('main.go').write_text(GO)
    env = dict(rig.env, CGO_LDFLAGS='-L{0} -ltouch -Wl,-rpath,{0}'.format(rig.folder),
               GO111MODULE='off', GOFLAGS='')
    env.setdefault('GOCACHE', str(rig.folder / 'cache'))
    program = rig.folder / 'go-touch'
    built = subprocess.run([compiler, 'build', '-o', program, 'main.go'], cwd=rig.folder, env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if built.returncode != 0:
        skip('go builds nothing here:\n' + built.stdout)
    return all([rig.compare('go, touch in ' + where, lambda kind: [program, kind, where],
                            'nil pointer dereference', says)
                for where, says in [('c', 'unexpected signal during runtime execution'),
                                    ('go', 'unexpected fault address')]])


ENVIRONMENTS = dict(plain=plain, asan=asan, tsan=tsan, leaks=leaks, faulthandler=faulthandler,
                    pytest=pytest, xdist=xdist, run=npusim_run, gdb=gdb, java=java, go=go)


def main():
    parser = argparse.ArgumentParser()
    for name in '--acl', '--include', '--cc', '--npusim':
        parser.add_argument(name, required=name != '--npusim')
    parser.add_argument('environment', choices=ENVIRONMENTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='npusim-touch-') as folder:
        good = ENVIRONMENTS[options.environment](Rig(options, pathlib.Path(folder)))
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
