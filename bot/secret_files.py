"""Secrets that stand in files, which the environment names by `NAME_FILE`; for the settings."""

import os
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource
from typing_extensions import override

from bot.domain.errors import SetupError

_LONGEST_SECRET = 4096


class SecretFiles(PydanticBaseSettingsSource):
    """Reads a secret from the file that `NAME_FILE` names, as Docker hands secrets over."""

    @override
    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = str(field.validation_alias)
        path = os.environ.get(f"{name}_FILE", "")
        if not path or SecretStr not in (field.annotation, *get_args(field.annotation)):
            return None, field_name, False
        if os.environ.get(name):
            raise SetupError(f"{name} and {name}_FILE are both set; keep one of them")
        return _read_secret(name, Path(path)), field_name, False

    @override
    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields.items()
        found = {
            str(field.validation_alias): self.get_field_value(field, name)[0]
            for name, field in fields
        }
        return {alias: value for alias, value in found.items() if value is not None}


def _read_secret(name: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST_SECRET + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise SetupError(f"{name}_FILE: {path} cannot be read: {reason}") from None
    if not 1 <= len(text) <= _LONGEST_SECRET:
        raise SetupError(f"{name}_FILE: {path} must hold the secret and nothing else")
    return text
