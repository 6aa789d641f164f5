"""The root of a sandboxed process: the read-only system and interpreter, and scratch space."""

import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from runners.harness.sandbox import syscalls
from runners.harness.sandbox.devices import own_devices
from runners.harness.toolchains import ncu

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix")
SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - mounted afresh for each sandbox
EMPTY = ("/run", "/home", "/root")
JOB = "/tmp/job"  # noqa: S108 - inside the sandbox's own scratch
TASK = "/task"
"""The folder in which `place` shows files. No process in the sandbox can rename it."""
SHARED_JOB = "podium-job-"
"""The prefix of work folders in a shared `/tmp`; each candidate has its own."""
_REMOVE_S = 20.0
"""Seconds to remove what candidates left in a shared `/tmp`; the rest is removed the next time."""
_DELETE, _UNLOCK = ("/bin/rm", "-rf"), ("/bin/chmod", "-R", "u+rwx")
_PATHS_MOST = 256
_PRESSURE = "/proc/pressure"
_FILE_COUNTS = tuple(
    f"/proc/sys/fs/{name}" for name in ("dentry-state", "file-nr", "inode-nr", "inode-state")
)
"""Linux's counts of files and names of the whole machine. They change by one with each name that a
process looks up, so one candidate could tell the next one numbers by them."""
_MOUNT_POINT = "/tmp"  # noqa: S108 - only a place to mount the new root on
_STREAMS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_MAX_FILES = 16384
_PACKAGES = ("site-packages", "dist-packages")
_NONE: Mapping[str, int] = MappingProxyType({})
_RUNNERS = Path(__file__).resolve().parents[2]
_requested: list[str] = []
_own_scratch: set[str] = set()
"""The scratch folders that no program outside of this sandbox uses."""


def hide(folders: Iterable[str]) -> None:
    """Hide these folders from every sandbox that is created from now on."""
    _requested.extend(str(Path(folder).resolve()) for folder in folders)


def hidden() -> tuple[str, ...]:
    """The folders inside visible ones that must be hidden.

    They are the folders passed to `hide` and Podium's checkout, which may contain the data, the
    tasks and their solutions. An installed Podium is in site-packages, which stays visible.
    """
    python = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)}
    requested = set(_requested)
    if _RUNNERS.parent.name not in _PACKAGES:
        requested.add(str(_RUNNERS.parent))
    folders: list[str] = []
    for path in sorted(requested - python):
        shown = any(_beneath(path, above) for above in (*SYSTEM, *python))
        if shown and Path(path).is_dir() and not any(_beneath(path, above) for above in folders):
            folders.append(path)
    return tuple(folders)


def _beneath(path: str, above: str) -> bool:
    return path != above and Path(path).is_relative_to(above)


def interpreter() -> tuple[str, ...]:
    """The folders of the Python installation, its import path, `runners`, CUDA and the profiler.

    The parent folder of `runners` is not among them, because a checkout may contain Podium's data.
    """
    imported = {path for path in sys.path if path and Path(path).resolve() != _RUNNERS.parent}
    paths = {sys.prefix, sys.base_prefix, str(_RUNNERS), *imported}
    paths.add(os.environ.get("CUDA_HOME", sys.prefix))  # needed to build inline CUDA
    paths.update(map(str, ncu.folders()))
    paths |= {os.path.realpath(path) for path in paths}
    found = sorted(path for path in paths if Path(path).is_absolute() and Path(path).is_dir())
    return _outermost(found)


