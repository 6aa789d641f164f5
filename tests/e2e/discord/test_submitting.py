"""A person submits, watches, reads the report and sees the ranking change."""

from io import BytesIO
from zipfile import ZipFile

import pytest

from tests.doubles.discord.model.files import File
from tests.e2e.discord.scene import Scene, kernel

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]


async def test_from_the_command_to_a_place_in_the_ranking(stage: Scene) -> None:
    run = await stage.submit(stage.alice, "time_us=30")
    stored = await run.final()
    assert "is stored: ranked on CPU" in stored.text
    assert stored.ephemeral
    assert run.latency < 1
    await stage.server.wait_for(lambda: "passed in a ranked run on CPU" in run.message.text, 30)
    thread = await stage.alice.sees_thread("identity: ", within=30)
    report = await stage.alice.sees("passed in a ranked run on CPU", thread, within=30)
    assert "sandbox" not in report.text
    assert not stage.bob.can_see(thread)
    line = await stage.bob.sees("1st of 1 on CPU: 30.00 µs", stage.submissions, within=30)
    assert "alice" in line.content or f"<@{stage.alice.id}>" in line.content
    assert not line.pings
    assert line.silent
    assert line.channel.name == "Results of identity"
    assert line.channel.parent is stage.submissions
    asked = await stage.bob.click(line, "Details")
    details = await asked.final()
    assert "passed in a ranked run on CPU" in details.text
    assert details.ephemeral
    shown = await stage.bob.slash("leaderboard show", leaderboard_name="identity")
    table = await shown.final()
    assert "Alice" in table.text
    assert "30.00 µs" in table.text
    stage.server.assert_clean()


async def test_a_wrong_kernel_is_told_why_in_its_own_thread_only(stage: Scene) -> None:
    await (await stage.submit(stage.bob, "verdict=wrong_answer", name="wrong.py")).final()
    thread = await stage.bob.sees_thread("identity: ", within=30)
    await stage.bob.sees("wrong answer", thread, within=30)
    assert not any("wrong.py" in each.text for each in stage.alice.messages(stage.submissions))
    stage.server.assert_clean()


async def test_the_reports_of_a_profile_come_as_a_file(stage: Scene) -> None:
    script = kernel("file=case-1.ncu-rep", name="looked_at.py")
    run = await stage.alice.slash(
        "leaderboard submit profile", script=script, leaderboard_name="identity"
    )
    assert "profile on CPU" in (await run.final()).text
    thread = await stage.alice.sees_thread("identity: ", within=30)
    message = await stage.alice.sees("passed in a profile run on CPU", thread, within=30)
    (archive,) = message.files
    assert archive.filename.startswith("profile-")
    with ZipFile(BytesIO(archive.data)) as opened:
        assert opened.read("case-1.ncu-rep") == script.data
    stage.server.assert_clean()


@pytest.mark.parametrize(
    ("script", "options", "words"),
    [
        (File("k.py", b"\xff"), {}, "not UTF-8"),
        (File("k.py", "x = 1\n".encode("utf-16")), {}, "The file is UTF-16"),
        (File("k.cu", b"int x;"), {}, "is a CUDA C++ file"),
        (File("message.txt", b"x = 1"), {}, "accepts Python; use a name such as kernel.py"),
        (File("k.py", b""), {}, "empty"),
        (File("k.py", b"x" * 1_000_001), {}, "1,000,001 bytes"),
        (File("k.py", b"#!POPCORN nonsense 1\n"), {}, "Line 1 of the header"),
        (kernel(), {"leaderboard_name": "identty"}, "did you mean identity?"),
        (kernel(), {"gpus": "H1000"}, "not on 'H1000'"),
        (
            File("k.py", b"def custom_kernel(data): ...\n"),
            {"leaderboard_name": None},
            "Name the leaderboard",
        ),
    ],
)
async def test_what_is_wrong_with_a_submission_is_said_and_what_to_do(
    stage: Scene, script: File, options: dict[str, str], words: str
) -> None:
    chosen = {"leaderboard_name": "identity"} | options
    given = {name: value for name, value in chosen.items() if value}
    run = await stage.alice.slash("leaderboard submit test", script=script, **given)
    assert words in (await run.final()).text
    stage.server.assert_clean()


async def test_elsewhere_the_right_channel_is_named(stage: Scene) -> None:
    general = next(each for each in stage.guild.channels if each.name == "general")
    stage.alice.goes_to(general)
    try:
        run = await stage.submit(stage.alice)
        assert f"<#{stage.submissions.id}>" in (await run.final()).text
    finally:
        stage.alice.goes_to(stage.submissions)
    stage.server.assert_clean()


async def test_a_message_of_one_s_own_can_be_submitted_from_its_menu(stage: Scene) -> None:
    text = "my try:\n```py\n#!PODIUM leaderboard identity\n# fake: time_us=5\nx = 1\n```"
    message = await stage.bob.send(text)
    run = await stage.bob.message_command("Submit this file", message)
    assert "ranked on CPU" in (await run.final()).text
    await stage.bob.sees("message.py on identity", within=30)
    other = await stage.alice.message_command("Submit this file", message)
    assert "another person" in (await other.final()).text
    stage.server.assert_clean()


async def test_names_are_completed_while_they_are_typed(stage: Scene) -> None:
    command = "leaderboard submit ranked"
    found = await stage.alice.autocomplete(command, "leaderboard_name", "DENT")
    assert [each["value"] for each in found] == ["identity"]
    assert await stage.alice.autocomplete(command, "leaderboard_name", "zzz") == []
    stage.server.assert_clean()
