#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4070-other-state.t - rank 0 is started again with another statedir, while brokers hold leases of the earlier one
test_description='rank 0 grants no leases when it learns of leases that are not in its statedir, and names the right statedir'
. "$(dirname "$0")/idtree-sharness.sh"

EPOCH=2026-01-01T00:00:00Z
# A holder renews its lease, and reports it, when a third of it has passed: much of the lease is left then.
opts='-o fluid.lease=60s -o fluid.forward-timeout=200ms -o log-stderr-level=0'

# $says in older.sh is the message about the wrong statedir.

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
generates() { wait_until "rank $1 makes ids" makes_ids $1; }
makes_ids() { idtree id new -r $1 -g | grep -q "	$1\$"; }
store_says() { idtree info | grep "^fluid store  *$1"; }
# Rank 0 dies, and is started with what lies in folder $1; what it had lies in $2 then.
swap() { idtree startctl kill 0 && put $1 $2; }
put() { mv state $2 && mv $1 state && idtree startctl run 0; }
# 1000 ids of each of the ranks $@ are above all that were made, and become some of them.
make_ids() {
    last=$(tail -n 1 made) && for r; do
        idtree id new --uri "${IDTREE_URI%0}$r" -n 1000 --to dec || return 1
    done >unsorted && sort -n unsorted >new &&
    test $(wc -l <new) = $((1000 * $#)) && test "$(head -n 1 new)" -gt "${last:-0}" && test -z "$(uniq -d new)" &&
    cat new >>made
}
END
cat >older.sh <<'END'
. ./lib.sh
says="knows of leases until .*, and brokers hold leases until 20"
# The first that comes back to rank 0 tells it; the others may be on their way.
shown() {
    idtree overlay status >status && grep "^store wrong: .*/state $says" status && grep "^0 .* fenced, store wrong" status &&
    test $(grep -c " active " status) = 2
}
: >made && for r in 0 1 2; do generates $r; done && make_ids 0 1 2 &&
swap other right && wait_until "the store is wrong" store_says "wrong: .*/state $says" && make_ids 1 2 &&
wait_until "all are shown" shown && cat status &&
idtree dmesg | grep "statedir is wrong: .*/state $says.*: no leases are granted; .* with the statedir that it had" &&
! idtree id new 2>err && cat err && grep "rank 0 grants no leases: brokers hold leases of another statedir" err &&
swap right wrong && generates 0 && store_says good && make_ids 0 1 2
END
cat >another.sh <<'END'
. ./lib.sh
ended() { idtree startctl status | grep "^ *0 .*exited with status 3"; }
: >made && for r in 0 1 2; do generates $r; done && make_ids 0 1 2 &&
test "$(idtree getattr instance.uuid)" = "$(idtree getattr --uri "${IDTREE_URI%0}2" instance.uuid)" &&
swap other right; wait_until "rank 0 ends" ended && make_ids 1 2 && put right wrong && generates 0 && make_ids 0 1 2
END

prepare() { # folder, idtree start's arguments; $init: more options of idtree init
    dir=$PWD/$1 && shift && rm -rf "$dir" && init_state "$dir" --epoch $EPOCH $init &&
    idtree start $opts -o statedir="$dir" "$@" idtree id new
}
test_expect_success 'rank 0 has the state of another instance: it ends when a rank returns, and names both; with the right statedir it continues' '
    init= && prepare state && prepare other &&
    idtree start -s 3 $opts -o log-stderr-level=2 -o statedir="$PWD/state" sh another.sh 2>log; rc=$?; cat log; test $rc = 0 &&
    grep "^idtree-broker: rank [12] on .* is of the instance [0-9a-f-]* (idtree), rank 0 of [0-9a-f-]* (idtree): one of them has the wrong statedir" log
'
# The right one is an hour ahead, as it may be when it was recovered.
test_expect_success 'rank 0 has an older state of the same instance: it makes no ids after a rank reports a lease above its horizon' '
    init= && prepare state --recover-horizon="$(date -u -d "+ 1 hour" +%Y-%m-%dT%H:%M:%SZ)" &&
    init="--uuid $(idtree state show --json state | sed "s/.*\"uuid\":\"\([^\"]*\).*/\1/")" &&
    prepare other --recover-horizon=$EPOCH &&
    idtree start -s 3 $opts -o statedir="$PWD/state" sh older.sh
'
test_done
