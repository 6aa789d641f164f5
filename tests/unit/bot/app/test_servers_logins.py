"""Tests of the file of the logins."""

import threading
from pathlib import Path

import pytest

from bot.app.servers import Credentials, Login
from bot.domain.errors import SetupError, UserError

HERE, THERE = "https://here.test", "https://there.test"
SECRET, OTHER = "podium_hunter2", "podium_other"
ADA = Login(token=SECRET, name="Ada")
KEN = Login(token=OTHER, name="Ken", plain_http=True)


def credentials(folder: Path) -> Credentials:
    return Credentials(folder / "config" / "podium" / "credentials.json")


def test_the_latest_login_is_the_one_that_commands_go_to(tmp_path: Path) -> None:
    kept = credentials(tmp_path)
    assert kept.read().default is None
    kept.store(HERE, ADA)
    kept.store(THERE, KEN)
    found = kept.read()
    assert found.default == THERE
    assert found.servers == {HERE: ADA, THERE: KEN}
    assert kept.remove(None) == (THERE, found.servers[THERE])
    assert (kept.read().default, list(kept.read().servers)) == (None, [HERE])
    assert kept.remove(HERE) == (HERE, ADA)


def test_a_login_elsewhere_may_go_without_the_one_in_use(tmp_path: Path) -> None:
    kept = credentials(tmp_path)
    kept.store(HERE, ADA)
    kept.store(THERE, ADA)
    kept.remove(HERE)
    assert kept.read().default == THERE


def test_only_its_owner_may_read_it_and_nothing_else_is_left(tmp_path: Path) -> None:
    kept = credentials(tmp_path)
    kept.store(HERE, ADA)
    kept.store(HERE, ADA)
    assert kept.path.stat().st_mode & 0o777 == 0o600
    assert kept.path.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in kept.path.parent.iterdir()] == ["credentials.json"]
    assert "hunter2" not in repr(ADA)


def test_a_file_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    kept = credentials(tmp_path)
    kept.store(HERE, ADA)
    kept.path.chmod(0o644)
    with pytest.raises(UserError, match="chmod 600"):
        kept.read()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"servers": {"x": {"token": 5}}}'])
def test_a_spoilt_file_is_said_without_its_tokens(tmp_path: Path, text: str) -> None:
    kept = credentials(tmp_path)
    kept.store(HERE, ADA)
    kept.path.write_text(text)
    with pytest.raises(UserError, match="delete it and sign in again") as refused:
        kept.read()
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("url", [None, THERE])
def test_who_is_not_signed_in_cannot_sign_out(tmp_path: Path, url: str | None) -> None:
    with pytest.raises(UserError, match="you are signed in to: none"):
        credentials(tmp_path).remove(url)


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file")
    with pytest.raises(SetupError, match="cannot be used"):
        credentials(tmp_path).store(HERE, ADA)


def test_logins_at_once_are_all_kept(tmp_path: Path) -> None:
    kept = credentials(tmp_path)
    urls = [f"https://{number}.test" for number in range(8)]
    threads = [threading.Thread(target=kept.store, args=(url, ADA)) for url in urls]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(kept.read().servers) == urls
