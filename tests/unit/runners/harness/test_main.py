import pytest

from runners.contract.evaluation import Isolation
from runners.harness import __main__ as program
from runners.harness import server
from runners.harness.sandbox import outer

FOUND = Isolation(outer="unshare")


@pytest.mark.parametrize(
    ("arguments", "entry", "strict", "gpu"),
    [
        ([], "answer_once", False, False),
        (["--serve"], "serve", False, False),
        (["--serve", "--gpu-index", "0", "--strict"], "serve", True, True),
    ],
)
def test_the_program_confines_itself_before_it_serves(
    *, monkeypatch: pytest.MonkeyPatch, arguments: list[str], entry: str, strict: bool, gpu: bool
) -> None:
    steps: list[object] = []
    settings: dict[str, str] = {}
    monkeypatch.setattr("os.putenv", settings.__setitem__)

    def confine(argv: list[str], *, strict: bool, gpu: bool, until_orphaned: bool) -> Isolation:
        steps.append((argv, strict, gpu))
        assert until_orphaned is (entry == "serve")
        return FOUND

    def answer(isolation: Isolation, **options: bool) -> int:
        steps.append(isolation)
        assert options == ({"gpu": gpu} if entry == "serve" else {})
        return 5

    monkeypatch.setattr("sys.argv", ["harness", *arguments])
    monkeypatch.setattr(outer, "confine", confine)
    monkeypatch.setattr(server, entry, answer)

    assert program.main() == 5
    assert steps == [(arguments, strict, gpu), FOUND]
    assert settings == {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "2000"}


def test_an_unknown_argument_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["harness", "--verbose"])

    with pytest.raises(SystemExit) as end:
        program.main()

    assert end.value.code == 2
