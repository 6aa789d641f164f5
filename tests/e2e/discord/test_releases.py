"""A task is proven whatever happens meanwhile: time, a kill, a second creator, a bad zip."""

import asyncio
import io
import re
import signal
import stat
import zipfile
from collections.abc import Mapping

import pytest
import yaml

from bot.domain.tasks.scaffold import scaffold
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.people import Role
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.users.person import Person
from tests.doubles.task_zips import WITH_EVAL
from tests.e2e.discord.scene import Scene, scene
from tests.e2e.discord.test_hostile_words import EVIL, REASON, faults

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

SKIPPED = "#!PODIUM needs mojo\n"
"""A right solution that is not run, so that no answers are overwritten, which a fake lets pass."""
CLOSED_DMS = 50007
MODERATE = Permission.VIEW_CHANNEL | Permission.SEND_MESSAGES | Permission.SEND_MESSAGES_IN_THREADS


def wrong(seconds: float = 0.0, verdict: str = "wrong_answer") -> str:
    return f"#!PODIUM expect wrong_answer\n# fake: verdict={verdict} seconds={seconds}\n"


def files(changed: Mapping[str, str] | None = None, *, seconds: float = 0.0) -> dict[str, str]:
    """A task whose one wrong solution takes so long on the fake runner."""
    sound = {
        "solutions/correct/torch_add.py": SKIPPED,
        "solutions/wrong/almost_two.py": wrong(seconds),
    }
    whole = {**scaffold("double"), **sound, **(changed or {})}
    return {f"double/{name}": text for name, text in whole.items()}


def zipped(content: Mapping[str, str | bytes]) -> File:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in content.items():
            made.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return File("double.zip", archive.getvalue())


async def create(
    stage: Scene, name: str, *, who: Person | None = None, zip_file: File | None = None
) -> Interaction:
    run = await (who or stage.carol).slash(
        "leaderboard create",
        leaderboard_name=name,
        task_zip=zip_file or zipped(files()),
        gpus="CPU",
    )
    await run.final()
    return run


async def board_names(stage: Scene) -> str:
    listed = await stage.bob.slash("leaderboard list")
    return (await listed.final()).text


async def test_a_check_that_outlives_the_interaction_is_told_by_the_bot(stage: Scene) -> None:
    await create(stage, "patient", zip_file=zipped(files(seconds=15)))
    thread = await stage.carol.sees_thread(": patient", within=60)
    live = await stage.carol.sees(
        lambda message: "almost\\_two.py: test" in message.text, thread, within=40
    )
    stage.server.clock.advance(901)
    assert "0 of" not in live.text
    await stage.carol.sees("patient on CPU is published", thread, within=60)
    await stage.bob.sees("New leaderboard: patient", stage.submissions)
    stage.server.assert_clean()


async def test_a_killed_bot_goes_on_and_tells_everything_once(stage: Scene) -> None:
    await create(stage, "tough", zip_file=zipped(files(seconds=3)))
    thread = await stage.carol.sees_thread(": tough", within=30)
    live = await stage.carol.sees("Checking the task of tough", thread)
    await stage.bot.stop(signal.SIGKILL)
    assert "New leaderboard: tough" not in str([each.text for each in stage.bob.messages()])
    await stage.bot.start(within=60)
    await stage.carol.sees("tough on CPU is published", thread, within=90)
    await stage.bob.sees("New leaderboard: tough", stage.submissions)
    assert "started again, because the bot was restarted" in live.text
    await asyncio.sleep(2)
    assert len(stage.carol.messages(thread)) == 2
    news = [each for each in stage.bob.messages() if "New leaderboard: tough" in each.text]
    assert len(news) == 1


async def test_while_discord_fails_the_board_is_made_and_told_of_later(stage: Scene) -> None:
    await create(stage, "muted", zip_file=zipped(files(seconds=1)))
    thread = await stage.carol.sees_thread(": muted", within=30)
    with stage.server.faults.during(Fault(status=500)):
        await asyncio.sleep(3)
    await stage.carol.sees("muted on CPU is published", thread, within=120)
    await stage.bob.sees("New leaderboard: muted", stage.submissions, within=30)
    news = [each for each in stage.bob.messages() if "New leaderboard: muted" in each.text]
    assert len(news) == 1
    assert "muted" in await board_names(stage)


