"""Tests of which buttons a submission has, and for whom."""

from dataclasses import replace

import pytest

from bot.services.status import submission_status
from bot.services.tokens import create_token, session_of, sign_in_by_token
from bot.web.compat.evaluation_server.jobs import requests_board
from bot.web.sessions import Browser, SubmissionButtons, submission_buttons
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place


async def browser(place: Place, name: str) -> Browser:
    person = await place.person(name)
    token = await create_token(place.store, person, "x")
    made = await sign_in_by_token(place.store, place.clock, token.secret, "x")
    session = await session_of(place.store, place.clock, made.secret)
    assert session is not None
    return Browser(session, "a stamp")


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


async def test_the_buttons_are_those_that_make_sense_for_its_owner(place: Place) -> None:
    ada, bob = await browser(place, "ada"), await browser(place, "bob")
    offered = {}
    for mode in (Mode.RANKED, Mode.TEST):
        submission = await place.submit(mode=mode)
        waiting = await submission_status(place.store, submission.id)
        assert submission_buttons(bob, waiting) is None
        assert submission_buttons(None, waiting) is None
        first = submission_buttons(ada, waiting)
        assert first is not None
        assert (first.cancel, first.again, first.ranked, first.withdraw) == (True,) + (False,) * 3
        await place.judged(submission)
        found = submission_buttons(ada, await submission_status(place.store, submission.id))
        assert found is not None
        offered[mode] = (found.cancel, found.again, found.ranked, found.withdraw)
    assert offered[Mode.RANKED] == (False, True, False, True)
    assert offered[Mode.TEST] == (False, True, True, False)


async def test_a_run_that_failed_on_one_of_its_gpu_types_is_to_be_fixed(place: Place) -> None:
    ada, submission = await browser(place, "ada"), await place.submit()
    await place.judged(submission)
    ended = await submission_status(place.store, submission.id)
    (passed,) = ended.jobs
    assert passed.evaluation is not None
    failed = replace(
        passed, evaluation=passed.evaluation.model_copy(update={"verdict": Verdict.CRASHED})
    )
    for jobs in ((passed,), (passed, failed), (passed, replace(passed, evaluation=None))):
        found = submission_buttons(ada, replace(ended, jobs=jobs))
        assert found is not None
        assert (found.edit, found.passed) == (True, jobs == (passed,))


async def test_a_request_to_the_evaluation_server_can_be_stopped_and_no_more(place: Place) -> None:
    ada, board = await browser(place, "ada"), await requests_board(place.store)
    waiting = await submission_status(place.store, (await place.submit(mode=Mode.TEST)).id)
    assert submission_buttons(ada, replace(waiting, board=board)) == SubmissionButtons(
        waiting.submission.id, ada.stamp, cancel=True
    )
    await place.judged(waiting.submission)
    ended = await submission_status(place.store, waiting.submission.id)
    assert submission_buttons(ada, replace(ended, board=board)) == SubmissionButtons(
        waiting.submission.id, ada.stamp
    )
