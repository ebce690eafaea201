#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""http_crowd.py URL PID N MIB: N connections are silent, send half a request, or read nothing; others are served

idtree-http, process PID, may use at most MIB of memory with these connections. If N exceeds the limit of open files,
fewer connections are made.
"""
import resource
import socket
import sys
import urllib.request

HOST, PORT = sys.argv[1].rsplit("/", 1)[1].rsplit(":", 1)
PATIENCE = 120
HALF = b"POST /v1/ids?n=3 HTTP/1.1\r\nHost: localhost\r\nX: "
DEAF = b"POST /v1/ids?n=65536&to=words HTTP/1.1\r\nHost: localhost\r\n\r\n"
EVENTS = b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
SAYS = [b"", HALF + b"y" * 1000, HALF, b"", EVENTS, b"", HALF + b"z" * 8000, b"", b"\0" * 100, b""]


def connect(says):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(PATIENCE)
    s.connect((HOST, int(PORT)))
    s.sendall(says)
    return s


def memory_mib():
    with open("/proc/%s/status" % sys.argv[2], encoding="ascii") as f:
        return next(int(line.split()[1]) // 1024 for line in f if line.startswith("VmHWM:"))


def served():
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/ids?n=5", method="POST"), timeout=PATIENCE) as r:
        assert r.status == 200, r.status


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    n = min(int(sys.argv[3]), (hard if hard != resource.RLIM_INFINITY else 1 << 20) - 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, n + 100), hard))
    crowd = []
    for i in range(n):
        crowd.append(connect(DEAF if i % 250 == 249 else SAYS[i % len(SAYS)]))
        if i % 500 == 0:
            served()
    for _ in range(20):
        served()
    mib = memory_mib()
    print("%d connections: %d MiB" % (n, mib))
    assert mib <= int(sys.argv[4]), mib
    for s in crowd:
        s.close()
    served()


main()
