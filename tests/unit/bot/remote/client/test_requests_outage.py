"""Tests of waiting for a server that is away."""

import pytest

from bot.domain.errors import SetupError, StoreError
from bot.remote.client import requests
from bot.remote.client.requests import Outage


async def test_an_outage_is_told_once_at_its_beginning_and_once_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "_FIRST_WAIT_S", 0.001)
    said: list[str] = []
    away = Outage("https://p.test", said.append, 60.0)
    away.end()
    for _ in range(3):
        await away.wait(StoreError("no answer"))
    away.end()
    away.end()
    assert said == ["no answer; retrying for 60 s", "https://p.test answers again"]


async def test_a_server_is_not_waited_for_for_ever() -> None:
    away = Outage("https://p.test", lambda _: None, 0.0)
    with pytest.raises(SetupError, match="no answer; retried for 0 s"):
        await away.wait(StoreError("no answer"))
