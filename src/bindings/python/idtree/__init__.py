# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""Unique ids, in order of time, from an instance of idtree.

>>> import idtree
>>> with idtree.connect() as c:                   # IDTREE_URI, or the broker of this host
...     job = c.id()                              # one FLUID: an int of 64 bits
...     more = c.ids(1000)                        # a list
...     numbers = c.ids_array(1000)               # array('Q'), which NumPy takes without a copy
>>> job < more[0] < more[-1] < numbers[0]
True
>>> idtree.fluid.parse(idtree.fluid.format(job)) == job
True

If each id would need a message over several hops, prefetch some ids:

>>> with idtree.connect() as c:
...     c.prefetch(64, max_age=1.0)
...     ids = [c.id() for _ in range(100)]
>>> ids == sorted(set(ids))
True

Ids of other kinds are bytes that sort by time.  Each kind has its module:

>>> with idtree.connect() as c:
...     idtree.sno.split(c.sno(meta=7)[0]).meta
7

Errors of the instance are OSError with a text, or one of its subclasses, such as ConnectionRefusedError, TimeoutError
and PermissionError.  Several threads may share a connection: their calls run one after the other.  A forked child must
open its own connection.
"""
from ._connection import Connection, Event, connect
from ._idtree import MAX_COUNT, MAX_IDS, Document
from . import flax, fluid, idcomp, sno, uid

__all__ = ["Connection", "Document", "Event", "MAX_COUNT", "MAX_IDS", "connect", "flax", "fluid", "idcomp", "sno", "uid"]
