#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4016-root-ends.t - rank 0 ends while PostgreSQL does not answer, and leaves no module behind
test_description='a rank 0 that has lost its role or gets SIGTERM ends, although its store stands still'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
missing=$(pgs_lack)
test -z "$missing" || { skip_all="$missing"; test_done; }
T=/tmp/idtree-t4016.$$
mkdir -m 700 $T && cd $T && idtree keygen cert || exit 1
cleanup "end_all; pgs_end; rm -rf $T"
port=$((30000 + $$ % 2500 * 4 + 3))
pgs_start || exit 1
cat >conf <<END
broker.modules = "fluid,flake,compressor,job-ingest"
tbon.timeout = "2s"
broker.quorum = 1

[root]
store = "$(pgs_uri)"
takeover = "1s"

[cluster]
hosts = "root,127.0.0.9:$port"
root = "127.0.0.1,127.0.0.2,127.0.0.3:$port"
certificate = "$T/cert"
END
candidate() { # number
    : >"$T/err.$1"
    idtree-broker -c $T/conf --rank=0 --host=127.0.0.$1 -o cluster.interface=127.0.0.$1 -o rundir=$T/run.$1 2>>"$T/err.$1" >/dev/null </dev/null &
    echo $! >"$T/pid.$1"
}
pid() { cat "$T/pid.$1"; }
end_all() { for n in 1 2 3; do kill -CONT "$(pid $n)"; kill -9 "$(pid $n)"; done 2>/dev/null; }
is() { test "$(pgs_sql 0 "SELECT $1 FROM idtree.role")" = "$2"; }
leads() { is host "127.0.0.$1" && is state leads && is term "$2" && submit "$1"; } # number, term
await_leader() { wait_until "candidate $1 serves in term $2" leads "$1" "$2"; }
submit() { idtree job submit --uri "local://$T/run.$1/local-0" -- true >/dev/null; }
# While the server stands still, a job and a document wait for it.
ask() {
    submit "$1" 2>job.err &
    job=$!
    idtree doc new --uri "local://$T/run.$1/local-0" "doc$1" 2>doc.err &
    doc=$!
    wait_until "the store is away" grep "root.store: " "err.$1"
}
asked() { wait $job; wait $doc; :; }
alone() { cat "err.$1" && ! grep "left behind" "err.$1"; }

test_expect_success 'SIGTERM ends a rank 0 whose store stands still' '
    idtree init --store "$(pgs_uri)" --name ends && candidate 1 && await_leader 1 1 &&
    pgs_stop 0 && ask 1 && kill "$(pid 1)" && wait "$(pid 1)" && pgs_continue 0 && asked && alone 1
'
test_expect_success 'so does SIGTERM if the server is gone' '
    candidate 2 && await_leader 2 2 && pgs_kill 0 && ask 2 && kill "$(pid 2)" && wait "$(pid 2)" && pgs_run 0 && asked && alone 2
'
# The new leader may end, too, because it sees the open port of the old one.
test_expect_success 'a rank 0 that was replaced, and whose store stands still, ends with 76' '
    candidate 3 && await_leader 3 3 && candidate 1 && kill -STOP "$(pid 3)" && await_leader 1 4 && pgs_stop 0 && kill -CONT "$(pid 3)" && ask 3 &&
    test_expect_code 76 wait "$(pid 3)" && pgs_continue 0 && asked && alone 3 && { kill "$(pid 1)"; wait "$(pid 1)"; :; }
'
says() { grep -q "leads in term" "err.$1"; }
test_expect_success 'SIGTERM ends a rank 0 whose modules wait for their first answer of the store' '
    candidate 2 && wait_until "it leads" says 2 && pgs_stop 0 && kill "$(pid 2)" && { wait "$(pid 2)" || :; } && pgs_continue 0 && alone 2
'

# Leave nothing behind, even if a test failed.
end_all; pgs_end; rm -rf $T

test_done
