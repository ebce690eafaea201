#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2060-lanes.t - fluid.lanes: ranks with several generators
test_description='a rank with several generators uses all of them, in order, and none of another rank'
. "$(dirname "$0")/idtree-sharness.sh"

STATE=$PWD/state
init_state "$STATE" || exit 1

# field () prints one value that id show prints for each id of its input.
cat >lanes.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
field() { idtree id show --json - | sed "s/.*\"$1\": *\([0-9]*\).*/\1/"; }
wait_active 0 && wait_active 1 &&
for r in 0 1; do idtree id new -r $r -n 12000 >lanes.$r || exit 1; done &&
for r in 0 1; do
    sort -c -n lanes.$r && test "$(uniq lanes.$r | wc -l)" = 12000 && field generator <lanes.$r | sort -un >generators.$r &&
    test "$(field rank <lanes.$r | sort -u)" = $r || exit 1
done
END
test_expect_success 'each of two ranks has three generators' '
    idtree start -s 2 -o fluid.lanes=3 -o statedir="$STATE" sh lanes.sh &&
    printf "0\n2\n4\n" >want && test_cmp want generators.0 && printf "1\n3\n5\n" >want && test_cmp want generators.1
'
test_expect_success 'idtree info prints the number of lanes' '
    idtree start -s 2 -o fluid.lanes=3 sh -c "idtree info --json" >info && grep "\"lanes\": *3" info && grep "\"ranks\": *2" info
'
test_expect_success 'with one lane the generator number is the rank, and no output mentions lanes' '
    idtree start -s 2 sh -c "idtree info --json; idtree id new | idtree id show -" >info && test_must_fail grep -E "lanes|rank  " info
'
cat >other.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
for r in 0 1 2 3 4 5; do wait_active $r && idtree id new -r $r -n 3000 >other.$r || exit 1; done
END
test_expect_success 'an instance with another size and number of lanes on the same statedir repeats no id' '
    idtree start -s 6 -o statedir="$STATE" sh other.sh &&
    idtree start -s 3 -o fluid.lanes=2 -o statedir="$STATE" sh -c ". $IDTREE_SRCDIR/t/wait.sh; wait_active 2 &&
        idtree id new -r 2 -n 20000 >more" &&
    cat lanes.? other.? more >all && test "$(sort -u all | wc -l)" = "$(wc -l <all)" && test "$(wc -l <all)" = 62000
'
test_expect_success 'an instance that needs more generators than exist does not start' '
    test_must_fail idtree start -s 3 -o fluid.lanes=4 -o fluid.max-generators=11 touch started 2>err &&
    grep "fluid.lanes=4: 3 ranks with so many generators each need 12, but there are 11 (fluid.max-generators)" err &&
    test_must_fail idtree start -s 3 -o fluid.lanes=0 touch started 2>err && grep fluid.lanes err && test ! -e started
'
test_done
