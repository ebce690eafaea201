#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# flux_live.py - run the recorded commands of a stock Flux client unchanged, and compare their output
#
#   flux_live.py VECTORS       print "ok" or "not ok" for each command; exit status 0: all are as recorded
#
# flux-client.json has commands, with the exit status and output that they had with flux-core. Here the installed flux
# command runs them with the broker at FLUX_URI (one of 3). The output must be the same, except for parts that differ in
# each run (plain ()), and parts that differ between the brokers (OTHERWISE, SENTENCES).
import json
import os
import re
import socket
import subprocess
import sys
import time

PATIENCE = int(os.environ.get("WAIT_S", 300))  # seconds after which a command that has not ended counts as a failure
STRANGE, OURS = "heartbeat", "fluid"  # the recorded commands use a module that idtree does not have


def plain(text):
    """Return a text with placeholders instead of times, event numbers, routes, users and hosts."""
    for pattern, word in (
        (re.escape(socket.gethostname()), "vm"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "DATE"),
        (r"\d+\.\d+", "TIME"),
        (r"[0-9a-f]{8}(![0-9a-f]{8})*", "WAY"),
        (r"seq=\d+", "seq=N"),
        (r"'userid': \d+", "'userid': N"),
        (STRANGE, OURS),
    ):
        text = re.sub(pattern, word, text)
    return text


def is_number(text):
    return text.strip().isdigit()


def has_asked(text):
    """Whether the list has the attributes that clients request (protocol.md, section 4)."""
    return {"hostlist", "instance-level", "rank", "size", "security.owner", "tbon.topo"} <= set(text.split())


def is_module_table(text):
    lines = [line.split() for line in text.splitlines()]
    title = ["Module", "Idle", "S", "Sendq", "Recvq", "Service"]
    return lines[0] == title and {line[0]: line[2] for line in lines[1:]}[OURS] == "R"


def is_counters(text):
    return all(isinstance(v, (int, float)) for v in json.loads(text).values())


def has_line(text):
    """Whether the log has the line. It may also have lines of brokers."""
    return any(line.endswith("logger.notice[0]: hello") for line in text.splitlines())


def names_versions(text):
    return [line.split(":")[0] for line in text.splitlines()][:4] == ["commands", "libflux-core", "broker", "FLUX_URI"]


# Only the form of this output is checked, because it differs between the two brokers.
OTHERWISE = {
    "dmesg": has_line,
    "getattr log-stderr-level": is_number,
    "lsattr": has_asked,
    "module list": is_module_table,
    "module stats " + OURS: is_counters,
    "module stats --rusage " + OURS: is_counters,
    "version": names_versions,
}

# Errors for which idtree has messages of its own. Flux prints the text of the errno, or less.
SENTENCES = {
    "module load nosuch": "flux-module: load nosuch: module not found in search path: there is no nosuch.so in ",
    "module load " + OURS: "flux-module: load %s: a module %s is loaded already: " % (OURS, OURS),
    "module remove nosuch": "flux-module: remove nosuch: no such module is loaded ",
}


def subscribers():
    stats = subprocess.check_output(["flux", "module", "stats", "event"], stdin=subprocess.DEVNULL)
    return json.loads(stats)["subscribers"]


def publish_for(args, before):
    """Publish one event for the recorded subscriber after it has subscribed."""
    end = time.monotonic() + PATIENCE
    while subscribers() <= before:
        if time.monotonic() > end:
            sys.exit("flux event sub did not subscribe within %d s" % PATIENCE)
    subprocess.run(["flux", "event", "pub", args[-1] + ".top", '{"k":1}'], check=True, stdin=subprocess.DEVNULL)


def run(args):
    before = subscribers() if "sub" in args else 0
    p = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if "sub" in args:
        publish_for(args, before)
    out, err = p.communicate(timeout=PATIENCE)
    return p.returncode, out, err


def differences(want, args):
    code, out, err = run(args)
    if code != want["exit"]:
        yield "exit status %d, recorded %d: %s" % (code, want["exit"], err)
    form = OTHERWISE.get(" ".join(args[1:]))
    if form:
        if not form(out):
            yield "stdout has another form: %r" % out
    elif plain(out) != plain(want["stdout"]):
        yield "stdout %r, recorded %r" % (out, want["stdout"])
    sentence = SENTENCES.get(" ".join(args[1:])) if want["stderr"] else None
    if sentence:
        if not err.startswith(sentence):
            yield "stderr %r, which should begin with %r" % (err, sentence)
    elif plain(err) != plain(want["stderr"]):
        yield "stderr %r, recorded %r" % (err, want["stderr"])


def main(vectors):
    failed = 0
    with open(vectors) as f:
        recording = json.load(f)
    for want in recording:
        args = [OURS if a == STRANGE else a for a in want["args"]]
        wrong = list(differences(want, args))
        print("not ok" if wrong else "ok", "-", " ".join(args))
        for line in wrong:
            print("#", line)
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
