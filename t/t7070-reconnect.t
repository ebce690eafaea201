#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7070-reconnect.t - brokers are killed and run again while clients of libidtree reconnect to them
test_description='clients continue after their broker is killed and run again'
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
test_expect_success 'after their broker was killed and run again, calls and futures of clients continue, and each id is above all before' '
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
test_expect_success 'a client with two brokers uses the one that is running' '
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
test_expect_success 'a subscription continues after a reconnection, and a possible loss of events is reported' '
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
test_expect_success 'a document continues after a restart of rank 0' '
    init_state state && idtree start -o statedir="$PWD/state" -o broker.modules=fluid,compressor sh document.sh
'
# A path that is short enough for UNIX sockets, in whatever folder this test runs.
short=$(mktemp -d "${TMPDIR:-/tmp}/idtree-reconnect.XXXXXX") && cleanup "rm -rf \"$short\""
place=local://$short/place/local-0
instance() { # fifo: one at that place, until somebody opens it for writing
    mkfifo $1 && { idtree start --dir "$short/place" cat $1 </dev/null 6>&- & } && instance=$! &&
    wait_until "it serves" idtree id new --uri "$place" >/dev/null
}
test_expect_success 'a client refuses another instance at the same path' '
    mkfifo in && exec 6<>in && instance first &&
    { IDTREE_URI=$place "$IDTREE_BUILDDIR/t/reconnect" sync <in >out 6>&- & } && client=$! &&
    wait_until "the client has ids" holds "test \$(wc -l <out) -ge 20" && : >first && wait $instance &&
    instance second && test_expect_code 1 wait $client && cat out | tail -n 1 | grep "belongs to instance .* and not to" &&
    : >second && wait $instance
'
test_expect_success 'a command in a shell that outlived its instance reports that the instance has ended' '
    idtree start --dir "$short/gone" sh -c "echo \$IDTREE_URI" >uri &&
    IDTREE_URI=$(cat uri) test_expect_code 1 idtree id new 2>err && cat err &&
    grep "gone/local-0: its instance has ended, or never existed: the directory does not exist; start one" err
'
test_expect_success 'with --keep-flux-uri, FLUX_URI still names the broker of Flux' '
    test "$(FLUX_URI=local:///flux idtree start --keep-flux-uri sh -c "echo \$FLUX_URI; idtree getattr size")" = \
        "local:///flux
1" && test "$(FLUX_URI=local:///flux idtree start sh -c "echo \$FLUX_URI")" != local:///flux
'
test_done
