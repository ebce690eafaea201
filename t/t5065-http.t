#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5065-http.t - ids and figures over HTTP: authentication, responses and limits
test_description='idtree-http serves ids, health and figures within limits, and survives the loss of its broker'
. "$(dirname "$0")/idtree-sharness.sh"
http=$IDTREE_BUILDDIR/src/http/idtree-http
if ! test -x "$http" || ! command -v curl >/dev/null; then
    skip_all='idtree-http is not built, or curl is not installed'
    test_done
fi
test_under_idtree 3 --topology kary:2 -o log-stderr-level=2

. "$IDTREE_SRCDIR/t/http.sh"
get() { curl -s -m 60 -D head -o body -w "%{http_code}" "$@" >code; } # option..., URL
post() { get -X POST "$@"; }
is() { test "$(cat code)" = "$1" || { cat code head body; return 1; }; }
is_problem() { # status, what its detail says
    is "$1" && grep -i "^content-type: application/problem+json" head &&
        jq -e ".status == $1 and .type == \"about:blank\" and (.title | length > 3)" body && jq -r .detail body | grep -e "$2"
}

test_expect_success 'a request to idtree-http returns one id or up to 65536' '
    echo >newline && start_http -l 127.0.0.1:0 && post "$url/v1/ids" && is 200 && jq -e ".ids | length == 1" body && tail -c 1 body | cmp - newline &&
    post "$url/v1/ids?n=5&to=dec" && is 200 && jq -e "(.ids | map(tonumber) | sort) == (.ids | map(tonumber)) and (.ids | unique | length == 5)" body &&
    post -H "Accept: text/plain" "$url/v1/ids?n=65536&to=dothex" && is 200 && test "$(sort -u body | wc -l)" = 65536 && sort -c body
'
test_expect_success 'concurrent connections to idtree-http get no id twice' '
    for i in 1 2 3 4; do
        { seq 200 | sed "s|.*|url=\"$url/v1/ids?n=$i\&to=dec\"|" | curl -s -m 60 -X POST -H "Accept: text/plain" -K - >ids.$i & } || return 1
    done && have() { test "$(cat ids.? | wc -l)" = 2000; } && wait_until "all ids are there" have && test "$(sort -u ids.? | wc -l)" = 2000 &&
    for i in 1 2 3 4; do sort -c -n ids.$i || return 1; done
'
test_expect_success 'a client of idtree-http that waits for each response gets increasing ids, whatever the counts' '
    { for round in 1 2 3 4 5; do seq 40 | sed "s|.*|1|" && echo 300 && echo 1 && echo 256 && echo 257 && echo 2; done; } |
        sed "s|.*|url=\"$url/v1/ids?n=&\&to=dec\"|" | curl -s -m 60 -X POST -H "Accept: text/plain" -K - >ids &&
    test "$(wc -l <ids)" = 4280 && sort -c -n ids
'
test_expect_success 'GET /v1/ids/ID explains an id in any form' '
    id=$(idtree id new) && get "$url/v1/ids/$id" && is 200 && idtree id show --json "$id" >show &&
    for key in dec hex dothex f58 words emoji timestamp_ms generator sequence date; do
        test "$(jq -c .$key body)" = "$(jq -c .$key show)" || return 1
    done && jq -e ".timestamp_ms | type == \"string\"" body && tail -c 1 body | cmp - newline && get "$url/v1/ids/$(jq -r .words show)" && test "$(jq -r .f58 body)" = "$id" && get "$url/v1/ids/nonsense" && is_problem 400 "not an id" && get "$url/v1/ids/$id%00x" && is_problem 400 "not an id"
'
test_expect_success 'idtree-http serves health, readiness, metrics and the watermark' '
    get "$url/healthz" && is 200 && get "$url/readyz" && is 200 && get "$url/metrics" && is 200 &&
    grep "^idtree_ranks{status=\"full\"} 3$" body && ! grep "# EOF" body && get -H "Accept: application/openmetrics-text" "$url/metrics" &&
    is 200 && grep -i "^content-type: application/openmetrics-text" head && test "$(tail -n 1 body)" = "# EOF" &&
    get "$url/v1/watermark" && is 200 && jq -e "has(\"id\") and has(\"behind_ms\")" body