async def test_an_unsound_task_is_refused_with_every_finding(stage: Scene) -> None:
    lucky = {
        "solutions/wrong/lucky.py": wrong(verdict="passed"),
        "solutions/wrong/late.py": wrong(verdict="timed_out"),
    }
    await create(stage, "unsound", zip_file=zipped(files(lucky)))
    thread = await stage.carol.sees_thread(": unsound", within=30)
    told = await stage.carol.sees("Nothing was published", thread, within=30)
    assert "lucky.py: got passed, expected wrong answer" in told.text
    assert "late.py: got timed out, expected wrong answer" in told.text
    assert "unsound" not in await board_names(stage)
    stage.server.assert_clean()


async def test_the_creator_chooses_who_grades_a_task_with_an_eval_py(stage: Scene) -> None:
    own = zipped(files({"task.yml": WITH_EVAL, "eval.py": "raise SystemExit(3)\n"}))
    run = await stage.carol.slash(
        "leaderboard create", leaderboard_name="graded", task_zip=own, gpus="CPU", grader="native"
    )
    await run.final()
    thread = await stage.carol.sees_thread(": graded", within=30)
    told = await stage.carol.sees("graded on CPU is published", thread, within=30)
    assert "Podium's judge grades, and eval.py is not run: the task's creator" in told.text
    shown = await (await stage.bob.slash("leaderboard task", leaderboard_name="graded")).final()
    assert "eval.py is not run: Podium's judge grades this task" in shown.text
    lonely = await stage.carol.slash(
        "leaderboard update", leaderboard_name="graded", grader="popcorn"
    )
    assert "The option grader needs task\\_zip" in (await lonely.final()).text
    stage.server.assert_clean()


async def test_a_hostile_zip_is_no_more_than_words(stage: Scene) -> None:
    hostile = files({"task.yml": _described(f"{EVIL} {REASON}"), "@everyone ||s||.py": REASON})
    await create(stage, "loud", zip_file=zipped(hostile))
    thread = await stage.carol.sees_thread(": loud", within=30)
    await stage.carol.sees("loud on CPU is published", thread, within=30)
    news = await stage.bob.sees("New leaderboard: loud", stage.submissions, within=30)
    assert "steam" in news.content
    for command in ("leaderboard task", "leaderboard template"):
        await (await stage.bob.slash(command, leaderboard_name="loud")).final()
    seen = [*stage.carol.messages(), *stage.carol.messages(thread), *stage.bob.messages()]
    live = [fault for each in seen if each.author.bot for fault in faults(each.content)]
    drawn = ("**New leaderboard", "**Task of")  # a description is Markdown, so it may be bold
    assert all("**b** " in fault and any(each in fault for each in drawn) for fault in live)
    assert not [each for each in live if not each.startswith(r"(?<![\\*])\*\*b")]
    assert not any(each.pings for each in seen)
    stage.server.assert_clean()


def _described(words: str) -> str:
    """The scaffold's task with other words for what it asks for."""
    task = yaml.safe_load(scaffold("double")["task.yml"])
    return yaml.safe_dump(task | {"description": words})


async def test_a_board_is_made_while_others_are_judged(stage: Scene) -> None:
    for _ in range(4):
        await (await stage.submit(stage.bob, "seconds=3 time_us=20")).final()
    await create(stage, "between")
    await stage.carol.sees("between on CPU is published", within=60)
    stage.server.assert_clean()


async def test_of_two_creators_of_one_name_one_gets_it(stage: Scene) -> None:
    def creator() -> Role | None:
        return next(
            (r for r in stage.guild.roles.values() if r.name == "Leaderboard Creator"), None
        )

    role = await stage.server.wait_for(creator)
    assert role is not None
    dora = stage.server.user("dora", stage.guild, roles=[role])
    dora.goes_to(stage.submissions)
    slow = zipped(files(seconds=2))
    await asyncio.gather(
        create(stage, "wanted", zip_file=slow), create(stage, "wanted", who=dora, zip_file=slow)
    )
    second = await dora.sees_thread(": wanted", within=30)

    def carols() -> Channel | None:  # who also sees dora's, because she may manage threads
        there = stage.carol.threads(stage.submissions)
        return next((t for t in there if ": wanted" in t.name and t is not second), None)

    first = await stage.server.wait_for(carols, 30)
    assert first is not None
    ends = [
        await person.sees(
            lambda message: any(
                # Who loses is told by the rule that saw it first: the name's, or the version's.
                end in message.text
                for end in (
                    "on CPU is published",
                    "another person",
                    "already a board named 'wanted'",
                )
            ),
            thread,
            within=40,
        )
        for person, thread in ((stage.carol, first), (dora, second))
    ]
    assert sorted("on CPU is published" in each.text for each in ends) == [False, True]
    await stage.bob.sees("New leaderboard: wanted", stage.submissions)
    news = [each for each in stage.bob.messages() if "New leaderboard: wanted" in each.text]
    assert len(news) == 1
    stage.server.assert_clean()


