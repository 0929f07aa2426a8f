"""Lists of values as arrays in PostgreSQL's binary format, made a column at a time.

The driver turns lists into arrays an element at a time in Python; for batches of 500 memories that took two thirds of a
commit (2026-11, psycopg 3.3.9). The format: number of dimensions (1), whether there are NULLs, the element's type, the
length, the lower bound (1); then each element as its length (−1 for NULL) and its bytes, all big-endian.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
import psycopg
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format

A = TypeVar("A", bound="Array")
_NULL: Final = struct.pack("!i", -1)
_pack_length = struct.Struct("!i").pack


class Array:
    """One column, encoded; subclasses are the types that the driver knows it by."""

    __slots__ = ("data",)
    element_oid = 0
    array_oid = 0

    def __init__(self, parts: Iterable[bytes], length: int, *, has_null: bool = False) -> None:
        # An empty array has no dimension.
        shape = struct.pack("!iii", 1, has_null, self.element_oid) + struct.pack("!ii", length, 1)
        empty = struct.pack("!iii", 0, 0, self.element_oid)
        self.data = b"".join((shape, *parts)) if length else empty


class Texts(Array):
    """text[]."""

    element_oid, array_oid = 25, 1009


class Bytes(Array):
    """bytea[]."""

    element_oid, array_oid = 17, 1001


class Bigints(Array):
    """bigint[]."""

    element_oid, array_oid = 20, 1016


class Smallints(Array):
    """smallint[]."""

    element_oid, array_oid = 21, 1005


class Floats(Array):
    """double precision[]."""

    element_oid, array_oid = 701, 1022


Encoder = Callable[[Any], Array]
"""Makes an array of a column."""
Encoders = Mapping[str, Encoder]
"""Columns by name, in order."""


def texts(values: Sequence[str | None]) -> Texts:
    """An array of texts."""
    if None in values:
        return _variable(Texts, [value if value is None else value.encode() for value in values])
    return _variable(Texts, list(map(str.encode, values)))  # type: ignore[arg-type]  # None is not among them


def byteas(values: Sequence[bytes]) -> Bytes:
    """An array of byte strings."""
    return _variable(Bytes, values)


def bigints(values: Sequence[int | None]) -> Bigints:
    """An array of whole numbers of 64 bits."""
    if None in values:
        pack = struct.Struct("!iq").pack
        return Bigints([_NULL if value is None else pack(8, value) for value in values], len(values), has_null=True)
    return _fixed(Bigints, values, ">i8")


def smallints(values: Sequence[int]) -> Smallints:
    """An array of whole numbers of 16 bits."""
    return _fixed(Smallints, values, ">i2")


def floats(values: Sequence[float]) -> Floats:
    """An array of floating point numbers of 64 bits."""
    return _fixed(Floats, values, ">f8")


def listed(encoders: Encoders, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Rows as one array a column, in the order of the encoders."""
    found = zip(*rows, strict=True) if rows else [()] * len(encoders)
    return {name: encode(column) for (name, encode), column in zip(encoders.items(), found, strict=True)}


def _variable(kind: type[A], values: Sequence[bytes | None]) -> A:
    known = [value for value in values if value is not None]
    if len(known) == len(values):
        lengths = map(_pack_length, map(len, known))
        return kind(chain.from_iterable(zip(lengths, known, strict=True)), len(values))
    parts = (_NULL if value is None else _pack_length(len(value)) + value for value in values)
    return kind(parts, len(values), has_null=True)


def _fixed(kind: type[A], values: Sequence[float | None], dtype: str) -> A:
    encoded = np.empty(len(values), dtype=[("length", ">i4"), ("value", dtype)])
    encoded["length"] = np.dtype(dtype).itemsize
    encoded["value"] = values
    return kind([encoded.tobytes()], len(values))


def adapters() -> AdaptersMap:
    """What a connection must know to take these arrays: pass it as `context`."""
    known = AdaptersMap(psycopg.adapters)
    for kind in (Texts, Bytes, Bigints, Smallints, Floats):
        known.register_dumper(kind, _dumper(kind))
    return known


def _dumper(kind: type[Array]) -> type[Dumper]:
    class ArrayDumper(Dumper):
        format = Format.BINARY
        oid = kind.array_oid

        def dump(self, obj: Array) -> bytes:
            return obj.data

    return ArrayDumper
