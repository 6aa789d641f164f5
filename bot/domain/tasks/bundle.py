"""A task's files, in a folder or a zip, and the solutions among them."""

import io
import posixpath
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.acceptance import MAX_SOURCE_BYTES, parse_header, suffixes
from bot.domain.errors import UserError
from runners.contract.verdict import Verdict

TASK_FILE = "task.yml"
"""The file that makes a folder a task."""
_PACK_HINT = (
    "`podium task pack DIR` creates a zip that includes the files from outside the task's folder"
)


@dataclass(frozen=True, slots=True)
class TaskBundle:
    """Files by POSIX path; `root` is the task's folder, empty for the top level.

    `name` is the task's default name; if empty, the folder's.
    """

    files: Mapping[str, bytes]
    root: str = ""
    name: str = ""

    def locate(self, source: str) -> str:
        """Return the path in the bundle of a file, given relative to the task's folder.

        UserError if it is outside the bundle.
        """
        path = posixpath.normpath(posixpath.join(self.root, source))
        outside = path.startswith(("../", "/")) or path == ".."
        if outside or "\\" in source or "\0" in source:
            raise UserError("bad-task", f"{source!r} is outside the task's folder; {_PACK_HINT}")
        return path

    def text(self, source: str) -> str:
        """Return the UTF-8 text of a file, given relative to the task's folder."""
        path = self.locate(source)
        data = self.files.get(path)
        if data is None:
            if _is_below(path, self.root):
                raise UserError("bad-task", f"{path}: there is no such file")
            raise UserError("bad-task", f"{source}: there is no such file; {_PACK_HINT}")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise UserError("bad-task", f"{path}:{line}: this is not UTF-8 text") from error

    def under(self, folder: str) -> tuple[str, ...]:
        """Return the names of the files directly in `folder` of the task, sorted."""
        prefix = posixpath.join(self.root, folder) + "/"
        names = (path.removeprefix(prefix) for path in self.files if path.startswith(prefix))
        return tuple(sorted(name for name in names if "/" not in name))


def _is_below(path: str, root: str) -> bool:
    return not root or path.startswith(f"{root}/")


MOST_SOLUTIONS = 100
_EXPECTED = {"correct": Verdict.PASSED, "wrong": Verdict.WRONG_ANSWER}


@dataclass(frozen=True, slots=True)
class Solution:
    """A shipped submission; `name` is its path in the task, `needs` what it requires."""

    name: str
    source: str
    expect: Verdict
    needs: tuple[str, ...] = ()


def solutions(bundle: TaskBundle) -> tuple[Solution, ...]:
    """Return the files of solutions/correct and solutions/wrong, by name, correct ones first.

    UserError for an invalid one, and for too many: the check runs each on every GPU type.
    """
    found = [
        (f"solutions/{kind}/{name}", expected)
        for kind, expected in _EXPECTED.items()
        for name in bundle.under(f"solutions/{kind}")
        if name.endswith(suffixes())
    ]
    if len(found) > MOST_SOLUTIONS:
        where = bundle.locate("solutions")
        raise UserError("bad-task", f"{where}: at most {MOST_SOLUTIONS} solutions are allowed")
    return tuple(_solution(bundle, name, expected) for name, expected in found)


def _solution(bundle: TaskBundle, name: str, expected: Verdict) -> Solution:
    source = bundle.text(name)
    if len(source) > MAX_SOURCE_BYTES:
        where = bundle.locate(name)
        raise UserError(
            "bad-task", f"{where}: a submission may have at most {MAX_SOURCE_BYTES:,} bytes"
        )
    try:
        header = parse_header(source)
        verdict = expected if header.expect is None else Verdict(header.expect)
    except UserError as error:
        raise UserError(error.code, f"{bundle.locate(name)}: {error.message}") from error
    if (verdict is Verdict.PASSED) != (expected is Verdict.PASSED):
        raise UserError(
            "bad-heading",
            f"{bundle.locate(name)}: expects {verdict.value!r}; put a solution that passes under "
            "solutions/correct, any other under solutions/wrong",
        )
    return Solution(name, source, verdict, header.needs)


