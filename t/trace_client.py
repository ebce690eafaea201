#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""trace_client.py slow|far|deaf|nonsense|many - tracers that a broker must bear

Run inside of an instance of two brokers.
"""
import errno
import sys

from flux_client import ANY, STREAMING, Client, check

WINDOW = 4096
PINGS = 200  # each is shown four times


def ping(n=1):
    with Client() as c:
        for _ in range(n):
            c.ask("fluid.ping", {})


def slow(at=0, nodeid=ANY):
    """Lines are lost from when the window is full; what was lost and what came are all that passed."""
    with Client(at) as c:
        c.request("broker.trace", {"window": WINDOW, "topic_glob": "fluid.ping", "id": 7}, nodeid, STREAMING)
        shown, unread, lost = [], 0, 0
        with Client() as other:
            check(other.ask("broker.trace-more", {"bytes": 1000000, "id": 7}, nodeid) is None, "of nobody's: no harm")
        c.ask("broker.stats-get", None, nodeid)  # has begun
        ping(PINGS)
        c.request("broker.stats-get", None, nodeid)
        while True:
            m = c.recv()
            if m.topic != "broker.trace":
                break
            shown.append(m.json())
            unread += len(m.payload)
        check(0 < unread <= WINDOW and len(shown) < 4 * PINGS, "no more than the window is sent:", unread, len(shown))
        c.request("broker.trace-more", {"bytes": unread, "id": 7}, nodeid)
        while not lost:
            m = c.recv()
            lost = m.json().get("lost", 0) if m.topic == "broker.trace" else 0
        check(lost + len(shown) == 4 * PINGS, "what is lost is told:", lost, len(shown))
        c.request("broker.trace-more", {"bytes": 1000, "id": 7}, nodeid)
        ping()
        while c.recv().topic != "broker.trace":
            pass


def far():
    slow(1, 0)


def deaf():
    """It gets what its socket takes, the broker keeps no more for it than for others, and others are served."""
    with Client() as c:
        c.request("module.trace", {"typemask": 15, "topic_glob": "*", "names": [], "full": True}, ANY, STREAMING)
        ping(2000)
        ping(1)


def nonsense():
    with Client() as c:
        for payload in ({"typemask": "x"}, {"window": -1}, {"window": 1 << 40}, {"peers": ["king"]}, {"peers": {}},
                        {"names": [1]}, {"names": "fluid"}, {"topic_glob": 1}):
            c.refuse(errno.EPROTO, "broker.trace", payload, flags=STREAMING)
        for topic in "broker.trace", "module.trace", "overlay.trace":
            c.refuse(errno.EPROTO, topic, {})
        c.refuse(errno.EPROTO, "broker.trace-more", {"bytes": "x"})
        check(c.ask("broker.trace-more", {"bytes": -5}) is None, "bytes below 0 are nothing")


def fill(clients):
    """Ask for as many streams as there may be; the last is refused."""
    for c in clients:
        tag = c.request("overlay.trace", {"topic_glob": "no.such"}, ANY, STREAMING)
        after = c.request("broker.stats-get")
        m = c.recv()
        if m.aux2 == tag:
            return m
        check(m.aux2 == after, "nothing is shown:", m.topic)
    return None


def many():
    clients = [Client() for _ in range(33)]
    refused = fill(clients)
    check(refused and refused.aux1 == errno.ENOSPC, "the 33rd is refused:", refused and refused.text())
    for c in clients:
        c.sock.close()
    while True:  # until the broker has seen that they are gone
        with Client() as c:
            if not fill([c]):
                return


if __name__ == "__main__":
    {f.__name__: f for f in (slow, far, deaf, nonsense, many)}[sys.argv[1]]()
