import pytest

from bot.cli.commands.token import _scope
from bot.domain.accounts import TokenScope
from bot.domain.errors import UserError


@pytest.mark.parametrize(
    ("worker", "person", "flags", "scope"),
    [
        ("box", None, set(), TokenScope.WORKER),
        (None, "ada", set(), TokenScope.PERSON),
        (None, "ada", {"admin"}, TokenScope.ADMIN),
        (None, "ada", {"read_only"}, TokenScope.READ),
        (None, None, set(), None),
        ("box", "ada", set(), None),
        ("box", None, {"admin"}, None),
        ("box", None, {"read_only"}, None),
        (None, "ada", {"admin", "read_only"}, None),
    ],
)
def test_a_token_is_for_one_and_of_one_scope(
    worker: str | None, person: str | None, flags: set[str], scope: TokenScope | None
) -> None:
    admin, read_only = "admin" in flags, "read_only" in flags
    if scope is not None:
        assert _scope(worker, person, admin=admin, read_only=read_only) is scope
        return
    with pytest.raises(UserError, match="--"):
        _scope(worker, person, admin=admin, read_only=read_only)
