#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# access_client.py - tries what doc/design/access.md says, as the user who runs it: the first argument says what that is
#
#     access_client.py owner|group|guest requests|commands|events|identity|liar|jobs|ration|documents RANK...
#
# FLUX_URI is the socket of any rank.

import errno
import os
import re
import subprocess
import sys
import tempfile

import ingest_client
from flux_client import ANY, PRIVATE, STREAMING, EVENT, Client, Failure, Message, await_that, check

HERE = os.path.dirname(os.path.realpath(__file__))
COLUMNS = {"owner": 0, "group": 1, "guest": 2}
LAST = {"shutdown.start", "idtree shutdown"}  # end the instance: the owner does that by itself


def table(heading):
    """The rows under a heading: what is tried, and the three columns."""
    with open(os.path.join(HERE, "..", "doc", "design", "access.md"), encoding="utf-8") as f:
        section = f.read().split("\n## %s\n" % heading)[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (\S+) \| (\S+) \| (\S+) \|$", section, re.M)
    check(len(rows) > 20, "the table has rows:", rows)
    return [(row[0], row[1:]) for row in rows]


def is_refused(c, topic, nodeid):
    """Whether a request is answered EPERM before the next to the same service is."""
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


def requests(column, ranks):
    for topic, says in table("Requests"):
        allowed = says[column] == "yes"
        if allowed and topic in LAST:
            continue
        for rank in ranks:
            for nodeid in {ANY, *ranks}:
                if topic.startswith("ingest.") and nodeid not in (0, ANY):
                    continue
                with Client(rank) as c:
                    refused = is_refused(c, topic.replace("NAME", "fluid"), nodeid)
                    check(refused != allowed, "the table is right for", topic, "at", rank, "to", nodeid, refused)


WITHOUT = {"idtree reload": "started without --config"}  # to whom it is allowed is told so: there is no file to read


def commands(column, ranks):
    for rank in ranks:
        with tempfile.TemporaryDirectory() as folder:
            each_command(column, rank, own_words(rank, folder))


def own_words(rank, folder):
    name = "n%d-%d" % (os.getuid(), rank)
    return {"NAME": name, "OTHER": name + ".b", "DIR": folder, "JOB": ""}


def each_command(column, rank, own):
    """Try all at a rank; own: what is this user's, by its word in the table."""
    env = dict(os.environ, IDTREE_URI=re.sub(r"\d+$", str(rank), os.environ["FLUX_URI"]))
    for command, says in table("Commands"):
        if says[column] == "yes" and command in LAST:
            continue
        words = re.sub(r"\b(NAME|OTHER|DIR|JOB)\b", lambda m: own[m[0]], command).split()
        done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, text=True, timeout=300)
        if command.startswith("idtree job submit"):
            own["JOB"] = done.stdout.strip()
        if says[column] == "yes":
            check(done.returncode == 0 or WITHOUT.get(command, "\0") in done.stderr,
                  "may do", command, "at", rank, done.returncode, done.stderr)
        else:
            check(done.returncode == 1, "may not do", command, "at", rank, done.returncode, done.stderr)
            check("is for the owner" in done.stderr, "and is told why:", command, done.stderr)


def publish(c, topic, flags=0):
    return c.rpc("event.publish", {"topic": topic, "flags": flags}, nodeid=0).aux1


def topics_until(c, wanted):
    """What came until all of these have."""
    got = []
    while not wanted <= set(got):
        m = c.recv()
        if m.kind == EVENT:
            got.append(m.topic)
    return got


