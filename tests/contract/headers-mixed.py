#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# A program may take some headers from npusim and others from CANN. Those of the ACL, in any order:
# CANN's are stood in for by copies under the guards that CANN's have, with a header beside them
# that npusim has not. Those of the runtime and the driver: by types that CANN's declare otherwise.
# usage: headers-mixed.py --root ROOT --cc CC --cxx CXX

import argparse
import itertools
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# The guards of CANN 8.5 to 9.x, include/external/acl.
GUARDS = {
    'acl/acl.h': 'INC_EXTERNAL_ACL_ACL_H_',
    'acl/acl_base.h': 'INC_EXTERNAL_ACL_ACL_BASE_H_',
    'acl/acl_base_rt.h': 'INC_EXTERNAL_ACL_ACL_BASE_RT_H_',
    'acl/acl_rt.h': 'INC_EXTERNAL_ACL_ACL_RT_H_',
    'acl/error_codes/rt_error_codes.h': '__INC_EXTERNEL_RT_ERROR_CODES_H__',
}
THEIRS_ALONE = '''#ifndef INC_EXTERNAL_ACL_PROF_H_
#define INC_EXTERNAL_ACL_PROF_H_
#include "acl_base.h"
aclError aclprofInit(const char *path, size_t length);
#endif
'''
# Of the runtime: CANN's come first, since they need more of each other than npusim's have.
THEIRS_RUNTIME = '''#ifndef CCE_RUNTIME_RT_EXTERNAL_BASE_H
#define CCE_RUNTIME_RT_EXTERNAL_BASE_H
#include <stdint.h>
typedef int32_t rtError_t;
static const int32_t RT_ERROR_NONE = 0;
typedef void* rtStream_t;
typedef void* rtNotify_t;
#endif
#ifndef CCE_RUNTIME_RT_EXTERNAL_DEVICE_H
#define CCE_RUNTIME_RT_EXTERNAL_DEVICE_H
typedef enum { RT_PROCESS_CP1 } rtDevResProcType_t;
typedef struct { uint32_t dieId; rtDevResProcType_t procType; } rtDevResInfo;
typedef struct { uint64_t* resAddress; uint32_t* len; } rtDevResAddrInfo;
#endif
#ifndef CCE_RUNTIME_RT_EXTERNAL_MEM_H
#define CCE_RUNTIME_RT_EXTERNAL_MEM_H
typedef enum tagRtMemcpyKind { RT_MEMCPY_HOST_TO_HOST = 0, RT_MEMCPY_RESERVED } rtMemcpyKind_t;
#endif
'''
THEIRS_MANAGEMENT = '''#ifndef __ASCEND_HAL_ERROR_H__
#define __ASCEND_HAL_ERROR_H__
typedef enum tagDrvError { DRV_ERROR_NONE = 0, DRV_ERROR_NO_DEVICE = 1 } drvError_t;
#endif
int dsmi_get_device_count(int *device_count);
'''
USES = 'aclrtStream stream; aclError error = ACL_ERROR_RT_STREAM_ABORT; aclrtNotify notify;\n'

parser = argparse.ArgumentParser()
for option in ('--root', '--cc', '--cxx'):
    parser.add_argument(option)
args = parser.parse_args()
ours = pathlib.Path(args.root).resolve() / 'include'


def write_theirs(folder):
    for path, guard in GUARDS.items():
        text = (ours / path).read_text()
        own = re.search(r'#ifndef (\w+)\n#define \1\n', text).group(1)
        text = text.replace(own, guard)
        text = text.replace('"rt/', '"{}/acl/rt/'.format(ours))
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / 'acl/acl_prof.h').write_text(THEIRS_ALONE)
    (folder / 'dev.h').write_text(THEIRS_RUNTIME)
    (folder / 'dsmi_common_interface.h').write_text(THEIRS_MANAGEMENT)


def compiles(compiler, suffix, includes, folder):
    source = folder / ('mixed' + suffix)
    source.write_text(''.join('#include "{}"\n'.format(path) for path in includes) + USES)
    done = subprocess.run([*shlex.split(compiler), '-fsyntax-only', '-Wall', '-Wextra', '-Werror',
                           str(source)], stderr=subprocess.PIPE, text=True)
    return done.stderr if done.returncode else ''


number = failed = 0
with tempfile.TemporaryDirectory(prefix='npusim-headers-') as name:
    theirs = pathlib.Path(name)
    write_theirs(theirs)
    acl = ours / 'acl/acl.h'
    rows = [(path, acl, True) for path in [*GUARDS, 'acl/acl_prof.h']]
    rows += [('dev.h', ours / 'runtime/rt.h', False),
             ('dsmi_common_interface.h', ours / 'npusim/driver.h', True)]
    for (path, own, any_order), (compiler, suffix) in itertools.product(
            rows, [(args.cc, '.c'), (args.cxx, '.cpp')]):
        pair = [theirs / path, own]
        for order, includes in [('first', pair), ('last', pair[::-1])][:1 + any_order]:
            number += 1
            wrong = compiles(compiler, suffix, [*includes, acl], theirs)
            failed += bool(wrong)
            print('{}ok {} - CANN\'s {} {}, {}'.format('not ' if wrong else '', number, path,
                                                      order, suffix))
            print(''.join('# {}\n'.format(line) for line in wrong.splitlines()[:4]), end='')
print('1..{}'.format(number))
sys.exit(bool(failed))
