#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5101-trace-limits.t - who traces and does not read, asks for nonsense, or goes, hurts nobody
test_description='traces have bounds'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs python3
test_under_idtree 2

test_expect_success 'a slow tracer loses lines, is told how many, and goes on' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" slow
'
test_expect_success 'of a rank that is not its own, too' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" far
'
test_expect_success 'one that gives no window and never reads costs no more than one' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" deaf
'
test_expect_success 'nonsense is refused with a sentence' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" nonsense
'
test_expect_success 'there are so many tracers and no more; who goes makes room' '
    python3 "$IDTREE_SRCDIR/t/trace_client.py" many
'
test_expect_success 'what others send is text on a terminal, and no line of its own' '
    { idtree trace --count 1 -t request --full "*rude" >out 2>err </dev/null & } && tracer=$! &&
    shown() { python3 "$IDTREE_SRCDIR/t/trace_client.py" rude; test -s out; } && wait_until "it is shown" shown && wait $tracer && cat -v out &&
    python3 -c "lines = open(\"out\", encoding=\"utf-8\").read().split(\"\\n\"); assert len(lines) == 3 and all(l.isprintable() for l in lines), lines"
'
test_done
