#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4030-frozen.t - a broker is stopped (SIGSTOP) for longer than its lease, and continued
test_description='a broker that wakes up after its lease makes no ids under it, and answers all waiting requests'
. "$(dirname "$0")/idtree-sharness.sh"

# Leases last long enough that part of one is left at the stop. The parent never gives the broker up.
test_under_idtree 7 --topology kary:2 -o fluid.lease=2s -o fluid.max-generators=6 -o tbon.timeout=1h \
    -o fluid.forward-timeout=1h -o fluid.max-backlog=10s
LEASE=2000

uri_of() { echo "${IDTREE_URI%0}$1"; }
info() { idtree info --uri "$(uri_of "$1")" | awk -v key="$2" '$2 == key { print $3 }'; }
lease_end() { idtree info --json --uri "$(uri_of "$1")" | sed 's/.*"lease":\["[0-9]*","\([0-9]*\)"\].*/\1/'; }
boot_ms() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }
forwarded() { idtree module stats --json -r "$1" fluid | sed 's/.*"forwarded": *\([0-9]*\).*/\1/'; }

# A client of rank $1 with a request for each of the following numbers of ids: start it, let it ask, wait for its end.
client_start() {
    rank=$1 && shift && rm -f go said && mkfifo go said &&
    { "$IDTREE_BUILDDIR/t/idqueue" got "$(uri_of $rank)" "$@" <go >said 5>&- 6<&- & } && client_pid=$! &&
    exec 5>go 6<said && test "$(wait_line 6)" = ready
}
client_ask() { echo >&5 && test "$(wait_line 6)" = asked; }
client_end() { wait $client_pid && exec 5>&- 6<&-; }

# Stop rank $1, and read the time at rank $2. The newest id of rank $1 is older than $stop. Its lease ends at $held or
# later, which is after $stop.
freeze() { wait_until "rank $1 is stopped within its lease" stop_early "$@"; }
stop_early() {
    held=$(lease_end $1) && idtree startctl stop $1 && stop=$(info $2 timestamp_ms) && stop=$((stop + 50)) || return 1
    test $stop -lt $held || { idtree startctl cont $1 && wait_served $1 && return 1; }
}
# Wait until all that the stopped rank held, or that was on its way to it, has ended by the time of rank $1. Ranks $@
# continue to serve.
outlast() {
    refused= && wait_until "two leases have passed" make_until $((stop + 2 * LEASE)) "$@" >elsewhere && test -z "$refused"
}
make_until() { # time, rank...
    end=$1 && shift
    for r; do idtree id new --uri "$(uri_of $r)" -n 100 --to dec || refused=$r; done
    test -n "$refused" || test "$(info $1 timestamp_ms)" -gt $end
}
# Check that $1 ids came, that none was issued twice, and that none has generator $2 and a time at which the rank was
# stopped within its lease.
judge() {
    test $(wc -l <got) = $1 && cut -f1 got | sort -n - elsewhere | uniq -d >twice && test_must_be_empty twice &&
    ! awk -v g=$2 -v from=$stop -v to=$held '$2 == g && $3 >= from && $3 < to { print; n++ } END { exit !n }' got
}

# The requests are sent up, or are served here if the rank gets a new lease before it has read them.
test_expect_success 'requests that waited in the socket of a stopped rank get no ids of its lease that has ended' '
    wait_served 3 && client_start 3 1 1 1000 1 65536 7 && freeze 3 0 && client_ask &&
    outlast 0 1 2 4 5 6 && idtree startctl cont 3 && client_end && judge 66546 3
'
# The requests take 2.5 s. On a busy machine the rank may have made all ids before it is stopped within a lease, and has
# nothing to request then.
stopped_at_work() {
    wait_served 3 && client_start 3 $(yes 65536 | head -n 40) && before=$(forwarded 3) && client_ask && freeze 3 0 &&
        outlast 0 1 2 4 5 6 && idtree startctl cont 3 && client_end && judge $((40 * 65536)) 3 || { wrong=1; return 0; }
    test $(forwarded 3) -gt $before
}
test_expect_success 'a rank that continues after its lease has ended requests the ids for waiting requests from other ranks' '
    wrong= && wait_until "it is stopped while it makes them" stopped_at_work && test -z "$wrong"
'
# A request to a rank below is on its way up, and the lease ends in the meantime, too.
test_expect_success 'an inner rank that continues answers its own requests, and requests of ranks below it' '
    wait_served 1 && client_start 1 5 $(yes 65536 | head -n 10) && freeze 1 0 && client_ask && outlast 0 2 5 6 &&
    { idtree id new --uri "$(uri_of 4)" -n 10 --to dec >below & } && pid=$! && idtree startctl cont 1 && client_end &&
    judge 655365 1 && wait $pid && sort -n below elsewhere | uniq -d >twice && test_must_be_empty twice
'
test_expect_success 'a rank 0 that continues answers its own requests, and requests of all other ranks' '
    wait_served 0 && client_start 0 5 $(yes 65536 | head -n 10) && client_ask && freeze 0 1 && : >elsewhere &&
    end=$(($(boot_ms) + 2 * LEASE)) && wait_until "two leases have passed" holds "test \$(boot_ms) -gt $end" &&
    { for r in 1 2 3 4 5 6; do idtree id new --uri "$(uri_of $r)" -n 100 --to dec & done >others; } &&
    idtree startctl cont 0 && client_end && judge 655365 0 &&
    wait && test $(wc -l <others) = 600 && sort -n others | uniq -d >twice && test_must_be_empty twice
'
test_done
