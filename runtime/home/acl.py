# SPDX-License-Identifier: Apache-2.0
"""pyACL's functions for memory, devices, streams and events, over libascendcl.so.

As there, a function returns its code, or a tuple of what it got and the code; pointers, handles,
streams and events are ints; an argument of a wrong type raises. Operators, models and media are not
here: their names are missing.
"""

import ctypes
import json
import operator
import os
import sys
import tempfile
import types

try:
    _library = ctypes.CDLL('libascendcl.so')
except OSError as why:
    raise ImportError('{}; npusim run puts it on the path of its program'.format(why)) from why

_u64, _size, _i32, _u32 = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int32, ctypes.c_uint32
_ptr = ctypes.c_void_p


class _Location(ctypes.Structure):
    _fields_ = [('id', _u32), ('type', ctypes.c_int)]


class _Property(ctypes.Structure):
    _fields_ = [('handleType', ctypes.c_int), ('allocationType', ctypes.c_int),
                ('memAttr', ctypes.c_int), ('location', _Location), ('reserve', _u64)]


def _value(kind, given):
    """An argument as the library takes it; None is no pointer."""
    if kind is _Property:
        place = given.get('location', {})
        return ctypes.byref(_Property(
            given.get('handleType', 0), given.get('allocationType', 0), given.get('memAttr', 0),
            _Location(place.get('id', 0), place.get('type', 0)), given.get('reserve', 0)))
    return kind(operator.index(given))


def _bind(name, kinds, results=()):
    """The function `name`, whose results come before its arguments where a pointer or a handle is
    made (`results` as a list), else behind them."""
    function = getattr(_library, name)
    first = isinstance(results, list)

    def call(*args):
        if len(args) != len(kinds):
            raise TypeError('{} takes {} argument{}, not {}'.format(
                name, len(kinds), '' if len(kinds) == 1 else 's', len(args)))
        values = [_value(kind, given) for kind, given in zip(kinds, args)]
        cells = [kind() for kind in results]
        places = [ctypes.byref(cell) for cell in cells]
        code = function(*(places + values if first else values + places))
        return (*(cell.value or 0 for cell in cells), code) if cells else code

    call.__name__ = call.__qualname__ = name
    return call


# ---- acl ----

def init(config=None):
    """The path of a JSON file, or what would be in one."""
    if config is None:
        return _library.aclInit(None)
    if os.path.exists(config):
        return _library.aclInit(os.fsencode(config))
    json.loads(config)
    with tempfile.NamedTemporaryFile('w', suffix='.json') as stream:
        stream.write(config)
        stream.flush()
        return _library.aclInit(os.fsencode(stream.name))


def finalize():
    return _library.aclFinalize()


def get_soc_name():
    _library.aclrtGetSocName.restype = ctypes.c_char_p
    name = _library.aclrtGetSocName()
    return name.decode() if name else None


def get_recent_err_msg():
    _library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    text = _library.aclGetRecentErrMsg()
    return text.decode('utf-8', 'replace') if text else None


# ---- acl.rt ----

