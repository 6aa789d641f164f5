from bot.services.status import profile_files
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode
from tests.doubles.factories import make_case
from tests.doubles.place import Place

FILE = EvaluationFile.of("case-1.ncu-rep", b"NVR")


async def test_a_profiled_submission_has_files(place: Place) -> None:
    submission = await place.submit(mode=Mode.PROFILE)
    await place.judged(submission, files=(FILE,), cases=(make_case(),))
    (found,) = await profile_files(place.store, submission)
    assert (found.gpu, found.file.content()) == ("CPU", b"NVR")


async def test_no_other_mode_has_any_whatever_a_runner_sent(place: Place) -> None:
    submission = await place.submit(mode=Mode.RANKED)
    await place.judged(submission, files=(FILE,))
    assert await profile_files(place.store, submission) == ()
