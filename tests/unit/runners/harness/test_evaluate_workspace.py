from runners.harness.evaluate import workspace
from runners.harness.judge.session import candidate_files
from tests.doubles.judging import SORT, make_sort_task

TASK = make_sort_task(files={"reference.py": SORT, "task.py": "x = 1"}, shared_files=("task.py",))


def test_the_tasks_files_lie_in_a_folder_that_goes_away() -> None:
    with workspace(TASK) as folder:
        assert {path.name: path.read_text() for path in folder.iterdir()} == TASK.files
    assert not folder.exists()


def test_a_candidate_sees_the_submission_and_what_is_shared() -> None:
    assert candidate_files(TASK, "y = 2") == {"task.py": "x = 1", "submission.py": "y = 2"}
