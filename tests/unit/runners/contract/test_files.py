"""Files travel packed, come out as they were, and never grow beyond what is taken."""

import base64
import zlib

import pytest
from pydantic import ValidationError

from bot.domain.api.workers import EVALUATION_MAX
from runners.backends.modal_app.container import ANSWER_MAX
from runners.backends.ray_cluster.protocol import LINES_MAX
from runners.contract import files
from runners.contract.files import EvaluationFile, fit
from runners.slots.harness import LINE_MAX


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 1000])
def test_a_file_comes_out_as_it_went_in(size: int) -> None:
    content = bytes(range(256)) * 4
    packed = EvaluationFile.of("case-1.ncu-rep", content[:size])
    travelled = EvaluationFile.model_validate_json(packed.model_dump_json())
    assert travelled.content() == content[:size]
    assert travelled.packed_size == len(zlib.compress(content[:size], 6))


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a" * 65, "a b", "a\n"])
def test_a_name_names_no_other_place(name: str) -> None:
    with pytest.raises(ValidationError):
        EvaluationFile(name=name, packed="")


def test_what_unfolds_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = EvaluationFile.of("a", bytes(5000))
    monkeypatch.setattr(files, "FILE_MAX", 4999)
    with pytest.raises(ValueError, match="more than 4999 bytes"):
        bomb.content()
    with pytest.raises(ValueError, match="at most 4999"):
        EvaluationFile.of("a", bytes(5000))


@pytest.mark.parametrize("packed", [base64.b64encode(b"no zlib").decode(), ""])
def test_what_cannot_be_unpacked_is_refused(packed: str) -> None:
    with pytest.raises(ValueError, match="the file a"):
        EvaluationFile(name="a", packed=packed).content()


@pytest.mark.parametrize("packed", ["no base64!", "AAA", "é", "AA=A"])
def test_what_does_not_travel_as_base64_is_no_file(packed: str) -> None:
    with pytest.raises(ValidationError, match="packed"):
        EvaluationFile(name="a", packed=packed)


@pytest.mark.parametrize("most", [LINE_MAX, ANSWER_MAX, EVALUATION_MAX, LINES_MAX])
def test_the_most_that_fits_can_travel_by_every_runner(most: int) -> None:
    rest = 2 << 20  # a log of the usual limit, every letter escaped, and all else with much room
    assert 4 * -(-files.PACKED_MAX // 3) + rest <= most


def test_files_fit_up_to_a_limit_on_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    two = [EvaluationFile.of(name, bytes(range(100))) for name in ("a", "b")]
    monkeypatch.setattr(files, "PACKED_MAX", sum(each.packed_size for each in two))
    assert fit(two)
    assert not fit([*two, EvaluationFile.of("c", b"")])


def test_no_more_files_fit_than_one_evaluation_may_have() -> None:
    many = [EvaluationFile.of(f"{number}", b"") for number in range(files.FILES_MAX + 1)]
    assert fit(many[1:])
    assert not fit(many)
