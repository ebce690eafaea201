#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5069-http-crowd.t - the memory of idtree-http is bounded with ten thousand connections and with responses that
# clients do not read
test_description='idtree-http serves clients beside many idle connections, within its limits'
. "$(dirname "$0")/idtree-sharness.sh"
http=$IDTREE_BUILDDIR/src/http/idtree-http
if ! test -x "$http" || ! command -v curl >/dev/null || ! command -v python3 >/dev/null; then
    skip_all='idtree-http is not built, or curl or python3 is not installed'
    test_done
fi
test_under_idtree 1 -o log-stderr-level=2
. "$IDTREE_SRCDIR/t/http.sh"
if nm "$IDTREE_BUILDDIR/src/http/.libs/idtree-http" "$http" 2>/dev/null | grep -q "__[at]san_init"; then
    memory=100000 # a sanitizer's is its own
else
    memory=400
fi

test_expect_success 'idtree-http serves other clients beside ten thousand connections that send nothing, send half a request or do not read' '
    start_http -l 127.0.0.1:0 && python3 "$IDTREE_SRCDIR/t/http_crowd.py" "$url" $http_pid 10000 $memory && stop_http
'
test_expect_success 'a response of idtree-http above --max-answers gets status 503, and smaller ones are sent' '
    start_http -l 127.0.0.1:0 --max-answers 1 && test "$(curl -s -D head -o body -w "%{http_code}" -X POST "$url/v1/ids?n=65536&to=words")" = 503 &&
    grep "max-answers" body && grep -i "^retry-after: 1" head && for i in 1 2 3; do
        test "$(curl -s -o body -w "%{http_code}" -X POST "$url/v1/ids?n=65536&to=dothex")" = 503 &&
        test "$(curl -s -o body -w "%{http_code}" -X POST "$url/v1/ids?n=40000")" = 200 || return 1
    done && stop_http
'
test_expect_success 'a low limit of open files reduces the number of connections of idtree-http, which reports this' '
    (ulimit -n 200 && exec "$http" -l 127.0.0.1:0 >url 2>err </dev/null) & http_pid=$! &&
    wait_until "it is said" grep "136 connections at the same time, not 12000: 200 files" err && stop_http
'
test_expect_success 'idtree-http refuses a limit of open files that leaves no connection' '
    for n in 40 64; do
        (ulimit -n $n && exec timeout -s KILL "$WAIT_S" "$IDTREE_BUILDDIR/src/http/idtree-http" -l 127.0.0.1:0 </dev/null >url 2>err)
        test $? = 1 && grep "$n files may be open (ulimit -Hn), and 64 are needed" err && test ! -s url || { cat err; return 1; }
    done
'
test_done
