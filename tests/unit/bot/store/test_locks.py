"""Tests of the locks of a data folder."""

import asyncio
import errno
import fcntl
import os
from pathlib import Path

import pytest

from bot.domain.errors import SetupError
from bot.store.locks import is_ready, is_served, judging, judging_in_turn, ready, serving


async def test_a_folder_is_served_by_one_at_a_time(tmp_path: Path) -> None:
    async with serving(tmp_path):
        assert is_served(tmp_path)
        with pytest.raises(SetupError, match=f"in use by Podium pid {os.getpid()};"):
            async with serving(tmp_path):
                pass
    assert not is_served(tmp_path)


async def test_a_process_is_ready_for_as_long_as_it_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path):
        assert not is_ready(tmp_path)
        async with ready(tmp_path):
            assert is_ready(tmp_path)
        assert not is_ready(tmp_path)


def test_two_who_look_at_once_take_each_other_for_nobody(tmp_path: Path) -> None:
    assert not is_served(tmp_path)
    with (tmp_path / "up.lock").open() as another:
        fcntl.flock(another, fcntl.LOCK_SH)
        assert not is_served(tmp_path)


async def test_one_who_looks_for_a_moment_keeps_nobody_from_serving(tmp_path: Path) -> None:
    with (tmp_path / "up.lock").open("w") as another:
        fcntl.flock(another, fcntl.LOCK_SH)
        asyncio.get_running_loop().call_later(0.05, fcntl.flock, another, fcntl.LOCK_UN)
        async with serving(tmp_path):
            assert is_served(tmp_path)


async def test_a_second_judge_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with judging(tmp_path):
        with pytest.raises(SetupError, match=f"pid {os.getpid()} judges .* each other's times"):
            async with judging(tmp_path):
                pass
    async with judging(tmp_path):
        pass


async def test_a_turn_is_waited_for_until_it_comes_or_is_wanted_no_more(tmp_path: Path) -> None:
    async def came(stop: asyncio.Event) -> bool:
        async with judging_in_turn(tmp_path, stop) as turn:
            return turn

    patient, impatient = asyncio.Event(), asyncio.Event()
    async with judging(tmp_path):
        first, other = [asyncio.create_task(came(stop)) for stop in (patient, impatient)]
        await asyncio.wait({first, other}, timeout=0.3)
        assert not first.done()
        impatient.set()
        assert not await asyncio.wait_for(other, 5)
    assert await asyncio.wait_for(first, 5)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(SetupError, match=r"cannot write to .*choose another data folder"):
        is_served(tmp_path / "data")


async def test_a_disk_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(SetupError, match="the disk is full; free some space"):
        async with serving(tmp_path):
            pass
