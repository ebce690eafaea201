#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5085-shell-guide.t - what the guide for the shell says can be copied and pasted
test_description='the guide for the shell'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs bash jq
test_under_idtree 4 --topology kary:2

# The blocks of a section, as they stand there.
blocks() { # title
    sed -n "/^## $1\$/,/^## /p" "$IDTREE_SRCDIR/doc/guide/shell.md" | sed -n '/^```sh$/,/^```$/p' | grep -v '^```'
}
paste() { # title
    blocks "$1" >pasted && test -s pasted && bash -e -o pipefail pasted >out 2>err && cat out && test_must_be_empty err
}

test_expect_success 'one id, or many' 'paste "One id, or many" && grep "^f58 " out'
test_expect_success 'ids all the time' '
    paste "Ids all the time" && test "$(wc -w <out)" = 11 && test "$(tr " \t" "\n\n" <out | grep -c "^f")" = 8 &&
    grep -E "^f[A-Za-z0-9]+	green$" out
'
test_expect_success 'JSON' '
    idtree logger -s warning mind the gap && paste "For programs: JSON" && grep "^4 ranks since 20.*Z, full$" out &&
    grep "^3 full active$" out && grep "^mind the gap$" out
'
test_expect_success 'to watch an instance' 'paste "To watch an instance" && grep "^\[[0-9.]*,\[\]\]$" out'
test_done
