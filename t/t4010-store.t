#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4010-store.t - the horizon on a real disk that fills up, becomes read-only, hangs, fails, is damaged, or is used
# twice

# The test has its own mounts, which end with it, however it ends.
if test -z "$TEST_OWN_MOUNTS" && unshare -m true 2>/dev/null; then
    TEST_OWN_MOUNTS=1
    export TEST_OWN_MOUNTS
    exec unshare -m /bin/sh "$0" "$@"
fi
test_description='rank 0 grants no lease beyond the stored horizon on bad disks'
. "$(dirname "$0")/idtree-sharness.sh"

# Options of each instance: leases end soon.
opts='-o fluid.lease=600ms -o fluid.forward-timeout=200ms -o log-stderr-level=0'

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
store_says() { idtree info | grep "^fluid store  *$1"; }
until_store_says() { wait_until "the store is $1" store_says "$1"; }
until_refused() { wait_until "no ids are given" is_refused "$1" && cat refusal; } # and why
is_refused() { ! idtree id new >/dev/null 2>refusal && grep -q "$1" refusal; }
until_served() { wait_until "ids are given" idtree id new; }
horizon() { idtree info | awk '$2 == "horizon_ms" { print $3 }'; }
time_ms() { idtree info | awk '$2 == "timestamp_ms" { print $3 }'; }
# The disk is as t/chaos/host.h says: 1 full, 2 broken, 3 hanging; 0 good.
set_disk() { printf "\\00$1" | dd of="$CHAOS_PAGE" bs=1 seek=512 conv=notrunc 2>/dev/null; }
END

# Sanitizers must be preloaded first, so faketime does not change the clock there.
faketime -f -1d idtree version >/dev/null 2>&1 && test_set_prereq FAKETIME
mkdir disk
if test -n "$TEST_OWN_MOUNTS" && mount -t tmpfs -o size=128k tmpfs disk 2>mount-error; then
    test_set_prereq MOUNT
    cleanup "umount -l '$PWD/disk'"
else
    say_color skip "# a small tmpfs cannot be mounted here: $(cat mount-error 2>/dev/null || echo no unshare)"
fi

cat >full.sh <<'END'
. ./lib.sh
until_served && until_store_says good &&
cat /dev/zero >disk/fill 2>/dev/null
until_store_says 'failing: .*disk/fluid.sqlite: ' &&
until_refused 'horizon can be stored' &&
test "$(time_ms)" -ge "$(horizon)" &&
idtree overlay status >status && cat status &&
grep '^0 .*, store failing' status && grep '^store failing: .*disk/fluid.sqlite' status &&
idtree dmesg | grep 'no leases are granted' >told && cat told && test "$(wc -l <told)" = 1 &&
rm disk/fill &&
until_served && until_store_says good &&
idtree dmesg | grep 'the horizon is stored again' &&
idtree overlay status >status && ! grep store status
END
test_expect_success MOUNT 'with a full disk leases end before they exceed the stored horizon, and leases are granted again when there is space' '
    init_state disk && idtree start -s 2 $opts -o statedir="$PWD/disk" sh full.sh
'
test_expect_success MOUNT 'a statedir that cannot be written is refused with the reason' '
    mkdir -p disk/ro && mount -t tmpfs tmpfs disk/ro && init_state disk/ro && mount -o remount,ro disk/ro &&
    test_must_fail idtree start $opts -o statedir="$PWD/disk/ro" true 2>err; rc=$?; umount disk/ro; cat err && test $rc = 0 &&
    grep "disk/ro/fluid.sqlite: " err && grep "cannot be made or written: Read-only file system" err
'
test_expect_success MOUNT 'a first start on a full disk is refused, and leaves nothing that prevents the next start' '
    init_state disk/new && { cat /dev/zero >disk/fill 2>/dev/null; true; } &&
    test_must_fail idtree start $opts -o statedir="$PWD/disk/new" true 2>err; rc=$?; rm disk/fill; cat err && test $rc = 0 &&
    grep "disk/new/fluid.sqlite: " err &&
    idtree start $opts -o statedir="$PWD/disk/new" idtree id new
