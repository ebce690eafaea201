#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7024-wrong-root.t - a configured instance whose rank 0 is started with the state of another instance
test_description='a rank 0 with the wrong state ends, and the ranks that joined it wait for the right one'
. "$(dirname "$0")/idtree-sharness.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
T=/tmp/idtree-t7024.$$
mkdir -m 700 $T $T/run $T/state $T/other $T/memory && cd $T && idtree keygen cert || exit 1
cleanup "end_all; rm -rf $T"
port=$((20000 + $$ % 2500 * 4)) # of a process beside this one: others
cat >conf <<END
rundir = "$T/run"
tbon.timeout = "2s"

[cluster]
hosts = "127.0.0.1:$port,127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2))"
certificate = "$T/cert"
END
start() { # rank
    folder=memory
    test "$1" != 0 || folder=state
    idtree-broker -c $T/conf --rank "$1" -o statedir=$T/$folder 2>>$T/err."$1" >>$T/out."$1" </dev/null &
    echo $! >$T/pid."$1"
}
pid() { cat $T/pid."$1"; }
end_all() { for r in 2 1 0; do kill -CONT "$(pid $r)"; kill -9 "$(pid $r)"; done 2>/dev/null; }
ids() { idtree id new --uri local://$T/run/local-"$1" -n 100 --to dec >>made; }
is_gone() { ! kill -0 "$1"; }
is_older() { test "$(ps -o etimes= -p "$1")" -gt 4; }
serves() { wait_until "rank $1 makes ids" ids "$1"; }
uuid() { idtree getattr --uri local://$T/run/local-"$1" instance.uuid; }
swap() { mv "$1" swapped && mv "$2" "$1" && mv swapped "$2"; }

test_expect_success 'while rank 0 has the state of another instance, a new rank joins it' '
    idtree init --statedir $T/state --json | jq -r .uuid >right && idtree init --statedir $T/other --json | jq -r .uuid >wrong &&
    start 0 && serves 0 && start 2 && serves 2 && kill -STOP "$(pid 2)" && kill -9 "$(pid 0)" && { wait "$(pid 0)" || :; } &&
    swap state other && start 0 && start 1 && wait_until "rank 1 joins" uuid 1 && uuid 1 >got && test_cmp wrong got &&
    wait_until "it remembers that" test -e memory/memory-1
'
test_expect_success 'rank 0 ends when a rank of the right instance connects, however late; the new rank restarts and waits' '
    wait_until "others had time to come" is_older "$(pid 1)" && kill -CONT "$(pid 2)" && wait_until "rank 0 ends" is_gone "$(pid 0)" && test_expect_code 3 wait "$(pid 0)" && grep "one of them has the wrong statedir" err.0 &&
    wait_until "rank 1 says so" grep "starts again and waits for rank 0: its tree belonged to the wrong instance" err.1 &&
    wait_until "it has forgotten" test ! -e memory/memory-1 && kill -0 "$(pid 1)"
'
test_expect_success 'when rank 0 has the right state all ranks belong to one instance, and no process of a broker was started again' '
    swap state other && start 0 && wait_until "rank 1 joins" uuid 1 && uuid 1 >got && test_cmp right got && serves 0 && serves 1 && serves 2 &&
    wait_until "rank 2 is attached, to hear of the end" idtree ping --uri local://$T/run/local-0 -c 1 2 &&
    test -z "$(sort made | uniq -d)" && idtree shutdown --uri local://$T/run/local-0 &&
    for r in 0 1 2; do wait "$(pid $r)" || return 1; done
'

# Leave nothing behind, even if a test failed.
end_all; rm -rf $T

test_done
