#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4021-pauses.t - hosts whose CLOCK_BOOTTIME jumps, or misses time as on a virtual machine that is paused
#
# The page of t/chaos/host.h sets that clock for each broker.
test_description='a rank detects and reports a pause that CLOCK_BOOTTIME missed, and then continues with the right time; ids stay in order'
. "$(dirname "$0")/idtree-sharness.sh"

mkdir -m 700 state && head -c 1032 /dev/zero >page || exit 1
export CHAOS_PAGE="$PWD/page" CHAOS_STATE="$PWD/state"

on_hosts() { # idtree start's arguments
    env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" \
        ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree start -s 3 --topology kary:2 -o log-stderr-level=0 "$@" </dev/null
}

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
unset LD_PRELOAD
uri_of() { echo "${IDTREE_URI%0}$1"; }
info() { idtree info --uri "$(uri_of "$1")" | awk -v key="$2" '$2 == key { print $3 }'; }
makes_ids() { idtree id new -r "$1" -g | grep -q "	$1\$"; }
served() { wait_until "rank $1 makes ids by itself" makes_ids "$1"; }
# CLOCK_BOOTTIME of rank $1 is off by $2 seconds from now on.
set_boot() {
    us=$(($2 * 1000000)) bytes=
    for i in 1 2 3 4 5 6 7 8; do
        bytes=$bytes$(printf '\\%03o' $((us & 255)))
        us=$((us >> 8))
    done
    printf "$bytes" | dd of="$CHAOS_PAGE" bs=8 seek=$((65 + $1)) conv=notrunc 2>/dev/null
}
load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" "${IDTREE_URI%0}" 0 1 2 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid; rc=$?; cat result; return $rc; }
logged() { idtree dmesg --uri "$(uri_of "$1")" | grep "$2"; }
until_logged() { wait_until "rank $1 logs $2" logged "$@"; }
# The time of rank $1 is no more than 2 s behind that of rank $2, as it was when it had missed some.
caught_up() { other=$(info $2 timestamp_ms) && own=$(info $1 timestamp_ms) && echo "$own $other" && test $((own + 2000)) -gt "$other"; }
END

cat >rank.sh <<'END'
. ./lib.sh
served 1 && load_start && set_boot 1 -5 &&
until_logged 1 "CLOCK_BOOTTIME of this host missed [45]\.[0-9]* s, .*: this rank makes no ids until the parent's time is known" &&
served 1 && caught_up 1 0 && load_end
END
test_expect_success 'a rank whose clock missed 5 s makes no ids until it knows the time, and reports this' '
    on_hosts sh rank.sh
'
cat >jump.sh <<'END'
. ./lib.sh
set_boot 1 0 && served 1 && load_start && set_boot 1 60 &&
until_logged 1 "CLOCK_BOOTTIME of this host jumped [56][0-9]\.[0-9]* s ahead of all other clocks" &&
served 1 && caught_up 0 1 && load_end
END
test_expect_success 'a rank whose clock jumps a minute ahead does not count the jump as elapsed time' '
    printf "\000\000\000\000\000\000\000\000" | dd of=page bs=8 seek=66 conv=notrunc && on_hosts sh jump.sh
'
cat >root.sh <<'END'
. ./lib.sh
served 0 && served 1 && load_start && set_boot 0 -5 &&
until_logged 0 "CLOCK_BOOTTIME of this host missed [45]\.[0-9]* s" &&
until_logged 0 "rank 0 stepped [0-9.]* s forward, by time that its clock had missed" &&
caught_up 0 1 && served 0 && load_end
END
test_expect_success 'rank 0 steps forward by the time that the wall clock confirms' '
    head -c 1032 /dev/zero >page && on_hosts sh root.sh
'
cat >between.sh <<'END'
. ./lib.sh
set_boot 0 0 && set_boot 1 0 && served 0 && served 1 && load_start &&
for r in 0 1; do
    idtree module remove -r $r fluid && set_boot $r 60 && idtree module load -r $r fluid &&
    until_logged $r "CLOCK_BOOTTIME of this host jumped [56][0-9]\.[0-9]* s ahead of all other clocks" || exit 1
done
served 1 && caught_up 0 1 && caught_up 1 0 && load_end
END
test_expect_success 'a jump of the clock while fluid is removed is detected, also on rank 0' '
    on_hosts sh between.sh
'
test_done
