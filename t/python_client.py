# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""python_client.py - tests of the package idtree, in an instance of two ranks where rank 0 makes the ids"""
import array
import asyncio
import contextlib
import copy
import ctypes
import doctest
import errno
import gc
import importlib
import inspect
import itertools
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import idtree
from idtree import aio

try:
    import numpy
except ImportError:
    numpy = None
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    interpreters = None

FAR = os.environ["IDTREE_URI"][:-1] + "1"
CLONE_NEWPID = 0x20000000
CANNOT = 99
MODULES = ["", ".flax", ".fluid", ".idcomp", ".sno", ".uid", "._connection", ".aio"]

PATIENCE = 60
CTRL_C = """
def says():
    print("connected", flush=True)
    sys.stdin.readline()
    signal.signal(signal.SIGALRM, lambda signum, frame: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
async def main():
    async with await aio.connect(sys.argv[1]) as c:
        says()
        await c.id()
def wait():
    with idtree.connect(sys.argv[1]) as c:
        says()
        c.id()
"""


@contextlib.contextmanager
def silence():
    """While this lasts, the broker of rank 1 is silent."""
    with idtree.connect(FAR) as c:
        pid = int(c.attr("broker.pid"))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Ids(unittest.TestCase):
    def setUp(self):
        self.c = idtree.connect(FAR)
        self.addCleanup(self.c.close)

    def test_each_way_increases(self):
        numbers = array.array("Q", bytes(8 * 10))
        raw = bytearray(80)
        got = [self.c.id(), *self.c.ids(2000), *self.c.fill(numbers), *memoryview(self.c.fill(raw)).cast("Q")]
        self.c.prefetch(64)
        got += [self.c.id() for _ in range(1000)] + self.c.ids(100) + list(self.c.ids_array(70000))
        self.assertEqual(got, sorted(set(got)))
        self.assertEqual(len(got), 1 + 2000 + 10 + 10 + 1000 + 100 + 70000)
        self.assertEqual(self.c.ids(0), [])
        table = self.c.fill((ctypes.c_uint64 * 3)())
        self.assertTrue(got[-1] < table[0] < table[1] < table[2])

    @unittest.skipUnless(numpy, "no NumPy")
    def test_numpy(self):
        table = self.c.fill(numpy.empty((10, 10), dtype=numpy.uint64))
        self.assertTrue((numpy.diff(table.ravel()) < 2**63).all())
        self.assertGreater(numpy.frombuffer(self.c.ids_array(1), dtype=numpy.uint64)[0], table[-1, -1])
        for wrong in (numpy.empty(4), numpy.empty(4, dtype=">u8"), numpy.empty(4, dtype=numpy.int64), table[:, 1]):
            with self.assertRaises((ValueError, BufferError)):
                self.c.fill(wrong)

    def test_wrong_arguments(self):
        with self.assertRaises(ValueError):
            self.c.ids(-1)
        with self.assertRaises(TypeError):
            self.c.ids("1")
        for buffer in array.array("d", [0.0]), array.array("I", [1, 2]), bytearray(7):
            with self.assertRaises(ValueError):
                self.c.fill(buffer)
        with self.assertRaises((TypeError, BufferError)):
            self.c.fill(bytes(8))
        for n, age in (-1, 1), (65537, 1), (1, 0), (1, float("nan")), (1, 1e9):
            with self.assertRaises(ValueError):
                self.c.prefetch(n, age)

    def test_bounds(self):
        """Lists have a size limit, and iterators have none. A count out of range is refused, not truncated."""
        for call in (self.c.ids, self.c.ids_array, idtree.flax.Generator().ids):
            for n in idtree.MAX_IDS + 1, 10**9:
                with self.assertRaisesRegex(ValueError, "16777216"):
                    call(n)
        got = [*self.c.iter_ids(0), *self.c.iter_ids(2500, 1000), *itertools.islice(self.c.iter_ids(), 3000)]
        self.assertEqual((len(got), got), (5500, sorted(set(got))))

        class Small:  # like a NumPy number of 8 bits, which cannot hold 8 times 100
            def __index__(self):
                return 100

        self.assertEqual(len(self.c.ids_array(Small())), 100)
        for n, block in (-1, 1), (1, 0):
            with self.assertRaises(ValueError):
                self.c.iter_ids(n, block)
        for rank in -1, 2**32:
            with self.assertRaises(OverflowError):
                self.c.call("broker.ping", "{}", rank)

    def test_life(self):
        """repr() describes a connection; it is initialized once, cannot be copied, and works in a sub-interpreter."""
        with idtree.connect(FAR) as c, c.document("life") as d:
            self.assertEqual((repr(c), repr(d)), (f"<idtree.Connection to {FAR}>", "<idtree.Document 'life'>"))
            for it in c, d, idtree.sno.Generator(1), idtree.idcomp.Compressor():
                for copied in pickle.dumps, copy.copy:
                    with self.assertRaises(TypeError):
                        copied(it)
            with self.assertRaisesRegex(ValueError, "once"):
                c.__init__(FAR)
            self.assertGreater(c.id(), 0)
        self.assertEqual((repr(c), repr(d)), ("<idtree.Connection, closed>", "<idtree.Document, closed>"))

    def test_cycle(self):
        """A connection that has a document among its own attributes is freed, too."""
        c = idtree.connect(FAR)
        c.drawing = c.document("cycle")
        gone = weakref.ref(c)
        del c
        gc.collect()
        self.assertIsNone(gone())

    @unittest.skipUnless(interpreters, "no sub-interpreters")
    def test_interpreters(self):
        other = interpreters.create()
        interpreters.run_string(other, "import idtree\nwith idtree.connect() as c: assert c.id() < c.id()")
        interpreters.destroy(other)
        self.assertGreater(self.c.id(), 0)

    def end_wait(self, wait, end):
        """Another thread calls wait(), then this thread calls end(): wait() must fail."""
        failed = []

        def run():
            waits.set()
            try:
                wait()
            except (OSError, ValueError) as e:
                failed.append(e)

        waits = threading.Event()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        waits.wait()
        ended = threading.Thread(target=end, daemon=True)  # a daemon, because end() may hang, too
        ended.start()
        for each in ended, thread:
            each.join(PATIENCE)
            self.assertFalse(each.is_alive())
        self.assertIsInstance(failed[0], ValueError)
        self.assertRegex(str(failed[0]), "closed")

    def test_closed_by_another(self):
        """A thread that waits without a timeout gets an error when its connection is closed."""
        for wait in lambda c: c.event(), lambda c: c.rpc("deaf.ask"):
            c = idtree.connect(FAR)
            c.subscribe("never.")
            c.rpc("service.add", {"service": "deaf"})
            self.end_wait(lambda: wait(c), c.close)

    def test_closed_while_the_broker_is_silent(self):
        """If a thread is in any other call, or waits for a document that is closed, it gets an error, too."""
        calls = [
            lambda c: c.id(),
            lambda c: c.ids(100000),
            lambda c: c.fill(bytearray(80)),
            lambda c: c.ids_array(10),
            lambda c: next(c.iter_ids()),
            lambda c: c.attr("no.such"),
            lambda c: c.size,
            lambda c: c.epoch,
            lambda c: c.rpc("broker.ping", {}),
            lambda c: c.call("broker.ping", "{}"),
            lambda c: c.sno(1),
            lambda c: c.publish("x.y"),
            lambda c: c.subscribe("x."),
            lambda c: c.unsubscribe("never."),
            lambda c: c.event(),
            lambda c: c.document("late"),
            lambda c: c.drawing.settle(),
            lambda c: c.drawing.sync(),
        ]
        connections = [idtree.connect(FAR) for _ in calls]
        for c in connections:
            c.subscribe("never.")
            c.drawing = c.document("silent")
        other = idtree.connect(FAR)
        drawing = other.document("silent")
        with silence():
            connections[-2].drawing.generate()
            for c, call in zip(connections, calls):
                self.end_wait(lambda: call(c), c.close)
            self.end_wait(drawing.sync, drawing.close)
            self.assertFalse(other.closed)

    def test_connecting_is_ended(self):
        """A connection that is still being made can be closed."""
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as silent:
            silent.bind(f"{folder}/silent")
            silent.listen()
            c = idtree.Connection.__new__(idtree.Connection)
            self.end_wait(lambda: c.__init__(f"local://{folder}/silent", timeout=3600), c.close)

    def test_closed(self):
        with idtree.connect(FAR) as c:
            self.assertEqual((c.uri, c.closed), (FAR, False))
        self.assertEqual((c.uri, c.closed), (None, True))
        with self.assertRaisesRegex(ValueError, "closed"):
            c.id()
        c.close()

    def test_no_broker(self):
        with self.assertRaisesRegex(FileNotFoundError, "/nosuch"):
            idtree.connect("local:///nosuch/socket")
        with self.assertRaises(OSError) as e:
            idtree.connect("http://x")
        self.assertEqual(e.exception.errno, errno.EINVAL)

    def test_requests(self):
        self.assertEqual((self.c.rank, self.c.size), (1, 2))
        self.assertEqual(self.c.rpc("attr.get", {"name": "rank"}, rank=0)["value"], "0")
        with self.assertRaises(KeyError):
            self.c.attr("no.such")
        with self.assertRaisesRegex(OSError, "No service matching") as e:
            self.c.rpc("nosuch.method")
        self.assertEqual(e.exception.errno, errno.ENOSYS)
        with self.assertRaisesRegex(OSError, "attr.get at rank 99: No route to host"):
            self.c.rpc("attr.get", {"name": "rank"}, rank=99)
        with self.assertRaisesRegex(FileNotFoundError, "attr.get: No such file or directory"):
            self.c.rpc("attr.get", {"name": "nosuch"})

    def test_threads(self):
        self.c.prefetch(16)
        got = [[] for _ in range(8)]

        def run(ids):
            for _ in range(300):
                ids.append(self.c.id())

        threads = [threading.Thread(target=run, args=(ids,)) for ids in got]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for ids in got:
            self.assertEqual(ids, sorted(ids))
        self.assertEqual(len(set().union(*got)), 8 * 300)

    def test_fork(self):
        self.c.prefetch(64)
        first = self.c.id()
        pid = os.fork()
        if pid == 0:
            try:
                self.c.id()
            except ValueError:
                self.c.close()
                with idtree.connect(FAR) as own:
                    os._exit(0 if own.id() != first + 1 else 2)
            os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.c.id(), first + 1)

    def test_interrupt(self):
        """A signal handler runs while a call waits, and ends the call by an exception."""

        class Alarm(Exception):
            pass

        def handler(signum, frame):
            with self.assertRaises(RuntimeError):
                self.c.id()
            raise Alarm

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.c.rpc("service.add", {"service": "deaf"})  # its requests arrive at this connection, which answers none
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        with self.assertRaises(Alarm):
            self.c.rpc("deaf.ask")
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertGreater(self.c.id(), 0)

    def test_signal_ends_connecting(self):
        class Alarm(Exception):
            pass

        def handler(signum, frame):
            seen.append(signum)
            if len(seen) > 3:
                raise Alarm

        seen = []
        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as silent:
            silent.bind(f"{folder}/silent")
            silent.listen()
            signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
            with self.assertRaises(Alarm):
                idtree.connect(f"local://{folder}/silent", timeout=20)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def test_no_timeout(self):
        """A timeout that is not a number is refused."""
        nan = float("nan")
        self.c.subscribe("never.")
        with self.c.document("nan") as d:
            for wait in d.settle, d.sync, self.c.event:
                with self.assertRaises(ValueError):
                    wait(timeout=nan)
        for ask in lambda: idtree.connect(FAR, timeout=nan), lambda: self.c.call("broker.ping", "{}", timeout=nan):
            with self.assertRaises(ValueError):
                ask()

    def test_timeout(self):
        self.c.rpc("service.add", {"service": "deaf"})
        with self.assertRaises(TimeoutError):
            self.c.rpc("deaf.ask", timeout=0.01)

    def test_other_kinds(self):
        for kind in idtree.flax, idtree.sno, idtree.uid:
            ids = getattr(self.c, kind.__name__.rpartition(".")[2])(100)
            self.assertEqual(len(set(ids)), 100)
            for id in ids:
                self.assertEqual(kind.parse(kind.format(id)), id)
                self.assertLess(abs(kind.time(id).timestamp() - kind.time(ids[0]).timestamp()), 60)


