"""From an empty guild to a created board: the zip, the GPU menus, the dry run, the news."""

import io
import re
import zipfile
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.architecture.tree import ROOT
from tests.doubles.discord.model.files import File
from tests.e2e.discord.scene import Scene, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

VECTORADD = ROOT / "tasks" / "examples" / "vectoradd"
CLOSED_DMS = 50007
BRIEF = re.sub(r"1048576|262144", "66000", (VECTORADD / "task.yml").read_text())
"""Its runs take little time."""
HOG = "solutions/wrong/memory_hog.py"
UNTOUCHED = (VECTORADD / HOG).read_text().replace("torch.ones(", "torch.empty(")
"""Memory counts when it is reserved; to write to gigabytes would take seconds."""
NEXT = BRIEF.replace("Add two vectors", "Add both vectors")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_scene() -> AsyncIterator[Scene]:
    async with scene("local") as found:
        yield found


def zipped(name: str = "vectoradd.zip", **changed: str) -> File:
    """The example task as a zip; a changed file replaces the one of that name."""
    changed = {"task.yml": BRIEF, HOG: UNTOUCHED} | changed
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("utils.py", (VECTORADD.parent / "utils.py").read_text())
        for path in sorted(VECTORADD.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                inside = path.relative_to(VECTORADD).as_posix()
                made.writestr(f"vectoradd/{inside}", changed.get(inside, path.read_text()))
    return File(name, archive.getvalue())


async def test_a_zip_becomes_a_board_that_everyone_hears_of(stage: Scene) -> None:
    run = await stage.carol.slash(
        "leaderboard create",
        leaderboard_name="adding",
        task_zip=zipped(),
        deadline="2099-01-31 18:00 Europe/Berlin",
    )
    assert "5 tests, 2 benchmarks" in (await run.final()).text
    asked = await stage.carol.sees("Choose the board's GPU types", stage.submissions)
    await stage.carol.select(asked.select("GPU types: CPU"), ["CPU"])
    pressed = await stage.carol.click(asked, "Check and publish")
    thread = await stage.carol.sees_thread("Check 1: adding", within=30)
    live = await stage.carol.sees("Checking the task of adding", thread)
    await stage.carol.sees("adding on CPU is published", thread, within=100)
    assert "17 of 17 runs have ended" in live.text
    assert "solutions/wrong/bfloat16.py: wrong answer, as expected" in live.text
    assert not stage.bob.can_see(thread)
    news = await stage.bob.sees("New leaderboard: adding", stage.submissions, within=10)
    assert "<t:4073562000:F>" in news.text
    template = await stage.bob.click(news, "Template")
    file = (await template.final()).files[0]
    assert file.data.startswith(b"#!PODIUM leaderboard adding\n")
    assert pressed.latency < 1
    listed = await stage.bob.slash("leaderboard list")
    assert "**adding** on CPU, until <t:4073562000:F>" in (await listed.final()).text
    stage.server.assert_clean()


async def test_a_participant_stands_on_the_new_board(stage: Scene) -> None:
    source = (VECTORADD / "solutions" / "correct" / "torch_add.py").read_text()
    script = File("add.py", source.replace("vectoradd", "adding").encode())
    run = await stage.bob.slash(
        "leaderboard submit ranked", script=script, leaderboard_name="adding"
    )
    await run.final()
    await stage.bob.sees("1st of 1 on CPU", stage.submissions, within=110)
    stage.server.assert_clean()


async def test_the_second_version_is_told_apart_and_can_be_judged_again(stage: Scene) -> None:
    run = await stage.carol.slash(
        "leaderboard update", leaderboard_name="adding", task_zip=zipped(**{"task.yml": NEXT})
    )
    assert "Task" in (await run.final()).text
    change = await stage.carol.sees("What changes on adding", stage.submissions)
    assert "+Add both vectors" in change.text
    agreed = await stage.carol.sees("Nothing is changed yet", stage.submissions)
    await stage.carol.click(agreed, "Check and publish")
    question = await stage.carol.sees("best submission (1) with the new version", within=100)
    answer = await stage.carol.click(question, "Judge again")
    assert "1 submission is judged by task version 2" in (await answer.final()).text
    twice = await stage.carol.click(question, "Judge again")
    assert "nothing to rejudge" in (await twice.final()).text
    stage.server.assert_clean()


async def test_an_announcement_works_after_a_restart_and_settings_change_alone(
    stage: Scene,
) -> None:
    await stage.bot.stop()
    await stage.bot.start(within=60)
    news = await stage.bob.sees("New leaderboard: adding", stage.submissions)
    template = await stage.bob.click(news, "Template")
    assert (await template.final()).files
    endless = await stage.carol.slash(
        "leaderboard update", leaderboard_name="adding", deadline="none"
    )
    assert "adding on CPU: changed" in (await endless.final()).text
    same = await stage.carol.slash(
        "leaderboard update", leaderboard_name="adding", task_zip=zipped(**{"task.yml": NEXT})
    )
    await same.final()
    await stage.carol.sees("nothing to change", stage.submissions)
    stage.server.assert_clean()


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        (File("x.zip", b"no zip"), {}, "zip"),
        (zipped(**{"task.yml": "nonsense: 1\n"}), {}, "task.yml"),
        (zipped(), {"deadline": "yesterday"}, "YYYY-MM-DD"),
        (zipped(), {"leaderboard_name": "identity"}, "Board 'identity' already exists"),
    ],
)
async def test_a_board_that_cannot_be_is_refused_with_the_reason(
    stage: Scene, file: File, options: dict[str, str], words: str
) -> None:
    given = {"leaderboard_name": "fresh"} | options
    run = await stage.carol.slash("leaderboard create", task_zip=file, **given)
    assert words in (await run.final()).text
    listed = await stage.bob.slash("leaderboard list")
    assert "fresh" not in (await listed.final()).text
    stage.server.assert_clean()


