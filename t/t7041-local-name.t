#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7041-local-name.t - RUNDIR/local leads to a broker of this host, whatever its rank is
test_description='RUNDIR/local is the lowest rank of the folder that is served'
. "$(dirname "$0")/idtree-sharness.sh"
unset IDTREE_URI FLUX_URI

run=$(mktemp -d /tmp/idtree-name-XXXXXX) && cleanup "rm -rf '$run'"
export run

test_expect_success 'a broker alone has it, and takes it away' '
    mkdir -m 700 "$run/one" && idtree broker -o rundir="$run/one" sh -c "
        test \"\$(readlink $run/one/local)\" = local-0 && test -S $run/one/local &&
        idtree id new --uri local://$run/one/local
    " </dev/null >out 2>&1 && cat out && test -z "$(ls "$run/one" | grep local)"
'
test_expect_success 'of several processes the lowest rank has it, in whatever order they come' '
    idtree start --dir "$run/several" -s 5 sh -c "
        test \"\$(readlink $run/several/local)\" = local-0 && idtree getattr rank --uri local://$run/several/local
    " </dev/null >out 2>&1 && cat out && test "$(cat out)" = 0
'
test_expect_success 'so has the first rank of a process of several' '
    idtree start --dir "$run/shared" -s 6 --per-process 3 sh -c "readlink $run/shared/local" </dev/null >out 2>&1 &&
    cat out && test "$(cat out)" = local-0
'
test_expect_success 'what a broker that was killed left behind is taken over by the next that starts' '
    mkdir -m 700 "$run/left" && ln -s local-0 "$run/left/local" && ln -s nothing "$run/left/local.0" &&
    idtree broker -o rundir="$run/left" idtree getattr rank --uri "local://$run/left/local" </dev/null >out 2>&1 &&
    cat out && test "$(cat out)" = 0
'
test_done
