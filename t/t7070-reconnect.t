#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7070-reconnect.t - brokers are killed and run again under clients of libidtree, which go on
test_description='clients go on when their broker is killed and run again'
. "$(dirname "$0")/idtree-sharness.sh"

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
set -e
client=$IDTREE_BUILDDIR/t/reconnect
go() { # mode, descriptor: start a client that ends when the descriptor is closed
    rm -f $1.in && mkfifo $1.in && : >$1.out
    "$client" $1 <$1.in >$1.out 2>$1.err 3>&- 4>&- 5>&- & eval "${1}_pid=$!"
    eval "exec $2>$1.in"
}
lines() { wc -l <$1.out; }
goes_on() { from=$(lines $1) && wait_until "client $1 goes on" holds "test \$(lines $1) -ge $((from + ${2:-20}))"; }
ended() { eval "exec $2>&-; wait \$${1}_pid" || { cat $1.out; return 1; }; tail -n1 $1.out; }
END

cat >calls.sh <<'END'
. ./lib.sh
IDTREE_URI=${IDTREE_URI%0}1
go sync 3; go async 4
goes_on sync; goes_on async
for i in 1 2 3; do
    idtree startctl stop 1; idtree startctl kill 1; idtree startctl run 1
    goes_on sync; goes_on async
done
ended sync 3 && ended async 4
END
test_expect_success 'calls and futures go on; each id is above those before' '
    idtree start -s 2 sh calls.sh >out && cat out && test $(grep -c "^done: " out) = 2 && ! grep " 0 got" out
'
cat >list.sh <<'END'
. ./lib.sh
here=${IDTREE_URI%0}
export IDTREE_URI="${here}2 ${here}1"
go sync 3; go async 4
goes_on sync
for i in 1 2; do
    idtree startctl kill 2; goes_on sync; goes_on async
    idtree startctl run 2; idtree startctl kill 1; goes_on sync; goes_on async
    idtree startctl run 1
done
ended sync 3 && ended async 4
END
test_expect_success 'of two brokers the one that is there is used' '
    idtree start -s 3 sh list.sh >out && cat out && test $(grep -c "^done: " out) = 2
'
cat >events.sh <<'END'
. ./lib.sh
root=$IDTREE_URI IDTREE_URI=${IDTREE_URI%0}1
go events 3
heard() { wait_until "$1 is heard" grep -x "$1" events.out; }
heard subscribed; idtree event pub --uri "$root" x.1; heard x.1
idtree startctl kill 1; idtree startctl run 1
heard event.lost; idtree event pub --uri "$root" x.2; heard x.2
ended events 3; test "$(sed '$d' events.out | tr '\n' ' ')" = "subscribed x.1 event.lost x.2 "
END
test_expect_success 'a subscription lasts, and what may be missing is told' '
    idtree start -s 2 sh events.sh
'
cat >document.sh <<'END'
. ./lib.sh
go document 3; goes_on document 5
for i in 1 2; do
    idtree startctl kill 0; idtree startctl run 0; goes_on document 5
done
ended document 3
END
test_expect_success 'a document goes on over the end of rank 0' '
    init_state state && idtree start -o statedir="$PWD/state" -o broker.modules=fluid,compressor sh document.sh
'
# A path that UNIX sockets have room for, wherever this runs.
short=$(mktemp -d "${TMPDIR:-/tmp}/idtree-reconnect.XXXXXX") && cleanup "rm -rf \"$short\""
place=local://$short/place/local-0
instance() { # fifo: one at that place, until somebody opens it for writing
    mkfifo $1 && { idtree start --dir "$short/place" cat $1 </dev/null 6>&- & } && instance=$! &&
    wait_until "it serves" idtree id new --uri "$place" >/dev/null
}
test_expect_success 'another instance at the same place is not taken for the one before' '
    mkfifo in && exec 6<>in && instance first &&
    { IDTREE_URI=$place "$IDTREE_BUILDDIR/t/reconnect" sync <in >out 6>&- & } && client=$! &&
    wait_until "the client has ids" holds "test \$(wc -l <out) -ge 20" && : >first && wait $instance &&
    instance second && test_expect_code 1 wait $client && cat out | tail -n 1 | grep "belongs to instance .* and not to" &&
    : >second && wait $instance
'
test_expect_success 'a shell that outlived its instance is told' '
    idtree start --dir "$short/gone" sh -c "echo \$IDTREE_URI" >uri &&
    IDTREE_URI=$(cat uri) test_expect_code 1 idtree id new 2>err && cat err &&
    grep "gone/local-0: its instance has ended, or never existed: the directory does not exist; start one" err
'
test_expect_success 'FLUX_URI stays the one of Flux where that is asked for' '
    test "$(FLUX_URI=local:///flux idtree start --keep-flux-uri sh -c "echo \$FLUX_URI; idtree getattr size")" = \
        "local:///flux
1" && test "$(FLUX_URI=local:///flux idtree start sh -c "echo \$FLUX_URI")" != local:///flux
'
test_done
