#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""http_slow.py URL: readers of events that read nothing or have disconnected do not delay other clients"""
import json
import socket
import sys
import urllib.request

HOST, PORT = sys.argv[1].rsplit("/", 1)[1].rsplit(":", 1)
PATIENCE = 120


def connect(path):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(PATIENCE)
    s.connect((HOST, int(PORT)))
    s.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
    return s


def main():
    deaf = [connect("/v1/events") for _ in range(100)]
    gone = [connect("/v1/events") for _ in range(50)]
    for s in gone:
        s.close()
    with urllib.request.urlopen(sys.argv[1] + "/v1/events", timeout=PATIENCE) as r:
        seen = 0
        while seen < 3:
            seen += r.readline() == b"event: rates\n"
    with urllib.request.urlopen(sys.argv[1] + "/v1/tree", timeout=PATIENCE) as r:
        assert json.load(r)["size"] == 7
    for s in deaf:
        s.close()


main()
