#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2041-compressor-messages.t - messages up and events down the tree, as the services count them
test_description='each batch of ranges needs one message up for each hop, and one event down for each rank'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 8 --topology kary:2 -o broker.modules=fluid,compressor -o tbon.timeout=5m -o compressor.timeout=1h

ask() { "$IDTREE_BUILDDIR/t/ask" "$@" </dev/null; }
# Print counter $2 of the service on rank $1. The request goes to this rank itself, as rank 0 may be stopped.
count() { IDTREE_URI=${IDTREE_URI%0}$1 ask $1 compressor.stats-get | sed "s/.*\"$2\":\([0-9]*\).*/\1/"; }
counts() { for rank in 0 1 2 3 4 5 6 7; do count $rank $1 || return 1; done | tr "\n" " "; }
has_seq() { ask $1 compressor.stats "{\"document\":\"d\"}" | grep "\"seq\":$2,"; }
await_seq() { wait_until "rank $1 has heard range $2" has_seq "$@"; }
minus() { printf "%s\n%s\n" "$1" "$2" | awk 'NR == 1 { n = split($0, a) } NR == 2 { for (i = 1; i <= n; i++) printf "%d ", a[i] - $i }'; }

test_expect_success 'before messages are counted a document is open on all ranks' '
    for rank in 0 1 2 3 4 5 6 7; do ask $rank compressor.open "{\"document\":\"d\"}" || return 1; done
'
test_expect_success 'each of ten requests for a final id needs one message for each hop and one event for each rank' '
    orders=$(counts orders) events=$(counts events) && groups=$(count 0 groups) &&
    for i in 1 2 3 4 5 6 7 8 9 10; do ask 7 compressor.generate "{\"document\":\"d\",\"final\":true}" || return 1; done &&
    for rank in 0 1 2 3 4 5 6 7; do
        await_seq $rank 10 || return 1
    done &&
    test "$(minus "$(counts orders)" "$orders")" = "0 10 0 10 0 0 0 10 " &&
    test "$(minus "$(counts events)" "$events")" = "10 10 10 10 10 10 10 10 " &&
    test $(($(count 0 groups) - groups)) = 10
'
# While rank 0 is stopped, one message of rank 1 is under way, and later requests wait for the answer to it.
range() { printf '{"sessionId":"%08x-1111-4111-8111-111111111111","ids":{"firstGenCount":1,"count":1,"requestedClusterSize":4,"localIdRanges":[[1,1]]}}' $1; }
submit() { IDTREE_URI=${IDTREE_URI%0}$1 ask $1 compressor.submit "{\"document\":\"d\",\"uuid\":\"$uuid\",\"ranges\":[$(range $2)]}"; }
await_waiting() { wait_until "$2 requests wait at rank $1" holds "test \"\$(count $1 waiting)\" = $2"; }
test_expect_success 'ranges that reach a rank while a message is under way are sent up in the next message' '
    uuid=$(ask 0 compressor.open "{\"document\":\"d\"}" | sed "s/.*\"uuid\":\"\([^\"]*\).*/\1/") &&
    orders=$(counts orders) elements=$(counts elements) events=$(counts events) && groups=$(count 0 groups) &&
    idtree startctl stop 0 &&
    { submit 1 1 >answer.1 & } && await_waiting 1 1 &&
    for i in 2 3 4 5; do { submit 1 $i >answer.$i & } || return 1; done && await_waiting 1 5 &&
    { submit 3 6 >answer.6 & } && await_waiting 1 6 &&
    for i in 7 8 9; do { submit 3 $i >answer.$i & } || return 1; done && await_waiting 3 4 &&
    idtree startctl cont 0 && wait &&
    for i in 1 2 3 4 5 6 7 8 9; do grep "\"seq\":" answer.$i || return 1; done &&
    test "$(minus "$(counts orders)" "$orders")" = "0 3 0 2 0 0 0 0 " &&
    test "$(minus "$(counts elements)" "$elements")" = "0 9 0 4 0 0 0 0 " &&
    test $(($(count 0 groups) - groups)) = 3 &&
    for rank in 0 1 2 3 4 5 6 7; do
        await_seq $rank 19 || return 1
    done &&
    test "$(minus "$(counts events)" "$events")" = "3 3 3 3 3 3 3 3 "
'
# Rank 0 answers a batch after it was stored and published, so no rank sends more messages than there are batches.
test_expect_success 'while all ranks make ids, a batch needs at most one message for each hop and one event for each rank' '
    orders=$(counts orders) events=$(counts events) && groups=$(count 0 groups) &&
    mkfifo stop && { "$IDTREE_BUILDDIR/t/idcomp-load" "${IDTREE_URI%0}" d record 0 1 2 3 4 5 6 7 <stop >result 2>&1 & } && load=$! &&
    exec 6>stop && wait_until "there are 100 batches" holds "test \$((\$(count 0 groups) - groups)) -ge 100" && exec 6>&- && wait $load && cat result &&
    minus "$(counts orders)" "$orders" >orders && minus "$(counts events)" "$events" >events &&
    groups=$(($(count 0 groups) - groups)) && cat orders events && echo batches $groups &&
    for n in $(cat orders events); do test $n -le $groups || return 1; done
'
test_done
