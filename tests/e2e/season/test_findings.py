"""The examination of a season finds each kind of fault."""

import json
import random
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.doubles.discord.kinds import Callback, ChannelKind, Flag, InteractionKind
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.posting import Draft, post, set_thread_member
from tests.doubles.discord.model.threads import Opening, open_thread
from tests.doubles.discord.server import LocalDiscord
from tests.e2e.season import findings
from tests.e2e.season.crowd import Crowd
from tests.e2e.season.findings import Season

REPORT = "**submission #1: kernel.py on board**\n🟢 passed in a ranked run on CPU"
SILENT: dict[str, object] = {"allowed_mentions": {"parse": []}}


@pytest_asyncio.fixture
async def season() -> AsyncIterator[Season]:
    """A guild with alice and bob, and alice's thread with her report."""
    async with LocalDiscord() as server:
        guild = server.guild("gpu")
        room = guild.create_channel("submissions")
        people = [server.user(name, guild) for name in ("alice", "bob")]
        crowd = Crowd(room, random.Random(1))  # noqa: S311 - no secret
        made = Season(server, room, people, "", crowd, Path())
        add_thread(made)
        yield made


def add_thread(season: Season) -> Channel:
    name = {"name": "board: Alice (1)"}
    thread = open_thread(season.room, Opening(name, ChannelKind.PRIVATE_THREAD))
    set_thread_member(thread, season.people[0], inside=True)
    return thread


def say(season: Season, text: str, place: Channel | None = None, **more: object) -> None:
    bot = season.server.world.bot
    place = place or season.room.threads[0]
    post(bot, place, Draft({"content": text} | SILENT | more))


def row(season: Season, **changes: object) -> Any:  # noqa: ANN401 - a row of the database
    user = season.people[0].id
    stored: Mapping[str, object] = {
        "id": 1, "identity": f"discord:{user}", "board": "board", "mode": "ranked", "gpus": ["CPU"],
        "source": "# fake: verdict=passed time_us=1", "keys": ["discord:9"], "jobs": [],
        "verdicts": json.dumps({"CPU": "passed"}),
    }  # fmt: skip
    return {**stored, **changes}


def asked(season: Season, text: str) -> None:
    """A submission by alice, answered with that text."""
    now = season.server.clock.now()
    run = Interaction(9, "t", InteractionKind.COMMAND, season.people[0], season.room, now)
    run.name, run.answer = "leaderboard submit ranked", Callback.DEFERRED_MESSAGE
    draft = Draft({"content": text} | SILENT, interaction=run, ephemeral=True)
    run.reply = post(season.server.world.bot, season.room, draft)
    season.server.world.interactions[run.id] = run


def line(season: Season) -> str:
    return f"{season.people[0].mention}'s submission #1 kernel.py on board"


async def test_one_report_one_line_and_a_true_answer_are_no_fault(season: Season) -> None:
    say(season, REPORT)
    asked(season, REPORT)
    results = open_thread(
        season.room, Opening({"name": "Results of board"}, ChannelKind.PUBLIC_THREAD)
    )
    say(season, line(season), results, flags=int(Flag.SUPPRESS_NOTIFICATIONS))
    stored = [row(season)]
    assert [
        *findings.stored_once(season, stored, {"discord:9": stored[0]}),
        *findings.reported_once(season, stored),
        *findings.threads_once(season, stored),
        *findings.lines_once(season, stored, {1}),
        *findings.pings(season),
        *findings.too_wide(season),
        *findings.answers(season, {"discord:9": stored[0]}),
    ] == []


async def test_a_submission_without_its_command_is_found(season: Season) -> None:
    assert list(findings.stored_once(season, [row(season)], {}))
    asked(season, REPORT)
    twice = [row(season), row(season, id=2)]
    assert list(findings.stored_once(season, twice, {"discord:9": twice[0]}))
    other = [row(season, identity="discord:5")]
    assert list(findings.stored_once(season, other, {"discord:9": other[0]}))


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ([], {}),
        ([REPORT, REPORT], {}),
        ([REPORT.replace("passed", "wrong answer")], {}),
        ([REPORT], {"verdicts": json.dumps({"CPU": "crashed"})}),
        ([REPORT], {"source": "# fake: verdict=crashed time_us=1"}),
        ([REPORT], {"identity": "discord:5"}),
        ([REPORT, REPORT.replace("#1", "#7")], {}),
    ],
)
async def test_a_report_that_is_missing_doubled_or_untrue_is_found(
    season: Season, said: list[str], changes: dict[str, object]
) -> None:
    for text in said:
        say(season, text)
    assert list(findings.reported_once(season, [row(season, **changes)]))


async def test_a_second_thread_is_found(season: Season) -> None:
    add_thread(season)
    assert list(findings.threads_once(season, [row(season)]))


async def test_a_line_that_is_missing_doubled_loud_or_in_the_channel_is_found(
    season: Season,
) -> None:
    stored = [row(season)]
    assert list(findings.lines_once(season, stored, {1}))
    say(season, line(season), season.room)
    assert len(list(findings.lines_once(season, stored, {1}))) == 2
    say(season, line(season), season.room)
    assert any("2 lines" in each for each in findings.lines_once(season, stored, {1}))
    assert any("untrue" in each for each in findings.lines_once(season, [], set()))


async def test_a_ping_and_an_outsider_are_found(season: Season) -> None:
    say(season, "@everyone", season.room, allowed_mentions=None)
    assert len(list(findings.pings(season))) == 2
    set_thread_member(season.room.threads[0], season.people[1], inside=True)
    assert len(list(findings.pings(season))) == 3


async def test_a_table_that_a_phone_would_break_is_found(season: Season) -> None:
    say(season, f"```\n{'x' * 38}\n```")
    assert not list(findings.too_wide(season))
    say(season, f"```\n{'x' * 39}\n```")
    assert list(findings.too_wide(season))


@pytest.mark.parametrize(
    "text", ["Submission #1 is stored", "⚠️ Nothing was stored", REPORT.replace("#1", "#2")]
)
async def test_an_answer_that_contradicts_the_store_is_found(season: Season, text: str) -> None:
    asked(season, text)
    assert list(findings.answers(season, {"discord:9": row(season)}))


async def test_a_wrong_answer_and_a_missing_answer_are_found(season: Season) -> None:
    asked(season, REPORT)
    assert list(findings.answers(season, {}))
    (run,) = season.server.world.interactions.values()
    run.message.flags |= Flag.LOADING
    assert any("thinking" in each for each in findings.answers(season, {}))
