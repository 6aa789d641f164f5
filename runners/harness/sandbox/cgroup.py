"""A cgroup that limits the memory and processes of the harness, if this process may create one."""

import os
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_PREFIX = "podium-"
_PROCESSES = 8192
_SHARE_OF_MEMORY = 0.9


class Group:
    """One cgroup; it has one folder per hierarchy."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self.folders = folders

    def enter(self) -> None:
        """Move this process into the group; its future children will be in it too."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        """Remove the group; if it is not empty, the next start removes it."""
        for folder in self.folders:
            try:
                folder.rmdir()
            except OSError:
                continue  # a process in it is still exiting


def require_joined() -> None:
    """Raise OSError unless this process is in a group from `make`."""
    if not any(folder.name.startswith(_PREFIX) for folder in _own_folders().values()):
        raise OSError("no cgroup was made; process limits and the watchdog stand in")


def _own_folders() -> dict[str, Path]:
    """Controller -> cgroup folder of this process; cgroup version 2 has only the name ""."""
    found: dict[str, Path] = {}
    for line in _MEMBERSHIP.read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            mounted = _ROOT / name if name else _ROOT
            found[name] = mounted / path.lstrip("/")
    return found


def _limits() -> dict[str, dict[str, int]]:
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    memory = int(pages * page * _SHARE_OF_MEMORY)
    return {
        "memory": {"memory.limit_in_bytes": memory},
        "pids": {"pids.max": _PROCESSES},
        "": {"memory.max": memory, "pids.max": _PROCESSES},
    }


def _make(parent: Path, limits: dict[str, int]) -> Path:
    for other in parent.glob(f"{_PREFIX}*"):
        if not Path("/proc", other.name.removeprefix(_PREFIX)).exists():  # its creator was killed
            Group((other,)).remove()
    folder = parent / f"{_PREFIX}{os.getpid()}"
    folder.mkdir()
    try:
        for name, limit in limits.items():
            (folder / name).write_text(str(limit))
    except OSError:
        folder.rmdir()
        raise
    return folder


def make() -> Group:
    """Create an empty group with limits; OSError if that is refused."""
    own, limits = _own_folders(), _limits()
    if (_ROOT / "cgroup.controllers").exists():
        return Group((_make(own[""], limits[""]),))
    if not {"memory", "pids"} <= own.keys():
        raise OSError("no memory and pids controllers are mounted")
    return Group(tuple(_make(own[name], limits[name]) for name in ("memory", "pids")))
