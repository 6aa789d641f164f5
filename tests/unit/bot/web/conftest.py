"""Short waits for every test of the pages and the API: their stores and runners are in memory."""

import pytest

from bot.services.publishing import engine, queued_runner
from bot.web import rendering


@pytest.fixture(autouse=True)
def publications_are_looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "POLL_S", 0.01)
    monkeypatch.setattr(engine, "SAVE_S", 0.01)
    monkeypatch.setattr(queued_runner, "POLL_S", 0.05)
    monkeypatch.setattr(rendering, "TICK_S", 0.05)
