"""Options from a section of the configuration file: a dataclass tells its keys, their types and defaults."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from memplane.settings import BadConfig, Secret, suggestion

T = TypeVar("T")


def options_from(kind: type[T], section: str, table: Mapping[str, object]) -> T:
    """The options in a section. Raises BadConfig, which names section and key, for whatever is not right."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # T is a dataclass
    for key in table:
        if key not in known:
            raise BadConfig(f"{section}.{key}: there is no such key{suggestion(key, known)}")
    missing = [name for name, field in known.items() if _is_required(field) and name not in table]
    if missing:
        raise BadConfig(f"{section}.{missing[0]}: is required")
    hints = get_type_hints(kind)
    values = {key: _checked(value, hints[key], f"{section}.{key}") for key, value in table.items()}
    try:
        return kind(**values)
    except (BadConfig, ValueError) as error:  # the dataclass names its own field
        raise BadConfig(f"{section}.{error}") from error


def check_ranges(options: object, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Raises BadConfig, which names the field, for a number outside its range, of which both ends are in, or NaN."""
    for name, (least, most) in ranges.items():
        value = getattr(options, name)
        if not least <= value <= most:
            raise BadConfig(f"{name}: {value!r} is not from {least:.10g} to {most:.10g}")


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _checked(value: object, hint: Any, place: str) -> Any:
    """The value as the hint wants it."""
    if get_origin(hint) is UnionType:
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is Literal:
        return _one_of(value, get_args(hint), place)
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise BadConfig(f"{place}: {value!r} is not a list")
        return tuple(_checked(each, get_args(hint)[0], place) for each in value)
    return _scalar(value, hint, place)


def _one_of(value: object, choices: tuple[object, ...], place: str) -> object:
    if value not in choices:
        raise BadConfig(f"{place}: {value!r} is not one of {', '.join(map(str, choices))}")
    return value


def _scalar(value: object, hint: type, place: str) -> object:
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(hint, "a text")
    is_bool = isinstance(value, bool)
    fits = {
        bool: is_bool,
        int: isinstance(value, int) and not is_bool,
        float: isinstance(value, int | float) and not is_bool,
    }.get(hint, isinstance(value, str))
    if not fits:
        shown = "what is given" if hint is Secret else repr(value)
        raise BadConfig(f"{place}: {shown} is not {wanted}")
    make: Any = hint if hint in (float, Path, Secret) else lambda same: same
    return make(value)
