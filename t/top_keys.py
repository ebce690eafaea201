#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""top_keys.py - idtree top on its own terminal: how keys and events change the screen

Runs inside an instance of four brokers (kary:2). The screen is emulated: as much of xterm as ncurses uses with
TERM=ansi. Prints each step; exits with 1 if the screen never has the expected content.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

LINES, COLUMNS = 16, 120
PATIENCE = float(os.environ.get("WAIT_S", "300")) / 2


def set_size(fd, lines, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


class Terminal:
    """A screen: interprets the output of a program, and returns the lines that the screen shows."""

    def __init__(self, *command, columns=COLUMNS):
        self.cells, self.y, self.x, self.rest = {}, 0, 0, ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            set_size(0, LINES, columns)  # before it starts, because it may miss a change while it starts
            os.environ.update(TERM="ansi", LC_ALL="C.UTF-8")
            os.execvp(command[0], command)
        self.height, self.width = LINES, columns

    def resize(self, lines, columns):
        self.height, self.width = lines, columns
        set_size(self.fd, lines, columns)

    def put(self, c):
        self.cells[self.y, self.x] = c
        self.x += 1
        if self.x == self.width:
            self.y, self.x = self.y + 1, 0

    def erase(self, where):
        self.cells = {at: c for at, c in self.cells.items() if not where(*at)}

    def control(self, args, final):
        numbers = [int(n) if n.isdigit() else 0 for n in args.lstrip("?").split(";")]
        first = numbers[0]
        if final in "Hf":
            self.y, self.x = max(first, 1) - 1, (max(numbers[1], 1) if len(numbers) > 1 else 1) - 1
        elif final == "J":
            self.erase(lambda y, x: first == 2 or (y, x) >= (self.y, self.x))
        elif final == "K":
            self.erase(lambda y, x: y == self.y and (x <= self.x if first == 1 else x >= self.x))
        elif final == "G":
            self.x = max(first, 1) - 1
        elif final == "d":
            self.y = max(first, 1) - 1
        elif final in "ABCD":
            n = max(first, 1)
            self.y += {"A": -n, "B": n}.get(final, 0)
            self.x += {"C": n, "D": -n}.get(final, 0)
        elif final == "X":
            self.erase(lambda y, x: y == self.y and self.x <= x < self.x + max(first, 1))
        elif final == "P":
            n = max(first, 1)
            self.cells = {(y, x - n if y == self.y and x >= self.x + n else x): c for (y, x), c in self.cells.items()
                          if not (y == self.y and self.x <= x < self.x + n)}
        elif final == "@":
            n = max(first, 1)
            self.cells = {(y, x + n if y == self.y and x >= self.x else x): c for (y, x), c in self.cells.items()}
        elif final in "LM":
            n = max(first, 1)
            by = n if final == "L" else -n
            self.cells = {(y + by if y >= self.y else y, x): c for (y, x), c in self.cells.items()
                          if not (final == "M" and self.y <= y < self.y + n)}
        elif final == "b":
            last = self.cells.get((self.y, self.x - 1), " ")
            for _ in range(max(first, 1)):
                self.put(last)
        elif final not in "mhlr":
            sys.exit("the terminal knows no ESC [ %s %s" % (args, final))

    def take(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            match = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z@])|\x1b[()][A-Z0-9]|\x1b[=>]").match(text, at)
            if match:
                if match.group(2):
                    self.control(match.group(1), match.group(2))
                at = match.end()
                continue
            c = text[at]
            if c == "\x1b":
                self.rest = text[at:]
                return
            if c == "\r":
                self.x = 0
            elif c == "\n":
                self.y += 1
            elif c == "\b":
                self.x -= 1
            elif c == "\t":
                self.x += 8 - self.x % 8
            elif c >= " ":
                self.put(c)
            at += 1

    def lines(self):
        return ["".join(self.cells.get((y, x), " ") for x in range(COLUMNS)).rstrip() for y in range(self.height)]

    def ranks(self):
        """Return the first column of the lines with ranks, with its indentation."""
        return [m.group(0) for m in (re.match(r" *[0-9]+(?= )", line) for line in self.lines()[3:-1]) if m]

    def keys(self, text):
        os.write(self.fd, text.encode())

    def until(self, what, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            ready = select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]
            if not ready:
                sys.exit("never: %s\n%s" % (what, "\n".join(self.lines())))
            try:
                self.take(os.read(self.fd, 65536).decode("utf-8", "replace"))
            except OSError:
                sys.exit("it ended before: %s\n%s" % (what, "\n".join(self.lines())))
        print("ok: " + what, flush=True)

    def end(self):
        """Return the remaining output of the program, and its exit status."""
        text = ""
        while True:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            text += data.decode("utf-8", "replace")
        return text, os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def idtree(*args):
    return subprocess.run(["idtree", *args], check=True, capture_output=True, text=True).stdout


