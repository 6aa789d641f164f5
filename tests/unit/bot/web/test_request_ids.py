"""Tests of the ids of requests."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import structlog
from fastapi import FastAPI

from bot.app.logs import log_to
from bot.web import middleware
from bot.web.app import build
from bot.web.middleware import REQUEST_ID
from tests.doubles.agents import make_door
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore


@pytest.fixture(autouse=True)
def _unchanged_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture
def app(memory_store: MemoryStore, clock: ManualClock) -> FastAPI:
    made = build(make_door(memory_store, clock))

    @made.post("/work")
    async def work() -> None:
        structlog.get_logger().info("worked", action="work")

    @made.get("/bug")
    async def bug() -> None:
        raise ZeroDivisionError

    return made


async def asked(app: FastAPI, method: str, path: str, offered: str = "") -> httpx.Response:
    way = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {REQUEST_ID: offered} if offered else {}
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        return await client.request(method, path, headers=headers)


def events(path: Path) -> list[dict[str, object]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_every_event_of_a_request_has_the_id_of_its_answer(
    app: FastAPI, tmp_path: Path
) -> None:
    log_to(tmp_path / "podium.log")
    answer = await asked(app, "POST", "/work?token=hunter2")
    worked, answered = events(tmp_path / "podium.log")
    assert answer.headers[REQUEST_ID] == worked["request"] == answered["request"]
    assert (answered["action"], answered["method"], answered["path"], answered["status"]) == (
        "request", "POST", "/work", 200,
    )  # fmt: skip
    assert "hunter2" not in str(answered)


async def test_a_bug_has_an_id_too_and_is_logged_with_it(app: FastAPI, tmp_path: Path) -> None:
    log_to(tmp_path / "podium.log")
    answer = await asked(app, "GET", "/bug")
    assert answer.status_code == 500
    incident, answered = events(tmp_path / "podium.log")
    assert answer.headers[REQUEST_ID] == incident["request"] == answered["request"]
    assert answered["status"] == 500


async def test_reading_what_is_there_or_not_leaves_no_line(
    app: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "SLOW_S", 1000.0)
    log_to(tmp_path / "podium.log")
    first, second = [await asked(app, "GET", path) for path in ("/healthz", "/nothing")]
    assert first.headers[REQUEST_ID] != second.headers[REQUEST_ID]
    assert events(tmp_path / "podium.log") == []


async def test_an_id_of_a_proxy_is_taken_over_unless_it_could_do_harm(app: FastAPI) -> None:
    assert (await asked(app, "GET", "/healthz", "abc-1.2_3")).headers[REQUEST_ID] == "abc-1.2_3"
    for bad in ("a b", "x" * 65, 'a"b', "a/../b"):
        assert (await asked(app, "GET", "/healthz", bad)).headers[REQUEST_ID] != bad
