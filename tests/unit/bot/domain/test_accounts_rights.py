import pytest

from bot.domain.accounts import ANYBODY, Rights, TokenScope, make_caller, require_person
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId

ADA = Viewer(PersonId(1), frozenset({"local:ada"}))


def test_what_two_sources_vouch_for_adds_up() -> None:
    one = Rights(frozenset({"a"}), is_creator=True)
    other = Rights(frozenset({"b"}), is_admin=True)
    assert one | other == Rights(frozenset({"a", "b"}), is_admin=True, is_creator=True)


def test_only_an_admin_with_an_admins_token_sees_all() -> None:
    for is_admin in (True, False):
        for scope in TokenScope:
            asks = make_caller(ADA, Rights(frozenset({"x"}), is_admin=is_admin), scope)
            assert asks.sees_all == (is_admin and scope is TokenScope.ADMIN)
            assert asks.is_creator == is_admin
            assert asks.credentials == {"local:ada", "x"}


def test_a_caller_without_an_account_is_told_how_to_get_a_token() -> None:
    with pytest.raises(UserError, match="this needs a token") as refusal:
        require_person(ANYBODY)
    assert refusal.value.code == "bad-token"
    require_person(make_caller(ADA, Rights(), TokenScope.READ))


def test_a_word_for_each_scope_is_the_one_that_people_choose() -> None:
    assert {scope: scope.word for scope in TokenScope if scope.word != scope.value} == {
        TokenScope.PERSON: "submit"
    }
