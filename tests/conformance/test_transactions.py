"""What every store must do with a transaction: all of it is stored, or nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from bot.domain.accounts import TokenScope
from bot.domain.board import Access, NewBoard, Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import Notice, Topic
from bot.domain.publication import PublishRequest
from bot.domain.submission import Ban, Exclusion, ExclusionKind, RateLimit
from bot.ports import Clock, Store
from bot.services import moderation as moderate
from bot.services import tokens, worker_tokens
from bot.services.boards import (
    Deletion,
    Invitation,
    board_archive,
    delete_board,
    demo_owner,
    invite,
    remove_demo,
    uninvite,
)
from bot.services.moderation import Decision
from bot.services.publishing.publish import publish
from bot.services.submissions import cancel, rejudge_submission
from bot.services.tokens import MOST_TOKENS, create_token
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stored import Scene, make_task

DAY = timedelta(days=1)
EVERY_TABLE = "select tablename from pg_tables where schemaname = 'public'"


class FellOverError(Exception):
    """Something that no store raises."""


async def test_what_a_transaction_changes_is_there_when_it_ends(scene: Scene) -> None:
    store = scene.store
    async with store.transaction() as tx:
        submission = await Scene(tx, scene.board, scene.ada).submit()
        await tx.moderation.pause("full")
        await tx.audit.record(scene.ada.id, "pause", "submissions", "full")
        assert await tx.moderation.pause_notice() == "full"
    assert await store.moderation.pause_notice() == "full"
    assert [row.action for row in await store.audit.rows()] == ["pause"]
    assert (await scene.claim_one()).submission == submission.id


async def test_of_a_transaction_that_raises_nothing_is_stored(scene: Scene) -> None:
    store, before = scene.store, await scene.submit()

    async def change() -> None:
        async with store.transaction() as tx:
            await _change_everything(tx, scene)
            raise FellOverError

    with pytest.raises(FellOverError):
        await change()
    await _is_as_before(scene, before.id)


async def test_of_a_transaction_in_which_the_store_refuses_nothing_is_stored(scene: Scene) -> None:
    store, before = scene.store, await scene.submit()
    await store.tokens.add(scene.ada.id, "0" * 64, "box", TokenScope.WORKER)

    async def change() -> None:
        async with store.transaction() as tx:
            await _change_everything(tx, scene)
            await tx.tokens.add(scene.ada.id, "1" * 64, "box", TokenScope.WORKER)

    with pytest.raises(StoreError):
        await change()
    await _is_as_before(scene, before.id)


async def test_a_transaction_within_one_is_undone_alone_or_with_it(scene: Scene) -> None:
    moderation = scene.store.moderation
    async with scene.store.transaction() as tx:
        await tx.moderation.pause("outer")
        with suppress(FellOverError):
            async with tx.transaction() as inner:
                await inner.moderation.pause("inner")
                raise FellOverError
        assert await tx.moderation.pause_notice() == "outer"
    assert await moderation.pause_notice() == "outer"
    with suppress(FellOverError):
        async with scene.store.transaction() as tx:
            async with tx.transaction() as inner:
                await inner.moderation.pause("inner")
            raise FellOverError
    assert await moderation.pause_notice() == "outer"


async def test_notices_are_sent_when_everything_is_stored_and_never_else(scene: Scene) -> None:
    store, heard = scene.store, list[Notice]()
    async with store.events.subscribe(frozenset({Topic.READY})) as notices:
        with suppress(FellOverError):
            async with store.transaction() as tx:
                await Scene(tx, scene.board, scene.ada).submit(gpus=("undone",))
                raise FellOverError
        async with store.transaction() as tx:
            await Scene(tx, scene.board, scene.ada).submit()
            assert await _heard(notices.__anext__, heard) is None
        while not heard:
            await _heard(notices.__anext__, heard)
    assert heard == [Notice(Topic.READY, "CPU")]


async def _heard(read: Callable[[], Awaitable[Notice | None]], into: list[Notice]) -> Notice | None:
    """The next notice; None for a tick, which comes when there was none for a second."""
    notice = await read()
    if notice is not None:
        into.append(notice)
    return notice


async def test_of_a_transaction_that_is_cancelled_nothing_is_stored(scene: Scene) -> None:
    store, before, changed = scene.store, await scene.submit(), asyncio.Event()

    async def change() -> None:
        async with store.transaction() as tx:
            await _change_everything(tx, scene)
            changed.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(change())
    await changed.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _is_as_before(scene, before.id)


async def test_of_two_that_wait_for_each_other_each_is_stored_whole_or_fails(scene: Scene) -> None:
    store = scene.store
    people = [await store.people.ensure(f"local:{name}", name) for name in ("bob", "eve")]
    began = [asyncio.Event(), asyncio.Event()]

    async def ban(first: int) -> None:
        other = 1 - first
        async with store.transaction() as tx:
            await tx.moderation.ban(people[first].id, Ban(f"by {first}"))
            began[first].set()
            with suppress(TimeoutError):  # a store may let only one of them begin
                await asyncio.wait_for(began[other].wait(), 0.3)
            await tx.moderation.ban(people[other].id, Ban(f"by {first}"))
            await tx.audit.record(None, "ban", str(first), "")

    ended = await asyncio.wait_for(asyncio.gather(ban(0), ban(1), return_exceptions=True), 20)
    failed = [number for number, error in enumerate(ended) if error is not None]
    assert all(isinstance(ended[number], StoreError) for number in failed)
    assert len(failed) < 2
    recorded = {row.subject for row in await store.audit.rows()}
    assert recorded == {str(number) for number in (0, 1) if number not in failed}
    reasons = {ban.reason for ban in (await store.moderation.bans()).values()}
    assert len(reasons) == 1
    assert reasons <= {f"by {number}" for number in recorded}


async def test_of_many_tokens_at_one_moment_a_person_gets_no_more_than_the_most(
    scene: Scene,
) -> None:
    asked = [create_token(scene.store, scene.ada.id, f"number {n}") for n in range(2 * MOST_TOKENS)]
    made = await asyncio.gather(*asked, return_exceptions=True)
    refused = [each for each in made if isinstance(each, BaseException)]
    assert [each.code for each in refused if isinstance(each, UserError)] == (
        ["too-many-tokens"] * MOST_TOKENS
    )
    assert len(refused) == MOST_TOKENS
    assert len(await scene.store.tokens.of(scene.ada.id)) == MOST_TOKENS


async def _change_everything(tx: Store, scene: Scene) -> None:
    """Changes of roles that keep their rows in different ways."""
    bob = await tx.people.ensure("local:bob", "Bob")
    board = await tx.boards.publish(_new_board(scene), make_task("second"), "digest-2")
    submission = await Scene(tx, board, bob).submit()
    await tx.moderation.exclude(Exclusion(submission.id, ExclusionKind.WITHDRAWN, ""))
    await tx.moderation.pause("full")
    await tx.moderation.open_channel("discord:1", "2")
    await tx.tokens.add(bob.id, "2" * 64, "laptop")
    for each in await tx.submissions.history(scene.ada.id):
        await tx.jobs.request_cancel(each.id)
    await tx.audit.record(scene.ada.id, "everything", "all", "")


async def _is_as_before(scene: Scene, before: SubmissionId) -> None:
    store = scene.store
    assert await store.people.find("local:bob") is None
    assert await store.boards.all() == (scene.board,)
    assert await store.moderation.pause_notice() is None
    assert await store.moderation.channels("discord:1") == ()
    assert await store.tokens.find("2" * 64) is None
    assert await store.audit.rows() == ()
    assert (await scene.claim_one()).submission == before
    assert await scene.claim() == ()


def _new_board(scene: Scene) -> NewBoard:
    return NewBoard("second", ("CPU",), None, scene.ada.id)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A store in which each use case below has something to change."""

    scene: Scene
    clock: Clock
    mine: SubmissionId
    excluded: SubmissionId

    @property
    def store(self) -> Store:
        return self.scene.store

    @property
    def deed(self) -> Decision:
        return Decision(self.scene.ada.id, "a new reason")

    @property
    def viewer(self) -> Viewer:
        return Viewer(self.scene.ada.id)


