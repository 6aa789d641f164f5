"""Tests of the memory that the harness's group is charged for, with folders in place of cgroups."""

from pathlib import Path

import pytest

from runners.harness.sandbox import charged_memory, process_limits
from runners.harness.sandbox.charged_memory import unmapped_limit, unmapped_memory
from runners.harness.sandbox.process_limits import shared_memory
from runners.harness.verdicts import MachineError

VERSION_1 = {
    "memory.usage_in_bytes": "1000\n",
    "memory.stat": "cache 1\nrss 2\nshmem 7\ntotal_cache 300\ntotal_rss 200\n",
}
VERSION_2 = {"memory.current": "900\n", "memory.stat": "anon 400\nfile 100\nkernel 50\nshmem 8\n"}


def in_group(
    monkeypatch: pytest.MonkeyPatch, controller: str, folder: Path, files: dict[str, str]
) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(process_limits, "own_folders", lambda: {controller: folder})


def test_memory_of_no_process_and_shared_memory_are_read_in_either_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_group(monkeypatch, "memory", tmp_path / "podium-1", VERSION_1)
    assert (unmapped_memory(), shared_memory()) == (500, 7)
    in_group(monkeypatch, "", tmp_path / "podium-2", VERSION_2)
    assert (unmapped_memory(), shared_memory()) == (400, 8)


def test_a_quarter_of_the_memory_may_be_unmapped_but_of_a_small_one_all() -> None:
    limits = {64 << 20: 64 << 20, 512 << 20: 256 << 20, 1 << 30: 256 << 20, 4 << 30: 1 << 30}
    assert {memory: unmapped_limit(memory) for memory in limits} == limits


def test_without_a_group_the_kernels_records_count_and_in_an_unreadable_one_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_limits, "_sum_kib", lambda *_: 9)
    in_group(monkeypatch, "memory", tmp_path / "others", VERSION_1)
    assert (unmapped_memory(), shared_memory()) == (9, 9)
    in_group(monkeypatch, "memory", tmp_path / "podium-3", {"memory.stat": "rss 2\n"})
    assert (unmapped_memory(), shared_memory()) == (0, 9)


@pytest.mark.parametrize(
    ("own_group", "gpu", "kept_by_it", "ends"),
    [
        (True, False, 0, True),
        (False, False, 1000, True),
        (False, False, 900, None),
        (False, False, 0, None),
        (True, True, 1000, True),
        (True, True, 0, None),  # the driver's, or another candidate's
    ],
)
def test_shared_memory_that_may_be_a_neighbours_counts_only_if_a_kill_frees_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    own_group: bool,
    gpu: bool,
    kept_by_it: int,
    ends: bool | None,
) -> None:
    in_group(monkeypatch, "", tmp_path / ("podium-1" if own_group else "others"), VERSION_2)
    used = [1100]
    monkeypatch.setattr(process_limits, "shared_memory", lambda: used[0])
    monkeypatch.setattr(charged_memory, "memory_files", lambda _: 0)
    monkeypatch.setattr(charged_memory, "maps_shared_memory", lambda *_, **__: True)
    monkeypatch.setattr(charged_memory, "_FREED_S", 0.0)

    def kill() -> None:
        used[0] -= kept_by_it

    if ends is None:
        with pytest.raises(MachineError, match="other programs"):
            charged_memory.hides_more(1, 0, 1000, gpu=gpu, kill=kill)
    else:
        assert charged_memory.hides_more(1, 0, 1000, gpu=gpu, kill=kill) is ends


@pytest.mark.parametrize(
    ("own_group", "others", "kept_by_it", "gpu", "expected"),
    [
        (True, (), 0, False, True),
        (False, (7,), 256 << 20, False, True),
        (False, (7,), 100 << 20, False, None),  # a neighbour's records
        (False, (), 256 << 20, False, False),
        (False, (7,), 256 << 20, True, False),
    ],
)
def test_the_kernels_records_count_for_a_program_that_has_other_processes_and_frees_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    own_group: bool,
    others: tuple[int, ...],
    kept_by_it: int,
    gpu: bool,
    expected: bool | None,
) -> None:
    in_group(monkeypatch, "", tmp_path / ("podium-1" if own_group else "others"), VERSION_2)
    used = [(256 << 20) + 11]
    monkeypatch.setattr(charged_memory, "unmapped_memory", lambda: used[0])
    monkeypatch.setattr(charged_memory, "descendants", lambda _: others)
    monkeypatch.setattr(charged_memory, "_FREED_S", 0.0)

    def kill() -> None:
        used[0] -= kept_by_it

    def keeps(before: int) -> bool:
        return charged_memory.keeps_unmapped(1, before, 1 << 30, gpu=gpu, kill=kill)

    assert not keeps(11)
    if expected is None:
        with pytest.raises(MachineError, match="other programs"):
            keeps(10)
    else:
        assert keeps(10) is expected
    assert (used[0] < 256 << 20) is (not own_group and others != () and not gpu)
