"""What the command line prints: tables for people, or one JSON value on stdout for programs."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from memplane.client.convert import enum_prefix

JsonValue = Any  # whatever json.dumps takes
PIPE_WIDTH = 180
"""Columns of a table that goes into a pipe or a file."""
WHOLE = frozenset({"id", "when", "generation", "version"})
"""Columns that are never broken: what people copy or compare."""


class Output:
    """Prints results on stdout and notes on stderr.

    Attributes:
        as_json: True when stdout carries JSON and nothing else.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.notes = Console(stderr=True, highlight=False)
        self._console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)

    def json(self, value: JsonValue) -> None:
        """Prints one JSON value."""
        click.echo(json.dumps(value, ensure_ascii=False, indent=2))

    def json_line(self, value: JsonValue) -> None:
        """Prints one JSON value on a line of its own, at once: one of many."""
        click.echo(json.dumps(value, ensure_ascii=False))

    def line(self, text: str = "", style: str = "") -> None:
        """Prints a line for people; swallowed in JSON mode."""
        if not self.as_json:
            self._console.print(Text(text, style=style), soft_wrap=True)

    def note(self, text: str, style: str = "dim") -> None:
        """Prints a remark on stderr."""
        self.notes.print(Text(text, style=style), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
        """Prints a table for people; swallowed in JSON mode. Numbers stand to the right."""
        if not self.as_json:
            self._console.print(table_of(columns, rows, title))

    def screen(self) -> Live:
        """A place on the terminal where `update` replaces what is shown; in a pipe, what is shown last is printed."""
        return Live(console=self._console, auto_refresh=False)


def table_of(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> Table:
    """A table for people. Numbers stand to the right; a Text keeps its colour."""
    filled = [[value if isinstance(value, Text) else Text(_cell(value)) for value in row] for row in rows]
    table = Table(title=title or None, title_justify="left")
    for index, name in enumerate(columns):
        numeric = bool(filled) and all(_is_number(row[index].plain) for row in filled)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=name in WHOLE)
    for row in filled:
        table.add_row(*row)
    return table


def plain(message: Message) -> dict[str, Any]:
    """A message as JSON: proto names, every plain field, enums without their prefix, 64-bit numbers as numbers."""
    values = MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    return _tidy(message.DESCRIPTOR, values)


def _tidy(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Undoes what the JSON mapping of protobuf does to enums and 64-bit numbers."""
    for name, value in values.items():
        field = kind.fields_by_name.get(name)
        if field is None or kind.full_name.startswith("google.protobuf."):
            continue
        values[name] = (
            [_value(field, each) for each in value]
            if field.is_repeated and isinstance(value, list)
            else _value(field, value)
        )
    return values


def _value(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return str(value).removeprefix(enum_prefix(field.enum_type))
    if field.message_type is not None and isinstance(value, dict) and not field.message_type.GetOptions().map_entry:
        return _tidy(field.message_type, value)
    if field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
        return int(value)
    return value


def enum_name(message: Message, field: str) -> str:
    """The value of an enum field without its prefix, such as `LONG_TERM`."""
    kind = message.DESCRIPTOR.fields_by_name[field].enum_type
    assert kind is not None, f"{field} is no enum"
    number = getattr(message, field)
    found = kind.values_by_number.get(number)
    return str(found.name).removeprefix(enum_prefix(kind)) if found else str(number)


def short_time(moment: Timestamp) -> str:
    """The instant in UTC, to the second; empty for an absent one."""
    return moment.ToDatetime().strftime("%Y-%m-%d %H:%M:%SZ") if moment.ByteSize() else ""


def shorten(text: str, max_chars: int = 100) -> str:
    """The text on one line, cut to `max_chars` with an ellipsis."""
    flat = " ".join(text.split())
    return flat if len(flat) <= max_chars else flat[: max_chars - 1] + "…"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return "yes" if value is True else "no" if value is False else str(value)


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).replace("-", "", 1).isdigit()
