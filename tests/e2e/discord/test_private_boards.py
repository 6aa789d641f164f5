"""A board that is hidden: nothing of it is there for who may not see it, all of it for guests."""

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from bot.app.context import SystemClock
from bot.domain.board import NewInviteLink
from bot.store.postgres import open_store
from tests.doubles.databases import fresh_database
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.people import Role
from tests.doubles.discord.users.filling import Value
from tests.doubles.discord.users.person import Person
from tests.doubles.dispatching import until
from tests.e2e.discord.scene import Scene, kernel, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

FORGOTTEN_S = 10
UNKNOWN_MEMBER = 10007
"""What Discord answers when it is asked for somebody who is no member."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_scene() -> AsyncIterator[Scene]:
    async with fresh_database() as dsn, scene(settings={"DATABASE_URL": dsn}) as found:
        await _said(found.carol, "leaderboard update", visibility="private")
        yield found


async def _said(
    who: Person, command: str, where: Channel | None = None, /, **options: Value
) -> str:
    named: dict[str, Value] = {"leaderboard_name": "identity"}
    whole = command.startswith("profile") or command == "leaderboard join"
    given = options if whole else named | options
    return (await (await who.slash(command, where, **given)).final()).text


async def _listed(who: Person, where: Channel | None = None) -> str:
    return (await (await who.slash("leaderboard list", where)).final()).text


async def _offered(who: Person) -> list[str]:
    found = await who.autocomplete("leaderboard submit ranked", "leaderboard_name", "")
    return [str(each["value"]) for each in found]


async def _offers(who: Person, *names: str) -> None:
    """Wait as long as autocompletion may take to know of an invitation, or of its end."""

    async def known() -> bool:
        return await _offered(who) == [*names]

    await until(known, within_s=FORGOTTEN_S)


async def test_to_others_the_board_is_not_there_in_any_way(stage: Scene) -> None:
    assert "There are no boards yet" in await _listed(stage.alice)
    await _offers(stage.alice)
    gpus = await stage.alice.autocomplete("leaderboard submit ranked", "gpus", "")
    assert gpus == []
    for command in ("show", "task", "template", "compare-gpus", "show-personal"):
        told = await _said(stage.alice, f"leaderboard {command}")
        unknown = await _said(stage.alice, f"leaderboard {command}", leaderboard_name="nowhere")
        assert "identity" in told
        assert told.replace("identity", "nowhere") == unknown
    told = await _said(stage.alice, "leaderboard submit ranked", script=kernel())
    assert told == "⚠️ No board named 'identity'; no board exists yet"
    refused = await stage.alice.slash("leaderboard delete", leaderboard_name="identity")
    assert "No board named" in refused.message.text
    stage.server.assert_clean()


async def test_an_invited_person_competes_and_the_channel_hears_nothing(stage: Scene) -> None:
    told = await _said(stage.carol, "leaderboard invite", who=stage.bob)
    assert f"<@{stage.bob.id}>" in told
    assert "**identity** on CPU" in await _listed(stage.bob)
    await _offers(stage.bob, "identity")
    run = await stage.submit(stage.bob, "time_us=30", name="hidden.py")
    said = (await run.final()).text
    assert "is stored" in said
    thread = await stage.bob.sees_thread("identity: ", within=30)
    await stage.bob.sees("passed in a ranked run on CPU", thread, within=30)
    assert "Bob" in await _said(stage.bob, "leaderboard show")
    number = int(said.split("#")[1].split()[0])
    for command in ("submission show", "submission source", "submission cancel"):
        answer = await (await stage.alice.slash(command, id=number)).final()
        assert f"There is no submission {number}" in answer.text
    public = [each for each in stage.alice.messages(stage.submissions) if not each.ephemeral]
    assert not any("identity" in each.text for each in public)
    stage.server.assert_clean()


async def test_only_the_creator_and_admins_invite(stage: Scene) -> None:
    told = await _said(stage.bob, "leaderboard invite", who=stage.alice)
    assert "belongs to another person" in told
    told = await _said(stage.alice, "leaderboard invite", who=stage.alice)
    assert "No board named" in told
    stage.server.assert_clean()


async def test_a_role_opens_the_board_also_in_direct_messages_until_it_is_taken_back(
    stage: Scene,
) -> None:
    team: Role = stage.guild.create_role("team")
    stage.guild.members[stage.alice.id].roles.add(team.id)
    told = await _said(stage.carol, "leaderboard invite", who=team)
    assert f"<@&{team.id}>" in told
    assert "identity" in await _listed(stage.alice)
    assert "identity" in await _listed(stage.alice, stage.alice.dm)
    stranger = stage.server.user("dave", stage.server.guild("elsewhere"))
    assert "There are no boards yet" in await _listed(stranger)
    assert "There are no boards yet" in await _listed(stranger, stranger.dm)
    told = await _said(stage.carol, "leaderboard uninvite", who=team)
    assert f"<@&{team.id}>" not in told
    assert "There are no boards yet" in await _listed(stage.alice)
    told = await _said(stage.carol, "leaderboard uninvite", who=team)
    assert "None of these accounts and roles was invited" in told
    stage.server.assert_clean(allowing=(UNKNOWN_MEMBER,))
    stage.server.forget()
    stage.server.forget()


async def test_a_person_with_an_invite_code_joins_the_board(stage: Scene) -> None:
    told = await _said(stage.alice, "leaderboard join", code="0" * 32)
    assert "unknown, revoked, expired or used up" in told
    until = datetime.now(UTC) + timedelta(days=1)
    async with open_store(stage.podium.environment["DATABASE_URL"], SystemClock()) as store:
        board = await store.boards.find("identity")
        assert board is not None
        digest = hashlib.sha256(b"the-code").hexdigest()
        await store.invites.add(NewInviteLink(board.id, board.creator, digest, 1, until))
    address = "https://podium.test/join?code=the-code"
    assert "You can now see the board" in await _said(stage.alice, "leaderboard join", code=address)
    assert "identity" in await _listed(stage.alice)
    await _said(stage.carol, "leaderboard uninvite", who=stage.alice)
    assert "There are no boards yet" in await _listed(stage.alice)
    stage.server.assert_clean()


async def test_who_lost_access_hears_no_more_news_of_the_board(stage: Scene) -> None:
    for who in (stage.alice, stage.carol):
        await (await who.slash("profile notices", who.dm, record=True)).final()
    await _said(stage.carol, "leaderboard invite", who=stage.alice, who2=stage.carol)

    async def record(time_us: int) -> None:
        await (await stage.submit(stage.bob, f"time_us={time_us}", name="r.py")).final()
        await stage.carol.sees(f"Bob takes {time_us}.00", stage.carol.dm, within=30)

    await record(9)
    await stage.alice.sees("Bob takes 9.00", stage.alice.dm, within=30)
    await _said(stage.carol, "leaderboard uninvite", who=stage.alice)
    await record(8)
    await record(7)
    assert not any("Bob takes 8.00" in each.text for each in stage.alice.dms)
    stage.server.assert_clean()


async def test_a_board_for_members_is_hidden_on_other_servers(stage: Scene) -> None:
    await _said(stage.carol, "leaderboard update", visibility="public", members_only=True)
    other = stage.server.guild("third")
    erin = stage.server.user("erin", other)
    stage.alice.goes_to(stage.submissions)
    assert "identity" in await _listed(stage.alice)
    assert "There are no boards yet" in await _listed(erin)
    await _said(stage.carol, "leaderboard update", members_only=False)
    assert "identity" in await _listed(erin)
    stage.server.assert_clean()


async def test_the_creator_says_who_reads_sources(stage: Scene) -> None:
    async def submitted() -> int:
        run = await stage.submit(stage.bob, "time_us=20", name="mine.py")
        return int((await run.final()).text.split("#")[1].split()[0])

    async def read(number: int) -> str:
        answer = await (await stage.alice.slash("submission source", id=number)).final()
        return answer.files[0].data.decode() if answer.files else answer.text

    first = await submitted()
    assert "after a deadline, and has none yet" in await read(first)
    await _said(stage.carol, "leaderboard update", sources="always")
    second = await submitted()
    assert "custom_kernel" in await read(second)
    assert "after a deadline, and has none yet" in await read(first)
    await _said(stage.carol, "leaderboard update", sources="never")
    assert "never shows sources to others" in await read(second)
    stage.server.assert_clean()
