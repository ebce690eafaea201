#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3020-failures.t - brokers are killed, stopped, continued and run again while all ranks get requests for ids
test_description='under load and any failure each request is answered once, and no id is issued twice'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 7 --topology kary:2 -o fluid.max-generators=3 -o tbon.timeout=500ms -o fluid.forward-timeout=2s

# Clients of all ranks request ids until fifo 6 is closed.
load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" -a "${IDTREE_URI%0}" 0 1 2 3 4 5 6 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() {
    exec 6>&- && wait $load_pid && cat result && ! grep "ids 0 " result
}

test_expect_success 'while no broker fails no request fails' '
    load_start && for r in 0 1 2 3 4 5 6; do wait_served $r; done && load_end && grep "^ids .* failed 0 connections-lost 0" result
'
test_expect_success 'under load a leaf is killed and runs again' '
    load_start && for i in 1 2 3; do idtree startctl kill 6 && idtree startctl run 6 && wait_served 6 || return 1; done && load_end
'
test_expect_success 'under load an inner router is killed and runs again' '
    load_start && for i in 1 2 3; do
        idtree startctl kill 1 && wait_served 3 && wait_served 4 && idtree startctl run 1 && wait_served 1 || return 1
    done && wait_attached 3 1 && load_end
'
test_expect_success 'under load a whole subtree is killed and runs again' '
    load_start && idtree startctl kill 2 && idtree startctl kill 5 && idtree startctl kill 6 &&
    for r in 0 1 3 4; do wait_served $r; done && for r in 2 5 6; do idtree startctl run $r || return 1; done &&
    wait_served 2 && wait_served 5 && wait_served 6 && load_end
'
test_expect_success 'under load rank 0 is killed and runs again' '
    load_start && for i in 1 2; do idtree startctl kill 0 && idtree startctl run 0 && wait_served 0 && wait_served 5 || return 1; done &&
    load_end
'
test_expect_success 'under load a router is stopped for longer than its parent waits, and continued' '
    load_start && idtree startctl stop 1 && wait_attached 3 0 && wait_attached 4 0 && wait_served 3 && idtree startctl cont 1 &&
    wait_served 1 && wait_attached 3 1 && load_end
'
test_expect_success 'under load a router is stopped for less time than its parent waits, and continued' '
    load_start && idtree startctl stop 2 && idtree startctl cont 2 && wait_served 5 && load_end
'
test_done