def _invitation(guest: str) -> Invitation:
    return Invitation("vectoradd", frozenset({guest}))


async def _delete_board(at: Recorded) -> None:
    deletion = Deletion("vectoradd", "vectoradd")
    kept = await board_archive(at.store, at.viewer, deletion, zip_bytes=1 << 20)
    await delete_board(at.store, at.viewer, deletion, kept)


async def _grant(at: Recorded, scope: TokenScope) -> object:
    return await tokens.create_local_token(
        at.store, at.clock, at.scene.ada.id, "bob", scope=scope, lifetime=DAY
    )


USE_CASES: dict[str, Callable[[Recorded], Awaitable[object]]] = {
    "ban": lambda at: moderate.ban(at.store, at.deed, "local:bob"),
    "unban": lambda at: moderate.unban(at.store, at.deed, "local:eve"),
    "disqualify": lambda at: moderate.disqualify(at.store, at.deed, at.mine),
    "withdraw": lambda at: moderate.withdraw(at.store, at.viewer, "", at.mine),
    "requalify": lambda at: moderate.requalify(at.store, at.deed, at.excluded),
    "pause": lambda at: moderate.pause(at.store, at.deed),
    "resume": lambda at: moderate.resume(at.store, at.deed),
    "pause board": lambda at: moderate.pause_board(at.store, at.deed, at.scene.board),
    "resume board": lambda at: moderate.resume_board(at.store, at.deed, at.scene.board),
    "pause gpu": lambda at: moderate.pause_gpu(at.store, at.deed, "CPU"),
    "resume gpu": lambda at: moderate.resume_gpu(at.store, at.deed, "CPU"),
    "limit": lambda at: moderate.set_limit(at.store, at.deed, RateLimit(7, DAY)),
    "unlimit": lambda at: moderate.drop_limit(at.store, at.deed, None, None),
    "rejudge": lambda at: rejudge_submission(at.store, at.deed, at.mine),
    "cancel": lambda at: cancel(at.store, at.viewer, at.mine),
    "publish": lambda at: publish(
        at.store, at.clock, PublishRequest(at.scene.ada.id, "new", ("CPU",)), make_task()
    ),
    "publish a version": lambda at: publish(
        at.store,
        at.clock,
        PublishRequest(at.scene.ada.id, gpus=("CPU", "H100"), access=Access()),
        make_task(description="better"),
    ),
    "invite": lambda at: invite(at.store, at.viewer, _invitation("discord:2")),
    "uninvite": lambda at: uninvite(at.store, at.viewer, _invitation("discord:1")),
    "delete board": _delete_board,
    "delete demo": lambda at: remove_demo(at.store),
    "worker token": lambda at: worker_tokens.create_worker_token(
        at.store, at.clock, at.scene.ada.id, "new-box", lifetime=DAY
    ),
    "revoke worker token": lambda at: worker_tokens.revoke_worker_token(
        at.store, at.scene.ada.id, "box"
    ),
    "token": lambda at: _grant(at, TokenScope.PERSON),
    "admin token": lambda at: _grant(at, TokenScope.ADMIN),
    "revoke tokens": lambda at: tokens.revoke_access(at.store, at.scene.ada.id, "ada"),
    "sign-in link": lambda at: tokens.sign_in_here(at.store, at.clock, "bob", "here"),
}


