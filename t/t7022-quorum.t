#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7022-quorum.t - how many brokers must have joined before an instance counts as started
test_description='the command starts and health is good when a quorum of ranks has joined; ids are made before'
. "$(dirname "$0")/idtree-sharness.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
T=/tmp/idtree-t7022.$$
mkdir -m 700 $T $T/run $T/state && idtree init --statedir $T/state >$T/init && cd $T || exit 1
cleanup "end_all; rm -rf $T"
port=$((20000 + $$ % 2500 * 4)) # of a process beside this one: others
command -v python3 >/dev/null && grep -q "define HAVE_LIBSYSTEMD 1" "$IDTREE_BUILDDIR/config.h" && test_set_prereq NOTIFY

# A chain of four brokers with a quorum of three.
file() { # quorum
    cat <<END
statedir = "$T/state"
rundir = "$T/run"
tbon.timeout = "2s"
tbon.topo = "kary:1"
broker.quorum-timeout = "50ms"

[cluster]
hosts = "127.0.0.1:$port,127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2)),127.0.0.1:$((port + 3))"
certificate = "$T/cert"
quorum = $1
END
}
start() { # rank
    idtree-broker -c $T/conf --rank "$1" 2>>$T/err."$1" >>$T/out."$1" </dev/null &
    echo $! >$T/pid."$1"
}
start_root() {
    manager=
    test_have_prereq NOTIFY && manager="python3 $IDTREE_SRCDIR/t/notify.py $T/told"
    $manager idtree-broker -c $T/conf --rank 0 sh -c "touch begun; cat stop" 2>>$T/err.0 >>$T/out.0 </dev/null &
    echo $! >$T/pid.0
}
end_all() { for r in 1 2 3 0; do kill "$(cat $T/pid.$r)"; done 2>/dev/null; }
says() { grep -q "$1" $T/err.0; }
health_is() { # status, pattern
    idtree health >$T/health
    test $? = "$1" && grep -E "$2" $T/health
}
becomes() { wait_until "health is $*" health_is "$@" || { cat $T/health; return 1; }; }
IDTREE_URI=local://$T/run/local-0 && export IDTREE_URI

refused() { # quorum, more options
    quorum=$1
    shift
    file "$quorum" >conf && test_expect_code 2 timeout 60 idtree-broker -c conf --rank 0 "$@" true 2>err </dev/null
}
test_expect_success 'an invalid quorum is refused, and the message names its line' '
    idtree keygen cert &&
    for bad in 5 0 "\"0%\"" "\"101%\"" "\"most\""; do
        refused "$bad" && grep "conf:[0-9]*: attribute cluster.quorum=.*: must be a number of ranks from 1 to 4, " err || { cat err; return 1; }
    done &&
    refused 3 -o broker.quorum=2 && grep "broker.quorum is set, too: set only one of them" err &&
    test_expect_code 2 idtree-broker -o broker.quorum=2 true 2>err && grep "broker.quorum=2: must be a number of ranks from 1 to 1," err
'
test_expect_success 'ids are made before the quorum is reached; everything else waits, and the missing ranks are logged' '
    mkfifo stop && file "\"75%\"" >conf && start_root && wait_until "rank 0 serves" wait_make_id &&
    wait_until "it says who is missing" says "1 of 4 ranks have joined, and 3 must (broker.quorum): missing rank 1$" &&
    becomes 1 "^degraded: 1 ranks have joined, and 3 must \(broker.quorum\); below rank 0: 1 offline" &&
    test "$(idtree getattr broker.quorum)" = 75% && test ! -e begun
'
test_expect_success NOTIFY 'before the quorum is reached the service manager is notified of the missing ranks, and not that rank 0 is ready' '
    grep -x "STATUS=rank 0 of 4 serves; ranks below it are missing; 1 have joined, and 3 must (broker.quorum)" told && ! grep READY told
'
two_joined() { says "2 of 4 ranks have joined, and 3 must"; }
test_expect_success 'a rank counts towards the quorum wherever it is attached, and the quorum does not wait for a rank that is down' '
    start 3 && wait_until "rank 3 counts" two_joined && test ! -e begun &&
    start 2 && wait_until "the command begins" test -e begun &&
    idtree dmesg >log && grep "3 of 4 ranks have joined: the quorum is reached" log &&
    becomes 0 "^good: below rank 0: 1 offline"
'
test_expect_success NOTIFY 'when the quorum is reached the service manager is notified that rank 0 is ready' '
    wait_until "it is told" grep -x READY=1 told && test "$(grep -c READY=1 told)" = 1
'
test_expect_success 'a rank that joins late makes the instance complete; a rank that leaves degrades health only if fewer than the quorum are left' '
    start 1 && becomes 0 "^good$" && kill "$(cat pid.3)" && becomes 0 "^good: below rank 0: 1 online, but ranks below are offline" &&
    kill "$(cat pid.2)" && becomes 1 "^degraded: 2 ranks have joined, and 3 must"
'
test_expect_success 'reload and setattr change the quorum, and an impossible quorum is refused' '
    file 2 >conf && idtree reload >out && grep "changed cluster.quorum" out && test "$(idtree getattr broker.quorum)" = 2 &&
    becomes 0 "^good: " && test_must_fail idtree setattr broker.quorum 5 2>err && grep "from 1 to 4" err &&
    idtree setattr broker.quorum 100% && becomes 1 "^degraded: below rank 0"
'
test_expect_success 'a reload with an impossible quorum is refused as a start is, and changes nothing' '
    idtree setattr broker.quorum 2 && file 2 >good && { echo "log-level = 5"; file 5; } >conf &&
    test_must_fail idtree reload 2>err && grep "conf:[0-9]*: attribute cluster.quorum=5: must be a number of ranks from 1 to 4, " err &&
    { echo "broker.quorum = 3"; file 2; } >conf &&
    test_must_fail idtree reload 2>err && grep "conf:[0-9]*: .*broker.quorum is set, too" err &&
    { echo "log-level = 9"; file 3; } >conf &&
    test_must_fail idtree reload 2>err && grep "conf:1: attribute log-level=9: must be a level" err &&
    test "$(idtree getattr log-level)" = 7 && test "$(idtree getattr broker.quorum)" = 2 &&
    cp good conf && idtree reload >out && echo "0: nothing new" >want && test_cmp want out
'
test_expect_success 'an instance with a quorum ends with its command' '
    : >stop && wait "$(cat pid.0)"
'
test_expect_success 'the command of an instance with a quorum may start and end before other ranks have joined' '
    for i in 1 2 3; do idtree start -s 5 --topology kary:1 -o broker.quorum=1 -- idtree id new || return 1; done
'

# Leave nothing behind, even if a test failed.
end_all; rm -rf $T

test_done
