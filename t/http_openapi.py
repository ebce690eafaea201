#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""http_openapi.py URL SITE.C: the server behaves as etc/openapi.json describes

Requests each path such that each status that can be provoked occurs, and checks the answer against its schema. Also
checks that site.c serves exactly the paths in the file.
"""
import http.client
import json
import re
import sys

import jsonschema

URL, SOURCE = sys.argv[1], sys.argv[2]
HOST, PORT = URL.rsplit("/", 1)[1].rsplit(":", 1)
PATIENCE = 60


def ask(method, path, headers=(), body=None, lines=0):
    c = http.client.HTTPConnection(HOST, int(PORT), timeout=PATIENCE)
    c.request(method, path, body=body, headers={"Host": "localhost", **dict(headers)})
    r = c.getresponse()
    data = b"".join(r.readline() for _ in range(lines)) if lines else r.read()
    c.close()
    return r.status, r.headers, data


DOC = json.loads(ask("GET", "/v1/openapi.json")[2])
SCHEMAS = DOC["components"]["schemas"]


def check(schema, value, where):
    """Check a value against a schema, where a key that the schema does not describe is an error."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": DOC["components"], **schema}
    jsonschema.Draft202012Validator.check_schema(whole)
    errors = [e.message for e in jsonschema.Draft202012Validator(whole).iter_errors(value)]
    assert not errors, (where, errors, value)


def compare(method, path, url, want, **kw):
    """Send a request, and compare its status with the expected one and its answer with the file."""
    status, headers, data = ask(method, url, **kw)
    where = "%s %s: %d" % (method, url, status)
    assert status == want, (where, want, data)
    assert not headers["Content-Type"].endswith("json") or not data or data.endswith(b"\n"), (where, data[-20:])
    operation = DOC["paths"][path][method.lower()]
    said = operation["responses"].get(str(status))
    assert said, where + " is not in the file"
    if "content" not in said:
        return
    kind = headers["Content-Type"].split(";")[0]
    assert kind in said["content"], (where, kind)
    if kind.endswith("json"):
        check(said["content"][kind]["schema"], json.loads(data), where)
    print("ok", where)


def compare_events():
    status, headers, data = ask("GET", "/v1/events", lines=5)
    assert status == 200 and headers["Content-Type"] == "text/event-stream", headers
    names = {"hello": "EventHello", "rates": "EventRates", "change": "EventChange", "log": "EventLog", "lost": "EventLost"}
    for name, text in re.findall(r"event: (\w+)\ndata: (.*)\n", data.decode()):
        check({"$ref": "#/components/schemas/" + names[name]}, json.loads(text), name)
        print("ok event", name)


def compare_routes():
    with open(SOURCE, encoding="utf-8") as f:
        routes = set(re.findall(r'\{ "([A-Z]+)", "(/[^"]*)"', f.read()))
    said = {(m.upper(), path) for path, item in DOC["paths"].items() for m in item}
    assert routes | {("GET", "/v1/openapi.json")} == said, (routes, said)


def main():
    compare_routes()
    ids = "/v1/ids"
    compare("POST", ids, ids, 200)
    compare("POST", ids, ids + "?n=5&to=words", 200)
    compare("POST", ids, ids + "?n=3", 200, headers={"Accept": "text/plain"})
    compare("POST", ids, ids + "?n=0", 400)
    compare("POST", ids, ids, 403, headers={"Origin": "http://evil.example"})
    compare("POST", ids, ids, 413, body=b"x" * 5000)
    compare("POST", ids, ids + "?n=60000", 429)
    compare("GET", ids + "/{id}", ids + "/" + json.loads(ask("POST", ids)[2])["ids"][0], 200)
    compare("GET", ids + "/{id}", ids + "/nonsense", 400)
    compare("GET", "/v1/watermark", "/v1/watermark", 200)
    compare("GET", "/v1/tree", "/v1/tree", 200)
    compare("GET", "/v1/tree", "/v1/tree?depth=0", 200)
    compare("GET", "/v1/tree", "/v1/tree?rank=77", 404)
    compare("GET", "/v1/tree", "/v1/tree?depth=x", 400)
    compare("GET", "/v1/openapi.json", "/v1/openapi.json", 200)
    compare("GET", "/v1/openapi.json", "/v1/openapi.json", 304,
            headers={"If-None-Match": ask("GET", "/v1/openapi.json")[1]["ETag"]})
    compare("GET", "/metrics", "/metrics", 200)
    compare("GET", "/metrics", "/metrics", 200, headers={"Accept": "application/openmetrics-text"})
    compare("GET", "/healthz", "/healthz", 200)
    compare("GET", "/readyz", "/readyz", 200)
    for path, item in DOC["paths"].items():
        for method in item:
            compare(method.upper(), path, path, 400, body=b"n=3")
    compare_events()


main()
