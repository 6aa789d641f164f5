"""Puts several tasks on their boards together, each proven by a dry run first: all or none."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bot.domain.errors import UserError
from bot.domain.task_bundle import TaskBundle
from bot.domain.task_report import TaskReport
from bot.ports import Clock, Store
from bot.services.check_task import Watch, check_on, unwatched
from bot.services.publish import Published, PublishRequest, gpus_of, is_new, publish, vet
from runners.contract.runner import Runner


class UnsoundTaskError(UserError):
    """The check of a task found errors; all of them are in the report."""

    def __init__(self, report: TaskReport, message: str) -> None:
        super().__init__("unsound-task", message)
        self.report = report


@dataclass(frozen=True, slots=True)
class Draft:
    """A task that is about to be published, with the files that prove it."""

    bundle: TaskBundle
    request: PublishRequest
    strict: bool = True
    """False where reading its task.yml ignored something, which whoever reads it again must too."""


@dataclass(frozen=True, slots=True)
class Released:
    """What became of a draft; no reports when its board knew this state of the task already."""

    published: Published
    reports: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True)
class Releasing:
    """Where tasks are published and proven; `tell` hears what is begun, `watch` each step."""

    store: Store
    clock: Clock
    runners: Sequence[Runner]
    tell: Callable[[str], None]
    watch: Watch = unwatched
    sound: Callable[[PublishRequest], Awaitable[None]] | None = None
    """Awaited when a task has proven sound, just before it is stored."""

    async def release(
        self, drafts: Sequence[Draft], *, unchecked: bool = False
    ) -> tuple[Released, ...]:
        """Publish all the drafts; UserError before anything is stored when one must not be.

        `unchecked` opens the boards on the word of the person who publishes, which is recorded.
        """
        whole = [await self._with_gpus(draft) for draft in drafts]
        for draft in whole:
            await vet(self.store, self.clock, draft.request)
        proofs = [() if unchecked else await self._prove(draft) for draft in whole]
        released = []
        for draft, reports in zip(whole, proofs, strict=True):
            if self.sound is not None:
                await self.sound(draft.request)
            published = await publish(self.store, self.clock, draft.request)
            released.append(Released(published, reports))
            if unchecked:
                await self._record(published)
        return tuple(released)

    async def _with_gpus(self, draft: Draft) -> Draft:
        """Of a new board for which nobody names GPU types: those that runners have."""
        board = await self.store.boards.find(draft.request.board_name)
        if gpus_of(draft.request, board):
            return draft
        offers = [await runner.capabilities() for runner in self.runners]
        gpus = tuple(sorted({gpu for offer in offers for gpu in offer.gpus}))
        return replace(draft, request=replace(draft.request, gpus=gpus))

    async def _prove(self, draft: Draft) -> tuple[TaskReport, ...]:
        """A report per GPU type; UserError unless the task was run, and is sound."""
        request = draft.request
        if not await is_new(self.store, request):
            return ()
        gpus = gpus_of(request, await self.store.boards.find(request.board_name))
        self.tell(f"running the solutions of {request.board_name} on {', '.join(gpus)}")
        reports = await check_on(
            self.runners,
            draft.bundle,
            request.task,
            gpus,
            board=request.board_name,
            watch=self.watch,
        )
        for report in reports:
            _require_sound(report, request.board_name)
        _require_run(reports, request.board_name)
        return reports

    async def _record(self, published: Published) -> None:
        board = published.board
        subject = f"board {board.name} version {published.version}"
        await self.store.audit.record(board.creator, "publish-unchecked", subject, "")


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
