"""Files that are no submission and tasks that are none: the message, and exit code 2."""

import io
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from tests.e2e.command import IDENTITY, Podium, json_refusal, refusal

TASK_YML = (IDENTITY / "task.yml").read_text(encoding="utf-8")
TESTS = TASK_YML[TASK_YML.index("tests:") : TASK_YML.index("benchmarks:")]
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
Entry = tuple[str | zipfile.ZipInfo, bytes]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.py", None, "absent.py: there is no such file; check its path"),
        ("a\x1b[31mb.py", None, "ab.py: there is no such file"),
        (".", None, "is a folder; name a file in it"),
        ("latin.py", b"x = 1\n# \xff", "line 2 of the file is not UTF-8; save it as UTF-8"),
        ("nul.py", b"x = 1\0", "NUL bytes; submit a text source file"),
        ("empty.py", b"", "the file is empty"),
        ("blank.py", b" \n\n", "the file is empty"),
        ("big.py", b"#" * 10_000_000, "10,000,000 bytes; at most 1,000,000"),
        ("heading.py", b"#!POPCORN leaderbord sort\n", "line 1 of the header: unknown key"),
        ("half.py", b"# hello\n#!POPCORN\n", "line 2 of the header: #!POPCORN needs a key"),
    ],
)
def test_a_file_that_is_no_submission(
    podium: Podium, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (podium.folder / name).write_bytes(content)
    assert words in refusal(podium("judge", IDENTITY, name), 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--gpu", "H9000"), "no GPU type named 'H9000'; available: CPU"),
        (("--mode", "fast"), "'test', 'benchmark', 'profile', 'ranked'; see `podium judge --help`"),
        (("--rounds", "0"), "greater than or equal to 1; see `podium judge --help`"),
        (("--jsn",), "No such option: --jsn (Possible options: --json)"),
    ],
)
def test_a_wrong_option(podium: Podium, arguments: tuple[str, ...], words: str) -> None:
    assert words in refusal(podium("judge", IDENTITY, "kernel.py", *arguments), 2)


def test_an_unknown_command(podium: Podium) -> None:
    assert "Did you mean 'judge'?" in refusal(podium("jugde"), 2)


def test_a_refusal_as_json_stands_alone_on_stdout(podium: Podium) -> None:
    code, message = json_refusal(podium("judge", IDENTITY, "absent.py", "--json"), 2)
    assert code == "no-such-file"
    assert "absent.py" in message
    code, _ = json_refusal(podium("judge", IDENTITY, "kernel.py", "--mode", "fast", "--json"), 2)
    assert code == "usage"


def _task(podium: Podium, text: str) -> Path:
    """The identity task with another task.yml."""
    folder = podium.folder / "tasks" / "identity"
    shutil.rmtree(folder.parent, ignore_errors=True)
    shutil.copytree(IDENTITY, folder)
    shutil.copy(IDENTITY.parent / "utils.py", folder.parent)
    (folder / "task.yml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{TASK_YML}colour: red\n", "task.yml:30: unknown key 'colour'; the keys are: bench"),
        (TASK_YML.replace("template.py", "temp.py"), "temp.py: there is no such file"),
        (TASK_YML.replace(TESTS, "tests: []\n"), "task.yml:17: 'tests' is empty"),
        (TASK_YML.replace(TESTS, ""), "'tests' is empty"),
        (BOMB + TASK_YML, "too many values, or nested too deeply; simplify the file"),
        ("a: " + "[" * 3000, "nested too deeply"),
        (f"{TASK_YML}  foo: [1,\n", "task.yml:30: not YAML"),
        (f"{TASK_YML}lang: py\n", "the key 'lang' appears twice (first in line 6)"),
        (TASK_YML.replace("timeout: 5", "timeout: soon"), "task.yml:25: test_timeout: must be"),
        (TASK_YML.replace("lang: py", "lang: cobol"), "task.yml:6: lang: must be 'py'"),
        (f"{TASK_YML}x: !!python/name:os.system\n", "this value is not plain YAML"),
        (TASK_YML.replace("source: task.py", "source: ../../../x"), "is outside the task"),
        (f'{TASK_YML}"\\e[31mred": 1\n', r"unknown key '\x1b[31mred'"),
    ],
)
def test_a_task_that_is_none(podium: Podium, text: str, words: str) -> None:
    assert words in refusal(podium("judge", _task(podium, text), "kernel.py"), 2)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("no/where", "no such folder or zip; name a task's folder"),
        ("kernel.py", "neither a task's folder nor a file that ends in .zip"),
        (IDENTITY.parent / "identty", "are grayscale, histogram, identity"),
        (IDENTITY.parent, "no task.yml in this folder; the tasks in"),
        ("nowhere.zip", "cannot be read (No such file or directory)"),
    ],
)
def test_a_place_without_a_task(podium: Podium, place: str | Path, words: str) -> None:
    assert words in refusal(podium("judge", place, "kernel.py"), 2)


def _zip(*more: Entry) -> bytes:
    """The identity task as a zip, with more entries."""
    stream = io.BytesIO()
    own = [
        (f"identity/{name}", (IDENTITY / name).read_bytes())
        for name in ("task.yml", "task.py", "reference.py", "template.py")
    ]
    shared = ("utils.py", (IDENTITY.parent / "utils.py").read_bytes())
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (*own, shared, *more):
            archive.writestr(name, content)
    return stream.getvalue()


def _link() -> bytes:
    entry = zipfile.ZipInfo("identity/link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return _zip((entry, b"/etc/passwd"))


def _locked() -> bytes:
    data = bytearray(_zip())
    data[6] |= 1
    data[data.find(b"PK\1\2") + 8] |= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"this is no zip", "bad.zip: this is not a readable zip"),
        (b"", "not a readable zip"),
        (_zip()[:500], "not a readable zip"),
        (b"PK\3\4" + bytes(11 << 20), "11,534,340 bytes; at most 10,485,760 are allowed"),
        (_zip(("identity/../../evil", b"")), "use paths inside the task's folder"),
        (_zip(("/etc/passwd", b"")), "an absolute path"),
        (_zip(("identity/e\x1b[31mvil", b"")), "control characters in the name"),
        (_zip(("identity/in.zip", b"")), "an archive inside the zip; unpack it first"),
        (_zip(("identity/in.dat", b"PK\3\4")), "an archive inside the zip; unpack it first"),
        (_zip(("identity/big", bytes(40_000_000))), "40,000,000 bytes unpacked; at most"),
        (_zip(("identity/dense", bytes(4_000_000))), "more than 200 times its packed size"),
        (_zip(*((f"identity/f{n}", b"") for n in range(1001))), "1006 entries; at most 1000"),
        (_zip(("identity/TASK.yml", b"")), "collides with identity/task.yml"),
        (_zip(("other/task.yml", b"")), "a second task.yml in addition to identity/task.yml"),
        (_link(), "a link or special file; put the file itself into the zip"),
        (_locked(), "encrypted; make the zip without a password"),
    ],
    ids=lambda value: value if isinstance(value, str) else "zip",
)
def test_a_bad_zip(podium: Podium, data: bytes, words: str) -> None:
    (podium.folder / "bad.zip").write_bytes(data)
    message = refusal(podium("judge", "bad.zip", "kernel.py"), 2)
    assert message.startswith("bad.zip: ")
    assert words in message


def test_a_good_zip_is_taken(podium: Podium) -> None:
    (podium.folder / "good.zip").write_bytes(_zip())
    assert podium("judge", "good.zip", "kernel.py").returncode == 0
