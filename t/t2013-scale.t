#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2013-scale.t - what make check-scale does with thousands of brokers, done with hundreds
test_description='hundreds of brokers in a few processes make ids while a parent and a process are killed, and under faults and load'
. "$(dirname "$0")/idtree-sharness.sh"

# Both scripts work in the build folder.
scale() { (cd "$IDTREE_BUILDDIR" && "$IDTREE_SRCDIR/scripts/check-scale" -j "$@" </dev/null); }
chaos() { (cd "$IDTREE_BUILDDIR" && "$IDTREE_SRCDIR/scripts/chaos-scale" "$@" </dev/null); }

# A sanitizer finds the same errors with fewer brokers.
part=1
is_sanitized && part=4

test_expect_success '300 brokers run, and 250 of them have a generator' '
    own=$((250 / part)) && scale -s $((300 / part)) -g $own -t kary:4 >out && cat out && grep "\"scale\":\"100 ids of each rank\",.*\"own\":$own," out
'
test_expect_success 'hundreds of brokers run over inproc, and idle ranks hold parts' '
    idle=$((40 / part)) && scale -s $((100 / part)) -g $((100 / part - idle)) -t kary:4 -- -o tbon.transport=inproc -o fluid.share=16 >out && cat out &&
    grep "\"scale\":\"idle ranks that hold parts in the end\",.*\"value\":$idle," out
'
test_expect_success 'an active parent receives few messages, however many ids its descendants request at the same time' '
    scale -m 50000 -s 500 -t kary:4
'
test_expect_success 'single brokers and whole processes fail under load' '
    chaos -s 100 -p 10 -d 5 && ! chaos -s 100 -p 10 -d 0 -- -o fluid.lease=nonsense
'
test_expect_success 'brokers fail under load in an instance where most ranks have no generator and hold parts' '
    chaos -s 100 -g 30 -p 10 -d 5 -- -o fluid.share=16
'
test_done
