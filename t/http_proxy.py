#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""http_proxy.py SOCKET: events come through the proxy at that UNIX socket as they happen

A proxy that keeps an answer until a buffer is full hands on many events together, the first ones long after they
happened: so the first bytes that come must be of few events.
"""
import re
import socket
import sys

PATIENCE = 300
FEW = 4

s = socket.socket(socket.AF_UNIX)
s.settimeout(PATIENCE)
s.connect(sys.argv[1])
s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
data = b""
while b"event: " not in data:
    part = s.recv(65536)
    assert part, data
    data += part
head = data.split(b"\r\n\r\n")[0]
assert head.startswith(b"HTTP/1.1 200 ") and b"text/event-stream" in head, head
events = re.findall(rb"event: (\w+)", data)
assert events[0] == b"hello" and len(events) <= FEW, events
while b"event: rates" not in data:
    part = s.recv(65536)
    assert part, data
    data += part
