#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# flux_client.py - a client that speaks Flux's protocol as Flux's own clients do, and shares no code with idtree
#
#   flux_client.py --list      print a line for each check, with its name and a sentence; "stop" must be run as the last
#   flux_client.py NAME...     run checks against the instance at FLUX_URI (of 7 brokers, kary:2); exit status 0: all
#                              have passed
#
# It encodes and decodes messages only with struct and json, as the protocol says (Flux RFC 3 and 6; frames are those of
# deployed brokers: a length in host byte order after the magic, no NUL after topics). So it also finds mistakes that
# libidtree and the broker have in common.
import base64
import errno
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))

REQUEST, RESPONSE, EVENT = 1, 2, 4
TOPIC, PAYLOAD, NORESPONSE, ROUTE, UPSTREAM, PRIVATE, STREAMING = 1, 2, 4, 8, 0x10, 0x20, 0x40
ANY = UNKNOWN = 0xFFFFFFFF
OWNER, USER, LOCAL, BROKER = 1, 2, 4, 0x100
HEADER = struct.Struct(">BBBBIIII")
FRAME = struct.Struct("=I")  # the magic, in the byte order of this host
SIZE = 7
PATIENCE = int(os.environ.get("PATIENCE", 60))  # seconds after which a silent broker counts as a failure


class Failure(Exception):
    pass


def check(what, sentence, *seen):
    if not what:
        raise Failure(" ".join([sentence] + [repr(s) for s in seen]))


def await_that(is_so, sentence):
    end = time.monotonic() + PATIENCE
    while not is_so():
        check(time.monotonic() < end, "awaited for %d s: %s" % (PATIENCE, sentence))


# --- messages -------------------------------------------------------------------------------------------------


class Message:
    def __init__(self, kind, topic=None, payload=None, flags=0, aux1=0, aux2=0, userid=UNKNOWN, roles=0, routes=()):
        self.kind, self.topic, self.flags, self.aux1, self.aux2 = kind, topic, flags, aux1, aux2
        self.userid, self.roles, self.routes = userid, roles, list(routes)
        if isinstance(payload, dict):
            payload = json.dumps(payload).encode() + b"\0"
        self.payload = payload

    def json(self):
        check(self.payload and self.payload[-1:] == b"\0", "a JSON payload ends with NUL:", self.payload)
        return json.loads(self.payload[:-1])

    def text(self):
        return (self.payload or b"").rstrip(b"\0").decode()

    def encode(self):
        flags = self.flags | ROUTE
        parts = [r.encode() for r in self.routes] + [b""]
        if self.topic is not None:
            flags |= TOPIC
            parts.append(self.topic.encode())
        if self.payload is not None:
            flags |= PAYLOAD
            parts.append(self.payload)
        parts.append(HEADER.pack(0x8E, 1, self.kind, flags, self.userid, self.roles, self.aux1, self.aux2))
        body = b"".join(
            (bytes([len(p)]) if len(p) < 255 else b"\xff" + struct.pack(">I", len(p))) + p for p in parts
        )
        return FRAME.pack(0xFFEE0012) + struct.pack(">I", len(body)) + body

    @classmethod
    def decode(cls, body):
        parts = []
        while body:
            size, at = body[0], 1
            if size == 255:
                size, at = struct.unpack(">I", body[1:5])[0], 5
            parts.append(body[at : at + size])
            body = body[at + size :]
        magic, version, kind, flags, userid, roles, aux1, aux2 = HEADER.unpack(parts.pop())
        check((magic, version) == (0x8E, 1), "a header begins with 8e 01:", magic, version)
        m = cls(kind, flags=flags, userid=userid, roles=roles, aux1=aux1, aux2=aux2)
        if flags & PAYLOAD:
            m.payload = parts.pop()
        if flags & TOPIC:
            m.topic = parts.pop().decode()
        if flags & ROUTE:
            check(parts and parts.pop() == b"", "routes end with an empty frame")
            m.routes = [p.decode() for p in parts]
        else:
            check(not parts, "no frames without a flag:", parts)
        return m


# --- the connection ---------------------------------------------------------------------------------------------


class Client:
    def __init__(self, rank=0):
        path = re.sub(r"^local://", "", os.environ["FLUX_URI"])
        self.path = re.sub(r"\d+$", str(rank), path)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)
        check(self.sock.recv(1) == b"\0", "the first byte is a welcome")
        self.data, self.tag = b"", 0

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.sock.close()

    def send(self, m):
        self.sock.sendall(m.encode())

    def next_message(self):
        if len(self.data) < 8:
            return None
        check(FRAME.unpack(self.data[:4])[0] == 0xFFEE0012, "a frame begins with its magic:", self.data[:8])
        end = 8 + struct.unpack(">I", self.data[4:8])[0]
        if len(self.data) < end:
            return None
        body, self.data = self.data[8:end], self.data[end:]
        return Message.decode(body)

    def recv(self):
        while True:
            m = self.next_message()
            if m:
                return m
            check(select.select([self.sock], [], [], PATIENCE)[0], "an answer comes")
            got = self.sock.recv(65536)
            if not got:
                raise EOFError("the broker closed the connection")
            self.data += got

    def request(self, topic, payload=None, nodeid=ANY, flags=0, **more):
        self.tag += 1
        self.send(Message(REQUEST, topic, payload, flags, nodeid, self.tag, **more))
        return self.tag

    def answer(self, tag):
        m = self.recv()
        check(m.kind == RESPONSE and m.aux2 == tag, "the answer is to the request:", m.kind, m.topic, m.aux2, tag)
        return m

    def rpc(self, topic, payload=None, nodeid=ANY, flags=0, **more):
        m = self.answer(self.request(topic, payload, nodeid, flags, **more))
        check(m.topic == topic, "an answer has the topic of the request:", m.topic)
        return m

    def ask(self, *args, **more):
        m = self.rpc(*args, **more)
        check(m.aux1 == 0, "no error:", m.topic, m.aux1, m.text())
        return m.json() if m.payload else None

    def refuse(self, errnum, *args, text=None, **more):
        m = self.rpc(*args, **more)
        check(m.aux1 == errnum, "the error is %s:" % errno.errorcode[errnum], m.topic, m.aux1, m.text())
        check(text is None or re.search(text, m.text()), "the text tells why:", text, m.text())
        return m

    def fence(self):
        """Wait until the broker has processed everything sent before, and return the messages that arrived meanwhile."""
        tag, early = self.request("broker.ping", {}), []
        while True:
            m = self.recv()
            if m.kind == RESPONSE and m.aux2 == tag:
                return early
            early.append(m)


