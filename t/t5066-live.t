#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5066-live.t - the tree and its events over HTTP, for many readers and slow ones
test_description='idtree-http serves the tree and its events'
. "$(dirname "$0")/idtree-sharness.sh"
http=$IDTREE_BUILDDIR/src/http/idtree-http
if ! test -x "$http" || ! command -v curl >/dev/null || ! command -v python3 >/dev/null; then
    skip_all='idtree-http is not built, or curl or python3 is not installed'
    test_done
fi
test_under_idtree 7 --topology kary:2 -o log-stderr-level=2

. "$IDTREE_SRCDIR/t/http.sh"
read_events() { rm -f events && { curl -sN -m 300 "$url/v1/events" >events & } && events_pid=$!; }
tree() { curl -sf -m 60 "$url/v1/tree?$1" >tree; }
shows() { tree "${2-}" && jq -e "$1" tree >/dev/null; }

test_expect_success 'the tree of idtree-http lists each rank before the ranks attached to it, with its state and its lease' '
    start_http -l 127.0.0.1:0 --show-log && wait_until "all tell" shows "[.ranks[] | select (.status == \"full\" and .fluid == \"active\")] | length == 7" &&
    jq -e ".size == 7 and .error == null and (.ranks | map(.rank)) == [0,1,3,4,2,5,6] and (.ranks | map(.attached_to)) == [null,0,1,1,0,2,2]" tree &&
    jq -e "all (.ranks[]; .ids_from == .rank and .lease_left_s > 0 and .host != null)" tree &&
    tree "depth=1" && jq -e "(.ranks | map([.rank,.folded,.below.ranks])) == [[0,false,6],[1,true,2],[2,true,2]]" tree &&
    tree "rank=2" && jq -e "(.ranks | map(.rank)) == [2,5,6]" tree &&
    for wrong in rank=x rank=-1 depth=65 rank=99999999999; do test "$(curl -s -o err -w "%{http_code}" "$url/v1/tree?$wrong")" = 400 || return 1; done &&
    test "$(curl -s -o err -w "%{http_code}" "$url/v1/tree?rank=7")" = 404 && grep "no rank 7" err
'
test_expect_success 'readers of idtree-http get the death of a rank, the new parent of its children, rates of ids, and the log' '
    read_events && { curl -sN -m 300 "$url/v1/events" >events.2 & } &&
    for who in events events.2; do wait_until "the first event" grep -s "^event: hello" $who || return 1; done && idtree id new -r 5 -n 1000 >/dev/null &&
    sees() { sed -n "s/^data: //p" "${2:-events}" | jq -e -s "any (.[]; $1)" >/dev/null; } &&
    wait_until "ids are counted" sees "(.ranks? // [])[] | .rank == 5 and .ids_per_s > 0" && idtree startctl kill 1 &&
    for who in events events.2; do
        wait_until "it is lost" sees "(.ranks? // [])[] | .rank == 1 and .status == \"lost\" and .attached_to == null and .was.attached_to == 0" $who &&
        for rank in 3 4; do
            wait_until "$rank is attached to 0" sees "(.ranks? // [])[] | .rank == $rank and .attached_to == 0 and .was.attached_to == 1" $who || return 1
        done
    done && wait_until "it is logged" sees ".name? == \"overlay\" and (.text? | contains (\"rank 1\")?)" &&
    tree "" && jq -e "[.ranks[] | select (.attached_to == null) | .rank] == [0,1]" tree && jq -e ".ranks[] | select (.rank == 0) | .below.ranks == 5" tree
'
test_expect_success 'the tree of idtree-http shows a rank that runs again as attached to its parent' '
    idtree startctl run 1 && wait_until "it is there" shows ".ranks[] | select (.rank == 1) | .status == \"full\" and .attached_to == 0" &&
    kill $events_pid
'
test_expect_success 'when a reader of idtree-http disconnects, another one can connect' '
    seq 1001 | sed "s|.*|url=\"$url/v1/events\"|" | curl -sf -m 60 -I -K - >out && test "$(grep -c "^HTTP/1.1 200" out)" = 1001
'
test_expect_success 'readers that do not read, or have disconnected, do not delay other readers' '
    python3 "$IDTREE_SRCDIR/t/http_slow.py" "$url"
'
test_expect_success 'headers of idtree-http ask proxies not to store or change events' '
    curl -sN -m 300 -D head "$url/v1/events" | grep -m 1 "^event: hello" && grep -i "^x-accel-buffering: no" head && grep -i "^cache-control: no-store, no-transform" head &&
    curl -sf -m 60 -D head "$url/v1/tree" >tree && ! grep -i "^x-accel-buffering" head && grep -i "^cache-control: no-store" head
'
if command -v nginx >/dev/null; then
    test_set_prereq NGINX
fi
# A configuration like an installed one, except for its address and its files.
start_nginx() {
    mkdir -p nginx && cat >nginx/conf <<END &&
daemon off;
pid pid;
error_log log;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen unix:nginx.sock;
        location / { proxy_pass $url; }
    }
}
END
    { nginx -p nginx -e log -c conf 2>nginx/err </dev/null & } && nginx_pid=$! &&
        wait_until "nginx listens" test -S nginx.sock
}
cleanup 'kill "$nginx_pid" 2>/dev/null || :'
test_expect_success NGINX 'nginx passes events of idtree-http on as they arrive' '
    start_nginx && python3 "$IDTREE_SRCDIR/t/http_proxy.py" nginx.sock "$url" $http_pid && curl -sf -m 60 --unix-socket nginx.sock http://localhost/v1/tree | jq -e ".size == 7" &&
    kill $nginx_pid && { wait $nginx_pid || :; }
'
test_expect_success 'idtree-http sends no log to readers over TCP without --show-log, because these may be other users' '
    stop_http && start_http -l 127.0.0.1:0 && read_events &&
    wait_until "rates" grep -s "^event: rates" events && grep "\"log\":false" events && idtree startctl kill 6 &&
    wait_until "it is lost" sees "(.ranks? // [])[] | .rank == 6 and .status == \"lost\"" && ! grep "^event: log" events && kill $events_pid
'
test_expect_success 'event streams end when idtree-http ends, and the loss of the broker is reported' '
    read_events && wait_until "rates" grep -s "^event: rates" events && stop_http && wait $events_pid &&
    start_http -l 127.0.0.1:0 -u "${IDTREE_URI%0}2" && tree && read_events &&
    wait_until "rates" grep -s "^event: rates" events && idtree startctl kill 2 && wait_until "the error" sees ".error? != null" &&
    shows ".error != null and .size == 7" && idtree startctl run 2 && wait_until "no error" shows ".error == null" && stop_http && wait $events_pid
'
test_done
