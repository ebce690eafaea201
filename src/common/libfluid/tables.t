#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# tables.t - the tables in the tree equal the output of scripts/gen-fluid-tables
src=${IDTREE_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}
emoji=/usr/share/unicode/emoji/emoji-test.txt

# check NUMBER words|emoji
check() {
    if "$src/scripts/gen-fluid-tables" "$2" | cmp - "$src/src/common/libfluid/$2_table.h" >&2; then
        echo "ok $1 - the table of $2 equals the output of the script"
    else
        echo "not ok $1 - the table of $2 equals the output of the script"
    fi
}

echo 1..2
if ! python3 -c '' 2>/dev/null; then
    echo "ok 1 - words # SKIP there is no python3"
    echo "ok 2 - emoji # SKIP there is no python3"
    exit 0
fi
check 1 words
if [ ! -r $emoji ]; then
    echo "ok 2 - emoji # SKIP there is no $emoji (package unicode-data)"
elif ! grep -q '^# Version: 15\.0' $emoji; then
    echo "ok 2 - emoji # SKIP $emoji is not version 15.0"
else
    check 2 emoji
fi
