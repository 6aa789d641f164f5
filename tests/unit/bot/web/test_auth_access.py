import pytest
from starlette.requests import Request

from bot.domain.errors import UserError
from bot.web.auth import bearer


def request(header: str) -> Request:
    return Request({"type": "http", "headers": [(b"authorization", header.encode())]})


def test_a_bearer_s_token_is_what_follows_the_word() -> None:
    assert bearer(request("Bearer abc")) == "abc"
    assert bearer(request("bearer abc ")) == "abc"


@pytest.mark.parametrize("header", ["", "abc", "Basic abc", "Bearer", f"Bearer {'x' * 201}"])
def test_any_other_header_has_no_token(header: str) -> None:
    with pytest.raises(UserError, match="Authorization: Bearer TOKEN"):
        bearer(request(header))
