"""Landlock rules: which paths may be read and written; no signals to processes outside."""

import os
import stat
import struct
from collections.abc import Iterable

from runners.harness.sandbox import syscalls

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_BITS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
_TCP_BIND_AND_CONNECT = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def attributes(version: int, *, tcp: bool = False) -> bytes:
    """The attributes of a ruleset that restricts everything that this Landlock version can.

    That is file access; from version 4 also TCP, from version 6 also signals and abstract sockets.
    With `tcp`, TCP is not restricted, for processes that use their own loopback interface.
    """
    rights = (1 << _BITS_BY_VERSION.get(version, 16)) - 1
    fields = [rights]
    if version >= 4:
        fields.append(0 if tcp else _TCP_BIND_AND_CONNECT)
    if version >= 6:
        fields.append(_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS)
    return struct.pack(f"={len(fields)}Q", *fields)


def restrict(readable: Iterable[str], writable: Iterable[str], *, tcp: bool = False) -> int:
    """Allow only these paths from now on; returns the Landlock version. Needs no_new_privs."""
    version = syscalls.landlock_version()
    handled = attributes(version, tcp=tcp)
    rights = int.from_bytes(handled[:8], "little")
    ruleset = syscalls.landlock_ruleset(handled)
    try:
        for path in readable:
            _allow(ruleset, path, _READ & rights)
        for path in writable:
            _allow(ruleset, path, rights)
        syscalls.landlock_enforce(ruleset)
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a path that cannot be opened needs no rule
    try:
        folder = stat.S_ISDIR(os.fstat(beneath).st_mode)
        syscalls.landlock_allow(ruleset, rights if folder else rights & _ON_FILES, beneath)
    finally:
        os.close(beneath)
