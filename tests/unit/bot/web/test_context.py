from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.requests import Request

from bot.web.context import HttpSettings, context_of


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (HttpSettings("127.0.0.1", 80), "http://127.0.0.1:80"),
        (HttpSettings("::1", 80), "http://[::1]:80"),
        (HttpSettings("0.0.0.0", 443, Path("c"), Path("k")), "https://0.0.0.0:443"),  # noqa: S104
    ],
)
def test_an_address_is_written_as_somebody_types_it(settings: HttpSettings, url: str) -> None:
    assert settings.url == url


def test_an_application_without_its_door_is_a_bug() -> None:
    app = FastAPI()
    app.state.context = None
    with pytest.raises(TypeError, match="has no WebContext"):
        context_of(Request({"type": "http", "app": app}))


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True),
        ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("podium.test", False),  # noqa: S104
    ],
)  # fmt: skip
def test_a_loopback_address_is_heard_by_this_machine_alone(host: str, alone: bool) -> None:  # noqa: FBT001
    assert HttpSettings(host, 80).is_loopback is alone
