#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# quota_client.py - users who exceed their quotas over several connections
#
#   quota_client.py NAME...   run checks (the functions below with these names) against the instance at FLUX_URI; exit
#                             status 0: all have passed
#
# The owner sends all messages. They have the ids and roles of the users whom they stand for (Flux RFC 3).
import errno
import os
import subprocess
import sys

from flux_client import STREAMING, USER, Client, Failure, await_that, check
from ingest_client import JOBSPEC, SUBMIT

ONE, OTHER = {"userid": 1000, "roles": USER}, {"userid": 1001, "roles": USER}


def send(clients, n, topic, payload, flags=0, **who):
    """Send 'n' requests over the connections, in turn. Returns a connection and a matchtag for each request."""
    return [(c, c.request(topic, payload, flags=flags, **who)) for c in (clients[i % len(clients)] for i in range(n))]


def send_all_held(*args, **more):
    """As send (). All requests have been read when it returns, so a later request of any connection is behind them."""
    asked = send(*args, **more)
    for c in {c for c, _ in asked}:
        check(c.fence() == [], "none is answered yet")
    return asked


def answers(asked):
    return [c.answer(tag) for c, tag in asked]


def refused(c, errnum, topic, payload, flags=0, **who):
    c.refuse(errnum, topic, payload, flags=flags, text="1000|too many", **who)


def subscriptions():
    """A guest may have 64 subscriptions over all connections; other users have their own."""
    clients = [Client() for _ in range(4)]
    for m in answers(send(clients, 64, "event.subscribe", {"topic": "x"}, **ONE)):
        check(m.aux1 == 0, "64 are taken:", m.text())
    for c in clients:
        refused(c, errno.ENOSPC, "event.subscribe", {"topic": "x"}, **ONE)
        c.ask("event.subscribe", {"topic": "x"}, **OTHER)
        c.ask("event.subscribe", {"topic": "x"})
    clients[0].sock.close()
    del clients[0]
    taken = lambda: clients[0].rpc("event.subscribe", {"topic": "x"}, **ONE).aux1 == 0
    await_that(taken, "those of a connection that has ended can be had again")


def followers():
    """A guest may have 8 streams of overlay.health over all connections."""
    clients = [Client() for _ in range(4)]
    for m in answers(send(clients, 8, "overlay.health", {}, STREAMING, **ONE)):
        check(m.aux1 == 0, "8 are taken:", m.text())
    for c in clients:
        refused(c, errno.ENOSPC, "overlay.health", {}, STREAMING, **ONE)
    with Client() as c:
        c.ask("overlay.health", {}, flags=STREAMING, **OTHER)
    with Client() as c:
        c.ask("overlay.health", {}, flags=STREAMING)


def surveys():
    """A guest may have 4 reductions in flight. In this test they wait for rank 1, which is stopped."""
    clients = [Client() for _ in range(4)]
    subprocess.check_call(["idtree", "startctl", "stop", "1"])
    asked = send_all_held(clients, 4, "metrics.get", {"rank": 0, "timeout_ms": 60000}, **ONE)
    for c in clients[:2]:
        with Client() as again:
            refused(again, errno.EAGAIN, "metrics.get", {"rank": 0, "timeout_ms": 60000}, **ONE)
    asked += send([Client()], 1, "metrics.get", {"rank": 0, "timeout_ms": 60000}, **OTHER)
    asked += send([Client()], 1, "metrics.get", {"rank": 0, "timeout_ms": 60000})
    subprocess.check_call(["idtree", "startctl", "cont", "1"])
    for m in answers(asked):
        check(m.aux1 == 0, "the others are answered:", m.text())


def traces():
    """A guest may have 4 traced requests in flight from rank 1. In this test they wait for rank 0, which is stopped."""
    clients = [Client(1) for _ in range(4)]
    subprocess.check_call(["idtree", "startctl", "stop", "0"])
    asked = send_all_held(clients, 4, "fluid.trace", {"count": 1}, **ONE)
    with Client(1) as again:
        refused(again, errno.EAGAIN, "fluid.trace", {"count": 1}, **ONE)
    asked += send([Client(1)], 1, "fluid.trace", {"count": 1}, **OTHER)
    asked += send([Client(1)], 1, "fluid.trace", {"count": 1})
    subprocess.check_call(["idtree", "startctl", "cont", "0"])
    for m in answers(asked):
        check(m.aux1 == 0 and m.json()["trace"], "the others are answered:", m.text())


