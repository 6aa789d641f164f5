"""What messages may hold, who hears of them, and what a nonce is good for."""

from typing import Any

import pytest

from tests.doubles.discord.model.files import File
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.wire import Json
from tests.integration.local_discord.stage import ByHand, by_hand

V2 = 1 << 15


def row(*parts: Json) -> Json:
    return {"type": 1, "components": list(parts)}


def menu(count: int, **more: object) -> Json:
    options = [{"label": str(i), "value": str(i)} for i in range(count)]
    return {"type": 3, "custom_id": "s", "options": options, **more}


def button(custom_id: object = "b", **more: object) -> Json:
    return {"type": 2, "style": 1, "label": "b", "custom_id": str(custom_id), **more}


def fields(count: int, value: str = "v") -> Json:
    return {"fields": [{"name": "n", "value": value}] * count}


SIX = [button(i) for i in range(6)]


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"content": "x" * 2001}, "BASE_TYPE_MAX_LENGTH"),
        ({"nonce": "n" * 26}, "BASE_TYPE_MAX_LENGTH"),
        ({"components": [row(menu(26))]}, "BASE_TYPE_BAD_LENGTH"),
        ({"components": [row(menu(0))]}, "BASE_TYPE_REQUIRED"),
        ({"components": [row(menu(3, max_values=5))]}, "NUMBER_TYPE_MAX"),
        ({"components": [row(menu(3, min_values=3, max_values=2))]}, "NUMBER_TYPE_RANGE"),
        ({"components": [row(menu(3)), row(menu(3))]}, "COMPONENT_CUSTOM_ID_DUPLICATED"),
        ({"components": [row(menu(3), button())]}, "BASE_TYPE_BAD_LENGTH"),
        ({"components": [row(menu(1, placeholder="p" * 151))]}, "BASE_TYPE_MAX_LENGTH"),
        ({"components": [row(each) for each in SIX]}, "BASE_TYPE_MAX_LENGTH"),
        ({"components": [row(*SIX)]}, "BASE_TYPE_BAD_LENGTH"),
        ({"components": [button()]}, "UNION_TYPE_CHOICES"),
        ({"components": [row(button(label="b" * 81))]}, "BASE_TYPE_MAX_LENGTH"),
        ({"components": [row(button("c" * 101))]}, "BASE_TYPE_BAD_LENGTH"),
        (
            {"components": [row({"type": 2, "style": 5, "label": "b"})]},
            "BUTTON_COMPONENT_INVALID_URL",
        ),
        ({"components": [row(button(label=None))]}, "BUTTON_COMPONENT_EMPTY"),
        ({"embeds": [{"title": "t"}] * 11}, "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [{"title": "t" * 257}]}, "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [fields(1, "")]}, "BASE_TYPE_REQUIRED"),
        ({"embeds": [fields(1, "v" * 1025)]}, "BASE_TYPE_BAD_LENGTH"),
        ({"embeds": [fields(26)]}, "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [{"title": "t", "footer": {"text": "f" * 2049}}]}, "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [{"title": "t", "url": "ftp://x"}]}, "URL_TYPE_INVALID_SCHEME"),
        ({"embeds": [{"color": 3}]}, "BASE_TYPE_REQUIRED"),
        (
            {"flags": V2, "content": None, "components": [{"type": 10, "content": "x" * 4001}]},
            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
        ),
        (
            {"flags": V2, "content": None, "components": [{"type": 10, "content": "x"}] * 41},
            "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED",
        ),
        (
            {"flags": V2, "components": [{"type": 10, "content": "x"}]},
            "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
        ),
        (
            {"allowed_mentions": {"parse": ["users"], "users": ["1"]}},
            "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
        ),
        ({"allowed_mentions": {"users": ["1"] * 101}}, "BASE_TYPE_MAX_LENGTH"),
    ],
)
async def test_a_message_is_refused_which(hand: ByHand, body: Json, wrong: str) -> None:
    answer = await hand.say(**{"content": "x", **body})
    assert (answer.status, answer.code) == (400, 50035)
    assert wrong in answer.wrongs


async def test_the_largest_message_is_taken(hand: ByHand) -> None:
    rows = [row(menu(25, custom_id="c" * 100, placeholder="p" * 150)), row(*SIX[:5])]
    rows += [row(button(f"r{i}", label="l" * 80)) for i in range(3)]
    embeds: list[Any] = [{"title": "t"}] * 9
    embeds.append({"title": "t" * 256, "description": "d" * 4096, **fields(25)})
    answer = await hand.say(content="x" * 2000, components=rows, embeds=embeds)
    assert answer.status == 200
    (message,) = hand.stage.lab.messages
    assert len(message.buttons) == 8
    assert message.content == "x" * 2000


