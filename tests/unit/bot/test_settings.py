"""Tests of the settings."""

from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import ValidationError

from bot.domain.costs import MODAL_PRICES
from bot.domain.errors import SetupError
from bot.settings import RunnerChoice, Settings, read_settings

VARIABLES = (
    "PODIUM_DATA_DIR", "DATABASE_URL", "PODIUM_RUNNERS", "PODIUM_LEASE_S", "PODIUM_REQUIRE_SANDBOX",
    "PODIUM_HTTP_HOST", "PODIUM_HTTP_PORT", "PODIUM_HTTP_CERTIFICATE", "PODIUM_HTTP_KEY",
    "PODIUM_SERVER", "PODIUM_WORKER_TOKEN", "PODIUM_CLI_SERVER", "PODIUM_CLI_TOKEN",
    "LOG_LEVEL", "ENABLE_DEVICE_METRICS",
    "XDG_CONFIG_HOME", "PODIUM_PUBLIC_URL", "DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET",
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
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:hunter2@db/podium")
    monkeypatch.setenv("PODIUM_PUBLIC_URL", "https://podium.example.org")
    monkeypatch.setenv("DISCORD_CLIENT_ID", "17")
    monkeypatch.setenv("DISCORD_CLIENT_SECRET", "hunter3")
    assert "hunter" not in repr(read_settings())


def test_signing_in_by_discord_takes_the_whole_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_PUBLIC_URL", "HTTPS://Podium.example.org:8443/")
    assert read_settings().public_url == "https://podium.example.org:8443"
    monkeypatch.setenv("DISCORD_CLIENT_ID", "17")
    with pytest.raises(SetupError, match="belong together"):
        read_settings()
    monkeypatch.setenv("DISCORD_CLIENT_SECRET", "hunter2")
    assert read_settings().discord_client_id == "17"
    monkeypatch.setenv("PODIUM_PUBLIC_URL", "")
    with pytest.raises(SetupError, match="needs PODIUM_PUBLIC_URL"):
        read_settings()


@pytest.mark.parametrize(
    "address", ["podium.example.org", "ftp://x", "https://x/path", "https://a@x", "https://x?y"]
)
def test_a_public_address_is_scheme_and_host(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("PODIUM_PUBLIC_URL", address)
    with pytest.raises(SetupError, match=r"https://podium\.example\.org"):
        read_settings()


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


def test_the_log_and_the_profiler_are_told_as_the_evaluation_server_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (read_settings().log_level, read_settings().device_metrics) == ("info", False)
    monkeypatch.setenv("LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("ENABLE_DEVICE_METRICS", "true")
    assert (read_settings().log_level, read_settings().device_metrics) == ("debug", True)
    monkeypatch.setenv("LOG_LEVEL", "")
    monkeypatch.setenv("ENABLE_DEVICE_METRICS", "")
    assert (read_settings().log_level, read_settings().device_metrics) == ("info", False)
    monkeypatch.setenv("LOG_LEVEL", "loud")
    with pytest.raises(SetupError, match="LOG_LEVEL: must be 'debug', 'info'"):
        read_settings()


def test_the_limits_of_the_http_door_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (read_settings().http_proxies, read_settings().http_requests_per_minute) == ((), 600)
    monkeypatch.setenv("PODIUM_HTTP_PROXIES", "10.0.0.1, fd00::/8,")
    monkeypatch.setenv("PODIUM_HTTP_REQUESTS_PER_MINUTE", "0")
    settings = read_settings()
    assert settings.http_proxies == (ip_network("10.0.0.1"), ip_network("fd00::/8"))
    assert settings.http_requests_per_minute == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PODIUM_HTTP_PORT", "70000"),
        ("PODIUM_HTTP_CERTIFICATE", "c.pem"),
        ("PODIUM_HTTP_PROXIES", "proxy.example.org"),
        ("PODIUM_HTTP_PROXIES", "*"),
    ],
)
def test_a_door_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match="PODIUM_HTTP"):
        read_settings()


def test_the_logins_are_where_the_desktops_keep_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    usual = Path("/home/ada/.config/podium/credentials.json")
    assert read_settings().credentials == usual
    for other in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", other)
        assert read_settings().credentials == usual
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert read_settings().credentials == Path("/elsewhere/podium/credentials.json")


def test_who_has_no_home_keeps_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert read_settings().credentials is None


def test_a_chosen_folder_or_database_is_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not read_settings().names_this_machine
    assert read_settings().at(Path("there")).names_this_machine
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/podium")
    assert read_settings().names_this_machine
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("PODIUM_DATA_DIR", ".podium")
    assert read_settings().names_this_machine


def test_prices_of_gpu_seconds_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_GPU_PRICES", "A100-40GB=0.000583, H100=0.001097")
    assert read_settings().gpu_prices == MODAL_PRICES
    monkeypatch.setenv("PODIUM_GPU_PRICES", "H100=0")
    assert read_settings().gpu_prices == {**MODAL_PRICES, "H100": 0.0}
    monkeypatch.setenv("PODIUM_GPU_PRICES", "")
    assert read_settings().gpu_prices == MODAL_PRICES
    monkeypatch.delenv("PODIUM_GPU_PRICES")
    assert read_settings().gpu_prices == MODAL_PRICES
    monkeypatch.setenv("PODIUM_GPU_PRICES", "none")
    assert read_settings().gpu_prices == {}
    monkeypatch.setenv("PODIUM_GPU_PRICES", "cheap")
    with pytest.raises(SetupError, match="write it as A100=0"):
        read_settings()
