#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""http_proxy.py SOCKET URL PID: a proxy at that UNIX socket forwards events as they occur

URL and PID are those of the idtree-http behind the proxy. In each round, the process is stopped when a reader without a
proxy has received further events. The events that the process had sent by then must still arrive through the proxy,
and the last bytes must be the end of an event. A proxy that holds an answer until a buffer is full would withhold some
of these bytes forever. The test measures no times, because a busy machine delays both readers.
"""
import os
import re
import signal
import socket
import sys

PATIENCE = 50  # shorter than the time that nginx waits for a silent server
ROUNDS = 4


class Reader:
    def __init__(self, family, address):
        self.data = b""
        self.socket = socket.socket(family)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(address)
        self.socket.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")

    def text(self):
        """Return the body without the chunk headers."""
        rest, text = self.data.partition(b"\r\n\r\n")[2], b""
        while size := re.match(rb"([0-9a-fA-F]+)\r\n", rest):
            end = size.end() + int(size[1], 16)
            text += rest[size.end() : end]
            rest = rest[end + 2 :]
        return text

    def rates(self):
        return re.findall(rb"event: rates\n.*?\n\n", self.text(), re.DOTALL)

    def read_until(self, what, has):
        while not has():
            try:
                part = self.socket.recv(65536)
            except TimeoutError:
                sys.exit(f"gave up after {PATIENCE} s of waiting until {what}; there is {self.text()[-400:]}")
            assert part, self.data
            self.data += part


def main(path, url, pid):
    host, port = url.rsplit("/", 1)[1].rsplit(":", 1)
    proxied = Reader(socket.AF_UNIX, path)
    proxied.read_until("the first event comes through the proxy", lambda: b"event: hello\n" in proxied.text())
    head = proxied.data.split(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 200 ") and b"text/event-stream" in head, head
    direct = Reader(socket.AF_INET, (host, int(port)))
    for _ in range(ROUNDS):
        enough = len(direct.rates()) + 2
        direct.read_until("there are rates", lambda: len(direct.rates()) >= enough)
        wanted = direct.rates()[-2]  # the last event may be on its way to the other reader
        os.kill(pid, signal.SIGSTOP)
        try:
            proxied.read_until(
                "the same rates come through the proxy",
                lambda: wanted in proxied.text() and proxied.text().endswith(b"\n\n"),
            )
        finally:
            os.kill(pid, signal.SIGCONT)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
