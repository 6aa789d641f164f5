"""Questions outlast the process that asked; a form of an ended process changes nothing."""

import asyncio
import io
import signal
import zipfile
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.doubles.discord.limits import CALLBACK
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.rest.faults import Fault
from tests.e2e.command import IDENTITY
from tests.e2e.discord.scene import START_S, Scene, kernel, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

FORGOTTEN = "This menu has expired"
ACKNOWLEDGED = 40060
"""Discord's code for an interaction that has been acknowledged already."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_scene() -> AsyncIterator[Scene]:
    async with scene(gpus=("CPU", "H100")) as found:
        yield found


@pytest.fixture
def stage(shared_scene: Scene) -> Iterator[Scene]:
    """The shared scene: a bot that takes up what a killed one began acknowledges it once more."""
    shared_scene.server.forget()
    yield shared_scene
    shared_scene.server.assert_clean(allowing=[ACKNOWLEDGED])


async def asked_for_gpus(stage: Scene) -> Message:
    run = await stage.alice.slash(
        "leaderboard submit test", script=kernel(), leaderboard_name="identity"
    )
    return await run.final()


async def restarted(stage: Scene) -> None:
    await stage.bot.stop(signal.SIGKILL)
    await stage.bot.start(START_S)


async def replaced(stage: Scene, asked: Message, text: str) -> None:
    """Wait until the question's message has another text; then its menu and button are removed."""
    await stage.server.wait_for(lambda: text in asked.text, 30)
    assert [each.label for each in asked.buttons if each.label == "Submit"] == []
    assert asked.selects == []


async def test_a_question_outlasts_the_bot_that_asked(stage: Scene) -> None:
    asked = await asked_for_gpus(stage)
    await restarted(stage)
    await stage.alice.select(asked.select("GPU types: CPU to H100"), ["H100"])
    pressed = await stage.alice.click(asked, "Submit")
    assert pressed.latency < 1
    await replaced(stage, asked, "test on H100")


async def test_a_question_is_answered_once_and_its_menu_is_removed(stage: Scene) -> None:
    asked = await asked_for_gpus(stage)
    await stage.alice.select(asked.select("GPU types: CPU to H100"), ["H100"])
    clicks = [stage.alice.click(asked, "Submit") for _ in range(2)]
    first, second = await asyncio.gather(*clicks)
    first.repeat()
    await replaced(stage, asked, "test on H100")
    await stage.server.wait_for(lambda: [*first.followups, *second.followups], 10)
    (told,) = [*first.followups, *second.followups]
    assert "already answered" in told.text


async def test_a_click_that_a_killed_bot_was_handling_is_done_once(stage: Scene) -> None:
    asked = await asked_for_gpus(stage)
    await stage.alice.select(asked.select("GPU types: CPU to H100"), ["CPU"])
    fault = Fault("POST", CALLBACK, status=None, carried_out=True)
    with stage.server.faults.during(fault):
        pressed = await stage.alice.click(asked, "Submit")
        await stage.server.wait_for(lambda: fault.hits, 10)
        await restarted(stage)
    await replaced(stage, asked, "test on CPU")
    assert pressed.followups == []


async def test_an_update_is_confirmed_after_a_restart(stage: Scene) -> None:
    run = await stage.carol.slash(
        "leaderboard update", leaderboard_name="identity", task_zip=reworded()
    )
    await run.final()
    asked = await stage.carol.sees("Nothing is changed yet", stage.submissions)
    await restarted(stage)
    await stage.carol.click(asked, "Check and publish")
    await replaced(stage, asked, "Checking your task")


async def test_a_form_of_before_a_restart_deletes_nothing(stage: Scene) -> None:
    form = await stage.carol.slash("leaderboard delete", leaderboard_name="identity")
    await restarted(stage)
    sent = await stage.carol.modal(form, {"The board's exact name": "identity"})
    assert FORGOTTEN in (await sent.final()).text
    listed = await (await stage.bob.slash("leaderboard list")).final()
    assert "identity" in listed.text


def reworded() -> File:
    """The example task with another description."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("utils.py", (IDENTITY.parent / "utils.py").read_text())
        for path in sorted(IDENTITY.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                inside = path.relative_to(IDENTITY).as_posix()
                text = path.read_text().replace("description: |", "description: |\n  In short:", 1)
                made.writestr(f"identity/{inside}", text)
    return File("identity.zip", archive.getvalue())
