import io
import sys
from pathlib import Path
from typing import cast

import pytest
from typing_extensions import override

from bot.app.installation import Installation
from bot.cli.app import run
from bot.cli.commands import submissions


class _Terminal(io.StringIO):
    @override
    def isatty(self) -> bool:
        return True


class _Nothing:
    data_dir = Path(".podium")


@pytest.mark.parametrize(
    ("typed", "words", "withdrawn"),
    [("n\n", (), []), ("y\n", (), [17]), ("", ("--yes",), [17])],
)
def test_a_withdrawal_is_asked_about_at_a_terminal(
    typed: str, words: tuple[str, ...], withdrawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []

    async def withdraw(_line: object, _where: object, number: int, _reason: str) -> None:
        done.append(number)

    monkeypatch.setattr(submissions, "_withdraw", withdraw)
    monkeypatch.setattr(sys, "stdin", _Terminal(typed))
    status = run(("withdraw", "17", *words), cast("Installation", _Nothing()))
    assert (done, status == 0) == (withdrawn, bool(withdrawn))
