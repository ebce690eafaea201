#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# access_client.py - test the rules of doc/design/access.md as the user who runs this program. The first argument says
# what kind of user this is
#
#     access_client.py owner|group|guest|stranger
#         complete|requests|commands|asking|attempts|events|identity|liar|jobs|ration|documents|ticker RANK...
#
# FLUX_URI is the socket of any rank.

import errno
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading

import ingest_client
from flux_client import ANY, PATIENCE, PRIVATE, REQUEST, STREAMING, EVENT, Client, Failure, Message, await_that, check

HERE = os.path.dirname(os.path.realpath(__file__))
COLUMNS = {"owner": 0, "group": 1, "guest": 2, "stranger": 3}
LAST = {"shutdown.start", "idtree shutdown"}  # they end the instance, so the owner tests them separately


def table(heading):
    """The rows of the table under a heading: a command or request, and its columns."""
    with open(os.path.join(HERE, "..", "doc", "design", "access.md"), encoding="utf-8") as f:
        section = f.read().split("\n## %s\n" % heading)[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in re.findall(r"^\| `.*\|$", section, re.M)]
    check(len(rows) > 20, "the table has rows:", rows)
    return [(row[0].strip("`"), row[1:]) for row in rows]


def offered(*words):
    """The words that may follow, according to the shell completion of the command."""
    return subprocess.run(["idtree", "complete", *words, ""], capture_output=True, check=True, text=True).stdout.split()


def verbs(word):
    """The commands of a group. If a command is not a group, its completions are not commands."""
    usage = subprocess.run(["idtree", word, "-h"], capture_output=True, check=True, text=True).stdout.split("\n")[0]
    return offered(word) if " COMMAND " in usage else [""]


def handlers():
    """The requests that brokers and modules serve, according to their sources."""
    for folder in "broker", "modules", "common/libidtree":
        for path, _, names in os.walk(os.path.join(HERE, "..", "src", folder)):
            for name in names:
                if name.endswith(".c") and not name.endswith("_test.c"):
                    with open(os.path.join(path, name), encoding="utf-8") as f:
                        yield from re.findall(r'\{\s*IDT_MSGTYPE_REQUEST\b[^"{}]*"([^"]+)"', f.read())


def called(words):
    """The name of a command in its help: idtree status is overlay status."""
    usage = subprocess.run(["idtree", *words.split(), "-h"], capture_output=True, check=False, text=True).stdout
    match = re.match(r"usage: idtree ([a-z ]*?) \[OPTION", usage)
    return match.group(1) if match else words


def complete(column, ranks):
    """Each command, request and service has a row, but for idtree root, which needs PostgreSQL (t4012-role)."""
    del column
    there = {"idtree %s " % called("%s %s" % (word, verb)) for word in offered() for verb in verbs(word)}
    tried = [row[0] + " " for row in table("Commands")]
    without = {c for c in there if not c.startswith("idtree root ") and not any(t.startswith(c.strip() + " ") for t in tried)}
    check(len(there) > 40 and not without, "each command has a row:", sorted(without))
    rows = {row[0].replace("NAME.", "") for row in table("Requests")}
    every = {row for row in rows if "." not in row}  # requests that any service may serve have rows NAME.METHOD
    served = {topic for topic in handlers() if topic in rows or topic.partition(".")[2] not in every}
    check(rows == served, "each request has a row, and a handler:", sorted(rows ^ served))
    with open(os.path.join(HERE, "..", "doc", "man", "idtree.1"), encoding="utf-8") as f:
        manual = f.read()
    for sentence in {*REFUSED, LAUNCHER}:
        check(sentence in manual, "the manual has the sentence:", sentence)
    services = {row.split(".")[0] for row in rows}
    for rank in ranks:
        with Client(rank) as c:
            there = {s for m in c.ask("module.list")["mods"] for s in m["services"]}
            check(there <= services, "each service has a row:", sorted(there - services))


def is_refused(c, topic, nodeid):
    """Return True if a request is answered with EPERM before the next request to the same service is answered."""
    flags = STREAMING if topic in ("overlay.health", "ingest.watch", "log.dmesg") else 0
    tag = c.request(topic, {}, nodeid, flags)
    after = c.request(topic.split(".")[0] + ".no-such-method", {}, nodeid)
    refused = False
    while True:
        m = c.recv()
        if m.aux2 == tag and m.aux1 == errno.EPERM:
            check(topic in m.text(), "the refusal names the request:", m.text())
            refused = True
        if m.aux2 == after:
            check(m.aux1 == errno.ENOSYS, "the service is there:", topic, m.aux1, m.text())
            return refused


