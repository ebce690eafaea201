#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# ingest_client.py - clients of job ingest that send invalid requests, with messages that they build themselves
#
#   ingest_client.py NAME...   run checks (the functions below with these names) against the instance at FLUX_URI;
#                              exit status 0: all have passed
import base64
import errno
import json
import os
import sys
import threading
import time

from flux_client import STREAMING, Client, Failure, await_that, check

SUBMIT = "job-ingest.submit"
JOBSPEC = {
    "version": 1,
    "resources": [{"type": "slot", "count": 1, "label": "a", "with": [{"type": "core", "count": 1}]}],
    "tasks": [{"command": ["true"], "slot": "a", "count": {"per_slot": 1}}],
    "attributes": {"system": {"duration": 0}},
}


def wrap(spec):
    head = "version\0i1\0userid\0i%d\0mechanism\0snone\0" % os.getuid()
    return "%s.%s.none" % tuple(base64.b64encode(s.encode()).decode() for s in (head, json.dumps(spec)))


def jobs(c):
    return [job["id"] for job in c.ask("ingest.list", {"count": 1000})["jobs"]]


class Consumer:
    """A consumer with its own connection."""

    def __init__(self, **request):
        self.c = Client()
        self.tag = self.c.request("ingest.watch", request, flags=STREAMING)
        first = self.next()
        check(first.aux1 == 0, "a consumer is taken:", first.text())
        self.number = first.json()["watch"]

    def next(self):
        return self.c.answer(self.tag)


def types():
    """A request with a value of a wrong type is refused, and changes nothing."""
    c = Client()
    for plain in 5, None, True, ["x"]:
        c.refuse(errno.EINVAL, SUBMIT, {"jobspec": plain}, text="jobspec: must be an object, or a string")
    job = c.ask(SUBMIT, {"jobspec": JOBSPEC})["fluid"]
    with Client() as watching:
        tag = watching.request("ingest.watch", {}, flags=STREAMING)
        while not watching.answer(tag).json()["jobs"]:
            pass
    for keep in 1, "yes", None:
        c.refuse(errno.EINVAL, "ingest.ack", {"id": job, "keep": keep}, text="keep: must be true or false")
    for number in "1", 1.5, -1, None, True:
        c.refuse(errno.EINVAL, "ingest.ack", {"id": job, "watch": number}, text="watch: must be the number")
    check(job in jobs(c), "it is not acknowledged")
    c.refuse(errno.EINVAL, "ingest.watch", {"jobspec": 0}, flags=STREAMING, text="jobspec: must be true or false")


def foreign():
    """A client cannot confirm jobs for a consumer of another client."""
    c = Client()
    c.ask(SUBMIT, {"J": wrap(JOBSPEC), "urgency": 16, "flags": 0})
    consumer = Consumer(window=1)
    job = consumer.next().json()["jobs"][0]["id"]
    request = {"id": job, "watch": consumer.number, "keep": True}
    c.refuse(errno.ENOENT, "ingest.ack", request, text="is not a consumer of this client")
    with Client() as third:
        third.refuse(errno.ENOENT, "ingest.ack", dict(request, watch=2**62), text="is not a consumer of this client")
    tag = consumer.c.request("ingest.ack", request)
    while consumer.c.recv().aux2 != tag:
        pass


def long():
    """A request that is larger than any jobspec needs is refused unparsed. A waiting request keeps only its job."""
    c = Client()
    c.refuse(errno.EMSGSIZE, SUBMIT, {"J": wrap(JOBSPEC), "beside": "x" * (5 << 20)}, text="the limit is [0-9]*")
    c.refuse(errno.EMSGSIZE, SUBMIT, {"J": wrap({"x": "x" * (2 << 20)})}, text="J: payload: must have at most")


def broker_kib():
    return int(open("/proc/%s/statm" % os.environ["BROKER_PID"]).read().split()[1]) * 4


def memory():
    """Requests that wait, because no ids are made, keep only their jobs in memory, and no other keys."""
    c = Client()
    before = broker_kib()
    request = {"J": wrap(JOBSPEC), "urgency": 16, "flags": 0, "beside": "x" * (1 << 20)}
    for _ in range(640):
        c.request(SUBMIT, request)
    with Client() as asking:
        await_that(lambda: asking.ask("job-ingest.stats-get", {})["entry"]["jobs"] == 640, "all wait")
    check(broker_kib() - before < 480 << 10, "they take less than 480 MiB:", broker_kib() - before)


