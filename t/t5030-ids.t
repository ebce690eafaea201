#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5030-ids.t - ids from every rank of a tree in which only some ranks own generators
test_description='clients of every rank get ids, and no id is issued twice'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 13 --topology kary:3 -o fluid.max-generators=5

# The generators that made the ids on stdin, as a list. The generator of a FLUID is the 14 bits above its last 10.
generators() { idtree id convert --to dec - | awk '{ print int($1 / 1024) % 16384 }' | sort -nu; }

test_expect_success 'id new prints one id in F58' '
    idtree id new >one && test "$(wc -l <one)" = 1 && grep -E "^f[1-9A-HJ-NP-Za-km-z]+$" one
'
test_expect_success 'a hundred ids from each rank are distinct, and have only generators 0 to 4' '
    for rank in $(seq 0 12); do idtree id new --rank $rank -n 100 || return 1; done >ids &&
    test "$(sort -u ids | wc -l)" = 1300 && test "$(generators <ids | tail -n 1)" -le 4
'
# A rank that waits for its first lease, or for a late one, forwards what it is asked.
test_expect_success 'ranks 0 to 4 come to use their own generators' '
    for rank in $(seq 0 4); do wait_active $rank && idtree id new -r $rank; done | generators >got && seq 0 4 | test_cmp - got
'
test_expect_success 'ids that all ranks request at the same time are distinct' '
    for rank in $(seq 0 12); do idtree id new --rank $rank -n 20000 >ids.$rank & done && wait &&
    cat ids.* >ids && test "$(wc -l <ids)" = 260000 && test "$(sort -u ids | wc -l)" = 260000 &&
    test "$(generators <ids | tail -n 1)" -le 4
'
test_expect_success 'the ids of one connection increase' '
    idtree id new -n 200000 --to hex >ids && test "$(wc -l <ids)" = 200000 &&
    idtree id convert --to dothex - <ids | sort -cu
'
test_expect_success 'id new prints each form as a column, and -g adds the generator' '
    idtree id new -r 12 -g --to dec --to f58 --to words --to emoji >out &&
    IFS="$(printf "\t")" read -r dec f58 words emoji generator <out &&
    for text in "$f58" "$words" "$emoji"; do
        test "$(idtree id convert --to dec "$text")" = "$dec" || return 1
    done && test "$(idtree id show --json $dec | sed "s/.*\"generator\":\([0-9]*\).*/\1/")" = "$generator" &&
    test "$generator" -le 4
'
test_expect_success 'id new --json prints objects with strings' '
    idtree id new -n 2 --json -g --to dec --to f58 >out && test "$(wc -l <out)" = 2 &&
    grep -E "^\{\"dec\":\"[0-9]+\",\"f58\":\"f[^\"]+\",\"generator\":0\}$" out
'
test_expect_success 'id show prints the date of an id by the epoch of the instance' '
    before=$(date -u +%Y-%m-%dT%H:%M) && idtree id new >id && after=$(date -u +%Y-%m-%dT%H:%M) &&
    idtree id show $(cat id) | grep "^date  *\($before\|$after\)"
'
test_expect_success 'id new for a rank that does not exist is an error' '
    test_expect_code 1 idtree id new --rank 13 2>err && grep "there is no rank 13" err
'
test_done
