#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7041-local-name.t - RUNDIR/local is a link to the socket of a broker of this host, whatever its rank is
test_description='the link RUNDIR/local leads to the lowest rank that serves in the folder'
. "$(dirname "$0")/idtree-sharness.sh"
unset IDTREE_URI FLUX_URI

run=$(mktemp -d /tmp/idtree-name-XXXXXX) && cleanup "rm -rf '$run'"
export run

test_expect_success 'a single broker creates the link RUNDIR/local, and removes it when it ends' '
    mkdir -m 700 "$run/one" && idtree broker -o rundir="$run/one" sh -c "
        test \"\$(readlink $run/one/local)\" = local-0 && test -S $run/one/local &&
        idtree id new --uri local://$run/one/local
    " </dev/null >out 2>&1 && cat out && test -z "$(ls "$run/one" | grep local)"
'
test_expect_success 'of several processes the one with the lowest rank has the link RUNDIR/local, in whatever order they start' '
    idtree start --dir "$run/several" -s 5 sh -c "
        test \"\$(readlink $run/several/local)\" = local-0 && idtree getattr rank --uri local://$run/several/local
    " </dev/null >out 2>&1 && cat out && test "$(cat out)" = 0
'
test_expect_success 'of a process with several ranks the first rank has the link RUNDIR/local' '
    idtree start --dir "$run/shared" -s 6 --per-process 3 sh -c "readlink $run/shared/local" </dev/null >out 2>&1 &&
    cat out && test "$(cat out)" = local-0
'
test_expect_success 'the next broker that starts takes over the link RUNDIR/local of a broker that was killed' '
    mkdir -m 700 "$run/left" && ln -s local-0 "$run/left/local" && ln -s nothing "$run/left/local.0" &&
    idtree broker -o rundir="$run/left" idtree getattr rank --uri "local://$run/left/local" </dev/null >out 2>&1 &&
    cat out && test "$(cat out)" = 0
'
# A guest may read a folder of mode 0755, and therefore can lock it.
command -v flock >/dev/null && command -v setpriv >/dev/null && test "$(id -u)" = 0 && test_set_prereq GUEST
hold_lock() { # folder
    rm -f held && mkfifo held && exec 5<>held || return 1
    setpriv --reuid 64021 --regid 64021 --clear-groups flock --no-fork "$1" sh -c "echo held; exec sleep 1000" >&5 &
    guest=$!
    wait_line 5
}
for locked in run state; do
    test_expect_success GUEST "another user who keeps the folder \"$locked\" locked delays no broker" '
        chmod 755 "$run" && mkdir -m 755 "$run/$locked" "$run/$locked/run" "$run/$locked/state" &&
        idtree init --statedir "$run/$locked/state" && hold_lock "$run/$locked/$locked" &&
        timeout -s KILL "$WAIT_S" idtree broker -o rundir="$run/$locked/run" -o statedir="$run/$locked/state" sh -c "
            readlink $run/$locked/run/local && idtree id new" </dev/null >out; rc=$?; kill $guest; wait $guest
        exec 5>&-; test $rc = 0 && grep local-0 out && ! ls "$run/$locked"/*/*.lock
    '
done
test_expect_success 'a broker that cannot get the lock for RUNDIR/local logs a warning, and clients must name the rank' '
    mkdir -m 700 "$run/busy" && mkdir "$run/busy/local.lock" &&
    idtree broker -o rundir="$run/busy" sh -c "idtree dmesg && idtree id new" </dev/null >out 2>&1 &&
    grep "clients must name this rank, .*/busy/local is not made: .*local.lock: Is a directory" out
'
test_done
