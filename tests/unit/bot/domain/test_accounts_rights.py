from bot.domain.accounts import Rights, TokenScope, make_caller
from bot.domain.board import Viewer
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
