import fcntl
import io
import mmap
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.contract.evaluation import Limits
from runners.harness.protocol.builds import FOLDER, Builds, adopt, environment, pack, unpack

SIZE = 1 << 20
WHEN = 1_700_000_000_123_456_789
MANY = 200


@pytest.fixture
def builds() -> Iterator[Builds]:
    made = Builds(SIZE)
    yield made
    made.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the first candidate compiled."""
    return tmp_path / "first"


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The home of a later candidate."""
    (tmp_path / "later").mkdir()
    return tmp_path / "later"


def compiled(home: Path, name: str, content: bytes = b"code") -> Path:
    path = home / FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def found(home: Path) -> dict[str, bytes]:
    files = (path for path in home.rglob("*") if path.is_file())
    return {str(path.relative_to(home)): path.read_bytes() for path in files}


def test_every_compiler_keeps_its_files_beneath_the_one_folder() -> None:
    folders = [value for name, value in environment(Path("/job")).items() if "/" in value]

    assert len(set(folders)) == len(folders) == 4
    assert all(Path(folder).is_relative_to(f"/job/{FOLDER}") for folder in folders)


def test_compiling_needs_a_part_of_the_processes_that_a_candidate_may_have() -> None:
    workers = int(environment(Path("/job"))["TORCHINDUCTOR_COMPILE_THREADS"])
    assert 1 <= workers <= Limits().processes // 16


def test_a_later_candidate_finds_what_was_compiled_with_its_very_times(
    builds: Builds, home: Path, later: Path
) -> None:
    names = ["extensions/sort/sort.so", "extensions/sort/.ninja_log", "triton/" + "n" * 150]
    for step, name in enumerate(names):
        path = compiled(home, name, name.encode() * (step + 1))
        os.utime(path, ns=(WHEN + step, WHEN + step))
    (home / FOLDER / names[0]).chmod(0o755)
    (home / "submission.py").write_text("is laid out by itself")

    pack(home, builds.fd)
    builds.seal()
    unpack(builds.fd, later)

    assert found(later) == {
        f"{FOLDER}/{name}": name.encode() * step for step, name in enumerate(names, 1)
    }
    told = [(later / FOLDER / name).stat() for name in names]
    assert [each.st_mtime_ns for each in told] == [WHEN, WHEN + 1, WHEN + 2]
    assert stat.S_IMODE(told[0].st_mode) & 0o100


def test_links_and_all_that_is_no_file_are_left_out(
    builds: Builds, home: Path, later: Path
) -> None:
    real = compiled(home, "real")
    (home / FOLDER / "link").symlink_to(real)
    (home / FOLDER / "folder").symlink_to("/etc")
    (home / FOLDER / "dangling").symlink_to("/nowhere")
    os.mkfifo(home / FOLDER / "pipe")

    pack(home, builds.fd)
    unpack(builds.fd, later)

    assert found(later) == {f"{FOLDER}/real": b"code"}


def test_a_submission_that_compiles_nothing_leaves_nothing(
    builds: Builds, home: Path, later: Path
) -> None:
    pack(home, builds.fd)
    unpack(builds.fd, later)

    assert list(later.iterdir()) == []


def test_what_is_too_much_to_hold_is_not_packed(builds: Builds, home: Path) -> None:
    compiled(home, "large", bytes(SIZE))

    with pytest.raises(OSError, match="not permitted"):
        pack(home, builds.fd)

    assert os.fstat(builds.fd).st_size == SIZE


def test_a_sealed_file_cannot_be_written_resized_or_unsealed(builds: Builds) -> None:
    os.pwrite(builds.fd, b"kept", 0)
    builds.packed = True

    assert builds.seal()

    for attempt in (
        lambda: os.pwrite(builds.fd, b"x", 0),
        lambda: os.ftruncate(builds.fd, 0),
        lambda: fcntl.fcntl(builds.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE),
    ):
        with pytest.raises(PermissionError):
            attempt()
    assert (os.pread(builds.fd, 4, 0), builds.packed) == (b"kept", True)


@pytest.mark.parametrize("packed", [True, False])
def test_a_later_candidate_keeps_no_file_that_all_others_share(
    builds: Builds, home: Path, later: Path, *, packed: bool
) -> None:
    """They would share its position, times and mode, which seals do not protect."""
    compiled(home, "code")
    pack(home, builds.fd)
    builds.seal()
    fd = os.dup(builds.fd)

    adopt(fd, later, packed=packed)

    assert found(later) == ({f"{FOLDER}/code": b"code"} if packed else {})
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_the_first_candidate_keeps_its_file_to_pack(
    builds: Builds, home: Path, later: Path
) -> None:
    adopt(builds.fd, home, packed=False)
    compiled(home, "code")

    pack(home, builds.fd)

    unpack(builds.fd, later)
    assert found(later) == {f"{FOLDER}/code": b"code"}


