"""A submission is made once and told once, whatever becomes of its acknowledgement."""

import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.doubles.discord.limits import CALLBACK
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.rest.faults import Fault
from tests.e2e.discord.scene import Scene, kernel, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

ALREADY_ANSWERED = 40060
MENU = "Submit this file"
BUTTON = "the button of the GPU types"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_scene() -> AsyncIterator[Scene]:
    async with scene(gpus=("CPU", "H100")) as found:
        yield found


def lost(status: int | None = 502) -> Fault:
    """Discord carries an acknowledgement out, and its answer does not arrive."""
    return Fault("POST", CALLBACK, status=status, carried_out=True, count=1)


async def submitted(stage: Scene, form: str) -> Interaction:
    """Alice hands a file in by one of the forms, and the acknowledgement's answer is lost."""
    faults = stage.server.faults
    if form == MENU:
        heading = b"#!PODIUM leaderboard identity\n#!PODIUM gpus CPU\n"
        message = await stage.alice.send("", File("k.py", heading + b"x = 1\n"))
        with faults.during(lost()):
            return await stage.alice.message_command(form, message)
    if form == BUTTON:
        asked = await (await stage.submit(stage.alice, mode="test")).final()
        await stage.alice.select(asked.select("GPU types: CPU to H100"), ["H100"])
        with faults.during(lost()):
            return await stage.alice.click(asked, "Submit")
    with faults.during(lost()):
        return await stage.submit(stage.alice, "time_us=30", mode=form, gpus="CPU")


@pytest.mark.parametrize("form", ["test", "benchmark", "ranked", "profile", MENU, BUTTON])
async def test_an_acknowledgement_whose_answer_is_lost_loses_no_submission(
    stage: Scene, form: str
) -> None:
    run = await submitted(stage, form)
    await run.final()
    await stage.server.wait_for(lambda: "is stored" in run.message.text, 10)
    stored = run.message.text
    assert not run.followups
    following = await (await stage.submit(stage.alice, mode="test", gpus="CPU")).final()
    assert number_in(following.text) == number_in(stored) + 1
    stage.server.assert_clean(allowing=[ALREADY_ANSWERED])
    stage.server.forget()


def number_in(text: str) -> int:
    return int(text.partition("#")[2].partition(" ")[0])


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
async def test_what_a_bot_had_acknowledged_when_it_ended_is_made_by_the_next_or_told(
    stage: Scene, sign: signal.Signals
) -> None:
    command = "leaderboard submit test"
    given = {"leaderboard_name": "identity", "gpus": "CPU"}
    silent = Fault("POST", CALLBACK, status=None, carried_out=True)
    with stage.server.faults.during(silent):
        kept = stage.alice.begin_slash(command, script=kernel(name="kept.py"), **given)
        gone = stage.alice.begin_slash(command, script=kernel(name="gone.py"), **given)
        await stage.server.wait_for(lambda: silent.hits == 2)
        await stage.bot.stop(sign)
    stage.server.world.cdn.remove("gone.py")
    await stage.bot.start(within=60)
    assert "is stored: test on CPU" in (await kept.final(within=60)).text
    assert "nothing was submitted" in (await gone.final(within=60)).text
    assert not kept.followups + gone.followups
    await stage.alice.sees_thread("identity: ")
    log = stage.bot.log + (stage.podium.folder / "data" / "podium.log").read_text()
    assert "interaction_again" in log
    assert "exception" not in log
    assert kept.token not in log
    assert gone.token not in log
    stage.server.assert_clean(allowing=[ALREADY_ANSWERED])
    stage.server.forget()
