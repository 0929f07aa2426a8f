"""Names and kinds of values that several sections of a policy share."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

SourceName = Literal["HUMAN", "API", "USER", "AGENT", "LLM", "EXTERNAL_DOC"]
KindName = Literal["FACT", "PREFERENCE", "EPISODE", "INSTRUCTION", "TOOL_RESULT", "DOCUMENT", "SUMMARY"]
LayerName = Literal["WORKING", "SHORT_TERM", "LONG_TERM", "KNOWLEDGE"]
SensitivityName = Literal["UNSPECIFIED", "PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"]
FormatCheck = Literal["date", "time", "percent", "amount", "name", "identifier"]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]


NAMESPACE = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,8}")


def is_namespace(value: str) -> bool:
    """True for a dotted path of 1 to 9 labels of 1 to 63 characters `[a-z0-9_-]`."""
    return NAMESPACE.fullmatch(value) is not None


def problem(code: str, message: str) -> PydanticCustomError:
    """An error whose `code`, in upper case, is that of the diagnostic."""
    return PydanticCustomError(code, "{problem}", {"problem": message})


def check_namespace(value: str) -> str:
    """A legal namespace; a `bad_namespace` problem otherwise."""
    if not is_namespace(value):
        raise problem(
            "bad_namespace", f"{value[:80]!r} is not a namespace (1 to 9 dotted labels of [a-z0-9_-]{{1,63}})"
        )
    return value


Namespace = Annotated[
    str, AfterValidator(check_namespace), WithJsonSchema({"type": "string", "pattern": f"^{NAMESPACE.pattern}$"})
]