MAX_PACKED = 10 << 20
MAX_UNPACKED = 32 << 20
MAX_ENTRIES = 1_000
MAX_RATIO = 200
"""The maximum ratio of unpacked to packed bytes of an entry, above 64 KiB."""
_ALWAYS_SMALL = 64 << 10
MAX_NAME = 240
METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""The compressions that Python can stop unpacking at a limit, unlike bz2 and LZMA."""

_NESTED = re.compile(r"\.(zip|tar|tgz|gz|bz2|xz|7z|rar|zst|whl|jar)$", re.IGNORECASE)
_IGNORED = re.compile(r"(^|/)(__MACOSX/|__pycache__/|\.DS_Store$|Thumbs\.db$|\._[^/]*$)")
_LAYOUT = "a task zip contains one folder with task.yml in it, as `podium task pack DIR` creates it"
_UTF8 = 0x800
"""The flag of an entry with a UTF-8 name; other names are in code page 437."""


def _refusal(name: str, message: str) -> UserError:
    return UserError("bad-zip", f"{name[:MAX_NAME]}: {message}" if name else message)


def read_zip(data: bytes, *, name: str = "") -> TaskBundle:
    """Return the bundle in a zip; UserError `bad-zip` names the entry and the correct form.

    `name` is the zip's file name without its suffix; a task at the top level of the zip gets it.
    """
    files = read_files(data)
    root = _root(files)
    return TaskBundle(files, root, posixpath.basename(root) or name)


def read_files(data: bytes) -> dict[str, bytes]:
    """Return the files in a zip, by path; UserError `bad-zip` names the entry and why."""
    if len(data) > MAX_PACKED:
        raise _refusal("", f"the zip has {len(data):,} bytes; at most {MAX_PACKED:,} are allowed")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read_entries(archive)
    except (zipfile.BadZipFile, EOFError, ValueError, OSError, NotImplementedError) as error:
        raise _refusal("", f"this is not a readable zip ({error}); {_LAYOUT}") from error


def write_zip(bundle: TaskBundle) -> bytes:
    """Return a zip that `read_zip` accepts, if the bundle's own files allow it."""
    return write_files(bundle.files)


