#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""http_attack.py URL: clients that send garbage, send too much or do not read are refused or dropped"""
import random
import socket
import sys
import urllib.request

HOST, PORT = sys.argv[1].rsplit("/", 1)[1].rsplit(":", 1)
PATIENCE = 60


def connect():
    s = socket.create_connection((HOST, int(PORT)), PATIENCE)
    s.settimeout(PATIENCE)
    return s


def served():
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/ids", method="POST"), timeout=PATIENCE) as r:
        assert r.status == 200, r.status


def tell(data):
    """Send as much as the other side accepts. The connection stays open, and no answer is read."""
    s = connect()
    try:
        s.sendall(data)
    except OSError:
        pass
    return s


def half_closed(request):
    """If a client shuts down its sending side, it gets an answer, or its connection ends. It is not kept forever."""
    s = tell(request)
    try:
        s.shutdown(socket.SHUT_WR)
        s.recv(4096)
    except ConnectionError:
        pass
    s.close()


def said_twice():
    """If a request has two lengths or two hosts, it is refused, and the bytes after it are not taken for a request."""
    for headers in (b"Content-Length: 0\r\nContent-Length: 5", b"Content-Length: 5\r\ncontent-length: 5",
                    b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"host: elsewhere"):
        s = tell(b"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n")
        answer = b""
        while part := s.recv(4096):
            answer += part
        assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1, answer


def endless():
    """The server soon stops reading a body that does not end."""
    s = connect()
    try:
        s.sendall(b"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(8192):
            s.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
    except OSError:
        return
    raise AssertionError("32 MiB of a body were read")


def main():
    rnd = random.Random(1)
    request = b"POST /v1/ids?n=3 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    nonsense = [
        b"\0" * 1000, b"\r\n" * 1000, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"X" * 100000,
        b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 50000,
        b"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"x" * 4096 + b"\r\n" * 20,
        b"GET /v1/ids/%00%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /v1/ids/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/ids/" + b"%F0%9F" * 100 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        request * 200,
    ]
    open_ones = [tell(data) for data in nonsense]
    for _ in range(200):
        data = bytearray(request)
        for _ in range(3):
            data[rnd.randrange(len(data))] = rnd.randrange(256)
        open_ones.append(tell(bytes(data)))
    served()
    idle = [connect() for _ in range(100)]  # send nothing
    deaf = [connect() for _ in range(20)]  # read no answer
    for s in deaf:
        s.sendall(b"POST /v1/ids?n=65536&to=words HTTP/1.1\r\nHost: localhost\r\n\r\n")
    gone = [connect() for _ in range(20)]  # disconnect before the answer
    for s in gone:
        s.sendall(request)
        s.close()
    endless()
    said_twice()
    half_closed(request)
    half_closed(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    served()
    for s in idle + deaf + open_ones:
        s.close()
    served()


main()
