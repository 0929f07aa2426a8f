"""What every section of a policy is made of."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """What every section shares: frozen, no unknown keys, no coercion, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