def held_at_rank_1(topic, payload, most, text):
    """Of the 64 requests that may wait at rank 1, a guest may have 'most' over all connections. Rank 0 is stopped."""
    clients = [Client(1) for _ in range(4)]
    subprocess.check_call(["idtree", "startctl", "stop", "0"])
    asked = send_all_held(clients, most, topic, payload, **ONE)
    for _ in range(2):
        with Client(1) as again:
            again.refuse(errno.EAGAIN, topic, payload, text=text, **ONE)
    asked += send([Client(1)], 1, topic, payload, **OTHER)
    asked += send([Client(1)], 1, topic, payload)
    subprocess.check_call(["idtree", "startctl", "cont", "0"])
    for m in answers(asked):
        check(m.aux1 == 0, "the others are answered:", m.text())


def waiting():
    """Users other than the owner share half of fluid.max-waiting, and one guest may have half of that."""
    held_at_rank_1("fluid.generate", {"count": 1}, 16, "fluid.max-waiting")


def watermarks():
    """One guest may have an eighth of fluid.max-waiting."""
    held_at_rank_1("fluid.watermark", {}, 8, "user 1000")


def set_disk(how):
    with open(os.environ["CHAOS_PAGE"], "r+b") as page:
        page.seek(512)
        page.write(bytes([how]))


def reads():
    """A guest may have 16 reads that wait for the disk of rank 0; the owner's read does not queue behind them."""
    c, late = Client(), Client()
    job = c.ask(SUBMIT, {"jobspec": JOBSPEC})["fluid"]
    set_disk(3)
    submitted = late.request(SUBMIT, {"jobspec": JOBSPEC})
    busy = lambda: c.ask("ingest.stats", {})["jobs"] == 1 and c.ask("job-ingest.stats-get", {})["relay"]["under_way"] > 0
    await_that(busy, "the store is busy")
    tags = [tag for _, tag in send_all_held([c], 16, "ingest.get", {"id": job}, **ONE)]
    with Client() as again:
        refused(again, errno.EAGAIN, "ingest.get", {"id": job}, **ONE)
    own = c.request("ingest.get", {"id": job})
    set_disk(0)
    order = [m.aux2 for m in (c.recv() for _ in range(17))]
    check(sorted(order) == tags + [own], "all are answered:", order)
    check(order.index(own) <= 2, "the owner's has its turn:", order.index(own))
    check(late.answer(submitted).aux1 == 0, "and what was submitted is stored")


def submissions():
    """A guest may have an eighth of ingest.max-waiting, which is 64. In this test all requests wait for ids."""
    clients = [Client() for _ in range(4)]
    asked = send_all_held(clients, 8, SUBMIT, {"jobspec": JOBSPEC}, **ONE)
    waiting = lambda: Client().ask("job-ingest.stats-get", {})["entry"]["jobs"]
    await_that(lambda: waiting() == 8, "8 wait")
    for _ in range(2):
        with Client() as again:
            refused(again, errno.EAGAIN, SUBMIT, {"jobspec": JOBSPEC}, **ONE)
    asked += send([Client()], 1, SUBMIT, {"jobspec": JOBSPEC}, **OTHER)
    asked += send([Client()], 1, SUBMIT, {"jobspec": JOBSPEC})
    await_that(lambda: waiting() == 10, "another user's waits, and the owner's")
    subprocess.check_call(["idtree", "module", "load", "fluid"])
    for m in answers(asked):
        check(m.aux1 == 0, "all are stored:", m.text())
    Client().ask(SUBMIT, {"jobspec": JOBSPEC}, **ONE)


if __name__ == "__main__":
    try:
        for name in sys.argv[1:]:
            globals()[name]()
    except (Failure, EOFError, OSError, subprocess.CalledProcessError) as e:
        sys.exit("%s: %s" % (name, e))
