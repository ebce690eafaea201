#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5101-trace-limits.t - traces that do not read, send invalid requests, or leave disturb no other client
test_description='traces are limited in number and memory'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs python3
test_under_idtree 2

test_expect_success 'a slow trace loses lines, prints how many were lost, and continues' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" slow
'
test_expect_success 'a slow trace of another rank loses lines, prints how many, and continues' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" far
'
test_expect_success 'a trace without a window that is never read uses no more memory than others' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" deaf
'
test_expect_success 'invalid requests for traces are refused with a message' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" nonsense
'
test_expect_success 'the number of traces is limited, and when one trace ends another can begin' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" many
'
test_expect_success 'trace escapes control characters of other clients, and these add no line to the output' '
    { idtree trace --count 1 -t request --full "*rude" >out 2>err </dev/null & } && tracer=$! &&
    shown() { python3 "$IDTREE_SRCDIR/t/trace_client.py" rude; test -s out; } && wait_until "it is shown" shown && wait $tracer && cat -v out &&
    python3 -c "lines = open(\"out\", encoding=\"utf-8\").read().split(\"\\n\"); assert len(lines) == 3 and all(l.isprintable() for l in lines), lines"
'
test_done
