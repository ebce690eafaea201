#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t8010-chaos.t - a minute of chaos; make chaos runs it for any length of time
test_description='no id is made twice, whatever happens to brokers, links, clocks and disks'
. "$(dirname "$0")/idtree-sharness.sh"

chaos=$IDTREE_BUILDDIR/t/chaos/chaos
TMPDIR=/tmp/idtree-t8010.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"

nothing_left() { test_nothing_in "$TMPDIR"; }

test_expect_success 'two plans of faults with the same seed are the same' '
    "$chaos" --plan --seed 7 --steps 100 >one && "$chaos" --plan --seed 7 --steps 100 >two &&
    test $(wc -l <one) = 100 && test_cmp one two &&
    "$chaos" --plan --seed 8 --steps 100 >three && ! cmp -s one three
'
test_expect_success 'invalid options of the chaos test are refused with exit status 2 before anything starts' '
    for option in --size=0 --size=65 --lease=0 --seed=x --faults=none --faults= --end=x --nosuch operand; do
        test_expect_code 2 "$chaos" $option 2>err || return 1
    done && nothing_left
'
# Each fault was injected, and had its effect.
each_happened() {
    for fault in kill term tune stop starve pause reload cut reset corrupt slow clock boot files memory liar greedy deaf flood twin \
        disk-full disk-broken disk-frozen crash restart; do
        grep "^faults:.* $fault [1-9]" out >/dev/null || { echo "# no $fault" >&5; return 1; }
    done && grep "^twins: [1-9]" out && grep "^links: .* [1-9][0-9]* bits turned over, [1-9][0-9]* pauses" out &&
    grep "^others: [1-9][0-9]* rogues, [1-9][0-9]* limits, [1-9][0-9]* brokers ended in order$" out
}
test_expect_success 'under faults of each kind no id is made twice and no rule is violated' '
    "$chaos" --seed "${CHAOS_SEED:-1}" --steps "${CHAOS_STEPS:-120}" >out; status=$?
    sed "s/^/# /" out >&5
    test $status = 0 && grep "^duplicates: 0$" out && each_happened && nothing_left
'
test_expect_success 'before, across and after the end of the time of ids no rule is violated' '
    "$chaos" --seed 5 --steps 24 --end 60s --faults kill,clock,crash,restart >out; status=$?
    sed "s/^/# /" out >&5
    test $status = 0 && grep "^duplicates: 0$" out && grep "^requests: .* [1-9][0-9]* answered, [1-9][0-9]* refused" out &&
    nothing_left
'
test_expect_success 'no rule is violated where ranks without a generator hold parts' '
    "$chaos" --seed 3 --steps 24 --share 16 --max-generators 2 --faults kill,stop,pause,reload,cut,clock >out; status=$?
    sed "s/^/# /" out >&5
    test $status = 0 && grep "^duplicates: 0$" out && grep "^chaos: .* share 16$" out && nothing_left
'
test_expect_success 'no rule is violated where each rank has three generators' '
    "$chaos" --seed 4 --steps 24 --lanes 3 --faults kill,stop,pause,reload,cut,clock >out; status=$?
    sed "s/^/# /" out >&5
    test $status = 0 && grep "^duplicates: 0$" out && grep "^chaos: .*, 3 lanes," out && nothing_left
'
# Run chaos until it has killed a broker.
launch_chaos() {
    rm -f said && mkfifo said && exec 6<>said && test_launch "$chaos" --duration 1h -v 2>said >out &&
    wait_until "a broker is killed" holds "wait_line 6 | grep -q \": kill\""
}
test_expect_success 'SIGINT to the chaos test ends the faults, repairs everything, and prints the verdict' '
    launch_chaos && kill -INT $test_pid && test_all_gone && grep "^duplicates: 0$" out && grep "^passed" out &&
    nothing_left
'
test_expect_success 'kill -9 of the chaos test that the user started leaves nothing behind' '
    launch_chaos && kill -KILL $test_pid && test_all_gone && nothing_left
'
test_expect_success 'kill -9 of the child of the chaos test that injects the faults leaves nothing behind' '
    launch_chaos && kill -KILL $(pgrep -P $test_pid) && test_all_gone && nothing_left
'
test_done