async def test_of_two_updates_at_once_the_second_is_asked_to_look_again(stage: Scene) -> None:
    await create(stage, "moving")
    thread = await stage.carol.sees_thread(": moving", within=30)
    await stage.carol.sees("moving on CPU is published", thread, within=30)
    for round_ in range(2):
        text = scaffold("double")["task.yml"].replace("Double every", f"Double {round_} every")
        content = zipped(files({"task.yml": text}, seconds=2))
        run = await stage.carol.slash(
            "leaderboard update", leaderboard_name="moving", task_zip=content
        )
        await run.final()
        asked = await stage.carol.sees(
            "Nothing is changed yet", stage.submissions, after=run.message
        )
        await (await stage.carol.click(asked, "Check and publish")).final()
    await stage.carol.sees("moving on CPU now has task version 2", within=40)
    await stage.carol.sees("has changed in the meantime; run the command again", within=40)
    stage.server.assert_clean()


async def test_a_board_that_is_deleted_while_it_is_updated_stays_deleted(stage: Scene) -> None:
    await (await stage.carol.slash("profile notices", stage.carol.dm)).final()
    await create(stage, "fleeting")
    await stage.carol.sees("fleeting on CPU is published", within=30)
    queued = await stage.submit(stage.bob, "seconds=20", leaderboard_name="fleeting")
    assert "is stored" in (await queued.final()).text
    text = scaffold("double")["task.yml"].replace("Double every", "Double each")
    content = zipped(files({"task.yml": text}, seconds=4))
    run = await stage.carol.slash(
        "leaderboard update", leaderboard_name="fleeting", task_zip=content
    )
    await run.final()
    asked = await stage.carol.sees("Nothing is changed yet", stage.submissions, after=run.message)
    await (await stage.carol.click(asked, "Check and publish")).final()
    form = await stage.carol.slash("leaderboard delete", leaderboard_name="fleeting")
    gone = await stage.carol.modal(form, {"The board's exact name": "fleeting"})
    assert "The board is deleted." in (await gone.final()).text
    with zipfile.ZipFile(io.BytesIO(stage.carol.dms[-1].files[0].data)) as kept:
        assert any(name.startswith("submissions/") for name in kept.namelist())
    await stage.carol.sees("'fleeting' was deleted in the meantime", within=40)
    assert "fleeting" not in await board_names(stage)
    stage.server.assert_clean()


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def with_link() -> File:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for name, text in files().items():
            made.writestr(name, text)
        made.writestr(entry("double/shadow", stat.S_IFLNK | 0o777), "/etc/shadow")
    return File("double.zip", archive.getvalue())


def edited(old: str, new: str) -> dict[str, str]:
    text = files()["double/task.yml"]
    assert old in text
    return {**files(), "double/task.yml": text.replace(old, new)}


NO_TESTS = "  - {size: 1, seed: 1}\n  - {size: 127, seed: 2}\n  - {size: 1000, seed: 3}\n"
BAD = {
    "too large": (File("x.zip", b"PK" + b"0" * (10 << 20)), "at most 10,485,760 are allowed"),
    "too many entries": (
        zipped({**files(), **{f"double/{n}": "" for n in range(1000)}}),
        "entries; at most 1000 are allowed",
    ),
    "absolute": (zipped({**files(), "/etc/cron": "x"}), "/etc/cron: an absolute path"),
    "outside": (zipped({**files(), "double/../../x": "x"}), "paths inside the task's folder"),
    "link": (with_link(), "double/shadow: a link or special file"),
    "nested": (zipped({**files(), "double/in.zip": "x"}), "double/in.zip: an archive inside"),
    "bomb": (zipped({**files(), "double/big": bytes(20 << 20)}), "200 times its packed size"),
    "no zip": (File("x.zip", b"hello"), "one folder with task.yml in it"),
    "no task.yml": (zipped({"double/reference.py": "x"}), "There is no task.yml in the zip"),
    "yaml": (zipped(edited("lang: py", "lang: [py")), "double/task.yml:6"),
    "unknown key": (zipped(edited("lang: py", "lnag: py")), "did you mean 'lang'"),
    "missing file": (
        zipped({k: v for k, v in files().items() if k != "double/reference.py"}),
        "double/task.yml:4: double/reference.py: there is no such file",
    ),
    "no tests": (zipped(edited("tests:\n" + NO_TESTS, "tests: []\n")), "double/task.yml:"),
}


