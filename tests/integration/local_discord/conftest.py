"""A stage with a bot that a module's tests share, and one without a bot for each test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.local_discord.stage import ByHand, Played, by_hand, played


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_play(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Played]:
    async with played(tmp_path_factory.mktemp("bot") / "bot.log") as play:
        yield play


@pytest.fixture
def play(shared_play: Played) -> Played:
    """The shared stage, with nothing said and nothing in its books."""
    shared_play.server.forget()
    for channel in shared_play.stage.guild.channels:
        channel.all_messages.clear()
    return shared_play


@pytest.fixture
async def hand() -> AsyncIterator[ByHand]:
    async with by_hand() as hand:
        yield hand
