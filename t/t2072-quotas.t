#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2072-quotas.t - limits are per user, however many connections a user has (doc/design/limits.md)
test_description='each quota counts all connections of a user, and when it is used up the instance owner is still served'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs python3

client="python3 $IDTREE_SRCDIR/t/quota_client.py"
run() { # option..., command...
    idtree start -s 2 -o log-stderr-level=0 -o tbon.timeout=1h "$@" </dev/null
}

test_expect_success 'subscriptions to events are limited per user' 'run -o broker.modules=fluid $client subscriptions'
test_expect_success 'followers of the health are limited per user' 'run -o broker.modules=fluid $client followers'
test_expect_success 'reductions under way are limited per user' 'run -o broker.modules=fluid $client surveys'
test_expect_success 'requests with a trace are limited per user' '
    run -o broker.modules=fluid -o fluid.max-generators=1 -o fluid.share=off -o fluid.forward-timeout=1h $client traces
'
test_expect_success 'waiting requests for ids are limited per user' '
    run -o broker.modules=fluid -o fluid.max-generators=1 -o fluid.share=off -o fluid.forward-timeout=1h \
        -o fluid.max-waiting=64 $client waiting
'
test_expect_success 'waiting requests for the watermark are limited per user' '
    run -o broker.modules=fluid -o fluid.max-waiting=64 $client watermarks
'
test_expect_success 'waiting reads of stored jobs are limited per user' '
    init_state state && head -c 520 /dev/zero >page && env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" \
        CHAOS_PAGE="$PWD/page" CHAOS_STATE="$PWD/state" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree start -s 1 -o log-stderr-level=0 -o broker.modules=fluid,job-ingest -o ingest.require-signature=off \
        -o ingest.timeout=1h -o statedir="$PWD/state" env -u LD_PRELOAD $client reads </dev/null
'
test_expect_success 'waiting submissions are limited per user' '
    run -o broker.modules=job-ingest -o ingest.require-signature=off -o ingest.allow-guests=on -o ingest.max-waiting=64 \
        -o ingest.timeout=1h $client submissions
'
test_done
