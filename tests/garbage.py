"""Fills messages with what a broken or hostile client might send, from seeded dice."""

import random
import string
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

TEXTS = ("", " ", "\x00", "dept.sales", "a" * 70, "x/y", "\u202e", "🎉" * 50, "';--", "{}", "mem_1", "v1")
NUMBERS = (0, 1, -1, 7, 99, 2**31 - 1, -(2**31))
FLOATS = (0.0, 1.0, -1.0, float("nan"), float("inf"), 1e308)


def fill(message: Message, dice: random.Random, depth: int = 0) -> None:
    """Sets some of the fields to values that a broken client might send."""
    for field in message.DESCRIPTOR.fields:
        if dice.random() < 0.5 or depth > 4:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        repeated = field.is_repeated
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            target = getattr(message, field.name).add() if repeated else getattr(message, field.name)
            target.SetInParent()
            fill(target, dice, depth + 1)
            continue
        value = garbage(field, dice)
        if repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)


def garbage(field: FieldDescriptor, dice: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return dice.choice(TEXTS) or "".join(dice.choices(string.printable, k=20))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return dice.randbytes(16)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return dice.random() < 0.5
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return dice.choice(FLOATS) if field.type == FieldDescriptor.TYPE_DOUBLE else dice.choice(FLOATS[:5])
    return dice.choice(NUMBERS)
