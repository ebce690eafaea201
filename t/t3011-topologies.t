#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3011-topologies.t - a tree of each shape: parents, ids, routes, events, and the death of a rank
test_description='in each topology ranks join, make ids, reach each other, and reattach'
. "$(dirname "$0")/idtree-sharness.sh"

SIZE=12
export SIZE
all=$(seq 0 $((SIZE - 1)))

# Checks for every tree. $PARENTS are the parents of ranks 1, 2, ...
cat >each.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
all=$(seq 0 $((SIZE - 1)))
uri_of() { echo "${IDTREE_URI%0}$1"; }
fail() { echo "$*" >&2; exit 1; }
parent_of() { set -- $1 $PARENTS; shift $1; echo $1; }
children_of() { rank=0; for parent in $PARENTS; do rank=$((rank + 1)); test $parent != $1 || echo $rank; done; }

# Ranks that are there make ids, all different, and reach each other.
ids() { # rank...
    for rank; do idtree id new -r $rank -n 200 || fail "no ids from $rank"; done >ids
    test "$(sort -u ids | wc -l)" = $(($# * 200)) || fail "ids came twice"
}
ways() { # rank...
    last=0
    for rank; do
        idtree ping --uri "$(uri_of $last)" -c 1 $rank >/dev/null && idtree ping --uri "$(uri_of $rank)" -c 1 0 >/dev/null ||
            fail "no way from $last to $rank to 0"
        last=$rank
    done
}
# What the last of them publishes comes to all.
events() { # rank...
    pids=
    for rank; do
        idtree event sub --uri "$(uri_of $rank)" -c 3 shape. >events.$rank & pids="$pids $!"
        wait_subscribers $rank 1 || fail "rank $rank does not listen"
    done
    for i in 1 2 3; do idtree event pub --uri "$(uri_of $rank)" shape.$i || fail "rank $rank cannot publish"; done
    for pid in $pids; do wait $pid || fail "an event is missing"; done
    for rank; do test "$(cut -f1 events.$rank | tr "\n" " ")" = "shape.1 shape.2 shape.3 " || fail "rank $rank got others"; done
}
works() { ids "$@" && ways "$@" && events "$@"; }
attached() { # rank...
    for rank; do wait_attached $rank $(parent_of $rank) || fail "rank $rank is not where it belongs"; done
}

# Who let go of an adopted child may not know yet that it has gone.
nobody_adopted() { idtree module stats --json -r $1 overlay | grep -q "\"adopted\": *0"; }

attached $(seq 1 $((SIZE - 1))) && works $all
for gone in $KILL; do
    idtree startctl kill $gone || fail "no rank $gone"
    left=$(seq 0 $((SIZE - 1)) | grep -vx $gone)
    for child in $(children_of $gone); do
        wait_attached $child $(parent_of $gone) || fail "rank $child does not go to its grandparent"
        attached $(children_of $child)
    done
    works $left
    idtree startctl run $gone && attached $gone $(children_of $gone) &&
        wait_until "all are where they belong" nobody_adopted $(parent_of $gone) && ways $all
done
END
# With only three generators leaves are idle, and get their ids from above.
shape() { # parents, to be killed in turn, topology
    PARENTS=$1 KILL=$2 idtree start -s $SIZE --topology "$3" -o fluid.max-generators=3 sh each.sh
}

test_expect_success 'kary:3: ranks join, make ids, reach each other, and reattach' '
    shape "0 0 0 1 1 1 2 2 2 3 3" 1 kary:3
'
test_expect_success 'mincrit: in a tree as small as this one all ranks are children of rank 0' '
    shape "0 0 0 0 0 0 0 0 0 0 0" 11 mincrit
'
test_expect_success 'mincrit:2: rank 0 has two routers, and leaves alternate between them' '
    shape "0 0 1 2 1 2 1 2 1 2 1" 1 mincrit:2
'
test_expect_success 'binomial: ranks join, make ids, reach each other, and reattach' '
    shape "0 0 2 0 4 4 6 0 8 8 10" "6 8" binomial
'
# Parents have higher numbers than their children, and some ranks in between are idle.
cat >tree.json <<'END'
[null, 5, 5, 1, 1, 0, 11,
 6, 6, 0, 9, 0]
END
test_expect_success 'custom: a file may describe any tree' '
    shape "5 5 1 1 0 11 6 6 0 9 0" "5 6" "custom:$PWD/tree.json"
'
test_expect_success 'custom: each broker returns the topology that it was given, and its place in the tree' '
    idtree start -s $SIZE --topology custom:tree.json sh -c "
        idtree getattr -r 3 tbon.topo; idtree getattr -r 3 tbon.level; idtree getattr tbon.maxlevel" >out &&
    printf "custom:tree.json\n3\n3\n" >want && test_cmp want out
'
test_expect_success 'custom: with a list of parents for another number of brokers no broker starts' '
    test_must_fail idtree start -s 11 --topology custom:tree.json touch started 2>err && test ! -e started &&
    grep "topology .custom:tree.json.: is a list of 12 parents, but there are 11 brokers" err
'
test_expect_success 'custom: with a file that is missing or describes no tree no broker starts' '
    test_must_fail idtree start -s 3 --topology custom:nosuch.json touch started 2>err &&
    grep "topology .custom:nosuch.json.: No such file" err &&
    echo "[null, 2, 1]" >cycle.json && test_must_fail idtree start -s 3 --topology custom:cycle.json touch started 2>err &&
    grep "topology .custom:cycle.json.: the parents of rank 1 form a cycle" err && test ! -e started
'
# A rank that returns with another topology ends, and the others continue.
cat >changed.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
wait_attached 2 1 && echo "[null, 0, 0, 1]" >changing.json || exit 1
for r in 2 1 0; do
    idtree startctl kill $r
    idtree startctl run $r
    wait_until "rank $r has ended" grep -q "broker $r (.*) exited with status 2" refused || exit 1
    grep "rank $r has the topology custom:.*, but rank $r began with custom:" refused || exit 1
done
echo "[null, 0, 1, 1]" >changing.json
for r in 0 1 2; do idtree startctl run $r || exit 1; done
wait_attached 2 1 && idtree id new -r 2 && echo whole
END
test_expect_success 'custom: a rank that returns after the file was changed is refused until the file is as before' '
    echo "[null,0,1,1]" >changing.json && : >refused &&
    idtree start -s 4 --topology custom:changing.json sh changed.sh >out 2>refused; cat out refused
    tail -n 1 out | grep whole
'
test_expect_success 'custom: a file that is changed between two starts gives another tree' '
    echo "[null, 2, 0, 0]" >changing.json && idtree start -s 4 --topology custom:changing.json \
        sh -c ". \"\$IDTREE_SRCDIR/t/wait.sh\"; wait_attached 1 2 && idtree id new -r 1"
'
test_done
