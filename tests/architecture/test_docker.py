"""Holds the images and the compose file to what can be known of them without an engine."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from bot.settings import Settings
from bot.store.locks import judging, ready
from tests.architecture.tree import ROOT

IMAGES = sorted((ROOT / "docker").glob("*.Dockerfile"))
FILES = {path.name: path.read_text(encoding="utf-8") for path in IMAGES}
COMPOSE = yaml.safe_load((ROOT / "docker/compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)
WORKFLOW = (ROOT / ".github/workflows/images.yml").read_text(encoding="utf-8")
WALK = (ROOT / "docker/try.sh").read_text(encoding="utf-8")
GUIDE = "\n".join(
    (ROOT / "docker" / name).read_text(encoding="utf-8") for name in ("README.md", "operations.md")
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "docker/packages.lock").read_text(encoding="utf-8")

_PINNED = re.compile(r"[\w./-]+:\d[\w.-]*@sha256:[0-9a-f]{64}")
_LOCKED = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|DATABASE_URL", re.IGNORECASE)
_COMMAND = re.compile(r"\bpodium ((?:task )?[a-z]+)(?=[` ]|$)", re.MULTILINE)


def steps(image: str) -> list[tuple[str, str]]:
    """The instructions of an image with their arguments, each on one line."""
    lines = [line for line in FILES[image].splitlines() if not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    pairs = (line.split(maxsplit=1) for line in whole.splitlines() if line.strip())
    return [(word.upper(), " ".join(rest.split())) for word, rest in pairs]


def last_stage(image: str) -> list[tuple[str, str]]:
    """The instructions of what is run in the end."""
    found = steps(image)
    begins = [at for at, (word, _) in enumerate(found) if word == "FROM"]
    return found[begins[-1] :]


def bases(image: str) -> Iterator[str]:
    """The images from elsewhere that it is built on or copies from."""
    stages: set[str] = set()
    for word, rest in steps(image):
        copied = re.search(r"--from=(\S+)|(?<![\w-])from=([^, ]+)", rest)
        if word == "FROM":
            base, *name = rest.split(" AS ")
            if base not in stages:
                yield base
            stages.update(name)
        elif copied and (source := copied[1] or copied[2]) not in stages:
            yield source


def copied(image: str) -> Iterator[str]:
    """The paths of the repository that an image copies."""
    for word, rest in steps(image):
        if word == "COPY" and "--from=" not in rest:
            yield from rest.split()[:-1]


def variables(service: str) -> dict[str, str]:
    return dict(SERVICES[service].get("environment", {}))


@pytest.mark.parametrize("image", FILES)
def test_a_base_is_pinned(image: str) -> None:
    found = list(bases(image))
    assert found
    assert not [base for base in found if not _PINNED.fullmatch(base)]


@pytest.mark.parametrize("image", FILES)
def test_no_frontend_is_fetched_for_a_build(image: str) -> None:
    """BuildKit reads such a line, which names an image that nobody pinned, before all others."""
    assert not re.search(r"^#\s*(?:syntax|escape)\s*=", FILES[image], re.MULTILINE | re.IGNORECASE)


def _required(image: str) -> list[Requirement]:
    """What an image asks pip for, of the packages that are not made here."""
    extra = "export" if image == "bot.Dockerfile" else "local"
    meta = PROJECT["project"]
    named = re.findall(r'(?<= )"?([a-z]+(?:==|>=)[^" ]+)', FILES[image].replace("\\\n", " "))
    wanted = [*meta["dependencies"], *meta["optional-dependencies"][extra], *named]
    wanted += PROJECT["build-system"]["requires"]
    return [Requirement(each) for each in wanted if not each.startswith("nvidia")]


@pytest.mark.parametrize("image", FILES)
def test_every_package_of_an_image_is_locked(image: str) -> None:
    locked = {name: Version(version) for name, version in _LOCKED.findall(LOCK)}
    for wanted in _required(image):
        name = re.sub(r"[._]", "-", wanted.name)
        assert locked[name] in wanted.specifier, f"{wanted}: make docker/packages.lock anew"
    installs = re.findall(r"pip install (?:(?!&&).)*", " ".join(rest for _, rest in steps(image)))
    assert all("--constraint" in each or "--no-deps" in each for each in installs)


def test_every_locked_package_has_its_hashes() -> None:
    entries = re.split(r"\n(?=[a-z0-9])", LOCK.strip())
    assert len(entries) > 30
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|^-", LOCK, re.MULTILINE)  # of PyPI alone, whoever installs it


@pytest.mark.parametrize("image", FILES)
def test_an_image_says_what_it_is(image: str) -> None:
    labels = dict(re.findall(r'(org\.opencontainers\.image\.\w+)=("[^"]+"|\S+)', FILES[image]))
    names = {name.rpartition(".")[2] for name in labels}
    assert names == {"title", "description", "licenses", "version", "revision"}
    assert labels["org.opencontainers.image.version"] == PROJECT["project"]["version"]
    assert labels["org.opencontainers.image.licenses"] == PROJECT["project"]["license"]


@pytest.mark.parametrize("image", FILES)
def test_its_folder_is_made_empty(image: str) -> None:
    (made,) = (rest for word, rest in last_stage(image) if word == "RUN" and "useradd" in rest)
    assert "--no-create-home" in made  # which would put the skeleton of a home into it
    assert "install --directory --owner=podium --group=podium --mode=0700 /data" in made


@pytest.mark.parametrize("image", FILES)
def test_an_image_is_run_by_a_user_without_rights(image: str) -> None:
    users = [rest for word, rest in last_stage(image) if word == "USER"]
    assert users
    assert users[-1].split(":")[0] not in {"root", "0"}


@pytest.mark.parametrize("image", FILES)
def test_an_image_says_whether_it_is_healthy(image: str) -> None:
    assert "HEALTHCHECK" in dict(last_stage(image))


@pytest.mark.parametrize("image", FILES)
def test_nothing_comes_from_the_network_unseen(image: str) -> None:
    assert "ADD" not in dict(steps(image))
    assert not re.search(r"\b(?:curl|wget)\b", FILES[image])


@pytest.mark.parametrize("image", FILES)
def test_an_image_holds_no_secret(image: str) -> None:
    set_by_it = [rest for word, rest in steps(image) if word in {"ENV", "ARG"}]
    assert not _SECRET.search(" ".join(set_by_it))


@pytest.mark.parametrize("image", FILES)
def test_what_is_copied_exists_and_is_let_through(image: str) -> None:
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    found = set(copied(image))
    assert found
    assert not [path for path in found if not (ROOT / path).exists()]
    assert not [path for path in found if f"!{path}" not in allowed]


def test_the_context_lets_nothing_else_through() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    needed = {path for image in FILES for path in copied(image)}
    assert {line.removeprefix("!") for line in rules if line.startswith("!")} == needed


def test_the_package_is_made_of_what_is_copied() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    meta = PROJECT["project"]
    needed = {"pyproject.toml", meta["readme"], *meta["license-files"]}
    needed |= {*wheel["packages"], *wheel["force-include"]}
    assert all(needed == set(copied(image)) - {"docker/packages.lock"} for image in FILES)


def test_the_gpu_image_has_the_torch_of_the_local_runner() -> None:
    for requirement in PROJECT["project"]["optional-dependencies"]["local"]:
        if requirement.startswith(("torch", "numpy")):
            assert re.search(rf"[ \"]{re.escape(requirement)}[ \"]", FILES["gpu.Dockerfile"])


def test_only_the_gpu_image_has_torch() -> None:
    assert "torch" not in " ".join(rest for _, rest in steps("bot.Dockerfile"))


@pytest.mark.parametrize("image", FILES)
def test_the_workflow_builds_every_image(image: str) -> None:
    services = [name for name in OURS if SERVICES[name]["build"]["dockerfile"].endswith(image)]
    assert any(re.search(rf"\bcompose build --quiet {name}\b", WALK) for name in services)
    assert "docker/try.sh" in WORKFLOW
    assert f"image: podium-{image.removesuffix('.Dockerfile')}\n" in WORKFLOW  # what it is made of
    assert "docker push" not in WORKFLOW + WALK


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_pinned_or_built_here(service: str) -> None:
    described = SERVICES[service]
    if "build" in described:
        folder = (ROOT / "docker" / described["build"]["context"]).resolve()
        assert folder == ROOT
        assert (folder / described["build"]["dockerfile"]).is_file()
    else:
        assert _PINNED.fullmatch(described["image"])


@pytest.mark.parametrize("service", SERVICES)
def test_what_a_service_needs_says_whether_it_is_healthy(service: str) -> None:
    for needed, how in SERVICES[service].get("depends_on", {}).items():
        waits = "started" if service == "proxy" else "healthy"  # its pages need no Discord
        assert how == {"condition": f"service_{waits}"}
        assert "build" in SERVICES[needed] or "healthcheck" in SERVICES[needed]


@pytest.mark.parametrize("service", SERVICES)
def test_a_secret_is_a_file(service: str) -> None:
    """A variable's value is shown by `docker inspect`."""
    given = set(SERVICES[service].get("secrets", ()))
    for name, value in variables(service).items():
        if _SECRET.search(name):
            assert name.endswith("_FILE"), name
            assert value.rstrip("}").rpartition("/run/secrets/")[2] in given, name
    assert given <= set(COMPOSE["secrets"])


