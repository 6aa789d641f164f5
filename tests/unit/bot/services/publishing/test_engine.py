"""Tests of the loops of publications, and of what a process that takes over does again."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
import structlog

from bot.domain.board import Viewer
from bot.domain.errors import StoreError, UserError
from bot.domain.ids import PublicationId
from bot.domain.publication import NewPublication, Publication, PublicationSummary, PublishRequest
from bot.services.publishing import engine as module
from bot.services.publishing import queued_runner
from bot.services.publishing.engine import MAX_ATTEMPTS, Observe, PublicationEngine
from bot.services.publishing.pipeline import Pipeline
from bot.services.publishing.publish import NO_BOARD, REQUEST, read_competition
from bot.services.publishing.state import (
    HeldPublication,
    PublicationObserver,
    PublicationOutcome,
    PublicationState,
    TakenOverError,
    cancel_publication,
    outcome_of,
)
from tests.doubles.dispatching import dispatching, until
from tests.doubles.factories import make_capabilities
from tests.doubles.place import Place
from tests.doubles.scaffolded import make_judge
from tests.doubles.task_zips import packed, packed_competition

DOOR = "web"
LEASE = timedelta(seconds=30)

PAUSE_S = module.SAVE_S
"""As it is outside of these tests, which do not wait for it."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_S", 0.01)
    monkeypatch.setattr(module, "SAVE_S", 0.01)
    monkeypatch.setattr(queued_runner, "POLL_S", 0.05)
    monkeypatch.setattr(queued_runner, "WORKER_S", 0.1)


@dataclass
class Recorder:
    """An observer that keeps what it is shown, and fails if told to."""

    error: Exception | None = None
    changes: list[PublicationState] = field(default_factory=list)
    ends: list[PublicationState] = field(default_factory=list)

    def __call__(self, held: HeldPublication) -> PublicationObserver:
        return self

    async def changed(self, state: PublicationState) -> None:
        self.changes.append(state)
        if self.error is not None:
            raise self.error

    async def finished(self, state: PublicationState) -> None:
        self.ends.append(state)
        if self.error is not None:
            raise self.error


def engine_of(
    place: Place,
    observe: Observe | None = None,
    *,
    lease: timedelta = LEASE,
) -> PublicationEngine:
    watching = observe or Recorder()
    return PublicationEngine(place.store, place.clock, DOOR, lease, watching, keeps_zips=True)


async def waiting(place: Place, name: str = "double", wish: str = "") -> PublicationId:
    request = PublishRequest(place.ada, name, ("CPU",), onto=NO_BOARD)
    stored = wish or REQUEST.dump_json(request).decode()
    return await place.store.publications.add(NewPublication(DOOR, place.ada, packed()[2], stored))


async def note_of(place: Place, number: PublicationId) -> PublicationSummary | None:
    return await place.store.publications.summary(DOOR, number)


async def judged(
    place: Place, engine: PublicationEngine, number: PublicationId
) -> PublicationOutcome:
    """The outcome of a publication that a worker could check."""
    async with dispatching(place.store, place.clock, [make_judge()]):
        return await run(place, engine, number)


async def run(place: Place, engine: PublicationEngine, number: PublicationId) -> PublicationOutcome:
    """The outcome of a publication that this engine ends."""
    async with engine.running():
        return await ended(place, number)


async def ended(place: Place, number: PublicationId) -> PublicationOutcome:
    """The outcome of a publication, once it has ended."""

    async def over() -> bool:
        note = await note_of(place, number)
        return note is not None and note.ended_at is not None

    await until(over, 30)
    note = await note_of(place, number)
    assert note is not None
    outcome = PublicationState.model_validate_json(note.state).outcome
    assert outcome is not None
    return outcome


async def test_a_task_is_checked_published_and_shown(place: Place) -> None:
    recorder = Recorder()
    engine = engine_of(place, recorder)
    outcome = await judged(place, engine, await waiting(place))
    board = await place.store.boards.find("double")
    assert board is not None
    assert (outcome.title, outcome.board, outcome.code) == ("Leaderboard double", board.id, "")
    assert outcome.message == "double on CPU is published."
    assert outcome.checked == (("CPU", ""),)
    assert recorder.changes
    (end,) = recorder.ends
    assert (end.outcome, end.publishing) == (outcome, True)
    assert {step.finding is not None for step in end.steps} == {True}
    assert end.begun == ("running the solutions of double on CPU",)


