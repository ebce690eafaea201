# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""FLUIDs (Flux RFC 19): ints of 64 bits that sort by time.

>>> format(6731191091817518)
'fuZZybuNNy'
>>> format(6731191091817518, "dothex")
'0017.e9fb.8df1.6c2e'
>>> parse("fuZZybuNNy") == parse("0x17e9fb8df16c2e") == 6731191091817518
True
>>> split(6731191091817518)
Fields(timestamp_ms=401210253, generator=15451, sequence=46)
>>> join(*split(6731191091817518))
6731191091817518
>>> [format(key, "dothex") for key in range(1000, 2000)]
['0000.0003.e800.0000', '0000.0007.d000.0000']

A generator in this process makes ids without a broker.  The program must ensure that no other generator with the same
epoch has the same number:

>>> g = Generator(5)
>>> [split(id) for id in g.reserve(1000, 2)]
[Fields(timestamp_ms=1000, generator=5, sequence=0), Fields(timestamp_ms=1000, generator=5, sequence=1)]
"""
from typing import NamedTuple

from . import _idtree

FORMS = ("dec", "hex", "dothex", "f58", "\u019258", "words", "emoji")

format = _idtree.fluid_format  # (id, form="f58") -> str
parse = _idtree.fluid_parse  # (text in any form) -> int
Generator = _idtree.FluidGenerator
range = _idtree.fluid_range  # (from_ms, to_ms) -> (lower, upper): lower <= id < upper


class Fields(NamedTuple):
    """The fields of a FLUID.  timestamp_ms counts from the epoch of the instance (Connection.epoch)."""

    timestamp_ms: int
    generator: int
    sequence: int


def split(id: int) -> Fields:
    """Return the fields of an id."""
    return Fields(*_idtree.fluid_split(id))


def join(timestamp_ms: int, generator: int, sequence: int) -> int:
    """Return the id with these fields."""
    return _idtree.fluid_join(timestamp_ms, generator, sequence)
