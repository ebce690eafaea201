#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5067-openapi.t - etc/openapi.json describes what idtree-http serves
test_description='the OpenAPI file of idtree-http describes what idtree-http serves'
. "$(dirname "$0")/idtree-sharness.sh"
http=$IDTREE_BUILDDIR/src/http/idtree-http
if ! test -x "$http" || ! python3 -c "import jsonschema" 2>/dev/null; then
    skip_all='idtree-http is not built, or python3-jsonschema is not installed'
    test_done
fi
test_under_idtree 3 --topology kary:2 -o log-stderr-level=2
. "$IDTREE_SRCDIR/t/http.sh"

test_expect_success 'each path of idtree-http responds as the OpenAPI file says, and no other path is served' '
    start_http -l 127.0.0.1:0 --rate 50000 --show-log &&
    python3 "$IDTREE_SRCDIR/t/http_openapi.py" "$url" "$IDTREE_SRCDIR/src/http/site.c" >out 2>&1 || { cat out; return 1; }
'
test_done
