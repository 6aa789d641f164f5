"""The group round the harness, in a folder that stands for the machine's hierarchies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runners.harness.sandbox import process_limits

OWN = f"podium-{os.getpid()}"


class Machine:
    """Hierarchies without a kernel behind them: what is written stays as files."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root / "cgroup"
        self.root.mkdir()
        self.membership = root / "membership"
        monkeypatch.setattr(process_limits, "_ROOT", self.root)
        monkeypatch.setattr(process_limits, "_MEMBERSHIP", self.membership)

    def one_hierarchy(self) -> Path:
        """Version 2; gives this process's folder."""
        (self.root / "cgroup.controllers").touch()
        self.membership.write_text("0::/user/mine\n")
        return self._folder("user/mine")

    def one_hierarchy_a_controller(self, *names: str) -> dict[str, Path]:
        """Version 1; gives this process's folder for each controller."""
        lines = [f"{number}:{name}:/{name}-mine" for number, name in enumerate(names, 1)]
        self.membership.write_text("\n".join([*lines, "9:cpu,cpuacct:/"]))
        return {name: self._folder(f"{name}/{name}-mine") for name in names}

    def _folder(self, path: str) -> Path:
        folder = self.root / path
        folder.mkdir(parents=True)
        return folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_group_of_the_one_hierarchy_limits_memory_and_processes(machine: Machine) -> None:
    folder = machine.one_hierarchy() / OWN

    group = process_limits.make_cgroup()
    group.enter()

    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert group.folders == (folder,)
    assert 0 < int((folder / "memory.max").read_text()) < memory
    assert int((folder / "pids.max").read_text()) == 8192
    assert int((folder / "cgroup.procs").read_text()) == os.getpid()


def test_with_a_hierarchy_a_controller_each_gets_its_own_limit(machine: Machine) -> None:
    own = machine.one_hierarchy_a_controller("memory", "pids")

    group = process_limits.make_cgroup()
    group.enter()

    assert group.folders == (own["memory"] / OWN, own["pids"] / OWN)
    written = [{file.name for file in folder.iterdir()} for folder in group.folders]
    assert written == [{"memory.limit_in_bytes", "cgroup.procs"}, {"pids.max", "cgroup.procs"}]


def test_a_machine_that_can_only_limit_memory_has_no_group(machine: Machine) -> None:
    own = machine.one_hierarchy_a_controller("memory")

    with pytest.raises(OSError, match="no memory and pids controllers"):
        process_limits.make_cgroup()

    assert list(own["memory"].iterdir()) == []


