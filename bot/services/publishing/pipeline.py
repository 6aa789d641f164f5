"""Checks several tasks by their own solutions, then publishes all of them or none.

A competition is stored together with its boards.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bot.domain.board import Board
from bot.domain.competition import Competition, NewCompetition
from bot.domain.costs import GpuTime, jobs_need
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.publication import (
    Draft,
    PublishChange,
    Published,
    PublishedDraft,
    PublishRequest,
    UnsoundTaskError,
)
from bot.domain.tasks.grading import HOW_TO_CHOOSE, Grading, choose_later, same_program, settle
from bot.domain.tasks.lint import Finding, TaskReport
from bot.domain.tasks.task_file import ParsedTask
from bot.ports import Clock, Store
from bot.services.publishing.check import Watch, check_on, ignore_step
from bot.services.publishing.publish import (
    is_new,
    named_gpus,
    publish,
    read_competition,
    validate_publish,
    with_gpus,
)
from bot.services.submissions import require_gpu_time
from runners.contract.runner import Runner
from runners.contract.task import Grader, Mode

MOST_COMPETITIONS = 50
"""The most competitions of one person."""
_NOTHING_RUN = "Nothing of the task was run: it has no solution and no template."
_MOST_SHOWN = 3
"""The most differences between the graders in one error; the report has all."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Where tasks are checked and published.

    `say` receives a line when a check starts, `watch` each step of it.
    """

    store: Store
    clock: Clock
    runners: Sequence[Runner]
    say: Callable[[str], None]
    watch: Watch = ignore_step
    before_publish: Callable[[Sequence[Draft]], Awaitable[None]] | None = None
    """Awaited when every check has passed, before anything is stored, with what will be stored."""
    find_runners: Callable[[Sequence[str]], Awaitable[Sequence[Runner]]] | None = None
    """Returns the runners for a check on these GPU types, when `runners` is empty."""
    accepted: bool = False
    """Whether the requests were validated when they were stored: their GPU types are not checked
    again, because workers may have left since."""

    async def check_and_publish(
        self, drafts: Sequence[Draft], *, unchecked: bool = False
    ) -> tuple[PublishedDraft, ...]:
        """Publish all the drafts; UserError before anything is stored when one must not be.

        `unchecked` publishes without a check; the audit log names the board's creator for it.
        """
        complete = [await self._completed(draft) for draft in drafts]
        served = None if self.accepted else await self._served()
        for draft in complete:
            request = draft.request
            await validate_publish(self.store, self.clock, request, draft.task, served=served)
            await validate_competition(self.store, draft)
        checked = [await self._checked(draft, unchecked=unchecked) for draft in complete]
        if self.before_publish is not None:
            await self.before_publish([draft for draft, _ in checked])
        async with self.store.transaction() as tx:
            return await publish_all(tx, self.clock, checked, unchecked=unchecked)

    async def _served(self) -> set[str]:
        """Return the GPU types of its own runners."""
        offers = [await each.capabilities() for each in self.runners]
        return {gpu for each in offers for gpu in each.gpus}

    async def _completed(self, draft: Draft) -> Draft:
        """Return the draft with its GPU types, under the grader that was chosen for its board."""
        request = await with_gpus(self.store, draft.request, draft.task, self.runners)
        board = await self.store.boards.find(draft.board_name)
        parsed = ParsedTask(draft.task, grading=draft.grading)
        parsed = await under_chosen_grader(self.store, board, parsed, request.grader)
        return replace(draft, request=request, task=parsed.task, grading=parsed.grading)

    async def _checked(
        self, draft: Draft, *, unchecked: bool
    ) -> tuple[Draft, tuple[TaskReport, ...]]:
        """Return the draft under its grader, and a report per GPU type.

        UserError unless the task was run and passed, and its grader is decided.
        """
        name = draft.board_name
        if not await is_new(self.store, draft.request, draft.task):
            return draft, ()
        if unchecked:
            return _settled(draft, ()), ()
        gpus = named_gpus(draft.request, draft.task, await self.store.boards.find(name))
        whose = GpuTime(draft.request.person, None, "")
        await require_gpu_time(
            self.store, self.clock, jobs_need(draft.task, Mode.RANKED, gpus, whose)
        )
        self.say(f"running the solutions of {name} on {', '.join(gpus)}")
        runners = self.runners
        if not runners and self.find_runners is not None:
            runners = await self.find_runners(gpus)
        draft, reports = await check_draft(runners, draft, gpus, watch=self._watch_of(draft))
        for report in sorted(reports, key=lambda each: not each.undecided):
            _require_sound(report, name)
        _require_run(reports, name)
        return draft, reports

    def _watch_of(self, draft: Draft) -> Watch:
        """Return a watch whose steps name the board, when those of several boards are shown."""
        if draft.competition is None:
            return self.watch
        return lambda step: self.watch(replace(step, name=f"{draft.board_name}: {step.name}"))


async def under_chosen_grader(
    store: Store, board: Board | None, parsed: ParsedTask, chosen: Grader | None = None
) -> ParsedTask:
    """Return a task under the chosen grader, or the one that was chosen for its board before.

    An earlier choice was made for the board's evaluation program, not for another one.
    """
    if chosen is None and board is not None and board.grader is not None:
        version = await store.boards.version(board.task_version)
        if version is not None and same_program(version.definition, parsed.task):
            chosen = board.grader
    task, grading = choose_later(parsed.task, parsed.grading, chosen)
    return replace(parsed, task=task, grading=grading)


async def check_draft(
    runners: Sequence[Runner], draft: Draft, gpus: Sequence[str], *, watch: Watch = ignore_step
) -> tuple[Draft, tuple[TaskReport, ...]]:
    """Check a task under its grader; return it under the grader that this allows, and the reports.

    If that is another grader, the task is checked again under it.
    """
    gpus = named_gpus(replace(draft.request, gpus=tuple(gpus)), draft.task, None)
    checked, reports = draft, await _check(runners, draft, gpus, watch)
    draft = _settled(draft, reports)
    if draft.task != checked.task:
        reports = await _check(runners, draft, gpus, watch)
    return draft, tuple(_with_grading(each, draft.grading) for each in reports)


def _with_grading(report: TaskReport, grading: Grading) -> TaskReport:
    disagree = not all(each.agrees for each in report.comparisons)
    return replace(report, grading=grading.why, undecided=disagree and grading.is_open)


async def _check(
    runners: Sequence[Runner], draft: Draft, gpus: Sequence[str], watch: Watch
) -> tuple[TaskReport, ...]:
    bundle, task, board = draft.bundle, draft.task, draft.board_name
    return await check_on(
        runners, bundle, task, gpus, board=board, watch=watch, grading=draft.grading
    )


def _settled(draft: Draft, reports: Sequence[TaskReport]) -> Draft:
    task, grading = settle(draft.task, draft.grading, reports)
    if reports and all(each.nothing_run for each in reports):
        grading = replace(grading, why=f"{grading.why} {_NOTHING_RUN}")
    return replace(draft, task=task, grading=grading)


async def publish_all(
    tx: Store,
    clock: Clock,
    checked: Sequence[tuple[Draft, tuple[TaskReport, ...]]],
    *,
    unchecked: bool = False,
) -> tuple[PublishedDraft, ...]:
    """Store every draft on its board, in the caller's transaction; return the reports too."""
    published_drafts = []
    for draft, reports in checked:
        published = await publish(tx, clock, draft.request, draft.task, served=None)
        published_drafts.append(PublishedDraft(published, reports, draft.grading.why))
        if unchecked:
            await _record_unchecked(tx, published)
    await store_competitions(tx, clock, [draft for draft, _ in checked], published_drafts)
    return tuple(published_drafts)


