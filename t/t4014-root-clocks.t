#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4014-root-clocks.t - candidates of rank 0 whose wall clocks are wrong, over a real PostgreSQL
#
# The page of t/chaos/host.h sets the wall clock of each candidate.
test_description='a candidate with a wrong clock takes over, repeats no id, and carries the instance nowhere'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
missing=$(pgs_lack)
test -z "$missing" || { skip_all="$missing"; test_done; }
T=/tmp/idtree-t4014.$$
mkdir -m 700 $T && cd $T && idtree keygen cert && head -c 1032 /dev/zero >page || exit 1
cleanup "end_all; pgs_end; rm -rf $T"
port=$((30000 + $$ % 2500 * 4 + 2))
pgs_start || exit 1
cat >conf <<END
broker.modules = "fluid"
tbon.timeout = "2s"
broker.quorum = 1
fluid.lease = "2s"

[root]
store = "$(pgs_uri)"
takeover = "500ms"

[cluster]
hosts = "root,127.0.0.9:$port"
root = "127.0.0.1,127.0.0.2,127.0.0.3:$port"
certificate = "$T/cert"
END

# Candidate $1 is on a host that is $2 minutes ahead. The page is an array of little-endian numbers of 64 bits.
set_clock() {
    us=$(($2 * 60000000)) bytes=
    for i in 1 2 3 4 5 6 7 8; do bytes=$bytes$(printf '\\%03o' $((us & 255))) us=$((us >> 8)); done
    # shellcheck disable=SC2059 # the format has the bytes
    printf "$bytes" | dd of=page bs=8 seek="$1" conv=notrunc 2>/dev/null
}
candidate() { # number
    : >"$T/err.$1"
    env CHAOS_PAGE=$T/page CHAOS_STATE=$T CHAOS_RANK="$1" LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" \
        ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree-broker -c $T/conf --rank=0 --host=127.0.0.$1 -o cluster.interface=127.0.0.$1 -o rundir=$T/run.$1 2>>"$T/err.$1" >/dev/null </dev/null &
    echo $! >"$T/pid.$1"
}
pid() { cat "$T/pid.$1"; }
end_all() { for n in 1 2 3; do kill -9 "$(pid $n)"; done 2>/dev/null; }
kill_hard() { kill -9 "$(pid "$1")" && ! wait "$(pid "$1")"; }
is() { test "$(pgs_sql 0 "SELECT $1 FROM idtree.role")" = "$2"; }
leads() { is host "127.0.0.$1" && is state leads && is term "$2" && idtree id new --uri "local://$T/run.$1/local-0" --to dec >id; } # number, term
await_leader() { wait_until "candidate $1 serves in term $2" leads "$1" "$2" && cat id >>ids; }
epoch=$(($(date +%s) - 480))
off_min() { echo $((($(cat id) / 16777216 / 1000 + epoch - $(date +%s)) / 60)); } # of the newest id, from the right clock
grow() { sort -n -u -c ids; }

test_expect_success 'the first candidate has a right clock, and the instance is eight minutes old' '
    idtree init --store "$(pgs_uri)" --name clocks --epoch "$(date -u -d @$epoch +%Y-%m-%dT%H:%M:%SZ)" && candidate 1 && await_leader 1 1
'
test_expect_success 'a candidate whose clock is an hour behind, and so before the epoch, takes over and begins at the horizon' '
    set_clock 2 -60 && candidate 2 && kill_hard 1 && await_leader 2 2 && grow && test "$(off_min)" = 0 && cat err.2 &&
    grep "the wall clock of this host is 36[0-9][0-9].* s behind that of the database in root.store" err.2 && grep "the epoch is .*: set the clock; ids begin at the stored horizon" err.2
'
test_expect_success 'a candidate whose clock is an hour ahead begins at the clock of the database' '
    set_clock 3 60 && candidate 3 && kill_hard 2 && await_leader 3 3 && grow && test "$(off_min)" = 0 &&
    grep "the wall clock of this host is .* s ahead of that of the database in root.store" err.3
'
test_expect_success 'takeovers by candidates with wrong clocks leave no id twice, and the time near the clock' '
    prev=3 term=3 && for n in 2 3 1 2 1; do
        term=$((term + 1)) && candidate $n && kill_hard $prev && await_leader $n $term || return 1
        prev=$n
    done && grow && test "$(off_min)" = 0 && is term 8 && kill "$(pid $prev)" && wait "$(pid $prev)"
'

# Leave nothing behind, even if a test failed.
end_all; pgs_end; rm -rf $T

test_done