async def test_a_bad_zip_is_refused_with_the_place_and_leaves_nothing(stage: Scene) -> None:
    threads = len(stage.submissions.threads)
    stage.server.world.limits.file_size = 20 << 20  # a boosted server takes larger files
    for kind, (zip_file, words) in BAD.items():
        run = await create(stage, "broken", zip_file=zip_file)
        assert words in (await run.final()).text.replace("\\", ""), kind
        assert "broken" not in await board_names(stage), kind
    await asyncio.sleep(1.2)
    assert len(stage.submissions.threads) == threads
    stage.server.assert_clean()


async def test_without_threads_it_is_told_in_direct_messages_where_they_are_taken() -> None:
    async with scene(permissions=MODERATE) as stage:
        stage.submissions.deny(stage.guild.everyone, Permission.CREATE_PRIVATE_THREADS)
        asked = await create(stage, "nowhere")
        said = await asked.followup()
        found = re.search(r"leaderboard check show id:(\d+)` shows the progress", said.text)
        assert found is not None
        outcome = await asked.followup(1, within=30)
        assert outcome.ephemeral
        assert "nowhere on CPU is published" in outcome.text
        shown = await stage.carol.slash("leaderboard check show", id=int(found[1]))
        assert "nowhere on CPU is published" in (await shown.final()).text
        assert stage.carol.dms == []
        await (await stage.carol.slash("profile notices", stage.carol.dm)).final()
        await create(stage, "direct")
        await stage.carol.sees("direct on CPU is published", stage.carol.dm, within=30)
        await stage.bob.sees("New leaderboard: direct", stage.submissions)
        stage.server.assert_clean()
        # Who can be told nowhere has the board announced all the same.
        told = len(stage.carol.dms)
        stage.carol.dms_open = False
        await create(stage, "unread")
        await stage.bob.sees("New leaderboard: unread", stage.submissions, within=30)
        assert len(stage.carol.dms) == told
        stage.server.assert_clean(allowing=[CLOSED_DMS])


async def test_in_a_thread_that_is_deleted_meanwhile_nothing_is_lost() -> None:
    async with scene() as stage:
        await (await stage.carol.slash("profile notices", stage.carol.dm)).final()
        await create(stage, "swept", zip_file=zipped(files(seconds=3)))
        thread = await stage.carol.sees_thread(": swept", within=30)
        await stage.carol.sees("Checking the task of swept", thread)
        del stage.server.world.channels[thread.id]
        await stage.carol.sees("swept on CPU is published", stage.carol.dm, within=30)
        await stage.bob.sees("New leaderboard: swept", stage.submissions, within=30)
        assert "swept" in await board_names(stage)


async def test_where_the_bot_may_not_write_the_creator_is_told_so() -> None:
    async with scene(permissions=MODERATE) as stage:
        stage.submissions.deny(stage.guild.everyone, Permission.SEND_MESSAGES)
        await create(stage, "quiet")
        thread = await stage.carol.sees_thread(": quiet", within=30)
        await stage.carol.sees("I cannot write there", thread, within=30)
        stage.server.assert_clean()


async def test_sixty_gpu_types_are_offered_and_any_can_be_chosen() -> None:
    kinds = [f"G{number:02}" for number in range(60)]
    async with scene("fake:CPU=2:" + ":".join(f"{kind}=1" for kind in kinds)) as stage:
        run = await stage.carol.slash(
            "leaderboard create", leaderboard_name="wide", task_zip=zipped(files())
        )
        await run.final()
        asked = await stage.carol.sees("Choose the board's GPU types", stage.submissions)
        await stage.carol.select(asked.select("GPU types: CPU to G23"), ["G03", "G11"])
        await stage.carol.select(asked.select("GPU types: G49 to G59"), ["G59"])
        await (await stage.carol.click(asked, "Check and publish")).final()
        await stage.carol.sees("wide on G03, G11, G59 is published", within=60)
        stage.server.assert_clean()
