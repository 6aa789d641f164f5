"""Tests of where events are logged."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bot.store.event_log import log_to


@pytest.fixture(autouse=True)
def _unchanged_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def test_what_a_library_logs_goes_into_the_file_and_not_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_to(tmp_path / "podium.log")
    logging.getLogger("asyncpg.pool").warning("no %s", "server")
    [line] = (tmp_path / "podium.log").read_text(encoding="utf-8").splitlines()
    event = json.loads(line)
    assert (event["event"], event["library"]) == ("no server", "asyncpg.pool")
    assert capsys.readouterr() == ("", "")
