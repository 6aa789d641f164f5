"""A task that brings its own eval.py: graded by it on every runner, and shown at every front end.

The bot has no runner. A worker of its own takes the runs of the check and the submissions from the
queue to the runner under test. The harness is the real one, on the CPU.
"""

import asyncio
import io
import itertools
import json
import re
import sys
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import httpx
import pytest
import pytest_asyncio

from bot.domain.tasks.scaffold import scaffold
from runners.contract.evaluation import CPU, Timing
from tests.doubles.databases import fresh_database
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.files import File
from tests.doubles.discord.users.person import Person
from tests.doubles.dispatching import until
from tests.doubles.task_zips import WITH_EVAL
from tests.e2e.command import Podium, terminate
from tests.e2e.discord.scene import scene
from tests.e2e.discord.test_boards_anywhere import LIVE, WITHIN_S, Site, address_of
from tests.e2e.discord.test_releases import zipped
from tests.e2e.test_agents import said_until

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.postgres,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

EVALUATION = '''
"""Grades in one process. It reports a fixed time, by which its results can be recognized."""

import os
import sys

import submission
from reference import check_implementation, generate_input

VERSION, TIME_NS = @VERSION@, @TIME_NS@


def failure(case):
    if not hasattr(submission, "AUTHOR"):
        return "eval.py: AUTHOR is missing"
    data = generate_input(**case)
    right, why = check_implementation(data, submission.custom_kernel(data.clone()))
    return "" if right else f"eval.py: {why}"


def main():
    step, path = sys.argv[1:]
    seed = int(os.environ.pop("POPCORN_SEED", "0"))
    kind = "test" if step == "test" else "benchmark"
    with open(path) as lines:
        pairs = [[part.split(":") for part in line.split(";")] for line in lines]
    cases = [{key.strip(): int(value) for key, value in case} for case in pairs]
    print(f"eval.py {VERSION}: {step} of {len(cases)}")
    report = os.fdopen(int(os.environ["POPCORN_FD"]), "w")
    print(f"{kind}-count: {len(cases)}", file=report)
    passed = True
    for number, case in enumerate(cases):
        name = f"{kind}.{number}"
        print(f"{name}.spec: {case}", file=report)
        why = failure({**case, "seed": case["seed"] + seed})
        passed = passed and not why
        if why:
            print(f"{name}.status: fail\\n{name}.error: {why}", file=report)
        elif kind == "test":
            print(f"{name}.status: pass", file=report)
        else:
            for key, value in {
                "runs": 5, "mean": TIME_NS, "std": 1.0, "err": 0.5,
                "best": TIME_NS - 1, "worst": TIME_NS + 1,
            }.items():
                print(f"{name}.{key}: {float(value)}", file=report)
    print("check:", "pass" if passed else "fail", file=report, flush=True)
    return 0 if passed else 112


sys.exit(main())
'''
_numbers = itertools.count(1)
TIME_NS = {1: 5000, 2: 7000}
"""The time that each version of the program reports."""
KERNEL = "AUTHOR = 'Ada'\n\n\ndef custom_kernel(data):\n    return data + data\n"
FAKE = "# fake: time_us=3\n"
"""What the fake runner reads in a kernel."""
ANONYMOUS = KERNEL.partition("\n")[2]
"""Correct for Podium's judge, and wrong for the task's own program."""
WRONG = f"#!PODIUM expect wrong_answer\n{KERNEL.replace('data + data', 'data * 1.9')}"


def task(version: int = 1, *, strict: bool = False) -> File:
    """The task's zip; if strict, with a solution on which both graders disagree."""
    program = EVALUATION.replace("@VERSION@", str(version))
    made = scaffold("double")
    solutions = {"solutions/correct/signed.py": KERNEL, "solutions/wrong/almost.py": WRONG}
    if strict:
        solutions["solutions/wrong/anonymous.py"] = f"#!PODIUM expect wrong_answer\n{ANONYMOUS}"
    files = {
        "task.yml": WITH_EVAL.replace("templates:\n  Python: template.py\n", ""),
        "task.py": made["task.py"],
        "reference.py": made["reference.py"],
        "eval.py": program.replace("@TIME_NS@", str(TIME_NS[version])),
        **solutions,
    }
    return zipped({f"double/{name}": text for name, text in files.items()})