'
test_expect_success 'idtree-http sends the media type with the greatest weight in the Accept header, and chooses among equal weights' '
    accept() { # path, what is accepted, the type that comes
        get -X "${1%% *}" -H "Accept: $2" "$url${1#* }" && is 200 && grep -i "^content-type: $3" head || { echo "$@"; return 1; }
    } && accept "GET /metrics" "text/plain;q=0.6, application/openmetrics-text;q=0.5" text/plain && accept "GET /metrics" "application/openmetrics-text;q=0" text/plain &&
    accept "GET /metrics" "text/plain;q=0.5, application/openmetrics-text;version=1.0.0" application/openmetrics-text && tail -n 1 body | grep "^# EOF" && accept "GET /metrics" "application/openmetrics-text; version=0.0.1" text/plain &&
    accept "GET /metrics" "*/*" text/plain && accept "POST /v1/ids" "application/json;q=0.5, text/plain" text/plain && accept "POST /v1/ids" "text/plain;q=0.5, application/json" application/json &&
    accept "POST /v1/ids" "application/json, text/plain, */*" application/json && accept "POST /v1/ids" "text/plain;q=0" application/json && accept "POST /v1/ids" "text/plainer" application/json &&
    get -H "Accept: text/plain;q=0.1" -H "Accept: application/openmetrics-text" "$url/metrics" && grep -i "^content-type: application/openmetrics-text" head && get -H "If-None-Match: *" "$url/" && is 304
'
scrapes() { # how many, option...
    n=$1 && shift && seq "$n" | sed "s|.*|url=\"$url/metrics\"|" | curl -s -f -m 60 "$@" -K - >out
}
test_expect_success 'however many clients request metrics from idtree-http, it sends one request per second down the tree' '
    stop_http && start_http -l 127.0.0.1:0 && { idtree trace -r 0 -t request metrics.get >asked 2>&1 </dev/null & } && tracer=$! &&
    seen() { idtree metrics >out && test -s asked; } && wait_until "the trace shows" seen && before=$(grep -c "from client" asked) && since=$(wait_now) &&
    scrapes 40 -Z --parallel-max 40 && scrapes 200 && kill $tracer && { wait $tracer || :; } && n=$(($(grep -c "from client" asked) - before)) && echo $n && test $n -ge 1 && test $n -le $(($(wait_now) - since + 3))
'
test_expect_success 'an invalid request to idtree-http gets a problem that says what is valid' '
    get "$url/nowhere" && is_problem 404 "nothing at this path" && get "$url/v1/ids" && is_problem 405 POST && grep -i "^allow: POST" head &&
    post "$url/metrics" && is_problem 405 GET && grep -i "^allow: GET, HEAD" head && get --request-target http://localhost/healthz "$url/" && is 200 && get --request-target http://localhost "$url/" && is 200 && grep "<html" body && post "$url/v1/ids?n=0" && is_problem 400 "1 to 65536" && post "$url/v1/ids?n=1x" && is_problem 400 "1 to 65536" &&
    post "$url/v1/ids?n" && is_problem 400 "n=: a number from 1 to 65536" && post "$url/v1/ids?to" && is_problem 400 "to=: dec" && get "$url/v1/tree?rank" && is_problem 400 "rank=: a number" &&
    post "$url/v1/ids?to=%22%0a%ff" && is_problem 400 "dec, hex" && post "$url/v1/ids?to=dec%00" && is_problem 400 "dec, hex" && get "$url/healthz%00" && is 404 && post "$url/v1/ids?count=5" && is_problem 400 "count: this parameter is unknown" &&
    post "$url/v1/ids?n=1&to=dec&n=2" && is_problem 400 "n: .*repeated" && get "$url/v1/tree?ranks=1" && is_problem 400 "rank depth" && get "$url/healthz?probe=1" && is 200 && get -I "$url/healthz" && is 200 && get -I "$url/v1/ids" && is 405 &&
    for body in n=3 "{\"n\":3}"; do post --data "$body" "$url/v1/ids" && is_problem 400 "into the URL, as in" || return 1; done && tail -c 1 body | cmp - newline && head -c 100000 /dev/zero | post --data-binary @- "$url/v1/ids" && is_problem 413 "4096 bytes"
'
test_expect_success 'idtree-http refuses requests with a foreign Origin or a foreign Host' '
    post -H "Origin: http://evil.example" "$url/v1/ids" && is_problem 403 "pages of others" &&
    post -H "Host: evil.example" "$url/v1/ids" && is_problem 403 localhost && get -H "Host: localhost:1" "$url/readyz" && is 200
'
if command -v python3 >/dev/null; then
    test_set_prereq PYTHON