async def test_an_empty_message_is_refused_also_as_an_edit(hand: ByHand) -> None:
    assert (await hand.say(content="  ")).code == 50006
    message = (await hand.say(content="x")).body
    path = f"/channels/{hand.stage.lab.id}/messages/{message['id']}"
    assert (await hand("PATCH", path, {"content": ""})).code == 50006


@pytest.mark.parametrize(
    ("allowed", "heard"),
    [
        (None, {"alice", "staff", "everyone"}),
        ({"parse": []}, set()),
        ({"parse": ["everyone"]}, {"everyone"}),
        ({"parse": ["roles"], "users": ["ALICE"]}, {"alice", "staff"}),
        ({"users": ["BOB"]}, set()),
    ],
)
async def test_allowed_mentions_decide_who_is_notified(
    hand: ByHand, allowed: Json | None, heard: set[str]
) -> None:
    stage = hand.stage
    text = f"{stage.alice.mention} {stage.staff.mention} @everyone"
    names = {"ALICE": str(stage.alice.id), "BOB": str(stage.bob.id)}
    body: Json = {"content": text, "embeds": [{"description": stage.bob.mention}]}
    if allowed is not None:
        users = [names[user] for user in allowed.get("users", [])]
        body["allowed_mentions"] = allowed | ({"users": users} if users else {})
    await hand.say(**body)
    (message,) = stage.lab.messages
    known = {stage.alice.id: "alice", stage.staff.id: "staff"}
    assert {known[who] if isinstance(who, int) else who for who in message.pings} == heard
    assert stage.bob.pinged_by(message) == ("everyone" in heard)


async def test_without_the_permission_everyone_and_closed_roles_are_not_notified() -> None:
    async with by_hand(EVERYONE) as hand:
        staff = hand.stage.staff
        await hand.say(content=f"@everyone {staff.mention}")
        staff.mentionable = True
        await hand.say(content=f"@here {staff.mention}")
        first, second = hand.stage.lab.messages
        assert first.pings == set()
        assert second.pings == {staff.id}


async def test_an_edit_notifies_nobody(hand: ByHand) -> None:
    message = (await hand.say(content="x")).body
    path = f"/channels/{hand.stage.lab.id}/messages/{message['id']}"
    await hand("PATCH", path, {"content": hand.stage.alice.mention})
    assert hand.stage.lab.messages[0].pings == set()
    assert hand.stage.lab.messages[0].mentions == [hand.stage.alice.id]


async def test_a_reply_notifies_whom_it_answers_unless_told_otherwise(hand: ByHand) -> None:
    asked = await hand.stage.alice.send("?")
    to = {"message_reference": {"message_id": str(asked.id)}}
    await hand.say(content="!", **to)
    await hand.say(content="!", allowed_mentions={"parse": []}, **to)
    first, second = hand.stage.lab.messages[1:]
    assert first.pings == {hand.stage.alice.id}
    assert second.pings == set()


async def test_an_enforced_nonce_sends_a_message_once(hand: ByHand) -> None:
    body = {"content": "result", "nonce": "job-7", "enforce_nonce": True}
    first, second = [await hand.say(**body) for _ in range(2)]
    assert first.body["id"] == second.body["id"]
    assert len(hand.stage.lab.messages) == 1
    hand.server.clock.advance(301)
    assert (await hand.say(**body)).body["id"] != first.body["id"]


async def test_files_are_served_by_signed_urls_that_expire(hand: ByHand) -> None:
    message = await hand.stage.alice.send("file", File("a b.txt", b"hello"))
    url = message.files[0].url
    assert "a_b.txt" in url

    async def fetched(url: str) -> tuple[int, str]:
        async with hand.session.get(url) as response:
            return response.status, await response.text()

    assert await fetched(url) == (200, "hello")
    assert (await fetched(url.split("?", maxsplit=1)[0]))[0] == 404
    hand.server.clock.advance(86401)
    assert (await fetched(url))[0] == 404


async def test_a_message_belongs_to_its_author(hand: ByHand) -> None:
    mine = await hand.stage.alice.send("mine")
    path = f"/channels/{hand.stage.lab.id}/messages/{mine.id}"
    assert (await hand("PATCH", path, {"content": "no"})).code == 50005
    assert not hand.server.world.can(hand.stage.alice, hand.stage.lab, Permission.MANAGE_MESSAGES)
