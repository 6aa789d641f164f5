"""Names, reasons, files and descriptions that try to be markup, mentions, escapes or mirrors."""

import re

import pytest

from bot.discord.escaping import plain
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.users.filling import Value
from tests.doubles.discord.users.person import Person
from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

SHOWN_S = 30
EVIL = "[x](http://e) @here **b** ||s||"
"""What Discord takes as a name: 31 characters."""
REASON = "\u202e<@1> \x1b[31m```\n# steam://x/``` @everyone [a](http://e.org) <t:1:R>"
NAMED = re.compile("@\u200b?here", re.IGNORECASE)
"""How a message shows a part of that name: with a space of no width where it would be live."""
FENCE = re.compile(r"```.*?```", re.DOTALL)
LIVE = (
    re.compile(r"@(everyone|here)"),
    re.compile(r"(?<!\\)<(@&?!?1>|t:1:R)"),
    re.compile(r"[\x1b\u061c\u202a-\u202e\u2066-\u2069]"),
    re.compile(r"\]\(http"),
    re.compile(r"(?<!\\)\|\|"),
    re.compile(r"(?<![\\*])\*\*b\*\*"),
)


def faults(text: str) -> list[str]:
    """What of a message would be live on Discord although somebody else wrote it."""
    found = [] if text.count("```") % 2 == 0 else ["an open fence"]
    outside = FENCE.sub("", text)
    found += [each.pattern for each in LIVE if each.search(outside)]
    found += ["an escape in a block" for _ in LIVE[2].findall(text)]
    return [f"{each} in {text!r}" for each in found]


@pytest.mark.parametrize("text", [EVIL, REASON, "```\n\x1b[0m\n```", "||s||", "<@1>", "```"])
async def test_the_check_sees_what_is_live(text: str) -> None:
    assert faults(text)
    assert faults(plain(text)) == []


async def _say(who: Person, command: str, /, **options: Value) -> None:
    await (await who.slash(command, **options)).final()


SOURCE = File("a`b*c_[x](y).py", b"# fake: time_us=3\n# ``` @everyone\ndef custom_kernel(d): ...\n")
OTHER = File("b.py", SOURCE.data.replace(b"3", b"2") + b"# [x](http://e)\n")
BOARD: dict[str, Value] = {"leaderboard_name": "identity"}


async def _submits(mallory: Person, stage: Scene) -> list[int]:
    """Two ranked submissions, once both are told of."""
    for file in (SOURCE, OTHER):
        await _say(mallory, "leaderboard submit ranked", script=file, **BOARD)
    await stage.bob.sees("b.py on identity", stage.submissions, within=SHOWN_S)
    reports = [each.text for each in mallory.messages() if "submission #" in each.text.lower()]
    return sorted({int(each.split("#")[1].split(":")[0].rstrip("*")) for each in reports})


async def _asks(mallory: Person, first: int, last: int) -> None:
    """For everything that a person can be shown."""
    for command in ("show", "show-personal", "compare-gpus", "task", "template"):
        await _say(mallory, f"leaderboard {command}", **BOARD)
    await _say(mallory, "leaderboard list")
    for command in ("show", "source"):
        await _say(mallory, f"submission {command}", id=first)
    await _say(mallory, "submission compare", first=first, second=last)
    await _say(mallory, "submission withdraw", id=last, reason=REASON)
    await _say(mallory, "profile link", label=REASON[:60])
    await _say(mallory, "profile tokens")
    await _say(mallory, "leaderboard submit ranked", script=SOURCE, leaderboard_name=REASON)


async def _decides(carol: Person, mallory: Person, first: int) -> None:
    """Everything that has a reason, and what is shown of it."""
    for scope in ({}, BOARD, {"gpu": "CPU"}):
        await _say(carol, "admin pause", reason=REASON, **scope)
        await _say(mallory, "leaderboard submit test", script=SOURCE, **BOARD)
        await _say(carol, "admin limits")
        await _say(carol, "admin resume", reason=REASON, **scope)
    await _say(carol, "admin ban", who=mallory, reason=REASON)
    await _say(mallory, "leaderboard submit test", script=SOURCE, **BOARD)
    for command in ("limits", "audit", "stats", "runners"):
        await _say(carol, f"admin {command}")
    await _say(carol, "admin unban", who=mallory, reason=REASON)
    await _say(carol, "admin disqualify", id=first, reason=REASON)
    await _say(mallory, "submission show", id=first)


async def test_no_report_carries_anybodys_words_as_anything_but_words(stage: Scene) -> None:
    mallory = stage.server.user(EVIL, stage.guild)
    mallory.goes_to(stage.submissions)
    first, *_, last = await _submits(mallory, stage)
    await _asks(mallory, first, last)
    await _decides(stage.carol, mallory, first)
    seen: dict[int, Message] = {}
    for who in (mallory, stage.carol, stage.bob):
        places = [stage.submissions, *who.threads(stage.submissions)]
        seen |= {each.id: each for place in places for each in who.messages(place)}
    ours = [each for each in seen.values() if each.author.bot]
    assert len(ours) > 30
    assert sum(bool(NAMED.search(each.content)) for each in ours) >= 3
    assert [fault for each in ours for fault in faults(each.content)] == []
    assert not any(each.pings for each in ours)
    stage.server.assert_clean()