fi
test_expect_success PYTHON 'malformed requests, endless headers and clients that do not read do not affect other clients of idtree-http' '
    python3 "$IDTREE_SRCDIR/t/http_attack.py" "$url" && post "$url/v1/ids" && is 200 && kill -0 $http_pid
'
test_expect_success 'idtree-http reports the loss of its broker, and uses the next incarnation of that broker' '
    stop_http && start_http -l "unix:$PWD/sock" -u "${IDTREE_URI%0}2" && test "$url" = "unix:$PWD/sock" &&
    test "$(stat -c %a sock)" = 600 && post --unix-socket sock http://localhost/v1/ids && is 200 &&
    idtree startctl kill 2 && post --unix-socket sock http://localhost/v1/ids && is_problem 503 . && grep -i "^retry-after: 1" head &&
    get --unix-socket sock http://localhost/healthz && is 200 && idtree startctl run 2 &&
    comes() { post --unix-socket sock http://localhost/v1/ids && is 200; } && wait_until "ids come again" comes && stop_http
'
# A broker of its own, whose epoch it is given.
life() { # epoch
    rm -rf up stop run && mkfifo stop && { "$IDTREE_BUILDDIR/src/broker/idtree-broker" -o rundir="$PWD/run" -o fluid.epoch="$1" -o log-stderr-level=2 sh -c "echo >up; cat stop" >broker.out 2>&1 </dev/null & } &&
        broker_pid=$! && wait_until "it serves" test -s up
}
end_life() { echo >stop && wait "$broker_pid"; }
cleanup 'kill "$broker_pid" 2>/dev/null || :'
cat >behind.py <<'END'
import signal, socket, sys, os
place = sys.argv[1].rsplit("/", 1)[1].rsplit(":", 1)
connections = [socket.create_connection(place, 60) for _ in range(20)]
paths = "GET /v1/watermark", "POST /v1/ids", "GET /metrics", "GET /v1/tree", "GET /v1/events"
request = b"".join(f"{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths)
for s in connections:
    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + request * 20)
for s in connections:
    assert s.recv(15).startswith(b"HTTP/1.1 200")
os.kill(int(sys.argv[2]), signal.SIGTERM)
END
test_expect_success PYTHON 'idtree-http ends cleanly while requests wait and others are queued behind them' '
    life 2026-01-01T00:00:00Z && start_http -l 127.0.0.1:0 -u "local://$PWD/run/local-0" && get "$url/readyz" && is 200 && kill -STOP $broker_pid &&
    python3 behind.py "$url" $http_pid && { wait $http_pid; code=$?; kill -CONT $broker_pid; } && test $code = 0 && end_life
'
test_expect_success 'idtree-http ends if another instance takes the place of its own, and serves the new instance after a restart' '
    life 2026-01-01T00:00:00Z && start_http -l 127.0.0.1:0 -u "local://$PWD/run/local-0" && get "$url/readyz" && is 200 && end_life && life 2025-01-01T00:00:00Z &&
    asked() { get "$url/readyz"; grep "the brokers now belong to another instance" http.err; } && wait_until "it says so" asked && { wait $http_pid; test $? = 1; } &&
    start_http -l 127.0.0.1:0 -u "local://$PWD/run/local-0" && get "$url/v1/ids/f2" && jq -e ".date | startswith (\"2025-01-01\")" body && stop_http && end_life
'
test_expect_success 'with a token file idtree-http serves only clients with the token, and probes' '
    echo 0123456789abcdef >token && test_expect_code 2 "$http" --token-file token 2>err && grep "chmod 600" err &&
    chmod 600 token && start_http -l 0.0.0.0:0 --token-file token && grep "token is sent unencrypted: use --tls-cert" http.err && stop_http &&
    start_http -l 127.0.0.1:0 --token-file token && test ! -s http.err && post "$url/v1/ids" && is_problem 401 Bearer &&
    grep -i "^www-authenticate: Bearer" head && for wrong in 0123456789abcde 0123456789abcdeg 0123456789abcdef0 0123456789abcdef0123456789abcdef ""; do
        post -H "Authorization: Bearer $wrong" "$url/v1/ids" && is 401 || return 1
    done && for path in /v1/ids/f2 /v1/watermark /v1/tree /v1/events /metrics; do get "$url$path" && is_problem 401 Bearer || return 1; done &&
    get "$url/" && is 200 && grep -i "^content-security-policy: default-src .self.;" head && post -H "Authorization: Bearer 0123456789abcdef" "$url/v1/ids" && is 200 &&
    get "$url/readyz" && is 200 && stop_http
'
test_expect_success 'a folder that is given to idtree-http instead of a file is reported as a folder' '
    mkdir -m 700 -p folder && for o in "--token-file folder" "--tls-cert folder --tls-key folder"; do
        test_expect_code 2 "$http" -l 127.0.0.1:0 $o 2>err && cat err && grep "folder: Is a directory" err || return 1
    done
'
test_expect_success 'requests above the rate get status 429; a token of wrong length, a public address without a token, and invalid options are refused' '
    start_http -l "[::1]:0" --rate 100 && post "$url/v1/ids?n=101" && is_problem 429 "100 ids a second" && grep -i "^retry-after: 1" head &&
    post "$url/v1/ids?n=100" && is 200 && stop_http &&
    echo short >token && test_expect_code 2 "$http" --token-file token 2>err && grep "of 16 to 1022 printable characters" err &&
    printf "%01023d" 0 >token && test_expect_code 2 "$http" --token-file token 2>err && grep "to 1022 printable" err &&
    test_expect_code 2 "$http" -l 0.0.0.0:0 2>err && grep "token-file or --tls-client-ca is needed" err &&
    test_expect_code 2 "$http" -l localhost 2>err && grep "ADDRESS:PORT" err && test_expect_code 2 "$http" -l 127.0.0.1:99999 2>err && grep "at most 65535" err && test_expect_code 2 "$http" --rate x 2>err &&
    test_expect_code 2 "$http" extra 2>err && grep "extra. is one argument too many" err && test_expect_code 1 "$http" -l 127.0.0.1:0 -u local:///nowhere 2>err && cat err
'
cat >third.py <<'END'
import select, socket, sys
place = sys.argv[1].rsplit("/", 1)[1].rsplit(":", 1)
def connect(): return socket.create_connection(place, 60)
def say(s): s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
def hear(s): assert s.recv(4096).startswith(b"HTTP/1.1 200")
def ask(s): say(s), hear(s)
first, second = connect(), connect()
ask(first), ask(second)
third = connect()
say(third)
for _ in range(20):
    ask(first)
assert not select.select([third], [], [], 0)[0], "the third of two is answered"
second.close()
hear(third)
END
test_expect_success 'connections above the limit of idtree-http wait, and are served when others end' '
    start_http -l 127.0.0.1:0 --max-connections 2 && python3 third.py "$url" && seq 20 | sed "s|.*|url=\"$url/healthz\"|" >config &&
    curl -s -m 60 -H "Connection: close" -Z --parallel-max 10 -K config >out && test "$(grep -c ok out)" = 20 && stop_http
'
if command -v openssl >/dev/null; then
    test_set_prereq OPENSSL
fi
# A key and a certificate of that name, signed by another one.
certify() { # name, authority, its purpose
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.req" -subj "/CN=$1" 2>err &&
        printf "extendedKeyUsage=%s\nsubjectAltName=IP:127.0.0.1\n" "$3" >"$1.ext" &&
        openssl x509 -req -in "$1.req" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.pem" 2>err
}
authority() { # name
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.pem" -subj "/CN=$1" -days 30 2>err
}
test_expect_success OPENSSL 'over TLS idtree-http serves only clients with a certificate or a token, and refuses a foreign page in a browser with the certificate' '
    authority ca && authority other && certify server ca serverAuth && certify client ca clientAuth && certify stranger other clientAuth &&
    start_http -l 127.0.0.1:0 --tls-cert server.pem --tls-key server.key --tls-client-ca ca.pem && echo "$url" | grep "^https://127" &&
    post --cacert ca.pem --cert client.pem --key client.key "$url/v1/ids" && is 200 && post --cacert ca.pem "$url/v1/ids" && is_problem 401 "certificate is needed" &&
    for who in stranger server; do post --cacert ca.pem --cert $who.pem --key $who.key "$url/v1/ids" && is_problem 401 "certificate is needed" || return 1; done &&
    post --cacert ca.pem --cert client.pem --key client.key -H "Origin: https://evil.example" "$url/v1/ids" && is_problem 403 "pages of others" &&
    post --cacert ca.pem --cert client.pem --key client.key -H "Origin: $url" "$url/v1/ids" && is 200 && get --cacert ca.pem "$url/readyz" && is 200 &&
    test_must_fail curl -s --cacert ca.pem --tls-max 1.1 "$url/healthz" && curl -s -m 60 "http${url#https}/healthz" >body; ! grep ok body && stop_http &&
    echo 0123456789abcdef >token && chmod 600 token && start_http -l 127.0.0.1:0 --tls-cert server.pem --tls-key server.key --tls-client-ca ca.pem --token-file token &&
    post --cacert ca.pem -H "Authorization: Bearer 0123456789abcdef" "$url/v1/ids" && is 200 && post --cacert ca.pem --cert client.pem --key client.key "$url/v1/ids" && is 200 &&
    post --cacert ca.pem --cert client.pem --key client.key -H "Origin: https://evil.example" "$url/v1/ids" && is_problem 403 "pages of others" &&
    post --cacert ca.pem "$url/v1/ids" && is_problem 401 "token or a client" && stop_http &&
    test_expect_code 2 "$http" --tls-cert server.pem 2>err && grep "belong together" err && test_expect_code 2 "$http" --tls-cert server.pem --tls-key client.key 2>err &&
    grep "tls-key" err && test_expect_code 2 "$http" --tls-cert server.pem --tls-key server.key --tls-client-ca token 2>err && grep "tls-client-ca token" err &&
    chmod 644 server.key && test_expect_code 2 "$http" --tls-cert server.pem --tls-key server.key 2>err && grep "chmod 600" err
'
cat >inherit.py <<'END'
import os, socket, sys
stream, (end, _) = socket.socket(), socket.socketpair()
stream.bind(("127.0.0.1", 0))
packets = socket.socket(type=socket.SOCK_DGRAM)
packets.bind(("127.0.0.1", 0))
fd = {"file": 0, "bound": stream.fileno(), "connected": end.fileno(), "packets": packets.fileno()}[sys.argv[1]]
os.dup2(fd, 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], [sys.argv[2]])
END
inherits() { # what; where systemd is not there none is looked for
    test_expect_code 2 timeout 60 python3 inherit.py "$1" "$http" 2>err </dev/null && grep "ListenStream" err
}
if grep "define HAVE_LIBSYSTEMD 1" "$IDTREE_BUILDDIR/config.h" >/dev/null; then
    test_set_prereq SYSTEMD
