# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# notify.py FILE COMMAND... - run a command as a service manager does, write the command's notifications to FILE, and
# exit with the command's exit status
import os
import signal
import socket
import subprocess
import sys

path = os.path.join(os.getcwd(), "notify.%d" % os.getpid())
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
# The path must fit into the address of a socket. The folders of tests are short enough; a long one would need a
# symbolic link.
listener.bind(path)
child = subprocess.Popen(sys.argv[2:], env=dict(os.environ, NOTIFY_SOCKET=path))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda n, frame: child.send_signal(n))
listener.settimeout(0.02)
with open(sys.argv[1], "w") as out:
    while True:
        ended = child.poll() is not None
        try:
            while True:
                out.write(listener.recv(65536).decode() + "\n")
                out.flush()
        except socket.timeout:
            pass
        if ended:
            break
os.unlink(path)
sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)
