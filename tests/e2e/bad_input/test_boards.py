"""Submissions that no board takes, and things that are not there: the message, and exit code 2."""

import asyncio
import json

import asyncpg
import pytest

from tests.e2e.command import IDENTITY, Podium, json_refusal, refusal

ON_IDENTITY = ("--leaderboard", "identity")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "arguments", "words"),
    [
        ("x = 1\n", ("--leaderboard", "identiy"), "no board named 'identiy'; did you mean ident"),
        ("x = 1\n", (), "name the leaderboard, or begin the file with a line such as #!PODIUM"),
        ("#!PODIUM leaderboard sort\n", ON_IDENTITY, "header says 'sort'; change one of them"),
        ("#!POPCORN leaderbord sort\n", (), "unknown key 'leaderbord'; the keys are: leaderboard"),
        ("#!POPCORN gpus\n", ON_IDENTITY, "'gpus' needs a value, as in #!POPCORN gpus"),
        ("x = 1\n", (*ON_IDENTITY, "--gpu", "H9000"), "the board runs on CPU, not on 'H9000'"),
        ("#!POPCORN gpus H100\n", ON_IDENTITY, "the board runs on CPU, not on 'H100'"),
        ("x = 1\n", (*ON_IDENTITY, "--as", "a\x1b[2J"), "1 to 64 printable characters"),
    ],
)
def test_a_submission_that_no_board_takes(
    hall: Podium, source: str, arguments: tuple[str, ...], words: str
) -> None:
    assert words in refusal(hall("submit", hall.file("k.py", source), *arguments), 2)


@pytest.mark.slow
def test_a_file_whose_name_cannot_be_shown(hall: Podium) -> None:
    file = hall.file("e\x1b[31mvil.py", "x = 1\n")
    assert "control characters; rename the file" in refusal(hall("submit", file, *ON_IDENTITY), 2)


@pytest.mark.slow
def test_a_board_that_is_closed(hall: Podium) -> None:
    arguments = ("--name", "ended", "--gpu", "CPU", "--unchecked")
    assert hall("task", "publish", IDENTITY, *arguments).returncode == 0
    address = hall.folder / "data" / "postgres" / "address.json"
    asyncio.run(_close(json.loads(address.read_text(encoding="utf-8"))["dsn"]))
    answer = hall("submit", "kernel.py", "--leaderboard", "ended", "--json")
    code, message = json_refusal(answer, 2)
    assert code == "closed"
    assert message.startswith("leaderboard 'ended' closed at 2020-01-31 18:00 UTC")


async def _close(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            "update boards set deadline = '2020-01-31 18:00+00' where name = 'ended'"
        )
    finally:
        await connection.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "identiy"), "no board named 'identiy'; did you mean identity?"),
        (("show", "999"), "there is no submission 999; check the number"),
        (("cancel", "999"), "there is no submission 999"),
        (("show", "identity", "--gpu", "L4"), "no GPU type named 'L4'; available: CPU"),
        (("task", "publish", IDENTITY, "--name", "two words"), "is not a valid leaderboard name"),
        (("task", "publish", IDENTITY, "--deadline", "2020-01-01"), "the deadline is in the past"),
        (("task", "publish", IDENTITY, "--deadline", "soon"), "write YYYY-MM-DD[ HH:MM][ zone]"),
        (("task", "publish", IDENTITY, "--as", "eve"), "belongs to another person; choose another"),
    ],
)
def test_a_request_for_what_is_not_there(
    hall: Podium, arguments: tuple[str, ...], words: str
) -> None:
    assert words in refusal(hall(*arguments), 2)