def hears(path, topic):
    """Return all bytes that a client receives after it has connected and sent a request."""
    got = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(PATIENCE)
        s.connect(path)
        try:
            s.sendall(Message(REQUEST, topic, {}, 0, ANY, 1).encode())
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            while data := s.recv(65536):
                got += data
        except ConnectionResetError:
            pass
    return got


def strangers_requests(ranks):
    """A stranger gets only EPERM, to any request on any socket."""
    folder = os.path.dirname(os.environ["FLUX_URI"].replace("local://", ""))
    for topic, _ in table("Requests"):
        for name in "local", *("local-%d" % rank for rank in ranks):
            got = hears(os.path.join(folder, name), topic.replace("NAME", "fluid"))
            check(got == bytes([errno.EPERM]), "a stranger hears EPERM, and that is all:", name, topic, got)


def requests(column, ranks):
    if column == COLUMNS["stranger"]:
        strangers_requests(ranks)
        return
    for topic, says in table("Requests"):
        allowed = says[column] == "yes"
        if allowed and topic in LAST:
            continue
        for rank in ranks:
            for nodeid in {ANY, *ranks}:
                if topic.startswith(("ingest.", "root.")) and nodeid not in (0, ANY):  # a service of rank 0
                    continue
                with Client(rank) as c:
                    refused = is_refused(c, topic.replace("NAME", "fluid"), nodeid)
                    check(refused != allowed, "the table is right for", topic, "at", rank, "to", nodeid, refused)


WITHOUT = {"idtree reload": "started without --config"}  # the text for users who may reload: there is no file
STATUS = {"idtree health": 2}  # exit status after an error, if 1 has another meaning
REFUSED = ["is for the owner", "is for the owner", "is for the owner", "the broker there serves another user"]
LAUNCHER = "only the owner of the instance may ask its launcher"


def commands(column, ranks):
    """Try the commands that send requests to a broker at each rank, and all other commands once."""
    for rank in ranks:
        each_command(column, rank, rank == ranks[0])


def asking(column, ranks):
    for rank in ranks:
        each_command(column, rank, False)


class Door:
    """A socket that sends the same answer to each connection, and then closes it."""

    def __init__(self, path, says):
        self.knocks, self.says = [], says
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(path)
        self.sock.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            s = self.sock.accept()[0]
            self.knocks.append(s)
            s.send(self.says)
            s.close()


TRIES = 20  # usually the launcher ends before the request in one of two tries


