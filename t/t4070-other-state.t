#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4070-other-state.t - rank 0 is started again with another statedir, while brokers hold leases of the one before
test_description='a root that hears of leases that it cannot know of gives none, and says which statedir is meant'
. "$(dirname "$0")/idtree-sharness.sh"

EPOCH=2026-01-01T00:00:00Z
# A lease is renewed, and what its holder has told, when a third of it has passed: much is left of it then.
opts='-o fluid.lease=12s -o fluid.forward-timeout=200ms -o log-stderr-level=0'

# $1: what is said of the wrong one.
cat >swap.sh <<'END'
says=$1
. "$IDTREE_SRCDIR/t/wait.sh"
generates() { wait_until "rank $1 makes ids" makes_ids $1; }
makes_ids() { idtree id new -r $1 -g | grep -q "	$1\$"; }
store_says() { idtree info | grep "^fluid store  *$1"; }
# Rank 0 dies, and is started with what lies in folder $1; what it had lies in $2 then.
swap() { idtree startctl kill 0 && mv state $2 && mv $1 state && idtree startctl run 0; }
# 1000 ids of each of the ranks $@ are above all that were made, and become some of them.
make_ids() {
    last=$(tail -n 1 made) && for r; do idtree id new -r $r -n 1000 --to dec || return 1; done | sort -n >new &&
    test $(wc -l <new) = $((1000 * $#)) && test "$(head -n 1 new)" -gt "${last:-0}" && test -z "$(uniq -d new)" &&
    cat new >>made
}

: >made && for r in 0 1 2; do generates $r; done && make_ids 0 1 2 &&
swap other right && wait_until "the store is wrong" store_says "wrong: .*/state $says" && make_ids 1 2 &&
idtree overlay status >status && cat status && grep "^store wrong: .*/state $says" status &&
grep "^0 .* fenced, store wrong" status && test $(grep -c " active " status) = 2 &&
idtree dmesg | grep "statedir is wrong: .*/state $says.*: no more leases are given; .* with the statedir that it had" &&
! idtree id new 2>err && cat err && grep "rank 0 gives no leases: brokers hold some of another statedir" err &&
swap right wrong && generates 0 && store_says good && make_ids 0 1 2
END

prepare() { # folder, epoch, idtree start's arguments
    dir=$PWD/$1 epoch=$2 && shift 2 && rm -rf "$dir" && init_state "$dir" --epoch $epoch && idtree start $opts -o statedir="$dir" "$@" idtree id new
}
test_expect_success 'another epoch: rank 0 makes nothing once it hears of it, leases last until they end; with the right one all go on' '
    prepare state $EPOCH && prepare other 2026-02-01T00:00:00Z &&
    idtree start -s 3 $opts -o statedir="$PWD/state" \
        sh swap.sh "has the epoch 2026-02-01T00:00:00.000Z, and brokers hold leases of an instance with 2026-01-01"
'
# The right one is an hour ahead, as it may be when it was recovered.
test_expect_success 'the same epoch, and leases beyond what it knows of' '
    prepare state $EPOCH --recover-horizon="$(date -u -d "+ 1 hour" +%Y-%m-%dT%H:%M:%SZ)" &&
    prepare other $EPOCH &&
    idtree start -s 3 $opts -o statedir="$PWD/state" sh swap.sh "knows of leases until .*, and brokers hold some until 20"
'
test_done