def main():
    t = Terminal("idtree", "top", "--interval", "0.2")

    def has(text):
        return any(text in line for line in t.lines())

    t.until("the tree is there, children below their parents", lambda: t.ranks() == ["0", "  1", "    3", "  2"] and has("ranks 4, all full"))
    t.until("hosts and states are, too", lambda: sum(" full " in line and os.uname().nodename[:20] in line for line in t.lines()) == 4)
    t.keys("s")
    t.until("s sorts by rank", lambda: t.ranks() == ["0", "1", "2", "3"] and has("by rank"))
    t.keys("r")
    t.until("r turns that round", lambda: t.ranks() == ["3", "2", "1", "0"] and has("by rank, reversed"))
    t.keys("r<")
    t.until("< sorts as before", lambda: t.ranks() == ["0", "  1", "    3", "  2"])
    t.keys("/3")
    t.until("/ filters while one types", lambda: t.ranks() == ["    3"] and has("filter: 3_"))
    t.keys("\x1b")
    t.until("Escape takes the filter away", lambda: len(t.ranks()) == 4 and not has("filter: 3"))
    t.keys("kkk\x1b[B\r")
    t.until("an arrow and Enter show a subtree", lambda: t.ranks() == ["1", "  3"] and has("below rank 1"))
    t.keys("u")
    t.until("u shows all", lambda: len(t.ranks()) == 4 and has("all ranks, by tree"))
    t.keys("?")
    t.until("? shows the keys", lambda: has("space: pause"))
    t.keys("? ")
    t.until("space pauses", lambda: has("PAUSED"))
    t.keys(" ")
    idtree("logger", "a", "note", "for", "you")
    t.until("what is logged is seen", lambda: has("a note for you"))
    idtree("startctl", "kill", "3")
    t.until("a rank that is killed is", lambda: any(re.match(r" *3 .* (lost|offline) ", line) for line in t.lines()))
    idtree("startctl", "run", "3")
    t.until("and one that is back", lambda: any(re.match(r" *3 .* full ", line) for line in t.lines()))
    t.cells = {}
    t.until("what others wrote over it goes with the next look", lambda: t.ranks() == ["0", "  1", "    3", "  2"] and has("all ranks, by tree"))
    made = subprocess.Popen(["sh", "-c", "while idtree id new -n 1000 >/dev/null; do :; done"])
    t.until("ids a second are counted", lambda: any(re.match(r"0 .* [1-9][0-9]* +[1-9][0-9]*$", line) for line in t.lines()))
    made.terminate()
    made.wait()
    t.resize(16, 80)
    os.kill(t.pid, signal.SIGWINCH)
    t.until("a terminal of 80 columns has all of them", lambda: has("IDS/S REQUESTS/S") and any(re.match(r"0 .* full .* [0-9]+$", line) for line in t.lines()))
    t.resize(8, 60)
    t.cells = {}
    os.kill(t.pid, signal.SIGWINCH)
    t.until("a smaller terminal is used as it is", 
            lambda: len(t.ranks()) == 4 and max(map(len, t.lines())) < 60 and all(y < 8 for y, _ in t.cells))
    for columns in 32768, 40000, 65535:
        t.resize(16, columns)
        t.cells = {}
        os.kill(t.pid, signal.SIGWINCH)
        t.until("%d columns end nothing" % columns, lambda: len(t.ranks()) == 4 and all(x < 1000 for _, x in t.cells))
    for i in range(40):
        t.resize(16, 80 + i % 7)
        for signum in signal.SIGTSTP, signal.SIGWINCH, signal.SIGCONT:
            os.kill(t.pid, signum)
    t.resize(16, 100)
    t.cells = {}
    os.kill(t.pid, signal.SIGWINCH)
    t.until("nor do Ctrl-Z and changes of the size at the same time", lambda: len(t.ranks()) == 4)
    t.keys("q")
    text, status = t.end()
    if status != 0 or "\x1b[?1049l" not in text and "\x1b[" not in text:
        sys.exit("q: %d, %r" % (status, text))
    print("ok: q ends it, and gives the terminal back")
    t = Terminal("idtree", "top", columns=65535)
    t.until("it begins on 65535 columns, too", lambda: len(t.ranks()) == 4)
    t.keys("q")
    if t.end()[1] != 0:
        sys.exit("q on 65535 columns")
    t = Terminal("idtree", "top", "--uri", os.environ["IDTREE_URI"][:-1] + "3")
    t.until("it shows another broker's view", lambda: len(t.ranks()) == 4)
    idtree("startctl", "kill", "3")
    text, status = t.end()
    if status != 1 or "connection lost" not in text:
        sys.exit("its broker is killed: %d, %r" % (status, text))
    print("ok: when its broker is gone it ends with a sentence")


main()
