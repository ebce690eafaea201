#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2061-spill.t - fluid.spill-backlog: an owner with too much to make forwards requests of its children to its parent
test_description='an owner rank with too many requests forwards some, and its parent makes ids in order and without duplicates'
. "$(dirname "$0")/idtree-sharness.sh"

echo "[null, 0, 1, 1, 1, 1]" >tree.json
test_under_idtree 6 --topology "custom:$PWD/tree.json" -o fluid.max-generators=2 -o fluid.share=off -o fluid.spill-backlog=1ms

stat_of() { idtree module stats --json -r "$1" fluid | sed "s/.*\"$2\": *\([0-9]*\).*/\1/"; }
has_spilled() { test "$(stat_of 1 spilled)" -gt "$1"; }

# All ranks below rank 1 request many ids at the same time.
burst() {
    pids= && for r in 2 3 4 5; do idtree id new --uri "${IDTREE_URI%0}$r" -n 130000 >burst.$r & pids="$pids $!"; done
    for p in $pids; do wait "$p" || return 1; done
    for r in 2 3 4 5; do
        test "$(wc -l <burst.$r)" = 130000 && LC_ALL=C sort -c burst.$r && cat burst.$r >>all || return 1
    done
}
test_expect_success 'two ranks have generators, and four ranks are below one of these' '
    for r in 0 1 2 3 4 5; do wait_served $r || return 1; done && wait_served 1 -g && wait_attached 5 1
'
test_expect_success 'an owner rank with too many requests forwards some to the other owner' '
    spills() { burst && has_spilled 0; } &&
    before=$(stat_of 0 ids) && wait_until "rank 1 passes requests on" spills &&
    test "$(stat_of 0 ids)" -gt "$before" && test "$(stat_of 1 ids)" -gt 0 && test "$(stat_of 1 ids_from_above)" -gt 0
'
test_expect_success 'both owner ranks make ids, in order for each requester, and no id is issued twice' '
    test "$(sort -u all | wc -l)" = "$(wc -l <all)" &&
    sed -n "1~97p" all | idtree id show --json - | sed "s/.*\"generator\": *\([0-9]*\).*/\1/" | sort -un >made &&
    printf "0\n1\n" >want && test_cmp want made
'
load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" "${IDTREE_URI%0}" 2 2 2 3 3 3 4 4 4 5 5 5 1 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid; }
test_expect_success 'under load ids stay in order and unique, also for clients of the owner rank itself' '
    before=$(stat_of 1 spilled) && more() { burst && has_spilled $((before + 5)); } &&
    load_start && wait_until "more was passed on" more &&
    load_end && cat result && grep "^ids .* failed 0 connections-lost 0 disorder 0 duplicates 0$" result
'
test_expect_success 'while the parent of the owner rank reloads fluid, each request is answered' '
    load_start && for i in 1 2 3; do
        idtree module remove -r 0 fluid && idtree module load -r 0 fluid && wait_served 2 && wait_served 5 || return 1
    done && load_end && cat result && grep "^ids .* connections-lost 0 disorder 0 duplicates 0$" result
'
test_expect_success 'while its parent is killed, the owner rank makes the ids itself' '
    load_start && idtree startctl kill 0 && IDTREE_URI=${IDTREE_URI%0}5 wait_served 5 && idtree startctl run 0 && wait_served 0 &&
    wait_attached 1 0 && load_end && cat result && grep " disorder 0 duplicates 0$" result
'
test_expect_success 'an invalid value of fluid.spill-backlog is refused with a message' '
    test_must_fail idtree start -s 1 -o fluid.spill-backlog=-1 true 2>err &&
    grep "fluid.spill-backlog=-1: must be 0 (requests are not forwarded) to 1h, such as 20ms" err
'
test_done
