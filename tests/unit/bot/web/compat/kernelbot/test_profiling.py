"""Tests of the route that popcorn-cli profiles by, and of what it makes of the answer."""

import asyncio
import base64
import io
import zipfile
from collections.abc import Sequence

import pytest

from bot.domain.accounts import Caller
from bot.domain.submission import Submission
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.worker_queue import StoreQueue
from bot.services.submissions import RerunRequest, rerun
from bot.web.compat.kernelbot import events as event_stream
from runners.contract.evaluation import CaseKind, KernelNameBase, ProfileOptions
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode, Workload
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import make_case, make_task
from tests.doubles.place import Place
from tests.doubles.popcorn_cli import Json, PopcornCli, events, form

ASKED = {
    "benchmark_index": "1",
    "ncu_kernel_name": "regex:add.*",
    "ncu_kernel_name_base": "demangled",
    "ncu_launch_count": "3",
}
PROFILED = make_case(CaseKind.PROFILE, spec="size: 2048")
FILES = (EvaluationFile.of("case-1.ncu-rep", b"report"), EvaluationFile.of("case-1.csv", b'"ID"'))


@pytest.fixture(autouse=True)
async def on_h100(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board of two benchmarks on NVIDIA's and AMD's GPUs, and on none."""
    monkeypatch.setattr(event_stream, "POLL_S", 0.02)
    cases = (Workload(args={"size": 1024, "seed": 1}), Workload(args={"size": 2048, "seed": 1}))
    await place.store.boards.add_version(place.board.id, make_task(benchmarks=cases), "two")
    await place.store.boards.configure(place.board.id, ("CPU", "H100", "MI300"), None)


async def profiled(
    place: Place, who: PopcornCli, fields: Json, **changes: object
) -> tuple[Submission, Json]:
    """A submission, and the result that was told of it."""
    sending = asyncio.create_task(who.posted("/profile/VectorAdd/h100", form(**fields)))
    async with asyncio.timeout(5):
        while not (found := await place.store.submissions.to(place.board.id)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await place.judged(found[0], **changes)
    answer = await sending
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    name, end = events(answer.text)[-1]
    assert (name, end["status"]) == ("result", "success")
    (result,) = end["results"]
    return found[0], result


def verdict(result: Json) -> tuple[list[str], dict[str, bytes]]:
    """What popcorn-cli complains of, and the files that it keeps: it wants a report of each run."""
    faults, kept = [], {}
    assert result["success"] is True
    assert result["runs"]
    for key, run in result["runs"].items():
        compilation = run["compilation"]
        if compilation is not None and not compilation["success"]:
            faults.append(compilation["stderr"])
            continue
        if not run["run"]["success"]:
            faults.append(run["run"]["stderr"] + run["run"]["stdout"])
            continue
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(run["profile"]["trace"]))) as packed:
            for name in packed.namelist():
                if name.endswith((".ncu-rep", "ncu-details.txt", "ncu-details.csv")):
                    kept[f"{key}/{name}"] = packed.read(name)
        if not any(name.startswith(key) and name.endswith(".ncu-rep") for name in kept):
            faults.append(f"no report in {key}")
    return faults, kept


async def test_options_reach_the_judge_and_the_reports_the_command_line(
    place: Place, ada: PopcornCli
) -> None:
    submission, result = await profiled(
        place, ada, ASKED, cases=(PROFILED,), log="torch: 3 us\n", files=FILES
    )
    assert (submission.mode, submission.gpus) == (Mode.PROFILE, ("H100",))
    options = ProfileOptions(
        benchmark=1,
        kernel_name="regex:add.*",
        kernel_name_base=KernelNameBase.DEMANGLED,
        launch_count=3,
    )
    assert submission.profile == options
    (job,) = await place.jobs(submission)
    request = await StoreQueue(place.store, DispatchConfig("test")).request(job.leased)
    assert request is not None
    assert request.profile == options
    assert [each.args["size"] for each in request.task.benchmarks] == [2048]
    assert verdict(result) == (
        [],
        {
            "profile.1/profile_data/ncu-details.txt": b"torch: 3 us",
            "profile.1/profile_data/profile.ncu-rep": b"report",
            "profile.1/profile_data/ncu-details.csv": b'"ID"',
        },
    )
    assert result["runs"]["profile.1"]["run"]["result"]["benchmark.0.spec"] == "size: 2048"
    metadata = result["profile_metadata"]
    assert len(metadata.pop("config_sha256")) == 64
    assert metadata == {
        "capture_options": {
            "benchmark_index": 1,
            "ncu_kernel_name": "regex:add.*",
            "ncu_kernel_name_base": "demangled",
            "ncu_launch_count": 3,
        },
        "benchmark_specs": {"1": {"size": 2048}},
    }


async def test_without_options_every_benchmark_is_profiled(place: Place, ada: PopcornCli) -> None:
    files = (*FILES, EvaluationFile.of("case-2.ncu-rep", b"another"))
    _, result = await profiled(place, ada, {}, cases=(PROFILED, PROFILED), files=files)
    faults, kept = verdict(result)
    assert faults == []
    assert kept["profile.1/profile_data/profile.ncu-rep"] == b"another"
    assert result["profile_metadata"]["capture_options"] == {}
    assert set(result["profile_metadata"]["benchmark_specs"]) == {"0", "1"}


async def test_where_ncu_may_not_look_the_command_line_says_why(
    place: Place, ada: PopcornCli
) -> None:
    log = "torch: 3 us\nno kernel was profiled by ncu: the driver lets only administrators\n"
    _, result = await profiled(place, ada, {}, cases=(PROFILED,), log=log)
    (fault,), kept = verdict(result)
    assert kept == {}
    assert "the driver lets only administrators" in fault
    assert "torch: 3 us" in fault


@pytest.mark.parametrize(
    ("found", "stage", "cases"),
    [(Verdict.BUILD_FAILED, Stage.BUILD, ()), (Verdict.WRONG_ANSWER, Stage.TIMING, (PROFILED,))],
)
async def test_a_kernel_that_is_wrong_is_told_and_not_a_missing_report(
    place: Place, ada: PopcornCli, found: Verdict, stage: Stage, cases: Sequence[object]
) -> None:
    _, result = await profiled(
        place, ada, {}, verdict=found, stage=stage, message="line 3 is wrong", cases=tuple(cases)
    )
    (fault,), _ = verdict(result)
    assert "line 3 is wrong" in fault


@pytest.mark.parametrize(
    ("path", "fields", "status", "words"),
    [
        ("vectoradd/CPU", {}, 400, "podium submit --mode profile"),
        ("vectoradd/MI300", {}, 400, "NVIDIA"),
        ("vectoradd/A100", {}, 404, "the board runs on"),
        ("nothing/H100", {}, 404, "nothing"),
        ("vectoradd/H100", {"benchmark_index": "2"}, 400, "from 0 to 1"),
        ("vectoradd/H100", {"benchmark_index": "-1"}, 422, "benchmark_index"),
        ("vectoradd/H100", {"benchmark_index": "x"}, 422, "benchmark_index"),
        ("vectoradd/H100", {"ncu_launch_count": "0"}, 422, "ncu_launch_count"),
        ("vectoradd/H100", {"ncu_kernel_name": ""}, 422, "ncu_kernel_name"),
        ("vectoradd/H100", {"ncu_kernel_name": "x" * 1025}, 422, "ncu_kernel_name"),
        ("vectoradd/H100", {"ncu_kernel_name": "a\0b"}, 422, "kernel_name"),
        ("vectoradd/H100", {"ncu_kernel_name_base": "any"}, 422, "function"),
    ],
)
async def test_what_cannot_be_profiled_is_refused_before_it_is_stored(
    place: Place, ada: PopcornCli, path: str, fields: Json, status: int, words: str
) -> None:
    answer = await ada.posted(f"/profile/{path}", form(**fields))
    assert (answer.status_code, set(answer.json())) == (status, {"detail"})
    assert words in answer.json()["detail"]
    assert await place.store.submissions.to(place.board.id) == ()


async def test_a_profile_that_is_run_again_keeps_its_options_and_a_test_has_none(
    place: Place, ada: PopcornCli
) -> None:
    first, _ = await profiled(place, ada, ASKED, cases=(PROFILED,), files=FILES)
    for mode, kept in ((None, first.profile), (Mode.BENCHMARK, None)):
        asked = RerunRequest(Caller(place.ada), first.id, mode)
        assert (await rerun(place.store, place.clock, asked)).profile == kept


async def test_nobody_profiles_without_a_token(anybody: PopcornCli) -> None:
    answer = await anybody.posted("/profile/vectoradd/H100")
    assert answer.status_code == 400
    assert "~/.popcorn.yaml" in answer.json()["detail"]