def events(column, ranks):
    """What this user publishes he sees, where he may; no event of his is dropped or sneaks in."""
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
    """Who made a document may rename and delete it, and the owner; the last rank is told, wherever he asks."""
    mine, his = ("d%d" % user for user in (os.getuid(), int(os.environ["OWNER"])))
    for rank in ranks:
        for nodeid in ANY, 0, rank:
            with Client(rank) as c:
                c.ask("compressor.open", {"document": mine}, nodeid=nodeid)
                listed = c.ask("compressor.list", {})["documents"]
                check([d["owner"] for d in listed if d["document"] == mine] == [os.getuid()], "is his:", listed)
                if column > 0:
                    for to in ANY, 0, rank:
                        c.refuse(errno.EPERM, "compressor.delete", {"document": his}, nodeid=to, text="is not of user")
                        c.refuse(errno.EPERM, "compressor.rename", {"document": his, "name": "x"}, nodeid=to,
                                 text="is not of user %d: who made it may" % os.getuid())
                c.ask("compressor.rename", {"document": mine, "name": mine + ".b"}, nodeid=nodeid)
                c.ask("compressor.delete", {"document": mine + ".b"}, nodeid=nodeid)
                await_that(lambda c=c, nodeid=nodeid: closed(c, mine, nodeid), "the session is gone")


def closed(c, name, nodeid):
    """End the session of a rank under each name that it may know."""
    for n in name, name + ".b":
        c.rpc("compressor.close", {"document": n, "discard": True}, nodeid=nodeid)
    return all(c.rpc("compressor.stats", {"document": n}, nodeid=nodeid).aux1 == errno.ENOENT for n in (name, name + ".b"))


ROLES = {0: 1, 1: 2 | 0x200, 2: 2}  # OWNER; USER and GROUP; USER
LOCAL = 4


def identity(column, ranks):
    """Rank 0 and this one know who asks."""
    for rank in ranks:
        with Client(rank) as c:
            for nodeid in rank, 0:
                a = c.ask("broker.ping", {}, nodeid=nodeid)
                roles = ROLES[column] | (LOCAL if nodeid == rank else 0)
                check((a["userid"], a["rolemask"]) == (os.getuid(), roles), "is known at", nodeid, a)


def liar(column, ranks):
    """Whatever a message says, it is this user's, wherever it goes."""
    for rank in ranks:
        with Client(rank) as c:
            for userid in 64001, 0, 64002, 0xFFFFFFFF:
                for roles in 1, 0x100, 0x101, 0x201, 0xFFFFFFFF:
                    for nodeid in 0, 5:
                        says = {"userid": userid, "roles": roles, "nodeid": nodeid}
                        a = c.ask("broker.ping", {}, **says)
                        check(a["userid"] == os.getuid() and a["rolemask"] & ~LOCAL == ROLES[column], "is no other:", a)
                        c.refuse(errno.EPERM, "attr.set", {"name": "log-level", "value": "0"}, **says)
                        c.refuse(errno.EPERM, "fluid.lease", {}, text="is between brokers", **says)


def submit(c, **more):
    request = {"J": ingest_client.wrap(ingest_client.JOBSPEC), **more}
    return c.rpc("job-ingest.submit", request)


def jobs(column, numbers):
    """The first two are ranks; then a job of somebody else.  Prints one of its own."""
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
    """So many at once, so many in a second; who had too much is told when there are more."""
    for topic in "fluid.generate", "flax.generate", "sno.generate":
        for rank in ranks:
            with Client(rank) as c:
                c.refuse(errno.EPERM, topic, {"count": 501}, text="500 ids at once.*access.guest-block")
                for _ in range(1000):
                    m = c.rpc(topic, {"count": 500})
                    if m.aux1:
                        break
                check(m.aux1 == errno.EAGAIN, "there is an end:", m.aux1, m.text())
                check("has had his 1000 ids a second (access.guest-rate): try again in" in m.text(), "it is told:", m.text())
                await_that(lambda c=c, topic=topic: c.rpc(topic, {"count": 500}).aux1 == 0, "there are more")


if __name__ == "__main__":
    try:
        {"requests": requests, "commands": commands, "events": events, "identity": identity, "liar": liar,
         "jobs": jobs, "ration": ration, "documents": documents}[sys.argv[2]](
            COLUMNS[sys.argv[1]], [int(r) for r in sys.argv[3:]]
        )
    except (Failure, EOFError, OSError) as e:
        print("%s %s: %s" % (sys.argv[1], sys.argv[2], e), file=sys.stderr)
        sys.exit(1)
