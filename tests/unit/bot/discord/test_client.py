import logging

import pytest

from bot.discord.client import logged_in_client
from bot.discord.context import DiscordContext, DiscordSettings
from bot.discord.responses import SupersededError
from tests.doubles.clock import ManualClock
from tests.doubles.discord.limits import Rates
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.memory_store import MemoryStore


async def start(server: LocalDiscord) -> None:
    """One start of the bot, up to where it would connect."""
    clock = ManualClock()
    settings = DiscordSettings(server.token, server.api_base, server.gateway_url)
    async with logged_in_client(DiscordContext(MemoryStore(clock), clock), settings):
        pass


async def test_commands_are_published_once_and_again_when_one_has_changed() -> None:
    async with LocalDiscord(rates=Rates(0)) as server:
        await start(server)
        await start(server)
        assert len(server.syncs) == 1
        server.commands[0]["description"] = "what an older bot said"
        await start(server)
        assert len(server.syncs) == 2
        await start(server)
        assert len(server.syncs) == 2
        server.assert_clean()


async def test_every_command_and_option_is_described_for_those_who_type() -> None:
    async with LocalDiscord(rates=Rates(0)) as server:
        await start(server)
        for command in server.commands:
            if command["type"] == 1:
                assert described(command)


@pytest.mark.parametrize(("error", "lines"), [(SupersededError(), 0), (ValueError(), 1)])
def test_who_gives_way_to_another_copy_leaves_no_trace(
    error: Exception, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("discord.ui.view").error("Ignoring exception", exc_info=error)
    assert len(caplog.records) == lines


def described(command: dict[str, object]) -> bool:
    """Whether it and everything in it says more than its name."""
    inside = command.get("options") or []
    assert isinstance(inside, list)
    return len(str(command.get("description", ""))) > 5 and all(map(described, inside))
