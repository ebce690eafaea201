#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""json_schemas.py - the output of commands with --json matches etc/schema

Runs inside an instance of three brokers with job-ingest. Prints each error; exits with 1 if there is one.
"""
import decimal
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

SCHEMAS = pathlib.Path(os.environ["IDTREE_SRCDIR"]) / "etc" / "schema"
SILENT = "print an empty object when done"
# These commands run other programs, print a script, or reorder lines that they read.
WITHOUT = {"start", "broker", "completion", "id sort"}
SAFE = 2 ** 53  # a double cannot represent all larger integers
wrong = []


def run(*args, stdin="", check=True):
    done = subprocess.run(["idtree", *args], input=stdin, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        wrong.append("idtree %s: %d, %s" % (" ".join(args), done.returncode, done.stderr.strip()))
    return done.stdout


def called(words):
    """Return the name of a command in its help: that of idtree status is overlay status."""
    usage = run(*words.split(), "-h").split("\n")[0]
    match = re.match(r"usage: idtree ([a-z ]*?) \[OPTION", usage)
    return match.group(1) if match else words


def commands():
    yield from {called(words): None for words in offered()}


def offered():
    for word in run("complete", "").split():
        usage = run(word, "-h").split("\n")[0]
        for verb in run("complete", word, "").split() if " COMMAND " in usage else [""]:
            yield (word + " " + verb).strip()


def plain_number(text):
    """Whether a number has at most 15 significant digits, so that it has no rounding artefacts."""
    digits = decimal.Decimal(text).normalize().as_tuple().digits
    if len(digits) > 15:
        wrong.append("the number %s has digits that mean nothing" % text)
    return float(text)


def safe_integer(text):
    if abs(int(text)) >= SAFE:
        wrong.append("the integer %s is above 2^53" % text)
    return int(text)


def values(text):
    """Return the values in an output, in which each line is one object."""
    found = [json.loads(t, parse_float=plain_number, parse_int=safe_integer) for t in text.splitlines()]
    wrong.extend("no object: %s" % str(v)[:200] for v in found if not isinstance(v, dict))
    return found


def verify(name, command, text, least=1):
    schema = json.loads((SCHEMAS / (name + ".json")).read_text(encoding="utf-8"))
    try:
        found = values(text)
    except json.JSONDecodeError as e:
        wrong.append("%s: %s: %s" % (command, e, text[:200]))
        return
    if len(found) < least or (len(found) > 1 and " a line" not in schema["$comment"]):
        wrong.append("%s: %d values" % (command, len(found)))
    for value in found:
        for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
            wrong.append("%s: %s: %s" % (command, error.json_path, error.message[:300]))


def described(schema, where):
    """Each value in a schema must have a description."""
    if isinstance(schema, dict):
        if "type" in schema and "description" not in schema and "properties" not in where[-1:] and where[-1:] != ["additionalProperties"]:
            wrong.append("%s: no description" % "/".join(where))
        for key, part in schema.items():
            described(part, where + [key])
    elif isinstance(schema, list):
        for part in schema:
            described(part, where)


def cases(folder):
    """Command lines; each is checked against the schema of its command."""
    new, other = os.path.join(folder, "new"), os.path.join(folder, "other")
    yield ["init", "--statedir", new]
    for verb in "show", "check":
        yield ["state", verb, new]
    yield ["state", "backup", new, other]
    yield ["keygen", os.path.join(folder, "key")]
    yield ["startctl", "status"]
    yield ["id", "new", "-n", "3", "-g"]
    yield ["id", "new", *[a for f in run("complete", "id", "new", "--format=").split() for a in [f]][:7]]
    yield ["id", "new", "-r", "2", "--trace"]
    for scheme in "flax", "sno", "uid":
        yield ["id", "new", "--scheme", scheme, "--to", "text", "--to", "hex"]
        yield ["id", "show", "--scheme", scheme, run("id", "new", "--scheme", scheme).strip()]
    fluid = run("id", "new").strip()
    yield ["id", "show", fluid]
    yield ["id", "show", "0000000000000001"]
    yield ["id", "convert", "--format", "words", fluid, fluid]
    yield ["id", "range", "--from", "2020-01-01T00:00:00Z", "--to", "2060-01-01T00:00:00Z"]
    for args in ["new", "plan"], ["open", "plan"], ["ids", "-n", "3", "plan"], ["ids", "-u", "plan"], ["list"], ["show", "plan"], ["export", "plan"]:
        yield ["doc", *args]
    yield ["id", "show", "plan:0"]
    stored = os.path.join(folder, "stored")
    pathlib.Path(stored).write_text(run("doc", "export", "plan"), encoding="utf-8")
    yield ["doc", "import", "copy", stored]
    yield ["doc", "show", "copy"]
    yield ["doc", "rename", "copy", "again"]
    yield ["doc", "delete", "again"]
    yield ["doc", "close", "--discard", "plan"]
    yield ["job", "submit", "--key", "k", "--", "true"]
    yield ["job", "submit", "--key", "k", "--", "true"]
    yield ["job", "list"]
    job = json.loads(run("job", "list", "--json").splitlines()[0])["id"]
    yield ["job", "show", job]
    yield ["job", "watch", "-n", "1"]
    yield ["job", "ack", job]
    yield ["job", "stats"]
    yield ["ping", "-c", "2", "-i", "0.01", "2"]
    yield ["getattr", "size"]
    yield ["setattr", "log-stderr-level", "3"]
    yield ["lsattr"]
    yield ["lsattr", "-v"]
    yield ["module", "list"]
    yield ["module", "remove", "-r", "2", "flake"]
    yield ["module", "load", "-r", "2", "flake"]
    for name in "fluid", "flake", "compressor", "job-ingest", "overlay", "event":
        yield ["module", "stats", name]
    yield ["module", "stats", "--rusage", "fluid"]
    yield ["module", "stats", "-r", "all", "fluid"]
    yield ["module", "stats", "--clear", "fluid"]
    yield ["overlay", "status"]
    yield ["overlay", "status", "--summary"]
    yield ["overlay", "status", "--fluid"]
    yield ["trace", "-n", "2", "--full"]
    yield ["top", "-n", "2", "-i", "0.05"]
    yield ["event", "pub", "a.b", '{"x":0.1}']
    yield ["logger", "a line"]
    yield ["dmesg"]
    yield ["dmesg", "-r", "all"]
    for rank in "0", "1":
        yield ["info", "-r", rank]
        yield ["health", "-r", rank]
        yield ["module", "stats", "-r", rank, "fluid"]
    yield ["metrics"]
    yield ["metrics", "--per-rank"]
    yield ["watermark"]
    yield ["version"]


def name_of(command, silent):
    return "done" if command in silent else command.replace(" ", "-")


def try_all(folder, every, silent):
    tried = set()
    for args in cases(folder):
        command = " ".join(args[:2]) if " ".join(args[:2]) in every else args[0]
        if command == "startctl":
            verify("startctl", "startctl cont", run("startctl", "cont", "1", "--json"))
        words = len(command.split())
        tried.add(command)
        verify(name_of(command, silent), " ".join(args), run(*args[:words], "--json", *args[words:]))
    sub = subprocess.Popen(["idtree", "event", "sub", "--json", "-c", "2", "s."], stdout=subprocess.PIPE, text=True)
    run("ping", "-c", "1", "0")
    while not sub.poll() and "\"subscribers\":1" not in run("module", "stats", "--json", "event"):
        pass
    run("event", "pub", "s.a", '{"x":0.30000000000000004,"y":[1,2.5,"z"]}')
    run("event", "pub", "s.b")
    verify("event-sub", "event sub", sub.communicate()[0], 2)
    tried.add("event sub")
    config = os.path.join(folder, "conf")
    pathlib.Path(config).write_text("log-level = 6\n", encoding="utf-8")
    verify("reload", "reload", run("broker", "-c", config, "-o", "rundir=" + os.path.join(folder, "run"), "idtree", "reload", "--json"))
    verify("done", "shutdown", run("shutdown", "--json"))
    verify("version", "version without a broker", run("version", "--json"))
    return tried | {"shutdown", "reload"}


def main():
    every = set(commands())
    helps = {c: run(*c.split(), "-h") for c in every}
    wrong.extend("%s has no --json" % c for c in every - WITHOUT if "--json" not in helps[c])
    wrong.extend("%s has --json now: try it here" % c for c in WITHOUT if "--json" in helps[c])
    silent = {c for c in every if SILENT in helps[c]}
    wrong.extend("%s: its help says of --json: %s" % (c, said) for c in every - WITHOUT - silent
                 for said in re.findall(r"--json +(.*)", helps[c]) if not re.search("one object( a line)?(,|:|$)", said))
    there = {p.stem for p in SCHEMAS.glob("*.json")}
    want = {name_of(c, silent) for c in every - WITHOUT}
    wrong.extend("etc/schema/%s.json: is missing, or of no command" % n for n in sorted(there ^ want))
    for path in SCHEMAS.glob("*.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        described(schema, [path.stem])
    with tempfile.TemporaryDirectory() as folder:
        tried = try_all(folder, every, silent)
    wrong.extend("%s is not tried" % c for c in sorted(every - WITHOUT - tried - {"state forget", "root status", "root release"}))
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


main()
