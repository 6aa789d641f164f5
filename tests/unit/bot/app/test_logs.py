"""Tests of where events are logged."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bot.app import logs as event_log
from bot.app.logs import log_to, to_stderr


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


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        ("debug", ["ours-debug", "ours-info", "library-info", "library-warning"]),
        ("info", ["ours-info", "library-warning"]),
        ("warning", ["library-warning"]),
        ("error", []),
    ],
)
def test_what_is_less_than_the_level_stays_out(tmp_path: Path, level: str, kept: list[str]) -> None:
    path = tmp_path / "podium.log"
    log_to(path, level=level)
    log, library = structlog.get_logger("test"), logging.getLogger("library")
    log.debug("ours-debug")
    log.info("ours-info")
    library.debug("a whole message, with whatever is in it")
    library.info("library-info")
    library.warning("library-warning")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    assert [json.loads(line)["event"] for line in lines] == kept


def test_what_a_library_could_not_handle_is_logged_with_its_traceback(tmp_path: Path) -> None:
    log_to(tmp_path / "podium.log")
    try:
        _fail("hunter", "2")
    except ZeroDivisionError:
        logging.getLogger("discord.ui.view").exception("Ignoring exception")
    [line] = (tmp_path / "podium.log").read_text(encoding="utf-8").splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"]) == ("Ignoring exception", "error")
    assert event["exception"][0]["exc_type"] == "ZeroDivisionError"


def test_a_traceback_holds_no_values_of_variables(tmp_path: Path) -> None:
    path = tmp_path / "podium.log"
    log_to(path)
    with pytest.raises(ZeroDivisionError) as raised:
        _fail("hunter", "2")
    structlog.get_logger("test").error("bug", exc_info=raised.value)
    text = path.read_text(encoding="utf-8")
    assert "ZeroDivisionError" in text
    assert "_fail" in text
    assert "hunter2" not in text


def _fail(*words: str) -> float:
    password = "".join(words)
    return len(password) / 0


def test_only_its_owner_may_read_the_log(tmp_path: Path) -> None:
    path = tmp_path / "podium.log"
    path.touch(mode=0o644)
    log_to(path)
    structlog.get_logger("test").info("hello")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_log_is_moved_away_and_the_oldest_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "MOST_BYTES", 10)
    path = tmp_path / "podium.log"
    log_to(path)
    for number in range(4):
        structlog.get_logger("test").info(f"event {number}")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["podium.log.1", "podium.log.2"]
    assert "event 3" in (tmp_path / "podium.log.1").read_text(encoding="utf-8")
    assert "event 2" in (tmp_path / "podium.log.2").read_text(encoding="utf-8")


def test_a_copy_of_each_line_goes_to_whoever_asks_for_it(tmp_path: Path) -> None:
    copies: list[str] = []
    log_to(tmp_path / "podium.log", copies.append)
    structlog.get_logger().info("first", action="one")
    logging.getLogger("httpx").warning("second")
    assert (tmp_path / "podium.log").read_text(encoding="utf-8").splitlines() == copies
    assert [json.loads(line)["event"] for line in copies] == ["first", "second"]


def test_no_line_holds_a_secret_whoever_wrote_it(tmp_path: Path) -> None:
    copies: list[str] = []
    token = "podium_worker_" + "a1_-" * 8
    log_to(tmp_path / "podium.log", copies.append, ['se"cret', "hunter22", "x"])
    structlog.get_logger().info('quoted: se"cret', key="hunter22", url="amqp://ada:pw@host/x")
    logging.getLogger("httpx").warning("sent %s to https://host/x", token)
    structlog.get_logger().error("failed", exc_info=ValueError("refused: hunter22"))
    text = "\n".join(copies)
    for secret in ("hunter22", 'se"cret', 'se\\"cret', token, "ada:pw"):
        assert secret not in text
    assert [json.loads(line)["level"] for line in copies] == ["info", "warning", "error"]
    assert json.loads(copies[0])["url"] == "amqp://***@host/x"
    assert "https://host/x" in copies[1]


def test_an_address_by_which_discord_is_answered_is_logged_without_its_token(
    tmp_path: Path,
) -> None:
    copies: list[str] = []
    log_to(tmp_path / "podium.log", copies.append)
    logging.getLogger("discord").warning(
        "POST https://discord.com/api/v10/interactions/5/aWi-x_Y/callback"
    )
    structlog.get_logger().error(
        "failed", exc_info=ValueError("https://discord.com/api/v10/webhooks/7/aWi-x_Y?wait=true")
    )
    assert "aWi-x_Y" not in "".join(copies)
    assert "/interactions/***/callback" in copies[0]
    assert "/webhooks/***?wait=true" in copies[1]


def test_a_container_is_shown_every_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_to(tmp_path / "podium.log", to_stderr, ["hunter22"])
    structlog.get_logger().info("the key is hunter22", action="one")
    said = capsys.readouterr().err
    assert said == (tmp_path / "podium.log").read_text(encoding="utf-8")
    assert json.loads(said)["event"] == "the key is ***"