'
cat >gone.sh <<'END'
. ./lib.sh
until_served && until_store_says good && mv gone gone-away &&
until_store_says 'failing: .*gone/fluid.sqlite: was removed or replaced' &&
until_refused 'horizon can be stored' &&
mkdir -m 700 gone && cp -p gone-away/* gone/ && store_says 'failing: .*gone/fluid.sqlite: was removed or replaced' &&
idtree dmesg | grep 'no leases are granted' >told && cat told && test "$(wc -l <told)" = 1 &&
rm -r gone && mv gone-away gone && until_served && until_store_says good
END
test_expect_success 'no leases are granted while the statedir is moved away or replaced by a copy, and leases continue when it is back' '
    init_state gone && idtree start -s 2 $opts -o statedir="$PWD/gone" sh gone.sh
'
init_state hung && head -c 520 /dev/zero >page
cat >hung.sh <<'END'
unset LD_PRELOAD
. ./lib.sh
until_served && until_store_says good && idtree dmesg -C && set_disk $1 && until_store_says "$2" && until_refused 'horizon can be stored' &&
test "$(time_ms)" -ge "$(horizon)" && idtree overlay status >status && cat status && grep "^store $2" status &&
idtree dmesg | grep "$3" >told && cat told && test "$(wc -l <told)" = 1 &&
wait_until "rank 1 is there" idtree ping -c 1 1 && set_disk 0 && until_served && until_store_says good &&
idtree dmesg | grep 'the horizon is stored again'
END
on_a_disk_that() { run_on_disk hung.sh "$@"; } # hung.sh's arguments
run_on_disk() { # a script and its arguments
    env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" CHAOS_PAGE="$PWD/page" CHAOS_STATE="$PWD/hung" \
        ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0:detect_leaks=0" \
        idtree start -s 2 $opts -o statedir="$PWD/hung" sh "$@" </dev/null
}
test_expect_success 'on a disk that hangs no leases are granted and other services continue; leases are granted when the disk continues' '
    on_a_disk_that 3 "slow: the horizon is not stored yet" "the disk is slow: the horizon is not stored yet"
'
test_expect_success 'on a disk that fails no leases are granted' '
    on_a_disk_that 2 "failing: .*hung/fluid.sqlite: " "no leases are granted beyond the stored horizon"
'
cat >memory.sh <<'END'
unset LD_PRELOAD
. ./lib.sh
set_disk 0 && until_served && wait_served 1 && set_disk 3 && until_refused . && idtree module remove -r 1 fluid &&
idtree dmesg --uri "${IDTREE_URI%0}1" >told; cat told; grep 'hung/memory-1: its disk hangs: .* the module ends without it' told &&
set_disk 0 && idtree module load -r 1 fluid && until_served && wait_served 1
END
test_expect_success 'on a disk that hangs the fluid module ends without writing the memory file of its rank' '
    run_on_disk memory.sh
'
test_expect_success 'a second instance on the same statedir does not start, and names the broker that uses it' '
    init_state one && cat >second.sh <<-\END &&
	. ./lib.sh
	until_served && idtree start -o statedir="$PWD/one" true 2>err
	test $? != 0 && cat err && grep "in use by broker .*, process [0-9]* on .*: one instance at a time" err
	END
    idtree start $opts -o statedir="$PWD/one" sh second.sh
'
test_expect_success 'the epoch of an instance does not change, and another epoch is refused with a message that has both' '
    init_state epoch --epoch 2026-01-01T00:00:00Z &&
    idtree start $opts -o statedir="$PWD/epoch" -o fluid.epoch=2026-01-01T00:00:00Z idtree id new &&
    idtree start $opts -o statedir="$PWD/epoch" idtree info | grep "fluid epoch  *2026-01-01T00:00:00.000Z" &&
    test_must_fail idtree start -o statedir="$PWD/epoch" -o fluid.epoch=2025-01-01T00:00:00Z true 2>err && cat err &&
    grep "fluid.epoch=2025-01-01T00:00:00Z" err && grep "2026-01-01T00:00:00.000Z" err
'
test_expect_success 'id show prints the date of an id with its error bound' '
    idtree start $opts -o statedir="$PWD/epoch" sh -c "idtree id show \$(idtree id new)" >out && cat out &&
    grep -E "^date +20[0-9-]+T[0-9:.]+Z ± [0-9]+ ms$" out
'
init_state old --epoch 2026-01-01T00:00:00Z || exit 1
test_expect_success FAKETIME 'a start with a clock far ahead of the horizon is refused with a message that has both times' '
    FAKETIME_DONT_FAKE_MONOTONIC=1 faketime -f -1d idtree start $opts -o statedir="$PWD/old" \
        -o fluid.epoch=2026-01-01T00:00:00Z idtree id new &&
    test_must_fail idtree start -o statedir="$PWD/old" -o fluid.max-jump=1h true 2>err && cat err &&
    grep "the clock says 20.*, the newest ids are of 20.*fluid.max-jump" err &&
    test_must_fail idtree start -o fluid.epoch=2999-01-01T00:00:00Z true 2>err && cat err &&
    grep "the clock says 20.*, the epoch is 2999-01-01T00:00:00.000Z.*fluid.max-jump=0" err
'
test_expect_success 'a damaged file of the horizon is refused with advice' '
    dd if=/dev/zero of=epoch/fluid.sqlite bs=1 seek=100 count=4000 conv=notrunc 2>/dev/null &&
    test_must_fail idtree start -o statedir="$PWD/epoch" true 2>err && cat err &&
    grep "epoch/fluid.sqlite: damaged" err && grep -e "--recover-horizon=DATE-or-ID" err
'
test_expect_success '--recover-horizon with an id replaces a damaged file' '
    idtree start -o statedir="$PWD/one" idtree id new >newest &&
    idtree start $opts -o statedir="$PWD/epoch" -o fluid.epoch=2026-01-01T00:00:00Z \
        --recover-horizon="$(idtree id convert --to f58 "$(cat newest)")" idtree id new >after && cat after &&
    test -e epoch/fluid.sqlite.damaged-1 &&
    test "$(idtree id convert --to dec "$(cat after)")" -gt "$(idtree id convert --to dec "$(cat newest)")"
'
test_expect_success '--recover-horizon with a date replaces a damaged file' '
    echo junk >epoch/fluid.sqlite &&
    idtree start $opts -o statedir="$PWD/epoch" -o fluid.epoch=2026-01-01T00:00:00Z \
        --recover-horizon="$(date -u -d "+ 1 hour" +%Y-%m-%dT%H:%M:%SZ)" idtree info >out && cat out &&
    test -e epoch/fluid.sqlite.damaged-2 &&
    awk "\$2 == \"ahead_ms\" && \$3 > 3500000 { found = 1 } END { exit !found }" out
'
test_expect_success 'the watermark rises above an id that any rank has made' '
    cat >watermark.sh <<-\END &&
	id=$(idtree id convert --to dec "$(idtree id new --rank 2)") &&
	watermark() { idtree id convert --to dec "$(idtree watermark | awk "/^id/ { print \$2 }")"; } &&
	. "$IDTREE_SRCDIR/t/wait.sh" &&
	wait_until "the watermark passes $id" holds "test \$(watermark) -gt $id" &&
	idtree watermark --json | grep "\"behind_ms\":[0-9]"
	END
    idtree start -s 3 $opts sh watermark.sh
'
test_done
