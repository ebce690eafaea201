# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""browser.py - a headless Chromium that a test controls by the DevTools protocol over a pipe"""
import base64
import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

from png_pack import pack

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
WAIT_S = float(os.environ.get("WAIT_S", "300"))

# The names of non-character keys in the DevTools protocol.
VIRTUAL = {"ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Enter": 13,
           "Tab": 9}


def program():
    """Return the path of the browser, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page. Its errors are collected in 'complaints'."""

    def __init__(self, width=1200, height=760):
        self.home = tempfile.mkdtemp(prefix="browser.", dir=".")
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()
        self.buffer, self.counter, self.complaints = b"", 0, []
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"', "browser", str(to_child), str(from_child),
             program(), "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
             "--force-color-profile=srgb", f"--user-data-dir={os.path.abspath(self.home)}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(to_child, from_child), env=clean_environment())
        os.close(to_child)
        os.close(from_child)
        target = self.call("Target.createTarget", url="about:blank", width=width, height=height)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    session = None

    def meanwhile(self):
        """Called repeatedly while a test waits. A test may override this with its own work."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.home, ignore_errors=True)

    # --- messages, which end with a NUL

    def call(self, method, **params):
        self.counter += 1
        message = {"id": self.counter, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.counter:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def receive(self):
        while b"\0" not in self.buffer:
            if not select.select([self.into], [], [], WAIT_S)[0]:
                raise RuntimeError(f"the browser said nothing for {WAIT_S} s")
            part = os.read(self.into, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))

    # --- functions for tests

    def open(self, url, script=None):
        """Go to a URL. 'script' runs in the page before the scripts of the page."""
        if script:
            self.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        self.call("Page.navigate", url=url)

    def js(self, expression):
        """Return the value of an expression. If the value is a promise, wait for it."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", expression))
        return answer["result"].get("value")

    def wait(self, what, expression):
        """Wait until the expression is true in the page. Until then exceptions are ignored."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            self.meanwhile()
            with contextlib.suppress(RuntimeError):
                if self.js(f"(async () => Boolean (await ({expression}))) ()"):
                    return
            time.sleep(0.05)
        text = self.js("document.body.innerText")
        sys.exit(f"gave up after {WAIT_S} s of waiting until {what}; the page reads:\n{text}\n{self.complaints}")

    def key(self, name):
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
        code = VIRTUAL.get(name, ord(name[0]))
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, text=text, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)

    def prefer(self, **features):
        """Set preferences of the user's system: color_scheme="dark", reduced_motion="reduce"."""
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-" + name.replace("_", "-"), "value": value} for name, value in features.items()])

    def read(self):
        """Return the page as a screen reader gets it: lines with role, name and states."""
        lines = []
        for node in self.call("Accessibility.getFullAXTree")["nodes"]:
            if node.get("ignored"):
                continue
            states = {p["name"]: p["value"].get("value") for p in node.get("properties", [])}
            told = " ".join(f"{key}={states[key]}" for key in ("level", "expanded", "focused") if key in states)
            lines.append(f"{node['role']['value']} {node.get('name', {}).get('value', '')!r} {told}")
        return lines

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(pack(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])))


def clean_environment():
    """Return the environment without the libraries that sanitizers preload into our programs."""
    return {key: value for key, value in os.environ.items() if not re.match(r"LD_PRELOAD|[A-Z]SAN_OPTIONS", key)}
