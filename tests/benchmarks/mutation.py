"""Prints how many small changes of the code no test notices, for a sample of mutants.

python -m tests.benchmarks.mutation [--sample 200] [--seed 1] [--only PATH] [--again]

The mutants are cosmic-ray's, and one of our own that drops a call whose result is not used. Not
changed are annotations, arguments of `@dataclass`, `@override`, what is logged, and what only a GPU
executes (`omit` of coverage in pyproject.toml). The sample is spread over the packages in
proportion to their lines; in each place at most one mutant is made. Which ones are sampled depends
on the seed and on the code alone, so that other code keeps its mutants when one module changes.

Tests run in a copy of the tree: first those of the mirror, then, if all pass, all that name the
module and those of WIDER. Started again, it goes on where it stopped; `--again` repeats the mutants
that were alive. Exit 1 when more than a tenth is alive that mutation_equivalents.json does not
explain.
"""

import argparse
import ast
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from tests.architecture.test_mirror import COVERED_ELSEWHERE
from tests.architecture.tree import ROOT, modules, text, tracked_files

INSTALL = "mutation.py needs cosmic-ray: pip install -e '.[local,dev,mutation]'"
PACKAGES = ("bot/domain", "bot/services", "bot/store", "runners/harness")
WIDER = {
    "bot/domain": (),
    "bot/services": ("tests/unit/bot/services/",),
    "bot/store": ("tests/unit/bot/store/", "tests/conformance/", "tests/integration/test_queue.py"),
    "runners/harness": ("tests/integration/harness/",),
}
"""Tests of the wider round besides those that name the module or are in its folder's mirror."""
APART = (
    *("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"),
    *("sh", "-c", '"$@"; exit $?', "sh"),
)
"""Tests run in a PID namespace, not as its first process: a mutant may kill all that it sees."""
NOT_APART = (
    "tests/unit/runners/harness/sandbox/test_cgroup.py"
    "::test_groups_of_dead_makers_go_and_those_of_living_ones_stay"
)
"""What fails there without a mutant: a group is named after a process of another namespace."""
LATER = "not yet by wider tests"
SLOW = ("tests/conformance/test_runners.py", "tests/unit/runners/harness/gpu")
"""Files and folders that the wider round leaves out."""
SEARCHED = ("tests/unit/", "tests/conformance/", "tests/integration/test_", "tests/migrations/")
FIRST_S = 240.0
"""For the tests of the mirror: a mutant that still runs then is killed."""
WIDER_S = 900.0
"""For the wider round. A mutant that still runs then is alive, since these tests are many."""
A_TEST_S = 60
FOLDER = ROOT / "build" / "mutation"
EQUIVALENTS = Path(__file__).with_name("mutation_equivalents.json")
DROPPED = "call dropped"
Place = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module; line numbers are for people, the rest identifies it."""

    path: str
    function: str
    removed: str
    added: str
    ordinal: int
    """Which one it is of the same changes in the same function."""
    line: int
    operator: str
    code: str
    """The whole changed module."""

    @property
    def package(self) -> str:
        return next(each for each in PACKAGES if self.path.startswith(f"{each}/"))

    @property
    def key(self) -> str:
        return "\n".join([self.path, *self.change, str(self.ordinal)])

    @property
    def change(self) -> tuple[str, str, str]:
        """The parts of its identity that stay the same when the module is moved."""
        return self.function, self.removed, self.added


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one mutant."""

    key: str
    alive: bool
    by: str
    """The test that failed, or why there is none."""
    seconds: float


