#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# mutants.t - the source still contains the code that the edits of mutants.sh change
IDTREE_SRCDIR=${IDTREE_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}
export IDTREE_SRCDIR

echo 1..1
if sh "$IDTREE_SRCDIR/t/mutants.sh" --apply >&2; then
    echo "ok 1 - each edit of mutants.sh changes the source"
else
    echo "not ok 1 - each edit of mutants.sh changes the source"
fi