# Python's name; the library's; arguments; results, a list where they are the first arguments.
_RT = [
    ('set_device', 'aclrtSetDevice', (_i32,)),
    ('reset_device', 'aclrtResetDevice', (_i32,)),
    ('get_device', 'aclrtGetDevice', (), [_i32]),
    ('get_device_count', 'aclrtGetDeviceCount', (), [_u32]),
    ('get_run_mode', 'aclrtGetRunMode', (), [ctypes.c_int]),
    ('synchronize_device', 'aclrtSynchronizeDevice', ()),
    ('device_get_bare_tgid', 'aclrtDeviceGetBareTgid', (), [_i32]),
    ('create_context', 'aclrtCreateContext', (_i32,), [_ptr]),
    ('destroy_context', 'aclrtDestroyContext', (_ptr,)),
    ('set_context', 'aclrtSetCurrentContext', (_ptr,)),
    ('get_context', 'aclrtGetCurrentContext', (), [_ptr]),
    ('malloc', 'aclrtMalloc', (_size, ctypes.c_int), [_ptr]),
    ('free', 'aclrtFree', (_ptr,)),
    ('malloc_host', 'aclrtMallocHost', (_size,), [_ptr]),
    ('free_host', 'aclrtFreeHost', (_ptr,)),
    ('memcpy', 'aclrtMemcpy', (_ptr, _size, _ptr, _size, ctypes.c_int)),
    ('memcpy_async', 'aclrtMemcpyAsync', (_ptr, _size, _ptr, _size, ctypes.c_int, _ptr)),
    ('memset', 'aclrtMemset', (_ptr, _size, _i32, _size)),
    ('memset_async', 'aclrtMemsetAsync', (_ptr, _size, _i32, _size, _ptr)),
    ('get_mem_info', 'aclrtGetMemInfo', (ctypes.c_int,), (_size, _size)),
    ('create_stream', 'aclrtCreateStream', (), [_ptr]),
    ('destroy_stream', 'aclrtDestroyStream', (_ptr,)),
    ('synchronize_stream', 'aclrtSynchronizeStream', (_ptr,)),
    ('stream_wait_event', 'aclrtStreamWaitEvent', (_ptr, _ptr)),
    ('create_event', 'aclrtCreateEvent', (), [_ptr]),
    ('destroy_event', 'aclrtDestroyEvent', (_ptr,)),
    ('record_event', 'aclrtRecordEvent', (_ptr, _ptr)),
    ('query_event_status', 'aclrtQueryEventStatus', (_ptr,), (ctypes.c_int,)),
    ('synchronize_event', 'aclrtSynchronizeEvent', (_ptr,)),
    ('event_elapsed_time', 'aclrtEventElapsedTime', (_ptr, _ptr), [ctypes.c_float]),
    ('reserve_mem_address', 'aclrtReserveMemAddress', (_size, _size, _ptr, _u64), [_ptr]),
    ('release_mem_address', 'aclrtReleaseMemAddress', (_ptr,)),
    ('malloc_physical', 'aclrtMallocPhysical', (_size, _Property, _u64), [_ptr]),
    ('free_physical', 'aclrtFreePhysical', (_ptr,)),
    ('map_mem', 'aclrtMapMem', (_ptr, _size, _size, _ptr, _u64)),
    ('unmap_mem', 'aclrtUnmapMem', (_ptr,)),
    ('mem_get_allocation_granularity', 'aclrtMemGetAllocationGranularity',
     (_Property, ctypes.c_int), (_size,)),
    ('mem_export_to_shareable_handle', 'aclrtMemExportToShareableHandle',
     (_ptr, ctypes.c_int, _u64), (_u64,)),
    ('mem_import_from_shareable_handle', 'aclrtMemImportFromShareableHandle', (_u64, _i32),
     (_ptr,)),
]

rt = types.ModuleType('acl.rt', 'Devices, contexts, memory, streams and events.')
for _row in _RT:
    setattr(rt, _row[0], _bind(*_row[1:]))


def _mem_set_pid_to_shareable_handle(handle, pids):
    return _library.aclrtMemSetPidToShareableHandle(
        _value(_u64, handle), (_i32 * len(pids))(*pids), _size(len(pids)))


rt.mem_set_pid_to_shareable_handle = _mem_set_pid_to_shareable_handle

# ---- acl.util ----

util = types.ModuleType('acl.util', 'Addresses of Python objects, and objects of addresses.')


def _bytes_to_ptr(data):
    """Where the bytes lie, as long as `data` lives."""
    if not isinstance(data, bytes):
        raise TypeError('bytes are wanted, not {!r}'.format(type(data)))
    return ctypes.cast(ctypes.c_char_p(data), _ptr).value


def _numpy_to_ptr(array):
    return array.__array_interface__['data'][0]


def _ptr_to_bytes(ptr, size):
    return ctypes.string_at(ptr, size)


# By NumPy's type numbers.
_NUMPY_TYPES = {0: '?', 1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'i8', 8: 'u8',
                9: 'i8', 10: 'u8', 11: 'f4', 12: 'f8', 14: 'c8', 15: 'c16', 23: 'f2'}


def _ptr_to_numpy(ptr, shape, number):
    """An array over the memory, which stays its owner's."""
    import numpy  # an application that calls this has it; the others do without
    kind = numpy.dtype(_NUMPY_TYPES[number])
    count = 1
    for extent in shape:
        count *= extent
    memory = (ctypes.c_char * (count * kind.itemsize)).from_address(ptr)
    return numpy.frombuffer(memory, dtype=kind).reshape(shape)


util.bytes_to_ptr, util.numpy_to_ptr = _bytes_to_ptr, _numpy_to_ptr
util.ptr_to_bytes, util.ptr_to_numpy = _ptr_to_bytes, _ptr_to_numpy

for _module in rt, util:  # import acl.rt
    sys.modules[_module.__name__] = _module
