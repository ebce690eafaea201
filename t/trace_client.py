#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""trace_client.py slow|far|deaf|nonsense|many|rude - badly behaved tracers, inside an instance of two brokers
trace_client.py way|combined|malformed|spans - traces of requests, in a chain of three where only rank 0 makes ids
"""
import errno
import json
import re
import sys

from flux_client import ANY, STREAMING, Client, check

WINDOW = 4096
PINGS = 200  # each ping is four lines of a trace


def ping(n=1):
    with Client() as c:
        for _ in range(n):
            c.ask("fluid.ping", {})


def slow(at=0, nodeid=ANY):
    """While the window is full, lines are lost. The numbers of lost lines and of shown lines add up to all messages."""
    with Client(at) as c:
        c.request("broker.trace", {"window": WINDOW, "topic_glob": "fluid.ping", "id": 7}, nodeid, STREAMING)
        shown, unread, lost = [], 0, 0
        with Client() as other:
            check(other.ask("broker.trace-more", {"bytes": 1000000, "id": 7}, nodeid) is None, "of nobody's: no harm")
        c.ask("broker.stats-get", None, nodeid)  # when this is answered, the trace has begun
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
    """A tracer that does not read fills its socket. The broker buffers no more for it than for others."""
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
    """Request streams up to the limit, and one more. Returns the answer that refuses the last one."""
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
    while True:  # until the broker has noticed that the tracers have disconnected
        with Client() as c:
            if not fill([c]):
                return


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def sound(answer, rank, count, trace=TRACE, span=SPAN):
    """The hops of an answer lead from 'rank' to rank 0, and the span of each is the child of the span before."""
    hops = answer["trace"]
    check(sum(n for _, n in answer["runs"]) == count, "so many ids:", answer)
    check(answer["trace_id"] == trace, "the trace is who asked's:", answer)
    check([h["rank"] for h in hops] == list(range(rank, -1, -1)), "each broker is there:", hops)
    for hop, asked in zip(hops, [span] + [h["span"] for h in hops]):
        check(hop["parent"] == asked, "a hop is the child of the one before:", hops)
        check(re.fullmatch("[0-9a-f]{16}", hop["span"]), "a span has a name:", hop)
        check(hop["took_us"] >= hop["up_us"] >= 0, "what was above is part of it:", hop)
        made = hop["ids"] - hop["ids_from_above"]
        check(made == (hop["ids"] if hop["rank"] == 0 else 0), "rank 0 made them:", hop)
        check((hop["forwards"] > 0) == (hop["rank"] > 0) and hop["ids"] >= count, "others asked above:", hop)
        check(hop["state"] == ("active" if hop["rank"] == 0 else "idle"), "what each is:", hop)
    for below, above in zip(hops, hops[1:]):
        check(below["up_us"] >= above["took_us"], "on one host, above is inside of below:", hops)
    return hops


def way():
    for rank in 0, 1, 2:
        with Client(rank) as c:
            sound(c.ask("fluid.trace", {"count": 3, "traceparent": "00-%s-%s-01" % (TRACE, SPAN)}), rank, 3)
    with Client(2) as c:
        hops = sound(c.ask("fluid.trace", {"count": 5000, "traceparent": "00-%s-%s-00" % (TRACE, SPAN)}), 2, 5000)
        check(hops[-1]["waited_for"] == "turn" and hops[-1]["took_us"] > 1000, "5000 ids take some ms:", hops)
        sound(c.ask("fluid.trace", {"after": "1", "traceparent": "00-%s-%s-01" % (TRACE, SPAN)}), 2, 1)


def combined():
    """Requests that are forwarded together get separate traces, and a request without a trace gets none."""
    with Client(2) as c:
        tags = {}
        for i in range(60):
            parent = ("%032x" % (i + 1), "%016x" % (i + 1))
            wish = {"count": i + 1, "traceparent": "00-%s-%s-01" % parent}
            tags[c.request("fluid.trace", wish)] = (i + 1, *parent)
            tags[c.request("fluid.generate", {"count": 2})] = None
        together, firsts = 0, set()
        for _ in range(len(tags)):
            m = c.recv()
            asked, answer = tags.pop(m.aux2), m.json()
            check(m.aux1 == 0, "no error:", m.text())
            if asked:
                together = max(together, sound(answer, 2, *asked)[0]["combined"])
                firsts.update(first for first, _ in answer["runs"])
            else:
                check(list(answer) == ["runs"], "nobody else has a trace:", answer)
        check(together > 10 and len(firsts) >= 60, "many went up together:", together, len(firsts))


def rude():
    """A topic and a payload that could control a terminal or imitate another line of output."""
    with Client() as c:
        c.request("x.\x1b]0;title\x07\x7f\u009b31m\n12:00:00.000000 rude", {"a": "\x1b[31m\x7f\u009b31m"}, ANY)
        c.recv()


def malformed():
    with Client(1) as c:
        for payload in {"count": 0}, {"count": -1}, {"count": 65537}, {"count": 1 << 40}:
            c.refuse(errno.EINVAL, "fluid.trace", payload)
        for payload in ({"count": "x"}, {"after": 1}, {"after": "f1"}, {"after": ""}, {"after": "1" * 30},
                        {"traceparent": 1}, None):
            c.refuse(errno.EPROTO, "fluid.trace", payload)
        for parent in ("", "x", "00-" + "0" * 32 + "-" + SPAN + "-01", "00-%s-%s-01" % (TRACE, "0" * 16),
                       "ff-%s-%s-01" % (TRACE, SPAN), "00-%s-%s-01" % (TRACE.upper(), SPAN),
                       "00-%s-%s-01x" % (TRACE, SPAN), "00_%s-%s-01" % (TRACE, SPAN), "0" * 5000):
            answer = c.ask("fluid.trace", {"traceparent": parent})
            check(re.fullmatch("[0-9a-f]{32}", answer["trace_id"]) and answer["trace_id"] != TRACE, "its own:", answer)
            sound(answer, 1, 1, answer["trace_id"], "")
        sound(c.ask("fluid.trace", {"traceparent": "cc-%s-%s-01-more" % (TRACE, SPAN)}), 1, 1)


def spans():
    """Lines of OTLP JSON: one trace each, in which each span is the child of another."""
    with open(sys.argv[2], encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    check(len(lines) == 2, "a line for each request:", len(lines))
    for line in lines:
        resource, = line["resourceSpans"]
        scope, = resource["scopeSpans"]
        found = scope["spans"]
        name = {"key": "service.name", "value": {"stringValue": "idtree"}}
        check(resource["resource"]["attributes"] == [name], "who:", resource)
        check(len(found) == 4 and {s["traceId"] for s in found} == {TRACE}, "four spans of one trace:", found)
        for span, parent in zip(found, [SPAN] + [s["spanId"] for s in found]):
            check(span["parentSpanId"] == parent, "in a row:", found)
            check(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) > 10 ** 18, "times are strings:", span)
        check([s["kind"] for s in found] == [3, 2, 2, 2], "a client and servers:", found)


if __name__ == "__main__":
    {f.__name__: f for f in (slow, far, deaf, nonsense, many, rude, way, combined, malformed, spans)}[sys.argv[1]]()
