"""A task is published only when what it ships behaves as it says."""

import asyncio
from collections.abc import Mapping

import pytest
from typing_extensions import override

from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.lint import CheckStep, Level, TaskReport
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import parse_task
from bot.services.publishing.check import check_on, check_task
from runners.backends.fake import FakeRunner, create
from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.contract.runner import CallId, Capabilities, ProgressSink, RunnerError
from runners.contract.task import Grader
from runners.contract.verdict import Verdict

WRONG = "#!PODIUM expect wrong_answer\n# fake: verdict=wrong_answer\n"


class DiscerningRunner:
    """The fake runner, which refuses overwritten answers as a sharp task's judge would."""

    def __init__(self, fake: FakeRunner, *, passes: str = "nothing") -> None:
        self._fake = fake
        self._passes = passes
        self.modes: list[tuple[str, str]] = []
        self.name = fake.name
        self.capabilities = fake.capabilities
        self.wait = fake.wait
        self.cancel = fake.cancel
        self.aclose = fake.aclose

    async def start(self, request: EvaluationRequest) -> CallId:
        self.modes.append((request.mode.value, request.source))
        if "_overwrite" in request.source and f"number = {self._passes}\n" not in request.source:
            refused = "# fake: verdict=wrong_answer\n" + request.source
            request = request.model_copy(update={"source": refused})
        return await self._fake.start(request)


async def report_on(
    changes: Mapping[str, str] | None = None,
    *,
    runner: DiscerningRunner | None = None,
    gpu: str = "CPU",
) -> TaskReport:
    files = {**scaffold("double"), "solutions/wrong/almost_two.py": WRONG, **(changes or {})}
    bundle = TaskBundle({f"double/{path}": text.encode() for path, text in files.items()}, "double")
    runner = runner or DiscerningRunner(create())
    try:
        return await check_task(runner, bundle, parse_task(bundle), gpu)
    finally:
        await runner.aclose()


def errors(report: TaskReport) -> list[tuple[str, str]]:
    return [(each.file, each.message) for each in report.findings if each.level is Level.ERROR]


async def test_a_sound_task_is_ok_and_everything_of_it_was_run() -> None:
    runner = DiscerningRunner(create())
    report = await report_on(runner=runner)
    assert report.ok
    assert report.was_run
    assert sorted(mode for mode, _ in runner.modes) == ["ranked"] * 3 + ["test"] * 12


TWO_BENCHMARKS = scaffold("double")["task.yml"].replace(
    "  - {size: 1000003, seed: 4}\n", "  - {size: 20011, seed: 5}\n  - {size: 1000003, seed: 4}\n"
)


async def test_benchmarks_that_are_not_ranked_by_are_run_too() -> None:
    runner = DiscerningRunner(create())
    report = await report_on({"task.yml": TWO_BENCHMARKS}, runner=runner)
    assert sorted(mode for mode, _ in runner.modes) == (
        ["benchmark"] + ["ranked"] * 3 + ["test"] * 12
    )
    assert any("passes every benchmark" in each.message for each in report.findings)
    every = DiscerningRunner(create())
    geom = TWO_BENCHMARKS.replace("ranking_by: last", "ranking_by: geom")
    await report_on({"task.yml": geom}, runner=every)
    assert "benchmark" not in {mode for mode, _ in every.modes}


async def test_a_right_solution_that_fails_an_unranked_benchmark_is_an_error() -> None:
    class Failing(DiscerningRunner):
        @override
        async def start(self, request: EvaluationRequest) -> CallId:
            if request.mode.value == "benchmark":
                refused = "# fake: verdict=crashed\n" + request.source
                request = request.model_copy(update={"source": refused})
            return await super().start(request)

    report = await report_on({"task.yml": TWO_BENCHMARKS}, runner=Failing(create()))
    assert errors(report) == [
        (
            "solutions/correct/torch_add.py",
            "in benchmark mode got crashed, expected passed",
        )
    ]


async def test_each_gpu_type_is_checked_by_the_runner_that_can() -> None:
    cpu = DiscerningRunner(create())
    gpu = DiscerningRunner(create(capabilities=Capabilities(harness_version="1", gpus={"H100": 1})))
    files = {**scaffold("double"), "solutions/wrong/almost_two.py": WRONG}
    bundle = TaskBundle({f"double/{path}": text.encode() for path, text in files.items()}, "double")
    reports = await check_on([cpu, gpu], bundle, parse_task(bundle), ["CPU", "H100", "L4"])
    assert [(each.gpu, each.was_run) for each in reports] == [
        ("CPU", True), ("H100", True), ("L4", False),
    ]  # fmt: skip
    assert len(cpu.modes) == len(gpu.modes) == 15


