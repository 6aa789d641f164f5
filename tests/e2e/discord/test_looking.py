"""Admins read and stop anyone's submission; everyone else sees verdicts without exceptions."""

import csv
import io

import pytest

from tests.doubles.discord.users.filling import Value
from tests.doubles.discord.users.person import Person
from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

SHOWN_S = 30


async def said(who: Person, command: str, /, **options: Value) -> str:
    return (await (await who.slash(command, **options)).final()).text


async def stored(stage: Scene, who: Person, directive: str, name: str, mode: str = "ranked") -> int:
    text = (await (await stage.submit(who, directive, mode, name=name)).final()).text
    assert "is stored" in text
    return int(text.split("#")[1].split()[0])


async def test_an_admin_reads_any_report_and_source_and_that_is_recorded(stage: Scene) -> None:
    number = await stored(stage, stage.bob, "time_us=5", "mine.py")
    await stage.bob.sees(f"submission #{number}", stage.submissions, within=SHOWN_S)
    seen = await (await stage.carol.slash("admin submission look", id=number)).final()
    assert "Submitted by Bob (@bob)" in seen.text
    assert "passed in a ranked run on CPU" in seen.text
    assert b"custom_kernel" in seen.file("mine.py").data
    refused = await said(stage.dana, "admin submission look", id=number)
    assert "This needs the role" in refused
    file = await (await stage.carol.slash("admin audit", as_file=True)).final()
    rows = list(csv.DictReader(io.StringIO(file.file("audit.csv").text)))
    assert rows[0]["action"] == "look"
    assert rows[0]["subject"] == f"submission {number}"
    stage.server.assert_clean()


async def test_an_admin_stops_a_run_by_its_number_and_from_the_menu_of_its_line(
    stage: Scene,
) -> None:
    number = await stored(stage, stage.bob, "seconds=60", "slow.py", "test")
    told = await said(stage.carol, "admin submission cancel", id=number, reason="it *hangs*")
    assert told == f"Stopping submission #{number}."
    await stage.bob.sees("cancelled by an admin: it \\*hangs\\*", within=SHOWN_S)
    again = await said(stage.carol, "admin submission cancel", id=number)
    assert "has already ended" in again
    second = await stored(stage, stage.bob, "seconds=60", "slower.py", "test")
    looked = await (await stage.carol.slash("admin submission look", id=second)).final()
    form = await stage.carol.click(looked, "Cancel it")
    stopped = await stage.carol.modal(form, {"Reason, shown to its owner": "too *long*"})
    assert (await stopped.final()).text == f"Stopping submission #{second}."
    await stage.bob.sees("cancelled by an admin: too \\*long\\*", within=SHOWN_S)
    stage.server.assert_clean()


async def test_the_menu_of_a_public_line_shows_its_submission_to_admins(stage: Scene) -> None:
    number = await stored(stage, stage.alice, "time_us=3", "fast.py")
    line = await stage.carol.sees(f"submission #{number}", within=SHOWN_S)
    opened = await (await stage.carol.message_command("Moderate", line)).final()
    assert b"custom_kernel" in opened.file("fast.py").data
    refused = await (await stage.dana.message_command("Moderate", line)).final()
    assert "This needs the role" in refused.text
    chat = await stage.alice.send("submission #1 is mine")
    other = await (await stage.carol.message_command("Moderate", chat)).final()
    assert "not about a submission" in other.text
    stage.server.assert_clean()


async def test_the_stated_readers_of_a_source_stay_the_same_for_earlier_submissions(
    stage: Scene,
) -> None:
    update: dict[str, Value] = {"leaderboard_name": "identity"}
    await said(stage.carol, "leaderboard update", sources="never", **update)
    text = (await (await stage.submit(stage.alice, "time_us=9", name="kept.py")).final()).text
    assert "Only you and admins may read your source." in text
    number = int(text.split("#")[1].split()[0])
    await said(stage.carol, "leaderboard update", sources="always", **update)
    refused = await said(stage.bob, "submission source", id=number)
    assert "when it was submitted its board never showed sources" in refused
    text = (await (await stage.submit(stage.alice, "time_us=9", name="open.py")).final()).text
    assert "Everyone who sees the board may read your source, also in exports" in text
    later = int(text.split("#")[1].split()[0])
    source = await (await stage.bob.slash("submission source", id=later)).final()
    assert source.file("open.py").data
    stage.server.assert_clean()