class Module:
    """Where one module can be changed, and how."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._source = text(path)
        self._tree = ast.parse(self._source)
        self._left_alone = [
            _place(node) for each in ast.walk(self._tree) for node in _left_alone(each)
        ]

    def places(self) -> dict[Place, list[tuple[str, int]]]:
        """The operators that fit each place, each with its number among the operator's places."""
        found: dict[Place, list[tuple[str, int]]] = {}
        for operator, number, place in [*_cosmic_places(self._source), *self._dropped_calls()]:
            if not any(start <= place[0] and place[1] <= end for start, end in self._left_alone):
                found.setdefault(place, []).append((operator, number))
        return found

    def _dropped_calls(self) -> list[tuple[str, int, Place]]:
        calls = [_place(node) for node in ast.walk(self._tree) if _is_call_alone(node)]
        return [(DROPPED, number, place) for number, place in enumerate(sorted(calls))]

    def mutant(self, place: Place, operator: str, number: int) -> Mutant | None:
        """The change as a mutant; None when it is no Python or changes nothing."""
        code = (
            self._dropped(place)
            if operator == DROPPED
            else _mutated(self._source, operator, number)
        )
        if code is None or not _compiles(code):
            return None
        old, new = self._source.splitlines(), code.splitlines()
        lines = [line for line in difflib.ndiff(old, new) if line[:2] in {"- ", "+ "}]
        removed = " ".join(line[2:].strip() for line in lines if line[0] == "-")
        added = " ".join(line[2:].strip() for line in lines if line[0] == "+")
        function, first, last = self._function(place[0][0])
        same = [n for n in range(first, place[0][0]) if old[n - 1].strip() == removed]
        ordinal = len(same) if last >= first else 0
        line = place[0][0]
        return Mutant(self.path, function, removed, added, ordinal, line, operator, code)

    def _dropped(self, place: Place) -> str:
        lines = self._source.splitlines(keepends=True)
        (first, column), (last, end) = place
        lines[first - 1 : last] = [lines[first - 1][:column] + "pass" + lines[last - 1][end:]]
        return "".join(lines)

    def _function(self, line: int) -> tuple[str, int, int]:
        """The names around a line, joined by dots, and where the innermost begins and ends."""
        scopes = sorted(
            (node.lineno, node.end_lineno or node.lineno, node.name)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and min([node.lineno, *(each.lineno for each in node.decorator_list)]) <= line
            and line <= (node.end_lineno or node.lineno)
        )
        first, last, _ = scopes[-1] if scopes else (1, line, "")
        return ".".join(name for *_, name in scopes), first, last


def _place(node: ast.AST) -> Place:
    values = [
        getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    ]
    return (values[0], values[1]), (values[2], values[3])


def _is_call_alone(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr):
        return False
    value = node.value.value if isinstance(node.value, ast.Await) else node.value
    return isinstance(value, ast.Call)


