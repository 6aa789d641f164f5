"""A competition from its zip to its export, over HTTP, with real processes."""

import csv
import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from bot.domain.tasks.scaffold import scaffold
from tests.doubles.task_zips import zipped
from tests.e2e.command import Podium, fresh, served_at

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(200)]

WITHIN_S = 60
TEXT = """\
name: Cup
ranks: [25, 18]
late_runs: true
opens: {opens}
problems:
  - {{directory: double, name: first, gpus: [CPU]}}
  - {{directory: triple, name: second, gpus: [CPU], deadline: 2099-06-30}}
"""


@pytest.fixture(scope="module")
def podium() -> Iterator[Podium]:
    with fresh() as podium:
        yield podium


@pytest.fixture(scope="module")
def url(podium: Podium) -> Iterator[str]:
    with served_at(podium) as url:
        yield url


@pytest.fixture(scope="module")
def ada(podium: Podium, url: str) -> Iterator[httpx.Client]:
    with as_person(podium, url, "ada", "--admin") as client:
        yield client


def as_person(podium: Podium, url: str, name: str, *more: str) -> httpx.Client:
    made = podium("token", "create", "--person", name, *more)
    assert made.returncode == 0, made.stderr
    headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
    return httpx.Client(base_url=f"{url.rstrip('/')}/api/v1", headers=headers, timeout=30)


def zip_of(opens: str) -> bytes:
    """Tasks whose one correct solution is not run, so that the fake runner lets them pass."""
    files = {"cup.yaml": TEXT.format(opens=opens)}
    sound = {
        "solutions/correct/torch_add.py": "#!PODIUM needs mojo\n",
        "solutions/wrong/almost_two.py": "#!PODIUM expect wrong_answer\n"
        "# fake: verdict=wrong_answer\n",
    }
    for name in ("double", "triple"):
        files |= {f"{name}/{file}": text for file, text in (scaffold(name) | sound).items()}
    return zipped(files)


def until(found: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is found
    """What is found in time."""
    end = time.monotonic() + WITHIN_S
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return value


def publish(ada: httpx.Client, opens: str) -> dict[str, Any]:
    answer = ada.post("/competitions", files={"competition_zip": ("cup.zip", zip_of(opens))})
    assert answer.status_code == 202, answer.text
    path = answer.headers["location"].removeprefix("/api/v1")

    def ended() -> dict[str, Any] | None:
        check: dict[str, Any] = ada.get(path).json()
        return check if check["state"] in {"published", "refused"} else None

    check = until(ended)
    assert check["state"] == "published", check
    return dict(check)


def order(board: str, directive: str, mode: str = "ranked") -> dict[str, str]:
    source = f"# fake: {directive}\ndef custom_kernel(data): ...\n"
    return {"file_name": "k.py", "source": source, "mode": mode, "board": board}


def ranked(client: httpx.Client, board: str, time_us: int) -> None:
    made = client.post("/submissions", json=order(board, f"time_us={time_us}"))
    assert made.status_code == 201, made.text
    path = f"/submissions/{made.json()['id']}"
    until(lambda: client.get(path).json()["state"] == "finished")


def test_a_competition_is_created_opened_ranked_closed_and_exported(
    podium: Podium, url: str, ada: httpx.Client
) -> None:
    with as_person(podium, url, "bob") as bob, as_person(podium, url, "eve") as eve:
        published = publish(ada, "2098-01-01 09:00")
        assert [each["change"] for each in published["boards"]] == ["created", "created"]
        seen = bob.get("/competitions/Cup").json()
        assert (seen["state"], seen["opens_at"]) == ("upcoming", "2098-01-01T09:00:00Z")
        assert (seen["boards"], seen["entries"]) == ([], [])
        early = bob.post("/submissions", json=order("first", "time_us=10"))
        assert (early.status_code, early.json()["code"]) == (409, "not-open")
        assert "opens at 2098-01-01 09:00 UTC" in early.json()["detail"]

        opened = publish(ada, "2020-01-01")
        assert [each["change"] for each in opened["boards"]] == ["configured", "configured"]
        ranked(bob, "first", 10)
        ranked(eve, "first", 20)
        ranked(eve, "second", 10)
        found = bob.get("/competitions/Cup").json()
        assert [(each["person"], each["total"]) for each in found["entries"]] == [
            ("eve", 43.0),
            ("bob", 25.0),
        ]

        assert bob.post("/competitions/Cup/close").status_code == 403
        assert ada.post("/competitions/Cup/close").status_code == 200
        until(lambda: bob.get("/competitions/Cup").json()["state"] == "closed")
        late = bob.post("/submissions", json=order("first", "time_us=1"))
        assert late.json()["code"] == "closed"
        assert bob.post("/submissions", json=order("first", "time_us=1", "test")).status_code == 201

        kinds = [
            json.loads(line)["kind"]
            for line in ada.get("/competitions/Cup/export").text.splitlines()
        ]
        assert (kinds[0], kinds.count("board"), kinds[-1]) == ("competition", 2, "end")


def test_the_same_competition_is_shown_and_exported_on_the_machine(
    podium: Podium, ada: httpx.Client
) -> None:
    shown = podium("competition", "show", "Cup")
    assert "overall ranking" in shown.stdout
    out = podium.folder / "exported"
    exported = podium("competition", "export", "Cup", "--out", out, "--format", "csv")
    assert exported.returncode == 0, exported.stderr
    rows = list(csv.DictReader(io.StringIO((out / "overall.csv").read_text())))
    assert [(each["rank"], each["person"], each["total"]) for each in rows] == [
        ("1", "eve", "43.0"),
        ("2", "bob", "25.0"),
    ]
    assert (out / "second" / "results.csv").is_file()
    assert ada.get("/competitions/Cup", params={"format": "csv"}).text.startswith("rank,person")
