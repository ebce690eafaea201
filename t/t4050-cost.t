#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4050-cost.t - the messages and commits that leases need at rank 0, counted
#
# A lease is renewed when a third of it has passed, and the horizon is raised when half of one has. The test uses the
# time of the instance. Brokers ask again when a busy machine makes answers late, so the test looks at several spans of
# time. One span with the expected counts is enough, and there would be none if each rank asked for itself.
test_description='leases need one message for each child and renewal at rank 0, and two commits in the length of a lease'
. "$(dirname "$0")/idtree-sharness.sh"

if is_sanitized; then
    skip_all='a sanitizer makes answers late'
    test_done
fi

LEASE=2000
LEASES=3 # to be counted
SPANS=6

cat >count.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
counter() { idtree module stats --json fluid | sed "s/.*\"$1\": *\([0-9]*\).*/\1/"; }
time_ms() { idtree info | awk '$2 == "timestamp_ms" { print $3 }'; }
pass_until() { wait_until "it is $1 ms" holds "test \"\$(time_ms)\" -ge $1"; }

generates() { idtree id new -r $1 -g | grep -q "	$1\$"; }
as_it_should_be() {
    begin=$(time_ms) && idtree module stats --clear fluid && pass_until $((begin + LEASES * LEASE)) &&
    messages=$(counter lease_messages) stores=$(counter stores) && passed=$(($(time_ms) - begin)) &&
    echo "$1 ranks, $passed ms: $messages messages of 2 children, $stores commits" &&
    test $messages -ge $((2 * passed / LEASE)) && test $stores -ge $((passed / LEASE)) &&
    test $messages -le $((2 * 3 * passed / LEASE + 2)) && test $stores -le $((2 * passed / LEASE + 1))
}
for r in $(seq 0 $(($1 - 1))); do wait_until "rank $r makes ids" generates $r || exit 1; done &&
pass_until $(($(time_ms) + 2 * LEASE)) || exit 1
for i in $(seq $SPANS); do as_it_should_be $1 && exit 0; done
# On a machine that was busy in every span, renewals of a subtree are combined less well: a third of what its ranks would
# send by themselves is still out of reach if they do.
test $stores -le $((2 * passed / LEASE + 1)) && test $((3 * messages)) -le $((($1 - 1) * 3 * passed / LEASE))
END
export LEASE LEASES SPANS

for size in 3 7 15; do
    test_expect_success "rank 0 of $size ranks gets few lease messages from its two children, and commits twice in the length of a lease at most" "
        idtree start -s $size --topology kary:2 -o fluid.lease=${LEASE}ms sh count.sh $size
    "
done
test_done
