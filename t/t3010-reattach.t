#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3010-reattach.t - a broker that loses its parent attaches to an ancestor, and returns later
test_description='a lost parent is replaced by the nearest living ancestor'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 16 --topology kary:2 -o fluid.max-generators=4

uri_of() { echo "${IDTREE_URI%0}$1"; }

test_expect_success 'in the beginning every rank is attached to its parent' '
    wait_attached 3 1 && wait_attached 4 1 && wait_attached 7 3 && wait_attached 15 7
'
test_expect_success 'the children of a killed rank attach to its parent' '
    idtree startctl kill 1 && wait_attached 3 0 && wait_attached 4 0 && wait_attached 7 3
'
test_expect_success 'requests reach a subtree that is attached to an ancestor, and requests from that subtree are answered' '
    idtree ping -c 1 15 && idtree ping -c 1 10 && idtree ping --uri "$(uri_of 15)" -c 1 10 &&
    idtree ping --uri "$(uri_of 9)" -c 1 2 && test_must_fail idtree ping -c 1 1
'
test_expect_success 'ranks of a subtree that is attached to an ancestor make ids, and no id is issued twice' '
    for r in 3 4 7 9 10 15; do idtree id new -r $r -n 500 || return 1; done >ids &&
    test "$(wc -l <ids)" = 3000 && test "$(sort -u ids | wc -l)" = 3000
'
test_expect_success 'idtree overlay status shows to which ancestor a subtree is attached' '
    idtree overlay status >tree && grep -E "1 +lost" tree && test "$(grep -c "via 0" tree)" = 2 &&
    idtree overlay status --summary >sets && cat sets && grep -E "^lost +1  1$" sets &&
    test "$(awk "NR > 1 { n += \$2 } END { print n }" sets)" = 16
'
test_expect_success 'a rank attaches two levels up when its parent and grandparent are lost' '
    idtree startctl kill 3 && wait_attached 7 0 && wait_attached 8 0 && idtree ping -c 1 15 &&
    idtree id new -r 15 -n 10
'
test_expect_success 'a subtree that attaches to an ancestor misses no events' '
    idtree event sub --uri "$(uri_of 15)" -c 30 reattach. >events & pid=$!
    wait_subscribers 15 1 &&
    for i in 1 2 3 4 5 6 7 8 9 10; do idtree event pub reattach.$i || return 1; done &&
    idtree startctl run 3 && for i in 11 12 13 14 15; do idtree event pub reattach.$i || return 1; done &&
    wait_attached 3 0 && wait_attached 7 3 && for i in 16 17 18 19 20; do idtree event pub reattach.$i || return 1; done &&
    idtree startctl kill 7 && for i in 21 22 23 24 25; do idtree event pub reattach.$i || return 1; done &&
    wait_attached 15 3 && for i in 26 27 28 29 30; do idtree event pub reattach.$i || return 1; done &&
    wait $pid && seq -f "reattach.%g" 30 >want && cut -f1 events >got && test_cmp want got
'
test_expect_success 'all ranks return to their parents when these run again' '
    idtree startctl run 7 && idtree startctl run 1 && wait_attached 3 1 && wait_attached 4 1 && wait_attached 7 3 && wait_attached 8 3 &&
    wait_attached 15 7 && wait_until "all are where they belong" holds "test \$(idtree overlay status | grep -c \"lost\\|via\") = 0"
'
# An ancestor that has released a child may not know yet that the child has left.
nobody_adopted() { idtree module stats --json overlay | grep "\"adopted\": *0"; }
test_expect_success 'rank 0 has no adopted children after all ranks have returned' 'wait_until "rank 0 has let go of all" nobody_adopted'

test_done