def test_a_limit_that_is_refused_leaves_no_group(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = machine.one_hierarchy()
    monkeypatch.setattr(process_limits, "_group_limits", lambda: {"": {"no such/limit": 1}})

    with pytest.raises(FileNotFoundError):
        process_limits.make_cgroup()

    assert list(folder.iterdir()) == []


def test_groups_of_dead_makers_go_and_those_of_living_ones_stay(machine: Machine) -> None:
    folder = machine.one_hierarchy()
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    (folder / f"podium-{dead.pid}").mkdir()
    (folder / f"podium-{os.getppid()}").mkdir()

    process_limits.make_cgroup()

    assert {each.name for each in folder.iterdir()} == {OWN, f"podium-{os.getppid()}"}


def test_a_group_that_is_not_empty_yet_stays_and_the_others_go(tmp_path: Path) -> None:
    busy, empty = tmp_path / "busy", tmp_path / "empty"
    (busy / "process").mkdir(parents=True)
    empty.mkdir()

    process_limits.Group((busy, empty)).remove()

    assert list(tmp_path.iterdir()) == [busy]


def test_a_process_in_a_group_of_ours_has_joined(machine: Machine) -> None:
    machine.membership.write_text("0::/user/podium-12\n")
    process_limits.require_cgroup()

    machine.membership.write_text("0::/user/other\n")
    with pytest.raises(OSError, match="no cgroup was made"):
        process_limits.require_cgroup()


def test_a_folder_that_is_still_in_use_keeps_no_other_from_being_removed(tmp_path: Path) -> None:
    used, free = tmp_path / "used", tmp_path / "free"
    (used / "process").mkdir(parents=True)
    free.mkdir()
    process_limits.Group((used, free)).remove()
    assert used.is_dir()
    assert not free.exists()


@pytest.fixture
def precedence(monkeypatch: pytest.MonkeyPatch) -> process_limits.Precedence:
    own = process_limits.Precedence()
    monkeypatch.setattr(process_limits, "precedence", own)
    return own


def test_in_the_one_hierarchy_the_groups_own_weight_is_raised_and_lowered(
    machine: Machine, precedence: process_limits.Precedence
) -> None:
    folder = machine.one_hierarchy() / OWN
    group = process_limits.make_cgroup()
    with pytest.raises(OSError, match="no cpu controller is delegated"):
        process_limits.make_priority(group)
    (folder / "cpu.weight").touch()

    assert process_limits.make_priority(group).folders == ()
    precedence.take(wanted=True)
    assert (folder / "cpu.weight").read_text() == "10000"

    (folder / "cpu.weight").write_text("")
    precedence.take(wanted=True)  # it is known to be so
    assert (folder / "cpu.weight").read_text() == ""
    precedence.reset()
    assert (folder / "cpu.weight").read_text() == "100"


def test_with_a_hierarchy_a_controller_there_are_groups_for_shares_and_for_the_time_used(
    machine: Machine, precedence: process_limits.Precedence
) -> None:
    own = machine.one_hierarchy_a_controller("cpu", "cpuacct")
    machine.membership.write_text("1:cpu:/cpu-mine\n2:cpuacct:/cpuacct-mine\n")

    group = process_limits.make_priority(None)

    assert group.folders == (own["cpu"] / OWN, own["cpuacct"] / OWN)
    shares = own["cpu"] / OWN / "cpu.shares"
    assert int(shares.read_text()) == 1024
    precedence.take(wanted=True)
    assert int(shares.read_text()) == 1 << 18


def test_where_nothing_weighs_processes_there_is_no_such_group(
    machine: Machine, precedence: process_limits.Precedence
) -> None:
    machine.membership.write_text("1:memory:/\n")
    with pytest.raises(OSError, match="no cpu controller is mounted"):
        process_limits.make_priority(None)
    precedence.take(wanted=True)  # nothing to take


def test_the_cpu_time_of_a_group_is_read_in_either_version(machine: Machine) -> None:
    folder = machine.one_hierarchy() / "podium-12"
    folder.mkdir()
    machine.membership.write_text("0::/user/mine\n")
    assert process_limits.group_cpu_ns() is None
    machine.membership.write_text("0::/user/mine/podium-12\n")
    assert process_limits.group_cpu_ns() is None
    (folder / "cpu.stat").write_text("usage_usec 12\nuser_usec 10\n")
    assert process_limits.group_cpu_ns() == 12_000
    counted = machine.root / "cpuacct" / "podium-12"
    counted.mkdir(parents=True)
    (counted / "cpuacct.usage").write_text("99\n")
    machine.membership.write_text("1:cpuacct:/podium-12\n0::/\n")
    assert process_limits.group_cpu_ns() == 99


def test_wait_times_need_a_counted_group_and_linuxs_own_files(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_limits, "_WAITED", tmp_path / "schedstat")
    with pytest.raises(OSError, match="schedstat does not exist"):
        process_limits.require_wait_times()
    (tmp_path / "schedstat").touch()
    machine.membership.write_text("0::/user/mine\n")
    with pytest.raises(OSError, match="no cgroup that counts"):
        process_limits.require_wait_times()
    monkeypatch.setattr(process_limits, "group_cpu_ns", lambda: 1)
    process_limits.require_wait_times()
