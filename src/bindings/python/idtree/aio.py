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

Each connection has a thread that waits for it, so the event loop never does; calls are made in the order in which they
were asked for.  A call that is cancelled while it is under way is done all the same, and nobody gets its answer.
"""
from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from ._connection import Connection as _Blocking
from ._connection import Event

T = TypeVar("T")

_SLICE = 0.2  # seconds for which the thread waits for an event before it looks whether there is other work


class Connection:
    """What idtree.Connection has, to be awaited; connect() makes one."""

    def __init__(self, blocking: _Blocking, thread: ThreadPoolExecutor) -> None:
        self._blocking = blocking
        self._thread = thread

    async def _run(self, call: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *args)

    async def id(self) -> int:
        """One new FLUID."""
        return await self._run(self._blocking.id)

    async def ids(self, n: int) -> list[int]:
        """n new FLUIDs, in increasing order."""
        return await self._run(self._blocking.ids, n)

    async def ids_array(self, n: int) -> array[int]:
        """The same as array('Q')."""
        return await self._run(self._blocking.ids_array, n)

    async def prefetch(self, n: int, max_age: float = 1.0) -> None:
        """Keep ids at hand."""
        await self._run(self._blocking.prefetch, n, max_age)

    async def rpc(self, topic: str, payload: Any = None, rank: int | None = None, timeout: float = 30.0) -> Any:
        """Send a request and return its answer."""
        return await self._run(self._blocking.rpc, topic, payload, rank, timeout)

    async def publish(self, topic: str, payload: Any = None) -> int:
        """Publish an event; returns its number."""
        return await self._run(self._blocking.publish, topic, payload)

    async def events(self, prefix: str) -> AsyncIterator[Event]:
        """Subscribe, and yield each event whose topic begins so."""
        await self._run(self._blocking.subscribe, prefix)
        try:
            while True:
                try:
                    yield await self._run(self._blocking.event, _SLICE)
                except TimeoutError:
                    pass
        finally:
            await self._run(self._blocking.unsubscribe, prefix)

    async def close(self) -> None:
        """End the connection."""
        await self._run(self._blocking.close)
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


async def connect(uri: str | None = None, reconnect: bool = False, timeout: float = 30.0) -> Connection:
    """Connect to a broker, as idtree.connect() does."""
    thread = ThreadPoolExecutor(1, "idtree")
    try:
        blocking = await asyncio.get_running_loop().run_in_executor(thread, _Blocking, uri, reconnect, timeout)
    except BaseException:
        thread.shutdown(wait=False)
        raise
    return Connection(blocking, thread)
