"""What admins do reaches every way in: bans, quotas, pauses, disqualification; all on record."""

import asyncio
import csv
import io
import re

import pytest

from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.users.filling import Value
from tests.doubles.discord.users.person import Person
from tests.doubles.dispatching import until
from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

SHOWN_S = 30
RUSH = 20
QUOTA = 5
MOMENT = re.compile(r"<t:\d+:F> \(<t:\d+:R>\)")


async def said(who: Person, command: str, /, **options: Value) -> str:
    return (await (await who.slash(command, **options)).final()).text


async def stored(stage: Scene, who: Person, directive: str, name: str, mode: str = "ranked") -> int:
    text = (await (await stage.submit(who, directive, mode, name=name)).final()).text
    assert "is stored" in text
    return int(text.split("#")[1].split()[0])


def live(who: Person, thread: Channel) -> Message:
    """The first message of a thread that has buttons."""
    return next(each for each in who.messages(thread) if each.buttons)


async def test_a_gpu_type_is_paused_and_what_waits_says_so(stage: Scene) -> None:
    told = await said(stage.carol, "admin pause", gpu="cpu", reason="a *new* driver")
    assert told == "Jobs on CPU are paused and wait in the queue; running jobs finish."
    await stored(stage, stage.alice, "time_us=9", "waits.py")
    await stage.alice.sees("CPU is paused: a \\*new\\* driver", within=SHOWN_S)
    assert "GPU type CPU" in await said(stage.carol, "admin limits")
    assert await said(stage.carol, "admin resume", gpu="CPU") == "Jobs on CPU run again."
    await stage.alice.sees("passed in a ranked run on CPU", within=SHOWN_S)
    told = await said(stage.carol, "admin pause", gpu="B300", reason="none here")
    assert "No GPU type named 'B300'" in told
    told = await said(
        stage.carol, "admin pause", gpu="CPU", leaderboard_name="identity", reason="both"
    )
    assert told == "⚠️ Name a board or a GPU type, not both"
    stage.server.assert_clean()


async def test_a_board_is_paused_by_itself(stage: Scene) -> None:
    pause = {"leaderboard_name": "identity", "reason": "a new task"}
    assert "to identity are paused" in await said(stage.carol, "admin pause", **pause)
    refused = await (await stage.submit(stage.bob)).final()
    assert refused.text == "⚠️ Leaderboard 'identity' is paused: a new task"
    resume = {"leaderboard_name": "identity"}
    assert "are accepted again" in await said(stage.carol, "admin resume", **resume)
    assert "is not paused" in await said(stage.carol, "admin resume", **resume)
    stage.server.assert_clean()


async def test_a_limited_person_gets_the_reason(stage: Scene) -> None:
    limit: dict[str, Value] = {"most": 1, "minutes": 60, "mode": "test"}
    carol = stage.carol
    assert "Give a reason" in await said(carol, "admin limit", who=stage.dana, **limit)
    own = await said(carol, "admin limit", who=carol, reason="a slip", **limit)
    assert own == "⚠️ This is your own account; choose another person"
    told = await said(carol, "admin limit", who=stage.dana, days=3, reason="a flood", **limit)
    assert told.startswith("dana may submit at most 1 in 60 min, until <t:")
    await stored(stage, stage.dana, "", "one.py", "test")
    refused = (await (await stage.submit(stage.dana, mode="test")).final()).text
    assert refused.startswith("⚠️ An admin limited your submissions")
    assert ": a flood; at most 1 test submission is allowed in 60 min" in refused
    await stored(stage, stage.alice, "", "one.py", "test")
    listed = await said(carol, "admin limits")
    assert "1 in 60 min, all boards, test" in listed
    dropped = await said(carol, "admin unlimit", who=stage.dana, mode="test", reason="calm again")
    assert dropped == "The limit is removed."
    await stored(stage, stage.dana, "", "two.py", "test")
    stage.server.assert_clean()