class Documents(unittest.TestCase):
    def test_two_sessions(self):
        with idtree.connect(FAR) as c, idtree.connect() as other:
            with c.document("shared") as d, other.document("shared") as e:
                ids = [d.generate() for _ in range(1000)]
                uuids = [d.uuid(id) for id in ids]
                ops = [d.to_op(id) for id in ids]
                session = d.session
                d.settle(30)
                e.sync(30)
                self.assertEqual([e.uuid(e.to_session(op, session)) for op in ops], uuids)
                with self.assertRaises(ValueError):
                    e.uuid(-5)
                with self.assertRaises(ValueError):
                    e.id_of("403f1e16-5265-4074-8507-417d99a05ee9")
            with self.assertRaisesRegex(ValueError, "closed"):
                d.generate()

    def test_ends(self):
        """Documents that are never closed, or are closed after their connection, end cleanly, also in a child."""
        c = idtree.connect()
        c.document("a")
        d = c.document("b")
        pid = os.fork()
        if pid == 0:
            try:
                d.generate()
            except ValueError:
                d.close()
                c.close()
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertNotEqual(d.generate(), 0)
        c.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            d.generate()
        with self.assertRaisesRegex(ValueError, "closed"):
            c.document("c")
        with idtree.connect() as c, self.assertRaises(OSError):
            c.document("/")


