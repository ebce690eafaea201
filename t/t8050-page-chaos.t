#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t8050-page-chaos.t - processes that share pages with brokers are killed at any instruction, and so are the brokers
test_description='ids made through pages are unique and in order, even if processes are killed or stopped and modules reloaded'
. "$(dirname "$0")/idtree-sharness.sh"

STORM="$IDTREE_BUILDDIR/t/chaos/pagestorm"

test_expect_success 'three million ids that eight processes make through the pages of four ranks are unique and in order' '
    idtree start -s 4 --topology kary:2 -o fluid.lease=2s "$STORM" 4 3000000 1 </dev/null >out 2>err || { cat out err; false; } &&
    cat out && grep "\"twice\":0,\"disorder\":0,\"beyond\":0" out
'
test_expect_success 'wrong arguments of the page test are refused with a usage message' '
    test_expect_code 2 env IDTREE_URI=local:///x/local-0 "$STORM" 17 1 1 2>err && grep "^usage: " err
'
test_done
