"""The memory that Linux charges to the harness's own group, although no process has mapped it.

It finds what the watchdog of processes cannot: the kernel's records for a process, such as locks or
mappings, and pages that only a socket or a pipe still holds.
"""

from pathlib import Path

from runners.harness.sandbox import process_limits

_FILES = (("memory.usage_in_bytes", "total_rss", "total_cache"), ("memory.current", "anon", "file"))
"""In cgroup version 1 and 2: the file with all memory, and the parts of it that are not counted."""


def unmapped_memory() -> int:
    """Return the bytes in the group that are neither of processes nor of files.

    0 if this process has no group of its own. Files include shared memory and scratch folders.
    """
    folders = process_limits.own_folders()
    own = folders.get("memory", folders.get("", Path()))
    if not own.name.startswith(process_limits.PREFIX):
        return 0
    for name, *parts in _FILES:
        try:
            total = int((own / name).read_text())
            words = (own / "memory.stat").read_text().split()
            return total - sum(int(words[words.index(part) + 1]) for part in parts)
        except (OSError, ValueError):
            continue
    return 0