class Alone(unittest.TestCase):
    """Compressors and generators in this process, without the instance."""

    def test_compressors(self):
        mine, yours = idtree.idcomp.Compressor(cluster_size=5), idtree.idcomp.Compressor()
        ids = [mine.generate() for _ in range(3)]
        uuids = [mine.uuid(id) for id in ids]
        made = mine.take()
        self.assertIsNone(mine.take())
        again = mine.take(unfinalized=True)
        self.assertEqual(again, made)
        for text in "", "{}", made[:-1], made + " x", "\u00e9":
            with self.assertRaisesRegex(ValueError, "not a range"):
                yours.finalize(text)
        for c in mine, yours:
            c.finalize(made)
            with self.assertRaises(ValueError):  # a range can be finalized only once
                c.finalize(made)
        ops = [mine.to_op(id) for id in ids]
        self.assertEqual([yours.uuid(yours.to_session(op, mine.session)) for op in ops], uuids)
        self.assertEqual([yours.id_of(u) for u in uuids], ops)
        self.assertIsInstance(mine.generate_unique(), int)
        self.assertIsInstance(yours.generate_unique(), str)
        with self.assertRaises(ValueError):
            yours.uuid(10**6)
        with self.assertRaises(ValueError):
            yours.id_of("nonsense")
        yours.ghost_begin("403f1e16-5265-4074-8507-417d99a05ee9")
        ghost = yours.generate()
        with self.assertRaises(ValueError):
            yours.take()
        yours.ghost_end()
        self.assertEqual(yours.uuid(ghost), "403f1e16-5265-4074-8507-417d99a05ee9")

    def test_stored_compressors(self):
        Compressor = idtree.idcomp.Compressor
        first = Compressor("403f1e16-5265-4074-8507-417d99a05ee9")
        first.generate()
        first.finalize(first.take())
        waiting = first.generate()
        summary, whole = first.save(), first.save(local=True)
        resumed = Compressor(stored=whole, local=True)
        self.assertEqual((resumed.session, resumed.uuid(waiting)), (first.session, first.uuid(waiting)))
        self.assertEqual(Compressor(stored=summary).save(), summary)
        for wrong in (
            {"session": "403f1e16"},
            {"local": True},
            {"stored": whole},
            {"stored": summary, "local": True},
            {"stored": summary, "session": first.session},
            {"stored": summary[:-8]},
            {"stored": b""},
            {"cluster_size": 0},
        ):
            with self.assertRaises(ValueError, msg=wrong):
                Compressor(**wrong)
        with self.assertRaises(ValueError):
            Compressor.__new__(Compressor).generate()

    def test_generators(self):
        for kind, make in (
            (idtree.flax, lambda: idtree.flax.Generator()),
            (idtree.sno, lambda: idtree.sno.Generator(65535)),
            (idtree.uid, lambda: idtree.uid.Generator(2**26 - 1)),
        ):
            g = make()
            ids = [g.id(), *g.ids(20000), g.id()]  # uid makes 16,384 ids in a step, then waits
            self.assertEqual(ids, sorted(set(ids)))
            self.assertEqual((g.ids(0), len(ids)), ([], 20002))
            self.assertEqual(kind.parse(kind.format(ids[0])), ids[0])
            self.assertLess(abs(kind.time(ids[-1]).timestamp() - kind.time(ids[0]).timestamp()), 60)
            with self.assertRaises(ValueError):
                g.ids(-1)
            with self.assertRaises(ValueError):
                type(g).__new__(type(g)).id()
        self.assertEqual(len(set(idtree.flax.Generator(increasing=False).ids(1000))), 1000)
        self.assertEqual(idtree.uid.split(idtree.uid.Generator("\u00e9@x").id(local=True)).fingerprint, None)

    def test_wrong_generators(self):
        for call in (
            lambda: idtree.sno.Generator(),
            lambda: idtree.sno.Generator(65536),
            lambda: idtree.sno.Generator(1, start="{"),
            lambda: idtree.sno.Generator(1).id(meta=256),
            lambda: idtree.uid.Generator("x", drift=99),
            lambda: idtree.fluid.Generator(2**14),
            lambda: idtree.fluid.Generator(0, 2, 1),
            lambda: idtree.fluid.Generator(0).reserve(0, 0),
        ):
            with self.assertRaises(ValueError):
                call()
        for call in lambda: idtree.uid.Generator(2**26), lambda: idtree.uid.Generator(-1):
            with self.assertRaises(OverflowError):
                call()
        with self.assertRaises(TypeError):
            idtree.uid.Generator(None)

    def test_fluids(self):
        g = idtree.fluid.Generator(3, 1000, 2000)
        self.assertEqual(len(g.reserve(1000, 5000)), 1024)
        with self.assertRaises(BlockingIOError):
            g.reserve(1000)
        g.follow(idtree.fluid.join(1500, 16383, 0))
        with self.assertRaises(BlockingIOError):
            g.reserve(1499)
        self.assertGreater(g.reserve(1500 + 1)[0], idtree.fluid.join(1500, 16383, 0))
        with self.assertRaises(OSError):
            g.reserve(2000)
        g.set_range(2000, 3000)
        self.assertEqual(idtree.fluid.split(g.reserve(2000)[0]), (2000, 3, 0))
        top = idtree.fluid.Generator(16383).reserve(2**40 - 1, 1024)
        self.assertEqual((top[-1], len(top)), (2**64 - 1, 1024))

    def test_forked(self):
        c, generators = idtree.idcomp.Compressor(), [idtree.sno.Generator(1), idtree.uid.Generator(1)]
        fluids = idtree.fluid.Generator(1)
        pid = os.fork()
        if pid == 0:
            failed = 0
            for call in [g.id for g in generators] + [c.generate, lambda: fluids.reserve(5)]:
                try:
                    call()
                except PermissionError:
                    failed += 1
            os._exit(0 if failed == 4 else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_forked_into_another_namespace(self):
        """A child is recognized although it has its parent's process id, because it is in another namespace."""
        libc = ctypes.CDLL(None)

        def inside(run):  # run as process 1; return its exit status, 0 to 100
            pid = os.fork()
            if pid == 0:
                if libc.unshare(CLONE_NEWPID) != 0:
                    os._exit(CANNOT)
                pid = os.fork()
                if pid == 0:
                    os._exit(run() if os.getpid() == 1 else CANNOT)
                os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        def parent():
            fluids = idtree.fluid.Generator(1)

            def child():
                try:
                    fluids.reserve(5)
                except PermissionError:
                    return 0
                return 1

            return inside(child)

        status = inside(parent)
        if status == CANNOT:
            self.skipTest("no namespace of processes can be made")
        self.assertEqual(status, 0)

    def test_signal_while_waiting(self):
        """A generator that has to wait for years can be interrupted."""

        class Alarm(Exception):
            pass

        def handler(signum, frame):
            raise Alarm

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        g = idtree.uid.Generator(1, after_us=4 * 10**15)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        with self.assertRaises(Alarm):
            g.id()
        signal.setitimer(signal.ITIMER_REAL, 0)


class Events(unittest.TestCase):
    def test_events(self):
        with idtree.connect(FAR) as c, idtree.connect() as other:
            with self.assertRaises(ValueError):
                c.event()
            c.subscribe("x.")
            other.publish("y.1")
            other.publish("x.1", ["\u00e9", 2**53])
            last = other.publish("x.2")
            self.assertEqual(c.event(30)[:2], ("x.1", ["\u00e9", 2**53]))
            self.assertGreater(c.id(), 0)
            self.assertEqual(c.event(30), ("x.2", None, last))
            with self.assertRaises(TimeoutError):
                c.event(0.01)
            for i in range(5000):
                other.publish("x.many", i)
            self.assertEqual([c.event(30).payload for _ in range(5000)], list(range(5000)))
            with c.document("meanwhile") as d:
                for i in range(5000):
                    other.publish("x.many", i)
                d.sync(30)  # receives more events than are kept
            for i in range(4096):
                self.assertEqual(c.event(30).payload, i)
            with self.assertRaisesRegex(OSError, "lost"):
                c.event(30)
            c.unsubscribe("x.")
            other.publish("x.3")
            with self.assertRaises(TimeoutError):
                c.event(0.01)

    def test_subscribing_is_interrupted(self):
        """If subscribe() is interrupted, it undoes its own request to the broker, and no other subscription."""

        class Alarm(Exception):
            pass

        def handler(signum, frame):
            raise Alarm

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for reconnect in False, True:
            with idtree.connect(FAR, reconnect=reconnect) as c, idtree.connect() as other:
                c.subscribe("a.")
                with silence(), self.assertRaises(Alarm):
                    signal.setitimer(signal.ITIMER_REAL, 0.1)
                    c.subscribe("a.")
                other.publish("a.1")
                self.assertEqual(c.event(PATIENCE).topic, "a.1")
                c.unsubscribe("a.")
                with self.assertRaises(FileNotFoundError):
                    c.unsubscribe("a.")

    def test_apart(self):
        """Events of documents are not returned. A signal ends no wait. Unsubscribing drops pending events."""
        with idtree.connect(FAR) as c, idtree.connect() as other, c.document("apart") as d:
            c.subscribe("x.")
            with other.document("apart") as e:
                e.generate()
                e.settle(30)
            d.sync(30)
            other.publish("x.1")
            self.assertEqual(c.event(30).topic, "x.1")
            other.publish("x.2")
            d.sync(30)
            c.unsubscribe("x.")
            c.subscribe("y.")
            other.publish("y.1")
            self.assertEqual(c.event(30).topic, "y.1")
            before = signal.signal(signal.SIGALRM, lambda signum, frame: None)
            self.addCleanup(signal.signal, signal.SIGALRM, before)
            begun = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            with self.assertRaises(TimeoutError):
                c.event(0.5)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.assertGreaterEqual(time.monotonic() - begun, 0.5)

    def test_async_readers(self):
        """Each reader gets its own events; a connection is closed once."""

        async def read(c, prefix, ready):
            got = []
            async for event in c.events(prefix):
                ready.set()
                if event.payload is not None:
                    got.append((event.topic, event.payload))
                if len(got) == 20:
                    return got

        async def begin(c, other, prefix):
            ready = asyncio.Event()
            task = asyncio.create_task(read(c, prefix, ready))
            while not ready.is_set():  # until it has subscribed
                await other.publish(prefix)
                await asyncio.sleep(0)
            return task

        async def main():
            c, other = await aio.connect(FAR), await aio.connect()
            tasks = [await begin(c, other, prefix) for prefix in ("a.", "b.", "a.")]
            for i in range(20):
                await other.publish("b.2", i)
                await other.publish("a.2", i)
            for got, topic in zip(await asyncio.gather(*tasks), ("a.2", "b.2", "a.2")):
                self.assertEqual(got, [(topic, i) for i in range(20)])
            for each in c, other, c:
                await each.close()
            with self.assertRaisesRegex(ValueError, "closed"):
                await c.id()

        asyncio.run(main())

    def test_async(self):
        async def collect(c, ready):
            got = []
            async for event in c.events("a."):
                got.append(event.payload)
                if event.payload == 3:
                    return got

        async def main():
            async with await aio.connect(FAR) as c, await aio.connect() as other:
                await c.prefetch(64)
                ids = [id for part in await asyncio.gather(*(c.ids(10) for _ in range(100))) for id in part]
                self.assertEqual(ids, sorted(set(ids)))
                collecting = asyncio.create_task(collect(c, None))
                await c.id()
                while not collecting.done():  # events before it has subscribed are not received
                    for i in range(4):
                        await other.publish("a.b", i)
                    await c.id()
                got = await collecting
                self.assertEqual(got[-4:], [0, 1, 2, 3])
                with self.assertRaises(FileNotFoundError):
                    await aio.connect("local:///nosuch/socket")

        asyncio.run(main())

    def test_async_break(self):
        """Leaving a loop over events and closing the connection immediately leaves no unhandled task error."""
        unseen = []

        async def feed(c):
            while True:
                await c.publish("z.1")

        async def leave(close_first):
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
            async with await aio.connect() as other:
                feeding = asyncio.create_task(feed(other))
                c = await aio.connect(FAR)
                async with c:
                    async for event in c.events("z."):
                        self.assertEqual(event.topic, "z.1")
                        break
                    if close_first:
                        await c.close()
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)

        for i in range(40):
            asyncio.run(leave(i % 2))
            gc.collect()
        self.assertEqual(unseen, [])

    def test_async_closed_while_it_is_read(self):
        """A reader gets an error when its connection is closed."""

        async def main():
            c = await aio.connect(FAR)
            reading = asyncio.create_task(anext(c.events("never.")))
            await c.id()
            await c.close()
            with self.assertRaisesRegex(ValueError, "closed"):
                await reading

        asyncio.run(main())

    def test_async_silence(self):
        """If a call that waits for a silent broker is cancelled, the call ends, and its connection can be closed."""

        async def main():
            async with await aio.connect(FAR) as c, await aio.connect(FAR) as d, await aio.connect(FAR) as e:
                reading = asyncio.create_task(anext(d.events("never.")))
                await d.id()
                with silence():
                    for call in c.id, c.publish, c.rpc:
                        with self.assertRaises(TimeoutError):
                            await asyncio.wait_for(call(*([] if call == c.id else ["broker.ping"])), 0.1)
                    waiting = [asyncio.create_task(call) for call in (e.id(), e.ids(3))]
                    await asyncio.sleep(0)
                    await e.close()
                    for each in await asyncio.gather(*waiting, return_exceptions=True):
                        self.assertRegex(str(each), "closed")
                    await d.close()
                self.assertGreater(await c.id(), 0)
                with self.assertRaisesRegex(ValueError, "closed"):
                    await reading

        asyncio.run(asyncio.wait_for(main(), PATIENCE))

    def test_async_readers_are_apart(self):
        """If a reader was refused or did not subscribe, another reader keeps its subscription to the same prefix."""

        async def main():
            async with await aio.connect(FAR) as c, await aio.connect() as other:
                events = c.events("a.")

                async def hears(topic):
                    reading = asyncio.create_task(anext(events))
                    await asyncio.sleep(0)
                    await c.id()  # runs after the call that subscribes
                    await other.publish(topic)
                    self.assertEqual((await asyncio.wait_for(reading, PATIENCE)).topic, topic)

                await hears("a.1")
                with silence():
                    asking = asyncio.create_task(c.id())
                    queued = asyncio.create_task(anext(c.events("a.")))
                    await asyncio.sleep(0)
                    queued.cancel()
                    await asyncio.sleep(0)
                await asyncio.gather(asking, queued, return_exceptions=True)
                self.assertTrue(queued.cancelled())
                await hears("a.2")
                with self.assertRaises(OSError) as refused:
                    while True:
                        await c.rpc("event.subscribe", {"topic": "other."})
                self.assertEqual(refused.exception.errno, errno.ENOSPC)
                with self.assertRaises(OSError) as refused:
                    await anext(c.events("a."))
                self.assertEqual(refused.exception.errno, errno.ENOSPC)
                await hears("a.3")

        asyncio.run(main())

    def test_async_connecting(self):
        """If connecting to a silent broker is cancelled, it ends, too."""

        async def main(folder):
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(aio.connect(f"local://{folder}/silent", timeout=3600), 0.1)

        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as silent:
            silent.bind(f"{folder}/silent")
            silent.listen()
            asyncio.run(main(folder))
            for thread in threading.enumerate():
                if thread.name.startswith("idtree"):
                    thread.join(PATIENCE)
                    self.assertFalse(thread.is_alive())

    def test_ctrl_c(self):
        """The first Ctrl-C ends a program that waits for a silent broker."""
        for wait in (
            "wait()",
            "asyncio.run(main())",
        ):
            program = f"import asyncio, signal, sys, idtree\nfrom idtree import aio\n{CTRL_C}\n{wait}"
            with subprocess.Popen(
                [sys.executable, "-c", program, FAR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as child:
                try:
                    self.assertEqual(child.stdout.readline(), b"connected\n")
                    with silence():
                        _, errors = child.communicate(b"\n", timeout=PATIENCE)
                finally:
                    child.kill()
                self.assertIn(b"KeyboardInterrupt", errors)


class Help(unittest.TestCase):
    def test_all_is_told(self):
        """help() has a description and a signature of each name."""
        things = [idtree.Connection, idtree.Document, idtree.idcomp.Compressor]
        kinds = [idtree.fluid, idtree.flax, idtree.sno, idtree.uid]
        things += [kind.Generator for kind in kinds] + kinds + [idtree.idcomp, idtree.aio.Connection]
        for thing in things:
            for name in vars(thing):
                what = getattr(thing, name)
                if not name.startswith("_") and callable(what) and getattr(what, "__module__", "idtree").startswith("idtree"):
                    self.assertTrue(what.__doc__, f"{thing.__name__}.{name}")
                    if name != "Fields":
                        inspect.signature(what)


class Values(unittest.TestCase):
    def test_what_is_no_id(self):
        for kind, texts in (
            (idtree.fluid, ["", "x", "0x", "f0"]),
            (idtree.flax, ["", "0RdKJcxqVBiAiQr", "0RdKJcxqVBiAiQr00", "0RdKJcxqVBiAiQr\u00e9"]),
            (idtree.sno, ["", "brpk4q72xwf2m63", "BRPK4Q72XWF2M63L"]),
            (idtree.uid, ["", ".5.tXVEf8n4vPN.", "+5.tXVEf8n4vPN.0"]),
            (idtree.idcomp, ["", "403f1e16-5265-3074-8507-417d99a05ee9"]),
        ):
            for text in texts:
                with self.assertRaises(ValueError, msg=f"{kind.__name__} {text}"):
                    kind.parse(text)
        with self.assertRaises(OverflowError):
            idtree.fluid.parse(str(2**64))
        with self.assertRaises(OverflowError):
            idtree.fluid.format(2**64)
        with self.assertRaises(OverflowError):
            idtree.fluid.format(-1)
        for kind in idtree.flax, idtree.sno, idtree.uid, idtree.idcomp:
            with self.assertRaises(ValueError):
                kind.format(b"12345")
            with self.assertRaises(TypeError):
                kind.format("12345")

    def test_all_forms(self):
        for form in idtree.fluid.FORMS:
            for id in 0, 1, 2**63, 2**64 - 1, 6731191091817518:
                self.assertEqual(idtree.fluid.parse(idtree.fluid.format(id, form)), id)
        with self.assertRaisesRegex(ValueError, "^unknown form 'base64': the forms are dec, .*, ƒ58, words, emoji$"):
            idtree.fluid.format(1, "base64")

    def test_fields_out_of_range(self):
        for call in (
            lambda: idtree.fluid.join(2**40, 0, 0),
            lambda: idtree.fluid.join(0, 2**14, 0),
            lambda: idtree.fluid.join(2**64, 0, 0),
            lambda: idtree.fluid.join(0, 2**32, 0),
            lambda: idtree.fluid.join(0, 0, -1),
            lambda: idtree.fluid.range(-1, 1),
            lambda: idtree.fluid.Generator(2**32),
            lambda: idtree.fluid.Generator(0).reserve(2**64),
            lambda: idtree.flax.join(1500000000000, 2**64),
            lambda: idtree.sno.join(1500000000000, 2**32, 0, 0, 0),
            lambda: idtree.flax.join(0, 0),
            lambda: idtree.flax.join(1500000000000, 2**56),
            lambda: idtree.sno.join(0, 0, 0, 0, 0),
            lambda: idtree.sno.join(2**62, 0, 0, 0, 0),
            lambda: idtree.sno.join(1500000000000, 2, 0, 0, 0),
            lambda: idtree.sno.range(2**62, 2**62),
        ):
            with self.assertRaises(OverflowError):
                call()
        with self.assertRaises(ValueError):
            idtree.fluid.range(2, 1)
        with self.assertRaises(ValueError):
            idtree.uid.split(bytes(12), 11)


def load_tests(loader, tests, pattern):
    for name in MODULES:
        tests.addTests(doctest.DocTestSuite(importlib.import_module("idtree" + name)))
    return tests


if __name__ == "__main__":
    unittest.main()