def attr(c, name, **more):
    return c.ask("attr.get", {"name": name}, **more)["value"]


def hosts(text):
    """Parse a host list as Flux's clients do: names separated by commas, numbers in brackets."""
    names = []
    for word in re.findall(r"[^,\[]+(?:\[[^]]*\])?", text):
        m = re.match(r"(.*)\[(.*)\]$", word)
        if not m:
            names.append(word)
            continue
        for part in m.group(2).split(","):
            lo, hi = (part.split("-") * 2)[:2]
            names += ["%s%0*d" % (m.group(1), len(lo), n) for n in range(int(lo), int(hi) + 1)]
    return names


# --- flux ping ---------------------------------------------------------------------------------------------------


def ping_payload(**more):
    return dict({"seq": 7, "time.tv_sec": 8303, "time.tv_nsec": 610112549, "pad": ""}, **more)


def check_ping():
    """ping of any rank returns the payload, the route, the user id and roles of the requester, and the rank"""
    with Client() as c:
        for rank in range(SIZE):
            a = c.ask("broker.ping", ping_payload(pad="p" * 300), nodeid=rank)
            route = a.pop("route").split("!")
            check(all(re.match("[0-9a-f]{8}$", r) for r in route), "a route is of short UUIDs:", route)
            check(len(route) == [1, 2, 2, 3, 3, 3, 3][rank] or len(route) == [2, 3, 3, 4, 4, 4, 4][rank], "hops:", route)
            roles = OWNER | LOCAL if rank == 0 else OWNER
            want = ping_payload(pad="p" * 300, userid=os.getuid(), rolemask=roles, rank=rank)
            check(a == want, "the answer is what was asked, and more:", a)


def check_ping_services():
    """ping reaches the broker and the modules of any rank"""
    with Client(5) as c:
        for name in "broker", "fluid":
            check(c.ask(name + ".ping", ping_payload())["rank"] == 5, "it is this broker's:", name)
            check(c.ask(name + ".ping", ping_payload(), nodeid=3)["rank"] == 3, "it is of rank 3:", name)


def check_ping_errors():
    """a request to a rank or service that does not exist fails immediately"""
    with Client(2) as c:
        c.refuse(errno.EHOSTUNREACH, "broker.ping", ping_payload(), nodeid=SIZE)
        c.refuse(errno.EHOSTUNREACH, "broker.ping", ping_payload(), nodeid=ANY - 1)
        for nodeid in ANY, 0, 2, 6:
            c.refuse(errno.ENOSYS, "nosuch.ping", ping_payload(), nodeid=nodeid,
                     text="^No service matching nosuch.ping is registered$")
            c.refuse(errno.ENOSYS, "broker.nosuch", {}, nodeid=nodeid, text="^Unknown service method 'broker.nosuch'$")
            c.refuse(errno.ENOSYS, "fluid.nosuch", {}, nodeid=nodeid, text="^Unknown service method 'fluid.nosuch'$")


def check_upstream():
    """UPSTREAM skips the services of the sender's rank"""
    with Client(5) as c:
        for topic in "broker.ping", "fluid.ping":
            check(c.ask(topic, ping_payload(), nodeid=5, flags=UPSTREAM)["rank"] == 2, "the parent answers")
    with Client() as c:
        c.refuse(errno.EHOSTUNREACH, "broker.ping", ping_payload(), nodeid=0, flags=UPSTREAM)


# --- flux getattr, setattr, lsattr ---------------------------------------------------------------------------------

ASKED = """rank size version hostname hostlist security.owner instance-level local-uri rundir statedir tbon.topo tbon.level
    tbon.maxlevel tbon.endpoint broker.pid broker.uuid broker.starttime broker.boot-method log-level log-stderr-level"""