COMPETITION = """\
name: Cup
weights: 3
problems:
  - {directory: double, name: double, gpus: [CPU]}
  - {directory: triple, name: third, gpus: [CPU]}
"""


async def submit_competition(place: Place, text: str = COMPETITION) -> PublicationId:
    request = PublishRequest(place.ada, "Cup", strict=False, competition=True)
    data = packed_competition(text, "double", "triple")
    stored = REQUEST.dump_json(request).decode()
    return await place.store.publications.add(NewPublication(DOOR, place.ada, data, stored))


async def test_a_competition_is_checked_and_published_as_one(place: Place) -> None:
    recorder = Recorder()
    engine = engine_of(place, recorder)
    outcome = await judged(place, engine, await submit_competition(place))
    competition = await place.store.competitions.find("Cup")
    assert competition is not None
    assert (outcome.title, outcome.board, outcome.published) == ("Competition Cup", None, True)
    assert outcome.message == "Competition Cup with 2 boards is published."
    assert [each.board for each in outcome.boards] == [each.id for each in competition.boards]
    assert [each.checked for each in outcome.boards] == [(("CPU", ""),)] * 2
    (ignored,) = outcome.ignored
    assert "unknown key 'weights'" in ignored
    (end,) = recorder.ends
    assert end.begun == (
        "running the solutions of double on CPU",
        "running the solutions of third on CPU",
    )
    assert {step.name.partition(": ")[0] for step in end.steps} == {"double", "third"}


async def test_a_competition_that_was_interrupted_is_published_once(place: Place) -> None:
    number = await submit_competition(place)
    engine = engine_of(place)
    (held,) = await place.store.publications.claim(DOOR, "killed", LEASE)
    drafts, _ = await read_competition(held.zip, REQUEST.validate_json(held.wish))
    pipeline = Pipeline(place.store, place.clock, (), lambda words: None)
    await pipeline.check_and_publish(drafts, unchecked=True)
    audited = len(await place.store.audit.rows())
    place.clock.advance(LEASE.total_seconds())
    outcome = await judged(place, engine, number)
    assert (outcome.published, len(outcome.boards)) == (True, 2)
    assert len(await place.store.audit.rows()) == audited


async def test_a_refused_competition_says_why(place: Place) -> None:
    number = await submit_competition(place, COMPETITION.replace("name: double", "name: vectoradd"))
    bob = await place.person("bob")
    request = PublishRequest(bob, "Cup", strict=False, competition=True)
    data = packed_competition(COMPETITION.replace("double,", "triple,", 1), "double", "triple")
    stored = REQUEST.dump_json(request).decode()
    outcome = await judged(place, engine_of(place), number)
    assert outcome.published
    theirs = await place.store.publications.add(NewPublication(DOOR, bob, data, stored))
    outcome = await judged(place, engine_of(place), theirs)
    assert (outcome.title, outcome.code, outcome.published) == (
        "Competition Cup", "not-yours", False,
    )  # fmt: skip


def test_the_steps_of_a_check_are_stored_a_few_times_a_second_at_most() -> None:
    assert PAUSE_S >= 0.1


async def test_an_observers_trouble_never_stops_the_publication(place: Place) -> None:
    recorder = Recorder(error=RuntimeError("gone"))
    with structlog.testing.capture_logs() as logs:
        outcome = await judged(place, engine_of(place, recorder), await waiting(place))
    assert [each for each in logs if "exc_info" in each and each["action"] == "release_untold"]
    assert outcome.board is not None
    assert recorder.changes


