"""A server that does not get ready, and how often one that ends is started again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.domain.errors import SetupError
from bot.store.embedded import programs, server
from bot.store.embedded.programs import Account
from bot.store.embedded.server import FIRST_RESTART_S, LAST_RESTART_S, Cluster


async def test_a_server_that_does_not_get_ready_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    started: list[asyncio.subprocess.Process] = []
    start = programs.start

    async def recorded(
        account: Account, arguments: Sequence[str], log: int
    ) -> asyncio.subprocess.Process:
        started.append(await start(account, arguments, log))
        return started[-1]

    monkeypatch.setattr(server, "start", recorded)
    monkeypatch.setattr(server, "START_LIMIT_S", 0.3)
    cluster = Cluster(tmp_path, tmp_path, Account(), "secret", tmp_path, tmp_path / "log")
    with pytest.raises(SetupError, match="was not ready"):
        await cluster.start()
    (process,) = started
    assert process.returncode is not None


def test_there_is_a_pause_before_each_restart() -> None:
    assert 0 < FIRST_RESTART_S < LAST_RESTART_S
