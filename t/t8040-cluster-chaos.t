#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t8040-cluster-chaos.t - a few faults in a configured instance; make chaos-cluster injects any number of them
test_description='hosts are killed, cut off and replaced: no id is issued twice, and all ranks return'
. "$(dirname "$0")/idtree-sharness.sh"

chaos=$IDTREE_SRCDIR/t/chaos-cluster.sh
skip_all=$(N=0 SPARES=0 && . "$IDTREE_SRCDIR/t/hosts.sh" && hosts_lack)
test -z "$skip_all" || test_done
TMPDIR=/tmp/idtree-t8040.$$
mkdir -m 700 "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"

test_expect_success 'invalid options of the cluster test are refused with exit status 2' '
    for option in -n1 -nx -d0 -dsoon -sx -rx -x operand; do
        test_expect_code 2 "$chaos" $option 2>err </dev/null && grep usage err || return 1
    done
'
test_expect_success 'under faults each host returns, and the ids are unique and in order' '
    sh -c "echo \$\$ >pid; exec \"\$@\"" sh "$chaos" -n 5 -s 24 -r "${CHAOS_SEED:-4}" -v >out 2>&1 </dev/null; status=$?
    sed "s/^/# /" out >&5
    test $status = 0 && grep "^ids [1-9].* disorder 0 duplicates 0$" out && grep "^24 steps: .*cut [1-9].*kill [1-9].*oust [1-9].*replace [1-9]" out
'
test_expect_success 'the cluster test leaves nothing behind' '
    ! ip netns list | grep "idtree-$(cat pid)-" && test_nothing_in "$TMPDIR"
'
test_done
