#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5083-json.t - the --json output of commands matches etc/schema
test_description='the JSON of commands matches its schemas'
. "$(dirname "$0")/idtree-sharness.sh"
if ! python3 -c "import jsonschema" 2>/dev/null; then
    skip_all='python3-jsonschema is not installed'
    test_done
fi
test_under_idtree 3 --topology kary:2 -o broker.modules=fluid,flake,compressor,job-ingest -o log-level=7

test_expect_success 'each command prints JSON that matches its schema, and the schema describes each key' '
    python3 "$IDTREE_SRCDIR/t/json_schemas.py" >out 2>&1 || { cat out; return 1; }
'
test_done
