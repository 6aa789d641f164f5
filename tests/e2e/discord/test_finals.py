"""A faster kernel on Discord: pending, confirmed, and a final that an admin starts."""

import pytest

from tests.doubles.discord.model.interactions import Interaction
from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

SHOWN_S = 40


async def test_a_run_is_confirmed_then_announced_and_a_final_is_decided(stage: Scene) -> None:
    await stage.submit(stage.alice, "time_us=30", name="holder.py")
    await stage.alice.sees("1st of 1 on CPU", within=SHOWN_S)

    run = await stage.submit(stage.bob, "time_us=20", name="faster.py")
    thread = await stage.bob.sees_thread("identity: ", within=SHOWN_S)
    confirmed = "confirmed: 50.00 % ± 0.23 faster than"
    await stage.bob.sees(confirmed, thread, within=SHOWN_S)
    await stage.server.wait_for(lambda: confirmed in run.message.text, SHOWN_S)
    await stage.bob.sees("1st of 2 on CPU", within=SHOWN_S)

    refused = await stage.dana.slash("admin final", leaderboard_name="identity")
    assert "This needs the role" in (await refused.final()).text
    started = await stage.carol.slash("admin final", leaderboard_name="identity")
    assert "has begun" in (await started.final()).text
    shown = await stage.carol.slash("leaderboard show", leaderboard_name="identity")
    assert "final of the first 10 on CPU" in (await shown.final()).text

    async def ended() -> Interaction:
        again = await stage.alice.slash("leaderboard show", leaderboard_name="identity")
        await again.final()
        return again

    shown = await ended()
    while "ended on" not in shown.message.text:
        shown = await ended()
    table = await (await stage.alice.click(shown.message, "Final")).final()
    assert "final of identity" in table.text.lower()
    assert "+50.00 % ± 0.10" in table.text