async def _record_unchecked(tx: Store, published: Published) -> None:
    board = published.board
    subject = f"board {board.name} version {published.version}"
    await tx.audit.record(board.creator, "publish-unchecked", subject, "")


def _require_sound(report: TaskReport, name: str) -> None:
    """Require that the check found no error; a difference between the graders comes first."""
    found = [each for each in report.errors if not report.undecided or _is_difference(each)]
    if not found:
        return
    shown = found[: _MOST_SHOWN if report.undecided else 1]
    words = "; ".join(f"{each.file}: {each.message}" for each in shown)
    others = len(found) - len(shown)
    more = f" (and {others} more)" if others else ""
    advice = f"; {HOW_TO_CHOOSE}" if report.undecided else ""
    raise UnsoundTaskError(
        report,
        f"{report.grading} {name} on {report.gpu}: {words}{more}; nothing was published{advice}",
        name,
    )


def _is_difference(finding: Finding) -> bool:
    return finding.comparison is not None and not finding.comparison.agrees


def _require_run(reports: Sequence[TaskReport], name: str) -> None:
    """Require that the solutions were run on at least one GPU type, and say why they were not."""
    if not any(report.was_run for report in reports):
        obstacle = reports[0].obstacle
        grading = f"{reports[0].grading} " if "missing grader" in obstacle else ""
        raise UserError(
            "not-dry-run",
            f"{grading}{name}: its solutions could not be run: "
            f"{obstacle}, or skip the check at the command line with `podium task publish "
            "--unchecked`; nothing was published",
        )


