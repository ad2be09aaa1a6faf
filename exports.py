#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes what the build derives from headers and lists, so that a name stands in one place:
#
#   exports.py map OUT DEPFILE LIST        the version script of a library from its NAME.symbols
#   exports.py unmodelled OUT HEADER       ERROR(), POINTER(), UINT32(): the functions of a header
#   exports.py cuda OUT HEADER NAMES       CUDA_MODELLED(X), CUDA_UNMODELLED(X), CUDA_ALIASES(X) of
#                                          names.txt: what a header declares is modelled, and has
#                                          CUDA_CHECKS_name, CUDA_STREAM_name;
#                                          CUDART_PARAMETERS_name, CUDART_ARGUMENTS_name, as the
#                                          runtime API has them
#   exports.py cudart OUT MAP MAJOR NODE CUDA NAMES PROPERTIES SOURCES...
#                                          CUDART_EARLY_SAME(X), CUDART_SAME(X),
#                                          CUDART_UNMODELLED(X), CUDART_HARMLESS(X),
#                                          CUDART_TWINS(X), CUDART_ERRORS(X), CUDART_FIELDS(X),
#                                          and the version script of libcudart of a major version:
#                                          what the sources define, or cuda.h has under the driver's
#                                          name, is modelled; cuda.h has the codes
#   exports.py doors OUT FACE HEADERS...   FACE_DOORS(X): name, parameters, arguments of what
#                                          answers a code, and FACE_PARAMETERS_name of each;
#                                          FACE_CODES(X): the codes' names
#   exports.py wrapped OUT FOLDER HEADERS  PRELOAD_FUNCTIONS(X) of the wrappers in a folder, and
#                                          PRELOAD_PARAMETERS_name, PRELOAD_ARGUMENTS_name of each
#
# A list has one name a line, or "@declared PATH PREFIX": the functions of that prefix which a
# header, or the headers of a folder, declare; or "@hal PATH": the HAL's functions that a header
# lists or exports; or "@names PATH": the first word of each line; or "@wrapped FOLDER HEADERS":
# the wrappers in a folder, which the headers must declare. Paths are the project's. A line that
# names nothing, a name twice, or a wrapper that no header declares ends the build.

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent

HAL_FUNCTION = re.compile(r'^(?:(?:NPU_CALL|NPU_QUERY|HAL_CALL|REFUSED)\('
                          r'|(?:NPU_OP|UNMODELLED)\([^,]+, [^,]+, |HAL_EXPORT [^;(]*?)(\w+)[(),;]',
                          re.MULTILINE)


def text_of(path):
    """A file without comments, directives and continued lines."""
    text = re.sub(r'/\*.*?\*/', '', path.read_text(), flags=re.DOTALL).replace('\\\n', '\n')
    return re.sub(r'^[ \t]*#.*$', '', text, flags=re.MULTILINE)


def headers_of(path):
    return sorted(path.rglob('*.h')) if path.is_dir() else [path]


def declarations(path, prefix):
    """(type, name, parameters) of each function that a header declares."""
    function = re.compile(r'^(.*?)\b(' + prefix + r'\w+)\s*(\(.*\))$', re.DOTALL)
    for statement in text_of(path).split(';'):
        statement = ' '.join(statement.rpartition('{')[2].split())
        found = function.match(statement)
        # the name of a pointer to a function stands in parentheses
        if found and '(' not in found.group(1) and 'typedef' not in statement:
            before = re.sub(r'\b[A-Z]+(?:_[A-Z]+)+\b', '', found.group(1))
            yield ' '.join(before.split()), found.group(2), found.group(3)


def wrappers(folder, headers):
    """Name to parameters of the functions that the sources of a folder stand in front of."""
    defined = re.compile(r'^[A-Z_]+\((acl\w+)', re.MULTILINE)
    names = sorted(name for source in folder.glob('*.c')
                   for name in defined.findall(source.read_text()))
    known = {name: parameters for header in headers_of(headers)
             for _, name, parameters in declarations(header, 'acl')}
    strangers = [name for name in names if name not in known]
    if strangers:
        sys.exit('{}: no header declares {}'.format(folder, ' '.join(strangers)))
    return {name: known[name] for name in names}


def arguments_of(parameters):
    names = re.findall(r'(\w+)\s*(?:\[\w*\])?\s*[,)]', parameters)
    return '({})'.format(', '.join(name for name in names if name != 'void'))


