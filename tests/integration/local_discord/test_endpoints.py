"""A walk over endpoints which the demo bot does not use: each answers, and no one crashes."""

from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.model.files import File
from tests.doubles.discord.wire import Json
from tests.integration.local_discord.stage import ByHand, by_hand

UNTIL = "2099-01-01T00:00:00+00:00"


async def did(hand: ByHand, method: str, path: str, body: object = None) -> Json:
    """The body of an answer that is a success."""
    answer = await hand(method, path, body)
    assert answer.status < 300, (method, path, answer)
    return answer.body or {}


async def test_what_is_there_can_be_read(hand: ByHand) -> None:
    stage, app = hand.stage, hand.server.world.bot.id
    guild, lab = f"/guilds/{stage.guild.id}", f"/channels/{stage.lab.id}"
    paths = [
        "/users/@me",
        "/users/@me/guilds",
        f"/users/{stage.alice.id}",
        "/applications/@me",
        "/gateway/bot",
    ]
    paths += ["/oauth2/applications/@me", f"/applications/{app}/emojis", guild, f"{guild}/channels"]
    paths += [f"{guild}/roles", f"{guild}/members?limit=2", f"{guild}/members/search?query=al"]
    paths += [f"{guild}/members/{stage.bob.id}", lab, f"{lab}/messages?limit=5"]
    for path in paths:
        await did(hand, "GET", path)
    hand.server.assert_clean()


async def test_channels_roles_and_members_are_managed(hand: ByHand) -> None:
    stage, guild = hand.stage, f"/guilds/{hand.stage.guild.id}"
    bob = f"{guild}/members/{stage.bob.id}"
    channel = await did(hand, "POST", f"{guild}/channels", {"name": "My Chan", "type": 0})
    assert channel["name"] == "my-chan"
    here = f"/channels/{channel['id']}"
    assert (await did(hand, "PATCH", here, {"topic": "about"}))["topic"] == "about"
    role = await did(hand, "POST", f"{guild}/roles", {"name": "r", "permissions": "2048"})
    assert (await did(hand, "PATCH", f"{guild}/roles/{role['id']}", {"name": "r2"}))["name"] == "r2"
    await did(hand, "PUT", f"{here}/permissions/{stage.guild.id}", {"type": 0, "deny": "1024"})
    assert not stage.bob.can_see(stage.guild.channel("my-chan"))
    await did(hand, "DELETE", f"{here}/permissions/{stage.guild.id}")
    assert stage.bob.can_see(stage.guild.channel("my-chan"))
    await did(hand, "PUT", f"{bob}/roles/{role['id']}")
    await did(hand, "DELETE", f"{bob}/roles/{role['id']}")
    change: Json = {"nick": "bobby", "roles": [role["id"]], "communication_disabled_until": UNTIL}
    assert (await did(hand, "PATCH", bob, change))["nick"] == "bobby"
    assert (await hand("PATCH", bob, {"nick": "n" * 33})).code == 50035
    await did(hand, "DELETE", f"{guild}/roles/{role['id']}")
    assert stage.guild.members[stage.bob.id].roles == set()
    await did(hand, "DELETE", here)
    assert hand.server.world.channels.get(int(channel["id"])) is None


async def test_messages_are_answered_marked_pinned_and_cleared(hand: ByHand) -> None:
    stage, lab = hand.stage, f"/channels/{hand.stage.lab.id}"
    asked = await stage.alice.send("question", File("q.png", b"x"))
    body = {"content": "answer", "message_reference": {"message_id": str(asked.id)}}
    path = f"{lab}/messages/{(await did(hand, 'POST', f'{lab}/messages', body))['id']}"
    await did(hand, "PUT", f"{path}/reactions/%E2%9C%85/@me")
    stage.alice.react(stage.lab.messages[1], "\u2705")
    reaction = (await did(hand, "GET", path))["reactions"][0]
    assert (reaction["count"], reaction["me"]) == (2, True)
    await did(hand, "DELETE", f"{path}/reactions/%E2%9C%85/@me")
    pin = path.replace("/messages/", "/messages/pins/")
    await did(hand, "PUT", pin)
    assert (await did(hand, "GET", f"{lab}/messages/pins"))["items"]
    await did(hand, "DELETE", pin)
    await did(hand, "POST", f"{lab}/typing")
    ids = [str(message.id) for message in stage.lab.messages]
    after = await hand("GET", f"{lab}/messages?after={ids[0]}")
    assert [message["id"] for message in after.body] == ids[1:]
    await did(hand, "POST", f"{lab}/messages/bulk-delete", {"messages": ids})
    assert stage.lab.messages == []
    hand.server.assert_clean()


async def test_components_of_the_second_version_are_found_and_read(hand: ByHand) -> None:
    text, button = {"type": 10, "content": "s"}, {"type": 2, "style": 1, "label": "l"}
    menu = {"type": 3, "custom_id": "s", "options": [{"label": "a", "value": "a"}]}
    inside = [
        {"type": 10, "content": "text"},
        {"type": 14},
        {"type": 9, "components": [text], "accessory": button | {"custom_id": "a"}},
        {"type": 1, "components": [menu]},
    ]
    await hand.say(flags=1 << 15, components=[{"type": 17, "components": inside}])
    (message,) = hand.stage.lab.messages
    assert message.text.split() == ["text", "s"]
    assert message.button("l").custom_id == "a"
    assert message.select().custom_id == "s"


