"""The base of every wire type and the version of the wire format."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

ContractVersion = Literal[1]
"""Incremented when a wire type changes its meaning; both sides refuse other versions."""
CONTRACT_VERSION: ContractVersion = 1


class Wire(BaseModel):
    """A frozen value that crosses a process boundary as JSON; unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, ser_json_inf_nan="null"
    )
