"""Tests of what every command is handed."""

import getpass
import io
import os
from pathlib import Path
from typing import cast

import pytest
import typer
from rich.console import Console

from bot.domain.errors import UserError
from bot.frontends.cli.app import build
from bot.frontends.cli.context import CommandLine, actor_name, command_line, read_submission
from bot.frontends.cli.installation import Installation


def test_without_a_name_one_acts_as_the_user_of_the_machine() -> None:
    assert actor_name(None) == getpass.getuser()
    assert actor_name("ada") == "ada"


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
    with pytest.raises(UserError, match="cannot be read"):
        read_submission(tmp_path)


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    with file.open("wb") as stream:
        os.truncate(stream.fileno(), 1 << 34)
    assert len(read_submission(file)) == 32 << 20


def test_a_command_without_its_command_line_is_a_bug() -> None:
    context = typer.Context(typer.main.get_command(build()))
    with pytest.raises(TypeError, match="without its command line"):
        command_line(context)