async def test_threads_and_forum_posts_are_opened_archived_and_locked(hand: ByHand) -> None:
    stage, guild = hand.stage, f"/guilds/{hand.stage.guild.id}"
    threads = f"/channels/{stage.lab.id}/threads"
    opened = [
        await did(hand, "POST", threads, {"name": "t", "type": kind})
        for kind in (ChannelKind.PUBLIC_THREAD, ChannelKind.PRIVATE_THREAD)
    ]
    raw = {"name": "forum", "type": 15, "available_tags": [{"name": "t"}]}
    forum = await did(hand, "POST", f"{guild}/channels", raw)
    assert (await hand("POST", f"/channels/{forum['id']}/messages", {"content": "x"})).code == 50024
    post = {"name": "post", "message": {"content": "hi"}}
    made = await did(hand, "POST", f"/channels/{forum['id']}/threads", post)
    assert made["message"]["id"] == made["id"]
    active = await did(hand, "GET", f"{guild}/threads/active")
    assert len(active["threads"]) == 3
    for thread in opened:
        path = f"/channels/{thread['id']}"
        assert len(stage.lab.world.channels[int(thread["id"])].members) == 1
        await did(hand, "PATCH", path, {"archived": True, "locked": True})
        assert (await hand("PATCH", path, {"name": "n"})).code == 50083
        assert (await hand("POST", f"{path}/messages", {"content": "x"})).code == 50083
    for kind in ("public", "private"):
        assert len((await did(hand, "GET", f"{threads}/archived/{kind}"))["threads"]) == 1
    assert not hand.server.rest.crashes


async def test_writing_opens_an_archived_thread_again(hand: ByHand) -> None:
    body = {"name": "t", "type": ChannelKind.PUBLIC_THREAD}
    made = await did(hand, "POST", f"/channels/{hand.stage.lab.id}/threads", body)
    thread = hand.stage.lab.world.channels[int(made["id"])]
    await did(hand, "PATCH", f"/channels/{thread.id}", {"archived": True})
    await hand.stage.alice.send("back", channel=thread)
    assert not thread.archived
    assert hand.stage.alice.id in thread.members


async def test_an_announcement_channel_has_public_threads_only(hand: ByHand) -> None:
    news = hand.stage.guild.create_channel("news", ChannelKind.NEWS)
    threads = f"/channels/{news.id}/threads"
    for kind in (ChannelKind.PRIVATE_THREAD, ChannelKind.PUBLIC_THREAD):
        assert (await hand("POST", threads, {"name": "t", "type": kind})).code == 50024
    said = await did(hand, "POST", f"/channels/{news.id}/messages", {"content": "x"})
    path = f"/channels/{news.id}/messages/{said['id']}/threads"
    assert (await did(hand, "POST", path, {"name": "t"}))["type"] == ChannelKind.NEWS_THREAD
    assert (await hand("POST", path, {"name": "t"})).code == 160004


async def test_an_inactive_thread_is_archived_and_cannot_return_to_a_full_guild(
    hand: ByHand,
) -> None:
    threads = f"/channels/{hand.stage.lab.id}/threads"
    body = {"name": "t", "type": ChannelKind.PRIVATE_THREAD, "auto_archive_duration": 60}
    first, kept = [await did(hand, "POST", threads, body) for _ in range(2)]
    hand.server.clock.advance(1800)
    await did(hand, "POST", f"/channels/{kept['id']}/messages", {"content": "x"})
    hand.server.clock.advance(1801)
    path = f"/channels/{first['id']}"
    assert (await did(hand, "GET", path))["thread_metadata"]["archived"]
    assert not (await did(hand, "GET", f"/channels/{kept['id']}"))["thread_metadata"]["archived"]
    joined = f"/channels/{hand.stage.lab.id}/users/@me/threads/archived/private"
    assert [each["id"] for each in (await did(hand, "GET", joined))["threads"]] == [first["id"]]
    hand.server.world.limits.active_threads = 1
    assert (await hand("PATCH", path, {"archived": False})).code == 160006
    assert (await hand("POST", f"{path}/messages", {"content": "x"})).code == 160006
    hand.server.world.limits.active_threads = 2
    await did(hand, "PATCH", path, {"archived": False})
    assert not hand.server.world.channels[int(first["id"])].archived


async def test_a_silent_message_sends_no_push_notification(hand: ByHand) -> None:
    path, text = f"/channels/{hand.stage.lab.id}/messages", hand.stage.alice.mention
    loud = await did(hand, "POST", path, {"content": text})
    still = await did(hand, "POST", path, {"content": text, "flags": 1 << 12})
    sent = hand.stage.lab.all_messages
    assert sent[int(loud["id"])].pings
    assert not sent[int(still["id"])].pings
    assert sent[int(still["id"])].silent


async def test_the_bot_writes_to_a_person_alone() -> None:
    async with by_hand() as hand:
        body = {"recipient_id": str(hand.stage.alice.id)}
        direct = await did(hand, "POST", "/users/@me/channels", body)
        assert direct == await did(hand, "POST", "/users/@me/channels", body)
        path = f"/channels/{direct['id']}/messages"
        await did(hand, "POST", path, {"content": "psst"})
        assert hand.stage.alice.dms[-1].content == "psst"
        hand.server.assert_clean()


async def test_a_file_that_was_removed_is_not_handed_out(hand: ByHand) -> None:
    (file,) = (await hand.stage.alice.send("", File("k.py", b"x"))).files
    statuses = []
    for _ in range(2):
        async with hand.session.get(file.url) as answer:
            statuses.append(answer.status)
        hand.server.world.cdn.remove("k.py")
    assert statuses == [200, 404]
