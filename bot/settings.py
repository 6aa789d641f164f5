"""The only reader of the environment: what an installation may be told, as frozen values."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from bot.domain.errors import SetupError


class Settings(BaseSettings):
    """Everything that the environment can set; the defaults need none of it."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    data_dir: Path = Field(default=Path(".podium"), validation_alias="PODIUM_DATA_DIR")
    """Where the embedded database and the log live."""
    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    """A Postgres to use instead of the embedded one; it holds a password."""
    runners: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("local",), validation_alias="PODIUM_RUNNERS", min_length=1
    )
    """Names of runner plugins, separated by commas."""
    require_sandbox: Literal["", "strict"] = Field(
        default="", validation_alias="PODIUM_REQUIRE_SANDBOX"
    )
    """`strict` refuses to judge where a layer of the sandbox is missing."""

    @field_validator("runners", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @field_validator("database_url", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    def at(self, data_dir: Path | None) -> Self:
        """The same settings on another data folder; None keeps this one."""
        return self if data_dir is None else self.model_copy(update={"data_dir": data_dir})

    @property
    def strict_sandbox(self) -> bool:
        """Whether every layer of the sandbox must be there."""
        return self.require_sandbox == "strict"


def read_settings() -> Settings:
    """The settings of this process; SetupError names each variable that cannot be used."""
    try:
        return Settings()
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_input=False, include_url=False)
        )
        raise SetupError(f"the environment cannot be used: {faults}") from None
