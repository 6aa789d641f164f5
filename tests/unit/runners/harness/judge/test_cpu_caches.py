"""How much is written to flush the CPU's caches."""

from pathlib import Path

import pytest

from runners.harness.judge import cpu_caches

MIB = 1 << 20
MOST = cpu_caches.FLUSH_MOST


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Two cores with caches of 1 MiB each and one of 32 MiB that they share, and a third core."""
    for core in range(3):
        for index, (level, size, shared) in enumerate(
            (("2", "1024K", str(core)), ("3", "32768K", "0-1" if core < 2 else "2"))
        ):
            folder = tmp_path / f"cpu{core}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            values = {"level": level, "type": "Unified", "size": size, "shared_cpu_list": shared}
            for name, value in values.items():
                (folder / name).write_text(f"{value}\n")
    return tmp_path


def written(monkeypatch: pytest.MonkeyPatch, system: Path, cores: set[int]) -> int:
    cpu_caches._flushed.cache_clear()
    found = cpu_caches.bytes_of_caches(cores, system)
    monkeypatch.setattr(cpu_caches, "bytes_of_caches", lambda _: found)
    monkeypatch.setattr(cpu_caches, "FLUSH_MOST", MOST)
    try:
        return cpu_caches._flushed().numel()
    finally:
        cpu_caches._flushed.cache_clear()


def test_a_cache_that_cores_share_counts_once(system: Path) -> None:
    assert cpu_caches.bytes_of_caches({0, 1}, system) == 34 * MIB
    assert cpu_caches.bytes_of_caches({2}, system) == 33 * MIB


def test_several_times_what_the_caches_hold_is_written(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many bytes as the last cache has, much of what a candidate had used stayed there."""
    assert written(monkeypatch, system, {0, 1}) == 4 * 34 * MIB


def test_a_system_that_does_not_tell_is_assumed_to_be_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert written(monkeypatch, tmp_path, {0}) == 128 * MIB


def test_a_large_machine_is_not_flushed_for_ever(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (system / "cpu2" / "cache" / "index1" / "size").write_text("1048576K\n")
    assert written(monkeypatch, system, {2}) == 512 * MIB
