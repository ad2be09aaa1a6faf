#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Call stacks of programs in Python: its functions and lines follow the frames of C, whether the
# caller has dropped the interpreter's lock (ctypes.CDLL) or holds it. Prints TAP.

import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'harness'))
from tap import Skip, run_cases

LIBRARY, INCLUDE = map(os.path.abspath, sys.argv[1:3])
CC = sys.argv[3]
KNOWN = ((3, 9), (3, 13)) # runtime/base/stack.c
NODE = 'python-{}'.format(os.getpid())

START = '''
import ctypes, threading
acl = ctypes.{loader}({library!r}, mode=ctypes.RTLD_LOCAL)
acl.aclInit(None)
'''
PROGRAM = START + '''
class Pool:
    def take(self):
        memory = ctypes.c_void_p()
        acl.aclrtMalloc(ctypes.byref(memory),  # 9
                        ctypes.c_size_t(2 << 20), 0)
        return memory
def größe_步(pool):
    yield pool.take()  # 13
def step():
    acl.aclrtSetDevice(0)
    for memory in größe_步(Pool()):  # 16
        acl.aclrtFree(memory)
        acl.aclrtFree(memory)  # 18
def main():
    {how}  # 20
main()
'''
MODULE = '''
#include <Python.h>
#include <acl/acl.h>

__attribute__((noinline)) static void free_twice(void)
{
	void *memory;

	aclrtMalloc(&memory, 2 << 20, ACL_MEM_MALLOC_HUGE_FIRST);
	aclrtFree(memory);
	aclrtFree(memory);
}

static PyObject *held(PyObject *self, PyObject *args)
{
	free_twice();
	Py_RETURN_NONE;
}

static PyObject *dropped(PyObject *self, PyObject *args)
{
	Py_BEGIN_ALLOW_THREADS
	free_twice();
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = { { "held", held, METH_NOARGS, NULL },
				 { "dropped", dropped, METH_NOARGS, NULL },
				 { NULL, NULL, 0, NULL } };
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "twice", NULL, -1, methods };
PyMODINIT_FUNC PyInit_twice(void);
PyMODINIT_FUNC PyInit_twice(void)
{
	return PyModule_Create(&module);
}
'''
USE_MODULE = START + '''
acl.aclrtSetDevice(0)
import twice
def step():
    twice.{how}()  # 9
step()
'''


def run(folder, text, **more):
    pathlib.Path(folder, 'train.py').write_text(text, encoding='utf-8')
    env = {name: value for name, value in os.environ.items() if not name.startswith('NPUSIM_')}
    env.update({'NPUSIM_NODE': NODE, 'NPUSIM_DEVICES': '1', 'NPUSIM_HBM': '1G',
                'NPUSIM_LEAKS': 'off', 'NPUSIM_FAILURES': 'off', 'NPUSIM_VALIDATE': 'on',
                'PYTHONPATH': folder, 'LD_LIBRARY_PATH': os.path.dirname(LIBRARY), **more})
    done = subprocess.run([sys.executable, 'train.py'], env=env, stderr=subprocess.PIPE,
                          encoding='utf-8', check=False, timeout=60, cwd=folder)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stderr


def expect(text, *frames):
    """A stack that has these frames at its inner end."""
    wanted = ''.join(r'    {}\n'.format(frame) for frame in frames)
    if re.search(r':\n' + wanted, text) is None:
        raise AssertionError('{}\nnot in\n{}'.format(wanted, text))


def ctypes_frames(folder, loader, how, *outer):
    text = run(folder, PROGRAM.format(loader=loader, library=LIBRARY, how=how))
    expect(text, 'aclrtFree', r'step at \S*/train.py:18', *outer)
    expect(text, 'aclrtMalloc', r'take at \S*/train.py:9', r'größe_步 at \S*/train.py:13',
           r'step at \S*/train.py:16', *outer)


MAIN = (r'main at \S*/train.py:20',)


def lock_dropped(folder):
    ctypes_frames(folder, 'CDLL', 'step()', *MAIN)


def lock_held(folder):
    ctypes_frames(folder, 'PyDLL', 'step()', *MAIN)


def of_a_thread(folder):
    ctypes_frames(folder, 'CDLL', 't = threading.Thread(target=step); t.start(); t.join()',
                  r'run at \S*threading.py:\d+')


def none_wanted(folder):
    text = run(folder, PROGRAM.format(loader='CDLL', library=LIBRARY, how='step()'),
               NPUSIM_STACKS='off')
    if 'double-free' not in text or 'train.py' in text:
        raise AssertionError(text)


def extension(folder, how):
    headers = sysconfig.get_paths()['include']
    if not os.path.exists(os.path.join(headers, 'Python.h')):
        raise Skip('no Python.h in {} (package python3-dev)'.format(headers))
    source = pathlib.Path(folder, 'twice.c')
    source.write_text(MODULE, encoding='utf-8')
    subprocess.run(shlex.split(CC) + ['-g', '-O0', '-shared', '-fPIC', '-I', headers, '-I', INCLUDE,
                                      '-o', os.path.join(folder, 'twice.so'), str(source), LIBRARY],
                   check=True)
    text = run(folder, USE_MODULE.format(loader='CDLL', library=LIBRARY, how=how))
    expect(text, 'aclrtFree', r'free_twice at \S*twice.c:11', how + r' at \S*twice.c:\d+',
           r'step at \S*/train.py:9', r'<module> at \S*/train.py:10')


def extension_lock_held(folder):
    extension(folder, 'held')


def extension_lock_dropped(folder):
    extension(folder, 'dropped')


TESTS = [lock_dropped, lock_held, of_a_thread, none_wanted, extension_lock_held,
         extension_lock_dropped]

if KNOWN[0] <= sys.version_info[:2] <= KNOWN[1]:
    run_cases([(test.__name__, test) for test in TESTS])
print('1..0 # SKIP frames of Python {}.{} are not known'.format(*sys.version_info))
