import random
from typing import get_args

from memplane.policy.cells import ALL_CELLS, KINDS, LAYERS, SENSITIVITIES, boxes, cell, mask
from memplane.policy.names import KindName, LayerName, SensitivityName
from memplane.v1 import memory_pb2


def test_cells_are_numbered_as_the_contract_numbers_names() -> None:
    assert [memory_pb2.Layer.Value(f"LAYER_{name}") for name in LAYERS] == list(range(1, 5))
    assert [memory_pb2.Kind.Value(f"KIND_{name}") for name in KINDS] == list(range(1, 8))
    assert [memory_pb2.Sensitivity.Value(f"SENSITIVITY_{name}") for name in SENSITIVITIES] == list(range(5))
    assert (get_args(LayerName), get_args(KindName), get_args(SensitivityName)) == (LAYERS, KINDS, SENSITIVITIES)


def test_every_cell_has_a_bit_of_its_own_and_other_numbers_none() -> None:
    bits = [cell(layer, kind, level) for layer in range(1, 5) for kind in range(1, 8) for level in range(5)]
    assert sum(bits) == ALL_CELLS
    assert len(set(bits)) == 140
    assert {cell(0, 1, 0), cell(5, 1, 0), cell(1, 0, 0), cell(1, 8, 0), cell(1, 1, 5), cell(1, 1, -1)} == {0}


def test_a_mask_has_the_cells_that_lie_in_one_of_each() -> None:
    assert mask() == ALL_CELLS
    held = mask(layers=["KNOWLEDGE"], kinds=["FACT", "DOCUMENT"], sensitivities=["UNSPECIFIED"])
    assert held == cell(4, 1, 0) | cell(4, 6, 0)


def test_boxes_have_exactly_the_cells_together_and_share_none() -> None:
    dice = random.Random(1)
    assert boxes(0) == []
    assert boxes(ALL_CELLS) == [(LAYERS, KINDS, SENSITIVITIES)]
    for _ in range(50):
        cells = dice.getrandbits(140) | dice.getrandbits(140)
        found = [mask(*box) for box in boxes(cells)]
        assert sum(found) == cells


def test_what_grants_usually_say_takes_few_boxes() -> None:
    assert len(boxes(ALL_CELLS & ~mask(sensitivities=["RESTRICTED"]))) == 1
    assert len(boxes(ALL_CELLS & ~mask(kinds=["INSTRUCTION"], sensitivities=["RESTRICTED"]))) == 2
