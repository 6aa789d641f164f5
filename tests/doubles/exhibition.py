"""A store with the data of a busy season, for looking at pages."""

import math
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.board import Access, Board, SourceVisibility, Visibility
from bot.domain.competition import NewCompetition, PointsRule
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.job import PRIORITIES, Claim
from bot.domain.publication import PublishRequest
from bot.domain.scoring import score
from bot.domain.submission import NewSubmission, Submission
from bot.services.publishing.publish import publish
from bot.services.tokens import create_token
from runners.contract.evaluation import (
    CaseKind,
    Environment,
    Evaluation,
    Measurement,
    StopReason,
)
from runners.contract.files import EvaluationFile
from runners.contract.launch import Compiled
from runners.contract.task import Mode, TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_capabilities, make_case, make_evaluation, make_task
from tests.doubles.memory_store import MemoryStore

HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(2)> \u202eevil'
PEOPLE = (
    "Ada", "Grace", "Katherine", "John", "Edsger", "Frances", "Donald", "Barbara", "Ken", "Radia",
    "Tony", "Leslie", "Margaret", "Dennis", "Hedy", HOSTILE,
)  # fmt: skip
SOURCE = '''#!PODIUM leaderboard {board}
"""A kernel of {name}: it says </pre><script>alert(3)</script> and shall not run."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n  # try {number}
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


def custom_kernel(data):
    x, y = data
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), {block}),)](x, y, out, x.numel(), BLOCK={block})
    return out
'''


@dataclass(slots=True, eq=False)
class Exhibition:
    """The store with its clock, its people by name, and its boards by name."""

    store: MemoryStore
    clock: ManualClock
    people: dict[str, PersonId]
    boards: dict[str, Board]
    chance: random.Random
    tokens: dict[str, str] = field(default_factory=dict)

    async def token(self, who: str) -> str:
        """The secret of a person's one token."""
        if who not in self.tokens:
            self.tokens[who] = (await create_token(self.store, self.people[who], "test")).secret
        return self.tokens[who]

    async def submit(
        self, who: str, board: str, gpus: tuple[str, ...], mode: Mode = Mode.RANKED
    ) -> Submission:
        """Store a submission with one job per GPU type."""
        number = self.chance.randrange(1000)
        block = self.chance.choice((256, 512, 1024))
        return await self.store.submissions.add(
            NewSubmission(
                person=self.people[who],
                board=self.boards[board].id,
                task_version=self.boards[board].task_version,
                file_name=f"{board}.py",
                source=SOURCE.format(board=board, name=who, number=number, block=block),
                mode=mode,
                gpus=gpus,
                priority=PRIORITIES[mode],
            )
        )

    async def judge(self, gpu: str, **changes: object) -> SubmissionId:
        """Claim the next job of the GPU type and store this evaluation of it."""
        claim = Claim("box:0123abcd", {gpu: 1}, timedelta(seconds=30))
        (job,) = await self.store.jobs.claim(claim)
        submission = await self.store.submissions.get(job.submission)
        assert submission is not None
        version = await self.store.boards.version(submission.task_version)
        assert version is not None
        values = {"gpu": gpu, "mode": job.mode, "environment": make_machine(gpu)} | changes
        evaluation: Evaluation = make_evaluation(**values)
        value = score(version.definition, evaluation)
        assert await self.store.jobs.accept(job.id, job.fence, evaluation, value)
        return job.submission

    async def ranked(self, who: str, board: str, gpu: str, time_ns: float) -> SubmissionId:
        """A ranked run that passed with about this time."""
        await self.submit(who, board, (gpu,))
        half = time_ns * self.chance.choice((0.001, 0.003, 0.02))
        cases = (
            make_case(spec="size: 16"),
            make_case(
                CaseKind.BENCHMARK,
                spec="size: 16777216",
                measurement=make_timing(self.chance, time_ns, half),
            ),
        )
        compiled = Compiled(registers=32, spill_stores=0, spill_loads=0, stack=0, shared=4096)
        return await self.judge(gpu, cases=cases, compiled=compiled)


async def make_exhibition(clock: ManualClock | None = None, rounds: int = 4) -> Exhibition:
    """Boards `vectoradd` (H100, A100), `sort` (closed), `secret` (private) and `empty`.

    The competition `Spring cup` has all but the last, and `Later cup` opens in a month.
    """
    clock = clock or ManualClock()
    store = MemoryStore(clock)
    people = {name: (await store.people.ensure(f"local:{n}", name)).id
              for n, name in enumerate(PEOPLE)}  # fmt: skip
    shown = Exhibition(store, clock, people, {}, random.Random(7))  # noqa: S311
    await _open_boards(shown)
    await _announce(shown)
    await _play(shown, rounds)
    await _refusals(shown)
    await _queue(shown)
    return shown


