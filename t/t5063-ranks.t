#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5063-ranks.t - counters and logs of many ranks by one command
test_description='module stats adds the counters of several ranks, and dmesg prints their logs'
. "$(dirname "$0")/idtree-sharness.sh"
# A suspended rank is not declared lost, however long the others take until all have answered within a second.
test_under_idtree 5 --topology kary:2 -o log-stderr-level=2 -o tbon.timeout=1h

stats() { idtree module stats --json "$@"; }
# A rank that holds no lease yet forwards to another rank, which counts the ids, too.
is_active() { idtree info --json -r "$1" | jq -e ".fluid.state == \"active\""; }
cleared() { stats -r all --clear fluid >/dev/null; }

test_expect_success 'module stats adds the numbers of ids that the ranks made' '
    for r in 0 1 2 3 4; do wait_until "rank $r holds a lease" is_active $r || return 1; done &&
    cleared && for r in 1 2 3; do idtree id new -r $r -n 7 >/dev/null || return 1; done &&
    stats -r all fluid >out && cat out && test "$(jq -r .ranks out)" = 0-4 && test "$(jq .sum.ids out)" = 21 &&
    test "$(jq "has(\"failed\")" out)" = false &&
    stats -r 2-3 fluid | jq -e ".ranks == \"2-3\" and .sum.ids == 14" &&
    stats -r "[1,3]" fluid | jq -e ".ranks == \"[1,3]\" and .sum.ids == 14" &&
    stats -r 3 fluid | jq -e ".ids == 7"
'
test_expect_success 'module stats leaves out rank numbers, keeps the longest stall, and adds the members of objects' '
    stats -r all overlay | jq -e ".sum[\"child-count\"] == 4 and .sum[\"parent-rank\"] == null and (.sum | has(\"links\") | not)" &&
    longest=$(for r in 0 1 2 3 4; do stats -r $r fluid; done | jq -s "map(.longest_stall_ms) | max") &&
    stats -r all fluid | jq -e ".sum.longest_stall_ms == $longest" &&
    idtree doc open d >/dev/null && stats -r all compressor | jq -e ".sum.root.documents == 1"
'
test_expect_success 'module stats --rusage adds the usage of several ranks' '
    # The kernel samples user and system time by the tick: either of them alone can be 0. Their sum cannot.
    before=$(for r in 0 1; do stats -r $r --rusage fluid; done | jq -s "map(.nvcsw) | add") &&
    stats -r 0-1 --rusage fluid >out && cat out &&
    jq -e ".sum.nvcsw >= $before and .sum.utime + .sum.stime > 0 and .ranks == \"0-1\"" out
'
test_expect_success 'module stats reports a rank that does not answer, and adds the other ranks' '
    added() { test_expect_code 1 idtree module stats --json --timeout 1 -r all flake >out && test "$(jq -r .ranks out)" = 0-1; } &&
    idtree module remove -r 4 flake && idtree startctl kill 3 && idtree startctl stop 2 &&
    wait_until "the others are added" added; idtree startctl cont 2; cat out &&
    test "$(jq -r .ranks out)" = 0-1 && test "$(jq -r ".failed[\"no answer\"]" out)" = 2 &&
    test "$(jq -r ".failed | to_entries[] | select(.key | startswith(\"rank 3 is not connected\")).value" out)" = 3 &&
    test "$(jq ".failed | length" out)" = 3 && idtree startctl run 3
'
test_expect_success 'dmesg prints the logs of several ranks one after the other, and -C clears all of them' '
    for r in 0 1 2; do idtree logger -s debug --uri "$(dirname "$IDTREE_URI")/local-$r" "hello of $r" || return 1; done &&
    said() { idtree dmesg -r 0-2 >out && test "$(grep -o "hello of .*" out | tr "\n" " ")" = "hello of 0 hello of 1 hello of 2 "; } &&
    wait_until "all have said it" said && idtree dmesg -r 1 | grep "hello of 1" && ! idtree dmesg -r 1 | grep "hello of 2" &&
    idtree dmesg -C -r all && idtree dmesg -r all >out && ! grep hello out &&
    test_expect_code 2 idtree dmesg -f -r 0-1 2>err && grep "follows the log of one rank" err
'
test_expect_success 'dmesg prints and clears the logs of the other ranks if one does not answer, and reports that rank at the end' '
    for r in 0 1 4; do idtree logger -s debug --uri "$(dirname "$IDTREE_URI")/local-$r" "here is $r" || return 1; done &&
    logged() { idtree dmesg -r 0,1,4 >out && test "$(grep -c "here is" out)" = 3; } && wait_until "all have said it" logged &&
    printed() { test_expect_code 1 idtree dmesg --timeout 1 -r all >out 2>err && test "$(grep -c "here is" out)" = 3; } &&
    idtree startctl kill 3 && idtree startctl stop 2 && wait_until "the others are printed" printed; idtree startctl cont 2; cat out err &&
    test "$(grep -o "here is .*" out | tr "\n" " ")" = "here is 0 here is 1 here is 4 " && test "$(wc -l <err)" = 2 &&
    grep "^idtree dmesg: of ranks 2: no answer" err && grep "^idtree dmesg: of ranks 3: rank 3 is not connected" err &&
    test_expect_code 1 idtree dmesg -C -r 3,4 2>err && grep "of ranks 3: " err && idtree dmesg -r 0-2,4 >out && test "$(grep -c "here is" out)" = 2 &&
    idtree startctl run 3
'
test_expect_success 'an argument that is not a set of ranks is refused' '
    for r in x 3- 3,,4 "" "[]" 7-3; do
        test_expect_code 2 idtree module stats -r "$r" fluid 2>err && cat err || return 1
    done &&
    test_expect_code 1 idtree module stats -r 3-5 fluid 2>err && grep "no rank 5: the instance has ranks 0 to 4" err
'
test_done
