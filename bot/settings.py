"""The only reader of the environment: what an installation may be told, as frozen values."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from bot.domain.errors import SetupError
from runners.contract.task import GPU_NAME

_SLOT = re.compile(rf":({GPU_NAME.pattern.strip('^$')})=([1-9]\d{{0,3}})")
_NO_RUNNER = "none"
_RUNNER = re.compile(rf"[A-Za-z_]\w*(?:{_SLOT.pattern})*")


@dataclass(frozen=True, slots=True)
class RunnerChoice:
    """A runner plugin by name, and its slots by GPU type; none: those that it finds itself."""

    name: str
    slots: dict[str, int]


def _choice(text: str) -> RunnerChoice:
    name = text.partition(":")[0]
    return RunnerChoice(name, {gpu: int(count) for gpu, count in _SLOT.findall(text)})


class Settings(BaseSettings):
    """Everything that the environment can set; the defaults need none of it."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    data_dir: Path = Field(default=Path(".podium"), validation_alias="PODIUM_DATA_DIR")
    """Where the embedded database and the log live."""
    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    """A Postgres to use instead of the embedded one; it holds a password."""
    runners: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("local",), validation_alias="PODIUM_RUNNERS"
    )
    """Runner plugins, separated by commas; `fake:H100=2:L4=1` gives one its slots by GPU type.

    `none` judges nothing here and leaves it to the workers."""
    lease_s: float = Field(default=30.0, ge=1, le=3600, validation_alias="PODIUM_LEASE_S")
    """Seconds after which a process that gives no sign of life loses what it judges or shows."""
    require_sandbox: Literal["", "strict"] = Field(
        default="", validation_alias="PODIUM_REQUIRE_SANDBOX"
    )
    """`strict` refuses to judge where a layer of the sandbox is missing."""

    http_host: str = Field(default="127.0.0.1", validation_alias="PODIUM_HTTP_HOST")
    """Where the HTTP door listens; 0.0.0.0 is everywhere."""
    http_port: int | None = Field(default=None, ge=0, le=65535, validation_alias="PODIUM_HTTP_PORT")
    """Its port, 0 for a free one; without one there is no HTTP door."""
    http_certificate: Path | None = Field(default=None, validation_alias="PODIUM_HTTP_CERTIFICATE")
    """A certificate's file, with which the door speaks HTTPS itself."""
    http_key: Path | None = Field(default=None, validation_alias="PODIUM_HTTP_KEY")
    """The file of the certificate's key."""

    worker_server: str | None = Field(default=None, validation_alias="PODIUM_SERVER")
    """The Podium for which `podium worker` judges, in place of a database."""
    worker_token: SecretStr | None = Field(default=None, validation_alias="PODIUM_WORKER_TOKEN")
    """The token with which it does."""

    discord_token: SecretStr | None = Field(default=None, validation_alias="DISCORD_TOKEN")
    """The bot's token; without one there is no Discord door."""
    discord_api_base: str | None = Field(default=None, validation_alias="DISCORD_API_BASE")
    """Another address of Discord's REST interface, such as a proxy's."""
    discord_trusted_guilds: Annotated[frozenset[int], NoDecode] = Field(
        default=frozenset(), validation_alias="DISCORD_TRUSTED_GUILDS"
    )
    """Ids of servers whose roles give rights, separated by commas; see the Discord door's page."""
    discord_gateway_url: str | None = Field(default=None, validation_alias="DISCORD_GATEWAY_URL")
    """Another address of Discord's gateway."""

    @field_validator("discord_trusted_guilds", mode="before")
    @classmethod
    def _numbers(cls, value: object) -> object:
        if isinstance(value, str):
            return frozenset(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("runners", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            if value.strip() == _NO_RUNNER:
                return ()
            names = tuple(name.strip() for name in value.split(",") if name.strip())
            if not names:
                raise ValueError(f"names no runner; {_NO_RUNNER!r} says that none is wanted")
            return names
        return value

    @field_validator("runners")
    @classmethod
    def _readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if not _RUNNER.fullmatch(text):
                raise ValueError(f"{text!r} is no runner; write one such as local or fake:H100=2")
        return value

    @field_validator(
        "database_url", "discord_token", "http_port", "http_certificate", "http_key",
        "worker_server", "worker_token", mode="before",
    )  # fmt: skip
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @model_validator(mode="after")
    def _certified(self) -> Self:
        if (self.http_certificate is None) != (self.http_key is None):
            raise ValueError("PODIUM_HTTP_CERTIFICATE and PODIUM_HTTP_KEY belong together")
        return self

    def at(self, data_dir: Path | None) -> Self:
        """The same settings on another data folder; None keeps this one."""
        return self if data_dir is None else self.model_copy(update={"data_dir": data_dir})

    @property
    def runner_choices(self) -> tuple[RunnerChoice, ...]:
        """The runners with their slots."""
        return tuple(_choice(text) for text in self.runners)

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
