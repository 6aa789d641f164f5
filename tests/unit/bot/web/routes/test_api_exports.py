"""Whole boards over HTTP, for researchers."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from starlette.types import Message

from bot.domain.accounts import MACHINE, Rights, TokenScope
from bot.domain.ids import SubmissionId
from bot.services.tokens import revoke_access
from bot.web.context import Closing
from bot.web.routes.api import own_boards
from tests.doubles.api import Api

PATH = "/leaderboards/vectoradd/export"


async def test_a_board_is_handed_out_whole_to_its_creator_alone(api: Api) -> None:
    submission = await api.place.submit(await api.place.person("bob"))
    await api.place.judged(submission)
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        answer = await ada.get(PATH)
    assert answer.headers["content-type"] == "application/x-ndjson"
    head, *pieces, end = map(json.loads, answer.text.splitlines())
    assert head == {"kind": "board", "board": "vectoradd", "submissions": 1}
    assert end == {"kind": "end"}
    tables = [each["table"] for each in pieces if each["kind"] == "rows"]
    assert tables == ["submissions", "results", "cases"]
    assert pieces[0]["rows"][0]["identity"] == "local:bob"
    assert pieces[-1]["sha256"] == submission.source_hash
    (row,) = await api.place.store.audit.rows(1)
    assert (row.action, row.subject) == ("export", "board vectoradd")
    dan = await api.place.person("dan")
    await api.place.store.rights.replace(dan, MACHINE, Rights(is_creator=True))
    for name, code in (("bob", "not-allowed"), ("dan", "not-yours")):
        async with api.asking(name) as asks:
            refused = await asks.get(PATH)
            assert (refused.status_code, refused.json()["code"]) == (403, code)


async def test_few_are_handed_out_at_once_and_none_while_the_door_closes(api: Api) -> None:
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        async with api.door.export_slots, api.door.export_slots:
            busy = await ada.get(PATH)
            assert (busy.status_code, busy.json()["code"]) == (409, "too-many-exports")
        assert (await ada.get(PATH)).status_code == 200
    closing = replace(api, door=replace(api.door, closing=Closing(begun=True)))
    async with closing.asking("ada", TokenScope.ADMIN) as ada:
        assert (await ada.get(PATH)).text == ""


async def test_a_token_that_is_revoked_meanwhile_is_handed_nothing_more(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_boards, "CHECK_EVERY_S", 0.0)
    read = api.place.store.submissions.source

    async def revoked_before(submission: SubmissionId) -> str:
        await revoke_access(api.place.store, api.place.ada, "ada")
        return await read(submission)

    await api.place.judged(await api.place.submit())
    monkeypatch.setattr(api.place.store.submissions, "source", revoked_before)
    async with api.asking("ada", TokenScope.ADMIN) as ada:
        kinds = [json.loads(each)["kind"] for each in (await ada.get(PATH)).text.splitlines()]
    assert kinds[0] == "board"
    assert not {"source", "end"} & {*kinds}


async def test_an_export_that_takes_too_long_ends_unfinished_and_gives_its_turn_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_boards, "LONGEST_S", 0.02)
    sent: list[Message] = []

    async def endless() -> AsyncIterator[bytes]:
        yield b"a line"
        await asyncio.sleep(60)

    async def receive() -> Message:
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    answer = own_boards.QueuedResponse(endless())
    answer.slots = asyncio.Semaphore(1)
    await answer({"type": "http"}, receive, send)
    assert [each.get("body") for each in sent] == [None, b"a line"]
    assert not answer.slots.locked()
