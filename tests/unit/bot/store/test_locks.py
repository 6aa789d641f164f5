"""Tests of the locks of a data folder."""

import os
from pathlib import Path

import pytest

from bot.domain.errors import SetupError
from bot.store.locks import opened_lock, serving, taken


def test_a_folder_is_served_by_one_at_a_time(tmp_path: Path) -> None:
    with serving(tmp_path, take=True) as free:
        assert free
        with serving(tmp_path, take=False) as still_free:
            assert not still_free
        with (
            pytest.raises(SetupError, match=f"in use by Podium pid {os.getpid()};"),
            serving(tmp_path, take=True),
        ):
            pass
    with serving(tmp_path, take=False) as free_again:
        assert free_again


def test_whoever_only_looks_takes_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, take=False), serving(tmp_path, take=True) as free:
        assert free


def test_a_lock_is_one_holders_until_it_is_closed(tmp_path: Path) -> None:
    with opened_lock(tmp_path, "judge.lock") as first, opened_lock(tmp_path, "judge.lock") as other:
        assert taken(first)
        assert not taken(other)
    with opened_lock(tmp_path, "judge.lock") as next_one:
        assert taken(next_one)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with (
        pytest.raises(SetupError, match=r"cannot write to .*choose another folder"),
        opened_lock(tmp_path / "data", "up.lock"),
    ):
        pass
