# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""Connections: _idtree.Connection, and the methods that would not be faster in C."""
from __future__ import annotations

import json
import os
import weakref
from array import array
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import chain, repeat
from operator import index
from typing import Any, NamedTuple

from . import _idtree, flax, fluid, sno, uid

ANY_RANK = 2**32 - 1

_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


class Event(NamedTuple):
    """An event: its topic, its payload as an object (None: it has no payload), and its number in the instance."""

    topic: str
    payload: Any
    seq: int


class Connection(_idtree.Connection):
    """A connection to a broker.  close() or the end of a with statement closes it.

    uri: a broker, or several separated by blanks.  None: IDTREE_URI of the environment, else the broker of this host.
    reconnect: whether any request may reconnect after the connection was lost; requests for ids always reconnect.
    timeout: connecting fails after this number of seconds.
    """

    def __init__(self, uri: str | None = None, reconnect: bool = False, timeout: float = 30.0) -> None:
        super().__init__(uri, reconnect, timeout)
        self._epoch: datetime | None = None
        _connections.add(self)

    def __repr__(self) -> str:
        return "<idtree.Connection, closed>" if self.closed else f"<idtree.Connection to {self.uri}>"

    def iter_ids(self, n: int | None = None, block: int = 1024) -> Iterator[int]:
        """Yield n new FLUIDs (None: without end), in increasing order.  They are requested in blocks, when needed.

        >>> with connect() as c:
        ...     sum(1 for _ in c.iter_ids(10_000))
        10000
        """
        if block < 1 or (n is not None and n < 0):
            raise ValueError("the number of ids must be 0 or more, the block 1 or more")
        blocks = repeat(block) if n is None else chain(repeat(block, n // block), (n % block,))
        return chain.from_iterable(map(self.ids, blocks))

    def ids_array(self, n: int) -> array[int]:
        """Return n new FLUIDs, in increasing order, as array('Q'); n is at most MAX_IDS.

        >>> with connect() as c:
        ...     len(c.ids_array(1000))
        1000
        """
        n = index(n)  # 8 * n could overflow if n were a NumPy number
        if not 0 <= n <= _idtree.MAX_IDS:
            raise ValueError(f"an array has 0 to {_idtree.MAX_IDS} ids, and not {n}: fill() fills a buffer of any size")
        ids = array("Q", bytes(8 * n))
        self.fill(ids)
        return ids

    def rpc(self, topic: str, payload: Any = None, rank: int | None = None, timeout: float = 30.0) -> Any:
        """Send a request with an object, and return the object of the answer, or None if the answer is empty.

        rank: None is the nearest rank that has the service: the connected rank, or its nearest ancestor that has it.

        >>> with connect() as c:
        ...     c.rpc("attr.get", {"name": "rank"})["value"]
        '0'
        """
        text = None if payload is None else json.dumps(payload)
        try:
            answer = self.call(topic, text, ANY_RANK if rank is None else rank, timeout)
        except OSError as e:
            if e.strerror != os.strerror(e.errno or 0):
                raise
            to = topic if rank is None else f"{topic} at rank {rank}"
            raise OSError(e.errno, f"{to}: {e.strerror}") from None  # the error has no text of the service
        return None if answer is None else json.loads(answer)

    def _others(self, kind: Any, request: dict[str, int]) -> list[bytes]:
        name = kind.__name__.rpartition(".")[2]
        return [kind.parse(text) for text in self.rpc(f"{name}.generate", request)["ids"]]

    def flax(self, n: int = 1) -> list[bytes]:
        """Return n new flax ids from the flake module of the broker."""
        return self._others(flax, {"count": n})

    def sno(self, n: int = 1, meta: int = 0) -> list[bytes]:
        """Return n new sno ids with the metadata byte meta, from the flake module of the broker."""
        return self._others(sno, {"count": n, "meta": meta})

    def uid(self, n: int = 1) -> list[bytes]:
        """Return n new global uids from the flake module of the broker."""
        return self._others(uid, {"count": n})

    def document(self, name: str, timeout: float = 30.0) -> _idtree.Document:
        """Open a new session in a document of the id compressor.  If the document does not exist, it is made.

        >>> with connect() as c, c.document("drawing") as d:
        ...     id = d.generate()                 # can be used in this session immediately
        ...     op = d.to_op(id)                  # for other sessions: send op and d.session
        ...     d.settle(30)                      # from now on the id is the same in all sessions
        ...     d.id_of(d.uuid(id)) == id, d.settled
        (True, True)
        """
        return _idtree.Document(self, name, timeout)

    def publish(self, topic: str, payload: Any = None) -> int:
        """Publish an event with an object as payload, and return the number of the event in the instance.

        >>> with connect() as c:
        ...     c.subscribe("weather.")
        ...     seq = c.publish("weather.rain", {"mm": 3})
        ...     c.event(timeout=30) == Event("weather.rain", {"mm": 3}, seq)
        True
        """
        request: dict[str, Any] = {"topic": topic, "flags": 0}
        if payload is not None:
            request["payload"] = b64encode(json.dumps(payload).encode() + bytes(1)).decode()
        return int(self.rpc("event.publish", request)["seq"])

    def event(self, timeout: float = -1.0) -> Event:
        """Wait for the next event of any subscription; TimeoutError if none arrives within timeout seconds."""
        topic, text, seq = self._event(timeout)
        return Event(topic, None if text is None else json.loads(text), seq)

    @property
    def rank(self) -> int:
        """The rank of the broker."""
        return int(self.attr("rank"))

    @property
    def size(self) -> int:
        """The number of ranks of the instance."""
        return int(self.attr("size"))

    @property
    def epoch(self) -> datetime:
        """The date of timestamp 0 of this instance's FLUIDs."""
        if self._epoch is None:
            text = self.rpc("fluid.info", {})["epoch"]
            self._epoch = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return self._epoch

    def time(self, id: int) -> datetime:
        """The time at which a FLUID of this instance was made.

        >>> with connect() as c:
        ...     abs((c.time(c.id()) - datetime.now(timezone.utc)).total_seconds()) < 3600
        True
        """
        return self.epoch + timedelta(milliseconds=fluid.split(id).timestamp_ms)


def connect(uri: str | None = None, reconnect: bool = False, timeout: float = 30.0) -> Connection:
    """Connect to a broker, as Connection() does."""
    return Connection(uri, reconnect, timeout)


def _after_fork() -> None:
    for c in _connections:
        c._set_forked()


os.register_at_fork(after_in_child=_after_fork)
