"""One running Podium that the tests of a module share."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from rich.cells import cell_len

from bot.discord.draw import TABLE_COLUMNS
from tests.e2e.discord.scene import Scene, scene


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_scene() -> AsyncIterator[Scene]:
    async with scene() as found:
        yield found


@pytest.fixture
def stage(shared_scene: Scene) -> Iterator[Scene]:
    """The shared scene, with nothing in its books; whatever a test says, they stay clean."""
    shared_scene.server.forget()
    yield shared_scene
    shared_scene.bob.shown = ""  # also if a test failed that had given him another name
    shared_scene.server.assert_clean()
    assert _too_wide(shared_scene) == []


def _too_wide(found: Scene) -> list[str]:
    """Return the lines of tables that a phone would break: those of code blocks without a language.

    What programs print is in blocks with a language; it is shown as it is.
    """
    bot = found.server.world.bot
    messages = [
        each
        for channel in found.server.world.channels.values()
        for each in channel.all_messages.values()
        if each.author is bot
    ]
    blocks = [block for each in messages for block in each.text.split("```")[1::2]]
    tables = [block for block in blocks if block.startswith("\n")]
    return [
        line for block in tables for line in block.splitlines() if cell_len(line) > TABLE_COLUMNS
    ]