@dataclass(frozen=True, slots=True)
class Course:
    """A bot without a runner, and two clients of its web server."""

    site: Site
    browser: httpx.AsyncClient
    """Of somebody who has not signed in."""
    popcorn: httpx.AsyncClient
    """Alice's popcorn-cli."""

    async def page(self, path: str) -> str:
        """The text of a page."""
        answer = await self.browser.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def answer(self, path: str) -> Any:  # noqa: ANN401 - any JSON
        """The JSON of a route of `/popcorn`."""
        answer = await self.popcorn.get(f"/popcorn{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def ranked(self, board: str, gpu: str = CPU) -> list[tuple[str, float]]:
        """Person and nanoseconds on the ranked list of `/popcorn`, fastest first."""
        found = await self.answer(f"/submissions/{board}/{gpu}")
        return [(each["user_name"], round(each["submission_score"] * 1e9, 3)) for each in found]

    async def results(self, board: str) -> list[tuple[object, ...]]:
        """Person, task version, GPU type, verdict and nanoseconds of each result in Postgres."""
        rows = await self.site.rows(
            "select p.name, v.number, e.gpu, e.verdict, s.time_ns from evaluations e"
            " join task_versions v on v.id = e.task_version join boards b on b.id = v.board"
            " join submissions m on m.id = e.submission join people p on p.id = m.person"
            " left join scores s on s.job = e.job where b.name = $1 order by e.job",
            board,
        )
        return [tuple(row) for row in rows]

    async def evaluations(self, board: str) -> list[dict[str, Any]]:
        """The evaluations of the board's submissions, oldest first."""
        rows = await self.site.rows(
            "select e.evaluation from evaluations e join submissions m on m.id = e.submission"
            " join boards b on b.id = m.board where b.name = $1 order by e.job",
            board,
        )
        return [json.loads(row["evaluation"]) for row in rows]

    async def submit(
        self, who: Person, board: str, source: str = KERNEL, gpus: str = CPU
    ) -> Channel:
        """Submit a kernel to the board, ranked, and return the person's thread."""
        script = File(f"{who.name}-{next(_numbers)}.py", source.encode())
        run = await who.slash(
            "leaderboard submit ranked", script=script, leaderboard_name=board, gpus=gpus
        )
        assert "is stored: ranked" in (await run.final()).text
        return await who.sees_thread(f"{board}: ", within=WITHIN_S)

    @asynccontextmanager
    async def working(self, worker: Podium) -> AsyncIterator[None]:
        """Have this worker run inside the block; at its end no worker is left."""
        process = worker.start("worker")
        try:
            said = await asyncio.to_thread(said_until, process, "Ctrl-C")
            assert "working" in said, said
            yield
        finally:
            status, said = await asyncio.to_thread(terminate, process)
        assert (status, said.splitlines()[-1:]) == (0, ["stopped"]), said
        assert await self.site.rows(f"select from workers where {LIVE}") == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def course() -> AsyncIterator[Course]:
    async with fresh_database() as dsn:
        apart = {"DATABASE_URL": dsn, "PODIUM_HTTP_PORT": "0"}
        async with scene("none", settings=apart) as stage:
            site = Site(stage, stage.podium, dsn)
            await (await stage.alice.slash("leaderboard list")).final()
            made = stage.podium("token", "create", "--person", f"discord:{stage.alice.id}")
            assert made.returncode == 0, made.stderr
            address = await address_of(stage)
            token = {"X-Popcorn-Cli-Id": made.stdout.strip()}
            browser = httpx.AsyncClient(base_url=address, timeout=60)
            popcorn = httpx.AsyncClient(base_url=address, timeout=60, headers=token)
            async with browser, popcorn:
                yield Course(site, browser, popcorn)


Place: TypeAlias = Callable[[Course], AbstractAsyncContextManager[Podium]]
"""Makes the worker that takes jobs to one runner; it is not started."""


def _worker(course: Course, runners: str, **environment: str) -> Podium:
    folder = course.site.stage.podium.folder
    environment["PODIUM_DATA_DIR"] = str(folder / runners.partition(":")[0])
    return Podium(folder, runners, **environment)


@asynccontextmanager
async def _local(course: Course) -> AsyncIterator[Podium]:
    yield _worker(course, "local:CPU=1,fake:H100=1", DATABASE_URL=course.site.dsn)


@asynccontextmanager
async def _agent(course: Course) -> AsyncIterator[Podium]:
    made = course.site.stage.podium("token", "create", "--worker", "box")
    assert made.returncode == 0, made.stderr
    yield _worker(
        course,
        "local:CPU=1",
        PODIUM_SERVER=str(course.browser.base_url),
        PODIUM_WORKER_TOKEN=made.stdout.strip(),
    )


@asynccontextmanager
async def _modal(course: Course) -> AsyncIterator[Podium]:
    pytest.importorskip("modal", reason="the package modal is not installed")
    from runners.backends import modal_app  # noqa: PLC0415 - it needs the package
    from tests.doubles.modal.visible import local_modal  # noqa: PLC0415 - as above

    async with local_modal() as server:
        await modal_app.deploy()
        environment = server.environment | {"DATABASE_URL": course.site.dsn}
        yield _worker(course, "modal:CPU=1", **environment)
        assert server.scheduler.begun > 0


@asynccontextmanager
async def _ray(course: Course) -> AsyncIterator[Podium]:
    if sys.platform != "linux":
        pytest.skip("Ray is for Linux")
    pytest.importorskip("ray", reason="the package ray is not installed")
    from tests.doubles.ray.local import CPU_NODE, local_ray  # noqa: PLC0415 - it needs the package

    cluster = local_ray(CPU_NODE)
    server = await asyncio.to_thread(cluster.__enter__)
    try:
        environment = server.environment | {"DATABASE_URL": course.site.dsn}
        yield _worker(course, "ray:CPU=1", **environment)
    finally:
        await asyncio.to_thread(cluster.__exit__, None, None, None)


PLACES: dict[str, Place] = {"local": _local, "agent": _agent, "modal": _modal, "ray": _ray}


async def create(course: Course, board: str, zip_file: File, **options: str) -> str:
    """Have carol create a board; return what her thread says about the check and its end."""
    carol = course.site.stage.carol
    run = await carol.slash(
        "leaderboard create", leaderboard_name=board, task_zip=zip_file, gpus=CPU, **options
    )
    await run.final()
    thread = await carol.sees_thread(f": {board}", within=WITHIN_S)
    await carol.sees(
        lambda message: any(
            end in message.text for end in ("is published", "othing was published")
        ),
        thread,
        within=WITHIN_S,
    )
    return "\n".join(each.text for each in carol.messages(thread)).replace("\\", "")


@pytest.mark.parametrize("name", PLACES)
async def test_on_every_runner_the_task_is_graded_by_its_own_eval_py(
    course: Course, name: str
) -> None:
    stage, board = course.site.stage, f"on-{name}"
    async with PLACES[name](course) as worker, course.working(worker):
        told = await create(course, board, task(strict=True), grader="popcorn")
        assert f"{board} on CPU is published" in told, told
        assert "The task's own eval.py grades: the task's creator chose so." in told
        assert "anonymous.py: wrong answer, as expected" in told
        await stage.bob.sees(f"New leaderboard: {board}", stage.submissions)
        thread = await course.submit(stage.alice, board)
        report = await stage.alice.sees("passed in a ranked run on CPU", thread, within=WITHIN_S)
        assert "5.000 µs" in report.text
        await stage.bob.sees(
            lambda message: f"on {board}\n🥇 1st of 1 on CPU: 5.000 µs" in message.text,
            stage.submissions,
        )
        thread = await course.submit(stage.bob, board, ANONYMOUS)
        await stage.bob.sees("eval.py: AUTHOR is missing", thread, within=WITHIN_S)
    assert await course.results(board) == [
        ("Alice", 1, CPU, "passed", 5000.0),
        ("Bob", 1, CPU, "wrong_answer", None),
    ]
    passed = (await course.evaluations(board))[0]
    assert passed["log"] == "eval.py 1: test of 3\neval.py 1: leaderboard of 1\n"
    assert passed["environment"]["timing"] == Timing.IN_PROCESS
    page = await course.page(f"/boards/{board}")
    assert re.search(r"Alice</a>.*>5\.000 µs ± 0\.002\*<", page, re.DOTALL)
    assert "wrong answer" in page
    assert "AUTHOR is missing" not in page  # what others' failures say is theirs
    shown = {each["name"]: each for each in await course.answer("/leaderboards")}
    assert shown[board]["gpu_types"] == [CPU]
    assert await course.ranked(board) == [("Alice", 5000.0)]
    (own,) = await course.answer(f"/user/submissions?leaderboard={board}")
    assert own["runs"] == [{"gpu_type": CPU, "score": "0.000005"}]
    stage.server.assert_clean()


async def test_a_board_gets_a_version_that_judges_everyones_best_and_is_deleted(
    course: Course,
) -> None:
    stage, board = course.site.stage, "lasting"
    async with _local(course) as worker, course.working(worker):
        told = await create(course, board, task())
        assert "Podium does not know this program. Both agree on all solutions" in told, told
        for person in (stage.alice, stage.bob):
            thread = await course.submit(person, board)
            await person.sees("passed in a ranked run on CPU", thread, within=WITHIN_S)
        await update(course, board)
        assert await course.ranked(board) == [("Alice", 7000.0), ("Bob", 7000.0)]

        run = await stage.carol.slash("leaderboard update", leaderboard_name=board, gpus="CPU,H100")
        assert f"{board} on CPU, H100: changed" in (await run.final()).text
        thread = await course.submit(stage.alice, board, FAKE + KERNEL, "CPU,H100")
        report = await stage.alice.sees("passed in a ranked run on H100", thread, within=WITHIN_S)
        assert "passed in a ranked run on CPU" in report.text
    assert await course.results(board) == [
        *((name, 1, CPU, "passed", 5000.0) for name in ("Alice", "Bob")),
        *((name, 2, CPU, "passed", 7000.0) for name in ("Alice", "Bob")),
        ("Alice", 2, CPU, "passed", 7000.0),
        ("Alice", 2, "H100", "passed", 3000.0),
    ]
    logs = [each["log"] for each in await course.evaluations(board)]
    assert ["eval.py 1: leaderboard" in log for log in logs] == [True] * 2 + [False] * 4
    assert ["eval.py 2: leaderboard" in log for log in logs] == [False] * 2 + [True] * 3 + [False]
    for gpu, time in (("CPU", "7.000"), ("H100", "3.000")):
        page = await course.page(f"/boards/{board}?gpu={gpu}")
        assert re.search(rf"Alice</a>.*>{time} µs ±", page, re.DOTALL)
    assert await course.ranked(board, "H100") == [("Alice", 3000.0)]
    await delete(course, board)
    stage.server.assert_clean()


async def update(course: Course, board: str) -> None:
    """Have carol publish the task's second version and judge everyone's best submission by it."""
    stage = course.site.stage
    run = await stage.carol.slash("leaderboard update", leaderboard_name=board, task_zip=task(2))
    await run.final()
    change = await stage.carol.sees(f"What changes on {board}", stage.submissions)
    assert "+VERSION, TIME_NS = 2, 7000" in change.text.replace("\\", "")
    agreed = await stage.carol.sees("Nothing is changed yet", stage.submissions)
    await stage.carol.click(agreed, "Check and publish")
    question = await stage.carol.sees("best submission (2) with the new version", within=WITHIN_S)
    answer = await stage.carol.click(question, "Judge again")
    assert "2 submissions are judged by task version 2" in (await answer.final()).text

    async def judged() -> bool:
        await asyncio.sleep(0.2)
        return len(await course.results(board)) == 4

    await until(judged, WITHIN_S)


async def delete(course: Course, board: str) -> None:
    """Have carol delete a board; she is sent its task versions and everybody's sources."""
    stage = course.site.stage
    await (await stage.carol.slash("profile notices", stage.carol.dm)).final()
    form = await stage.carol.slash("leaderboard delete", leaderboard_name=board)
    gone = await stage.carol.modal(form, {"The board's exact name": board})
    assert "The board is deleted." in (await gone.final()).text
    with zipfile.ZipFile(io.BytesIO(stage.carol.dms[-1].files[0].data)) as kept:
        for version, time in TIME_NS.items():
            program = kept.read(f"task/{version}/eval.py").decode()
            assert f"VERSION, TIME_NS = {version}, {time}" in program
        sources = [name for name in kept.namelist() if name.startswith("submissions/")]
        assert {kept.read(name).decode().removeprefix(FAKE) for name in sources} == {KERNEL}
        assert len(sources) == 5
    assert await course.results(board) == []
    assert (await course.browser.get(f"/boards/{board}")).status_code == 404
    assert board not in {each["name"] for each in await course.answer("/leaderboards")}
