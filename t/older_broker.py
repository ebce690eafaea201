#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""older_broker.py SOCKET PATH TOPIC: pass requests from PATH to the broker at SOCKET, as if it did not know TOPIC

Ends when it is killed, or after LIFE seconds.
"""
import os
import socket
import sys
import threading

LIFE = 600


def carry(source, goal, topic, other):
    """Copy bytes from source to goal until one of them ends. It is assumed that a request arrives in one piece."""
    try:
        while data := source.recv(65536):
            goal.sendall(data.replace(topic, other) if topic else data)
    except OSError:
        pass
    for s in source, goal:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def main():
    broker, path, topic = sys.argv[1:]
    unknown = topic.split(".")[0][:-1] + "-." + topic.split(".")[1]
    threading.Timer(LIFE, lambda: os._exit(0)).start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(path)
        door.listen()
        while True:
            client = door.accept()[0]
            behind = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            behind.connect(broker)
            threading.Thread(target=carry, args=(client, behind, topic.encode(), unknown.encode()), daemon=True).start()
            threading.Thread(target=carry, args=(behind, client, b"", b""), daemon=True).start()


main()