def attempts(column, ranks):
    """A refused command connects only once, and prints the reason even if the server closes the connection first."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLUX_URI"] = "local://%s/local-0" % folder
        broker = Door(os.path.join(folder, "local-0"), bytes([errno.EPERM]))
        launcher = Door(os.path.join(folder, "start"), b'{"error":"%s"}\n' % LAUNCHER.encode())
        for command in [row[0] for row in table("Commands") if row[1][column] != "yes"]:
            door = launcher if command.startswith("idtree startctl") else broker
            for _ in range(TRIES if door is launcher else 1):
                door.knocks.clear()
                judge(command, False, column, 0, run(command, 0, own_words(0, folder)))
                check(len(door.knocks) == 1, "a command that is refused knocks once:", command, len(door.knocks))


def own_words(rank, folder):
    name = "n%d-%d" % (os.getuid(), rank)
    return {"NAME": name, "OTHER": name + ".b", "DIR": folder, "JOB": "1"}


def is_allowed(command, says, column):
    if command.startswith("idtree startctl"):
        return os.getuid() == int(os.environ["OWNER"])
    return says[column] == "yes"


def each_command(column, rank, alone):
    """Try all commands at a rank. If alone is set, also try those that a stranger may run without a broker."""
    with tempfile.TemporaryDirectory() as folder:
        own = own_words(rank, folder)
        for command, says in table("Commands"):
            allowed = is_allowed(command, says, column)
            if (allowed and command in LAST) or (says[COLUMNS["stranger"]] == "yes" and not alone):
                continue
            if command.startswith("idtree state forget"):
                os.remove(os.path.join(folder, "copy", command.split()[-1]))
            judge(command, allowed, column, rank, run(command, rank, own))


def run(command, rank, own):
    """Run a command. Its output is kept for later commands that need it."""
    env = dict(os.environ, IDTREE_URI=re.sub(r"\d+$", str(rank), os.environ["FLUX_URI"]))
    words = re.sub(r"\b(NAME|OTHER|DIR|JOB)\b", lambda m: own[m[0]], command).split()
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, text=True, timeout=300)
    if command.startswith("idtree job submit"):
        own["JOB"] = done.stdout.strip() or own["JOB"]
    if command.startswith("idtree doc export"):
        with open(os.path.join(own["DIR"], "doc"), "w", encoding="utf-8") as f:
            f.write(done.stdout or "AAAA")
    return done


def judge(command, allowed, column, rank, done):
    seen = command, "at", rank, done.returncode, done.stderr
    if allowed:
        check(done.returncode == 0 or WITHOUT.get(command, "\0") in done.stderr, "may do", *seen)
        return
    why = LAUNCHER if command.startswith("idtree startctl") else REFUSED[column]
    check(done.returncode == STATUS.get(command, 1), "may not do", *seen)
    check(why in done.stderr + done.stdout, "and is told why:", *seen)


def ticker(column, ranks):
    """Publish an event every 50 ms until stdin ends, for clients that wait for one."""
    with Client(ranks[0]) as c:
        while not select.select([sys.stdin], [], [], 0.05)[0]:
            check(publish(c, "tick") == 0, "the owner publishes", column)


def publish(c, topic, flags=0):
    return c.rpc("event.publish", {"topic": topic, "flags": flags}, nodeid=0).aux1


def topics_until(c, wanted):
    """Return the topics of the events that arrive until all wanted ones have arrived."""
    got = []
    while not wanted <= set(got):
        m = c.recv()
        if m.kind == EVENT:
            got.append(m.topic)
    return got


def events(column, ranks):
    """A user who may see events sees the events that it publishes; none is dropped, and none bypasses a refusal."""
    for rank in ranks:
        bare, plain, private = ("%s.%d.%d" % (word, os.getuid(), rank) for word in ("bare", "plain", "private"))
        with Client(rank) as c, Client(rank) as other:
            c.ask("event.subscribe", {"topic": ""})
            if column > 0:
                other.send(Message(EVENT, "fluid.stats-clear"))
            other.send(Message(EVENT, bare))
            other.fence()
            seen = [publish(other, plain), publish(other, private, PRIVATE), publish(other, "fluid.stats-clear")]
            wanted = ([0, 0, 0], [0, 0, errno.EPERM], [errno.EPERM] * 3)[column]
            check(seen == wanted, "events are published by the owner and members:", seen)
            if column < 2:
                got = topics_until(c, {bare, plain, private})
                check(column == 0 or "fluid.stats-clear" not in got, "none of a service sneaks in:", got)


def documents(column, ranks):
    """The creator and the owner may rename and delete a document at any rank, and the last rank is notified."""
    mine, his = ("d%d" % user for user in (os.getuid(), int(os.environ["OWNER"])))
    for rank in ranks:
        for nodeid in ANY, 0, rank:
            with Client(rank) as c:
                c.ask("compressor.open", {"document": mine}, nodeid=nodeid)
                listed = c.ask("compressor.list", {})["documents"]
                check([d["owner"] for d in listed if d["document"] == mine] == [os.getuid()], "is his:", listed)
                if column > 0:
                    for to in ANY, 0, rank:
                        c.refuse(errno.EPERM, "compressor.delete", {"document": his}, nodeid=to, text="does not belong to user")
                        c.refuse(errno.EPERM, "compressor.rename", {"document": his, "name": "x"}, nodeid=to,
                                 text="does not belong to user %d: only its creator" % os.getuid())
                c.ask("compressor.rename", {"document": mine, "name": mine + ".b"}, nodeid=nodeid)
                c.ask("compressor.delete", {"document": mine + ".b"}, nodeid=nodeid)
                await_that(lambda c=c, nodeid=nodeid: closed(c, mine, nodeid), "the session is gone")


def closed(c, name, nodeid):
    """End the session of a rank in the document, by each name that the rank may know for the document."""
    for n in name, name + ".b":
        c.rpc("compressor.close", {"document": n, "discard": True}, nodeid=nodeid)
    return all(c.rpc("compressor.stats", {"document": n}, nodeid=nodeid).aux1 == errno.ENOENT for n in (name, name + ".b"))


ROLES = {0: 1, 1: 2 | 0x200, 2: 2}  # the keys stand for: the owner; a user of the group; any other user
LOCAL = 4


def identity(column, ranks):
    """Rank 0 and this rank know the identity of the requester."""
    for rank in ranks:
        with Client(rank) as c:
            for nodeid in rank, 0:
                a = c.ask("broker.ping", {}, nodeid=nodeid)
                roles = ROLES[column] | (LOCAL if nodeid == rank else 0)
                check((a["userid"], a["rolemask"]) == (os.getuid(), roles), "is known at", nodeid, a)


def liar(column, ranks):
    """A message has the identity of its real sender, whatever the message claims and whichever socket it is sent to."""
    for rank in ranks:
        with Client(rank) as c:
            for userid in 64001, 0, 64002, 0xFFFFFFFF:
                for roles in 1, 0x100, 0x101, 0x201, 0xFFFFFFFF:
                    for nodeid in 0, 5:
                        says = {"userid": userid, "roles": roles, "nodeid": nodeid}
                        a = c.ask("broker.ping", {}, **says)
                        check(a["userid"] == os.getuid() and a["rolemask"] & ~LOCAL == ROLES[column], "is no other:", a)
                        c.refuse(errno.EPERM, "attr.set", {"name": "log-level", "value": "0"}, **says)
                        c.refuse(errno.EPERM, "fluid.lease", {}, text="is a request between brokers", **says)


def submit(c, **more):
    request = {"J": ingest_client.wrap(ingest_client.JOBSPEC), **more}
    return c.rpc("job-ingest.submit", request)


def jobs(column, numbers):
    """Take two ranks, and jobs of another user, as numbers. Print a job of this user."""
    uid = os.getuid()
    for rank in numbers[:2]:
        with Client(rank) as c:
            mine = submit(c, key="same-%d" % rank).json()
            check("same" not in mine, "a key is this user's alone:", mine)
            check(submit(c, key="same-%d" % rank).json() == dict(mine, same=True), "and tells his job again")
            urgent = submit(c, urgency=17)
            check(urgent.aux1 == (0 if column == 0 else errno.EPERM), "urgency:", urgent.aux1, urgent.text())
            os.getuid = lambda: 1 if uid != 1 else 2
            forged = submit(c)
            os.getuid = lambda: uid
            check(forged.aux1 == errno.EPERM, "nobody submits in the name of another:", forged.aux1, forged.text())
            a = c.ask("ingest.get", {"id": mine["id"]}, nodeid=0)
            check(a["userid"] == uid, "his job is his:", a)
            for other in numbers[2:]:
                c.refuse(errno.EPERM, "ingest.get", {"id": other}, nodeid=0, text="another user")
    print(mine["id"])


def ration(column, ranks):
    """Test the limits of ids per request and per second. A refused user is told when to try again."""
    for topic in "fluid.generate", "flax.generate", "sno.generate":
        for rank in ranks:
            with Client(rank) as c:
                c.refuse(errno.EPERM, topic, {"count": 501}, text="500 ids at once.*access.guest-block")
                for _ in range(1000):
                    m = c.rpc(topic, {"count": 500})
                    if m.aux1:
                        break
                check(m.aux1 == errno.EAGAIN, "there is an end:", m.aux1, m.text())
                check("has used its 1000 ids a second (access.guest-rate): try again in" in m.text(), "it is told:", m.text())
                await_that(lambda c=c, topic=topic: c.rpc(topic, {"count": 500}).aux1 == 0, "there are more")


if __name__ == "__main__":
    try:
        tries = {f.__name__: f for f in (complete, requests, commands, asking, attempts, events, identity, liar,
                                         jobs, ration, documents, ticker)}
        tries[sys.argv[2]](COLUMNS[sys.argv[1]], [int(r) for r in sys.argv[3:]])
    except (Failure, EOFError, OSError) as e:
        print("%s %s: %s" % (sys.argv[1], sys.argv[2], e), file=sys.stderr)
        sys.exit(1)