async def test_of_a_rush_just_the_quota_is_admitted_and_the_rest_learns_when_it_lifts(
    stage: Scene,
) -> None:
    limit: dict[str, Value] = {
        "most": QUOTA,
        "minutes": 60,
        "mode": "test",
        "leaderboard_name": "identity",
    }
    await said(stage.carol, "admin limit", reason="crowded", **limit)
    runs = await asyncio.gather(
        *(stage.submit(stage.bob, mode="test", name=f"r{n}.py") for n in range(RUSH))
    )
    texts = [(await run.final()).text for run in runs]
    refused = [text for text in texts if "is stored" not in text]
    assert len(refused) == RUSH - QUOTA
    for text in refused:
        assert f"At most {QUOTA} test submissions to this leaderboard are allowed in 60 min" in text
        assert MOMENT.search(text)
    drop = {"mode": "test", "leaderboard_name": "identity", "reason": "quiet again"}
    assert await said(stage.carol, "admin unlimit", **drop) == "The limit is removed."
    stage.server.assert_clean()


async def test_the_same_command_limits_gpu_time_and_another_shows_the_costs(
    stage: Scene,
) -> None:
    carol, bob = stage.carol, stage.bob
    await stored(stage, bob, "time_us=9", "paid.py", "benchmark")
    cap: dict[str, Value] = {"gpu_seconds": 1, "leaderboard_name": "identity"}
    said_of = await said(carol, "admin limit", **cap)
    assert said_of == "GPU time is limited: each person's 1 s a day for this leaderboard."
    refused = await (await stage.submit(bob)).final()
    assert "which is more than each person's 1 s a day" in refused.text
    drop: dict[str, Value] = {"what": "GPU seconds", "leaderboard_name": "identity"}
    assert await said(carol, "admin unlimit", **drop) == "The limit is removed."
    several: dict[str, Value] = {"gpu_seconds": 3, "dollars": 2.0}
    for wrong in ({}, {"most": 3}, several):
        assert "Give most and minutes" in await said(carol, "admin limit", **wrong)
    assert "No GPU type named" in await said(carol, "admin limit", dollars=2.0, gpu="H900")
    costs = await said(carol, "admin costs", days="7 days")
    assert "by person" in costs
    table = [line for line in costs.splitlines() if "  " in line]
    assert len(table) >= 8
    assert max(map(len, table)) <= 38  # what a phone shows of a code block
    stage.server.assert_clean()


async def test_who_is_banned_is_stopped_and_refused_everywhere(stage: Scene) -> None:
    carol, bob = stage.carol, stage.bob
    done = await stored(stage, bob, "time_us=9", "before.py", "benchmark")
    before = await bob.sees_thread("identity: ", within=SHOWN_S)
    await bob.sees(f"submission #{done}:", before, within=SHOWN_S)
    await said(carol, "admin pause", gpu="CPU", reason="so that it waits")
    await stored(stage, bob, "", "late.py")
    told = await said(carol, "admin ban", who=bob, reason="forged `times`")
    # A test of the quota above may have left some that wait.
    assert re.fullmatch(r"bob may not submit\. [1-6] unfinished submissions? w\w+ stopped\.", told)
    await said(carol, "admin resume", gpu="CPU")
    await bob.sees("CPU: cancelled", before, within=SHOWN_S)
    words = "⚠️ You are banned from submitting: forged \\`times\\`; contact an admin"
    assert (await (await stage.submit(bob)).final()).text == words
    assert "shown only once" in await said(bob, "profile link")  # which lets nothing in, either
    for label in ("Run again", "Make ranked"):
        pressed = await bob.click(live(bob, before), label)
        assert (await pressed.final()).text == words
    assert await said(bob, "submission rerun", id=done) == words
    post = await bob.send("```py\n#!PODIUM leaderboard identity\nx = 1\n```")
    menu = await bob.message_command("Submit this file", post)
    assert (await menu.final()).text == words
    assert "forged \\`times\\`" in await said(carol, "admin limits")
    assert "may submit again" in await said(carol, "admin unban", who=bob, reason="a mistake")
    await stored(stage, bob, "", "after.py", "test")
    stage.server.assert_clean()