class _Meeting(DiscerningRunner):
    """Starts its first run only when another runner starts its own."""

    def __init__(self, fake: FakeRunner, met: asyncio.Barrier) -> None:
        super().__init__(fake)
        self._met = met

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        if not self.modes:
            self.modes.append((request.mode.value, request.source))
            await asyncio.wait_for(self._met.wait(), 5)
        return await super().start(request)


async def test_the_gpu_types_are_checked_at_the_same_time() -> None:
    met = asyncio.Barrier(2)
    offers = [Capabilities(harness_version="1", gpus={gpu: 9}) for gpu in ("CPU", "H100")]
    runners = [_Meeting(create(capabilities=offer), met) for offer in offers]
    files = {**scaffold("double"), "solutions/wrong/almost_two.py": WRONG}
    bundle = TaskBundle({f"double/{path}": text.encode() for path, text in files.items()}, "double")
    reports = await check_on(runners, bundle, parse_task(bundle), ["CPU", "H100"])
    assert [(each.gpu, each.was_run) for each in reports] == [("CPU", True), ("H100", True)]
    for runner in runners:
        await runner.aclose()


async def test_a_correct_solution_that_fails_is_an_error_with_its_reason() -> None:
    source = "# fake: verdict=crashed message=out_of_luck\n"
    report = await report_on({"solutions/correct/bad.py": source})
    assert not report.ok
    assert errors(report) == [
        ("solutions/correct/bad.py", "got crashed (out of luck), expected passed")
    ]


async def test_a_wrong_solution_that_passes_is_an_error() -> None:
    report = await report_on({"solutions/wrong/lucky.py": "x = 1\n"})
    assert errors(report) == [("solutions/wrong/lucky.py", "got passed, expected wrong answer")]


async def test_a_wrong_solution_with_another_verdict_is_an_error() -> None:
    source = "#!PODIUM expect timed_out\n# fake: verdict=crashed\n"
    report = await report_on({"solutions/wrong/slow.py": source})
    assert errors(report) == [("solutions/wrong/slow.py", "got crashed, expected timed out")]


@pytest.mark.parametrize("need", ["cuda", "triton", "mojo"])
async def test_a_solution_that_needs_what_is_not_there_is_skipped_with_the_reason(
    need: str,
) -> None:
    source = f"#!PODIUM needs {need}\n# fake: verdict=crashed\n"
    report = await report_on({"solutions/correct/fast.py": source})
    assert report.ok
    (finding,) = [each for each in report.findings if each.file == "solutions/correct/fast.py"]
    assert finding.level is Level.INFO
    assert f"skipped: it needs {need}" in finding.message


async def test_a_template_that_does_not_run_is_an_error() -> None:
    report = await report_on({"template.py": "# fake: verdict=build_failed\n"})
    assert errors(report) == [("template.py", "the template got build failed, expected passed")]


async def test_a_template_that_is_incomplete_must_say_so() -> None:
    stub = "# fake: verdict=wrong_answer\n"
    ((file, message),) = errors(await report_on({"template.py": stub}))
    assert file == "template.py"
    assert message == (
        "the template got wrong answer, expected passed; if it is a stub, add to its header: "
        "#!PODIUM expect wrong_answer"
    )
    declared = await report_on({"template.py": f"#!PODIUM expect wrong_answer\n{stub}"})
    assert declared.ok
    (finding,) = (each for each in declared.findings if each.file == "template.py")
    assert finding.message == "the template is accepted: wrong answer, as expected of this stub"


async def test_a_function_without_a_body_is_a_stub_and_one_that_passes_is_none() -> None:
    unwritten = "# fake: verdict=crashed\ndef custom_kernel(data):\n    pass\n"
    assert (await report_on({"template.py": unwritten})).ok
    passing = await report_on({"template.py": "#!PODIUM expect wrong_answer\n"})
    assert errors(passing) == [("template.py", "the template got passed, expected wrong answer")]


async def test_a_template_is_run_as_the_board_hands_it_out() -> None:
    own = "#!POPCORN leaderboard another\n#!POPCORN gpus A100\nx = 'the template'\n"
    runner = DiscerningRunner(create())
    assert (await report_on({"template.py": own}, runner=runner)).ok
    assert ("ranked", "#!PODIUM leaderboard double\nx = 'the template'\n") in runner.modes


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("#!PODIUM blok 64\n", "line 2 of the header: unknown key 'blok'; the keys are: "),
        (f"# {'x' * 1_000_000}\n", "the file has 1,000,031 bytes; at most 1,000,000 are allowed"),
    ],
)
async def test_a_template_that_no_board_would_take_in_is_an_error(template: str, why: str) -> None:
    ((file, message),) = errors(await report_on({"template.py": template}))
    assert file == "template.py"
    assert message.startswith(f"the template would be rejected: {why}")


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        ("0", "zeros"),
        ("1", "ones"),
        ("7", "a constant"),
        ('float("nan")', "NaN"),
        ("None", "no elements"),
    ],
)
async def test_a_degenerate_answer_that_passes_is_an_error(number: str, answer: str) -> None:
    report = await report_on(runner=DiscerningRunner(create(), passes=number))
    ((file, message),) = errors(report)
    assert file == "task.yml"
    assert message.startswith(f"an answer of {answer} passes every test")


