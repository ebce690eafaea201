#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t8020-document-chaos.t - a short chaos test of documents; make chaos-documents runs it for any length of time
test_description='whatever happens to brokers, links and disks, all ranks agree on a document and no id changes'
. "$(dirname "$0")/idtree-sharness.sh"

TMPDIR=/tmp/idtree-t8020.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"

test_expect_success 'under faults of each kind sessions of ranks and of clients agree on a document, and no id changes' '
    "$IDTREE_BUILDDIR/t/chaos/chaos" --documents --seed "${CHAOS_SEED:-1}" --steps "${CHAOS_STEPS:-36}" >out
    status=$?; cat out; test $status = 0 && test "$(grep -c "^all agree$" out)" = 2 && test_nothing_in "$TMPDIR"
'
test_done
