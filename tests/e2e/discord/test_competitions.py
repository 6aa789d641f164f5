"""A competition on Discord: published from a zip, announced, shown, closed and extended."""

import signal

import pytest

from bot.domain.tasks.scaffold import scaffold
from tests.doubles.discord.model.files import File
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.users.filling import Value
from tests.doubles.discord.users.person import Person
from tests.doubles.task_zips import zipped
from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

WITHIN_S = 60
TEXT = """\
name: Cup 2030
points: ratio
prize: a mug
problems:
  - {directory: double, name: cup-one, gpus: [CPU]}
  - {directory: triple, name: cup-two, gpus: [CPU]}
"""


def competition(text: str = TEXT) -> File:
    """Tasks whose one correct solution is not run, so that the fake runner lets them pass."""
    sound = {
        "solutions/correct/torch_add.py": "#!PODIUM needs mojo\n",
        "solutions/wrong/almost_two.py": "#!PODIUM expect wrong_answer\n"
        "# fake: verdict=wrong_answer\n",
    }
    files = {"cup.yaml": text}
    for name in ("double", "triple"):
        files |= {f"{name}/{file}": words for file, words in (scaffold(name) | sound).items()}
    return File("cup.zip", zipped(files))


async def said(who: Person, command: str, **options: Value) -> str:
    return (await (await who.slash(f"admin {command}", **options)).final()).text


async def test_a_competition_is_published_announced_and_changed(stage: Scene) -> None:
    hall = stage.guild.create_channel("news")
    assert "competitions" in await said(stage.carol, "notices", channel=hall, competition=True)
    begun = await said(stage.carol, "competition publish", competition_zip=competition())
    assert begun.startswith("Checking the tasks of Cup 2030.")
    thread = await stage.carol.sees_thread(": Cup 2030", within=WITHIN_S)
    outcome = await stage.carol.sees("with 2 boards is published", thread, within=WITHIN_S)
    for words in ("cup-one on CPU is published", "unknown key 'prize'"):
        assert words in outcome.text
    told = await stage.bob.sees("Cup 2030 is open, with 2 boards", hall, within=WITHIN_S)
    assert not told.pings

    await said(stage.carol, "competition show", name="Cup 2030")
    shown = [each.text for each in stage.carol.messages() if "cup-two" in each.text]
    assert shown
    assert "is closed" in await said(stage.carol, "competition close", name="Cup 2030")
    await stage.bob.sees("Cup 2030 has closed", hall, within=WITHIN_S)
    again = await said(
        stage.carol, "competition extend", name="Cup 2030", deadline="2099-01-31 18:00"
    )
    assert "open until <t:4073565600:f>" in again
    late = await said(stage.carol, "competition close", name="Cup 2031")
    assert "did you mean" in late
    stage.server.assert_clean()


async def test_its_closing_is_announced_once_although_the_bot_is_killed_as_it_posts(
    stage: Scene,
) -> None:
    hall = next(each for each in stage.guild.channels if each.name == "news")
    assert "open until" in await said(
        stage.carol, "competition extend", name="Cup 2030", deadline="2099-02-28"
    )
    words, history = "Cup 2030 has closed", f"/channels/{hall.id}/messages"

    def announced() -> int:
        return sum(words in each.text for each in stage.bob.messages(hall))

    before = announced()
    lost = Fault("POST", "/channels/{channel_id}/messages", None, carried_out=True)
    with stage.server.faults.during(lost):
        await stage.carol.slash("admin competition close", name="Cup 2030")
        await stage.server.wait_for(lambda: announced() > before, WITHIN_S)
        await stage.bot.stop(signal.SIGKILL)
    asked = len(stage.server.requests)
    await stage.bot.start()

    def tried_again() -> bool:
        """Whether the next process has read the channel, or has posted once more."""
        later = stage.server.requests[asked:]
        read = any(each.method == "GET" and history in each.path for each in later)
        return read or announced() > before + 1

    await stage.server.wait_for(tried_again, 90)
    again = await said(
        stage.carol, "competition extend", name="Cup 2030", deadline="2099-03-31 18:00"
    )
    assert "open until <t:4078663200:f>" in again
    assert announced() == before + 1
    stage.server.assert_clean()


async def published(stage: Scene, name: str) -> None:
    zip_file = competition(TEXT.replace("Cup 2030", name).replace("cup-", "end-"))
    await said(stage.carol, "competition publish", competition_zip=zip_file)
    thread = await stage.carol.sees_thread(f": {name}", within=WITHIN_S)
    await stage.carol.sees("with 2 boards is published", thread, within=WITHIN_S)


async def test_a_competition_is_deleted_without_its_boards_or_with_them(stage: Scene) -> None:
    await published(stage, "Cup 2031")
    asked = await stage.carol.slash("admin competition delete", name="Cup 2031")
    wrong = await stage.carol.modal(asked, {"The competition's exact name": "Cup"})
    assert "nothing was deleted" in (await wrong.final()).text
    asked = await stage.carol.slash("admin competition delete", name="Cup 2031")
    gone = await stage.carol.modal(asked, {"The competition's exact name": "Cup 2031"})
    assert "Its boards stay: end-one, end-two." in (await gone.final()).text
    await published(stage, "Cup 2032")
    await (await stage.carol.slash("profile notices", stage.carol.dm)).final()
    asked = await stage.carol.slash("admin competition delete", name="Cup 2032", with_boards=True)
    gone = await stage.carol.modal(asked, {"The competition's exact name": "Cup 2032"})
    words = (
        "So are its boards: end-one, end-two. Their tasks and the sources you may read are in our"
        " direct"
    )
    assert words in (await gone.final()).text
    files = [file.filename for each in stage.carol.dms[-2:] for file in each.files]
    assert files == ["end-one.zip", "end-two.zip"]
    stage.server.assert_clean()


async def test_only_admins_have_competitions(stage: Scene) -> None:
    assert "admin" in (await said(stage.dana, "competition show")).lower()
    bad = await said(stage.carol, "competition publish", competition_zip=competition("name: x"))
    assert "the key 'problems' is missing" in bad.replace("\\", "")
    stage.server.assert_clean()
