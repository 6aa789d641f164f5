"""Tests over a real socket, with the very bytes that the Rust client sends."""

import asyncio
from contextlib import AsyncExitStack

from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.submission import Submission
from bot.web.app import serving
from bot.web.context import HttpSettings
from runners.contract.evaluation import CaseKind
from runners.contract.task import Mode
from tests.doubles.agents import make_door
from tests.doubles.factories import make_case
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import SOURCE, PopcornCli, form, uploading

HERE = HttpSettings("127.0.0.1", 0)
SUBMISSION, STREAM = "/submission/vectoradd/CPU/test", "/vectoradd/CPU/profile"


async def newest(place: Place) -> Submission:
    return (await place.store.submissions.to(place.board.id))[-1]


async def test_the_bytes_of_the_rust_client_are_taken_in(place: Place, ada: PopcornCli) -> None:
    token = str(ada.token)
    async with serving(make_door(place.store, place.clock), HERE) as url, asyncio.timeout(10):
        async with uploading(url, token, SUBMISSION, form()) as line:
            head = await line.head()
            assert head.startswith("http/1.1 202 ")
            number = (await line.json(head))["details"]["id"]
        stored = await newest(place)
        assert (stored.id, stored.person, stored.mode) == (number, place.ada, Mode.TEST)
        assert await place.store.submissions.source(SubmissionId(number)) == SOURCE.decode()
        await place.judged(stored)

        async with uploading(url, token, STREAM, form()) as line:
            assert "content-type: text/event-stream" in await line.head()
            assert "event: status" in await line.event()
            cases = (make_case(CaseKind.PROFILE),)
            await place.judged(await newest(place), cases=cases)
            while "event: result" not in await line.event():
                pass


async def test_a_client_that_hangs_up_has_its_submission_cancelled(
    place: Place, ada: PopcornCli
) -> None:
    async with serving(make_door(place.store, place.clock), HERE) as url, asyncio.timeout(10):
        async with uploading(url, str(ada.token), STREAM, form()) as line:
            await line.head()
            await line.event()
        submission = await newest(place)
        while (await place.jobs(submission))[0].state is not JobState.CANCELLED:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert [each.state for each in await place.jobs(submission)] == [JobState.CANCELLED]


async def test_a_door_that_closes_ends_a_stream_and_cancels_nothing(
    place: Place, ada: PopcornCli
) -> None:
    async with asyncio.timeout(10):
        async with AsyncExitStack() as stack:
            async with serving(make_door(place.store, place.clock), HERE) as url:
                sending = uploading(url, str(ada.token), STREAM, form())
                line = await stack.enter_async_context(sending)
                await line.head()
                await line.event()
            assert "continues" in await line.event()
    assert (await place.jobs(await newest(place)))[0].state is JobState.QUEUED


async def test_a_file_that_is_far_too_long_is_told_so_before_the_line_is_closed(
    place: Place, ada: PopcornCli
) -> None:
    body = form(b"#" * 3_000_000)
    async with (
        asyncio.timeout(10),
        serving(make_door(place.store, place.clock), HERE) as url,
        uploading(url, str(ada.token), SUBMISSION, body) as line,
    ):
        head = await line.head()
        assert head.startswith("http/1.1 413 ")
        assert "at most 1,000,000" in (await line.json(head))["detail"]
