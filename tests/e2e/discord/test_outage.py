"""Nothing in the path of a result waits for Discord, and what was not shown is shown later."""

import asyncio
import signal

import pytest

from tests.doubles.discord.rest.faults import Fault
from tests.e2e.discord.scene import Scene, scene

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


async def judged(stage: Scene, submission: int, within: float = 30.0) -> None:
    """Wait until the store has the result, whatever Discord shows."""
    async with asyncio.timeout(within):
        while True:
            told = await asyncio.to_thread(stage.podium.shown, submission)
            if told["state"] == "finished":
                return
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("status", [500, None])
async def test_while_discord_fails_results_are_stored_and_shown_later(status: int | None) -> None:
    async with scene() as stage:
        run = await stage.submit(stage.alice, "seconds=0.5 time_us=30")
        assert "is stored" in (await run.final()).text
        with stage.server.faults.during(Fault(status=status)):
            await judged(stage, 1)
            await asyncio.sleep(1)
            assert not stage.bob.messages(stage.submissions)
        await stage.bob.sees("1st of 1 on CPU", stage.submissions, within=90)
        thread = await stage.alice.sees_thread("identity: ", within=60)
        reports = [each for each in stage.alice.messages(thread) if "submission #1:" in each.text]
        assert len(reports) == 1


async def test_a_killed_bot_shows_on_where_it_was_and_tells_nothing_twice() -> None:
    async with scene() as stage:
        run = await stage.submit(stage.alice, "seconds=3 time_us=30")
        await run.final()
        await stage.server.wait_for(lambda: "**Submission #1**" in run.message.text, 10)
        await stage.bot.stop(signal.SIGKILL)
        await stage.bot.start(within=60)
        await stage.server.wait_for(lambda: "passed in a ranked run on CPU" in run.message.text, 90)
        thread = await stage.alice.sees_thread("identity: ", within=60)
        await stage.alice.sees("passed in a ranked run on CPU", thread, within=60)
        await stage.bob.sees("1st of 1 on CPU", stage.submissions, within=30)
        # The private thread, and the public one of the board.
        assert len(stage.submissions.threads) == 2
        (report,) = stage.alice.messages(thread)
        again = await stage.alice.click(report, "Run again")
        assert "runs again as #2" in (await again.final()).text
        assert len(stage.server.syncs) == 1  # the commands, by the first of the two
        stage.server.assert_clean()
