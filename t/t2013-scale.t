#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2013-scale.t - what make check-scale does with thousands of brokers, with hundreds
test_description='hundreds of brokers in a few processes: ids of all, a parent and a process are killed, faults under load'
. "$(dirname "$0")/idtree-sharness.sh"

# Both work in the folder of the build.
scale() { (cd "$IDTREE_BUILDDIR" && "$IDTREE_SRCDIR/scripts/check-scale" -j "$@" </dev/null); }
chaos() { (cd "$IDTREE_BUILDDIR" && "$IDTREE_SRCDIR/scripts/chaos-scale" "$@" </dev/null); }

# A sanitizer finds what it finds with fewer brokers, too.
part=1
is_sanitized && part=4

test_expect_success '300 brokers, 250 of which have a generator' '
    own=$((250 / part)) && scale -s $((300 / part)) -g $own -t kary:4 >out && cat out && grep "\"scale\":\"100 ids of each rank\",.*\"own\":$own," out
'
test_expect_success 'so over inproc, and where idle ranks borrow' '
    idle=$((40 / part)) && scale -s $((100 / part)) -g $((100 / part - idle)) -t kary:4 -- -o tbon.transport=inproc -o fluid.share=16 >out && cat out &&
    grep "\"scale\":\"idle ranks that borrow in the end\",.*\"value\":$idle," out
'
test_expect_success 'messages at an active parent are few, however much those below it ask, and at once' '
    scale -m 50000 -s 500 -t kary:4
'
test_expect_success 'faults of single brokers and of processes, under load' '
    chaos -s 100 -p 10 -d 5 && ! chaos -s 100 -p 10 -d 0 -- -o fluid.lease=nonsense
'
test_expect_success 'so where most have no generator, and borrow' '
    chaos -s 100 -g 30 -p 10 -d 5 -- -o fluid.share=16
'
test_done