fi
test_expect_success PYTHON,SYSTEMD 'idtree-http refuses an inherited descriptor that is not a listening stream socket' '
    for what in file bound connected packets; do inherits $what || return 1; done
'
cat >busy.py <<'END'
import os, socket, subprocess, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("busy")
listener.listen(0)
waiting = []
while True:
    waiting.append(socket.socket(socket.AF_UNIX))
    waiting[-1].setblocking(False)
    try:
        waiting[-1].connect("busy")
    except BlockingIOError:
        break
had = os.stat("busy").st_ino
ended = subprocess.run([sys.argv[1], "-l", "unix:" + os.path.abspath("busy")], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
assert ended.returncode == 1 and b"another process serves this socket, or is stopped: choose another path" in ended.stderr, ended
assert os.stat("busy").st_ino == had
END
test_expect_success PYTHON 'idtree-http does not replace the socket of a process that is too busy to accept a connection' '
    python3 busy.py "$http"
'
refused() { test "$(cat err.* | grep -c "cannot listen at unix:$PWD/many: another process serves this socket")" = 11; }
test_expect_success 'of twelve idtree-http processes that start together on a stale socket one serves, and the others say why they do not' '
    start_http -l "unix:$PWD/many" && kill -9 $http_pid && { wait $http_pid; test -S many; } &&
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do { "$http" -l "unix:$PWD/many" >many.$i 2>err.$i </dev/null & } && echo $! >pid.$i; done &&
    wait_until "all but one are refused" refused && post --unix-socket many http://localhost/v1/ids && is 200 &&
    test "$(cat many.*)" = "unix:$PWD/many" && for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        if test -s many.$i; then http_pid=$(cat pid.$i); else { wait "$(cat pid.$i)"; test $? = 1; } || return 1; fi; done && stop_http && test ! -e many.lock
'
if command -v systemd-socket-activate >/dev/null; then
    test_set_prereq ACTIVATE
fi
test_expect_success ACTIVATE 'idtree-http serves a socket that it inherits from systemd' '
    { systemd-socket-activate -l "$PWD/activated" -E IDTREE_URI="$IDTREE_URI" "$http" >activated.out 2>&1 </dev/null & } && http_pid=$! &&
    wait_until "it is there" test -S activated && post --unix-socket activated http://localhost/v1/ids && is 200 && stop_http
'
test_done
