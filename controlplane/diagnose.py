"""What is wrong with a policy document, said so that its author can mend it: code, place, and what would be right."""

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
"""Where a value stands in the policy: keys, and places in lists from 0."""

_SHOWN = 80
_SUGGESTION_LENGTH = 100
_SUGGESTION_COUNT = 100
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Severity(StrEnum):
    """How grave a diagnostic is: an ERROR refuses the set."""

    ERROR = "ERROR"
    WARNING = "WARNING"


class Position(NamedTuple):
    """Where a key and its value stand; lines and columns from 1.

    A value that begins on a later line has its key's place; an item of a list has its own place for both.
    """

    file: str
    line: int
    column: int
    value_line: int
    value_column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something to say about a policy set. Line and column count from 1; 0 and an empty file mean the whole."""

    severity: Severity
    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""


def error_at(
    code: str, message: str, path: Path, positions: Mapping[Path, Position], *, key: bool = False
) -> Diagnostic:
    """An error at the value of `path` (or its key), or at the nearest thing around it that the documents hold."""
    return _at(Severity.ERROR, code, message, path, positions, key)


def warning_at(code: str, message: str, path: Path, positions: Mapping[Path, Position]) -> Diagnostic:
    """A warning at the key of `path`, or at the nearest thing around it that the documents hold."""
    return _at(Severity.WARNING, code, message, path, positions, key=True)


def show_path(path: Path) -> str:
    """`rbac.roles.reader.grants[0]`, and `namespace_policy.overrides["dept.sales"]` where a key needs quotes."""
    shown = "".join(_show_part(part) for part in path)
    return shown.removeprefix(".")


def shorten(text: str) -> str:
    """At most 80 characters of it, so that a diagnostic stays readable."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def did_you_mean(word: str, known: Collection[str]) -> str:
    """`; did you mean …?` for the likeliest known word, else what is known; nothing where that is too much to tell."""
    if not known or len(known) > _SUGGESTION_COUNT:
        return ""
    folded = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6) if len(word) <= _SUGGESTION_LENGTH else []
    return f"; did you mean {folded[near[0]]!r}?" if near else f"; known here: {_some(sorted(known))}"


def _some(words: list[str]) -> str:
    """The first twelve words, and how many more there are."""
    more = f" and {len(words) - 12} more" if len(words) > 12 else ""
    return ", ".join(shorten(word) for word in words[:12]) + more


def model_diagnostics(
    error: ValidationError,
    root: type[BaseModel],
    prefix: Path,
    positions: Mapping[Path, Position],
    told: Collection[Path],
) -> list[Diagnostic]:
    """A diagnostic for each error of a model's validation.

    `prefix` is the path of the model within the documents. What has the path of one in `told`, or is but an echo of
    another error, is left out.
    """
    details = error.errors(include_url=False)
    return [
        _from_model_error(detail, root, prefix, positions)
        for detail in details
        if (*prefix, *detail["loc"]) not in told and not _is_echo(detail)
    ]


def _is_echo(detail: ErrorDetails) -> bool:
    """A list counts as too short when its items are wrong."""
    return detail["type"] == "too_short" and bool(detail["input"])


def _from_model_error(
    error: ErrorDetails, root: type[BaseModel], prefix: Path, positions: Mapping[Path, Position]
) -> Diagnostic:
    inner = tuple(error["loc"])
    at_key = bool(inner) and inner[-1] == "[key]"
    inner = inner[:-1] if at_key else inner
    code, message = _explain(error, root, inner)
    return error_at(code, message, prefix + inner, positions, key=at_key or error["type"] == "extra_forbidden")


def keys_at(model: type[BaseModel], path: Path) -> tuple[str, ...]:
    """The keys that a model knows in the mapping at `path`; none where any key goes."""
    found: Any = model
    for part in path:
        found = _step(_bare(found), part)
    found = _bare(found)
    return tuple(found.model_fields) if _is_model(found) else ()


