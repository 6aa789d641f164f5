"""Tests of secrets that stand in files."""

from pathlib import Path

import pytest

from bot.domain.errors import SetupError
from bot.settings import read_settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "DISCORD_TOKEN", "PODIUM_RUNNERS", "PODIUM_WORKER_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_a_secret_may_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "database"
    file.write_text("postgresql://ada:se%20cret@db/podium\n")
    monkeypatch.setenv("DATABASE_URL", "")  # as a compose file has it that leaves it open
    monkeypatch.setenv("DATABASE_URL_FILE", str(file))
    settings = read_settings()
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://ada:se%20cret@db/podium"
    assert {"se%20cret", "se cret"} < set(settings.secrets)


def test_what_is_no_secret_is_read_from_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "runners"
    file.write_text("fake")
    monkeypatch.setenv("PODIUM_RUNNERS_FILE", str(file))
    assert read_settings().runners == ("local",)


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe", b"x" * 5000])
def test_a_file_without_a_secret_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("DISCORD_TOKEN_FILE", str(file))
    with pytest.raises(SetupError, match="DISCORD_TOKEN_FILE"):
        read_settings()


def test_a_secret_is_not_given_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2")
    monkeypatch.setenv("PODIUM_WORKER_TOKEN", "hunter3")
    monkeypatch.setenv("PODIUM_WORKER_TOKEN_FILE", str(tmp_path / "token"))
    with pytest.raises(SetupError, match="both set") as raised:
        read_settings()
    assert "hunter" not in str(raised.value)
