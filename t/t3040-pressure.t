#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3040-pressure.t - more is asked and published than a link takes, also while a broker is stopped (SIGSTOP)
test_description='load ends no link, what waits for one is bounded, and nothing is lost'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 7 --topology kary:2 -o tbon.timeout=6s -o tbon.hwm=1000

pressure() { "$IDTREE_BUILDDIR/t/pressure" "$@"; }
uri_of() { echo "${IDTREE_URI%0}$1"; }
stats() { idtree module stats --json --uri "$(uri_of "$1")" overlay; }
attached() { wait_until "rank $1 is attached to rank $2" holds "stats $1 | grep -q '\"parent-rank\": *$2[,}]'"; }
lost() { idtree dmesg | grep -c 'is lost'; }
# The most memory that rank $1 ever had, KiB.
peak() { awk '/^VmHWM/ { print $2 }' "/proc/$(idtree getattr --uri "$(uri_of "$1")" broker.pid)/status"; }

test_expect_success 'requests of one client, eight times what ZeroMQ takes: all answered, no child lost' '
    pressure ask $(uri_of 0) 1 8000 100 >asked && cat asked && test "$(lost)" = 0
'
test_expect_success 'the same upward, and answers of 1 MiB in all' '
    pressure ask $(uri_of 1) 0 8000 100 && pressure ask $(uri_of 3) 6 1000 1000 && test "$(lost)" = 0
'
# A watcher at each rank; they are ready.
watch_start() {
    rm -f ready && mkfifo ready && pids= &&
    for r in 0 1 2 3 4 5 6; do
        "$IDTREE_BUILDDIR/t/pressure" watch "$(uri_of $r)" $1 >ready 2>watched.$r & pids="$pids $!"
    done && exec 6<ready && for r in 0 1 2 3 4 5 6; do test "$(wait_line 6)" = ready || return 1; done
}
# Each saw all.
watch_end() { rc=0; for pid in $pids; do wait $pid || rc=1; done; cat <&6; exec 6<&-; cat watched.*; return $rc; }

test_expect_success '100,000 events at once: each broker gets all, in order, while two are stopped for a while' '
    watch_start 100000 && idtree startctl stop 2 && idtree startctl stop 3 && pressure publish $(uri_of 0) 100000 &&
    idtree startctl cont 2 && idtree startctl cont 3 && watch_end
'
test_expect_success 'the same from a leaf' '
    watch_start 50000 && pressure publish $(uri_of 6) 50000 && watch_end
'
test_expect_success 'a child is stopped: all that it is asked is answered' '
    before=$(peak 0) && idtree startctl stop 1 &&
    for i in 1 2 3 4 5 6 7 8; do pressure ask $(uri_of 0) 1 400 100000 >asked$i 2>why$i & done && wait &&
    cat asked? why? && test "$(cat asked? | grep -c "^answered 400 failed 400$")" = 8
'
# 300 MB were asked.  A sanitizer keeps what is freed.
if ! is_sanitized; then
    test_expect_success 'what waited for it is bounded' '
        after=$(peak 0) && echo "$before $after" && test $((after - before)) -lt 32768
    '
fi
# Requests that rank $1 took in.
taken() { idtree module stats --json --uri "$(uri_of "$1")" broker | sed 's/.*"requests": *\([0-9]*\).*/\1/'; }

# Asking rank 0 costs rank 1 nothing.
whole() { wait_until "rank 0 has both children" holds "stats 0 | grep -q '\"child-connected\": *2,'"; }

# It may not know yet that it was given up.
test_expect_success 'it is taken in again' '
    idtree startctl cont 1 && whole && attached 1 0 && idtree id new -r 1
'
test_expect_success 'what was on its way to it is not served after it is continued: nobody waits for that' '
    whole && before=$(taken 1) && idtree startctl stop 1 && { pressure ask $(uri_of 0) 1 3000 100 >asked || :; } &&
    grep -q "^answered 3000 failed 3000$" asked && idtree startctl cont 1 && whole &&
    after=$(taken 1) && echo "$before $after" && test $((after - before)) -lt 40
'
# Connections without a key take descriptors, too.
test_expect_success 'a broker takes as many descriptors as it may' '
    hard=$(ulimit -Hn) && ( ulimit -Sn 200 && exec "$IDTREE_BUILDDIR/src/broker/idtree-broker" sh -c "cat /proc/\$PPID/limits" <&- >limits ) &&
    grep "^Max open files  *$hard  *$hard " limits
'
test_done
