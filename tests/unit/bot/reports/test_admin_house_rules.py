from datetime import timedelta

from bot.domain.accounts import Person
from bot.domain.ids import BoardId, PersonId
from bot.domain.records import NamedLimit, SubmissionRules
from bot.domain.submission import Ban, RateLimit
from bot.domain.times import show_deadline
from bot.reports.admin import submission_rules_report
from bot.reports.blocks import Table, Text
from runners.contract.task import Mode
from tests.doubles.factories import NOON

HOUR = timedelta(hours=1)


def test_each_kind_of_rule_has_its_table() -> None:
    limits = (
        NamedLimit(RateLimit(9, HOUR), None),
        NamedLimit(RateLimit(1, HOUR, BoardId(1), Mode.TEST), "sort"),
    )
    eve = Person(PersonId(2), "discord:17", "Eve", NOON, handle="eve_l")
    own = RateLimit(2, HOUR, person=eve.id, reason="a flood", until=NOON)
    rules = SubmissionRules(
        (*limits, NamedLimit(own, None, eve)),
        "a move",
        {"sort": "soon"},
        {"L4": "heat"},
        ((eve, Ban("forged")),),
    )
    tables = [each for each in submission_rules_report(rules).blocks if isinstance(each, Table)]
    assert [each.rows for each in tables] == [
        (("all boards", "all modes", "9", "60 min"), ("sort", "test", "1", "60 min")),
        (
            (
                *("Eve (@eve_l)", "2 in 60 min, all boards, all modes"),
                f"a flood (until {show_deadline(NOON)})",
            ),
        ),
        (("all submissions", "a move"), ("board sort", "soon"), ("GPU type L4", "heat")),
        (("Eve (@eve_l)", "forged"),),
    ]


def test_where_nothing_holds_it_is_said() -> None:
    (said,) = submission_rules_report(SubmissionRules((), None, {}, {}, ())).blocks
    assert isinstance(said, Text)
    assert "no limit" in said.text
