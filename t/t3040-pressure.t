#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3040-pressure.t - requests and events exceed what a link holds, also while a broker is stopped (SIGSTOP)
test_description='load ends no link, queues for a link are bounded, and nothing is lost'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 7 --topology kary:2 -o tbon.timeout=6s -o tbon.hwm=1000

pressure() { "$IDTREE_BUILDDIR/t/pressure" "$@"; }
uri_of() { echo "${IDTREE_URI%0}$1"; }
stats() { idtree module stats --json --uri "$(uri_of "$1")" overlay; }
attached() { wait_until "rank $1 is attached to rank $2" holds "stats $1 | grep -q '\"parent-rank\": *$2[,}]'"; }
lost() { idtree dmesg | grep -c 'is lost'; }
# The peak memory of rank $1, KiB.
peak() { awk '/^VmHWM/ { print $2 }' "/proc/$(idtree getattr --uri "$(uri_of "$1")" broker.pid)/status"; }

test_expect_success 'one client sends eight times the requests that ZeroMQ holds: all are answered, and no child is lost' '
    pressure ask $(uri_of 0) 1 8000 100 >asked && cat asked && test "$(lost)" = 0
'
test_expect_success 'many requests to the parent, and answers of 1 MiB in total, arrive, and no child is lost' '
    pressure ask $(uri_of 1) 0 8000 100 && pressure ask $(uri_of 3) 6 1000 1000 && test "$(lost)" = 0
'
# Start a watcher at each rank, and wait until all are ready.
watch_start() {
    rm -f ready && mkfifo ready && pids= &&
    for r in 0 1 2 3 4 5 6; do
        "$IDTREE_BUILDDIR/t/pressure" watch "$(uri_of $r)" $1 >ready 2>watched.$r & pids="$pids $!"
    done && exec 6<ready && for r in 0 1 2 3 4 5 6; do test "$(wait_line 6)" = ready || return 1; done
}
# Wait until each watcher has seen all events.
watch_end() { rc=0; for pid in $pids; do wait $pid || rc=1; done; cat <&6; exec 6<&-; cat watched.*; return $rc; }

test_expect_success 'each broker gets 100,000 events in order, although two brokers are stopped for a while' '
    watch_start 100000 && idtree startctl stop 2 && idtree startctl stop 3 && pressure publish $(uri_of 0) 100000 &&
    idtree startctl cont 2 && idtree startctl cont 3 && watch_end
'
test_expect_success 'each broker gets 50,000 events that a leaf publishes, in order' '
    watch_start 50000 && pressure publish $(uri_of 6) 50000 && watch_end
'
test_expect_success 'all requests to a stopped child get an answer' '
    before=$(peak 0) && idtree startctl stop 1 &&
    for i in 1 2 3 4 5 6 7 8; do pressure ask $(uri_of 0) 1 400 100000 >asked$i 2>why$i & done && wait &&
    cat asked? why? && test "$(cat asked? | grep -c "^answered 400 failed 400$")" = 8
'
# The requests had 300 MB. A sanitizer keeps freed memory.
if ! is_sanitized; then
    test_expect_success 'the memory of requests that wait for a stopped child is bounded' '
        after=$(peak 0) && echo "$before $after" && test $((after - before)) -lt 32768
    '
fi
# The number of requests that rank $1 received.
taken() { idtree module stats --json --uri "$(uri_of "$1")" broker | sed 's/.*"requests": *\([0-9]*\).*/\1/'; }

# The test asks rank 0, so that rank 1 gets no request.
whole() { wait_until "rank 0 has both children" holds "stats 0 | grep -q '\"child-connected\": *2,'"; }

# The child may not know yet that it was given up.
test_expect_success 'a child whose link was ended is accepted again' '
    idtree startctl cont 1 && whole && attached 1 0 && idtree id new -r 1
'
test_expect_success 'a continued child does not serve requests from before its link was ended, because no client waits for the answers' '
    whole && before=$(taken 1) && idtree startctl stop 1 && { pressure ask $(uri_of 0) 1 3000 100 >asked || :; } &&
    grep -q "^answered 3000 failed 3000$" asked && idtree startctl cont 1 && whole &&
    after=$(taken 1) && echo "$before $after" && test $((after - before)) -lt 40
'
# Connections without a key use descriptors, too.
test_expect_success 'a broker raises its soft limit of descriptors to the hard limit' '
    hard=$(ulimit -Hn) && ( ulimit -Sn 200 && exec "$IDTREE_BUILDDIR/src/broker/idtree-broker" sh -c "cat /proc/\$PPID/limits" <&- >limits ) &&
    grep "^Max open files  *$hard  *$hard " limits
'
test_done