@pytest.mark.parametrize("service", SERVICES)
def test_nobody_reaches_a_service_from_outside_but_the_proxy(service: str) -> None:
    assert ("ports" in SERVICES[service]) is (service == "proxy")


@pytest.mark.parametrize("service", SERVICES)
def test_the_log_of_a_service_does_not_fill_the_disk(service: str) -> None:
    assert {"max-size", "max-file"} <= set(SERVICES[service]["logging"]["options"])


@pytest.mark.parametrize("service", OURS)
def test_events_are_in_the_log_of_the_service(service: str) -> None:
    assert "--log-to-stderr" in SERVICES[service]["command"]


def test_what_submissions_take_of_the_machine_is_limited() -> None:
    worker = SERVICES["worker"]
    assert {"mem_limit", "pids_limit"} <= worker.keys()
    assert worker["read_only"]


def test_every_variable_of_the_compose_file_is_asked_for_or_optional() -> None:
    text = (ROOT / "docker/compose.yaml").read_text(encoding="utf-8")
    asked = set(re.findall(r"\$\{(\w+)", text))
    assert {name for name in asked if re.search(rf"\${{{name}[:?-]", text)} == asked


def test_the_setup_writes_what_the_compose_file_asks_for(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "docker/setup.sh", tmp_path)
    for _ in range(2):
        subprocess.run(["sh", script], check=True)
    secrets = tmp_path / "secrets"
    assert secrets.stat().st_mode & 0o777 == 0o700
    password = (secrets / "postgres_password").read_text(encoding="ascii")
    assert re.fullmatch(r"[0-9a-f]{48}", password)
    url = (secrets / "database_url").read_text(encoding="ascii")
    assert url == f"postgresql://podium:{password}@database/podium"
    assert all(file.stat().st_mode & 0o777 == 0o644 for file in secrets.iterdir())
    written = (tmp_path / ".env").read_text(encoding="ascii")
    assert re.fullmatch(r"PODIUM_WORKER_MEMORY=[1-9]\d*m\n", written)