def lines_of(path):
    """(first word, second or '') of each line that is no comment."""
    for line in path.read_text().splitlines():
        words = line.partition('#')[0].split()
        if words:
            yield words[0], ' '.join(words[1:])


def names_in(list_path):
    """The names of a list, and the files that they came from."""
    names, files = [], [list_path]
    for line in list_path.read_text().splitlines():
        words = line.partition('#')[0].split()
        found, paths = words, []
        if words and words[0].startswith('@'):
            paths = headers_of(ROOT / words[1])
        if paths and words[0] == '@declared':
            found = [name for path in paths for _, name, _ in declarations(path, words[2])]
        elif paths and words[0] == '@hal':
            found = HAL_FUNCTION.findall(paths[0].read_text())
        elif paths and words[0] == '@vendor-hal':
            found = [name for name in HAL_FUNCTION.findall(paths[0].read_text())
                     if not name.startswith('npusim')]
        elif words and words[0] == '@wrapped':
            paths = sorted((ROOT / words[1]).glob('*.c'))
            found = list(wrappers(ROOT / words[1], ROOT / words[2]))
        elif paths and words[0] == '@names':
            found = [name for name, _ in lines_of(paths[0])]
        if words and not found:
            sys.exit('{}: "{}" names nothing'.format(list_path, line))
        names += found
        files += paths
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit('{}: named twice: {}'.format(list_path, ' '.join(twice)))
    return sorted(names), files


def write_script(out, names, node=''):
    with open(out, 'w', encoding='ascii') as stream:
        stream.write('{} {{\n\tglobal:\n'.format(node).lstrip())
        stream.writelines('\t{};\n'.format(name) for name in names)
        stream.write('\tlocal: *;\n};\n')


def write_map(out, depfile, list_path):
    names, files = names_in(pathlib.Path(list_path).resolve())
    write_script(out, names)
    with open(depfile, 'w', encoding='utf-8') as stream:
        stream.write('{}: {}\n'.format(pathlib.Path(out).name, ' '.join(map(str, files))))


def write_unmodelled(out, header):
    with open(out, 'w', encoding='ascii') as stream:
        for kind, name, parameters in declarations(pathlib.Path(header), 'acl'):
            if kind == 'aclError':
                stream.write('ERROR({}, {})\n'.format(name, parameters))
            elif kind == 'uint32_t':
                stream.write('UINT32({}, {})\n'.format(name, parameters))
            elif kind.endswith('*') or kind.startswith('aclrt'):  # handles are pointers
                stream.write('POINTER({}, {}, {})\n'.format(kind, name, parameters))
            else:
                sys.exit('{}: {} returns {}, and there is no answer of that type'.format(
                    header, name, kind))


def write_cuda(out, header, names):
    parameters = {name: parameters for _, name, parameters in
                  declarations(pathlib.Path(header), 'cu')}
    declared = set(parameters)
    modelled, unmodelled, aliases = [], [], []
    for name, since in lines_of(pathlib.Path(names)):
        plain = re.sub(r'_pt[sd][sz]$', '', name)
        if since:
            rows = modelled if name in declared else unmodelled
            rows.append((name, re.sub(r'_v\d+$', '', plain), since))
            continue
        own = plain != name and plain in declared
        aliases.append((name, plain if own else plain + '_v2'))
        if aliases[-1][1] not in declared:
            sys.exit('{}: {} is the second name of {}, which {} does not have'.format(
                names, *aliases[-1], header))
    strangers = declared - {symbol for symbol, _, _ in modelled}
    if strangers:
        sys.exit('{} lacks {}'.format(names, ' '.join(sorted(strangers))))
    with open(out, 'w', encoding='ascii') as stream:
        write_macro(stream, 'CUDA_MODELLED', modelled)
        write_macro(stream, 'CUDA_UNMODELLED', unmodelled)
        write_macro(stream, 'CUDA_ALIASES', aliases)
        for name in sorted(declared):
            stream.write('#define CUDA_CHECKS_{0} {1}\n#define CUDA_STREAM_{0} {2}\n'.format(
                name, *checks_of(name, parameters[name])))
            stream.write('#define CUDART_PARAMETERS_{0} {1}\n'
                         '#define CUDART_ARGUMENTS_{0} {2}\n'.format(
                             name, *in_runtime(parameters[name])))


