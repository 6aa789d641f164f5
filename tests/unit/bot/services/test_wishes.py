"""What is wanted of a board reads as it was written, whoever reads it."""

from datetime import UTC, datetime

from bot.domain.access import Access, SourceVisibility, Visibility
from bot.domain.ids import PersonId, TaskVersionId
from bot.services.wishes import WISH, Wish
from tests.doubles.factories import make_task


def test_a_wish_survives_being_stored() -> None:
    access = Access(Visibility.PRIVATE, "discord-guild:1", SourceVisibility.NEVER, frozenset({"x"}))
    wish = Wish(
        PersonId(3),
        "adding",
        ("CPU", "H100"),
        datetime(2099, 1, 31, 17, tzinfo=UTC),
        as_admin=True,
        access=access,
        onto=TaskVersionId(7),
        zip_name="vectoradd",
    )
    assert WISH.validate_json(WISH.dump_json(wish)) == wish
    request = wish.request(make_task())
    assert (request.board_name, request.onto, request.access) == ("adding", 7, access)
