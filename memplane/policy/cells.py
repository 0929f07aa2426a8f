"""Conditions of grants as sets: a memory lies in one cell of layer × kind × sensitivity, a grant holds for some cells.

A set of cells is an integer with one bit a cell, so that allowing is `|`, denying is `& ~`, and asking is `&`.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, get_args

from memplane.policy.names import KindName, LayerName, SensitivityName

LAYERS: tuple[LayerName, ...] = get_args(LayerName)
KINDS: tuple[KindName, ...] = get_args(KindName)
SENSITIVITIES: tuple[SensitivityName, ...] = get_args(SensitivityName)

_Slice = tuple[tuple[KindName, ...], tuple[SensitivityName, ...]]
_CELLS = [(layer, kind, sensitivity) for layer in LAYERS for kind in KINDS for sensitivity in SENSITIVITIES]
ALL_CELLS = (1 << len(_CELLS)) - 1


class Box(NamedTuple):
    """Cells that are all combinations of these; each in the order of the contract."""

    layers: tuple[LayerName, ...]
    kinds: tuple[KindName, ...]
    sensitivities: tuple[SensitivityName, ...]


def cell(layer: int, kind: int, sensitivity: int) -> int:
    """The bit of a memory's cell, by the contract's enum numbers; 0, which nothing allows, for numbers it has not."""
    if 1 <= layer <= len(LAYERS) and 1 <= kind <= len(KINDS) and 0 <= sensitivity < len(SENSITIVITIES):
        return 1 << ((layer - 1) * len(KINDS) + kind - 1) * len(SENSITIVITIES) + sensitivity
    return 0


def mask(
    layers: Collection[LayerName] = (),
    kinds: Collection[KindName] = (),
    sensitivities: Collection[SensitivityName] = (),
) -> int:
    """The cells that lie in one of each; an empty collection stands for every one."""
    return _any_of(_OF_LAYER, layers) & _any_of(_OF_KIND, kinds) & _any_of(_OF_SENSITIVITY, sensitivities)


def boxes(cells: int) -> list[Box]:
    """Boxes that have exactly these cells together, few of them; none share a cell."""
    by_shape: dict[tuple[_Slice, ...], list[LayerName]] = {}
    for layer in LAYERS:
        by_shape.setdefault(tuple(_slices(cells & _OF_LAYER[layer])), []).append(layer)
    return [Box(tuple(layers), *part) for shape, layers in by_shape.items() for part in shape]


def _slices(cells: int) -> Iterator[_Slice]:
    """Of one layer's cells: the kinds that have the same sensitivities, and these."""
    kinds: dict[tuple[SensitivityName, ...], list[KindName]] = {}
    for kind in KINDS:
        held = tuple(name for name in SENSITIVITIES if cells & _OF_KIND[kind] & _OF_SENSITIVITY[name])
        kinds.setdefault(held, []).append(kind)
    return ((tuple(names), held) for held, names in kinds.items() if held)


def _any_of(cells_of: Mapping[str, int], names: Collection[str]) -> int:
    if not names:
        return ALL_CELLS
    cells = 0
    for name in names:
        cells |= cells_of[name]
    return cells


def _cells_with(axis: int, name: str) -> int:
    return sum(1 << place for place, names in enumerate(_CELLS) if names[axis] == name)


_OF_LAYER: dict[str, int] = {name: _cells_with(0, name) for name in LAYERS}
_OF_KIND: dict[str, int] = {name: _cells_with(1, name) for name in KINDS}
_OF_SENSITIVITY: dict[str, int] = {name: _cells_with(2, name) for name in SENSITIVITIES}