async def test_what_is_held_is_given_back_untried_when_the_process_ends(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await _hang(monkeypatch)
    await waiting(place)
    async with engine_of(place).running():
        await asyncio.wait_for(begun.wait(), 5)
        assert await place.store.publications.claim(DOOR, "two", LEASE) == ()
    (left,) = await place.store.publications.claim(DOOR, "two", LEASE)
    assert left.tries == 1


async def _hang(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """A zip is never read; the event says that it has begun."""
    begun = asyncio.Event()

    async def forever(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "read_upload", forever)
    return begun


async def test_what_is_held_is_free_after_the_doors_lease(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await _hang(monkeypatch)
    await waiting(place)
    lease = timedelta(seconds=60)
    async with engine_of(place, lease=lease).running():
        await begun.wait()
        place.clock.advance(59)
        assert await place.store.publications.claim(DOOR, "two", lease) == ()
        place.clock.advance(2)
        assert len(await place.store.publications.claim(DOOR, "two", lease)) == 1


async def test_one_that_ended_with_its_process_too_often_is_given_up(place: Place) -> None:
    number = await waiting(place)
    for _ in range(MAX_ATTEMPTS):
        await place.store.publications.claim(DOOR, "killed", LEASE)
        place.clock.advance(31)
    outcome = await judged(place, engine_of(place), number)
    assert outcome.code == "given-up"
    assert "nothing was published" in outcome.message
    assert await place.store.boards.find("double") is None


async def test_an_outcome_that_was_stored_before_a_kill_is_only_shown(place: Place) -> None:
    number = await waiting(place)
    before = PublicationState(outcome=PublicationOutcome(title="t", message="refused"))
    await place.store.publications.claim(DOOR, "killed", LEASE)
    await place.store.publications.save_state(number, "killed", state=before.model_dump_json())
    place.clock.advance(31)
    recorder = Recorder()
    await judged(place, engine_of(place, recorder), number)
    assert (recorder.changes, recorder.ends) == ([], [before])
    assert await place.store.boards.find("double") is None


@pytest.mark.parametrize("begun", [False, True])
async def test_a_check_that_goes_on_waits_for_every_gpu_type(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, begun: bool
) -> None:
    asked: list[bool] = []

    async def found(*_: object, resumed: bool) -> tuple[()]:
        asked.append(resumed)
        return ()

    monkeypatch.setattr(module, "queued_runners", found)
    number = await waiting(place)
    if begun:  # by a process that was stopped, and returned it untried
        await place.store.publications.claim(DOOR, "stopped", LEASE)
        state = PublicationState(begun=("running the solutions",)).model_dump_json()
        await place.store.publications.save_state(number, "stopped", state=state)
        await place.store.publications.release_all("stopped")
    assert (await run(place, engine_of(place), number)).code == "no-runner"
    assert asked == [begun]


async def test_a_check_is_cancelled_by_its_submitter_and_by_admins(place: Place) -> None:
    store, number = place.store, await waiting(place)
    bob = await place.person("bob")
    with pytest.raises(UserError, match=f"check {number} does not exist, or was deleted"):
        await cancel_publication(store, Viewer(bob), DOOR, number)
    with pytest.raises(UserError, match="does not exist"):
        await cancel_publication(store, Viewer(place.ada), "discord", number)
    offer = {"fake": make_capabilities()}
    await store.workers.announce("busy", ["CPU"], LEASE, offer)  # it takes nothing

    async def queued() -> bool:
        return bool(await store.jobs.backlog())

    async with engine_of(place).running():
        await until(queued)
        await cancel_publication(store, Viewer(place.ada), DOOR, number)
        outcome = await ended(place, number)
    assert outcome.code == "cancelled"
    assert outcome.message == "the check was cancelled by its submitter; nothing was published"
    assert await store.jobs.backlog() == {}
    with pytest.raises(UserError, match="has ended or is cancelled already"):
        await cancel_publication(store, Viewer(place.ada), DOOR, number)
    other = await waiting(place)
    await cancel_publication(store, Viewer(bob, sees_all=True), DOOR, other)
    assert "cancelled by an admin" in (await run(place, engine_of(place), other)).message
    assert await store.boards.find("double") is None


async def test_a_check_that_is_cancelled_as_it_passes_publishes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await waiting(place)
    note = place.store.publications.save_state

    async def cancelled_before(
        release: PublicationId, owner: str, *, state: str | None = None
    ) -> bool:
        if state is not None and PublicationState.model_validate_json(state).publishing:
            await place.store.publications.cancel(place.ada, "by its submitter", number)
        return await note(release, owner, state=state)

    monkeypatch.setattr(place.store.publications, "save_state", cancelled_before)
    assert (await judged(place, engine_of(place), number)).code == "cancelled"
    assert await place.store.boards.find("double") is None


async def test_who_has_lost_the_publication_neither_publishes_nor_shows(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, number = Recorder(), await waiting(place)
    lost = asyncio.Event()
    note = place.store.publications.save_state

    async def refuse(release: PublicationId, owner: str, **given: str) -> bool:
        lost.set()
        return False

    monkeypatch.setattr(place.store.publications, "save_state", refuse)
    engine = engine_of(place, recorder)
    async with engine.running():
        await asyncio.wait_for(lost.wait(), 10)
        await until(lambda: _none(engine))
    monkeypatch.setattr(place.store.publications, "save_state", note)
    assert recorder.ends == []
    assert await place.store.boards.find("double") is None
    stored = await note_of(place, number)
    assert stored is not None
    assert (stored.state, stored.ended_at) == ("{}", None)


async def _none(engine: PublicationEngine) -> bool:
    return not engine.held


async def test_what_is_published_while_the_store_goes_away_is_published_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FIRST_WAIT_S", 0.01)
    versions, calls = place.store.boards.versions, []

    def failing(error: Exception) -> Callable[..., object]:
        real = outcome_of

        def once(*given: object) -> object:
            calls.append(given)
            if len(calls) == 1:
                raise error
            return real(*given)  # type: ignore[arg-type]

        return once

    monkeypatch.setattr(module, "outcome_of", failing(StoreError("away")))
    outcome = await judged(place, engine_of(place), await waiting(place))
    assert len(calls) == 2
    assert outcome.message == "double on CPU is published."
    board = await place.store.boards.find("double")
    assert board is not None
    assert len(await versions(board.id)) == 1


async def test_one_that_cannot_be_read_is_dropped_and_the_others_are_claimed(place: Place) -> None:
    unreadable = [await waiting(place, wish="no request") for _ in range(3)]
    outcome = await run(place, engine_of(place), await waiting(place))
    assert outcome.code == "no-runner"
    assert [await note_of(place, number) for number in unreadable] == [None] * 3


async def test_what_is_claimed_while_leases_are_renewed_is_not_stopped(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    publications = place.store.publications
    asked, stopped = asyncio.Event(), asyncio.Event()
    begun = asyncio.Event()
    claim: Callable[..., object] = publications.claim
    keep = publications.renew

    async def claim_afterwards(*given: object) -> tuple[Publication, ...]:
        await asked.wait()
        return await claim(*given)  # type: ignore[misc, no-any-return]

    async def answer_late(owner: str, lease: timedelta) -> tuple[PublicationId, ...]:
        kept = await keep(owner, lease)
        asked.set()
        await begun.wait()
        return kept

    async def read(*_: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    monkeypatch.setattr(publications, "claim", claim_afterwards)
    monkeypatch.setattr(publications, "renew", answer_late)
    monkeypatch.setattr(module, "read_upload", read)
    await waiting(place)
    async with engine_of(place).running():
        await asyncio.wait_for(begun.wait(), 5)
        await asyncio.sleep(0.05)
        assert not stopped.is_set()


async def test_the_doors_own_text_is_stored_by_its_holder_alone(place: Place) -> None:
    await waiting(place)
    (release,) = await place.store.publications.claim(DOOR, "one", LEASE)
    request = PublishRequest(place.ada)
    await HeldPublication(place.store, "one", release, request).save_place('{"a":1}')
    with pytest.raises(TakenOverError):
        await HeldPublication(place.store, "two", release, request).save_place("{}")
    place.clock.advance(31)
    (again,) = await place.store.publications.claim(DOOR, "two", LEASE)
    assert again.place == '{"a":1}'
