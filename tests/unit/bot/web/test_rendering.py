import gzip
import json
from http import HTTPStatus

import pytest
from jinja2 import UndefinedError
from starlette.requests import Request

from bot.web.errors import problem
from bot.web.rendering import SECURITY, RenderedPage, as_page, environment, page_response, render


def request(path: str = "/", **headers: str) -> Request:
    page_response = [
        (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
    ]
    return Request({"type": "http", "method": "GET", "path": path, "headers": page_response})


def test_every_value_is_escaped_and_turns_nothing_round() -> None:
    made = environment().from_string("<a title='{{ it }}'>{{ it }}</a>")
    shown = made.render(it="<b>'\"&\u202e\x1b[31m\x00")
    assert shown == "<a title='&lt;b&gt;&#39;&#34;&amp;'>&lt;b&gt;&#39;&#34;&amp;</a>"


def test_a_value_that_a_template_lacks_is_an_error_and_no_gap() -> None:
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_nothing_inline_is_allowed_and_no_template_has_any() -> None:
    policy = SECURITY["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "*" not in policy
    for name in environment().list_templates(("html",)):
        text = environment().loader.get_source(environment(), name)[0]  # type: ignore[union-attr]
        assert " style=" not in text, name
        assert " onclick=" not in text, name
        assert "<style" not in text, name
        scripts = text.count("<script")
        safe = text.count("<script src=") + text.count('<script type="application/json"')
        assert scripts == safe, name
        assert "http://" not in text, name
        assert "https://" not in text.replace("https://discord.com", ""), name


def test_a_page_is_compressed_and_not_sent_twice() -> None:
    sheet = RenderedPage.of("x" * 2_000)
    first = page_response(request(accept_encoding="gzip, br"), sheet)
    assert gzip.decompress(bytes(first.body)) == sheet.body
    assert page_response(request(), sheet).body == sheet.body
    again = page_response(request(if_none_match=first.headers["etag"]), sheet)
    assert (again.status_code, again.body) == (304, b"")
    assert again.headers["content-security-policy"] == SECURITY["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [("gzip", True), ("GZIP ; q=0.5, br", True), ("br, gzip;q=0", False), ("gzip; q=0.0", False),
     ("", False), ("identity", False), ("x-gzipped", False)],
)  # fmt: skip
def test_gzip_is_sent_to_those_alone_who_want_it(accepted: str, zipped: bool) -> None:  # noqa: FBT001
    answer = page_response(request(accept_encoding=accepted), RenderedPage.of("x" * 2_000))
    assert ("content-encoding" in answer.headers) == zipped


@pytest.mark.parametrize(
    ("path", "accept", "is_page"),
    [
        ("/boards/x", "text/html,*/*;q=0.8", True),
        ("/nothing", "text/html", True),
        ("/boards/x", "*/*", False),
        ("/boards/x", "application/json", False),
        ("/api/v1/leaderboards", "text/html", False),
        ("/popcorn/user/x", "text/html", False),
        ("/evaluate", "text/html", True),
        ("/eval/health", "text/html", False),
    ],
)
def test_a_browser_gets_a_page_of_what_went_wrong(path: str, accept: str, is_page: bool) -> None:  # noqa: FBT001
    told = problem(HTTPStatus.NOT_FOUND, "unknown-board", "no <board>", {"Retry-After": "3"})
    shown = as_page(request(path, accept=accept), told, {})
    assert shown.status_code == 404
    assert shown.headers["retry-after"] == "3"
    if is_page:
        assert b"no &lt;board&gt;" in bytes(shown.body)
        assert shown.headers["content-security-policy"]
    else:
        assert json.loads(bytes(shown.body))["code"] == "unknown-board"


def test_an_error_can_be_drawn_without_anything_else() -> None:
    told = {"title": "Away", "status": 503, "detail": "try again"}
    assert "try again" in render("error.html", told)
