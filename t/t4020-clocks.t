#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4020-clocks.t - hosts whose clocks are minutes behind or ahead when their broker is started again
#
# The page of t/chaos/host.h sets the wall clock of each broker; CLOCK_BOOTTIME is the host's, as on real hosts.
test_description='a broker that is started again under a wrong clock repeats no id, keeps the order, and serves'
. "$(dirname "$0")/idtree-sharness.sh"

init_state state --epoch 2026-01-01T00:00:00Z && head -c 520 /dev/zero >page || exit 1
export CHAOS_PAGE="$PWD/page" CHAOS_STATE="$PWD/state"

# A lease is short enough that ranks renew it under the wrong clock, too. On a busy machine a broker may need long to
# start and to answer: the timeouts are longer.
on_hosts() { # idtree start's arguments
    env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" \
        ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree start -s 7 --topology kary:2 -o fluid.lease=2s -o fluid.max-generators=6 \
        -o fluid.epoch=2026-01-01T00:00:00Z -o fluid.forward-timeout=1h -o tbon.timeout=1h -o log-stderr-level=0 "$@" </dev/null
}

cat >lib.sh <<'END'
unset LD_PRELOAD
. "$IDTREE_SRCDIR/t/wait.sh"
uri_of() { echo "${IDTREE_URI%0}$1"; }
info() { idtree info --uri "$(uri_of "$1")" | awk -v key="$2" '$2 == key { print $3 }'; }

# The host of rank $1 is $2 minutes ahead, from now on.  The page is an array of little-endian numbers of 64 bits.
set_clock() {
    us=$(($2 * 60000000)) bytes=
    for i in 1 2 3 4 5 6 7 8; do
        bytes=$bytes$(printf '\\%03o' $((us & 255)))
        us=$((us >> 8))
    done
    printf "$bytes" | dd of="$CHAOS_PAGE" bs=8 seek="$1" conv=notrunc 2>/dev/null
}
# By its own account rank $1 was started $2 minutes from now, give or take one.
started_at() {
    idtree getattr -r "$1" broker.starttime | awk -v now="$(date +%s)" -v min="$2" '
        { off = ($1 - now) / 60 - min; exit !(off > -1 && off < 1) }'
}
restart() { # rank, minutes
    idtree startctl kill "$1" && set_clock "$1" "$2" && idtree startctl run "$1" && wait_served "$1" && started_at "$1" "$2"
}
# Clients of all ranks ask until fifo 6 is closed.
load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" -a "${IDTREE_URI%0}" 0 1 2 3 4 5 6 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid && cat result && ! grep "ids 0 " result; }
undisturbed() { # rank...
    for r; do grep "^rank $r: .* failed 0 connections-lost 0 " result || return 1; done
}
# All have heard the root that runs now.
all_heard() {
    now=$(info 0 timestamp_ms)
    for r in 1 2 3 4 5 6; do
        wait_until "rank $r has heard the root" holds "test \"\$(info $r timestamp_ms)\" -ge $now" || return 1
    done
}
bound_us() { info $1 skew_bound_ms | awk '{ printf "%d", $1 * 1000 + 1 }'; }
# Ids that ranks $@ make one after the other, with more time between than both bounds on skew, sort in that order.
in_order() {
    last=0 last_end=0 last_bound=0 judged=0
    for r; do
        wait_until "the bounds are over" holds "test \$(date +%s%6N) -gt \$((last_end + last_bound + \$(bound_us $r)))" &&
        begin=$(date +%s%6N) && id=$(idtree id new -r $r --to dec -g) && end=$(date +%s%6N) &&
        bound=$(bound_us ${id#*	}) && id=${id%	*} || return 1
        if test $((begin - last_end)) -gt $((bound + last_bound)); then
            judged=$((judged + 1))
            test "$id" -gt "$last" || { echo "rank $r: $id is not above $last"; return 1; }
        fi
        last=$id last_end=$end last_bound=$bound
    done
    echo "$judged judged" && test $judged -gt $(($# / 2))
}
END

cat >ranks.sh <<'END'
. ./lib.sh
load_start &&
for minutes in -10 10 0; do
    for rank in 5 1 6; do restart $rank $minutes || exit 1; done
    in_order 5 0 1 5 4 1 6 3 5 6 2 1 0 5 3 6 1 4 2 5 || exit 1
done &&
load_end && undisturbed 0 2 3 4
END
test_expect_success 'a leaf, an inner rank and a rank without a generator restart with clocks that are 10 minutes behind or ahead' '
    on_hosts sh ranks.sh
'
cat >root.sh <<'END'
. ./lib.sh
load_start &&
for minutes in -10 10 0; do
    restart 0 $minutes && all_heard && in_order 5 0 1 5 4 1 6 3 5 6 2 1 0 5 3 6 1 4 2 5 || exit 1
done &&
load_end && undisturbed 1 2 3 4 5 6
END
test_expect_success 'rank 0 restarts under a wrong clock, while the other ranks continue' '
    on_hosts -o statedir="$PWD/state" sh root.sh
'
# What was made by all instances so far is in 'made', in order.
cat >again.sh <<'END'
. ./lib.sh
for r in 0 1 2 3 4 5 6; do idtree id new -r $r -n 3000 --to dec || exit 1; done >new &&
in_order 5 0 1 5 4 1 6 3 5 6 2 1 0 5 3 6 1 4 2 5 &&
idtree info | grep "fluid ahead_ms" &&
sort -n new >>made && test -z "$(uniq -d made)" && sort -n -c made &&
case $1 in kill) idtree startctl kill 0 ;; esac
END
test_expect_success 'all ranks restart from their state after a stop or a kill: all new ids are above all earlier ones' '
    : >made &&
    for minutes in 0 -10 10 0; do
        for r in 0 1 2 3 4 5 6; do (. ./lib.sh && set_clock $r $minutes) || return 1; done
        on_hosts -o statedir="$PWD/state" sh again.sh stop &&
        on_hosts -o statedir="$PWD/state" sh again.sh kill || return 1
    done && test $(wc -l <made) = 168000
'
test_done