def damaged():
    """A consumer of an unreadable record gets an error."""
    c = Consumer()
    m = c.next()
    check(m.aux1 == errno.EBADMSG and "damaged (its record of job" in m.text(), "it is told:", m.aux1, m.text())
    check(c.c.ask("ingest.stats", {})["consumers"] == 0, "and is none any more")


def unshown():
    """A job that no consumer was shown cannot be acknowledged."""
    Client().refuse(errno.EINVAL, "ingest.ack", {"id": 2**62}, text="id: is above what any consumer was shown")


def replaced():
    """A rank 0 that was replaced, and does not know it, tells a consumer nothing: it knows a lower visible id."""
    with Client() as c:
        m = c.answer(c.request("ingest.watch", {}, flags=STREAMING))
        check(m.aux1 == errno.EAGAIN and "another rank 0" in m.text(), "the watch is refused:", m.aux1, m.text())
        c.refuse(errno.EAGAIN, "ingest.ack", {"id": 2**62}, text="another rank 0 has taken over")


def unanswered():
    """While the store does not answer, an acknowledgement is to be sent again."""
    Client().refuse(errno.EAGAIN, "ingest.ack", {"id": 2**62}, text="no answer in time")


def unusable():
    """Without a usable store, each request fails and names the reason."""
    c = Client()
    for topic, request in ("watch", {}), ("ack", {"id": 5}), ("get", {"id": 5}), ("list", {}):
        c.refuse(errno.EIO, "ingest." + topic, request, flags=STREAMING, text="ingest.sqlite: damaged")
    check("damaged" in c.ask("ingest.stats", {})["failing"], "stats, too")


def tidying():
    """On a full disk, cleaning up is retried with pauses in between."""
    c = Client()
    c.ask("ingest.list", {})
    tries = lambda: c.ask("job-ingest.stats-get", {})["root"]["failed"]
    begin, first = time.monotonic(), tries()
    await_that(lambda: tries() > first + 2, "it is tried again and again")
    n = tries() - first
    check(n <= (time.monotonic() - begin) / 0.2 + 2, "no oftener than each 200 ms:", n, time.monotonic() - begin)


class Loop(threading.Thread):
    """A client that sends requests in a loop: 'window' are in flight, and after each answer the next one is sent."""

    def __init__(self, topic, request, window=1, rank=0):
        super().__init__(daemon=True)
        self.topic, self.request, self.window = topic, request, window
        self.c, self.answers, self.over, self.error = Client(rank), 0, False, None

    def run(self):
        try:
            for _ in range(self.window):
                self.c.request(self.topic, self.request)
            while not self.over:
                self.c.recv()
                self.answers += 1
                self.c.request(self.topic, self.request)
        except (Failure, EOFError, OSError) as e:
            self.error = e

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *args):
        self.over = True
        self.join()
        self.c.sock.close()


def starving():
    """Consumers receive jobs while other clients keep rank 0 busy with submissions or with reads."""
    owner = Client()
    job = owner.ask(SUBMIT, {"jobspec": JOBSPEC})["fluid"]
    for topic, request in (SUBMIT, {"jobspec": JOBSPEC}), ("ingest.get", {"id": job}):
        consumer, seen = Consumer(window=65536, after=job, jobspec=False), set()
        with Loop(topic, request, window=16) as one, Loop(topic, request, window=16) as two:
            await_that(lambda: min(one.answers, two.answers) > 100 or one.error or two.error, "both loops run")
            job = owner.ask(SUBMIT, {"jobspec": JOBSPEC})["fluid"]
            while job not in seen:
                seen.update(j["id"] for j in consumer.next().json()["jobs"])
            before = one.answers, two.answers
            await_that(lambda: one.answers > before[0] and two.answers > before[1], "both loops still run")


if __name__ == "__main__":
    try:
        for name in sys.argv[1:]:
            globals()[name]()
    except (Failure, EOFError, OSError) as e:
        sys.exit("%s: %s" % (name, e))