def _left_alone(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.arg(annotation=ast.expr() as note) | ast.AnnAssign(annotation=note):
            yield note
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            returns = getattr(node, "returns", None)
            yield from [returns] if returns else []
            for each in node.decorator_list:
                if ast.unparse(each).startswith(("dataclass(", "override")):
                    yield from each.args if isinstance(each, ast.Call) else []
                    yield from each.keywords if isinstance(each, ast.Call) else [each]
        case ast.Expr() if _is_call_alone(node) and ast.unparse(node).startswith("_log."):
            yield node
        case _:
            pass


def _cosmic_places(source: str) -> Iterator[tuple[str, int, Place]]:
    from cosmic_ray.ast import ast_nodes, get_ast  # noqa: PLC0415 - only with the extra

    leaves = {"name", "newline", "string", "endmarker", "fstring_string", "fstring_start"}
    operators = _operators()
    numbers: Counter[str] = Counter()
    for node in ast_nodes(get_ast(source)):
        if node.type in leaves:
            continue
        for name, operator in operators.items():
            for start, end in operator.mutation_positions(node):
                yield name, numbers[name], (start, end)
                numbers[name] += 1


def _operators() -> dict[str, Any]:
    from cosmic_ray.plugins import get_operator, operator_names  # noqa: PLC0415 - only with the extra

    plain = [name for name in operator_names() if not name.startswith("core/Variable")]
    return {name: get_operator(name)() for name in plain}


def _mutated(source: str, operator: str, number: int) -> str | None:
    from cosmic_ray.mutating import mutate_code  # noqa: PLC0415 - only with the extra

    code = mutate_code(source, _operators()[operator], number)
    return None if code is None or code == source else str(code)


def _compiles(code: str) -> bool:
    """Whether it compiles without a warning, such as that of `is` next to a literal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            compile(code, "mutant", "exec", dont_inherit=True)
        except (SyntaxError, SyntaxWarning):
            return False
    return True


def _mutated_modules() -> list[str]:
    omitted = tomllib.loads(text("pyproject.toml"))["tool"]["coverage"]["run"]["omit"]
    below = tuple(f"{each}/" for each in PACKAGES)
    held = [each for each in modules("bot", "runners") if each.startswith(below)]
    return [each for each in held if not any(fnmatch(each, pattern) for pattern in omitted)]


def _spread(sample: int) -> dict[str, int]:
    """How many mutants each package gets, by its lines that are not empty."""
    lines: Counter[str] = Counter()
    for module in _mutated_modules():
        package = next(each for each in PACKAGES if module.startswith(f"{each}/"))
        lines[package] += sum(bool(line.strip()) for line in text(module).splitlines())
    shares = {each: sample * lines[each] // lines.total() for each in PACKAGES}
    for each in sorted(PACKAGES, key=lambda each: -(sample * lines[each] % lines.total())):
        shares[each] += sum(shares.values()) < sample
    return shares


def _rank(seed: int, *words: object) -> str:
    return hashlib.sha256("\n".join(map(str, (seed, *words))).encode()).hexdigest()


def draw(sample: int, seed: int) -> list[Mutant]:
    """The mutants of the places with the lowest ranks; only the seed and the code decide these."""
    ranked: dict[str, list[tuple[str, Module, Place, list[tuple[str, int]]]]] = {}
    for path in _mutated_modules():
        module, lines = Module(path), text(path).splitlines()
        package = next(each for each in PACKAGES if path.startswith(f"{each}/"))
        seen: Counter[tuple[str, ...]] = Counter()
        for place, operators in sorted(module.places().items()):
            words = (module._function(place[0][0])[0], lines[place[0][0] - 1].strip())
            seen[words] += 1
            rank = _rank(seed, *words, seen[words])
            ranked.setdefault(package, []).append((rank, module, place, operators))
    return [
        mutant
        for package, count in _spread(sample).items()
        for mutant in _first_mutants(ranked.get(package, []), count)
    ]


def _first_mutants(
    ranked: Sequence[tuple[str, Module, Place, list[tuple[str, int]]]], count: int
) -> list[Mutant]:
    mutants: list[Mutant] = []
    for rank, module, place, operators in sorted(ranked, key=lambda each: each[0]):
        if len(mutants) == count:
            break
        for operator, number in sorted(
            operators, key=lambda each: _rank(0, rank, each[0], each[1])
        ):
            mutant = module.mutant(place, operator, number)
            if mutant is not None:
                mutants.append(mutant)
                break
    return mutants


def _drawn(sample: int, seed: int) -> list[Mutant]:
    """Return the saved result of `draw` for the same code, or call it, which takes a minute."""
    code = [text(module) for module in _mutated_modules()]
    name = _rank(seed, sample, *code)
    file = FOLDER / f"sample-{name[:16]}.json"
    if not file.is_file():
        mutants = [asdict(each) for each in draw(sample, seed)]
        file.write_text(json.dumps(mutants), "utf-8")
    return [Mutant(**each) for each in json.loads(file.read_text("utf-8"))]


def tests_of(module: str) -> list[str]:
    """The tests of the mirror, else those of COVERED_ELSEWHERE that name the module."""
    path = PurePosixPath(module)
    stem = path.stem.strip("_")
    folder = f"tests/unit/{path.parent}"
    patterns = [f"{folder}/test_{stem}.py", f"{folder}/test_{stem}_*.py"]
    if stem == "init":
        patterns.append(f"tests/unit/{path.parent.parent}/test_{path.parent.name}*.py")
    if module.startswith("bot/store/"):
        patterns.append(f"tests/conformance/test_{stem}*.py")
    found = [each for each in tracked_files() if any(fnmatch(each, one) for one in patterns)]
    elsewhere = [
        tests
        for place, tests in COVERED_ELSEWHERE.items()
        if module == place or module.startswith((f"{place}/", f"{place}.py"))
    ]
    return list(dict.fromkeys([*found, *elsewhere])) or _tests_that_name(module)


def _tests_that_name(module: str) -> list[str]:
    path = PurePosixPath(module).with_suffix("")
    parts = path.parts[:-1] if path.name == "__init__" else path.parts
    names = {".".join(parts), ".".join(parts[: max(3, len(parts) - 1)])}
    return [
        each
        for each in tracked_files()
        if each.startswith(SEARCHED)
        and PurePosixPath(each).match("test_*.py")
        and any(f"{name} import" in text(each) for name in names)
    ]


def wider_tests_of(mutant: Mutant) -> list[str]:
    """Every other test that could notice, the likeliest first."""
    first = set(tests_of(mutant.path))
    folders = (f"tests/unit/{PurePosixPath(mutant.path).parent}/", *WIDER[mutant.package])
    near = [
        each
        for folder in folders
        for each in tracked_files()
        if each.startswith(folder) and PurePosixPath(each).match("test_*.py")
    ]
    found = dict.fromkeys([*_tests_that_name(mutant.path), *near])
    return [each for each in found if each not in first and not each.startswith(SLOW)]


class Tree:
    """A copy of the repository, in which one module at a time is changed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.chmod(0o755)  # a candidate is another user
        for name in tracked_files():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
        # Bytecode that is checked by content: two changes within a second have the same time.
        kind = "--invalidation-mode=checked-hash"
        command = [sys.executable, "-m", "compileall", "-q", kind, "bot", "runners", "tests"]
        subprocess.run(command, cwd=root, check=True)
        found = self._python("import bot, runners; print(bot.__file__, runners.__file__)")
        if found.count(str(root)) != 2:
            raise SystemExit(f"the tests would run {found.strip()}, not the copy in {root}")

    def _python(self, code: str) -> str:
        command = [sys.executable, "-c", code]
        answer = subprocess.run(
            command, cwd=self.root, env=self._env(), capture_output=True, text=True, check=True
        )
        return answer.stdout

    def _env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.root)}

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Replace the module by the mutant inside the block."""
        file = self.root / mutant.path
        before = file.read_bytes()
        file.write_text(mutant.code, "utf-8")
        try:
            yield
        finally:
            file.write_bytes(before)

    def failed(self, tests: Sequence[str], limit_s: float) -> list[str] | None:
        """The tests that fail, at most one unless all were to run; None when time is up."""
        options = ["-x", "-q", "-rfE", "-p", "no:cacheprovider", "-p", "no:randomly"]
        options += ["--tb=no", "--timeout", str(A_TEST_S), "--deselect", NOT_APART]
        command = [*APART, sys.executable, "-m", "pytest", *options, *tests]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=self._env(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                process.kill()  # and with it all processes of its namespace
                process.wait()
                return None
            output.seek(0)
            return _verdict(status, output.read())


def _verdict(status: int, output: str) -> list[str]:
    """The tests that failed. A mutant may replace pytest's process by a program that ends well."""
    ended = re.search(r"^(=+ )?(no tests ran|\d+ \w+.*) in [\d.:()s ]+", output, re.MULTILINE)
    if status in {0, 5} and ended:
        return []
    return _named(output) or [f"no result of pytest, exit status {status}"]


