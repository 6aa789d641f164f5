"""Files of an evaluation, small enough to be part of its JSON."""

import base64
import binascii
import zlib
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator

from runners.contract.wire import Wire

PACKED_MAX = 8 << 20
"""The most compressed bytes of all files of an evaluation together; base64 adds a third."""
FILE_MAX = 64 << 20
"""The most bytes of a file, uncompressed."""
FILES_MAX = 64
"""The most files of an evaluation; limited because a few compressed bytes can unpack to many."""
_LEVEL = 6
_PER_THREE = 4
_BASE64_MAX = -(-PACKED_MAX // 3) * _PER_THREE

FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class EvaluationFile(Wire):
    """A compressed file with its name; its content is untrusted."""

    name: FileName
    packed: Annotated[str, Field(max_length=_BASE64_MAX)]
    """Its bytes, compressed by zlib, in base64."""

    @field_validator("packed")
    @classmethod
    def _is_base64(cls, packed: str) -> str:
        try:
            base64.b64decode(packed, validate=True)
        except binascii.Error as error:
            raise ValueError(f"not in base64: {error}") from error
        return packed

    @classmethod
    def of(cls, name: str, content: bytes) -> Self:
        """Compress a file; ValueError if it is larger than `FILE_MAX`."""
        if len(content) > FILE_MAX:
            raise ValueError(f"a file of {len(content)} bytes; at most {FILE_MAX} are allowed")
        return cls.of_zipped(name, zlib.compress(content, _LEVEL))

    @classmethod
    def of_zipped(cls, name: str, zipped: bytes) -> Self:
        """The file with these compressed bytes."""
        return cls(name=name, packed=base64.b64encode(zipped).decode())

    @property
    def packed_size(self) -> int:
        """Its compressed size in bytes."""
        return len(self.packed) // _PER_THREE * 3 - self.packed[-2:].count("=")

    @property
    def zipped(self) -> bytes:
        """Its bytes, compressed by zlib."""
        return base64.b64decode(self.packed, validate=True)

    def content(self) -> bytes:
        """Its content; ValueError if it cannot be decompressed or is larger than `FILE_MAX`."""
        unpacking = zlib.decompressobj()
        try:
            content = unpacking.decompress(self.zipped, FILE_MAX)
        except zlib.error as error:
            raise ValueError(f"the file {self.name} cannot be unpacked: {error}") from error
        if not unpacking.eof:
            raise ValueError(f"the file {self.name} is truncated or has more than {FILE_MAX} bytes")
        return content


def fit(files: Sequence[EvaluationFile]) -> bool:
    """Whether an evaluation may have all of these files."""
    packed = sum(each.packed_size for each in files)
    return len(files) <= FILES_MAX and packed <= PACKED_MAX