def unreadable_by_others() -> str | None:
    """A parent folder of the interpreter that only its owner may enter, or None."""
    profilers = {os.path.realpath(path) for path in ncu.folders()}
    for path in (path for path in interpreter() if os.path.realpath(path) not in profilers):
        for folder in (Path(path), *Path(path).parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                return str(folder)
    return None


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """The sorted paths, except those inside another one or a system folder, or above scratch."""
    outermost: list[str] = []
    for path in paths:
        covered = any(_is_visible_in(above, path) for above in (*SYSTEM, *outermost))
        covers = any(Path(below).is_relative_to(path) for below in (*SCRATCH, *EMPTY, "/proc"))
        if not covered and not covers:
            outermost.append(path)
    return tuple(outermost)


def _is_visible_in(above: str, path: str) -> bool:
    """Whether `above` contains `path` and no hidden folder in `above` covers it."""
    between = (each for each in hidden() if _beneath(each, above))
    is_hidden = any(Path(path).is_relative_to(each) for each in between)
    return Path(path).is_relative_to(above) and not is_hidden


def around_hidden(path: str) -> Iterator[str]:
    """The path or, if it contains hidden folders, its other entries.

    Landlock needs this, because its rules can only allow.
    """
    inside = [each for each in hidden() if Path(each).is_relative_to(path)]
    if not inside:
        yield path
    elif path not in inside:
        for entry in sorted(Path(path).iterdir()):
            if not entry.is_symlink():
                yield from around_hidden(str(entry))


@dataclass(frozen=True, slots=True)
class _Source:
    """A file or folder of the old root that the new one shows, opened before the root changes."""

    path: str
    descriptor: int
    read_only: bool
    """Whether it cannot be changed. A device can then be written, but its times cannot be set."""

    def show(self, root: str) -> None:
        target = Path(root + self.path)
        if Path(f"/proc/self/fd/{self.descriptor}").is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.touch()
        syscalls.bind(f"/proc/self/fd/{self.descriptor}", str(target), syscalls.MS_REC)
        if self.read_only:
            attributes = syscalls.MOUNT_ATTR_RDONLY | syscalls.MOUNT_ATTR_NOSUID
            syscalls.set_mount_attributes(str(target), attributes, recursive=True)


def _sources(*, gpu: bool) -> tuple[list[_Source], dict[str, str]]:
    """The open sources, and the system's symbolic links such as /bin."""
    links = {path: str(Path(path).readlink()) for path in SYSTEM if Path(path).is_symlink()}
    shown = [path for path in SYSTEM if path not in links and Path(path).is_dir()]
    shown += [*interpreter(), "/sys"]
    opened = []
    for path in (*shown, "/proc", *own_devices(gpu=gpu)):
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            continue
        opened.append(_Source(path, descriptor, path != "/proc"))
    return opened, links


def build(scratch_bytes: int, *, gpu: bool) -> None:
    """Give this process a new root; it must be the only process in its mount namespace.

    The root has only the files and folders that this module names. /proc stays writable, because
    the maps of a user namespace are written through it.
    """
    syscalls.make_private()
    sources, links = _sources(gpu=gpu)
    plain = syscalls.MS_NOSUID | syscalls.MS_NODEV
    root, scratch = _MOUNT_POINT, _MOUNT_POINT + SCRATCH[0]
    syscalls.mount("tmpfs", root, plain, "size=1m,mode=755")
    for folder in (*EMPTY, TASK, "/var", "/dev", *SCRATCH):
        Path(root + folder).mkdir(parents=True, exist_ok=True)
    options = f"size={scratch_bytes},nr_inodes={_MAX_FILES},mode=1777"
    syscalls.mount("tmpfs", scratch, plain, options)
    for folder in SCRATCH[1:]:  # all share one size limit
        syscalls.bind(scratch, root + folder)
    for path, target in links.items():
        Path(root + path).symlink_to(target)
    for name, number in _STREAMS.items():
        Path(f"{root}/dev/{name}").symlink_to(f"/proc/self/fd{number}")
    _show_all(sources, root, plain)
    syscalls.enter_root(root)
    own_scratch()


def own_scratch() -> None:
    """Record that this process and its forks have scratch folders of their own."""
    _own_scratch.update(SCRATCH)


def _show_all(sources: Iterable[_Source], root: str, flags: int) -> None:
    """Bind the sources in order, and mount an empty folder over each hidden folder inside them."""
    hidden_folders = hidden()
    for source in sources:
        source.show(root)
        os.close(source.descriptor)
        for folder in (each for each in hidden_folders if _beneath(each, source.path)):
            syscalls.mount("tmpfs", root + folder, flags, "size=1m,mode=755")
    for folder in ("", *hidden_folders):
        syscalls.set_mount_attributes(root + folder, syscalls.MOUNT_ATTR_RDONLY, recursive=False)


def mount_proc(*, innermost: bool = False, gpu: bool = False) -> None:
    """Mount a new /proc, which shows only the processes of this PID namespace.

    If `innermost`, `_FILE_COUNTS` are empty, and nothing can be written below it, or with a GPU
    below `_PRESSURE`, because CUDA does not start without writing to /proc. In
    `/proc/self/autogroup` a submission could give itself so small a share of busy cores that its
    exit takes minutes, and each request for notices in `_PRESSURE` delays an exit. No sandbox
    inside this one could mount a /proc.
    """
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    syscalls.mount("proc", "/proc", flags)
    if not innermost:
        return
    for each in filter(os.path.exists, _FILE_COUNTS):
        syscalls.bind(os.devnull, each)
    if not gpu:
        syscalls.set_mount_attributes("/proc", syscalls.MOUNT_ATTR_RDONLY, recursive=False)
    elif Path(_PRESSURE).exists():
        syscalls.bind(_PRESSURE, _PRESSURE)
        syscalls.set_mount_attributes(_PRESSURE, syscalls.MOUNT_ATTR_RDONLY, recursive=False)


def place(files: Mapping[str, str], programs: Mapping[str, int] = _NONE) -> None:
    """Show these files read-only in `TASK` instead of earlier ones, and change to that folder.

    The mount is read-only for every user. The process must have its own root. `programs` are
    executable files: name -> descriptor of the content.
    """
    syscalls.mount("tmpfs", TASK, syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755")
    _write(files, programs, TASK)
    syscalls.set_mount_attributes(TASK, syscalls.MOUNT_ATTR_RDONLY, recursive=False)
    os.chdir(TASK)


def place_openly(files: Mapping[str, str], job: str, programs: Mapping[str, int] = _NONE) -> str:
    """Write these files for a process without its own root, change to their folder and return it.

    The folder is next to the work folder, not inside it, because Landlock can then make it
    read-only. File modes would not suffice.
    """
    folder = tempfile.mkdtemp(prefix=SHARED_JOB, dir=Path(job).parent)
    _write(files, programs, folder)
    os.chdir(folder)
    return folder


def _write(files: Mapping[str, str], programs: Mapping[str, int], folder: str) -> None:
    for name, text in files.items():
        Path(folder, name).write_text(text, encoding="utf-8")
    for name, source in programs.items():
        path = Path(folder, name)
        length, done = os.fstat(source).st_size, 0
        with path.open("wb") as target:
            while done < length:
                done += os.sendfile(target.fileno(), source, done, length - done)
        path.chmod(0o755)


def clear_scratch() -> None:
    """Remove what a judge and its candidates left, such as compiled code.

    Otherwise the next task's code could load what the last task's code has written. No other judge
    or candidate may exist.
    """
    if _own_scratch:
        mounts = _mounts()
        _remove([each for folder in _own_scratch for each in _unmounted(folder, mounts)])
    else:
        remove_jobs()


def _mounts() -> tuple[str, ...]:
    """Return where file systems are mounted; in Linux's list, a space of a path is an escape."""
    words = (line.split()[1] for line in Path("/proc/self/mounts").read_bytes().splitlines())
    return tuple(os.fsdecode(each.decode("unicode_escape").encode("latin-1")) for each in words)


def _unmounted(folder: str, mounts: Sequence[str]) -> Iterator[str]:
    """Yield what is in a folder, except mounts and the folders that lead to them.

    If Podium's checkout lies in `/tmp`, it is shown there, read-only, with thousands of files.
    """
    for each in Path(folder).iterdir():
        if any(_beneath(mount, str(each)) for mount in mounts):
            yield from _unmounted(str(each), mounts)
        elif str(each) not in mounts:
            yield str(each)


def remove_jobs() -> None:
    """Remove all work folders from a shared `/tmp`; no candidate with submitted code may exist."""
    _remove([*map(str, Path(tempfile.gettempdir()).glob(f"{SHARED_JOB}*"))])


def _remove(paths: Sequence[str]) -> None:
    """Remove files and folders, also those that their owner may not read or change any more."""
    end = time.monotonic() + _REMOVE_S
    _run_on(_DELETE, paths, end)
    kept = [path for path in paths if os.path.lexists(path) and not Path(path).is_symlink()]
    _run_on(_UNLOCK, kept, end)
    _run_on(_DELETE, kept, end)


def _run_on(command: Sequence[str], paths: Sequence[str], end: float) -> None:
    """Run a program on a few paths at a time, because Linux limits its arguments, until `end`.

    It is a program because `shutil.rmtree` fails at thousands of levels.
    """
    with suppress(OSError, subprocess.TimeoutExpired):
        for first in range(0, len(paths), _PATHS_MOST):
            line = [*command, "--", *paths[first : first + _PATHS_MOST]]
            left_s = max(0.0, end - time.monotonic())
            subprocess.run(line, stderr=subprocess.DEVNULL, timeout=left_s, check=False)


def enter_job(*, own_view: bool) -> str:
    """Create a new work folder, change to it and return its path.

    A shared `/tmp` may contain folders of other candidates.
    """
    if own_view:
        Path(JOB).mkdir(mode=0o700)
    job = JOB if own_view else tempfile.mkdtemp(prefix=SHARED_JOB)
    os.chdir(job)
    return job