@pytest.mark.parametrize("path", ["docker/.env", "docker/secrets/postgres_password"])
def test_git_ignores_the_files_of_this_machine(path: str) -> None:
    answer = subprocess.run(["git", "check-ignore", "--quiet", path], cwd=ROOT, check=False)
    assert answer.returncode == 0


@pytest.mark.parametrize("service", OURS)
def test_every_variable_of_ours_is_read_by_somebody(service: str) -> None:
    known = {field.validation_alias for field in Settings.model_fields.values()}
    assert {name.removesuffix("_FILE") for name in variables(service)} <= known


def test_a_token_of_discord_never_reaches_a_machine_that_judges() -> None:
    assert not [name for name in variables("worker") if "DISCORD" in name]


@pytest.mark.parametrize("service", SERVICES)
def test_every_volume_and_network_is_declared(service: str) -> None:
    described = SERVICES[service]
    for volume in described.get("volumes", ()):
        source = volume.split(":")[0]
        assert source in COMPOSE["volumes"] or (ROOT / "docker" / source).exists()
    assert set(described["networks"]) <= set(COMPOSE["networks"])


def test_the_database_outlives_its_container() -> None:
    (volume,) = SERVICES["database"]["volumes"]
    assert volume == "database:/var/lib/postgresql"  # where version 18 and later keep it


def test_without_a_gpu_the_worker_reserves_none() -> None:
    text = (ROOT / "docker/compose.cpu.yaml").read_text(encoding="utf-8")
    assert re.search(r"^services:\n  worker:\n    deploy: !reset null$", text, re.MULTILINE)


def test_one_worker_has_a_gpu() -> None:
    (device,) = SERVICES["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])


def _commands() -> set[str]:
    """Every command of ours that is named here."""
    started = {" ".join(SERVICES[name]["command"]) for name in OURS}
    for image in FILES:
        words = re.findall(r'"([^"]+)"', dict(last_stage(image))["CMD"])
        started.add(" ".join(words))
    return {found for text in (*started, GUIDE, WORKFLOW, WALK) for found in _COMMAND.findall(text)}


def test_the_commands_are_found() -> None:
    assert {"up", "worker", "doctor", "task publish"} <= _commands()


@pytest.mark.parametrize("command", sorted(_commands()))
def test_every_command_named_exists(command: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "bot", *command.split(), "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr


@pytest.mark.skipif(shutil.which("flock") is None, reason="the images' flock is not here")
@pytest.mark.parametrize("image", FILES)
async def test_an_image_is_healthy_while_somebody_is_ready_in_its_folder(
    image: str, tmp_path: Path
) -> None:
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', dict(last_stage(image))["HEALTHCHECK"])
    check = [word.replace('\\"', '"') for word in words]

    def healthy() -> bool:
        environment = {**os.environ, "PODIUM_DATA_DIR": str(tmp_path)}
        return subprocess.run(check, env=environment, check=False).returncode == 0

    assert not healthy()
    async with judging(tmp_path):  # before its runners have answered
        assert not healthy()
        async with ready(tmp_path):
            assert healthy()
    assert not healthy()
    async with ready(tmp_path):
        assert healthy()