async def test_no_change_is_stored_without_its_record(
    scene: Scene, clock: Clock, store_dsn: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = await _something_to_change(scene, clock)
    before = await _everything(scene.store, store_dsn)

    async def refuse(*_: object) -> None:
        raise StoreError("no room for a record")

    for name, change in USE_CASES.items():
        with monkeypatch.context() as patch:
            patch.setattr(type(scene.store.audit), "record", refuse)
            with pytest.raises(StoreError, match="no room for a record"):
                await change(at)
        assert await _everything(scene.store, store_dsn) == before, name


async def _something_to_change(scene: Scene, clock: Clock) -> Recorded:
    store, ada = scene.store, scene.ada.id
    bob = await store.people.ensure("local:bob", "bob")
    eve = await store.people.ensure("local:eve", "eve")
    await Scene(store, scene.board, bob).submit()
    mine, excluded = await scene.submit(), await scene.submit()
    await store.moderation.ban(eve.id, Ban(""))
    await store.moderation.exclude(Exclusion(excluded.id, ExclusionKind.DISQUALIFIED, ""))
    await store.moderation.pause("")
    await store.moderation.pause_board(scene.board.id, "")
    await store.moderation.pause_gpu("CPU", "")
    await store.moderation.set_limit(RateLimit(5, DAY))
    await store.boards.invite(scene.board.id, frozenset({"discord:1"}))
    demo = await demo_owner(store)
    await store.boards.publish(NewBoard("demo", ("CPU",), None, demo.id), make_task("d"), "d")
    await store.tokens.add(ada, "3" * 64, "box", TokenScope.WORKER)
    await store.tokens.add(ada, "4" * 64, "laptop")
    return Recorded(scene, clock, mine.id, excluded.id)


async def _everything(store: Store, dsn: str | None) -> dict[str, Any]:
    """Every row that is stored."""
    if isinstance(store, MemoryStore):
        return {f"{type(owner)} {name}": rows for owner, name, rows in store.state()}
    connection = await asyncpg.connect(dsn)
    try:
        found = {}
        for (name,) in await connection.fetch(EVERY_TABLE):
            rows = await connection.fetch(f"select row::text from {name} as row")  # noqa: S608
            found[name] = sorted(each["row"] for each in rows)
        return found
    finally:
        await connection.close()
