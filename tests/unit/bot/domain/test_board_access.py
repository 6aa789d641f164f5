from datetime import datetime, timedelta

import pytest

from bot.domain.board import Access, SeasonRules, SourceVisibility, Viewer, Visibility
from bot.domain.ids import PersonId
from tests.doubles.factories import NOON, make_board

MEMBER, OTHER = "discord-guild:123", "discord-guild:124"
ROLE, PERSON = "discord-role:5", "discord:17"


@pytest.mark.parametrize(
    ("access", "credentials", "admitted"),
    [
        (Access(), set(), True),
        (Access(house=MEMBER), {PERSON, MEMBER}, True),
        (Access(house=MEMBER), {PERSON, OTHER}, False),
        (Access(Visibility.PRIVATE), {PERSON, ROLE, MEMBER}, False),
        (Access(Visibility.PRIVATE, guests=frozenset({ROLE, PERSON})), {ROLE}, True),
        (Access(Visibility.PRIVATE, guests=frozenset({ROLE})), {PERSON}, False),
        (Access(Visibility.PRIVATE, MEMBER, guests=frozenset({PERSON})), {PERSON}, False),
        (Access(Visibility.PRIVATE, MEMBER, guests=frozenset({PERSON})), {PERSON, MEMBER}, True),
    ],
)
def test_a_board_is_for_its_house_and_a_private_one_for_its_guests(
    *, access: Access, credentials: set[str], admitted: bool
) -> None:
    assert access.admits(frozenset(credentials)) is admitted


def test_its_creator_and_those_who_see_all_always_see_a_board() -> None:
    board = make_board(access=Access(Visibility.PRIVATE, house=MEMBER), creator=PersonId(1))
    assert board.visible_to(Viewer(PersonId(1)))
    assert board.visible_to(Viewer(PersonId(2), sees_all=True))
    assert not board.visible_to(Viewer(PersonId(2), frozenset({MEMBER, PERSON})))


def test_a_rule_names_every_credential_that_it_asks_for() -> None:
    assert Access(guests=frozenset({ROLE})).credentials == {ROLE}
    assert Access(house=MEMBER, guests=frozenset({ROLE})).credentials == {ROLE, MEMBER}


@pytest.mark.parametrize(
    ("source", "while_open", "afterwards"),
    [
        (SourceVisibility.AFTER_DEADLINE, False, True),
        (SourceVisibility.ALWAYS, True, True),
        (SourceVisibility.NEVER, False, False),
    ],
)
def test_sources_are_shown_as_the_board_has_it(
    *, source: SourceVisibility, while_open: bool, afterwards: bool
) -> None:
    assert Access(source=source).shows_sources(is_open=True) is while_open
    assert Access(source=source).shows_sources(is_open=False) is afterwards


def test_until_a_board_opens_its_creator_alone_sees_it_and_others_know_its_date() -> None:
    board = make_board(creator=PersonId(1), rules=SeasonRules(NOON))
    creator, admin, other = (
        Viewer(PersonId(1)),
        Viewer(PersonId(3), sees_all=True),
        Viewer(PersonId(2)),
    )
    assert [board.visible_to(each) for each in (creator, admin, other)] == [True, True, False]
    assert all(board.announced_to(each) for each in (creator, admin, other))
    private = make_board(access=Access(Visibility.PRIVATE), rules=SeasonRules(NOON))
    assert not private.announced_to(other)


def test_an_opening_date_that_has_passed_is_none_any_more() -> None:
    rules = SeasonRules(NOON, late_runs=True)
    assert rules.at(NOON - timedelta(seconds=1)) == rules
    assert rules.at(NOON) == SeasonRules(late_runs=True)
    assert SeasonRules().at(NOON) == SeasonRules()


@pytest.mark.parametrize("source", SourceVisibility)
def test_only_the_statement_of_a_board_with_a_deadline_promises_one(
    source: SourceVisibility,
) -> None:
    with_end, without = source.statement(NOON), source.statement(None)
    assert "Until the deadline" not in without
    if source is SourceVisibility.AFTER_DEADLINE:
        assert with_end.startswith("You and admins may read your source, and the board's creator")
        assert "After the deadline, everyone" in with_end
        assert without.endswith("once it has closed after a deadline.")
    else:
        assert with_end == without


@pytest.mark.parametrize("deadline", [None, NOON])
@pytest.mark.parametrize("source", SourceVisibility)
def test_the_statement_names_everyone_who_may_read_a_source(
    source: SourceVisibility, deadline: datetime | None
) -> None:
    words = source.statement(deadline)
    assert words.startswith("Only ") == (source is SourceVisibility.NEVER)
    assert ("exports" in words) == (source is not SourceVisibility.NEVER)
    assert ("everyone who sees the board" in words.lower()) == (
        source is not SourceVisibility.NEVER
    )
