#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t8030-ingest-chaos.t - a short chaos test of jobs; make chaos-ingest runs it for any length of time
test_description='whatever happens to brokers, links, disks, submitters and consumers, each job is stored once and in order'
. "$(dirname "$0")/idtree-sharness.sh"

TMPDIR=/tmp/idtree-t8030.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"

test_expect_success 'under faults of each kind, each accepted job is stored once, and no refused job is stored' '
    "$IDTREE_BUILDDIR/t/chaos/chaos" --jobs --size 5 --seed "${CHAOS_SEED:-1}" --steps "${CHAOS_STEPS:-20}" >out
    status=$?; sed "s/^/# /" out >&5; test $status = 0 && grep "^wrong: 0$" out && grep "^jobs: [1-9]" out &&
    test_nothing_in "$TMPDIR"
'
test_done
