"""Requests from Python values: enum names, datetimes, timedeltas and mappings become what the contract wants."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

M = TypeVar("M", bound=Message)


class InvalidValue(ValueError):
    """A value that the contract cannot express; the message begins with the field's name."""


def build(kind: type[M], fields: Mapping[str, Any]) -> M:
    """A message of `kind` with these fields; a field that is None stays absent.

    Raises:
        InvalidValue: A field is unknown, a text holds half of a surrogate pair, an enum has no such name, or a datetime
            has no time zone; the message names the field.
    """
    message = kind()
    known = message.DESCRIPTOR.fields_by_name
    for name, value in fields.items():
        if name not in known:
            raise InvalidValue(f"{name}: {kind.__name__} has no such field; known: {', '.join(known)}")
        if value is not None:
            _set(message, known[name], value)
    return message


def timestamp(value: datetime, field: str = "time") -> Timestamp:
    """The instant as the contract writes it.

    Raises:
        InvalidValue: The datetime has no time zone.
    """
    if value.tzinfo is None:
        raise InvalidValue(f"{field}: {value.isoformat()} has no time zone; give one, such as datetime.UTC")
    message = Timestamp()
    message.FromDatetime(value.astimezone(UTC))
    return message


def check_text(value: str, field: str) -> str:
    """The text itself.

    Raises:
        InvalidValue: It holds half of a surrogate pair, which UTF-8 cannot express.
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"U+{ord(value[error.start]):04X}"
        raise InvalidValue(
            f"{field}: half of a surrogate pair ({half}) at character {error.start}; remove it"
        ) from None
    return value


def _set(message: Message, field: Any, value: Any) -> None:
    if field.is_repeated:
        getattr(message, field.name).extend(_element(field, element) for element in _elements(field, value))
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(_element(field, value))
    else:
        setattr(message, field.name, _element(field, value))


def _elements(field: Any, value: Any) -> Iterable[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValue(f"{field.name}: takes several values, such as a list; got {value!r}")
    return value


def _element(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return _enum_number(field.enum_type, field.name, value)
    if field.message_type is not None:
        return _message(field.message_type, field.name, value)
    return check_text(value, field.name) if isinstance(value, str) else value


def _message(kind: Descriptor, name: str, value: Any) -> Any:
    """A nested message: as it is, or from the Python value that stands for it."""
    if isinstance(value, datetime):
        return timestamp(value, name)
    if isinstance(value, timedelta):
        duration = Duration()
        duration.FromTimedelta(value)
        return duration
    if isinstance(value, str) and kind.name == "Source":
        return build(GetMessageClass(kind), {"type": value})
    if isinstance(value, Mapping):
        return (
            _struct(name, value)
            if kind.full_name == Struct.DESCRIPTOR.full_name
            else build(GetMessageClass(kind), value)
        )
    return value


def _struct(name: str, value: Mapping[str, Any]) -> Struct:
    for path, text in _texts(name, value):
        check_text(text, path)
    struct = Struct()
    struct.update(value)
    return struct


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text inside `value`, keys included, with the path to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{path} key", key
            yield from _texts(f"{path}.{key}", inner)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _texts(f"{path}[{index}]", inner)


def enum_prefix(kind: Any) -> str:
    """What every value of the enum starts with, such as `SOURCE_TYPE_`."""
    unspecified = next(value.name for value in kind.values if value.number == 0)
    return str(unspecified).removesuffix("UNSPECIFIED")


def _enum_number(kind: Any, name: str, value: Any) -> int:
    if isinstance(value, int):
        return value
    prefix = enum_prefix(kind)
    found = kind.values_by_name.get(prefix + str(value).removeprefix(prefix))
    if found is None:
        known = ", ".join(each.name.removeprefix(prefix) for each in kind.values if each.number)
        raise InvalidValue(f"{name}: {value!r} is not one of {known}")
    return int(found.number)
