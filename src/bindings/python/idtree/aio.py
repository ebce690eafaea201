# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""Connections for asyncio.

>>> import asyncio, idtree.aio
>>> async def main():
...     async with await idtree.aio.connect() as c:
...         first = await c.id()
...         later = await asyncio.gather(c.ids(10), c.id())
...         return first < later[0][0] < later[1]
>>> asyncio.run(main())
True

Each connection has a thread that waits for the broker, so the event loop never blocks.  Calls run in the order in which
they were made.  If a call is cancelled, for example by asyncio.wait_for(), it stops waiting for the broker.  The broker
may have executed its request; the answer is dropped.
"""
from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from ._connection import Connection as _Blocking
from ._connection import Event

T = TypeVar("T")

_KEPT = 4096  # most events that are stored for a slow reader; further events are lost
_SLICE = 0.2  # seconds that the thread waits for an event until it looks for other calls


class _Reader:
    """A reader of events whose topics have a prefix, and the events that are stored for the reader."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.kept: deque[Event] = deque()
        self.lost = False
        self.subscribed = False

    def put(self, event: Event) -> None:
        if not event.topic.startswith((self.prefix, "event.lost")):
            return
        if len(self.kept) < _KEPT:
            self.kept.append(event)
        else:
            self.lost = True


class _Call:
    """A call that the thread executes or will execute."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False


class _Worker:
    """The thread of a connection: it executes one call after the other.  If a call is cancelled, it stops waiting."""

    def __init__(self, blocking: _Blocking) -> None:
        self.blocking = blocking
        self._pool = ThreadPoolExecutor(1, "idtree")
        self._lock = threading.Lock()  # guards _current, and the flag of blocking._interrupt()
        self._current: _Call | None = None

    def _make(self, this: _Call, call: Callable[..., T], *args: Any) -> T:
        """Execute a call in the thread."""
        with self._lock:
            if this.cancelled:
                raise InterruptedError(errno.EINTR, "cancelled")
            self._current = this
        try:
            return call(*args)
        finally:
            with self._lock:
                self._current = None
                self.blocking._interrupt(False)

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        this = _Call()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._make, this, call, *args)
        except asyncio.CancelledError:
            with self._lock:
                this.cancelled = True
                if self._current is this:
                    self.blocking._interrupt(True)
            raise

    def end(self) -> None:
        self._pool.shutdown(wait=False)


class Connection:
    """A connection like idtree.Connection, whose methods are coroutines; connect() makes it."""

    def __init__(self, worker: _Worker) -> None:
        self._blocking = worker.blocking
        self._worker = worker
        self._ended = False
        self._readers: tuple[_Reader, ...] = ()

    async def _run(self, call: Callable[..., T], *args: Any) -> T:
        if self._ended:
            raise ValueError("the connection is closed")
        return await self._worker.run(call, *args)

    async def id(self) -> int:
        """Return a new FLUID."""
        return await self._run(self._blocking.id)

    async def ids(self, n: int) -> list[int]:
        """Return a list of n new FLUIDs, in increasing order."""
        return await self._run(self._blocking.ids, n)

    async def ids_array(self, n: int) -> array[int]:
        """Return n new FLUIDs, in increasing order, as array('Q')."""
        return await self._run(self._blocking.ids_array, n)

    async def prefetch(self, n: int, max_age: float = 1.0) -> None:
        """Keep up to n ids prefetched; ids older than max_age seconds are not used."""
        await self._run(self._blocking.prefetch, n, max_age)

    async def rpc(self, topic: str, payload: Any = None, rank: int | None = None, timeout: float = 30.0) -> Any:
        """Send a request, and return the object of the answer."""
        return await self._run(self._blocking.rpc, topic, payload, rank, timeout)

    async def publish(self, topic: str, payload: Any = None) -> int:
        """Publish an event, and return its number in the instance."""
        return await self._run(self._blocking.publish, topic, payload)

    def _subscribe(self, reader: _Reader) -> None:
        """Subscribe, in the thread.  If the call is interrupted, blocking.subscribe() unsubscribes again."""
        self._blocking.subscribe(reader.prefix)
        reader.subscribed = True

    def _unsubscribe(self, reader: _Reader) -> None:
        """Unsubscribe, in the thread.  Each reader has its own subscription, even if prefixes are equal."""
        if reader.subscribed:
            self._blocking.unsubscribe(reader.prefix)

    def _take(self, reader: _Reader) -> None:
        """Get an event in the thread, if the reader has none.  All readers with a matching prefix get the event."""
        if reader.kept or reader.lost:
            return
        try:
            event = self._blocking.event(_SLICE)
        except TimeoutError:
            return
        except OSError as e:
            if e.errno != errno.ENOBUFS:
                raise
            for each in self._readers:
                each.lost = True
            return
        for each in self._readers:
            each.put(event)

    async def events(self, prefix: str) -> AsyncIterator[Event]:
        """Subscribe, and yield each event whose topic begins with the prefix."""
        reader = _Reader(prefix)
        self._readers += (reader,)
        try:
            await self._run(self._subscribe, reader)
            while True:
                await self._run(self._take, reader)
                while reader.kept:
                    yield reader.kept.popleft()
                if reader.lost:
                    reader.lost = False
                    raise OSError(errno.ENOBUFS, "events were lost: read them more often")
        finally:
            # If a loop over events is left, this runs later, in another task.  The connection may be closed by then.
            self._readers = tuple(each for each in self._readers if each is not reader)
            with contextlib.suppress(OSError, ValueError):
                await self._run(self._unsubscribe, reader)

    async def close(self) -> None:
        """Close the connection; waiting calls raise ValueError.  Further calls of close() have no effect."""
        if self._ended:
            return
        self._ended = True
        try:  # not in the thread of the connection, which may be waiting for a silent broker
            await asyncio.get_running_loop().run_in_executor(None, self._blocking.close)
        finally:
            self._worker.end()

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


async def connect(uri: str | None = None, reconnect: bool = False, timeout: float = 30.0) -> Connection:
    """Connect to a broker.  The arguments are those of idtree.connect()."""
    worker = _Worker(_Blocking.__new__(_Blocking))
    try:
        await worker.run(_Blocking.__init__, worker.blocking, uri, reconnect, timeout)
    except BaseException:
        worker.end()
        raise
    return Connection(worker)
