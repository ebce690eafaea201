#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2022-reload.t - fluid is reloaded on a leaf, an inner rank and rank 0 while clients use it
test_description='clients notice no reload of fluid: ids increase, each rank makes ids again, and requests wait for a limited time'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 4 --topology kary:2 -o log-stderr-level=0

: "${RELOADS:=40}"
uri_of() { echo "${IDTREE_URI%0}$1"; }
info() { idtree info --uri "$(uri_of "$1")" | awk -v key="$2" '$2 == key { print $3 }'; }

# Clients of all ranks request ids until fifo 6 is closed.
load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" "${IDTREE_URI%0}" 0 1 2 3 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid; rc=$?; cat result; return $rc; }
reload() { idtree module remove -r "$1" fluid && idtree module load -r "$1" fluid ${2:+"$2"}; }

for r in 0 1 2 3; do wait_served $r; done
test_expect_success 'ids of each connection increase while a leaf, an inner rank and rank 0 reload fluid' '
    load_start && for i in $(seq "$RELOADS"); do reload 3 && reload 1 && reload 0 || { load_end; return 1; }; done && load_end
'
test_expect_success 'ids of each connection increase while fluid is reloaded in a thread' '
    load_start && for i in $(seq 5); do reload 3 --thread && reload 1 --thread || { load_end; return 1; }; done && load_end &&
    reload 3 && reload 1
'
# A lease lasts 60 s.
test_expect_success 'after a reload at rank 0 all ranks make ids again' '
    wait_served 3 && reload 0 && ahead=$(info 0 timestamp_ms) && now=$(info 3 timestamp_ms) &&
    { idtree info; echo "$ahead $now"; test "$ahead" -lt $((now + 1000)); }
'
test_expect_success 'a request waits for fluid for a limited time, then fails with an error that has the command to load fluid' '
    idtree module remove -r 3 fluid && test_must_fail idtree id new --uri "$(uri_of 3)" 2>err && cat err &&
    grep "fluid is not loaded on rank 3: idtree module load -r 3 fluid" err &&
    test_must_fail idtree id new -r 3 2>err && grep "fluid is not loaded on rank 3" err
'
test_expect_success 'a request that waits for fluid is answered when fluid is loaded' '
    { idtree id new --uri "$(uri_of 3)" >id 2>err & } && pid=$! &&
    idtree module load -r 3 fluid && { wait $pid || cat err; } && test -s id
'
test_expect_success 'a rank without fluid forwards the requests of other ranks' '
    idtree module remove -r 1 fluid && idtree id new --uri "$(uri_of 3)" && idtree module load -r 1 fluid
'
test_done
