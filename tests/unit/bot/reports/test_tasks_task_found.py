from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.scaffold import scaffold
from bot.domain.tasks.task_file import read_task
from bot.reports.blocks import Text
from bot.reports.tasks import upload_report


def test_it_counts_what_a_bundle_holds_and_warns_of_what_could_be_better() -> None:
    files = {name: text.encode() for name, text in scaffold("double").items()}
    bundle = TaskBundle(files, "", "double")
    report = upload_report(bundle, read_task(bundle))
    assert report.title == "Task double"
    grading, first, *_ = [each.text for each in report.blocks if isinstance(each, Text)]
    assert grading == "Podium's judge grades: the task has no evaluation program of its own."
    assert "1 correct and 1 wrong solution" in first
    none_wrong = {name: data for name, data in files.items() if "wrong" not in name}
    bundle = TaskBundle(none_wrong, "", "double")
    words = [each.text for each in upload_report(bundle, read_task(bundle)).blocks]  # type: ignore[union-attr]
    assert any(each.startswith("warning: ") and "wrong" in each for each in words)
