#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2042-document-crowds.t - the largest number of documents, and many clients that join a large document
test_description='an instance has compressor.max-documents documents, and many clients get a large document in pieces'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 2 -o broker.modules=fluid,compressor -o compressor.max-documents=1027 -o tbon.timeout=5m -o compressor.timeout=5m

crowd() { "$IDTREE_BUILDDIR/t/document-crowd" "$@" </dev/null; }
ask() { "$IDTREE_BUILDDIR/t/ask" "$@" </dev/null; }

test_expect_success 'a large document is sent in pieces, and all clients that join it get the same form' '
    crowd make big 40000 && ask 1 compressor.join "{\"document\":\"big\"}" >piece && grep "\"size\":1280[0-9]*}" piece &&
    idtree doc export big >form && test "$(wc -c <form)" -gt 1280000 &&
    idtree doc open -r 1 big && idtree doc ids -u -r 1 big >id && read -r id uuid <id &&
    idtree doc open big && wait_until "rank 0 knows the id, too" holds "idtree id show --json $id | grep -q $uuid" &&
    idtree doc export big >again && test "$(wc -c <again)" -gt "$(wc -c <form)" && idtree doc import big2 again &&
    idtree doc export big2 | cmp - again
'
test_expect_success 'a request for a piece of a form that is no longer kept, or for an invalid piece, is refused with a message' '
    uuid=$(sed "s/.*\"uuid\":\"\([^\"]*\).*/\1/" piece) &&
    state() { test_must_fail ask 1 compressor.state "{\"document\":\"big\",\"uuid\":\"$uuid\",\"seq\":$1,\"offset\":$2}" 2>err && cat err; } &&
    state 1000 4 && grep "EAGAIN: .*begin again" err && state 0 3 && grep "EINVAL: offset=3" err && state 0 4000000 && grep -E "EINVAL|EAGAIN" err &&
    state 0 -4 && grep "EINVAL: offset=-4" err
'
# The number of forms that rank 0 has made, and its peak memory in KiB.
forms() { ask 0 compressor.stats-get | sed 's/.*"forms":\([0-9]*\).*/\1/'; }
peak() { awk '/^VmHWM/ { print $2 }' "/proc/$(idtree getattr broker.pid)/status"; }

test_expect_success 'rank 0 makes the form of a document once for many concurrent joins, while another document continues' '
    idtree doc open d0 && crowd make many 40000 && forms=$(forms) && before=$(peak) && crowd join many 30 d0 &&
    after=$(peak) && echo "$before $after" && test $(($(forms) - forms)) = 1
'
# A sanitizer keeps freed memory.
if ! is_sanitized; then
    test_expect_success 'rank 0 keeps the form of a document in memory once' '
        test $((after - before)) -lt 32768
    '
fi
test_expect_success 'a rank can open as many documents as the limit allows, and no more' '
    (IDTREE_URI=${IDTREE_URI%0}1 && crowd rank 1024) &&
    test_must_fail idtree doc open -r 1 more 2>err && grep "compressor.max-documents" err
'
test_expect_success 'a handle can open as many documents as a rank' '
    (IDTREE_URI=${IDTREE_URI%0}1 && crowd handle 1024)
'
test_done
