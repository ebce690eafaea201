#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5073-http-framing.t - the end of an HTTP request and its host can be read in one way only
test_description='idtree-http reads the same requests from a connection as any proxy in front of it'
. "$(dirname "$0")/idtree-sharness.sh"
http=$IDTREE_BUILDDIR/src/http/idtree-http
if ! test -x "$http" || ! command -v python3 >/dev/null; then
    skip_all='idtree-http is not built, or python3 is not installed'
    test_done
fi
test_under_idtree 1 -o log-stderr-level=2

. "$IDTREE_SRCDIR/t/http.sh"

test_expect_success 'each request in the table of RFC 9112 is served or refused as its row says, in one piece and byte by byte' '
    start_http -l 127.0.0.1:0 && python3 "$IDTREE_SRCDIR/t/http_rfc9112.py" "$url" && stop_http
'
test_done