async def test_an_input_that_is_a_right_answer_is_a_warning() -> None:
    class Viewing(DiscerningRunner):
        """A judge of a task whose answer is a view of its input."""

        @override
        async def start(self, request: EvaluationRequest) -> CallId:
            constant = "number = " in request.source
            return await (super().start(request) if constant else self._fake.start(request))

    report = await report_on(runner=Viewing(create()))
    (finding,) = (each for each in report.findings if "the input itself" in each.message)
    assert (finding.level, finding.file) == (Level.WARNING, "task.yml")
    assert finding.message == (
        "an answer of the input itself passes every test; a kernel that returns its input does no "
        "work; unless that is right, ask for an answer whose numbers have another type or order"
    )
    rejecting = await report_on()
    assert "an answer of the input itself is rejected" in {
        each.message for each in rejecting.findings if each.level is Level.INFO
    }


async def test_a_constant_answer_is_tried_at_each_ranked_benchmark() -> None:
    class Lenient(DiscerningRunner):
        """A judge whose tolerance lets zeros pass at one size only."""

        @override
        async def start(self, request: EvaluationRequest) -> CallId:
            sizes = [each.args["size"] for each in request.task.tests]
            self._passes = "0" if sizes == [20011] else "nothing"
            return await super().start(request)

    geom = TWO_BENCHMARKS.replace("ranking_by: last", "ranking_by: geom")
    report = await report_on({"task.yml": geom}, runner=Lenient(create()))
    ((file, message),) = errors(report)
    assert file == "task.yml"
    assert message.startswith("an answer of zeros passes the benchmark `size: 20011; seed: 5`; ")
    assert (await report_on({"task.yml": TWO_BENCHMARKS}, runner=Lenient(create()))).ok


@pytest.mark.parametrize(
    ("change", "gpu", "reason"),
    [
        ("", "H100", "missing GPU type H100;"),
        ("device: cuda\n", "CPU", "missing the device cuda;"),
        ("device: cpu\n", "H200", "missing the device cpu;"),
        ("libraries: [mojo]\n", "CPU", "missing library mojo;"),
        ("isolation: [seccomp]\n", "CPU", "missing isolation layer seccomp;"),
        ("multi_gpu: true\n", "CPU", "missing 2 GPUs at the same time;"),
    ],
)
async def test_without_a_fitting_runner_the_dry_run_is_marked_as_not_done(
    change: str, gpu: str, reason: str
) -> None:
    offered = Capabilities(harness_version="1", gpus={"CPU": 1, "H200": 1}, graders=tuple(Grader))
    runner = DiscerningRunner(create(capabilities=offered))
    text = scaffold("double")["task.yml"].replace("seed:", "world_size: 2, seed:")
    text = text.replace("lang: py", "  - {name: eval.py, source: eval.py}\nlang: py")
    files = {"task.yml": text + change, "eval.py": "print()\n"}
    report = await report_on(files, runner=runner, gpu=gpu)
    assert not report.was_run
    assert runner.modes == []
    assert reason in report.obstacle


class Lacking(DiscerningRunner):
    """Nothing that it runs finds a module."""

    def __init__(self, module: str) -> None:
        super().__init__(create())
        self._message = f"crashed: ModuleNotFoundError: No module named '{module}.cute'"
        self.wait = self._wait

    async def _wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        found = await self._fake.wait(call, progress)
        update = {"verdict": Verdict.CRASHED, "message": self._message}
        return found.model_copy(update=update)


IMPORTING = scaffold("double")["reference.py"] + "\n\nfrom cutlass import cute\n"


async def test_a_task_that_imports_what_the_runner_lacks_is_not_run() -> None:
    report = await report_on({"reference.py": IMPORTING}, runner=Lacking("cutlass"))
    assert (report.was_run, report.errors) == (False, ())
    assert report.obstacle.startswith("missing library cutlass; check it on a machine")


async def test_a_module_of_the_task_that_is_not_listed_is_named_as_such() -> None:
    files = {"reference.py": IMPORTING, "cutlass.py": "cute = 1\n"}
    report = await report_on(files, runner=Lacking("cutlass"))
    assert "imports cutlass.py, which task.yml does not list" in report.obstacle


