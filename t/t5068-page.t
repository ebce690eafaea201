#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5068-page.t - the live page, as a browser reads it
#
# PAGE_PICTURE=FILE: also make a picture of the page with a larger tree (make page-picture).

# A browser aborts its downloads when a network of its host changes, and concurrent tests change networks. So this test
# has a network namespace of its own.
if test -z "$TEST_OWN_NETWORK" && unshare -n ip link set lo up 2>/dev/null; then
    TEST_OWN_NETWORK=1
    export TEST_OWN_NETWORK
    exec unshare -n /bin/sh -c 'ip link set lo up && exec /bin/sh "$0" "$@"' "$0" "$@"
fi
test_description='the live page shows the tree, and a subtree that finds another parent'
. "$(dirname "$0")/idtree-sharness.sh"
http=$IDTREE_BUILDDIR/src/http/idtree-http
if ! test -x "$http" || ! command -v python3 >/dev/null; then
    skip_all='idtree-http is not built, or python3 is not installed'
    test_done
fi
if ! command -v chromium-headless-shell >/dev/null && ! command -v chromium >/dev/null; then
    skip_all='chromium-headless-shell is not installed, nor is chromium'
    test_done
fi
: "${PAGE_RANKS:=7}"
export PAGE_RANKS
test_under_idtree "$PAGE_RANKS" --topology kary:2 -o log-stderr-level=2 -o fluid.max-generators=4

. "$IDTREE_SRCDIR/t/http.sh"
read_page() { # story
    timeout $((2 * WAIT_S)) python3 "$IDTREE_SRCDIR/t/page_read.py" "$url/" "$1" >out 2>&1 </dev/null
    page_status=$?
    cat out
    test $page_status = 0
}

test_expect_success 'the live page folds thousands of ranks by subtree, and keys move the selection between subtrees' '
    start_http -l 127.0.0.1:0 --show-log && read_page large
'
test_expect_success 'the live page fills the window with the tree, keeps the first rank visible, has a list on a narrow screen, and says what it waits for' 'read_page layout'
test_expect_success 'the live page asks for the token that idtree-http needs' 'read_page token'
test_expect_success 'after a rank is killed, the live page shows its subtree attach to another parent' 'read_page live'
test_done
