import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

HELD = 32 << 20
PROGRAM = """
from pathlib import Path
from runners.harness.sandbox import syscalls

held = bytearray(range(256)) * ({held} // 256)
{change}
syscalls.use_huge_pages({within_s})
assert held == bytearray(range(256)) * ({held} // 256)
print(Path("/proc/self/smaps_rollup").read_text())
"""
ROOT = Path(__file__).resolve().parents[5]


def has_collapse() -> bool:
    version = tuple(map(int, platform.release().split(".")[:2]))
    return version >= (6, 1) and Path("/sys/kernel/mm/transparent_hugepage").exists()


def huge_bytes(within_s: float = 60, change: str = "") -> int:
    """The bytes in huge pages of a process with `HELD` bytes that uses them."""
    program = PROGRAM.format(held=HELD, change=change, within_s=within_s)
    printed = subprocess.check_output(
        [sys.executable, "-c", program], cwd=ROOT, text=True, timeout=60
    )
    found = re.search(r"AnonHugePages: +(\d+) kB", printed)
    assert found
    return int(found[1]) << 10


@pytest.mark.skipif(not has_collapse(), reason="Linux 6.1 or newer with huge pages")
def test_the_memory_of_a_process_is_moved_to_huge_pages() -> None:
    assert huge_bytes() >= HELD - (2 << 20)


def test_after_the_time_limit_nothing_more_is_moved() -> None:
    assert huge_bytes(within_s=-1) < HELD - (2 << 20)


def test_if_linux_refuses_it_the_memory_stays_as_it_is() -> None:
    assert huge_bytes(change="syscalls._COLLAPSE = 9999") < HELD - (2 << 20)
