"""What a bot may do where: 50001 where it cannot look, 50013 where it may not act."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.doubles.discord.errors import DriverError
from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.limits import Limits, Rates
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.server import LocalDiscord
from tests.integration.local_discord.stage import QUICK, ByHand, Stage, by_hand, with_bot

NOBODYS = "nope"
PUBLIC, PRIVATE = ChannelKind.PUBLIC_THREAD, ChannelKind.PRIVATE_THREAD


@pytest.fixture
async def weak() -> AsyncIterator[ByHand]:
    """By hand, for a bot with no more rights than everyone."""
    async with by_hand(EVERYONE) as hand:
        yield hand


@pytest.mark.slow
async def test_discord_py_raises_forbidden(tmp_path: Path) -> None:
    async with LocalDiscord(rates=Rates(QUICK)) as server:
        stage = Stage(server, EVERYONE)
        hidden, readonly = (stage.guild.create_channel(name) for name in ("hidden", "readonly"))
        hidden.deny(stage.guild.everyone, Permission.VIEW_CHANNEL)
        readonly.deny(stage.guild.everyone, Permission.SEND_MESSAGES)
        async with with_bot(stage, tmp_path / "bot.log"):
            for channel, code in ((hidden, 50001), (readonly, 50013)):
                await stage.alice.slash("rules write", channel=str(channel.id))
                await stage.alice.sees(f"Forbidden 403 {code}")
            run = await stage.carol.slash("admin setup")
            assert "Forbidden 403 50013" in (await run.final()).content
    assert not stage.alice.can_see(hidden)
    with pytest.raises(DriverError, match="may not write"):
        await stage.alice.send("x", channel=readonly)


@pytest.mark.parametrize(
    ("missing", "body"),
    [
        (Permission.SEND_MESSAGES, {"content": "x"}),
        (Permission.EMBED_LINKS, {"embeds": [{"title": "t"}]}),
    ],
)
async def test_a_message_needs(weak: ByHand, missing: Permission, body: dict[str, object]) -> None:
    assert (await weak.say(**body)).status == 200
    weak.stage.lab.deny(weak.stage.guild.everyone, missing)
    assert (await weak.say(**body)).code == 50013


async def test_threads_need_their_own_permissions(weak: ByHand) -> None:
    lab, everyone = weak.stage.lab, weak.stage.guild.everyone
    path, body = f"/channels/{lab.id}/threads", {"name": "t", "type": PRIVATE}
    thread = (await weak("POST", path, body)).body
    lab.deny(everyone, Permission.CREATE_PRIVATE_THREADS | Permission.SEND_MESSAGES_IN_THREADS)
    assert (await weak("POST", path, body)).code == 50013
    say = f"/channels/{thread['id']}/messages"
    assert (await weak("POST", say, {"content": "x"})).code == 50013
    lab.allow(weak.server.world.bot, Permission.SEND_MESSAGES_IN_THREADS)
    assert (await weak("POST", say, {"content": "x"})).status == 200


async def test_a_private_thread_is_for_those_inside_and_moderators(hand: ByHand) -> None:
    stage = hand.stage
    path = f"/channels/{stage.lab.id}/threads"
    await hand("POST", path, {"name": "t", "type": PRIVATE})
    (thread,) = stage.lab.threads
    people = (stage.alice, stage.bob, stage.carol)
    assert [person.can_see(thread) for person in people] == [False] * 3
    member = f"/channels/{thread.id}/thread-members/{stage.alice.id}"
    assert (await hand("PUT", member)).status == 204
    stage.staff.permissions |= Permission.MANAGE_THREADS
    assert [person.can_see(thread) for person in people] == [True, False, True]
    assert (await hand("DELETE", member)).status == 204
    assert (await hand("DELETE", member)).code == 10007


async def test_a_mention_in_a_private_thread_lets_its_user_in(hand: ByHand) -> None:
    stage = hand.stage
    await hand("POST", f"/channels/{stage.lab.id}/threads", {"name": "t", "type": PRIVATE})
    (thread,) = stage.lab.threads
    await hand.say(thread, content=stage.bob.mention, allowed_mentions={"parse": []})
    assert not stage.bob.can_see(thread)
    await hand.say(thread, content=stage.bob.mention)
    assert stage.bob.can_see(thread)
    path = f"/channels/{thread.id}/messages/{thread.messages[0].id}"
    safe = {"content": stage.carol.mention, "allowed_mentions": {"parse": []}}
    await hand("PATCH", path, safe)
    assert not stage.carol.can_see(thread)
    await hand("PATCH", path, {"content": stage.carol.mention})
    assert stage.carol.can_see(thread)
    assert thread.messages[0].pings == set()


async def test_nobody_grants_or_manages_what_is_above_them() -> None:
    async with by_hand(EVERYONE | Permission.MANAGE_ROLES) as hand:
        guild, bob = hand.stage.guild, hand.stage.bob
        roles = f"/guilds/{guild.id}/roles"
        too_much = {"name": "r", "permissions": str(int(Permission.MANAGE_GUILD))}
        assert (await hand("POST", roles, too_much)).code == 50013
        assert [role.name for role in guild.roles.values() if role.name == "r"] == []
        mine = (await hand("POST", roles, {"name": "mine"})).body
        give = f"/guilds/{guild.id}/members/{bob.id}/roles"
        assert (await hand("PUT", f"{give}/{mine['id']}")).status == 204
        hand.stage.staff.position = guild.rank(guild.me) + 1
        assert (await hand("PUT", f"{give}/{hand.stage.staff.id}")).code == 50013
        assert (await hand("PUT", f"{give}/{guild.id}")).code == 50013
        assert (await hand("PUT", f"{give}/5")).code == 10011
        owner = f"/guilds/{guild.id}/members/{guild.owner.id}"
        assert (await hand("PATCH", owner, {"roles": [mine["id"]]})).code == 50013


async def test_a_guild_has_room_for_so_many_threads_roles_and_channels() -> None:
    async with by_hand() as hand:
        limits: Limits = hand.server.world.limits
        limits.active_threads, limits.roles, limits.channels = 1, 4, 4
        guild, lab = f"/guilds/{hand.stage.guild.id}", f"/channels/{hand.stage.lab.id}"
        for path, body, code in (
            (f"{lab}/threads", {"name": "t", "type": PUBLIC}, 160006),
            (f"{guild}/roles", {"name": "r"}, 30005),
            (f"{guild}/channels", {"name": "c"}, 30013),
        ):
            assert (await hand("POST", path, body)).status in (200, 201)
            assert (await hand("POST", path, body)).code == code


async def test_strangers_tokens_and_unknown_things_are_refused(hand: ByHand) -> None:
    lab, alice = hand.stage.lab.id, hand.stage.alice
    assert (await hand("GET", "/users/@me", token=NOBODYS)).status == 401
    assert (await hand("GET", "/channels/123")).code == 10003
    assert (await hand("GET", "/guilds/123")).code == 10004
    assert (await hand("GET", "/users/123")).code == 10013
    assert (await hand("GET", f"/channels/{lab}/messages/5")).code == 10008
    assert (await hand("GET", f"/guilds/{hand.stage.guild.id}/members/5")).code == 10007
    assert (await hand("GET", "/channels/abc")).code == 50035
    message = await alice.send("mine")
    path = f"/channels/{lab}/messages/{message.id}/threads"
    assert (await hand("POST", path, {"name": "t"})).body["id"] == str(message.id)
    assert (await hand("POST", path, {"name": "t"})).code == 160004
    wrong = {"name": "t", "type": PUBLIC, "auto_archive_duration": 7}
    assert (await hand("POST", f"/channels/{lab}/threads", wrong)).code == 50035
