"""Zips from people are refused with the entry and the correct form, or read exactly."""

import contextlib
import io
import stat
import struct
import zipfile
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.errors import UserError
from bot.domain.tasks import bundle as archive
from bot.domain.tasks.bundle import TaskBundle, read_zip, write_zip

GOOD = {"add/task.yml": b"lang: py\n", "add/reference.py": b"x = 1\n"}


def make_zip(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name), content, compression)
    return buffer.getvalue()


def refusal(data: bytes) -> str:
    with pytest.raises(UserError) as caught:
        read_zip(data)
    assert caught.value.code == "bad-zip"
    return caught.value.message


def test_a_task_in_one_folder_is_read() -> None:
    bundle = read_zip(make_zip(GOOD))
    assert dict(bundle.files) == GOOD
    assert bundle.root == "add"


def test_a_task_at_the_top_is_read() -> None:
    assert read_zip(make_zip({"task.yml": b"lang: py\n"})).root == ""


def test_what_macs_and_python_leave_behind_is_ignored() -> None:
    litter = {
        "__MACOSX/add/._task.yml": b"x",
        "add/.DS_Store": b"x",
        "add/__pycache__/a.pyc": b"x",
        "add/._task.yml": b"x",
    }
    assert dict(read_zip(make_zip({**GOOD, **litter})).files) == GOOD


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("/etc/passwd", "absolute"),
        ("C:/task.py", "absolute"),
        ("add/../../x", "'..'"),
        ("add//x", "empty part"),
        ("./x", "'.'"),
        ("add\\x.py", "backslash"),
        ("add/a\nb", "control characters"),
        ("a" * 241, "1 to 240"),
        ("add/inner.zip", "archive inside"),
        ("add/inner.tar.gz", "archive inside"),
    ],
)
def test_a_name_that_is_not_a_plain_path_is_refused(name: str, word: str) -> None:
    assert word in refusal(make_zip({**GOOD, name: b"x"}))


def test_a_nul_in_a_name_is_refused() -> None:
    data = make_zip({**GOOD, "add/evil_.py": b"x"}).replace(b"evil_.py", b"evil\0.py")
    assert "control characters" in refusal(data)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_links_and_special_files_are_refused(kind: int) -> None:
    buffer = io.BytesIO(make_zip(GOOD))
    with zipfile.ZipFile(buffer, "a") as packed:
        entry = zipfile.ZipInfo("add/link")
        entry.external_attr = (kind | 0o644) << 16
        packed.writestr(entry, "/etc/passwd")
    message = refusal(buffer.getvalue())
    assert "add/link" in message
    assert "link or special file" in message


def test_an_encrypted_entry_is_refused() -> None:
    data = bytearray(make_zip(GOOD))
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<H", data, at + 8, 1)
    assert "make the zip without a password" in refusal(bytes(data))


def test_names_that_differ_in_case_only_are_refused() -> None:
    assert "collides with add/Task.py" in refusal(
        make_zip({**GOOD, "add/Task.py": b"1", "add/task.py": b"2"})
    )


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_same_name_twice_is_refused() -> None:
    buffer = io.BytesIO(make_zip(GOOD))
    with zipfile.ZipFile(buffer, "a") as packed:
        packed.writestr("add/task.yml", "again")
    assert "collides" in refusal(buffer.getvalue())


def test_a_file_that_is_also_a_folder_is_refused() -> None:
    assert "which is a file" in refusal(make_zip({**GOOD, "add/a": b"1", "add/a/b": b"2"}))


def test_a_nested_archive_under_another_name_is_refused() -> None:
    assert "archive inside" in refusal(make_zip({**GOOD, "add/data.bin": make_zip(GOOD)}))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_unpacks_without_bound_is_refused_unread(method: int) -> None:
    data = bytearray(make_zip({"add/zeros": bytes(20 << 20)}, method))
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 100)  # it tells a small size
    assert "add/zeros: not compressed with Deflate" in refusal(bytes(data))


def test_a_damaged_lzma_entry_is_refused() -> None:
    data = bytearray(make_zip(GOOD, zipfile.ZIP_LZMA))
    data[data.index(b"add/task.yml") + len("add/task.yml") + 6] ^= 0xFF
    assert "Deflate" in refusal(bytes(data))


