"""A profiler's reports as files of a report: one archive for each GPU type."""

import zipfile
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from itertools import groupby

from bot.domain.ids import SubmissionId
from bot.domain.records import StoredFile
from bot.reports.blocks import Attachment
from runners.contract.files import EvaluationFile

_WHEN = (1980, 1, 1, 0, 0, 0)
"""The archive says no time, so that the same files make the same bytes."""


def archives(submission: SubmissionId, files: Sequence[StoredFile]) -> tuple[Attachment, ...]:
    """The archives; `files` come by GPU type. What cannot be unpacked is left out."""
    return tuple(
        Attachment(f"profile-{submission}-{gpu}.zip", _zipped([each.file for each in of_gpu]))
        for gpu, of_gpu in groupby(files, lambda each: each.gpu)
    )


def _zipped(files: Sequence[EvaluationFile]) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in files:
            with suppress(ValueError):
                archive.writestr(
                    zipfile.ZipInfo(each.name, _WHEN), each.content(), zipfile.ZIP_DEFLATED
                )
    return made.getvalue()
