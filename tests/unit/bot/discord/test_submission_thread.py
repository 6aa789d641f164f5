import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from unittest.mock import AsyncMock

import discord
import pytest
from structlog.testing import capture_logs

from bot.discord import submission_thread
from bot.discord.channels import SubmissionDisplay
from bot.discord.context import FRONT_END
from bot.discord.submission_steps import ThreadUpdater
from bot.discord.submission_thread import DisplayLoop, run_displays
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.domain.submission import Submission
from runners.contract.task import Mode
from runners.contract.verdict import Stage
from tests.doubles.discord.limits import THREADS
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_room import LEASE, Room
from tests.doubles.discord_room import room as a_room

WITHIN_S = 5.0
"""Less than the beat at which everything is looked at: what comes sooner came by a hint."""
FORGOTTEN_S = 400.0
"""Discord has forgotten every nonce by then."""


@asynccontextmanager
async def shown(room: Room) -> AsyncIterator[DisplayLoop]:
    async with run_displays(room.client, room.context) as found:
        await asyncio.sleep(0.05)  # until it has subscribed
        yield found


async def all_reported(room: Room, submissions: list[Submission], within: float) -> None:
    def so() -> bool:
        return all(room.reports(each) == 1 for each in submissions)

    await room.server.wait_for(so, within)


async def test_a_new_submission_is_heard_of_and_shown_to_its_end(room: Room) -> None:
    async with shown(room) as found:
        submission = await room.submit()
        await room.server.wait_for(lambda: room.channel.threads, WITHIN_S)
        await room.place.judged(submission)
        await all_reported(room, [submission], WITHIN_S)
        await room.server.wait_for(lambda: not found.held, WITHIN_S)
    room.server.assert_clean()


async def test_what_moves_while_it_is_drawn_is_drawn_again(room: Room) -> None:
    room.server.rest.latency = 0.1
    async with shown(room):
        submission = await room.submit()
        await room.server.wait_for(lambda: room.channel.threads, WITHIN_S)
        await room.place.judged(submission)
        await all_reported(room, [submission], WITHIN_S)
    room.server.assert_clean()


async def test_who_waits_sees_the_queue_move(room: Room) -> None:
    async with shown(room):
        first, second = [await room.submit(mode=Mode.TEST) for _ in range(2)]
        await room.server.wait_for(lambda: room.channel.threads, WITHIN_S)
        await room.server.wait_for(lambda: len(room.thread.messages) == 2, WITHIN_S)
        live = room.thread.messages[-1]
        assert live.content.endswith("queued, position 2")
        await room.place.claim()
        await room.server.wait_for(
            lambda: live.content.endswith("queued, position 1, 1 running now"), WITHIN_S
        )
    assert first.id < second.id
    room.server.assert_clean()