def _named(output: str) -> list[str]:
    """The tests, without parameters, that the end of pytest's output says have failed."""
    lines = [line.split(maxsplit=1) for line in output.splitlines()]
    failed = [line[1] for line in lines if len(line) == 2 and line[0] in {"FAILED", "ERROR"}]
    return [each.split("[")[0].split(" - ")[0] for each in failed if each.startswith("tests/")]


def judge(tree: Tree, mutant: Mutant) -> Outcome:
    """Test one mutant with the tests of its module."""
    begun = time.monotonic()
    tests = tests_of(mutant.path)
    with tree.changed(mutant):
        failed = tree.failed(tests, FIRST_S) if tests else []
    by = "out of time" if failed is None else failed[0] if failed else LATER
    return Outcome(mutant.key, failed == [], by, round(time.monotonic() - begun, 1))


def judge_wider(tree: Tree, mutant: Mutant, before: Outcome) -> Outcome:
    """Test a mutant that is alive with many more tests."""
    begun = time.monotonic()
    tests = wider_tests_of(mutant)
    with tree.changed(mutant):
        failed = tree.failed(tests, WIDER_S) if tests else []
    by = failed[0] if failed else "no test fails" if failed == [] else "wider tests: out of time"
    seconds = before.seconds + time.monotonic() - begun
    return Outcome(mutant.key, not failed, by, round(seconds, 1))