async def test_a_disqualification_moves_the_ranks_and_its_owner_reads_why(stage: Scene) -> None:
    best = await stored(stage, stage.bob, "time_us=2", "best.py")
    await stage.alice.sees("best.py on identity", stage.submissions, within=SHOWN_S)
    await stored(stage, stage.alice, "time_us=4", "next.py")
    await stage.alice.sees("2nd of", stage.submissions, within=SHOWN_S)

    async def ranks() -> list[tuple[str, str]]:
        shown = await said(stage.alice, "leaderboard show", leaderboard_name="identity")
        return re.findall(r"(?m)^\*\*\S+ (\w+)(?: \(you\))?\*\* · ([\d.]+) µs", shown)

    assert [row[0] for row in await ranks()][:2] == ["Bob", "Alice"]
    away: dict[str, Value] = {"id": best, "reason": "reads the @everyone answer"}
    await said(stage.carol, "admin disqualify", **away)
    assert (await ranks())[0] == ("Alice", "4.000")
    shown = await said(stage.bob, "submission show", id=best)
    assert "disqualified, so it is not ranked: reads the" in shown
    await said(stage.carol, "admin requalify", id=best, reason="it does not")

    async def first_again() -> bool:  # after a comparison with Alice's
        return (await ranks())[0] == ("Bob", "2.000")

    await until(first_again, within_s=SHOWN_S)
    stage.server.assert_clean()


async def test_a_name_like_anothers_is_shown_with_its_handle_and_can_be_reset(stage: Scene) -> None:
    carol, bob = stage.carol, stage.bob
    await stored(stage, stage.alice, "time_us=700", "own.py")
    bob.shown = "\N{CYRILLIC CAPITAL LETTER A}lice"
    await stored(stage, bob, "time_us=900", "copy.py")
    await bob.sees("copy.py on identity", stage.submissions, within=SHOWN_S)

    async def shown() -> str:
        return await said(carol, "leaderboard show", leaderboard_name="identity")

    assert "Alice (@alice)" in await shown()
    assert f"{bob.shown} (@bob)" in await shown()
    ranked = (await asyncio.to_thread(stage.podium, "show", "identity")).stdout
    assert "Alice (@alice)" in ranked
    await (await bob.slash("profile notices", bob.dm)).final()
    told = await said(carol, "admin reset-name", who=bob, reason="one *Alice* is enough")
    assert told.startswith(f"The name {bob.shown} is reset; boards show bob.")
    await stage.server.wait_for(
        lambda: any("one \\*Alice\\* is enough" in each.text for each in bob.dms),
        SHOWN_S,
    )
    await said(bob, "leaderboard list")  # with which the bot sees the chosen name again
    assert "@" not in await shown()
    assert "bob" in await shown()
    refused = await said(stage.dana, "admin reset-name", who=bob, reason="x")
    assert "needs the role Leaderboard Admin" in refused
    bob.shown = ""
    await said(bob, "leaderboard list")
    assert "Bob" in await shown()
    stage.server.assert_clean()


async def test_an_admin_sees_whose_submission_a_number_is(stage: Scene) -> None:
    number = await stored(stage, stage.bob, "", "whose.py", "test")
    for command in ("disqualify", "requalify", "rejudge"):
        offered = await stage.carol.autocomplete(f"admin {command}", "id", str(number))
        assert offered[0] == {"name": f"#{number} whose.py, test, by Bob", "value": number}
    begun = await stage.carol.autocomplete("admin rejudge", "id", str(number)[:-1] or "0")
    assert number in [each["value"] for each in begun]
    newest = await stage.carol.autocomplete("admin rejudge", "id", "")
    assert newest[0]["value"] == number
    assert await stage.dana.autocomplete("admin rejudge", "id", str(number)) == []
    stage.server.assert_clean()


async def test_the_audit_has_pages_and_a_file(stage: Scene) -> None:
    audit = await (await stage.carol.slash("admin audit")).final()
    assert "**Carol** requalify submission" in audit.text
    assert ": it does not" in audit.text
    seen = [audit.text]
    while not audit.button("Next").disabled:
        await stage.carol.click(audit, "Next")
        await stage.server.wait_for(lambda: audit.text != seen[-1], 10)
        seen.append(audit.text)
    everything = "\n".join(seen)
    assert len(seen) > 1
    assert f"ban <@{stage.bob.id}>: forged" in everything
    assert "limit 5 in 60 min, board identity, test: crowded" in everything
    assert "pause gpu CPU: a \\*new\\* driver" in everything
    assert "<t:" in everything
    await stage.carol.click(audit, "Previous")
    await stage.server.wait_for(lambda: audit.text == seen[-2], 10)
    file = await (await stage.carol.slash("admin audit", as_file=True)).final()
    rows = list(csv.DictReader(io.StringIO(file.file("audit.csv").text)))
    assert {"ban", "unban", "limit", "unlimit", "pause", "resume", "disqualify"} - {
        row["action"] for row in rows
    } == {"disqualify"}  # which is kept as what it makes of a submission: disqualified
    assert {row["who"] for row in rows if row["action"] == "ban"} == {"Carol"}
    stage.server.assert_clean()


