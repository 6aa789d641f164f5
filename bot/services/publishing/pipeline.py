"""Checks several tasks by their own solutions, then puts them on their boards: all or none."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bot.domain.errors import UserError
from bot.domain.task_bundle import TaskBundle
from bot.domain.task_report import TaskReport
from bot.ports import Clock, Store
from bot.services.publishing.check import Watch, check_on, unwatched
from bot.services.publishing.publish import Published, is_new, publish, validate_publish
from bot.services.publishing.request import PublishRequest, named_gpus, with_gpus
from runners.contract.runner import Runner
from runners.contract.task import TaskDefinition


class UnsoundTaskError(UserError):
    """The check of a task found errors; all of them are in the report."""

    def __init__(self, report: TaskReport, message: str) -> None:
        super().__init__("unsound-task", message)
        self.report = report


@dataclass(frozen=True, slots=True)
class Draft:
    """A task that is about to be published, with its files, among them its solutions."""

    bundle: TaskBundle
    task: TaskDefinition
    request: PublishRequest

    @property
    def board_name(self) -> str:
        """The name of its board."""
        return self.request.board_name(self.task)


@dataclass(frozen=True, slots=True)
class Released:
    """What became of a draft; no reports when its board knew this state of the task already."""

    published: Published
    reports: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Where tasks are checked and published.

    `say` gets a line when a check starts, `watch` each step of it.
    """

    store: Store
    clock: Clock
    runners: Sequence[Runner]
    say: Callable[[str], None]
    watch: Watch = unwatched
    before_publish: Callable[[], Awaitable[None]] | None = None
    """Awaited when every check has passed, just before anything is stored."""

    async def check_and_publish(
        self, drafts: Sequence[Draft], *, unchecked: bool = False
    ) -> tuple[Released, ...]:
        """Publish all the drafts; UserError before anything is stored when one must not be.

        `unchecked` publishes without a check, which is recorded under the board's creator.
        """
        whole = [await self._with_gpus(draft) for draft in drafts]
        for draft in whole:
            await validate_publish(self.store, self.clock, draft.request, draft.task)
        reports = [() if unchecked else await self._check(draft) for draft in whole]
        if self.before_publish is not None:
            await self.before_publish()
        checked = tuple(zip(whole, reports, strict=True))
        return await publish_all(self.store, self.clock, checked, unchecked=unchecked)

    async def _with_gpus(self, draft: Draft) -> Draft:
        request = await with_gpus(self.store, self.runners, draft.request, draft.task)
        return replace(draft, request=request)

    async def _check(self, draft: Draft) -> tuple[TaskReport, ...]:
        """Return a report per GPU type; UserError unless the task was run, and is sound."""
        name = draft.board_name
        if not await is_new(self.store, draft.request, draft.task):
            return ()
        gpus = named_gpus(draft.request, draft.task, await self.store.boards.find(name))
        self.say(f"running the solutions of {name} on {', '.join(gpus)}")
        reports = await check_on(
            self.runners, draft.bundle, draft.task, gpus, board=name, watch=self.watch
        )
        for report in reports:
            _require_sound(report, name)
        _require_run(reports, name)
        return reports


async def publish_all(
    store: Store,
    clock: Clock,
    checked: Sequence[tuple[Draft, tuple[TaskReport, ...]]],
    *,
    unchecked: bool = False,
) -> tuple[Released, ...]:
    """Store every draft on its board, with the reports of its check."""
    released = []
    for draft, reports in checked:
        published = await publish(store, clock, draft.request, draft.task)
        released.append(Released(published, reports))
        if unchecked:
            await _record_unchecked(store, published)
    return tuple(released)


async def _record_unchecked(store: Store, published: Published) -> None:
    board = published.board
    subject = f"board {board.name} version {published.version}"
    await store.audit.record(board.creator, "publish-unchecked", subject, "")


def _require_sound(report: TaskReport, name: str) -> None:
    if report.errors:
        first, *others = report.errors
        more = f" (and {len(others)} more)" if others else ""
        raise UnsoundTaskError(
            report,
            f"{name} on {report.gpu}: {first.file}: {first.message}{more}; nothing was published",
        )


def _require_run(reports: Sequence[TaskReport], name: str) -> None:
    """One GPU type is enough: the others' reports say that they were not tried."""
    if not any(report.dry_run for report in reports):
        raise UserError(
            "not-dry-run",
            f"{name}: its solutions could not be run: {reports[0].obstacle}, or open the "
            "leaderboard unchecked (podium task publish --unchecked); nothing was published",
        )
