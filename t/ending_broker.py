#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""ending_broker.py SOCKET PATH TEXT order|crash: pass bytes from PATH to the broker at SOCKET; end when TEXT is sent

A broker that ends in order removes its socket before it closes connections; after a crash the socket remains.
"""
import os
import socket
import sys
import threading

LIFE = 600


def answer(behind, client):
    while data := behind.recv(65536):
        client.sendall(data)


def main():
    broker, path, text, how = sys.argv[1:]
    threading.Timer(LIFE, lambda: os._exit(1)).start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(path + ".new")
        door.listen()
        os.rename(path + ".new", path)
        client = door.accept()[0]
        behind = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        behind.connect(broker)
        threading.Thread(target=answer, args=(behind, client), daemon=True).start()
        while (data := client.recv(65536)) and text.encode() not in data:
            behind.sendall(data)
        if how == "order":
            os.unlink(path)
        os._exit(0)


main()
