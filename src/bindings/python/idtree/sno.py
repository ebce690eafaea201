# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""sno ids: 10 bytes, with a time, a byte that the user chooses, a partition, and a sequence.

>>> id = parse("brpk4q72xwf2m63l")
>>> format(id)
'brpk4q72xwf2m63l'
>>> time(id).year, join(*split(id)) == id
(2031, True)
>>> lower, upper = range(split(id).unix_ms, split(id).unix_ms + 4)
>>> lower <= id < upper
True

A generator in this process makes ids without an instance.  No other generator may use its partition:

>>> g = Generator(7)
>>> split(g.id(meta=3))[2:4]
(3, 7)
>>> last = g.id()
>>> Generator(start=g.snapshot()).id() > last     # continues after the ids of g
True
"""
from datetime import datetime
from typing import NamedTuple

from . import _idtree
from ._time import at_ms

format = _idtree.sno_format  # (bytes) -> str
parse = _idtree.sno_parse  # (str) -> bytes
Generator = _idtree.SnoGenerator
range = _idtree.sno_range  # (from_ms, to_ms) in Unix ms -> (lower, upper): lower <= id < upper


class Fields(NamedTuple):
    """The fields of a sno id.  unix_ms is a multiple of 4."""

    unix_ms: int
    tick: int
    meta: int
    partition: int
    sequence: int


def split(id: bytes) -> Fields:
    """Return the fields of an id."""
    return Fields(*_idtree.sno_split(id))


def join(unix_ms: int, tick: int, meta: int, partition: int, sequence: int) -> bytes:
    """Return the id with these fields."""
    return _idtree.sno_join(unix_ms, tick, meta, partition, sequence)


def time(id: bytes) -> datetime:
    """Return the time at which an id was made, to 4 ms."""
    return at_ms(split(id).unix_ms)
