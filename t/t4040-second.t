#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4040-second.t - a second broker is started for a rank that has one
test_description='of two brokers with the same rank one serves, the other reports why it does not, and no id is issued twice'
. "$(dirname "$0")/idtree-sharness.sh"

TMPDIR=/tmp/idtree-t4040.$$
mkdir -m 700 "$TMPDIR" "$TMPDIR/pmi" "$TMPDIR/second" && head -c 520 /dev/zero >"$TMPDIR/page" && export TMPDIR || exit 1
cleanup "rm -rf '$TMPDIR'"
export CHAOS_PAGE="$TMPDIR/page" CHAOS_STATE="$TMPDIR/none" CHAOS_PMI="$TMPDIR/pmi"
# The program of a second broker needs the library path that a first one gets from its launcher.
export LD_LIBRARY_PATH="$IDTREE_BUILDDIR/src/common/libidtree/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

on_hosts() { # idtree start's arguments
    env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" \
        ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree start -s 7 --topology kary:2 -o fluid.lease=2s -o fluid.max-generators=7 -o fluid.forward-timeout=1h \
        -o log-stderr-level=0 "$@" \
        </dev/null
}

cat >lib.sh <<'END'
unset LD_PRELOAD
. "$IDTREE_SRCDIR/t/wait.sh"
uri_of() { echo "${IDTREE_URI%0}$1"; }
info() { idtree info --uri "$(uri_of "$1")" | awk -v key="$2" '$2 == key { print $3 }'; }
until_generates() { wait_until "rank $r makes ids itself" generates "$1"; }
generates() { test "$(idtree id new --uri "$1" -g | cut -f2)" = $r; }
refused() { # brokers of rank $r
    idtree dmesg | sed -n "s/.*rank $r is served by \([-0-9a-f]*\) on .*/\1/p" | sort -u >served_by && test $(wc -l <served_by) = "$1"
}
served_at() { wait_until "$1 serves" wait_make_id --uri "$1"; }
# Start a second broker of rank $1, until fifo 5 is closed.
second_start() {
    rank=$1 && shift && rm -f go log && mkfifo go && : >log &&
    { "$IDTREE_BUILDDIR/t/chaos/second" "$TMPDIR/pmi" "$TMPDIR/second" "$PWD/log" 7 2 $rank fluid.lease=2s \
        fluid.max-generators=7 fluid.forward-timeout=1h "$@" <go 5>&- & } && second_pid=$! && exec 5>go && second=local://$TMPDIR/second/local-$rank
}
second_end() { exec 5>&-; wait $second_pid; }
load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" "${IDTREE_URI%0}" 0 1 2 3 4 5 6 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid && cat result && ! grep "ids 0 " result; }
END

cat >alive.sh <<'END'
. ./lib.sh
logged() { idtree dmesg | grep -q "overlay.warning.*: a hello is refused: rank $r is served by"; }
load_start &&
for r in 5 1; do
    second_start $r broker.join-timeout=2s && wait_until "the second one gives up" grep "could not join" log && second_end &&
    grep "^idtree-broker: rank $r could not join rank .*: rank $r is served by [-0-9a-f]* on " log &&
    wait_until "rank 0 is told what its parent has logged" logged || exit 1
done &&
idtree overlay status && idtree module stats --json overlay | grep "\"adopted\": *0" &&
load_end && grep "^ids .* failed 0 connections-lost 0 " result
END
test_expect_success 'a second broker of a rank that is served ends and names the first one, and no client notices' '
    on_hosts sh alive.sh
'
# Each is refused while the other serves.  Both are asked for all the ids that a generator can make, in the same seconds; what
# the first has no lease for it makes when the second is gone.
cat >frozen.sh <<'END'
. ./lib.sh
r=5 asked=$(yes 65536 | head -n 30) && served_at "$(uri_of $r)" && mkfifo ask said &&
{ "$IDTREE_BUILDDIR/t/idqueue" first "$(uri_of $r)" $asked <ask >said & } && first_pid=$! && exec 6>ask 7<said &&
wait_line 7 && second_start $r tbon.timeout=500ms && wait_until "the second one was refused" refused 1 &&
idtree startctl stop $r && echo >&6 && test "$(wait_line 7)" = asked && until_generates $second &&
{ idtree id new --uri $second -n $((30 * 65536)) --to dec >second & } && pid=$! && idtree startctl cont $r &&
wait $pid && test $(wc -l <second) = $((30 * 65536)) && wait_until "both were refused" refused 2 &&
idtree module stats --json overlay | grep "\"adopted\": *0" && second_end &&
wait $first_pid && test $(wc -l <first) = $((30 * 65536)) && wait_attached $r 2 && until_generates "$(uri_of $r)" &&
cut -f1 first | sort -n - second | uniq -d >twice && test ! -s twice
END
test_expect_success 'a second broker of a frozen rank serves; the first is refused when it continues, and serves after the second has ended' '
    on_hosts -o tbon.timeout=500ms sh frozen.sh
'
test_done
