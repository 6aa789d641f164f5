"""A profiler's reports come as one archive for each GPU type."""

import zipfile
from io import BytesIO

from bot.domain.ids import SubmissionId
from bot.domain.records import StoredFile
from bot.reports.submission import archives
from runners.contract.files import EvaluationFile


def packed(name: str) -> EvaluationFile:
    return EvaluationFile.of(name, name.encode() * 1000)


def test_each_gpu_type_has_an_archive_of_its_own() -> None:
    files = [StoredFile("H100", packed(name)) for name in ("case-1.ncu-rep", "case-2.ncu-rep")]
    first, second = archives(SubmissionId(7), [*files, StoredFile("T4", packed("case-1.ncu-rep"))])
    assert (first.name, second.name) == ("profile-7-H100.zip", "profile-7-T4.zip")
    with zipfile.ZipFile(BytesIO(first.data)) as archive:
        assert archive.namelist() == ["case-1.ncu-rep", "case-2.ncu-rep"]
        assert archive.read("case-2.ncu-rep") == b"case-2.ncu-rep" * 1000
    assert len(first.data) < 1000  # compressed
    assert archives(SubmissionId(7), files)[0] == first


def test_what_cannot_be_unpacked_is_left_out_and_the_rest_is_there() -> None:
    broken = EvaluationFile.of_zipped("broken", b"nothing that zlib made")
    (found,) = archives(
        SubmissionId(7), [StoredFile("T4", broken), StoredFile("T4", packed("whole"))]
    )
    with zipfile.ZipFile(BytesIO(found.data)) as archive:
        assert archive.namelist() == ["whole"]
