#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""http_rfc9112.py URL: checks, row by row, what RFC 9112 requires on the end of a request: this server and a proxy
must see the same requests

Each request is followed by another one on the same connection. KEPT: both are answered. LAST: the first is answered,
and the connection ends. REFUSED: the first gets one response head with an error, and the connection ends. Bytes after
a request whose end is ambiguous are never answered.
"""
import re
import socket
import sys

PLACE = sys.argv[1].rsplit("/", 1)[1].rsplit(":", 1)
PATIENCE = 60
BEHIND = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
KEPT, LAST, REFUSED = "kept", "last", "refused"
SILENCE = 0  # libmicrohttpd ends the connection without an answer
GET, POST, HOST = b"GET /healthz HTTP/1.1\r\n", b"POST /v1/ids HTTP/1.1\r\n", b"Host: localhost\r\n"
END = b"\r\n"


def get(lines):
    return GET + HOST + lines + END


def post(lines, body=b""):
    return POST + HOST + lines + END + body


CHUNKED = b"Transfer-Encoding: chunked\r\n"
ROWS = [  # section of the RFC, its subject, the request, the expected result, the allowed status codes
    ("2.1", "a request", get(b""), KEPT, [200]),
    ("2.1", "a request that makes something", post(b""), KEPT, [200]),
    ("2.2", "an empty line before the request", END + get(b""), KEPT, [200]),
    ("2.2", "a lone LF ends the request line", b"GET /healthz HTTP/1.1\n" + HOST + END, REFUSED, [400]),
    ("2.2", "a lone LF ends a field line", get(b"X: a\n"), REFUSED, [400]),
    ("2.2", "a lone LF ends the last field line", get(b"X: a\n")[:-2] + b"\r\n", REFUSED, [400]),
    ("2.2", "a lone LF ends the header", GET + HOST + b"\n", REFUSED, [400]),
    ("2.2", "lone LFs everywhere", get(b"").replace(b"\r", b""), REFUSED, [400]),
    ("2.2", "a bare CR in a value", get(b"X: a\rb\r\n"), REFUSED, [400]),
    ("2.2", "a bare CR that could be the end of a line", get(b"X: a\rContent-Length: 70\r\n"), REFUSED, [400]),
    ("2.2", "bare CRs that could be the end of the header", get(b"X: a\r\rGET /v1/watermark HTTP/1.1\r\n"), REFUSED, [400]),
    ("2.2", "a CR before the CRLF", get(b"X: a\r\r\n"), REFUSED, [400]),
    ("2.2", "a bare CR in a name", get(b"X\r: a\r\n"), REFUSED, [400]),
    ("2.2", "a bare CR in the target", b"GET /healthz\r HTTP/1.1\r\n" + HOST + END, REFUSED, [400]),
    ("2.2", "a bare CR after the version", b"GET /healthz HTTP/1.1\r\r\n" + HOST + END, REFUSED, [400]),
    ("2.2", "a blank before the first field line", GET + b" X: a\r\n" + HOST + END, REFUSED, [400]),
    ("2.2", "a tab before the first field line", GET + b"\tX: a\r\n" + HOST + END, REFUSED, [400]),
    ("2.3", "a version to come", b"GET /healthz HTTP/2.0\r\n" + HOST + END, REFUSED, [400, 505]),
    ("2.3", "a version in lower case", b"GET /healthz http/1.1\r\n" + HOST + END, REFUSED, [400, 505]),
    ("2.3", "a version of two digits", b"GET /healthz HTTP/1.10\r\n" + HOST + END, REFUSED, [400, 505]),
    ("2.3", "no version", b"GET /healthz\r\n", REFUSED, [400, 505]),
    ("3", "two blanks before the target", b"GET  /healthz HTTP/1.1\r\n" + HOST + END, REFUSED, [400]),
    ("3", "two blanks before the version", b"GET /healthz  HTTP/1.1\r\n" + HOST + END, REFUSED, [400]),
    ("3", "a blank after the version", b"GET /healthz HTTP/1.1 \r\n" + HOST + END, REFUSED, [400, 505]),
    ("3", "a tab before the target", b"GET\t/healthz HTTP/1.1\r\n" + HOST + END, REFUSED, [400, SILENCE]),
    ("3", "a blank before the method", b" GET /healthz HTTP/1.1\r\n" + HOST + END, REFUSED, [400, SILENCE]),
    ("3.1", "a method that is no token", b"G(T /healthz HTTP/1.1\r\n" + HOST + END, REFUSED, [400]),
    ("3.1", "a NUL in the method", b"GET\0X /healthz HTTP/1.1\r\n" + HOST + END, REFUSED, [400, SILENCE]),
    ("3.1", "a method that is not known", b"BREW /healthz HTTP/1.1\r\n" + HOST + END, KEPT, [405, 501]),
    ("3.1", "a method in lower case", b"get /healthz HTTP/1.1\r\n" + HOST + END, KEPT, [405, 501]),
    ("3.2", "a blank in the target", b"GET /healthz x HTTP/1.1\r\n" + HOST + END, REFUSED, [400]),
    ("3.2", "a request in the target", b"GET /healthz HTTP/1.1 HTTP/1.1\r\n" + HOST + END, REFUSED, [400]),
    ("3.2", "a tab in the target", b"GET /healthz\tx HTTP/1.1\r\n" + HOST + END, REFUSED, [400]),
    ("3.2", "a NUL in the target", b"GET /healthz\0x HTTP/1.1\r\n" + HOST + END, REFUSED, [400, SILENCE]),
    ("3.2", "a control character in the target", b"GET /healthz?\x01 HTTP/1.1\r\n" + HOST + END, REFUSED, [400]),
    ("3.2", "no Host", GET + END, REFUSED, [400]),
    ("3.2", "no Host in HTTP/1.0", b"GET /healthz HTTP/1.0\r\n" + END, LAST, [200]),
    ("3.2", "two Hosts", get(b"Host: localhost\r\n"), REFUSED, [400]),
    ("3.2", "two Hosts in one", GET + b"Host: localhost, localhost\r\n" + END, REFUSED, [400]),
    ("3.2", "a Host with a path", GET + b"Host: localhost/x\r\n" + END, REFUSED, [400]),
    ("3.2", "a Host with a user", GET + b"Host: me@localhost\r\n" + END, REFUSED, [400]),
    ("3.2", "a Host with a blank", GET + b"Host: localhost x\r\n" + END, REFUSED, [400]),
    ("3.2", "a blank before the colon of Host", GET + b"Host : localhost\r\n" + END, REFUSED, [400]),
    ("3.2.2", "the whole address", b"POST http://localhost/v1/ids HTTP/1.1\r\n" + HOST + END, KEPT, [200]),
    ("3.2.2", "the whole address is of another host than Host says",
     b"POST http://evil.example/v1/ids HTTP/1.1\r\n" + HOST + END, KEPT, [400, 403]),
    ("3.2.3", "the target of CONNECT", b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST + END, KEPT, [400, 404, 405]),
    ("3.2.4", "the target of OPTIONS", b"OPTIONS * HTTP/1.1\r\n" + HOST + END, KEPT, [400, 404, 405]),
    ("5", "a line without a colon", get(b"nothing\r\n"), REFUSED, [400]),
    ("5", "a line that begins with a colon", get(b": a\r\n"), REFUSED, [400]),
    ("5.1", "a blank before the colon", get(b"X : a\r\n"), REFUSED, [400]),
    ("5.1", "a tab before the colon", get(b"X\t: a\r\n"), REFUSED, [400]),
    ("5.1", "a blank before the colon of Content-Length", post(b"Content-Length : 70\r\n"), REFUSED, [400]),
    ("5.1", "a tab before the colon of Content-Length", post(b"Content-Length\t: 70\r\n"), REFUSED, [400]),
    ("5.1", "a blank before the colon of Transfer-Encoding", post(b"Transfer-Encoding : chunked\r\n"), REFUSED, [400]),
    ("5.1", "a blank in a name", get(b"Content Length: 70\r\n"), REFUSED, [400]),
    ("5.1", "a control character in a name", get(b"Content-Length\x0b: 70\r\n"), REFUSED, [400]),
    ("5.1", "a letter of no token in a name", get(b"Content-Length\xa0: 70\r\n"), REFUSED, [400]),
    ("5.1", "a value without a blank before it", get(b"X:a\r\n"), KEPT, [200]),
    ("5.1", "a value with blanks and tabs around it", get(b"X: \t a\r\n"), KEPT, [200]),
    ("5.1", "an empty value", get(b"X:\r\nY: \r\n"), KEPT, [200]),
    ("5.1", "a value of other letters than ASCII", get(b"X: \xc3\xa4\xff\r\n"), KEPT, [200]),
    ("5.2", "a folded line", get(b"X: a\r\n b\r\n"), REFUSED, [400]),
    ("5.2", "a line folded by a tab", get(b"X: a\r\n\tb\r\n"), REFUSED, [400]),
    ("5.2", "a folded last line", get(b"X: a\r\n \r\n"), REFUSED, [400]),
    ("5.2", "a folded Content-Length", post(b"Content-Length:\r\n 70\r\n"), REFUSED, [400]),
    ("5.2", "a folded Transfer-Encoding", post(b"Transfer-Encoding:\r\n chunked\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("9110, 5.3", "two Origins", get(b"Origin: http://localhost\r\nOrigin: http://evil.example\r\n"), REFUSED, [400]),
    ("9110, 5.3", "two Authorizations", get(b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"), REFUSED, [400]),
    ("9110, 5.3", "two fields that are no such", get(b"X: a\r\nX: b\r\n"), KEPT, [200]),
    ("5.5", "a NUL in a value", get(b"X: a\0b\r\n"), REFUSED, [400]),
    ("5.5", "a NUL at the end of a value", get(b"X: a\0\r\n"), REFUSED, [400]),
    ("5.5", "a NUL in the last value", GET + b"Host: localhost\0.evil.example\r\n" + END, REFUSED, [400]),
    ("5.5", "a NUL in Content-Length", post(b"Content-Length: 0\x0070\r\n"), REFUSED, [400]),
    ("5.5", "a NUL in Transfer-Encoding", post(b"Transfer-Encoding: \0chunked\r\n"), REFUSED, [400, 501]),
    ("5.5", "a NUL in a name", get(b"X\0Y: a\r\n"), REFUSED, [400]),
    ("5.5", "a line that begins with a NUL", get(b"\0X: a\r\n"), REFUSED, [400]),
    ("5.5", "a line that is a NUL", get(b"\0\r\n"), REFUSED, [400]),
    ("5.5", "a control character in a value", get(b"X: a\x01b\r\n"), REFUSED, [400]),
    ("5.5", "a DEL in a value", get(b"X: a\x7fb\r\n"), REFUSED, [400]),
    ("6.1", "chunks, none of them", post(CHUNKED, b"0\r\n\r\n"), LAST, [200]),
    ("6.1", "chunks, in other letters", post(b"transfer-encoding: Chunked\r\n", b"0\r\n\r\n"), LAST, [200]),
    ("6.1", "a coding that is not known", post(b"Transfer-Encoding: gzip\r\n"), REFUSED, [400, 501]),
    ("6.1", "a coding that is nearly known", post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "identity, which is no coding any more", post(b"Transfer-Encoding: identity\r\n"), REFUSED, [400, 501]),
    ("6.1", "chunked is not the last coding", post(b"Transfer-Encoding: chunked, gzip\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "chunked twice", post(b"Transfer-Encoding: chunked, chunked\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "chunked in two lines", post(CHUNKED + CHUNKED, b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "chunked in quotes", post(b"Transfer-Encoding: \"chunked\"\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "chunked with a parameter", post(b"Transfer-Encoding: chunked;q=1\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "chunked behind a comma", post(b"Transfer-Encoding: , chunked\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "chunked behind a control character", post(b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "no coding at all", post(b"Transfer-Encoding:\r\n", b"0\r\n\r\n"), REFUSED, [400, 501]),
    ("6.1", "chunks of HTTP/1.0", b"POST /v1/ids HTTP/1.0\r\n" + HOST + CHUNKED + END + b"0\r\n\r\n", REFUSED, [400]),
    ("6.1", "chunks and a Content-Length", post(CHUNKED + b"Content-Length: 5\r\n", b"0\r\n\r\n"), REFUSED, [400]),
    ("6.1", "a Content-Length and chunks", post(b"Content-Length: 5\r\n" + CHUNKED, b"0\r\n\r\n"), REFUSED, [400]),
    ("6.1", "a Content-Length of 0 and chunks", post(b"Content-Length: 0\r\n" + CHUNKED, b"0\r\n\r\n"), REFUSED, [400]),
    ("6.2", "a Content-Length of 0", post(b"Content-Length: 0\r\n"), KEPT, [200]),
    ("6.2", "a body", post(b"Content-Length: 3\r\n", b"n=3"), REFUSED, [400]),
    ("6.2", "a body of GET", get(b"Content-Length: 3\r\n") + b"n=3", REFUSED, [400]),
    ("6.2", "a body of HEAD", b"HEAD" + get(b"Content-Length: 3\r\n")[3:] + b"n=3", REFUSED, [400]),
    ("6.2", "a body that is too long", post(b"Content-Length: 5000\r\n"), REFUSED, [413]),
    ("6.3", "Content-Lengths that differ", post(b"Content-Length: 0\r\nContent-Length: 70\r\n"), REFUSED, [400]),
    ("6.3", "Content-Lengths that are the same", post(b"Content-Length: 0\r\nContent-Length: 0\r\n"), REFUSED, [400]),
    ("6.3", "a list of Content-Lengths", post(b"Content-Length: 0, 0\r\n"), REFUSED, [400]),
    ("6.3", "a list of Content-Lengths that differ", post(b"Content-Length: 0, 70\r\n"), REFUSED, [400]),
    ("6.3", "a signed Content-Length", post(b"Content-Length: +0\r\n"), REFUSED, [400]),
    ("6.3", "a negative Content-Length", post(b"Content-Length: -1\r\n"), REFUSED, [400]),
    ("6.3", "a Content-Length in hexadecimal", post(b"Content-Length: 0x0\r\n"), REFUSED, [400]),
    ("6.3", "a Content-Length with a fraction", post(b"Content-Length: 0.0\r\n"), REFUSED, [400]),
    ("6.3", "a Content-Length with a blank in it", post(b"Content-Length: 0 0\r\n"), REFUSED, [400]),
    ("6.3", "a Content-Length behind a control character", post(b"Content-Length: \x0b0\r\n"), REFUSED, [400]),
    ("6.3", "a Content-Length of other digits", post("Content-Length: \u0660\r\n".encode()), REFUSED, [400]),
    ("6.3", "a Content-Length that is no number", post(b"Content-Length: x\r\n"), REFUSED, [400]),
    ("6.3", "an empty Content-Length", post(b"Content-Length:\r\n"), REFUSED, [400]),
    ("6.3", "a Content-Length beyond 64 bits", post(b"Content-Length: 18446744073709551616\r\n"), REFUSED, [400, 413]),
    ("6.3", "a Content-Length that wraps to 0 of 32 bits", post(b"Content-Length: 4294967296\r\n"), REFUSED, [400, 413]),
    ("7.1", "a chunk", post(CHUNKED, b"3\r\nn=3\r\n0\r\n\r\n"), REFUSED, [400]),
    ("7.1", "a chunk's size with 0x", post(CHUNKED, b"0x0\r\n\r\n"), REFUSED, [400]),
    ("7.1", "a chunk's size with a sign", post(CHUNKED, b"+0\r\n\r\n"), REFUSED, [400]),
    ("7.1", "a chunk's size with a blank before it", post(CHUNKED, b" 0\r\n\r\n"), REFUSED, [400]),
    ("7.1", "a chunk's size that is empty", post(CHUNKED, b"\r\n\r\n"), REFUSED, [400]),
    ("7.1", "a chunk's size beyond 64 bits", post(CHUNKED, b"10000000000000000\r\n\r\n"), REFUSED, [400, 413]),
    ("7.1", "a chunk's size that a lone LF ends", post(CHUNKED, b"0\n\r\n"), LAST, [200, 400]),
    ("7.1", "a chunk that is longer than it says", post(CHUNKED, b"1\r\nxx\r\n0\r\n\r\n"), REFUSED, [400]),
    ("7.1.1", "an extension of a chunk", post(CHUNKED, b"0;a=b\r\n\r\n"), LAST, [200, 400]),
    ("7.1.2", "a trailer", post(CHUNKED, b"0\r\nX: a\r\n\r\n"), LAST, [200]),
    ("7.1.2", "a trailer that says another length", post(CHUNKED, b"0\r\nContent-Length: 70\r\n\r\n"), LAST, [200, 400]),
    ("9.3", "HTTP/1.0", b"GET /healthz HTTP/1.0\r\n" + HOST + END, LAST, [200]),
    ("9.6", "a connection that is to end", get(b"Connection: close\r\n"), LAST, [200]),
]


def exchange(pieces):
    """Send pieces, and read until the connection ends."""
    s = socket.create_connection(PLACE, PATIENCE)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answer = b""
    try:
        for piece in pieces:
            s.sendall(piece)
    except OSError:
        pass
    try:
        while part := s.recv(65536):
            answer += part
    except OSError:
        pass
    s.close()
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})[^\r\n]*\r\n", answer)]


def is_right(heads, becomes, codes):
    if not heads:
        return becomes == REFUSED and SILENCE in codes
    return len(heads) == (2 if becomes == KEPT else 1) and heads[0] in codes and heads[1:] in ([], [200])


def long_header():
    """If a header arrives in pieces and fills a connection's memory, it is parsed in place, like a short header."""
    sent = get(b"".join(b"X-%d: %s\r\n" % (i, b"x" * 500) for i in range(16))) + BEHIND
    for size in (1, 7, 700, len(sent)):
        heads = exchange([sent[i:i + size] for i in range(0, len(sent), size)])
        assert heads == [200, 200], (size, heads)


def main():
    wrong = 0
    long_header()
    for section, what, request, becomes, codes in ROWS:
        sent = request + BEHIND
        for how, pieces in (("at once", [sent]), ("byte by byte", [sent[i:i + 1] for i in range(len(sent))])):
            heads = exchange(pieces)
            if not is_right(heads, becomes, codes):
                wrong += 1
                print(f"RFC 9112, {section}: {what}, {how}: is to be {becomes} with {codes}, got {heads}", flush=True)
    print(f"{2 * len(ROWS)} requests, {wrong} seen otherwise")
    return wrong > 0


sys.exit(main())