def check_attributes():
    """each attribute that Flux's clients ask for has a value that they can parse, on each rank"""
    for rank in range(SIZE):
        with Client(rank) as c:
            a = {n: attr(c, n) for n in ASKED.split() if n != "statedir" and (n != "tbon.endpoint" or rank < 3)}
            check(int(a["rank"]) == rank and int(a["size"]) == SIZE, "rank and size:", a)
            check(int(a["security.owner"]) == os.getuid() and a["instance-level"] == "0", "owner, level:", a)
            check(hosts(a["hostlist"]) == [socket.gethostname()] * SIZE, "hostlist:", a["hostlist"])
            check(a["local-uri"] == "local://" + c.path, "local-uri:", a["local-uri"], c.path)
            check(a["tbon.topo"] == "kary:2" and int(a["tbon.maxlevel"]) == 2, "the tree:", a)
            check(int(a["tbon.level"]) == [0, 1, 1, 2, 2, 2, 2][rank], "tbon.level:", a)
            check(float(a["broker.starttime"]) > 1e9 and int(a["broker.pid"]) > 1, "start and pid:", a)
            os.kill(int(a["broker.pid"]), 0)
            check(re.match("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", a["broker.uuid"]), "uuid:", a)
            if rank > 0:
                parent = attr(c, "tbon.parent-endpoint")
                check(parent == attr(c, "tbon.endpoint", nodeid=(rank - 1) // 2), "the parent's endpoint:", parent)


def check_attribute_list():
    """each attribute in the list can be read, and is flagged as immutable or not"""
    with Client(4) as c:
        names = c.ask("attr.list")["names"]
        check(len(set(names)) == len(names) and "size" in names and "fluid.lease" in names, "the list:", names)
        for name in names:
            a = c.ask("attr.get", {"name": name})
            check(set(a) == {"value", "flags"} and isinstance(a["value"], str), "value and flags:", a)
            check(a["flags"] in (0, 1), "flags are 1 for immutable ones, else 0:", a)
        for name, flags in ("rank", 1), ("hostlist", 1), ("size", 1), ("version", 0), ("log-level", 0):
            check(c.ask("attr.get", {"name": name})["flags"] == flags, "the flags of", name)
        check(c.refuse(errno.ENOENT, "attr.get", {"name": "nosuch"}).payload is None, "unknown: an error without text")


def check_attribute_set():
    """an attribute can be set if it is mutable"""
    with Client(1) as c:
        old = attr(c, "log-stderr-level")
        check(c.ask("attr.set", {"name": "log-stderr-level", "value": "2"}) is None, "the answer is empty")
        check(attr(c, "log-stderr-level") == "2" and attr(c, "log-stderr-level", nodeid=0) == old, "here, not there")
        c.ask("attr.set", {"name": "log-stderr-level", "value": old})
        c.refuse(errno.EINVAL, "attr.set", {"name": "log-stderr-level", "value": "x"}, text="0 .* 7")
        c.refuse(errno.EINVAL, "attr.set", {"name": "rank", "value": "3"}, text="^attribute may not be updated$")
        c.refuse(errno.EINVAL, "attr.set", {"name": "fluid.lease", "value": "3"}, text="^attribute may not be updated$")
        c.refuse(errno.ENOENT, "attr.set", {"name": "nosuch", "value": "3"}, text="^unknown attribute$")
        c.refuse(errno.EPERM, "attr.define", {"name": "mine", "value": "3"}, text="modules")


def check_config():
    """config.get, which flux config, flux shutdown and others request, returns an empty configuration on each rank"""
    for rank in 0, 4:
        with Client(rank) as c:
            for payload in None, {}:
                check(c.ask("config.get", payload) == {}, "an empty object")
            c.refuse(errno.ENOENT, "config.reload", text="without --config: there is no file to read again$")


# --- flux module ---------------------------------------------------------------------------------------------------


def module_names(c):
    return [m["name"] for m in c.ask("module.list")["mods"]]


def check_module_list():
    """module list returns all fields that flux module list -l shows"""
    with Client(3) as c:
        mods = {m["name"]: m for m in c.ask("module.list")["mods"]}
        m = mods["fluid"]
        check(os.path.isabs(m["path"]) and os.path.exists(m["path"]), "path:", m)
        check(m["services"] == ["fluid"] and m["status"] == 1, "services and status:", m)
        check(all(type(m[k]) is int and m[k] >= 0 for k in ("idle", "sendqueue", "recvqueue")), "numbers:", m)


def check_module_life():
    """a module is removed and loaded again on one rank; impossible requests fail with an error"""
    with Client(6) as c:
        c.refuse(errno.EEXIST, "module.load", {"path": "fluid", "args": [], "exec": False})
        c.refuse(errno.ENOENT, "module.load", {"path": "nosuch", "args": [], "exec": False},
                 text="^module not found in search path")
        c.refuse(errno.ENOENT, "module.remove", {"name": "nosuch", "cancel": False})
        check(c.ask("module.remove", {"name": "flake", "cancel": False}) is None, "the answer is empty")
        check("flake" not in module_names(c), "it is gone:", module_names(c))
        check(c.ask("flake.ping", ping_payload())["rank"] == 2, "the nearest ancestor serves meanwhile")
        c.refuse(errno.ENOSYS, "flake.ping", ping_payload(), nodeid=6, text="^No service matching flake.ping")
        check(c.ask("module.load", {"path": "flake", "args": [], "exec": False}) is None, "the answer is empty")
        check("flake" in module_names(c), "it is back:", module_names(c))
        check(c.ask("flake.ping", ping_payload())["rank"] == 6, "it serves again")


def check_module_next_life():
    """requests to a module that left a handover wait for its reload, and fail if it is not loaded again"""
    with Client(6) as c:
        c.ask("module.remove", {"name": "fluid"})
        check("fluid" not in module_names(c), "it is gone:", module_names(c))
        tags = [c.request("fluid.ping", ping_payload(), nodeid=nodeid) for nodeid in (ANY, 6)]
        for tag in tags:
            m = c.answer(tag)
            check(m.aux1 == errno.ENOSYS, "nobody else serves:", m.aux1, m.text())
            check(m.text() == "fluid is not loaded on rank 6: idtree module load -r 6 fluid", "why:", m.text())
        tags = [c.request("fluid.ping", ping_payload(), nodeid=nodeid) for nodeid in (ANY, 6)]
        load = c.request("module.load", {"path": "fluid", "args": [], "exec": False})
        answers = {m.aux2: m for m in [c.recv() for _ in range(3)]}
        check(set(answers) == {load, *tags} and answers[load].aux1 == 0, "each is answered:", answers.keys())
        for tag in tags:
            check(answers[tag].aux1 == 0 and answers[tag].json()["rank"] == 6, "by its next life:", answers[tag].text())


def check_module_stats():
    """module stats returns counters and rusage, and a request or an event clears the counters"""
    with Client(1) as c:
        check(c.ask("fluid.generate", {"count": 3}), "ids")
        check(c.ask("fluid.stats-get")["ids"] >= 3, "they are counted")
        usage = c.ask("fluid.rusage")
        check({"utime", "stime", "maxrss", "nvcsw"} <= set(usage), "rusage:", usage)
        check(c.ask("fluid.stats-clear") is None and c.ask("fluid.stats-get")["ids"] == 0, "cleared")
        c.ask("fluid.generate", {})
        c.ask("event.subscribe", {"topic": "fluid.stats-clear"})
        c.send(Message(EVENT, "fluid.stats-clear"))
        check(c.recv().topic == "fluid.stats-clear", "the event comes back")
        check(c.ask("fluid.stats-get")["ids"] == 0, "cleared by an event")


# --- flux event ----------------------------------------------------------------------------------------------------


def publish(c, topic, payload=None, flags=0):
    o = {"topic": topic, "flags": flags}
    if payload is not None:
        o["payload"] = base64.b64encode(payload).decode()
    return c.ask("event.publish", o, nodeid=0)["seq"]


def check_events():
    """events reach subscribers to a prefix, on any rank, in sequence"""
    with Client(6) as sub, Client(3) as pub:
        sub.ask("event.subscribe", {"topic": "a.b"})
        first = publish(pub, "a.b", b'{"x":1}\0')
        publish(pub, "a.a")
        second = publish(pub, "a.bc", b"raw")
        check(second == first + 2, "events are numbered:", first, second)
        m = sub.recv()
        check((m.kind, m.topic, m.aux1, m.aux2) == (EVENT, "a.b", first, 0), "an event:", m.topic, m.aux1)
        check(m.json() == {"x": 1} and m.userid == os.getuid(), "its payload and publisher:", m.payload, m.userid)
        m = sub.recv()
        check((m.topic, m.aux1, m.payload) == ("a.bc", second, b"raw"), "any bytes:", m.payload)
        sub.ask("event.unsubscribe", {"topic": "a.b"})
        publish(pub, "a.b")
        with Client(6) as later:
            later.ask("event.subscribe", {"topic": "a.end"})
            publish(pub, "a.end")
            later.recv()  # rank 6 has handled all lines when it answers
        check(sub.fence() == [], "nothing more after unsubscribing")


def check_event_messages():
    """an event message from a client is published, from any rank, without a response"""
    with Client(5) as c:
        c.ask("event.subscribe", {"topic": ""})
        c.send(Message(EVENT, "bare.one", {"k": 1}))
        c.send(Message(EVENT, "bare.two"))
        one, two = c.recv(), c.recv()
        check((one.topic, one.json(), two.topic, two.payload) == ("bare.one", {"k": 1}, "bare.two", None), "as sent")
        check(two.aux1 == one.aux1 + 1, "in sequence:", one.aux1, two.aux1)
        check(c.fence() == [], "nothing else came")


def check_event_errors():
    """an invalid event is refused"""
    with Client(1) as c:
        for payload in {"topic": 1}, {"topic": "x", "flags": 1}, {"topic": "x", "flags": 0, "payload": "=="}, {}:
            c.refuse(errno.EPROTO, "event.publish", payload, nodeid=0)
        c.refuse(errno.ENOENT, "event.unsubscribe", {"topic": "never"})


# --- flux overlay ------------------------------------------------------------------------------------------------


def walk(tree):
    check(tree["size"] == 1 + sum(walk(c) for c in tree["children"]), "sizes add up:", tree)
    return tree["size"]


def check_topology():
    """overlay.topology returns the whole tree or a subtree"""
    with Client(4) as c:
        tree = c.ask("overlay.topology", {"rank": 0}, nodeid=0)
        check(tree["rank"] == 0 and walk(tree) == SIZE, "the tree:", tree)
        sub = c.ask("overlay.topology", {"rank": 2}, nodeid=0)
        check(sub["rank"] == 2 and [s["rank"] for s in sub["children"]] == [5, 6], "the subtree:", sub)
        c.refuse(errno.EINVAL, "overlay.topology", {"rank": SIZE}, nodeid=0)
        c.refuse(errno.EINVAL, "overlay.topology", {"rank": -1}, nodeid=0)


def health_walk(c, rank):
    h = c.ask("overlay.health", nodeid=rank)
    check(h["rank"] == rank and h["status"] == "full" and h["duration"] > 0, "health:", h)
    for child in h["children"]:
        check(set(child) >= {"rank", "status", "duration"}, "a child:", child)
    return 1 + sum(health_walk(c, child["rank"]) for child in h["children"])


def check_health():
    """walking the tree by overlay.health reaches all ranks"""
    with Client(6) as c:
        check(health_walk(c, 0) == SIZE, "all ranks")
        state = c.ask("state-machine.get")
        check(state["state"] == "run" and state["duration"] > 0, "state:", state)


def startctl(*args):
    subprocess.run(["idtree", "startctl"] + list(args), check=True, stdin=subprocess.DEVNULL)


def check_health_stream():
    """the overlay.health stream of flux overlay status --wait sends each change until the client disconnects"""
    with Client() as c:
        tag = c.request("overlay.health", nodeid=0, flags=STREAMING)
        for args, status in ((), "full"), (("kill", "6"), "degraded"), (("run", "6"), "full"):
            if args:
                startctl(*args)
            m = c.answer(tag)
            check(m.flags & STREAMING and m.json()["status"] == status, "it is", status, m.text())
        check(c.fence() == [], "the next one comes with a change")


def check_stop():
    """the requests of flux shutdown are answered; the shutdown.start stream ends with ENODATA, then the connection ends"""
    with Client() as c:
        c.refuse(errno.ENOENT, "attr.get", {"name": "content.dump"})
        c.refuse(errno.ENOSYS, "kvs.getroot", {"namespace": "primary"})
        check(c.ask("config.get") == {}, "an empty configuration")
        m = c.rpc("shutdown.start", {"loglevel": 6}, flags=STREAMING)
        check(m.aux1 == errno.ENODATA and m.flags & STREAMING, "the end of the stream:", m.aux1, m.flags)
        try:
            check(not c.recv(), "nothing more")
        except (EOFError, ConnectionError):
            pass


# --- flux dmesg, flux logger ---------------------------------------------------------------------------------------


def log_line(text, rank=0, level=5):
    return ("<%d>1 2026-11-21T03:27:19.234509Z %d logger 19699 - - %s" % (level << 3, rank, text)).encode()


def dmesg(c, follow=False, nobacklog=False):
    return c.request("log.dmesg", {"follow": follow, "nobacklog": nobacklog}, flags=STREAMING)


def backlog(c):
    tag, lines = dmesg(c), []
    while True:
        m = c.answer(tag)
        check(m.flags & STREAMING, "each answer is one of a stream:", m.flags)
        if m.aux1:
            check(m.aux1 == errno.ENODATA and m.payload is None, "ENODATA ends it:", m.aux1)
            return lines
        lines.append(m.text())


def check_log():
    """a line that is appended appears unchanged in the log, and disappears when the log is cleared"""
    with Client(2) as c:
        c.send(Message(REQUEST, "log.append", log_line("hello, world"), aux1=ANY))
        check(c.fence() == [], "log.append is never answered")
        check(log_line("hello, world").decode() in backlog(c), "the line is there")
        check(c.ask("log.clear") is None, "the answer is empty")
        check(not any("hello, world" in line for line in backlog(c)), "the line is gone")
        c.refuse(errno.EPROTO, "log.dmesg", {"follow": False, "nobacklog": False})


def check_log_follow():
    """a client that follows the log receives new lines until it disconnects"""
    with Client(3) as writer:
        with Client(3) as c:
            tag = dmesg(c, follow=True, nobacklog=True)
            c.fence()
            for i in range(20):
                writer.send(Message(REQUEST, "log.append", log_line("line %d" % i, level=3), aux1=ANY))
            got = [c.answer(tag).text() for _ in range(20)]
            check(got == [log_line("line %d" % i, level=3).decode() for i in range(20)], "in order:", got)
        writer.send(Message(REQUEST, "log.append", log_line("nobody follows", level=3), aux1=ANY))
        check(writer.fence() == [], "the broker lives on")


# --- ids -------------------------------------------------------------------------------------------------------------

B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def f58(s):
    check(s[0] == "f", "an id in ASCII begins with f:", s)
    n = 0
    for c in s[1:]:
        n = n * 58 + B58.index(c)
    return n


def check_generate():
    """fluid.generate returns as many ids as requested, unique and in order, also when another rank is asked"""
    seen = set()
    with Client(4) as c:
        for rank in list(range(SIZE)) + [ANY]:
            last = -1
            for count in 1, 3000, 7:
                runs = c.ask("fluid.generate", {"count": count}, nodeid=rank)["runs"]
                ids = [f58(first) + i for first, n in runs for i in range(n)]
                check(len(ids) == count and ids == sorted(ids) and ids[0] > last, "increasing ids:", runs)
                check(not seen & set(ids), "no id comes twice")
                seen |= set(ids)
                last = ids[-1]
        check(len(c.ask("fluid.generate", {})["runs"]) == 1, "one, if not told otherwise")
        check(c.ask("fluid.info", nodeid=6)["rank"] == 6, "info")


def check_generate_errors():
    """invalid requests are refused with a message"""
    with Client() as c:
        for count in 0, -1, 65537, 1 << 40, 1.5, "3", None, True, []:
            c.refuse(errno.EINVAL, "fluid.generate", {"count": count}, text="1 .* 65536")
        for payload in b"{}", b"\0", b"[]\0", b"{", b'{"count":\0', b"\xff\xfe\0":
            c.refuse(errno.EPROTO, "fluid.generate", payload)


def check_block():
    """fluid.block returns ids in binary form, all above a given id"""
    with Client(3) as c:
        after = 0
        for count in 1, 1500, 2:
            m = c.rpc("fluid.block", struct.pack(">IQ", count, after))
            runs = [struct.unpack(">QI", m.payload[i : i + 12]) for i in range(0, len(m.payload), 12)]
            check(sum(n for _, n in runs) == count and runs[0][0] > after, "the ids asked for:", runs)
            after = runs[-1][0] + runs[-1][1] - 1
        for payload in b"", b"\0" * 11, b"\0" * 13, None:
            c.refuse(errno.EPROTO, "fluid.block", payload)
        c.refuse(errno.EINVAL, "fluid.block", struct.pack(">IQ", 0, 0))


# --- services of clients -----------------------------------------------------------------------------------------------


def check_service():
    """a client adds a service; requests from its rank and from ranks below it reach it, and responses return"""
    with Client(1) as server, Client(3) as c:
        check(server.ask("service.add", {"service": "mine"}) is None, "added")
        with Client(1) as other:
            other.refuse(errno.EEXIST, "service.add", {"service": "mine"}, text="in use on this rank")
            other.refuse(errno.ENOENT, "service.remove", {"service": "mine"}, text="only the connection that added a service")
        for name in "", "a.b", "x" * 65:
            server.refuse(errno.EINVAL, "service.add", {"service": name}, text="1 to 64 characters and no dot")
        tag = c.request("mine.do", {"n": 1})
        m = server.recv()
        check((m.kind, m.topic, m.json(), m.aux2) == (REQUEST, "mine.do", {"n": 1}, tag), "the request", m.topic)
        check(m.userid == os.getuid() and m.roles == OWNER and m.routes, "who asks:", m.userid, m.roles, m.routes)
        server.send(Message(RESPONSE, m.topic, {"n": 2}, aux2=m.aux2, routes=m.routes))
        check(c.answer(tag).json() == {"n": 2}, "the answer")
        check(server.ask("service.remove", {"service": "mine"}) is None, "removed")
        c.refuse(errno.ENOSYS, "mine.do", {})


def check_service_limit():
    """a client adds 64 services with names of the maximum length, and other clients are not affected"""
    names = ["%064d" % i for i in range(65)]
    with Client(1) as server, Client(1) as other:
        for name in names[:64]:
            server.ask("service.add", {"service": name})
        server.refuse(errno.ENOSPC, "service.add", {"service": names[64]}, text="64 services")
        other.ask("service.add", {"service": names[64]})
        server.ask("service.remove", {"service": names[0]})
        server.ask("service.add", {"service": names[0]})


def check_service_stream():
    """a stream of responses arrives in order, up to its end"""
    with Client(0) as server, Client(6) as c:
        server.ask("service.add", {"service": "many"})
        tag = c.request("many.get", {}, flags=STREAMING)
        m = server.recv()
        check(m.flags & STREAMING, "the request is one of a stream")
        for i in range(500):
            server.send(Message(RESPONSE, m.topic, {"i": i}, STREAMING, aux2=m.aux2, routes=m.routes))
        server.send(Message(RESPONSE, m.topic, None, STREAMING, errno.ENODATA, m.aux2, routes=m.routes))
        got = [c.answer(tag).json()["i"] for _ in range(500)]
        check(got == list(range(500)) and c.answer(tag).aux1 == errno.ENODATA, "all, then the end")


def check_service_gone():
    """when a server disconnects, its requests fail; when a client disconnects, its servers are notified"""
    with Client(3) as c:
        with Client(1) as server:
            server.ask("service.add", {"service": "brief"})
            tag = c.request("brief.wait", {})
            server.recv()
        m = c.answer(tag)
        check(m.aux1 == errno.ENOSYS and m.text(), "the request fails:", m.aux1, m.text())
        c.refuse(errno.ENOSYS, "brief.wait", {})
    with Client(1) as server:
        server.ask("service.add", {"service": "watch"})
        with Client(3) as c:
            c.request("watch.it", {})
            asker = server.recv()
        m = server.recv()
        check((m.kind, m.topic) == (REQUEST, "watch.disconnect") and m.flags & NORESPONSE, "told:", m.topic, m.flags)
        check(m.routes[0] == asker.routes[0], "by the same name:", m.routes, asker.routes)


# --- the connection itself ------------------------------------------------------------------------------------------


def check_tags():
    """matchtags may be reused, and used by several clients at the same time"""
    with Client(5) as a, Client(5) as b:
        for c in a, b, a, b:
            c.send(Message(REQUEST, "broker.ping", ping_payload(seq=id(c)), aux1=0, aux2=1))
        for c in a, b, a, b:
            check(c.answer(1).json()["seq"] == id(c), "each gets its own")
        a.send(Message(REQUEST, "fluid.generate", {}, NORESPONSE, ANY, 0))
        check(a.fence() == [], "no answer where none is wanted")


def check_no_tag():
    """a request with matchtag 0 that wants a response gets one, also if no service matches (RFC 6)"""
    with Client(5) as c:
        for topic, rank, errnum in (
            ("broker.ping", 6, 0),
            ("fluid.generate", 0, 0),
            ("compressor.stats-get", 2, 0),
            ("nosuch.x", ANY, errno.ENOSYS),
            ("nosuch.x", 3, errno.ENOSYS),
            ("fluid.nosuch", 1, errno.ENOSYS),
            ("broker.ping", 99, errno.EHOSTUNREACH),
        ):
            for _ in range(2):
                c.send(Message(REQUEST, topic, {}, 0, rank, 0))
                m = c.answer(0)
                check((m.topic, m.aux1) == (topic, errnum), "its answer:", topic, rank, m.topic, m.aux1, m.text())


def check_pipelining():
    """each of a thousand requests sent in one piece, and a request sent byte by byte, is answered once"""
    with Client(2) as c:
        frames = b"".join(Message(REQUEST, "broker.ping", {"seq": i}, aux1=i % SIZE, aux2=i + 1).encode()
                          for i in range(1000))
        c.sock.sendall(frames)
        got = sorted(c.recv().aux2 for _ in range(1000))
        check(got == list(range(1, 1001)), "each once")
        for byte in Message(REQUEST, "broker.ping", {"seq": 1}, aux1=6, aux2=5).encode():
            c.sock.sendall(bytes([byte]))
        check(c.answer(5).json()["rank"] == 6, "byte by byte")


def check_large():
    """a payload of one megabyte passes through the tree and back, and as an event"""
    with Client(3) as c:
        pad = "x" * (1 << 20)
        check(c.ask("broker.ping", ping_payload(pad=pad), nodeid=6)["pad"] == pad, "unharmed")
        c.ask("event.subscribe", {"topic": "large"})
        publish(c, "large", pad.encode())  # 1.4 MB in base64
        check(c.recv().payload == pad.encode(), "unharmed")


def check_garbage():
    """a client that sends garbage is disconnected; other clients are not affected"""
    frame = Message(REQUEST, "broker.ping", {}, aux1=ANY, aux2=1).encode()
    with Client(4) as witness:
        for data in (b"GET / HTTP/1.0\r\n\r\n", frame[:4] + b"\xff\xff\xff\xff", frame[:8] + b"\0" * (len(frame) - 8),
                     frame[:-20] + b"\x8e\x02" + frame[-18:]):
            with Client(4) as c:
                c.sock.sendall(data)
                check(select.select([c.sock], [], [], PATIENCE)[0] and c.sock.recv(1) == b"", "the connection ends")
        with Client(4) as c:
            c.sock.sendall(frame[:-5])  # the client disconnects in the middle of a frame
        witness.ask("broker.ping", {}, nodeid=4)


def check_gone_in_the_middle():
    """clients that disconnect with requests in flight leave no pending requests behind"""
    with Client() as c:
        for i in range(50):
            with Client(5) as brief:
                for topic in "fluid.generate", "broker.ping", "overlay.health", "module.list":
                    brief.request(topic, {}, nodeid=i % SIZE)
                dmesg(brief, follow=True)
        for rank in range(SIZE):
            while c.ask("broker.stats-get", nodeid=rank)["pending"] > 0:
                pass
            check(c.ask("broker.ping", {}, nodeid=rank)["rank"] == rank, "it lives")


def check_protocol_errors():
    """a payload that is missing, malformed or lacks a key is refused with a message; unknown keys are ignored"""
    with Client(1) as c:
        for topic in "attr.get", "attr.set", "module.load", "module.remove", "event.subscribe", "overlay.topology":
            for payload in None, b"\0", b"{}", {}, b"[1]\0":
                c.refuse(errno.EPROTO, topic, payload, text=".")
        check(c.ask("attr.get", {"name": "size", "new": [1]})["value"] == str(SIZE), "unknown keys are ignored")


# --- guests -----------------------------------------------------------------------------------------------------------


def check_guests():
    """the owner may act for a guest: the identity of the guest is forwarded, and requests for the owner are refused"""
    guest = {"userid": 4321, "roles": USER}
    with Client(3) as c:
        for rank in 3, 0:
            a = c.ask("broker.ping", ping_payload(), nodeid=rank, **guest)
            check(a["userid"] == 4321 and a["rolemask"] & ~LOCAL == USER, "the guest is seen:", a)
        for topic, payload in (("attr.set", {"name": "log-level", "value": "7"}), ("module.remove", {"name": "fluid"}),
                               ("module.load", {"path": "fluid", "args": []}), ("log.clear", None),
                               ("service.add", {"service": "x"}), ("shutdown.start", {"loglevel": 6})):
            c.refuse(errno.EPERM, topic, payload, **guest)
        for topic, payload in (("attr.get", {"name": "size"}), ("attr.list", None), ("module.list", None),
                               ("fluid.stats-get", None), ("fluid.rusage", None), ("overlay.health", None),
                               ("overlay.topology", {"rank": 0}), ("state-machine.get", None), ("fluid.generate", {}),
                               ("fluid.info", None)):
            c.ask(topic, payload, **guest)


# --- between brokers --------------------------------------------------------------------------------------------------

WRONG_EPOCH = {"want": [], "epoch": "1"}
BETWEEN_BROKERS = (
    ("fluid.lease", WRONG_EPOCH),
    ("fluid.lease", {"part": [1, "x" * 36, 1, "0", 16, 0, "0"]}),
    ("fluid.position", {"rank": 1, "from": "x" * 36, "holders": [1, "1"], "low_ms": "1"}),
    ("fluid.cancel", None),
    ("fluid.time", {}),
    ("fluid.metrics", {}),
    ("flake.metrics", {}),
    ("compressor.metrics", {}),
    ("job-ingest.metrics", {}),
    ("metrics", {}),
    ("flake.claim", {"fingerprint": 1, "node": "x", "rank": 1}),
    ("compressor.order", {"batch": []}),
    ("job-ingest.batch", {}),
    ("event.replay", {"stream": "x", "from": 1}),
)
WORDS = OWNER, USER | OWNER, BROKER, OWNER | BROKER, OWNER | LOCAL | BROKER, 0xFFFFFFFF, 0


def topics_between_brokers():
    """the topics whose row in the access table is for brokers, from the source"""
    with open(os.path.join(HERE, "..", "src", "common", "libmsg", "access.c"), encoding="utf-8") as f:
        return re.findall(r'{ "([a-z.-]+)", ACCESS_(?:BROKER|BESIDE) }', f.read())


def check_roles_in_one_place():
    """no row of a table of handlers has its own roles, and each topic is in the access table"""
    with open(os.path.join(HERE, "..", "src", "common", "libmsg", "access.c"), encoding="utf-8") as f:
        table = re.findall(r'{ "([a-z.-]+)", ACCESS_', f.read())
    row = re.compile(r'IDT_MSGTYPE_REQUEST[^"{}]*"([a-z.-]+)",([^{}]*)}')
    topics = []
    for folder, _, files in os.walk(os.path.join(HERE, "..", "src")):
        for name in files:
            if not name.endswith(".c") or name.endswith("_test.c") or folder.endswith("flux"):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                for topic, rest in row.findall(f.read()):
                    check("IDT_ROLE" not in rest, "the row of", topic, "has no roles of its own")
                    topics.append(topic)
    check(sorted(topics) == table, "the table of access has each topic:", sorted(set(topics) ^ set(table)))


def check_between_brokers():
    """requests between brokers are refused to clients, whatever roles they claim and wherever they send them"""
    rows, here = sorted(topics_between_brokers()), sorted({topic for topic, _ in BETWEEN_BROKERS})
    check(rows == here, "each topic that asks for BROKER is tried here:", rows, here)
    for rank in 0, 1, 3, 6:
        with Client(rank) as c:
            for row, payload in BETWEEN_BROKERS:
                topic = row if "." in row else "fluid." + row  # each module serves this method
                for roles in WORDS:
                    for to in range(SIZE):
                        c.refuse(errno.EPERM, topic, payload, nodeid=to, roles=roles, text=topic + " is a request between")
                    if rank > 0:
                        c.refuse(errno.EPERM, topic, payload, nodeid=rank, flags=UPSTREAM, roles=roles, text=topic)
                    c.refuse(errno.EPERM, topic, payload, roles=roles, text=topic)
    with Client() as c:
        c.ask("compressor.list", {})
        for rank in range(SIZE):
            info = c.ask("fluid.info", nodeid=rank)
            check(rank != 0 or info["store"] == "good", "nobody holds a foreign lease:", info)
            c.ask("fluid.generate", {}, nodeid=rank)


def block(count, after):
    return struct.pack(">IQ", count, after)


def clock(c, rank):
    return int(c.ask("fluid.info", nodeid=rank)["timestamp_ms"])


def check_after():
    """no client moves a clock by requesting ids above a far future one, on any rank and with any claimed roles"""
    years = 30 * 365 * 86400 * 1000
    with Client(3) as c:
        for rank in range(SIZE):
            before = clock(c, rank)
            for roles in WORDS:
                c.refuse(errno.EAGAIN, "fluid.block", block(1, before + years << 24), nodeid=rank, roles=roles)
            check(clock(c, rank) < before + years // 2, "the time here is what it was")
        for flags in UPSTREAM, UPSTREAM | STREAMING:
            for roles in WORDS:
                c.refuse(errno.EAGAIN, "fluid.block", block(1, before + years << 24), nodeid=3, flags=flags, roles=roles)
        for rank in range(SIZE):
            check(clock(c, rank) < before + years // 2, "and nowhere else:", rank)
            c.ask("fluid.generate", {}, nodeid=rank)


def last_id(m):
    check(m.aux1 == 0, "ids are made:", m.aux1, m.payload)
    first, n = struct.unpack(">QI", m.payload[-12:])
    return first + n - 1


def check_turns():
    """a client that requests many ids does not delay a client that requests few"""
    with Client(3) as greedy, Client(3) as modest:
        await_that(lambda: modest.ask("fluid.info", nodeid=3)["state"] == "active", "rank 3 has a lease")
        for _ in range(30):
            greedy.request("fluid.block", block(65536, 0))
        answers = greedy.fence()
        modest_id = last_id(modest.rpc("fluid.block", block(1, 0)))
        ids = [last_id(m) for m in answers + [greedy.recv() for _ in range(30 - len(answers))]]
        check(ids == sorted(ids), "the one gets all, in order")
        check(modest_id < ids[-1], "the other did not wait for that:", modest_id, ids[-1])


def check_masks():
    """a client cannot end the requests of another client by copying its route into a message"""
    with Client(3) as victim, Client(3) as thief:
        await_that(lambda: victim.ask("fluid.info", nodeid=3)["state"] == "active", "rank 3 has a lease")
        thief.ask("service.add", {"service": "thief"})
        tag = victim.request("thief.x", {})
        m = thief.recv()
        thief.send(Message(RESPONSE, m.topic, {}, aux2=m.aux2, routes=m.routes))
        victim.answer(tag)
        tag = victim.request("fluid.block", block(1, clock(victim, 3) + 1500 << 24), nodeid=3)
        check(victim.fence() == [], "a request waits")
        for routes in m.routes, m.routes * 2:
            thief.send(Message(REQUEST, "fluid.disconnect", None, NORESPONSE, 3, 0, routes=routes))
            thief.fence()
        last_id(victim.answer(tag))


def check_impostor():
    """a client that serves under the name of a module gets requests of clients, but none between brokers: those go up"""
    with Client(1) as c, Client(3) as below:
        c.ask("module.remove", {"name": "compressor"}, nodeid=1)
        c.ask("service.add", {"service": "compressor"})
        below.request("compressor.x", {}, nodeid=3, flags=UPSTREAM)
        m = c.recv()
        check(m.topic == "compressor.x" and not m.roles & BROKER, "it serves clients:", m.topic, m.roles)
        c.send(Message(RESPONSE, m.topic, {}, aux2=m.aux2, routes=m.routes))
        below.answer(below.tag)
        orders = below.ask("compressor.stats-get", nodeid=3)["orders"]
        below.ask("compressor.open", {"document": "impostor"}, nodeid=3)
        below.ask("compressor.generate", {"document": "impostor", "count": 3}, nodeid=3)

        def is_ordered():
            stats = below.ask("compressor.stats-get", nodeid=3)
            return stats["orders"] > orders and stats["waiting"] == 0

        await_that(is_ordered, "rank 0 has ordered what rank 3 made")
        seen = [m.topic for m in c.fence() if m.kind == REQUEST]
        check(not seen, "it sees none of theirs:", seen)
        c.ask("service.remove", {"service": "compressor"})
        c.ask("module.load", {"path": "compressor", "args": []}, nodeid=1)


def check_stand_in():
    """no client takes the name of a module that left a handover; requests between brokers go up past its rank"""
    with Client(1) as c, Client(3) as below:
        c.ask("module.remove", {"name": "fluid"}, nodeid=1)
        c.refuse(errno.EEXIST, "service.add", {"service": "fluid"})
        before = clock(below, 3)
        below.ask("module.remove", {"name": "fluid"}, nodeid=3)
        below.ask("module.load", {"path": "fluid", "args": []}, nodeid=3)
        await_that(lambda: below.ask("fluid.info", nodeid=3)["state"] == "active", "rank 3 gets a lease of rank 0")
        below.ask("fluid.generate", {"count": 2000}, nodeid=3)
        c.ask("module.load", {"path": "fluid", "args": []}, nodeid=1)
        check(clock(below, 3) >= before, "time goes on")


# --------------------------------------------------------------------------------------------------------------------

CHECKS = {name[len("check_") :]: f for name, f in list(globals().items()) if name.startswith("check_")}


def main(names):
    failed = 0
    for name in names:
        try:
            CHECKS[name]()
        except (Failure, EOFError, OSError) as e:
            print("%s: %s" % (name, e), file=sys.stderr)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        for name, f in CHECKS.items():
            if name != "stop":
                print(name, f.__doc__)
    else:
        sys.exit(main(sys.argv[1:]))
