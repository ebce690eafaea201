#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t8060-standby-chaos.t - a few faults of candidates and their database; make chaos-standby injects any number of them
test_description='rank 0 and its database fail: no id is issued twice, and no job and no final id of a document is lost'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

# It runs t/idload, t/idcomp-load, t/document-load, t/jobs/jobload, and t/chaos/host.la.
chaos=$IDTREE_SRCDIR/t/chaos-standby.sh
skip_all=$(N=0 SPARES=0 && . "$IDTREE_SRCDIR/t/hosts.sh" && hosts_lack)$(pgs_lack)
test -z "$skip_all" || test_done
TMPDIR=/tmp/idtree-t8060.$$
mkdir -m 711 "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"

test_expect_success 'invalid options are refused with exit status 2' '
    for option in -d0 -dsoon -sx -rx -x operand; do
        test_expect_code 2 "$chaos" $option 2>err </dev/null && grep usage err || return 1
    done
'
test_expect_success 'under faults rank 0 moves between hosts, and ids, jobs and documents are as promised' '
    sh -c "echo \$\$ >pid; exec \"\$@\"" sh "$chaos" -s 24 -r "${CHAOS_SEED:-1}" -v >out 2>&1 </dev/null; status=$?
    sed "s/^/# /" out >&5
    test $status = 0 && grep "^takeovers [1-9]" out && grep "^ids [1-9].* disorder 0 duplicates 0$" out && test "$(grep -c "^all agree$" out)" = 2
'
test_expect_success 'the test leaves nothing behind' '
    ! ip netns list | grep "idtree-$(cat pid)-" && test_nothing_in "$TMPDIR"
'
test_done