def test_what_somebody_can_still_write_is_thrown_away_and_what_replaces_it_is_sealed(
    builds: Builds,
) -> None:
    builds.packed = True
    with mmap.mmap(builds.fd, SIZE) as mapped:
        mapped[:6] = b"public"
        assert not builds.seal()
        mapped[:6] = b"secret"

    assert (os.pread(builds.fd, 6, 0), builds.packed) == (bytes(6), False)
    with pytest.raises(PermissionError):
        os.pwrite(builds.fd, b"secret", 0)


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as made:
        for entry, content in entries:
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    return held.getvalue()


def entry(name: str, **values: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for key, value in values.items():
        setattr(made, key, value)
    return made


GOOD = (entry(f"{FOLDER}/good"), b"good")
HOSTILE: dict[str, Callable[[Path], tuple[tarfile.TarInfo, bytes]]] = {
    "a way up": lambda outside: (entry(f"../{outside.name}"), b"evil"),
    "a link out": lambda outside: (
        entry("out", type=tarfile.SYMTYPE, linkname=str(outside)), b"",
    ),
    "a hard link out": lambda outside: (
        entry("out", type=tarfile.LNKTYPE, linkname=f"../{outside.name}"), b"",
    ),
    "a hard link to nothing": lambda _: (
        entry("out", type=tarfile.LNKTYPE, linkname="nothing"), b"",
    ),
    "a device": lambda _: (entry("device", type=tarfile.CHRTYPE, devmajor=1, devminor=3), b""),
    "no number as its time": lambda _: (
        entry("timed", pax_headers={"PODIUM.mtime_ns": "soon"}), b"",
    ),
    "a time beyond all time": lambda _: (
        entry("timed", pax_headers={"PODIUM.mtime_ns": "9" * 40}), b"",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_reaches_nothing_outside_and_ends_at_its_first_such_part(
    builds: Builds, tmp_path: Path, later: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched")
    os.utime(outside, ns=(WHEN, WHEN))
    content = archive(GOOD, HOSTILE[name](outside), (entry(f"{FOLDER}/after"), b"after"))
    os.pwrite(builds.fd, content, 0)

    with pytest.raises((OSError, tarfile.TarError, ValueError, KeyError, OverflowError)):
        unpack(builds.fd, later)

    assert (outside.read_bytes(), outside.stat().st_mtime_ns) == (b"untouched", WHEN)
    assert set(tmp_path.iterdir()) == {outside, later}
    assert found(later).get(f"{FOLDER}/good") == b"good"
    assert f"{FOLDER}/after" not in found(later)


def test_an_absolute_path_leads_into_the_home(builds: Builds, tmp_path: Path, later: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"untouched")
    os.utime(outside, ns=(WHEN, WHEN))
    os.pwrite(builds.fd, archive((entry(str(outside)), b"inside")), 0)

    unpack(builds.fd, later)

    assert (outside.read_bytes(), outside.stat().st_mtime_ns) == (b"untouched", WHEN)
    assert found(later) == {str(outside).lstrip("/"): b"inside"}


@pytest.mark.parametrize("content", [b"\xff" * 4096, b"x"], ids=["garbage", "a byte"])
def test_what_is_no_archive_lays_out_nothing(builds: Builds, later: Path, content: bytes) -> None:
    os.pwrite(builds.fd, content, 0)

    with pytest.raises(tarfile.TarError):
        unpack(builds.fd, later)

    assert found(later) == {}


def test_two_that_unpack_at_once_from_one_descriptor_do_not_disturb_each_other(
    builds: Builds, home: Path, tmp_path: Path
) -> None:
    for number in range(MANY):
        compiled(home, f"part{number}", f"content {number}".encode() * 100)
    pack(home, builds.fd)
    homes = [tmp_path / name for name in ("left", "right")]

    children = []
    for each in homes:
        each.mkdir()
        if (child := os.fork()) == 0:  # with the very file position of the other one
            try:
                unpack(builds.fd, each)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)

    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert [found(each) == found(home) for each in homes] == [True, True]
    assert len(found(home)) == MANY
