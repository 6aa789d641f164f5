import pytest

from bot.domain.errors import UserError
from bot.remote.http import server


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://podium.example.org", "https://podium.example.org"),
        (" https://podium.example.org:8443/podium/ ", "https://podium.example.org:8443/podium"),
        ("http://localhost:80", "http://localhost:80"),
        ("http://127.0.0.2:80/", "http://127.0.0.2:80"),
        ("http://[::1]:80", "http://[::1]:80"),
    ],
)
def test_an_address_is_kept_without_its_last_slash(url: str, kept: str) -> None:
    found = server(url, " token\n")
    assert (found.url, found.token) == (kept, "token")
    assert "token" not in repr(found)


@pytest.mark.parametrize(
    "url",
    ["", "podium", "podium.example.org", "ftp://x", "https://", "https://x:port", "https://x?a=b"],
)
def test_what_is_no_address_is_refused_with_one_that_is(url: str) -> None:
    with pytest.raises(UserError, match=r"https://podium\.example\.org"):
        server(url, "token")


@pytest.mark.parametrize("host", ["podium.example.org", "10.0.0.1", "localhost.example.org"])
def test_a_token_travels_unencrypted_only_where_somebody_says_so(host: str) -> None:
    with pytest.raises(UserError, match="--plain-http"):
        server(f"http://{host}", "token")
    assert server(f"http://{host}", "token", insecure=True).url == f"http://{host}"


def test_a_password_in_the_address_is_refused() -> None:
    with pytest.raises(UserError, match="leave user and password out"):
        server("https://ada:hunter2@podium.example.org", "token")


@pytest.mark.parametrize(
    ("token", "code"), [("", "no-token"), ("a b", "bad-token"), ("é", "bad-token")]
)
def test_a_token_that_is_none_is_refused(token: str, code: str) -> None:
    with pytest.raises(UserError) as refused:
        server("https://podium.example.org", token)
    assert refused.value.code == code