def checks_of(call, parameters):
    """What a door of CUDA asks before its function, and the stream in whose context that is: no
    pointer may be NULL, and devices, contexts and streams must be there, but a context that is
    CU_OR_NULL may also be NULL, and a place of memory be the host. cuStreamDestroy refuses the
    default stream first, and asks itself; so does cuCtxGetId, which has another code. A pool is
    looked for under the lock that it is used under."""
    checks, handles, stream = [], [], 'NULL'
    for parameter in parameters.strip('()').split(','):
        name = re.findall(r'\w+', parameter)[-1]
        if 'CU_OR_NULL' not in parameter and re.search(
                r'\*|CUhostFn|CUstreamCallback|AllocationHandle handle', parameter):
            checks.append('cuda_null("{0}", (const void *)(uintptr_t){0}) ?: '.format(name))
        elif parameter.split()[0] == 'CUstream':
            stream = name
        elif re.search(r'\bCUdevice \w+$', parameter) and not call.startswith('cuMem'):
            handles.append('cuda_check_device({}, &(uint32_t){{ 0 }}) ?: '.format(name))
        elif re.search(r'\bCUcontext \w+$', parameter) and call != 'cuCtxGetId':
            null = '!{} ? CUDA_SUCCESS : '.format(name) if 'CU_OR_NULL' in parameter else ''
            handles.append('({}cuda_check_context({}, CUDA_ERROR_INVALID_CONTEXT)) ?: '.format(
                null, name))
    if stream != 'NULL' and call != 'cuStreamDestroy_v2':
        checks.append('cuda_check_stream({}) ?: '.format(stream))
    return ''.join(checks + handles), stream


def in_runtime(parameters):
    """The parameters, whose device pointers are void * and flags int, and the arguments for the
    driver."""
    pairs = []
    for parameter in parameters.replace('long long flags', 'int flags').strip('()').split(','):
        name = re.findall(r'\w+', parameter)[-1]
        kind = re.search(r'CUdeviceptr (\*?)', parameter)
        pairs.append((re.sub(r'CUdeviceptr (\*?)', r'void *\1', parameter),
                      name if not kind else ('OUT({})' if kind.group(1) else 'A({})').format(name)))
    return (('({})'.format(', '.join(part)) for part in zip(*pairs))
            if parameters != '(void)' else (parameters, '()'))


def write_macro(stream, macro, rows):
    stream.write('#define {}(X) \\\n'.format(macro))
    stream.write(' \\\n'.join('\tX({})'.format(', '.join(row)) for row in rows) + '\n')


def runtime_name(name):
    """CUDA_ERROR_NOT_READY is cudaErrorNotReady."""
    return 'cuda' + ''.join(word.capitalize() for word in name.split('_')[1:])


def in_driver(name, declared, major):
    """The driver's function of that name: cudaStreamQuery is cuStreamQuery, cudaHostAlloc
    cuMemHostAlloc, cudaMallocHost cuMemAllocHost. Of two versions CUDA 13 has the newer."""
    stem = name[len('cuda'):]
    stems = [stem, 'Mem' + stem, stem.replace('Malloc', 'MemAlloc')]
    suffixes = ['_v2', ''] if int(major) >= 13 else ['', '_v2']
    return next((found for stem in stems for suffix in suffixes
                 for found in ['cu' + stem + suffix] if found in declared), None)


def in_words(name):
    """cudaErrorInvalidFilterSetting: "invalid filter setting"."""
    return ' '.join(re.findall(r'[A-Z][a-z]*', name)[1:]).lower()


def is_of(words, major):
    """Whether the words, SINCE-UNTIL among them or none, are of that major version of CUDA."""
    since, _, until = next((word for word in words if '-' in word), '-').partition('-')
    return int(since or major) <= int(major) <= int(until or major)


