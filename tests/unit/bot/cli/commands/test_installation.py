from pathlib import Path
from types import SimpleNamespace
from typing import Self, cast

import pytest
import typer

from bot.cli.commands import installation


class Line:
    """A command line whose database has one row."""

    def __init__(self) -> None:
        self.said: list[str] = []

    @property
    def installation(self) -> Self:
        return self

    def at(self, _: Path | None) -> Self:
        return self

    async def backup(self, _: object) -> SimpleNamespace:
        return SimpleNamespace(rows={"boards": 1})

    def say(self, words: str) -> None:
        self.said.append(words)


def test_a_backup_through_a_pipe_is_told_by_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    line, context = Line(), cast("typer.Context", None)
    monkeypatch.setattr(installation, "command_line", lambda _: line)
    installation.backup(context, Path("-"))
    assert line.said == ["stdout: 1 rows of 1 tables; keep it as secret as the database"]