async def test_without_the_role_nobody_makes_a_board(stage: Scene) -> None:
    run = await stage.alice.slash("leaderboard create", leaderboard_name="mine", task_zip=zipped())
    assert "Leaderboard Creator or Leaderboard Admin" in (await run.final()).text
    stage.server.assert_clean()


async def test_a_board_goes_only_when_its_name_is_typed(stage: Scene) -> None:
    asked = await stage.carol.slash("leaderboard delete", leaderboard_name="adding")
    wrong = await stage.carol.modal(asked, {"The board's exact name": "addin"})
    assert "nothing was deleted" in (await wrong.final()).text
    await (await stage.carol.slash("profile notices", stage.carol.dm)).final()
    asked = await stage.carol.slash("leaderboard delete", leaderboard_name="adding")
    gone = await stage.carol.modal(asked, {"The board's exact name": "adding", "Reason": "over"})
    assert "The board is deleted." in (await gone.final()).text
    file = stage.carol.dms[-1].files[0]
    with zipfile.ZipFile(io.BytesIO(file.data)) as kept:
        assert "task/1/reference.py" in kept.namelist()
    listed = await stage.bob.slash("leaderboard list")
    assert "adding" not in (await listed.final()).text
    other = await stage.bob.slash("leaderboard delete", leaderboard_name="identity")
    assert "belongs to another person" in other.message.text
    stage.server.assert_clean()


async def test_who_takes_no_direct_messages_gets_the_sources_in_the_answer(stage: Scene) -> None:
    stage.carol.dms_open = False
    try:
        asked = await stage.carol.slash("leaderboard delete", leaderboard_name="identity")
        gone = await stage.carol.modal(asked, {"The board's exact name": "identity"})
        assert (await gone.final()).files
        await stage.carol.sees("save it now, because Discord deletes it later", stage.submissions)
    finally:
        stage.carol.dms_open = True
    assert [each.code for each in stage.server.refused] == [CLOSED_DMS]
    stage.server.assert_clean(allowing=[CLOSED_DMS])
    stage.server.forget()