def write_files(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of these files that `read_files` accepts, if they are within its limits."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content, _compression(content))
    return buffer.getvalue()


def _compression(content: bytes) -> int:
    """Return Deflate, or no compression for content that would exceed the maximum ratio."""
    small = len(content) <= _ALWAYS_SMALL
    deflatable = small or len(content) <= MAX_RATIO * len(zlib.compress(content)) // 2
    return zipfile.ZIP_DEFLATED if deflatable else zipfile.ZIP_STORED


def _read_entries(archive: zipfile.ZipFile) -> dict[str, bytes]:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise _refusal("", f"the zip has {len(entries)} entries; at most {MAX_ENTRIES} are allowed")
    for entry in entries:
        _require_safe(entry)
    _require_no_overlap(entries)
    wanted = [e for e in entries if not e.is_dir() and not _IGNORED.search(e.filename)]
    _require_distinct([entry.filename for entry in wanted])
    files: dict[str, bytes] = {}
    bytes_left = MAX_UNPACKED
    for entry in wanted:
        content = _read_entry(archive, entry, bytes_left)
        files[entry.filename] = content
        bytes_left -= len(content)
    return files


def _require_safe(entry: zipfile.ZipInfo) -> None:
    # `filename` is cut at NUL and has its separators replaced; the original is what was sent.
    name = entry.orig_filename
    message = _name_fault(name) or _kind_fault(entry)
    if message:
        raise _refusal(name.replace("\0", "\\0"), message)


def _name_fault(name: str) -> str:
    parts = name.rstrip("/").split("/")
    absolute = name.startswith("/") or re.match(r"[A-Za-z]:", name) is not None
    outside = any(part in ("", ".", "..") for part in parts)
    faults = (
        (
            not name.strip("/") or len(name) > MAX_NAME,
            f"a name must have 1 to {MAX_NAME} characters",
        ),
        (not name.isprintable(), "control characters in the name"),
        ("\\" in name, "a backslash in the name; separate folders with '/'"),
        (absolute, "an absolute path; use paths inside the task's folder"),
        (outside, "'.', '..' or an empty part in the path; use paths inside the task's folder"),
    )
    return next((message for applies, message in faults if applies), "")


def _kind_fault(entry: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    inflated = entry.file_size > max(_ALWAYS_SMALL, MAX_RATIO * entry.compress_size)
    nested = _NESTED.search(entry.filename) is not None
    faults = (
        (
            kind not in (0, stat.S_IFREG, stat.S_IFDIR),
            "a link or special file; put the file itself into the zip",
        ),
        (bool(entry.flag_bits & 0x1), "encrypted; make the zip without a password"),
        (
            entry.compress_type not in METHODS,
            "not compressed with Deflate; create the zip with the default compression",
        ),
        (nested, "an archive inside the zip; unpack it first"),
        (
            entry.file_size > MAX_UNPACKED,
            f"{entry.file_size:,} bytes unpacked; at most {MAX_UNPACKED:,} are allowed in total",
        ),
        (inflated, f"unpacks to more than {MAX_RATIO} times its packed size"),
    )
    return next((message for applies, message in faults if applies), "")


def _require_no_overlap(entries: list[zipfile.ZipInfo]) -> None:
    """Refuse entries that share bytes of the zip, as those of zip bombs do."""
    end = 0
    for entry in sorted(entries, key=lambda e: e.header_offset):
        if entry.header_offset < end:
            raise _refusal(entry.filename, "overlaps another entry; create the zip again")
        end = entry.header_offset + 30 + _stored_length(entry) + entry.compress_size


def _stored_length(entry: zipfile.ZipInfo) -> int:
    """Return the length in bytes of an entry's name in the zip."""
    return len(entry.orig_filename.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437"))


def _require_distinct(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other is not name:
            raise _refusal(
                name, f"collides with {other}; names must differ in more than upper and lower case"
            )
    for name in names:
        parent = posixpath.dirname(name)
        while parent:
            if parent.casefold() in seen:
                raise _refusal(name, f"is inside {parent}, which is a file in the same zip")
            parent = posixpath.dirname(parent)


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, bytes_left: int) -> bytes:
    try:
        with archive.open(entry) as source:
            content = source.read(min(bytes_left, entry.file_size) + 1)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
        raise _refusal(entry.filename, f"damaged ({error}); create the zip again") from error
    if len(content) > bytes_left:
        raise _refusal(entry.filename, f"the zip unpacks to more than {MAX_UNPACKED:,} bytes")
    if len(content) != entry.file_size:
        raise _refusal(
            entry.filename, "its size differs from the size stated in the zip; create the zip again"
        )
    if content.startswith((b"PK\x03\x04", b"\x1f\x8b", b"7z\xbc\xaf")):
        raise _refusal(entry.filename, "an archive inside the zip; unpack it first")
    return content


def _root(files: dict[str, bytes]) -> str:
    tasks = sorted(name for name in files if posixpath.basename(name) == TASK_FILE)
    if not tasks:
        raise _refusal("", f"there is no task.yml in the zip; {_LAYOUT}")
    if len(tasks) > 1:
        raise _refusal(
            tasks[1],
            f"a second task.yml in addition to {tasks[0]}; {_LAYOUT}. Several tasks with a YAML of "
            "their own are a competition: publish it at /create/competition or with `/admin "
            "competition publish`",
        )
    return posixpath.dirname(tasks[0])
