#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3012-keys.t - the keys of the ranks below are sent up once to each broker that needs them
test_description='a rank sends the keys of its subtree up once, not each time that it joins'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 8 --topology kary:2 -o tbon.timeout=1s

counter() { idtree module stats --json -r "$1" overlay | sed "s/.*\"$2\": *\([0-9]*\).*/\1/"; }
sent() { test "$(counter "$1" keys-sent)" = "$2"; }
# When a rank has no pending keys, the answer to a heartbeat has confirmed that all its keys have arrived above.
all_heard() { wait_until "rank $1 has told its keys" holds "test \$(counter $1 keys-pending) = 0"; }
away() { idtree startctl stop 1 && wait_attached 3 0 && all_heard 3; }
back() { idtree startctl cont 1 && wait_attached 3 1 && all_heard 3; }

test_expect_success 'each rank knows the keys of the ranks below it, and each key was sent up once' '
    wait_attached 7 3 && wait_attached 3 1 && all_heard 3 && all_heard 1 &&
    wait_until "rank 0 knows all" holds "test \$(counter 0 keys) = 7" && test $(counter 1 keys) = 3 && sent 3 1 && sent 1 3 && sent 0 0
'
test_expect_success 'an ancestor that replaces a parent receives the keys of the subtree once' '
    away && sent 3 2
'
test_expect_success 'a parent that was replaced still has the keys when its child returns' '
    back && sent 3 2
'
test_expect_success 'an ancestor still has the keys when it replaces a parent a second time' '
    away && sent 3 2 && back && sent 3 2
'
test_expect_success 'a parent that was restarted receives the keys of its subtree again, and sends them up' '
    idtree startctl kill 1 && wait_attached 3 0 && all_heard 3 && sent 3 2 &&
    idtree startctl run 1 && wait_attached 3 1 && all_heard 3 && sent 3 3 && all_heard 1 && sent 1 3
'
test_expect_success 'an ancestor accepts the ranks whose keys it has received' '
    idtree startctl kill 3 && wait_attached 7 1 && idtree startctl kill 1 && wait_attached 7 0
'
test_done
