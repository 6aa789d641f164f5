"""The files a sandboxed process sees: the system and the interpreter read-only, and scratch."""

import errno
import os
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.harness.sandbox import kernel

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix")
SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - mounted afresh for each sandbox
EMPTY = ("/run", "/home", "/root")
JOB = "/tmp/job"  # noqa: S108 - inside the sandbox's own scratch
_BUILT_AT = "/tmp"  # noqa: S108 - only a place to mount the new root on
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_STREAMS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_MAX_FILES = 16384


def interpreter() -> tuple[str, ...]:
    """The folders that this Python program is made of, wherever they lie.

    Not the folder above `runners`: a checkout may hold the data of Podium itself.
    """
    own = Path(__file__).resolve().parents[2]
    paths = {sys.prefix, sys.base_prefix, str(own)}
    paths |= {path for path in sys.path if path and Path(path).resolve() != own.parent}
    paths |= {os.path.realpath(path) for path in paths}
    found = sorted(path for path in paths if Path(path).is_absolute() and Path(path).is_dir())
    return _outermost(found)


def unreadable_by_others() -> str | None:
    """A folder on the way to the interpreter that only its owner may pass, if there is one."""
    for path in interpreter():
        for folder in (Path(path), *Path(path).parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                return str(folder)
    return None


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """The sorted paths which lie in no earlier one and no system folder, and hide no scratch."""
    kept: list[str] = []
    for path in paths:
        covered = any(Path(path).is_relative_to(above) for above in (*SYSTEM, *kept))
        covers = any(Path(below).is_relative_to(path) for below in (*SCRATCH, *EMPTY, "/proc"))
        if not covered and not covers:
            kept.append(path)
    return tuple(kept)


def devices(*, gpu: bool) -> tuple[str, ...]:
    """The device nodes that a sandbox gets."""
    names = list(_DEVICES)
    if gpu:
        names += [path.name for path in Path("/dev").glob("nvidia*")]
        names += [name for name in ("dxg", "nvidia-caps") if Path("/dev", name).exists()]
    return tuple(f"/dev/{name}" for name in dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class _Source:
    """Something of the old root to be seen in the new one, held open while the roots change."""

    path: str
    descriptor: int
    read_only: bool

    def show(self, root: str) -> None:
        target = Path(root + self.path)
        if Path(f"/proc/self/fd/{self.descriptor}").is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.touch()
        kernel.bind(f"/proc/self/fd/{self.descriptor}", str(target), kernel.MS_REC)
        if self.read_only:
            attributes = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID
            kernel.set_mount_attributes(str(target), attributes, recursive=True)


def _sources(*, gpu: bool) -> tuple[list[_Source], dict[str, str]]:
    """The open sources, and the system's symbolic links such as /bin."""
    links = {path: str(Path(path).readlink()) for path in SYSTEM if Path(path).is_symlink()}
    shown = [path for path in SYSTEM if path not in links and Path(path).is_dir()]
    shown += [*interpreter(), "/sys"]
    writable = ["/proc", *devices(gpu=gpu)]
    opened = []
    for path in (*shown, *writable):
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            continue
        opened.append(_Source(path, descriptor, path in shown))
    return opened, links


def build(scratch_bytes: int, *, gpu: bool) -> None:
    """Give this process a new root; it must be alone in its mount namespace.

    Nothing is there but what is named above: whatever else the machine holds does not exist.
    /proc is carried over writable: the maps of a user namespace are written through it.
    """
    kernel.make_private()
    sources, links = _sources(gpu=gpu)
    plain = kernel.MS_NOSUID | kernel.MS_NODEV
    root, scratch = _BUILT_AT, _BUILT_AT + SCRATCH[0]
    kernel.mount("tmpfs", root, plain, "size=1m,mode=755")
    for folder in (*EMPTY, "/var", "/dev", *SCRATCH):
        Path(root + folder).mkdir(parents=True, exist_ok=True)
    options = f"size={scratch_bytes},nr_inodes={_MAX_FILES},mode=1777"
    kernel.mount("tmpfs", scratch, plain, options)
    for folder in SCRATCH[1:]:  # one budget for all of them
        kernel.bind(scratch, root + folder)
    for path, target in links.items():
        Path(root + path).symlink_to(target)
    for name, number in _STREAMS.items():
        Path(f"{root}/dev/{name}").symlink_to(f"/proc/self/fd{number}")
    for source in sources:
        source.show(root)
        os.close(source.descriptor)
    kernel.set_mount_attributes(root, kernel.MOUNT_ATTR_RDONLY, recursive=False)
    kernel.enter_root(root)


def mount_proc() -> None:
    """A fresh /proc, which shows the processes of this PID namespace only."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", "/proc", flags)


def enter_job() -> None:
    """Make an empty work folder and stand in it."""
    job = Path(JOB)
    try:
        job.mkdir(mode=0o700)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    os.chdir(job)
