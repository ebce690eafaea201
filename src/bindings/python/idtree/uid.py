# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""uids: global ids of 12 bytes, with the fingerprint of their node, and local ids of 8 bytes.

>>> id = parse(".5.tXVEf8n4vPN.0")
>>> format(id), len(id)
('.5.tXVEf8n4vPN.0', 12)
>>> time(id).year
2018

A generator in this process makes ids without an instance.  No other generator may use its node:

>>> g = Generator("me@here")
>>> first, last = g.ids(2)
>>> split(first).fingerprint == split(last).fingerprint, first < last
(True, True)
>>> Generator("me@here", after_us=g.newest_us).id() > last
True
>>> len(g.id(local=True))
8
"""
from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from . import _idtree
from ._time import at_ms

format = _idtree.uid_format  # (bytes) -> str
Generator = _idtree.UidGenerator
parse = _idtree.uid_parse  # (str) -> bytes


class Fields(NamedTuple):
    """The fields of a uid.  Its time is a * 10**6 + b seconds and c microseconds since 1970.  fingerprint is None for a
    local id.
    """

    fingerprint: int | None
    a: int
    b: int
    c: int
    sequence: int


def split(id: bytes, drift: int = 8) -> Fields:
    """Return the fields of an id.  drift is the number of its time bits that precede the fingerprint."""
    return Fields(*_idtree.uid_split(id, drift))


def time(id: bytes, drift: int = 8) -> datetime:
    """Return the time at which an id was made."""
    return at_ms(_idtree.uid_unix_ms(id, drift))