@pytest.mark.parametrize("encoding", ["cp437", "utf-8"])
def test_a_name_that_is_not_ascii_is_measured_as_it_is_stored(encoding: str) -> None:
    written = "add/gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n.py".encode(encoding)
    stand_in = "add/" + "x" * (len(written) - 4)
    data = make_zip({stand_in: b"x = 1\n", **GOOD}, zipfile.ZIP_STORED)
    data = data.replace(stand_in.encode(), written)
    if encoding == "utf-8":
        flagged = bytearray(data)
        for mark, field in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            struct.pack_into("<H", flagged, flagged.index(mark) + field, 0x800)
        data = bytes(flagged)
    assert read_zip(data).files["add/gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n.py"] == b"x = 1\n"


def test_a_task_at_the_top_is_called_as_its_zip_is() -> None:
    data = make_zip({"task.yml": b"lang: py\n"})
    assert read_zip(data, name="vectoradd").name == "vectoradd"
    assert read_zip(make_zip(GOOD), name="other").name == "add"


def test_a_bomb_is_refused_by_its_ratio() -> None:
    assert "times its packed size" in refusal(make_zip({**GOOD, "add/zeros": bytes(1 << 20)}))


def test_too_much_in_all_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED", 1000)
    files = {**GOOD, "add/a": b"a" * 600, "add/b": b"b" * 600}
    assert "add/b: the zip unpacks to more than 1,000 bytes" in refusal(make_zip(files))


def test_one_entry_larger_than_everything_allowed_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED", 1000)
    assert "1,001 bytes unpacked" in refusal(make_zip({**GOOD, "add/a": b"a" * 1001}))


@pytest.mark.parametrize("told", [10, 6000])
def test_an_entry_that_lies_about_its_size_is_refused(told: int) -> None:
    data = bytearray(make_zip({**GOOD, "add/liar": b"a" * 5000}, zipfile.ZIP_DEFLATED))
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, told)
    assert "add/liar" in refusal(bytes(data))


def test_entries_that_share_bytes_are_refused() -> None:
    data = bytearray(make_zip({**GOOD, "add/other_file.py": b"x = 2\n"}, zipfile.ZIP_STORED))
    first, second = data.index(b"PK\x01\x02"), data.rindex(b"PK\x01\x02")
    assert first != second
    offset = struct.unpack_from("<I", data, first + 42)[0]
    struct.pack_into("<I", data, second + 42, offset)
    assert "overlaps" in refusal(bytes(data))


def test_too_many_entries_are_refused() -> None:
    files = {**GOOD, **{f"add/f{i}": b"" for i in range(1000)}}
    assert "1002 entries" in refusal(make_zip(files, zipfile.ZIP_STORED))


def test_a_zip_above_the_limit_is_refused_unread() -> None:
    assert "at most" in refusal(bytes((10 << 20) + 1))


def test_a_damaged_entry_is_refused_by_name() -> None:
    data = bytearray(make_zip({**GOOD, "add/z.py": b"value = 12345\n"}, zipfile.ZIP_STORED))
    at = data.index(b"value = 12345")
    data[at] ^= 0xFF
    assert "add/z.py: damaged" in refusal(bytes(data))


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x03\x04 torn", make_zip(GOOD)[:-30]])
def test_what_is_no_zip_is_refused_with_the_form(data: bytes) -> None:
    assert "task.yml" in refusal(data)


def test_a_zip_without_a_task_is_refused() -> None:
    assert "no task.yml" in refusal(make_zip({"add/reference.py": b""}))


def test_a_zip_with_two_tasks_is_refused() -> None:
    assert "second task.yml" in refusal(make_zip({**GOOD, "sub/task.yml": b""}))


def test_a_task_may_lie_in_the_folders_of_its_set() -> None:
    bundle = read_zip(make_zip({"a/b/task.yml": b"", "c/utils.py": b"u"}), name="zip")
    assert (bundle.root, bundle.name) == ("a/b", "b")
    assert bundle.text("../../c/utils.py") == "u"


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_any_damage_gives_a_bundle_or_a_refusal(tail: bytes, at: int, value: int) -> None:
    data = bytearray(make_zip(GOOD) + tail)
    data[at % len(data)] = value
    with contextlib.suppress(UserError):
        assert "task.yml" in " ".join(read_zip(bytes(data)).files)


@pytest.mark.parametrize("root", ["", "add", "set/add"])
def test_a_bundle_is_the_same_after_its_way_through_a_zip(root: str) -> None:
    folder = f"{root}/" if root else ""
    files = {f"{folder}task.yml": b"tests: []", f"{folder}zeros.bin": bytes(1 << 20), "é.py": b"x"}
    bundle = TaskBundle(files, root, "add")
    assert read_zip(write_zip(bundle), name="add") == bundle