async def test_what_only_a_solution_imports_is_its_own_fault() -> None:
    report = await report_on(
        {"solutions/correct/torch_add.py": "import cutlass\n"}, runner=Lacking("cutlass")
    )
    assert report.was_run
    assert any("No module named 'cutlass" in message for _, message in errors(report))


async def test_a_report_says_that_nothing_was_run() -> None:
    text = scaffold("double")["task.yml"]
    files = scaffold("double") | {
        "task.yml": text.replace("templates:\n  Python: template.py\n", "")
    }
    kept = {f"double/{path}": each for path, each in files.items() if "solutions" not in path}
    bundle = TaskBundle({path: each.encode() for path, each in kept.items()}, "double")
    report = await check_task(create(), bundle, parse_task(bundle), "CPU")
    assert (report.was_run, report.nothing_run) == (True, True)
    assert not (await report_on()).nothing_run


async def test_a_failing_runner_is_no_finding_on_the_task() -> None:
    with pytest.raises(RunnerError, match="boom"):
        await report_on({"solutions/correct/a.py": "# fake: error=boom\n"})


async def test_static_findings_are_part_of_the_report() -> None:
    text = scaffold("double")["task.yml"].replace("# double", "double")
    report = await report_on({"task.yml": text})
    assert report.ok
    assert any("no heading" in each.message for each in report.findings)


async def test_a_solution_runs_where_the_runner_offers_what_it_needs() -> None:
    offered = Capabilities(harness_version="1", gpus={"CPU": 1, "H100": 1}, libraries=("mojo",))
    source = "#!PODIUM needs mojo\n# fake: verdict=crashed\n"
    runner = DiscerningRunner(create(capabilities=offered))
    report = await report_on({"solutions/correct/fast.py": source}, runner=runner)
    assert [file for file, _ in errors(report)] == ["solutions/correct/fast.py"]


async def test_a_solution_that_needs_triton_runs_on_a_gpu() -> None:
    offered = Capabilities(harness_version="1", gpus={"H100": 1})
    source = "#!PODIUM needs triton\n# fake: verdict=crashed\n"
    runner = DiscerningRunner(create(capabilities=offered))
    report = await report_on({"solutions/correct/fast.py": source}, runner=runner, gpu="H100")
    assert [file for file, _ in errors(report)] == ["solutions/correct/fast.py"]


async def test_a_runner_without_the_tasks_grader_does_no_dry_run() -> None:
    offered = Capabilities(harness_version="1", gpus={"CPU": 1}, graders=())
    report = await report_on(runner=DiscerningRunner(create(capabilities=offered)))
    assert not report.was_run
    assert "missing grader native" in report.obstacle


async def test_without_a_right_solution_no_degenerate_answer_is_tried() -> None:
    runner = DiscerningRunner(create())
    source = "#!PODIUM needs cuda\n"
    await report_on({"solutions/correct/torch_add.py": source}, runner=runner)
    assert not any("_overwrite" in sent for _, sent in runner.modes)


async def test_a_degenerate_answer_that_ends_otherwise_is_an_error() -> None:
    source = "# fake: verdict=crashed\n"
    report = await report_on(
        {"solutions/correct/torch_add.py": source}, runner=DiscerningRunner(create(), passes="0")
    )
    assert ("task.yml", "an answer of zeros gave crashed") in errors(report)


async def test_an_answer_without_elements_may_make_an_evaluation_raise() -> None:
    source = "# fake: verdict=crashed\n"
    runner = DiscerningRunner(create(), passes="None")
    report = await report_on({"solutions/correct/torch_add.py": source}, runner=runner)
    assert not any("no elements" in message for _, message in errors(report))


async def test_whoever_watches_sees_each_run_wait_move_and_end() -> None:
    files = {**scaffold("double"), "solutions/wrong/almost_two.py": WRONG}
    bundle = TaskBundle({f"double/{path}": text.encode() for path, text in files.items()}, "double")
    seen: list[CheckStep] = []
    runner = DiscerningRunner(create())
    try:
        task = parse_task(bundle)
        report = await check_task(runner, bundle, task, "CPU", watch=seen.append)
    finally:
        await runner.aclose()
    names = list(dict.fromkeys(each.name for each in seen))
    assert [(each.name, each.stage) for each in seen[: len(names)]] == [(n, None) for n in names]
    wrong = [each for each in seen if each.name == "solutions/wrong/almost_two.py"]
    assert ("test", 0, 3) in [(each.stage, each.done, each.total) for each in wrong]
    assert [each.finding for each in seen if each.finding] != []
    ended = {each.name: each.finding for each in seen if each.finding}
    assert set(ended) == set(names)
    assert set(ended.values()) == set(report.findings)
