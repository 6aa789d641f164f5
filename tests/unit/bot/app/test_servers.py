"""Tests of which Podium a command is for, and with which token it is asked."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.app.servers import Credentials, Login, ServerDirectory
from bot.domain.errors import SetupError, UserError
from bot.settings import Settings

HERE, THERE = "https://here.test", "https://there.test"
SECRET, OTHER, NONE = "of-here", "of-settings", ""


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PODIUM_DATA_DIR", "DATABASE_URL", "PODIUM_CLI_SERVER", "PODIUM_CLI_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a user who has signed in at HERE."""
    settings = Settings(config_home=tmp_path)
    assert settings.credentials is not None
    Credentials(settings.credentials).store(HERE, Login(token=SECRET, name="Ada"))
    return settings


def test_commands_go_to_the_login_unless_told_otherwise(settings: Settings) -> None:
    assert ServerDirectory(settings).chosen(None) == HERE
    assert ServerDirectory(settings).chosen(THERE) == THERE
    assert ServerDirectory(settings).chosen("local") is None
    assert ServerDirectory(settings.at(Path("data"))).chosen(None) is None
    assert ServerDirectory(settings.at(Path("data"))).chosen(THERE) == THERE
    set_ = settings.model_copy(update={"cli_server": THERE})
    assert ServerDirectory(set_.at(Path("data"))).chosen(None) == THERE
    assert ServerDirectory(set_).chosen("local") is None
    local = settings.model_copy(update={"cli_server": "local"})
    assert ServerDirectory(local).chosen(None) is None


def test_without_a_login_they_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ServerDirectory(Settings(config_home=tmp_path)).chosen(None) is None
    monkeypatch.setattr(Path, "home", _homeless)
    assert ServerDirectory(Settings()).chosen(None) is None


def _unasked() -> str:
    raise AssertionError("nobody is asked")


def _homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


async def test_a_login_needs_a_token_and_a_place_to_keep_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="a token is needed"):
        await ServerDirectory(settings).login(THERE, None, str, plain_http=False)
    with pytest.raises(UserError, match="not a server's address"):  # before it is asked for
        await ServerDirectory(settings).login("there", None, _unasked, plain_http=False)
    with pytest.raises(UserError, match="--plain-http"):
        await ServerDirectory(settings).login(
            "http://there.test", SECRET, _unasked, plain_http=False
        )
    monkeypatch.setattr(Path, "home", _homeless)
    with pytest.raises(SetupError, match="XDG_CONFIG_HOME"):
        ServerDirectory(Settings()).logout(None)


async def test_a_token_goes_to_its_own_server_alone(settings: Settings) -> None:
    assert ServerDirectory(settings)._server(f"{HERE}/").token == SECRET
    assert ServerDirectory(settings)._server(THERE).token == NONE
    own = settings.model_copy(update={"cli_token": SecretStr(OTHER)})
    assert ServerDirectory(own)._server(THERE).token == OTHER
    with pytest.raises(UserError, match="--plain-http"):
        ServerDirectory(own)._server("http://there.test")


def test_logging_out_forgets_the_token(settings: Settings) -> None:
    signed = ServerDirectory(settings).logout(f"{HERE}/")
    assert (signed.url, signed.name) == (HERE, "Ada")
    assert ServerDirectory(settings).chosen(None) is None
    with pytest.raises(UserError, match="not signed in to any server"):
        ServerDirectory(settings).logout(None)
