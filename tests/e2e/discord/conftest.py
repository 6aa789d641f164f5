"""One running Podium that the tests of a module share."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

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
    shared_scene.server.assert_clean()