def write_cudart(out, script, major, node, cuda, names, properties, *sources):
    defined = re.compile(r'^(?:CALL|EARLY|SAME|EARLY_SAME)\((\w+)'
                         r'|^EXPORT\b[^(;]*?(\w+)\([^;]*?\)(?:$| CUDA_ANSWERS)', re.MULTILINE)
    texts = [pathlib.Path(source).read_text() for source in sources]
    modelled = {first or second for text in texts for first, second in defined.findall(text)}
    modelled |= {name + suffix for text in texts for suffix in ('', 'Async')
                 for name in re.findall(r'^PAIR\((\w+)', text, re.MULTILINE)}
    errors = {int(code): (runtime_name(name), text) for code, name, text in re.findall(
        r'X\((\d+), (\w+), +"([^"]*)"\)', pathlib.Path(cuda).read_text())}
    declared = {name for _, name, _ in declarations(pathlib.Path(cuda), 'cu')}
    exported, early, same, unmodelled, twins, harmless = [], [], [], [], [], []
    for name, rest in lines_of(pathlib.Path(names)):
        words = rest.split()
        if name.isdigit():
            text = ' '.join(words[1:]) or in_words(words[0])
            errors[int(name)] = (words[0], errors.get(int(name), ('', text))[1])
            continue
        if is_of(words, major):
            suffixes = ['_' + word for word in words if word.startswith('pt')]
            exported += [name + suffix for suffix in ['', *suffixes]]
            twins += [(name, suffix) for suffix in suffixes]
            own = in_driver(name, declared, major)
            if name in modelled:
                continue
            if own:  # what is about devices and threads needs no context
                (early if re.match('cu(Device|Driver|Thread)', own) else same).append((name, own))
            else:
                (harmless if 'harmless' in words else unmodelled).append((name,))
    fields = [(words[0], name, *words[1:3]) for name, rest in lines_of(pathlib.Path(properties))
              for words in [rest.split()] if is_of(words, major)]
    strangers = modelled - {name for name, _ in lines_of(pathlib.Path(names))}
    if strangers:
        sys.exit('{} lacks {}'.format(names, ' '.join(sorted(strangers))))
    with open(out, 'w', encoding='ascii') as stream:
        write_macro(stream, 'CUDART_EARLY_SAME', early)
        write_macro(stream, 'CUDART_SAME', same)
        write_macro(stream, 'CUDART_UNMODELLED', unmodelled)
        write_macro(stream, 'CUDART_HARMLESS', harmless)
        write_macro(stream, 'CUDART_TWINS', twins)
        write_macro(stream, 'CUDART_FIELDS', fields)
        write_macro(stream, 'CUDART_ERRORS', [(str(code), name, '"{}"'.format(text))
                                              for code, (name, text) in sorted(errors.items())])
    write_script(script, sorted(exported), node)


def doors_of(path):
    """(name, parameters) of each function that answers a code."""
    yield from ((name, parameters) for prefix in ('acl', 'cu', 'npusim_', 'rt')
                for kind, name, parameters in declarations(path, prefix)
                if kind in ('aclError', 'CUresult', 'int', 'rtError_t'))


def write_doors(out, face, *headers):
    paths = [path for header in headers for path in headers_of(pathlib.Path(header))]
    doors, codes = {}, {}
    for path in paths:
        for name, parameters in doors_of(path):
            doors[name] = (parameters, arguments_of(parameters))
        for name, code in re.findall(r'\b(ACL_ERROR_\w+),?\s+(\d+)\b', path.read_text()):
            codes.setdefault(code, name)
    with open(out, 'w', encoding='ascii') as stream:
        write_macro(stream, face + '_DOORS', [(name, *doors[name]) for name in sorted(doors)])
        for name, (parameters, _) in doors.items():
            stream.write('#define {}_PARAMETERS_{} {}\n'.format(face, name, parameters))
        write_macro(stream, face + '_CODES', [(code, '"{}"'.format(name))
                                              for code, name in codes.items()])


def write_wrapped(out, folder, headers):
    wrapped = wrappers(pathlib.Path(folder), pathlib.Path(headers))
    with open(out, 'w', encoding='ascii') as stream:
        write_macro(stream, 'PRELOAD_FUNCTIONS', [(name,) for name in wrapped])
        for name, parameters in wrapped.items():
            stream.write('#define PRELOAD_PARAMETERS_{} {}\n'.format(name, parameters))
            stream.write('#define PRELOAD_ARGUMENTS_{} {}\n'.format(name, arguments_of(parameters)))


if __name__ == '__main__':
    {'map': write_map, 'unmodelled': write_unmodelled, 'cuda': write_cuda, 'cudart': write_cudart,
     'doors': write_doors, 'wrapped': write_wrapped}[sys.argv[1]](*sys.argv[2:])
