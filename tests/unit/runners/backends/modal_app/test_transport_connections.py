"""How many connections the waiting questions of a runner take, against the local Modal."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import modal
import pytest

from runners.backends.modal_app import transport
from runners.backends.modal_app.app import APP, FUNCTION
from runners.backends.modal_app.transport import ModalConnections
from tests.doubles.modal.visible import local_modal


@pytest.fixture
async def opened(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModalConnections]:
    monkeypatch.setattr(transport, "MAX_POLLS", 2)
    async with local_modal():
        opened = ModalConnections()
        yield opened
        await opened.aclose()


async def asking(opened: ModalConnections, stack: AsyncExitStack, count: int) -> list[modal.Client]:
    return [await stack.enter_async_context(opened.for_poll()) for _ in range(count)]


async def reached(client: modal.Client) -> None:
    """Ask something by this connection."""
    name = modal.Function.from_name(APP, FUNCTION, client=client)
    with pytest.raises(modal.exception.NotFoundError):
        await name.hydrate.aio()


async def test_more_questions_than_a_connection_has_streams_for_wait_at_others(
    opened: ModalConnections,
) -> None:
    async with AsyncExitStack() as stack:
        at = await asking(opened, stack, 5)
        await reached(at[-1])
    first, other, third = (id(at[number]) for number in (0, 2, 4))
    assert [id(each) for each in at] == [first, first, other, other, third]
    assert len({first, other, third}) == 3


async def test_a_stream_is_free_again_after_its_question(opened: ModalConnections) -> None:
    async with AsyncExitStack() as stack:
        before = await asking(opened, stack, 4)
    async with AsyncExitStack() as stack:
        assert await asking(opened, stack, 4) == before


async def test_all_of_them_are_closed_and_open_again(opened: ModalConnections) -> None:
    async with AsyncExitStack() as stack:
        before = await asking(opened, stack, 3)
    await opened.aclose()
    assert all(client.is_closed() for client in before)
    async with AsyncExitStack() as stack:
        for client in await asking(opened, stack, 3):
            await reached(client)


async def test_without_a_token_there_is_one_connection(
    opened: ModalConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        (first, *_) = await asking(opened, stack, 1)
        monkeypatch.setattr(transport, "config", {})
        assert await asking(opened, stack, 4) == [first] * 4


async def test_closing_what_was_never_used_needs_no_modal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(modal.Client.from_env, "aio", lambda: asked.append("Modal"), raising=False)
    await ModalConnections().aclose()
    assert asked == []