async def _announce(shown: Exhibition) -> None:
    boards, now, ken = shown.boards, shown.clock.now(), shown.people["Ken"]
    numbers = tuple(boards[name].id for name in ("vectoradd", "sort", "secret"))
    about = f"Three kernels for one mug. {HOSTILE}"
    for name, opens_at in (("Spring cup", now), ("Later cup", now + timedelta(days=30))):
        new = NewCompetition(name, ken, about, PointsRule(), opens_at, numbers)
        await shown.store.competitions.put(new)


async def _open_boards(shown: Exhibition) -> None:
    now = shown.clock.now()
    size = (Workload(args={"size": 16_777_216}),)
    add = make_task(
        bytes="12*size", flops="size", benchmarks=size, gpus=("H100", "A100"), version_note=HOSTILE
    )
    always = Access(source=SourceVisibility.ALWAYS)
    await _publish(shown, add, now + timedelta(days=40), always)
    await _publish(shown, make_task(name="sort", gpus=("CPU",)), now + timedelta(days=6), Access())
    private = Access(visibility=Visibility.PRIVATE, source=SourceVisibility.NEVER)
    await _publish(shown, make_task(name="secret", gpus=("CPU",)), None, private)
    await _publish(shown, make_task(name="empty", gpus=("H100", "CPU")), None, Access())


async def _publish(
    shown: Exhibition, task: TaskDefinition, deadline: datetime | None, access: Access
) -> None:
    ada = shown.people["Ada"]
    request = PublishRequest(ada, deadline=deadline, access=access)
    shown.boards[task.name] = (await publish(shown.store, shown.clock, request, task)).board


async def _play(shown: Exhibition, rounds: int) -> None:
    """Store several submissions of each person, each a little faster than the one before."""
    for turn in range(rounds):
        for place, who in enumerate(PEOPLE[:-3]):
            shown.clock.advance(3 * 3600)
            base = 62_000 * (1 + (place % 6) * 0.12) * math.exp(-0.08 * turn)
            noise = shown.chance.uniform(0.998, 1.01)
            await shown.ranked(who, "vectoradd", "H100", base * noise)
            if place % 3 == 0:
                await shown.ranked(who, "vectoradd", "A100", 2.1 * base * noise)
            if turn == 0 and place < 5:
                await shown.ranked(who, "sort", "CPU", 2_400_000 * (1 + place * place / 8))
        await shown.ranked(HOSTILE, "vectoradd", "H100", 61_000 - 900 * turn)
    await shown.ranked("Grace", "secret", "CPU", 1_000)


async def _refusals(shown: Exhibition) -> None:
    await shown.submit("Hedy", "vectoradd", ("H100",))
    await shown.judge(
        "H100", verdict=Verdict.WRONG_ANSWER, stage=Stage.TEST,
        message=f"3 of 16 elements differ; {HOSTILE}", log="a line\n" * 3,
    )  # fmt: skip
    await shown.submit("Dennis", "vectoradd", ("H100",))
    await shown.judge(
        "H100", verdict=Verdict.BUILD_FAILED, stage=Stage.BUILD, message="no module named 'x'",
        log="\x1b[31mTraceback\x1b[0m\n  File \"kernel.py\", line 1\nModuleNotFoundError: x",
    )  # fmt: skip
    await shown.submit("Ada", "vectoradd", ("H100",), Mode.PROFILE)
    await shown.judge("H100", cases=(), files=(EvaluationFile.of("k.ncu-rep", b"report"),))


async def _queue(shown: Exhibition) -> None:
    lease = timedelta(days=1)
    offers = {"local": make_capabilities(gpus={"H100": 2, "A100": 1})}
    await shown.store.workers.announce("box:0123abcd", ("H100", "A100"), lease, offers)
    for who in ("Ada", "Grace", "John"):
        await shown.submit(who, "vectoradd", ("H100",))
    await shown.store.jobs.claim(Claim("box:0123abcd", {"H100": 1}, lease))


def make_machine(gpu: str) -> Environment:
    """A machine with this GPU."""
    return Environment(
        gpu="CPU" if gpu == "CPU" else f"NVIDIA {gpu} 80GB HBM3",
        driver=None if gpu == "CPU" else "570.86.15",
        python="3.12.4", cpu="AMD EPYC 9654", cores=24, platform="Linux-6.8-x86_64",
        harness_version="12", torch="2.13.0", transport="vmm",
    )  # fmt: skip


def make_timing(chance: random.Random, time_ns: float, half_width_ns: float) -> Measurement:
    """Eight rounds of thirty samples, skewed as real ones are."""
    samples = tuple(
        tuple(time_ns * (0.997 + chance.gammavariate(2, 0.003)) for _ in range(30))
        for _ in range(8)
    )
    return Measurement(
        time_ns=time_ns, half_width_ns=half_width_ns, bound_ns=time_ns,
        resolution_ns=400.0, rounds=8, samples=samples, discarded=3,
        stop_reason=StopReason.PRECISE, claimed_ns=time_ns * 0.999,
    )  # fmt: skip