async def prepare_competition(
    store: Store,
    clock: Clock,
    request: PublishRequest,
    data: bytes,
    *,
    is_admin: bool,
) -> PublishRequest:
    """Return the request for the competition in a zip; UserError for errors found by reading it.

    An admin may change the competition of another person, and the boards in it.
    """
    drafts, _ = await read_competition(data, request)
    name = next(each.competition.name for each in drafts if each.competition is not None)
    existing = await store.competitions.find(name)
    if existing is None:
        await require_few_competitions(store, request.person)
    foreign = existing is not None and existing.creator != request.person
    request = replace(request, name=name, as_admin=foreign and is_admin)
    for draft in drafts:
        own = replace(draft.request, as_admin=request.as_admin)
        await validate_competition(store, replace(draft, request=own))
        own = await with_gpus(store, own, draft.task)
        await validate_publish(store, clock, own, draft.task)
    return request


async def require_few_competitions(store: Store, person: PersonId, more: int = 1) -> None:
    """Raise UserError when the person would have too many competitions with `more` new ones."""
    if await store.competitions.count_of(person) + more > MOST_COMPETITIONS:
        raise UserError(
            "too-many-competitions",
            f"you have {MOST_COMPETITIONS} competitions; delete one first, which keeps its boards",
        )


async def validate_competition(store: Store, draft: Draft) -> Competition | None:
    """Return the stored competition of a draft; UserError when it is another person's."""
    if draft.competition is None:
        return None
    existing = await store.competitions.find(draft.competition.name)
    request = draft.request
    if existing is not None and existing.creator != request.person and not request.as_admin:
        raise UserError(
            "not-yours",
            f"competition {existing.name!r} belongs to another person; choose another name",
        )
    return existing


async def store_competitions(
    tx: Store, clock: Clock, drafts: Sequence[Draft], published: Sequence[PublishedDraft]
) -> None:
    """Store each competition of the drafts with its boards, in the caller's transaction."""
    boards: dict[str, list[PublishedDraft]] = {}
    first: dict[str, Draft] = {}
    for draft, done in zip(drafts, published, strict=True):
        if draft.competition is not None:
            boards.setdefault(draft.competition.name, []).append(done)
            first.setdefault(draft.competition.name, draft)
    for name, draft in first.items():
        existing = await validate_competition(tx, draft)
        await _store_competition(tx, clock, draft, boards[name], existing=existing)


async def _store_competition(
    tx: Store,
    clock: Clock,
    draft: Draft,
    boards: Sequence[PublishedDraft],
    *,
    existing: Competition | None,
) -> None:
    """Store the competition of a draft. Without an opening date in the file it opens now.

    `existing` is looked up only once: a competition that another person stores under this name
    meanwhile stays theirs.
    """
    definition, now = draft.competition, clock.now()
    if definition is None:
        return
    opened_at = existing.opens_at if existing is not None and existing.has_opened(now) else now
    new = NewCompetition(
        definition.name,
        draft.request.person,
        definition.description,
        definition.points,
        definition.opens_at or opened_at,
        tuple(each.published.board.id for each in boards),
    )
    if existing is None or _differs(new, existing):
        await tx.competitions.put(new, None if existing is None else existing.id)
        if existing is None:
            await require_few_competitions(tx, draft.request.person, more=0)
        change = PublishChange.CREATED if existing is None else PublishChange.CONFIGURED
        reason = f"{len(boards)} board{'' if len(boards) == 1 else 's'}"
        subject = f"competition {definition.name}"
        await tx.audit.record(draft.request.person, f"publish-{change}", subject, reason)


def _differs(new: NewCompetition, existing: Competition) -> bool:
    boards = tuple(each.id for each in existing.boards)
    present = NewCompetition(
        existing.name, existing.creator, existing.description, existing.points, existing.opens_at,
        boards,
    )  # fmt: skip
    return replace(new, creator=existing.creator) != present
