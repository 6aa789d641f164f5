"""Tests of what every command is handed."""

import getpass
import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import pytest
import typer
from rich.console import Console

from bot.app.context import OpenPodium, SystemClock
from bot.app.installation import Installation
from bot.app.servers import Say
from bot.cli.app import build
from bot.cli.context import CommandLine, Where, actor_name, command_line
from bot.cli.files import read_submission
from bot.domain.errors import SetupError, UserError
from bot.settings import Settings
from tests.doubles.memory_store import MemoryStore


def test_without_a_name_one_acts_as_the_user_of_the_machine() -> None:
    assert actor_name(None) == getpass.getuser()
    assert actor_name("ada") == "ada"


@pytest.mark.parametrize("error", [KeyError("uid not found"), OSError("no such user")])
def test_a_user_without_a_name_is_asked_for_one(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", fail)
    with pytest.raises(UserError, match="choose one with --as NAME"):
        actor_name(None)


async def test_a_misspelled_person_is_refused_and_not_made() -> None:
    store = MemoryStore(SystemClock())
    line = _line_on(store)
    with pytest.raises(UserError, match="'typo' has not submitted") as refusal:
        async with line.open_as_person(None, "typo", may_be_new=False):
            pass
    assert refusal.value.code == "unknown-person"
    assert await store.people.find("local:typo") is None
    async with line.open_as_person(None, "ada") as (_, ada):
        assert ada.identity == "local:ada"
    async with line.open_as_person(None, "ada", may_be_new=False) as (_, again):
        assert again == ada


async def test_without_a_name_one_has_an_account_from_the_first_command_on() -> None:
    async with _line_on(MemoryStore(SystemClock())).open_as_person(
        None, None, may_be_new=False
    ) as (
        _,
        who,
    ):
        assert who.identity == f"local:{getpass.getuser()}"


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (Where(Path("d"), "https://podium.test"), "--data and --server cannot be combined"),
        (Where(None, "https://podium.test", "ada"), "your token says who you are"),
        (Where(None, None, "ada"), "at https://login.test your token says"),
    ],
)
async def test_options_that_contradict_each_other_are_refused(where: Where, words: str) -> None:
    line = _line_on(MemoryStore(SystemClock()), "https://login.test")
    for opening in (CommandLine.client_for_person, CommandLine.client_for_viewer):
        with pytest.raises(UserError, match=words):
            async with opening(line, where):
                pass


async def test_a_command_goes_to_its_server_or_stays_here() -> None:
    line = _line_on(MemoryStore(SystemClock()), "https://login.test")
    for opening in (CommandLine.client_for_person, CommandLine.client_for_viewer):
        async with opening(line, Where()) as client:
            assert client.after_exit() == "continues at https://login.test, not named"
        async with opening(line, Where(server="https://x.test")) as client:
            assert client.after_exit() == "continues at https://x.test, named"
        for here in (Where(server="local"), Where(data=Path("d")), Where(Path("d"), "local")):
            async with opening(line, here) as client:
                assert client.after_exit() == "waits for `podium up`"


def _line_on(store: MemoryStore, login: str | None = None) -> CommandLine:
    console = Console(file=io.StringIO())
    return CommandLine(cast("Installation", _Opened(store, login)), console, console)


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """A way to a server that only says which one it is."""

    words: str

    def after_exit(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class _Opened:
    """An installation on a store in memory."""

    store: MemoryStore
    login: str | None = None

    @property
    def servers(self) -> Self:
        return self

    def chosen(self, url: str | None) -> str | None:
        return None if url == "local" else url or self.login

    @asynccontextmanager
    async def client_of(self, url: str, say: Say, *, named: bool) -> AsyncIterator[_Elsewhere]:
        yield _Elsewhere(f"continues at {url}, {'named' if named else 'not named'}")

    def at(self, data_dir: Path | None) -> Self:
        return self

    @asynccontextmanager
    async def open(self) -> AsyncIterator[OpenPodium]:
        yield OpenPodium(self.store, SystemClock(), "memory", served=False, shared=False)


@pytest.mark.parametrize("name", ["", "  ", "a\x1b[2J", "a\nb", "x" * 65])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="printable"):
        actor_name(name)


def test_what_is_said_cannot_command_the_terminal() -> None:
    stream = io.StringIO()
    console = Console(file=stream)
    CommandLine(cast("Installation", None), console, console).say("a\x1b[2Jb")
    assert stream.getvalue() == "ab\n"


def test_a_file_is_read_as_bytes(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_bytes(b"\xff\x00")
    assert read_submission(file) == b"\xff\x00"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file") as refused:
        read_submission(tmp_path / "kernel.py")
    assert refused.value.code == "no-such-file"


def test_a_folder_is_no_submission(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder; name a file in it"):
        read_submission(tmp_path)


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    with file.open("wb") as stream:
        os.truncate(stream.fileno(), 1 << 34)
    assert len(read_submission(file)) == 32 << 20


def test_without_an_installation_the_environment_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DATA_DIR", str(tmp_path))
    assert command_line(typer.Context(build())).installation.data_dir == tmp_path


def test_a_given_installation_is_kept() -> None:
    given = Installation(Settings(data_dir=Path("elsewhere")))
    assert command_line(typer.Context(build(), obj=given)).installation is given


def test_what_the_environment_must_not_say_is_a_setup_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PODIUM_HTTP_PORT", "nonsense")
    with pytest.raises(SetupError, match="PODIUM_HTTP_PORT"):
        command_line(typer.Context(build()))
