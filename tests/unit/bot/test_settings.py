"""Tests of the settings."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from bot.domain.errors import SetupError
from bot.settings import RunnerChoice, Settings, read_settings

VARIABLES = (
    "PODIUM_DATA_DIR", "DATABASE_URL", "PODIUM_RUNNERS", "PODIUM_LEASE_S", "PODIUM_REQUIRE_SANDBOX",
    "PODIUM_HTTP_HOST", "PODIUM_HTTP_PORT", "PODIUM_HTTP_CERTIFICATE", "PODIUM_HTTP_KEY",
    "PODIUM_SERVER", "PODIUM_WORKER_TOKEN",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_the_defaults_need_no_environment() -> None:
    settings = read_settings()
    assert settings.data_dir == Path(".podium")
    assert settings.database_url is None
    assert settings.runners == ("local",)
    assert not settings.strict_sandbox


def test_every_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_DATA_DIR", "/srv/podium")
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:secret@db/podium")
    monkeypatch.setenv("PODIUM_RUNNERS", "local, fake,")
    monkeypatch.setenv("PODIUM_REQUIRE_SANDBOX", "strict")
    settings = read_settings()
    assert settings.data_dir == Path("/srv/podium")
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://ada:secret@db/podium"
    assert settings.runners == ("local", "fake")
    assert settings.strict_sandbox


def test_a_runner_may_be_given_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_RUNNERS", "local, fake:H100=2:A100:8=1:L4!x2=1")
    monkeypatch.setenv("PODIUM_LEASE_S", "2.5")
    settings = read_settings()
    assert settings.runner_choices == (
        RunnerChoice("local", {}),
        RunnerChoice("fake", {"H100": 2, "A100:8": 1, "L4!x2": 1}),
    )
    assert settings.lease_s == 2.5


def test_no_runner_may_be_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_RUNNERS", " none ")
    assert read_settings().runner_choices == ()


def test_an_empty_database_url_means_the_embedded_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    assert read_settings().database_url is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PODIUM_REQUIRE_SANDBOX", "maybe"),
        ("PODIUM_RUNNERS", " , "),
        ("PODIUM_RUNNERS", ""),
        ("PODIUM_RUNNERS", "none:H100"),
        ("PODIUM_RUNNERS", "fake:H100"),
        ("PODIUM_RUNNERS", "fake:H100=0"),
        ("PODIUM_LEASE_S", "0"),
        ("PODIUM_LEASE_S", "soon"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match=name):
        read_settings()


def test_a_password_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:secret@db/podium")
    assert "secret" not in repr(read_settings())


def test_settings_are_frozen() -> None:
    name = "data_dir"
    with pytest.raises(ValidationError):
        setattr(read_settings(), name, Path("elsewhere"))


def test_another_data_folder_leaves_the_rest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_RUNNERS", "fake")
    moved = read_settings().at(Path("there"))
    assert moved == Settings(data_dir=Path("there"), runners=("fake",))
    assert moved.at(None) == moved


def test_the_http_door_and_the_server_of_a_worker_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (read_settings().http_port, read_settings().worker_server) == (None, None)
    monkeypatch.setenv("PODIUM_HTTP_PORT", "8000")
    monkeypatch.setenv("PODIUM_SERVER", "https://podium.example.org")
    monkeypatch.setenv("PODIUM_WORKER_TOKEN", "hunter2")
    settings = read_settings()
    assert (settings.http_host, settings.http_port) == ("127.0.0.1", 8000)
    assert settings.worker_server == "https://podium.example.org"
    assert "hunter2" not in repr(settings)
    for name in ("PODIUM_HTTP_PORT", "PODIUM_SERVER", "PODIUM_WORKER_TOKEN"):
        monkeypatch.setenv(name, "")  # as a compose file has it that leaves it open
    settings = read_settings()
    assert (settings.http_port, settings.worker_server, settings.worker_token) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "value"), [("PODIUM_HTTP_PORT", "70000"), ("PODIUM_HTTP_CERTIFICATE", "c.pem")]
)
def test_a_door_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match="PODIUM_HTTP"):
        read_settings()