@pytest.mark.parametrize("status", [503, 429, None])
async def test_while_discord_fails_it_is_seldom_asked_and_afterwards_all_is_shown_once(
    room: Room, monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    monkeypatch.setattr(submission_thread, "LONGEST_WAIT_S", 0.5)
    async with shown(room):
        with room.server.faults.during(Fault(status=status, retry_after=0.02)) as fault:
            submissions = [await room.submit(mode=Mode.TEST) for _ in range(20)]
            for each in submissions:
                await room.place.judged(each)
            await asyncio.sleep(1.0)
            before = fault.hits
            await asyncio.sleep(2.0)
            # One try every half a second; discord.py asks five times where it is told to wait.
            assert fault.hits - before <= 8 * 5
            assert room.channel.threads == []
        await all_reported(room, submissions, WITHIN_S)
    room.server.assert_clean()


async def test_hints_do_not_shorten_the_wait_after_a_failure(room: Room) -> None:
    await room.submit()
    with room.server.faults.during(Fault("POST", THREADS, 503)) as fault:
        async with shown(room):
            await room.server.wait_for(lambda: fault.hits, WITHIN_S)
            job = await room.place.claim()
            for done in range(20):
                await room.place.store.jobs.add_progress(
                    job.id, job.fence, Stage.TEST, {"done": done}
                )
                await asyncio.sleep(0.02)
            assert fault.hits == 1


async def test_one_that_fails_does_not_keep_the_others_back(room: Room) -> None:
    first = await room.submit(mode=Mode.TEST)
    with room.server.faults.during(Fault("POST", THREADS, 503, count=1)):
        async with shown(room):
            await asyncio.sleep(0.2)
            others = [await room.submit(mode=Mode.TEST) for _ in range(3)]
            for each in (first, *others):
                await room.place.judged(each)
            await all_reported(room, others, 1.5)
            await all_reported(room, [first], WITHIN_S)
    room.server.assert_clean()


async def test_a_long_rate_limit_is_waited_for_and_nobody_else_with_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await room.submit(mode=Mode.TEST)
    room.client.http.max_ratelimit_timeout = 0.5
    fault = Fault("POST", THREADS, 429, count=1, retry_after=1.0)
    with room.server.faults.during(fault):
        async with shown(room):
            await room.server.wait_for(lambda: fault.hits, WITHIN_S)
            other = await room.submit(mode=Mode.TEST)
            for each in (first, other):
                await room.place.judged(each)
            await all_reported(room, [other], 0.9)
            assert room.reports(first) == 0
            await all_reported(room, [first], WITHIN_S)
    room.server.assert_clean()


async def test_a_store_that_is_away_for_a_moment_is_asked_again(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission_thread, "LONGEST_WAIT_S", 0.1)
    jobs_of = room.place.store.jobs.of
    failures = iter(range(4))

    def of(submission: object) -> Awaitable[object]:
        if next(failures, None) is not None:
            raise StoreError("away")
        return jobs_of(submission)  # type: ignore[arg-type]

    submission = await room.submit(mode=Mode.TEST)
    await room.place.judged(submission)
    monkeypatch.setattr(room.place.store.jobs, "of", of)
    async with shown(room):
        await all_reported(room, [submission], WITHIN_S)
    assert list(failures) == []
    assert room.reports(submission) == 1


async def test_a_bug_with_one_is_no_end_for_the_others(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = [await room.submit(mode=Mode.TEST) for _ in range(2)]
    status_of: Callable[..., Awaitable[object]] = room.place.store.submissions.get

    async def get(submission: object) -> object:
        if submission == broken.id:
            raise TypeError("a bug")
        return await status_of(submission)

    for each in (broken, sound):
        await room.place.judged(each)
    monkeypatch.setattr(room.place.store.submissions, "get", get)
    async with shown(room):
        await all_reported(room, [sound], WITHIN_S)
        assert room.reports(broken) == 0


async def test_what_discord_will_never_take_is_left_to_who_asks(room: Room) -> None:
    submission = await room.submit(in_guild=False, mode=Mode.TEST)
    await room.place.judged(submission)
    room.alice.dms_open = False
    async with shown(room) as found:
        await room.server.wait_for(lambda: room.server.refused, WITHIN_S)
        await room.server.wait_for(lambda: not found.held, WITHIN_S)
    room.place.clock.advance(3600)
    assert await room.place.store.displays.claim(FRONT_END, "somebody", LEASE) == ()
    assert await room.place.store.displays.find(submission.id) is not None
    assert len(room.server.refused) == 1


async def test_a_bug_in_one_step_skips_only_that_step(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission_thread, "LONGEST_WAIT_S", 0.1)
    submission = await room.submit()
    await room.place.judged(submission)
    broken = AsyncMock(side_effect=discord.ClientException("nobody expected this"))
    monkeypatch.setattr(ThreadUpdater, "_report", broken)
    async with shown(room) as found:
        await room.server.wait_for(lambda: len(room.channel.threads) == 2, WITHIN_S)
        await room.server.wait_for(lambda: room.results.messages, WITHIN_S)
        await room.server.wait_for(lambda: not found.held, WITHIN_S)
    assert broken.await_count == 1
    room.server.assert_clean()


async def test_at_its_end_it_leaves_the_rest_to_the_next_process_at_once(room: Room) -> None:
    submission = await room.submit()
    async with shown(room):
        await room.server.wait_for(lambda: room.channel.threads, WITHIN_S)
    (left,) = await room.place.store.displays.claim(FRONT_END, "somebody", LEASE)
    assert left.submission == submission.id


@pytest.mark.parametrize("noted", ["thread", "reported", "announced"])
async def test_who_stops_before_it_is_written_down_leaves_nothing_to_be_shown_twice(
    room: Room, monkeypatch: pytest.MonkeyPatch, noted: str
) -> None:
    submission = await room.submit()
    await room.place.judged(submission)
    displays, stuck = room.place.store.displays, asyncio.Event()
    note = displays.save_state

    async def stop(number: SubmissionId, owner: str, place: str) -> bool:
        if SubmissionDisplay.model_validate_json(place).model_dump()[noted]:
            stuck.set()
            await asyncio.Event().wait()
        return await note(number, owner, place)

    with monkeypatch.context() as patched:
        patched.setattr(displays, "save_state", stop)
        async with shown(room):
            await asyncio.wait_for(stuck.wait(), WITHIN_S)
    room.server.clock.advance(FORGOTTEN_S)
    async with shown(room) as found:
        await room.server.wait_for(lambda: not found.held, WITHIN_S)
    assert len(room.thread.messages) == room.reports(submission) == 1
    assert len(room.channel.messages) == len(room.results.messages) == 1
    room.server.assert_clean()


async def test_a_place_that_cannot_be_read_costs_only_its_own_submission(room: Room) -> None:
    broken, sound = [await room.submit(mode=Mode.TEST) for _ in range(2)]
    displays = room.place.store.displays
    await displays.claim(FRONT_END, "somebody", LEASE)
    await displays.save_state(broken.id, "somebody", '{"channel": "none"}')
    await displays.release_all("somebody")
    for each in (broken, sound):
        await room.place.judged(each)
    with capture_logs() as logs:
        async with shown(room):
            await all_reported(room, [sound], WITHIN_S)
    (told,) = [each for each in logs if each["log_level"] == "error"]
    assert told["submission"] == broken.id
    assert room.reports(broken) == 0


async def test_what_somebody_else_has_shown_meanwhile_is_not_shown_again(room: Room) -> None:
    submission = await room.submit(mode=Mode.TEST)
    displays = room.place.store.displays
    first, other = (DisplayLoop(room.context, room.steps, owner) for owner in ("first", "other"))
    await first.claim()
    room.place.clock.advance(LEASE.total_seconds() + 1)
    await other.claim()
    await other.updater.advance(other.held[submission.id].shown, "other")
    await displays.release_all("other")
    await first.claim()
    await first.updater.advance(first.held[submission.id].shown, "first")
    assert len(room.thread.messages) == 1
    room.server.assert_clean()


async def test_what_is_taken_while_leases_are_prolonged_is_not_dropped(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    displays = room.place.store.displays
    keep = displays.renew
    submission: Submission | None = None

    async def answer_late(owner: str, lease: timedelta) -> tuple[SubmissionId, ...]:
        nonlocal submission
        kept = await keep(owner, lease)
        submission = submission or await room.submit(mode=Mode.TEST)
        await room.server.wait_for(lambda: room.channel.threads, WITHIN_S)
        return kept

    monkeypatch.setattr(displays, "renew", answer_late)
    async with shown(room) as found:
        await room.server.wait_for(lambda: room.channel.threads, WITHIN_S)
        await asyncio.sleep(0.05)
        assert submission is not None
        assert list(found.held) == [submission.id]
        await room.place.judged(submission)
        await all_reported(room, [submission], WITHIN_S)


async def test_a_crowd_overfills_no_window() -> None:
    async with a_room(scale=0.2) as here:
        here.server.rest.latency = 0.02
        people = [here.server.user(f"p{number}", here.guild) for number in range(24)]
        submissions = [await here.submit(user=each) for each in people]
        for each in submissions:
            await here.place.judged(each)
        async with shown(here):
            await here.server.wait_for(
                lambda: len(here.channel.threads) == 25 and len(here.results.messages) == 24, 20
            )
        here.server.assert_clean()