async def test_two_submissions_are_compared_by_time_and_by_source_where_both_may_be_read(
    stage: Scene,
) -> None:
    long = "".join(f"# {n} ``` @everyone\n" for n in range(200))
    update: dict[str, Value] = {"leaderboard_name": "identity", "sources": "always"}
    await said(stage.carol, "leaderboard update", **update)
    first = await stored(stage, stage.alice, "time_us=9", "one.py")
    second = await stored(stage, stage.alice, f"time_us=3\n{long}", "two.py")
    await said(stage.carol, "leaderboard update", **(update | {"sources": "never"}))
    await stage.alice.sees("two.py on identity", stage.submissions, within=SHOWN_S)
    compared = await stage.alice.slash("submission compare", first=first, second=second)
    message = await compared.final()
    assert "3.0x (2.9 to 3.1) as fast" in message.text
    assert "# 150 ``` @everyone" in message.file("2-difference.diff").text
    beside = message.file("side-by-side.txt").text.splitlines()
    assert beside[0].split() == ["#", "fake:", "time_us=9", "|", "#", "fake:", "time_us=3"]
    assert any(line.split("> ")[-1] == "# 7 ``` @everyone" for line in beside)
    both: dict[str, Value] = {"first": first, "second": second}
    assert "belongs to another person" in await said(stage.bob, "submission compare", **both)
    await said(stage.carol, "leaderboard update", **update)
    assert "3.0x (2.9 to 3.1) as fast" in await said(stage.bob, "submission compare", **both)
    stage.server.assert_clean()


async def test_a_channel_is_allowed_and_forbidden_and_a_refusal_leaves_no_record(
    stage: Scene,
) -> None:
    gym = stage.guild.create_channel("gym")
    assert "are allowed in" in await said(stage.carol, "admin channel-allow", channel=gym)
    assert "no longer allowed" in await said(stage.carol, "admin channel-forbid", channel=gym)
    again = await said(stage.carol, "admin channel-forbid", channel=gym)
    assert "was not an allowed channel" in again
    file = await (await stage.carol.slash("admin audit", as_file=True)).final()
    rows = list(csv.DictReader(io.StringIO(file.file("audit.csv").text)))
    found = [row["action"] for row in rows if row["action"].startswith("channel-")]
    assert sorted(found) == ["channel-allow", "channel-forbid"]
    stage.server.assert_clean()


async def test_the_channel_for_alerts_is_shown_and_stays_until_it_is_switched_off(
    stage: Scene,
) -> None:
    room, carol = stage.submissions, stage.carol
    assert await said(carol, "admin alerts") == "No channel gets alerts."
    told = f"<#{room.id}> gets the alerts."
    chosen = await said(carol, "admin alerts", channel=room)
    assert chosen == f"{told} Every member of this server can read it."
    assert await said(carol, "admin alerts") == told
    assert await said(carol, "admin alerts", off=True) == "No channel gets alerts."
    stage.server.assert_clean()


async def test_the_gpu_time_of_one_person_is_limited_with_a_reason(stage: Scene) -> None:
    carol, bob = stage.carol, stage.bob
    cap: dict[str, Value] = {"gpu_seconds": 1, "who": bob}
    assert "Give a reason" in await said(carol, "admin limit", **cap)
    own: dict[str, Value] = {"gpu_seconds": 1, "who": carol, "reason": "x"}
    assert "your own account" in await said(carol, "admin limit", **own)
    both = cap | {"together": True, "reason": "x"}
    assert "leave out 'who'" in await said(carol, "admin limit", **both)
    words = "the personal limit of 1 s a day (a \\*flood\\*)"
    told = await said(carol, "admin limit", **cap, reason="a *flood*")
    assert told == f"GPU time of bob is limited: {words}."
    assert f"more than {words}" in (await (await stage.submit(bob)).final()).text
    assert "is stored" in (await (await stage.submit(stage.alice, "", "test")).final()).text
    assert "Bob" in await said(carol, "admin limits")
    drop: dict[str, Value] = {"what": "GPU seconds"}
    assert "does not exist" in await said(carol, "admin unlimit", **drop)
    assert await said(carol, "admin unlimit", **drop, who=bob) == "The limit is removed."
    stage.server.assert_clean()
