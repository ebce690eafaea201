# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""flax ids: 12 bytes, a time and 56 random bits.

>>> id = parse("0RdKJcxqVBiAiQr0")
>>> format(id)
'0RdKJcxqVBiAiQr0'
>>> time(id).year, join(*split(id)) == id
(2015, True)
>>> lower, upper = range(split(id).unix_ms, split(id).unix_ms + 1)
>>> lower <= id < upper
True

A generator in this process makes ids without an instance:

>>> g = Generator()
>>> g.id() < g.id()
True
"""
from datetime import datetime
from typing import NamedTuple

from . import _idtree
from ._time import at_ms

format = _idtree.flax_format  # (bytes) -> str
parse = _idtree.flax_parse  # (str) -> bytes
Generator = _idtree.FlaxGenerator
range = _idtree.flax_range  # (from_ms, to_ms) in Unix ms -> (lower, upper): lower <= id < upper


class Fields(NamedTuple):
    unix_ms: int
    random: int


def split(id: bytes) -> Fields:
    """Return the fields of an id."""
    return Fields(*_idtree.flax_split(id))


def join(unix_ms: int, random: int) -> bytes:
    """Return the id with these fields."""
    return _idtree.flax_join(unix_ms, random)


def time(id: bytes) -> datetime:
    """Return the time at which an id was made."""
    return at_ms(split(id).unix_ms)
