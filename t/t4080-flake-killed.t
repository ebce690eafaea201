#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4080-flake-killed.t - brokers are killed and run again, with clocks that are minutes off, under requests for flax,
# sno and uid
#
# Ranks 0 to 4 have a partition of sno; 5 and 6 forward to 2, 7 to 3. A lease is short enough that grants of time and claims
# end, and are renewed, while the test runs. The page of t/chaos/host.h sets the wall clock of each broker.
test_description='no flax, sno or uid is issued twice, whichever rank dies and whatever the clocks say'
. "$(dirname "$0")/idtree-sharness.sh"

if test -z "$IDTREE_TEST_INSIDE"; then
    page=$(mktemp) && head -c 520 /dev/zero >"$page" || exit 1
    export CHAOS_PAGE="$page" LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" \
        ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0"
fi
test_under_idtree 8 --topology kary:2 -o broker.modules=fluid,flake -o flake.max-partitions=5 -o fluid.lease=2s \
    -o tbon.timeout=500ms -o log-stderr-level=0
unset LD_PRELOAD

ALL='0 1 2 3 4 5 6 7'
SCHEMES='flax sno uid'
for scheme in $SCHEMES; do : >$scheme; done # all ids that came

field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; } # of JSON objects, one a line
uri_of() { echo "${IDTREE_URI%0}$1"; }
info_ms() { idtree info --uri "$(uri_of "$1")" | awk '$2 == "timestamp_ms" { print $3 }'; }

# Set the clock of the host of rank $1 $2 minutes ahead. The page is an array of little-endian numbers of 64 bits.
set_clock() {
    us=$(($2 * 60000000)) bytes=
    for i in 1 2 3 4 5 6 7 8; do
        bytes=$bytes$(printf '\\%03o' $((us & 255)))
        us=$((us >> 8))
    done
    printf "$bytes" | dd of="$CHAOS_PAGE" bs=8 seek="$1" conv=notrunc 2>/dev/null
}
restart() { # rank, minutes
    idtree startctl kill "$1" && set_clock "$1" "$2" && idtree startctl run "$1"
}
# Rank $1 makes $2 ids of each scheme, in order.
served() {
    for scheme in $SCHEMES; do
        wait_until "rank $1 gives $2 ids of $scheme" make_some $1 $2 $scheme &&
        test $(wc -l <some) = $2 && LC_ALL=C sort -cu some && cat some >>$scheme || return 1
    done
}
make_some() { # rank, number, scheme; what came before a failure counts
    idtree id new --uri "$(uri_of $1)" --scheme $3 -n $2 >some || { cat some >>$3; return 1; }
}
# Request $1 ids of each scheme from all ranks. Clients of a broker that dies may fail, but the ids that they got count.
load_start() {
    pids= && for r in $ALL; do
        for scheme in $SCHEMES; do
            idtree id new --uri "$(uri_of $r)" --scheme $scheme -n $1 >part.$scheme.$r 2>/dev/null & pids="$pids $!"
        done
    done
}
load_end() {
    failed=0
    for p in $pids; do wait $p || failed=$((failed + 1)); done
    for scheme in $SCHEMES; do cat part.$scheme.* >>$scheme || return 1; done
}
none_twice() {
    for scheme in $SCHEMES; do
        LC_ALL=C sort $scheme | uniq -d >twice && test_must_be_empty twice || return 1
    done
}

test_expect_success 'all ranks make flax ids, snos and uids at the same time' '
    for r in $ALL; do served $r 1; done && load_start 30000 && load_end && test $failed = 0 && none_twice &&
    test $(wc -l <uid) = 240008
'
# Time is granted for a quarter of a lease. A rank that was idle has no reason to ask other ranks.
test_expect_success 'a rank whose time ended while nobody asked it makes ids, and ranks without a partition forward' '
    now=$(info_ms 0) && wait_until "a second has passed" holds "test \$(info_ms 0) -gt $((now + 1000))" &&
    for pair in 0=0 1=1 2=2 3=3 4=4 5=2 6=2 7=3; do
        idtree id new --uri $(uri_of ${pair%=*}) --scheme sno -n 3 >ids && cat ids >>sno &&
        idtree id show --scheme sno --json - <ids >out && test "$(field partition <out | sort -u)" = ${pair#*=} || return 1
    done
'
test_expect_success 'leaves, inner ranks and the root are killed, and run again with clocks that are minutes off' '
    for pair in 4=-10 7=10 3=-10 1=10 0=-10 4=0 2=-10 0=10 0=0 3=10; do
        restart ${pair%=*} ${pair#*=} && served ${pair%=*} 5000 && served 5 500 || return 1
    done && for r in $ALL; do served $r 100; done && none_twice
'
test_expect_success 'leaves, inner ranks and the root are killed and run again under load' '
    for pair in 3=-10 0=-10 1=10 0=0; do
        load_start 30000 && restart ${pair%=*} ${pair#*=} && load_end && for r in $ALL; do served $r 100; done || return 1
    done && none_twice
'
test_expect_success 'after rank 0 reloads the flake module, it has no claims, and grants no time that was granted before' '
    for i in 1 2 3 4 5; do
        idtree module remove flake && idtree module load flake && for r in 1 0 7; do served $r 200; done || return 1
    done && none_twice
'
test_expect_success 'an invalid attribute of the flake module is refused' '
    for attr in flake.max-partitions=0 flake.max-partitions=65537 flake.max-waiting=0 flake.forward-timeout=x \
                uid.drift=4 uid.drift=11 uid.fingerprint=4294967296 uid.fingerprint=2147483648 uid.node=$(printf %0256d 0) uid.node=; do
        test_must_fail idtree broker -o broker.modules=fluid,flake -o $attr true 2>err </dev/null &&
        grep "module flake: ${attr%%=*}=" err || return 1
    done
'
rm -f "$CHAOS_PAGE"
test_done
