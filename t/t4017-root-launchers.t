#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4017-root-launchers.t - instances of a launcher, and brokers alone, whose state is in PostgreSQL
test_description='each start of a launcher continues the instance in PostgreSQL, and runs its command'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
missing=$(pgs_lack)
test -z "$missing" || { skip_all="$missing"; test_done; }
cleanup "end_all; pgs_end"
pgs_start || exit 1
store=$(pgs_uri)
end_all() { kill -9 "$(cat pid)" "$(cat standby)"; } 2>/dev/null
start() { idtree start -s 3 -o root.store="$store" -o root.takeover=1s -o broker.modules=fluid "$@" </dev/null; }
alone() { exec idtree-broker --standalone -o root.store="$store" -o root.takeover=1s -o broker.modules=fluid "$@" </dev/null; }
is() { test "$(pgs_sql 0 "SELECT $1 FROM idtree.role")" = "$2"; }
grow() { sort -n -u -c ids; }

test_expect_success 'idtree start runs an instance whose state is in PostgreSQL' '
    idtree init --store "$store" --name launched && start sh -c "idtree id new -r 2 --to dec && idtree getattr root.term" >out && cat out &&
    head -n 1 out >ids && tail -n 1 out | grep -x 1 && ! is state leads
'
test_expect_success 'the next start continues it, and runs its command, too' '
    start sh -c "idtree id new -r 1 --to dec && idtree getattr root.term" >out && cat out && head -n 1 out >>ids && grow && tail -n 1 out | grep -x 2 && is term 2
'
test_expect_success 'so does a broker alone' '
    (alone idtree id new --to dec) >>ids && grow && is term 3 && ! is state leads
'
test_expect_success 'while one runs, the next one says that it stands by; when that is killed, it serves' '
    { alone >out 2>err & echo $! >pid; } && wait_until "it leads" is term 4 &&
    { alone sh -c "idtree id new --to dec >>ids" 2>err.2 & echo $! >standby; } && wait_until "it says so" grep "stands by; .* leads" err.2 && is term 4 &&
    kill -9 "$(cat pid)" && wait "$(cat standby)" && test "$(grep -c "stands by" err.2)" = 1 && grow && test "$(wc -l <ids)" = 4 && is term 5
'

# Leave nothing behind, even if a test failed.
end_all; pgs_end

test_done
