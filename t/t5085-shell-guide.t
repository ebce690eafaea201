#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5085-shell-guide.t - the commands of the guide for the shell work when they are copied and pasted
test_description='the commands in the guide for the shell work'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs bash jq
test_under_idtree 4 --topology kary:2

# The command blocks of a section of the guide.
blocks() { # title
    sed -n "/^## $1\$/,/^## /p" "$IDTREE_SRCDIR/doc/guide/shell.md" | sed -n '/^```sh$/,/^```$/p' | grep -v '^```'
}
paste() { # title
    blocks "$1" >pasted && test -s pasted && bash -e -o pipefail pasted >out 2>err && cat out && test_must_be_empty err
}

test_expect_success 'the commands in the guide for one id and for many ids work' 'paste "One id, or many" && grep "^f58 " out'
test_expect_success 'the commands in the guide for a stream of ids work' '
    paste "Ids all the time" && test "$(wc -w <out)" = 11 && test "$(tr " \t" "\n\n" <out | grep -c "^f")" = 8 &&
    grep -E "^f[A-Za-z0-9]+	green$" out
'
test_expect_success 'the commands in the guide for JSON work' '
    idtree logger -s warning mind the gap && paste "For programs: JSON" && grep "^4 ranks since 20.*Z, full$" out &&
    grep "^3 full active$" out && grep "^mind the gap$" out
'
test_expect_success 'the commands in the guide that watch an instance work' 'paste "To watch an instance" && grep "^\[[0-9.]*,\[\]\]$" out'
test_done