def _at(
    severity: Severity, code: str, message: str, path: Path, positions: Mapping[Path, Position], key: bool
) -> Diagnostic:
    for length in range(len(path), 0, -1):
        place = positions.get(path[:length])
        if place is not None:
            exact_value = length == len(path) and not key
            line, column = (place.value_line, place.value_column) if exact_value else (place.line, place.column)
            return Diagnostic(severity, code, message, place.file, line, column, show_path(path))
    return Diagnostic(severity, code, message, path=show_path(path))


def _show_part(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if _PLAIN_KEY.fullmatch(part) and len(part) <= _SHOWN else f'["{shorten(part)}"]'


_EXPECTED = {
    "float_type": "a number such as 0.5",
    "int_type": "a whole number such as 5",
    "int_from_float": "a whole number such as 5",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list (lines that begin with '- ')",
    "dict_type": "a mapping (lines of 'key: value')",
    "model_type": "a mapping (lines of 'key: value')",
}


def _explain(error: ErrorDetails, root: type[BaseModel], path: Path) -> tuple[str, str]:
    """Code and message."""
    sort, value = error["type"], error["input"]
    if sort == "extra_forbidden":
        name = str(path[-1])
        return "UNKNOWN_KEY", f"unknown key {shorten(name)!r}{did_you_mean(name, keys_at(root, path[:-1]))}"
    if sort in _EXPECTED:
        return "WRONG_TYPE", f"{_what_it_is(value)}; it must be {_EXPECTED[sort]}{_hint(value, sort)}"
    if sort == "missing":
        return "MISSING_KEY", f"the key {path[-1]!r} is required here"
    if sort == "literal_error":
        return "INVALID_VALUE", _not_one_of(value, error.get("ctx", {}))
    if "problem" in error.get("ctx", {}):
        return sort.upper(), error["msg"]
    return "OUT_OF_RANGE", f"{_what_it_is(value)}, out of range; {_wanted(error['msg'])}"


def _wanted(message: str) -> str:
    """What the model wants, as half a sentence: `it must be less than or equal to 1`."""
    message = re.sub(r"^(?:Input|String|Tuple|List|Dictionary) should", "it must", message)
    return message.split(" after validation")[0]


def _not_one_of(value: Any, context: Mapping[str, Any]) -> str:
    known = re.findall(r"'([^']*)'", str(context.get("expected", "")))
    near = [word for word in known if word.lower() == str(value).lower()]
    hint = f"; did you mean {near[0]!r}?" if near else did_you_mean(str(value), known)
    return f"{shorten(repr(value))} is not known here{hint}"


def _what_it_is(value: Any) -> str:
    if isinstance(value, bool):
        return f"{'true' if value else 'false'} is a truth value"
    if isinstance(value, int | float):
        return f"{shorten(str(value))} is a number"
    if isinstance(value, str):
        return f"{shorten(value)!r} is text"
    return "this is a list" if isinstance(value, list) else "this is a mapping"


def _hint(value: Any, sort: str) -> str:
    if not isinstance(value, str):
        return ""
    if sort == "bool_type" and value.lower() in {"yes", "no", "on", "off", "y", "n"}:
        return f"; write {'true' if value.lower() in {'yes', 'on', 'y'} else 'false'}"
    unquoted = re.fullmatch(r"[-+]?[0-9.]+(e[-+]?\d+)?|true|false", value, re.IGNORECASE)
    return ", without quotes" if unquoted else ""


def _bare(annotation: Any) -> Any:
    """The annotation without Annotated and None."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, UnionType}:
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    return annotation


def _step(annotation: Any, part: str | int) -> Any:
    """The annotation one key or place further in."""
    if _is_model(annotation):
        field = annotation.model_fields.get(part)
        return field.annotation if field is not None else None
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal or not arguments:
        return None
    return arguments[1] if get_origin(annotation) is dict else arguments[0]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
