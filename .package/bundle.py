#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Packages that need no package manager, of a tree that `meson install` has made:
#
#   bundle.py tree PREFIX          copies in the libraries that a bare system lacks, under names
#                                  that no other program loads, with their licences
#   bundle.py tarball PREFIX OUT   the tree as OUT/npusim-VERSION-MACHINE.tar.gz
#   bundle.py wheel PREFIX OUT     the tree as a package of Python, for pip
#   bundle.py plugin FOLDER        the pytest plugin, where Python finds it, with its entry point

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PLUGIN = ROOT / 'runtime' / 'pytest' / 'pytest_npusim.py'
VERSION = re.search(r"version: '([\d.]+)'", (ROOT / 'meson.build').read_text()).group(1)
DIST_INFO = 'npusim-{}.dist-info'.format(VERSION)
BUNDLED = 'lib/npusim/bundled'

# What every system with this glibc has: of https://peps.python.org/pep-0600
SYSTEM = re.compile(r'(?:lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.\d|ld-linux|linux-vdso)')

METADATA = '''Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: {licence}
Requires-Python: >=3.8
'''
PLUGIN_ENTRY = '[pytest11]\nnpusim = pytest_npusim\n'


def output_of(*command):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def is_elf(path):
    with open(path, 'rb') as stream:
        return stream.read(4) == b'\x7fELF'


def files_of(folder):
    return [path for path in sorted(folder.rglob('*')) if path.is_file() and not path.is_symlink()]


def machine_of(prefix):
    with open(pathlib.Path(prefix) / 'bin/npusim', 'rb') as stream:
        return {62: 'x86_64', 183: 'aarch64'}[int.from_bytes(stream.read(20)[18:], 'little')]


def needed_by(programs, folder):
    """Name -> file of the libraries in that folder that they need, and that these need."""
    found, left = {}, list(programs)
    for path in left:
        for name in output_of('patchelf', '--print-needed', path).split():
            if not SYSTEM.match(name) and name not in found and (folder / name).exists():
                found[name] = folder / name
                left.append(folder / name)
    return found


def own_name(name):
    """libglib-2.0.so.0 -> libglib-2.0-npusim.so.0: another GLib in the process stays another."""
    return name.replace('.so', '-npusim.so', 1)


def package_of(library):
    for path in (library, library.resolve(), str(library).replace('/usr', '', 1)):
        found = subprocess.run(['dpkg', '-S', path], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL).stdout
        if found:
            return found.split(':')[0]
    sys.exit('{}: no package has it, and so nobody knows its licence'.format(library))


def bundle(prefix):
    prefix = pathlib.Path(prefix).resolve()
    bundled, licences = prefix / BUNDLED, prefix / 'share/npusim/licences'
    bundled.mkdir()
    licences.mkdir(parents=True)
    shutil.copy(ROOT / 'LICENSE', licences / 'npusim')
    programs = [path for path in files_of(prefix) if is_elf(path)]
    libraries = needed_by(programs, pathlib.Path('/usr/lib', machine_of(prefix) + '-linux-gnu'))
    for name, file in libraries.items():
        shutil.copy(file.resolve(), bundled / own_name(name))
        (bundled / own_name(name)).chmod(0o644)
        package = package_of(file)
        shutil.copy('/usr/share/doc/{}/copyright'.format(package), licences / package)
        output_of('patchelf', '--set-soname', own_name(name), bundled / own_name(name))
    for path in programs + [bundled / own_name(name) for name in libraries]:
        needed = [name for name in output_of('patchelf', '--print-needed', path).split()
                  if name in libraries]
        if needed:
            words = [word for name in needed for word in ('--replace-needed', name, own_name(name))]
            old = output_of('patchelf', '--print-rpath', path).strip()
            new = '$ORIGIN/' + os.path.relpath(bundled, path.parent)
            output_of('patchelf', *words, path)
            output_of('patchelf', '--force-rpath', '--set-rpath', old + ':' + new if old else new,
                      path)
    print('bundled:', ', '.join(sorted(libraries)))


def write_tarball(prefix, out):
    name = 'npusim-{}-{}'.format(VERSION, machine_of(prefix))

    def anonymous(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = 'root'
        return entry

    with tarfile.open('{}/{}.tar.gz'.format(out, name), 'w:gz') as archive:
        archive.add(prefix, arcname=name, filter=anonymous)


class Wheel:
    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        self.record.append('{},sha256={},{}'.format(name, digest, len(data)))

    def close(self):
        self.record.append(DIST_INFO + '/RECORD,,')
        self.archive.writestr(DIST_INFO + '/RECORD', '\n'.join(self.record) + '\n')
        self.archive.close()


def write_wheel(prefix, out):
    prefix = pathlib.Path(prefix).resolve()
    libc = os.confstr('CS_GNU_LIBC_VERSION').split()[1].replace('.', '_')
    tag = 'py3-none-manylinux_{}_{}'.format(libc, machine_of(prefix))
    wheel = Wheel('{}/npusim-{}-{}.whl'.format(out, VERSION, tag))
    links = []
    for path in sorted(prefix.rglob('*')):
        name = path.relative_to(prefix).as_posix()
        if path.is_symlink():
            links.append((name, os.readlink(path)))
            # pip takes away what is recorded, links that were made later too
            wheel.record.append('npusim/{},,'.format(name))
        elif path.is_file():
            wheel.add('npusim/' + name, path.read_bytes(), path.stat().st_mode & 0o755)
        elif not any(path.iterdir()):
            wheel.add('npusim/{}/.keep'.format(name), b'')
    wheel.add('npusim/links', ''.join('{}\t{}\n'.format(*link) for link in links).encode())
    wheel.add('npusim/__init__.py', (HERE / 'wheel.py').read_bytes())
    wheel.add(PLUGIN.name, PLUGIN.read_bytes())
    entries = '[console_scripts]\nnpusim = npusim:main\n' + PLUGIN_ENTRY
    for path in files_of(prefix / 'share/npusim/licences'):
        wheel.add('{}/licenses/{}'.format(DIST_INFO, path.name), path.read_bytes())
    metadata = METADATA.format(
        name='npusim', version=VERSION, licence='Apache-2.0',
        summary='An Ascend 910B or 910C without the silicon, for memory code')
    metadata += 'Description-Content-Type: text/markdown\n\n' + (ROOT / 'README.md').read_text()
    wheel.add(DIST_INFO + '/METADATA', metadata.encode())
    wheel.add(DIST_INFO + '/WHEEL', 'Wheel-Version: 1.0\nGenerator: npusim\n'
              'Root-Is-Purelib: false\nTag: {}\n'.format(tag).encode())
    wheel.add(DIST_INFO + '/entry_points.txt', entries.encode())
    wheel.close()


def write_plugin(folder):
    info = pathlib.Path(folder) / DIST_INFO.replace('npusim', 'pytest_npusim')
    info.mkdir(parents=True)
    shutil.copy(PLUGIN, folder)
    (info / 'METADATA').write_text(METADATA.format(
        name='pytest-npusim', version=VERSION, licence='Apache-2.0',
        summary='pytest on npusim, a simulated Ascend server'))
    (info / 'entry_points.txt').write_text(PLUGIN_ENTRY)


if __name__ == '__main__':
    {'tree': bundle, 'tarball': write_tarball, 'wheel': write_wheel,
     'plugin': write_plugin}[sys.argv[1]](*sys.argv[2:])