class Results:
    """The results of mutants, one line of JSON each; the last line of a mutant counts."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, Outcome]:
        lines = self._file.read_text("utf-8").splitlines() if self._file.is_file() else []
        outcomes = [Outcome(**json.loads(line)) for line in lines]
        return {each.key: each for each in outcomes}

    def add(self, outcome: Outcome) -> Outcome:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
        return outcome


def _equivalents() -> dict[tuple[str, str, str], str]:
    listed = json.loads(EQUIVALENTS.read_text("utf-8"))
    return {(each["function"], each["removed"], each["added"]): each["why"] for each in listed}


def _print_table(mutants: Sequence[Mutant], outcomes: dict[str, Outcome]) -> float:
    """Print a row per package and every mutant that is alive; return which part that is."""
    reasons = _equivalents()
    equivalent = [each for each in mutants if each.change in reasons]
    tested = [each for each in mutants if each.key in outcomes and each.change not in reasons]
    killed = [each for each in tested if not outcomes[each.key].alive]
    left = [each for each in tested if outcomes[each.key].alive]
    print("| package | mutants | killed | alive | equivalent |")
    print("|---|---|---|---|---|")
    for package in (*PACKAGES, ""):
        counts = [
            sum(each.package.startswith(package) for each in group)
            for group in ([*tested, *equivalent], killed, left, equivalent)
        ]
        print(f"| {package or 'all'} | {' | '.join(map(str, counts))} |")
    for each in equivalent:
        print(f"\nequivalent: {each.path}:{each.line} {each.function}: {reasons[each.change]}")
        print(f"  - {each.removed}\n  + {each.added}")
    for each in left:
        print(f"\nalive ({outcomes[each.key].by}): {each.path}:{each.line} {each.function}")
        print(f"  - {each.removed}\n  + {each.added}")
    seconds = sum(outcomes[each.key].seconds for each in tested)
    share = len(left) / max(1, len(tested))
    done = len(tested) + len(equivalent)
    print(f"\n{done} of {len(mutants)} mutants, {seconds:.0f} s; {share:.1%} alive")
    return share


def _run(tree: Tree, mutants: Sequence[Mutant], results: Results, *, again: bool) -> None:
    before, reasons = results.read(), _equivalents()
    repeated = {each.key for each in before.values() if again and each.alive}
    tested = [each for each in mutants if each.change not in reasons]
    rest = [each for each in tested if each.key not in before or each.key in repeated]
    for number, mutant in enumerate(rest, 1):
        if results.read().get(mutant.key) == before.get(mutant.key):  # no other process had it
            _tell(f"{number}/{len(rest)}", mutant, results.add(judge(tree, mutant)))
    before = results.read()
    rest = [each for each in tested if each.key in before and before[each.key].by == LATER]
    for number, mutant in enumerate(rest, 1):
        if results.read()[mutant.key] == before[mutant.key]:
            outcome = judge_wider(tree, mutant, before[mutant.key])
            _tell(f"wider {number}/{len(rest)}", mutant, results.add(outcome))


def _tell(count: str, mutant: Mutant, outcome: Outcome) -> None:
    state = "ALIVE" if outcome.alive else "killed"
    place = f"{mutant.path}:{mutant.line}"
    print(f"{count} {state} {place}, {outcome.by} ({outcome.seconds} s)", flush=True)


def _check_killers(
    tree: Tree, mutants: Sequence[Mutant], outcomes: dict[str, Outcome]
) -> list[str]:
    """The tests that killed mutants, but fail without them too."""
    killers = {outcomes[each.key].by for each in mutants if each.key in outcomes}
    tests = sorted(each for each in killers if each.startswith("tests/"))
    broken: list[str] = []
    while tests:
        failed = tree.failed(tests, 3 * WIDER_S) or []
        found = [each for each in failed if each in tests]
        broken += found
        if not found:
            break
        tests = [each for each in tests if each not in found]
    return broken


def main() -> int:
    """Test the mutants that have no result yet, and print the table."""
    parser = argparse.ArgumentParser(description="how many small changes no test notices")
    parser.add_argument("--sample", type=int, default=200, help="mutants, over all packages")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="of these, the mutants below this path")
    parser.add_argument("--again", action="store_true", help="repeat those that were alive")
    parser.add_argument("--table", action="store_true", help="print what is known, run nothing")
    options = parser.parse_args()
    if find_spec("cosmic_ray") is None:
        print(INSTALL)
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    mutants = [
        each for each in _drawn(options.sample, options.seed) if each.path.startswith(options.only)
    ]
    results = Results(FOLDER / "results.jsonl")
    if not options.table:
        _judge_rest(mutants, results, again=options.again)
    return int(_print_table(mutants, results.read()) > 0.1)


def _judge_rest(mutants: Sequence[Mutant], results: Results, *, again: bool) -> None:
    before = results.read()
    with tempfile.TemporaryDirectory(prefix="tree-", dir=FOLDER) as folder:
        tree = Tree(Path(folder))
        _run(tree, mutants, results, again=again)
        known = results.read()
        new = [each for each in mutants if known.get(each.key) != before.get(each.key)]
        broken = _check_killers(tree, new, known)
    if broken:
        print("these tests fail without a mutant too, so they kill none:", *broken, sep="\n  ")
    for each in new:
        if known[each.key].by in broken:
            results.add(replace(known[each.key], alive=True, by=f"{known[each.key].by}, always"))


if __name__ == "__main__":
    sys.exit(main())
