#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2080-page.t - processes make ids themselves, with the page that they share with a broker
test_description='processes of a host share a generator with their broker: ids are unique and in order, whichever process is killed'
. "$(dirname "$0")/idtree-sharness.sh"

test_under_idtree 3 -o fluid.lease=4s -o fluid.max-generators=2
export LOAD="$IDTREE_BUILDDIR/t/pageload"
RUN=$(idtree getattr rundir)

# Run a command at rank 1 in place of the calling shell.
at1() { IDTREE_URI=${IDTREE_URI%0}1 exec "$@"; }
# The last and the first id of a file, to show that the ids of one file are above those of another.
last_of() { tail -c 8 "$1" | od -An -tu8 | tr -d " "; }
first_of() { head -c 8 "$1" | od -An -tu8 | tr -d " "; }

test_expect_success 'a rank that has a generator has a page, and only the instance owner has access' '
    wait_active 0 && wait_active 1 && wait_served 2 &&
    test "$(stat -c %a:%F "$RUN/page-0")" = 600:socket && test -S "$RUN/page-1" && test ! -e "$RUN/page-2"
'
if command -v pkg-config >/dev/null; then test_set_prereq PKGCONFIG; fi
test_expect_success PKGCONFIG 'pkg-config names only the library that programs need for the page' '
    PKG_CONFIG_PATH=$IDTREE_BUILDDIR/etc pkg-config --static --libs-only-l idtree-page >libs && test "$(tr -d " " <libs)" = -lidtree-page
'
test_expect_success 'eight processes and clients with messages share one generator: each gets ids in order, and no id is issued twice' '
    pids= && for i in 1 2 3 4 5 6; do "$LOAD" make make.$i 40000 $i & pids="$pids $!"; done &&
    for i in 1 2; do "$LOAD" ask ask.$i 20000 7 & pids="$pids $!"; done &&
    before=$(idtree id new --to=dec) && for i in 1 2 3 4 5; do idtree id new -n 3000 --to=dec || return 1; done >asked &&
    for p in $pids; do wait "$p" || return 1; done &&
    "$LOAD" check make.* ask.* && sort -n -c asked &&
    for i in make.* ask.*; do od -An -v -w8 -tu8 $i; done | tr -d " " | sort >made && sort asked | comm -12 made - >both && test_must_be_empty both
'
counted() { idtree metrics -r 0 | sed -n "s/^idtree_fluid_ids_total{origin=\"page\"} //p"; }
counts() { test "$(counted)" = "$1"; }
test_expect_success 'the broker counts the ids that processes make' '
    idtree module stats --clear fluid && idtree id new >/dev/null && before=$(counted) &&
    "$LOAD" make counted 5000 7 && wait_until "they are counted" counts $((before + 5000))
'
# A time namespace has its own CLOCK_BOOTTIME; that of a container may be years away.
if unshare -T --boottime 1 --monotonic 1 --fork true 2>/dev/null; then test_set_prereq TIMENS; fi
test_expect_success TIMENS 'a process whose clocks differ from the broker makes no ids with the page, and gets ids by message' '
    before=$(counted) && unshare -T --boottime 1 --monotonic 1 --fork "$LOAD" ask elsewhere 3000 7 &&
    "$LOAD" check elsewhere && idtree id new >/dev/null && counts "$before"
'
test_expect_success TIMENS 'a process in a time namespace of its own, with the same clocks, makes ids with the page' '
    unshare -T --fork "$LOAD" make here 3000 7 && wait_until "they are counted" counts $((before + 3000))
'
test_expect_success 'ids that are made with the page have the generator of the broker' '
    for i in make.1 ask.1; do last_of $i; done | idtree id show --json - | sed "s/.*\"generator\": *\([0-9]*\).*/\1/" >got &&
    printf "0\n0\n" >want && test_cmp want got
'
test_expect_success 'a request is answered with ids above those that a process made before' '
    "$LOAD" make before 1000 1 && asked=$(idtree id new --to=dec) && "$LOAD" make after 1 1 &&
    test "$asked" -gt "$(last_of before)" && test "$(first_of after)" -gt "$asked"
'
test_expect_success 'processes that are killed while they make ids leave no duplicates' '
    for i in 1 2 3 4 5 6 7 8; do "$LOAD" make killed.$i 100000000 $i & pid=$!;
        wait_until "it makes ids" test -s killed.$i && kill -9 $pid; wait $pid; done; "$LOAD" make rest 10000 1 &&
    "$LOAD" check killed.* rest make.* ask.* before after
'
load() { "$LOAD" make load.1 2000000 16 & pids=$!; "$LOAD" ask load.2 600000 16 & pids="$pids $!"; wait_until "ids are made" test -s load.1; }
test_expect_success 'fluid is reloaded several times while processes make ids' '
    load && for i in 1 2 3 4; do idtree module remove fluid && idtree module load fluid && wait_active 0 || return 1; done &&
    for p in $pids; do wait "$p" || return 1; done && "$LOAD" check load.* make.* rest
'
grows() { test "$(stat -c %s "$1")" -gt "$2"; }
test_expect_success 'processes use the page of a stopped broker until the lease ends, and use it again when the broker continues' '
    at1 "$LOAD" make stop.1 3000000 8 & stopped=$!; wait_until "ids are made" test -s stop.1 &&
    idtree startctl stop 1 && size=$(stat -c %s stop.1) && wait_until "ids are made without the broker" grows stop.1 $size &&
    idtree startctl cont 1 && wait $stopped && "$LOAD" check stop.1
'
test_expect_success 'processes continue to make ids after their broker was killed and run again' '
    at1 "$LOAD" make kill.1 2000000 8 & load=$!; at1 "$LOAD" ask kill.2 20000 8 & asker=$!;
    wait_until "ids are made" test -s kill.1 && idtree startctl kill 1 && idtree startctl run 1 &&
    wait $asker && wait_active 1 && kill -9 $load; wait $load; (at1 "$LOAD" make kill.3 1000 8) && "$LOAD" check kill.* stop.* make.* load.*
'
test_expect_success 'a call to a broker that has no free descriptor is answered when the broker has one' '
    pid=$(idtree startctl status | awk "\$1 == 1 { print \$2 }") && had=$(prlimit --pid "$pid" --nofile --noheadings -o SOFT) &&
    prlimit --pid "$pid" --nofile=10: && { (at1 "$LOAD" make deaf 10 1) & } && load=$! &&
    wait_until "he calls" sh -c "ls -l /proc/$load/fd | grep socket" >calls && prlimit --pid "$pid" --nofile="$had:" && wait $load
'
test_expect_success 'a request that is sent before a call gets lower ids than the call, even if the call needs no message' '
    "$LOAD" turns turns 4000 5 && "$LOAD" check turns
'
# Leases last an hour: a broker that waited for the end of one would never answer.
cat >spoil.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
wait_active 0 && "$LOAD" make spoilt.1 1000 1 && "$IDTREE_BUILDDIR/t/pagevandal" $1 || exit 1
idtree id new -n 200 --to=dec >asked.spoilt && "$LOAD" ask spoilt.2 500 7 || exit 1
idtree dmesg | grep "holds an invalid word" && "$LOAD" check spoilt.1 spoilt.2 && sort -n -c asked.spoilt
END
test_expect_success 'rank 0 continues immediately after a process has corrupted its page, whatever was written' '
    for what in back ahead; do
        idtree start -o fluid.lease=1h sh spoil.sh $what && test "$(head -n 1 asked.spoilt)" -gt "$(last_of spoilt.1)" &&
        test "$(first_of spoilt.2)" -gt "$(tail -n 1 asked.spoilt)" && rm spoilt.* || return 1
    done
'
# A broker that waited for the written times would wait for as long as a process writes them.
cat >chase.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
wait_active 0 || exit 1
"$IDTREE_BUILDDIR/t/pagevandal" chase & vandal=$!
idtree id new -n 200 --to=dec >asked.chase && idtree id new -n 200 --to=dec >>asked.chase && wait $vandal && sort -n -c asked.chase
rc=$?
kill $vandal 2>/dev/null
exit $rc
END
test_expect_success 'a broker detects that a process writes times a second ahead into the page, and answers by message' '
    idtree start -o fluid.lease=1h sh chase.sh
'
test_expect_success 'a broker closes a page with invalid content, opens no other page, and makes ids above those of the page' '
    (at1 "$LOAD" make nonsense.1 1000 1) && (at1 "$IDTREE_BUILDDIR/t/pagevandal") &&
    wait_until "it is told" sh -c "idtree dmesg -r 1 | grep \"holds an invalid word\"" &&
    wait_active 1 && test_expect_code 1 env IDTREE_URI="${IDTREE_URI%0}1" "$IDTREE_BUILDDIR/t/pagevandal" 2>err && grep "not supported" err &&
    idtree id new -r 1 -n 1000 --to=dec >asked && test "$(head -n 1 asked)" -gt "$(last_of nonsense.1)"
'
test_expect_success 'with fluid.attach=off a broker has no page' '
    idtree start -o fluid.attach=off sh -c "ls \$(idtree getattr rundir)" >files && test_must_fail grep page files &&
    idtree start -o fluid.attach=off sh -c "$LOAD ask off 100 1 && $LOAD check off" >out && grep "^ids 100 twice 0 disorder 0$" out
'
test_expect_success 'with fluid.attach=all every user who may connect has access; an invalid value is refused with a message' '
    idtree start -o fluid.attach=all -o access.allow-guest-user=on sh -c "cd \$(idtree getattr rundir) && stat -c %a page-0 local-0" >modes &&
    test "$(sort -u modes | wc -l)" = 1 &&
    test_must_fail idtree start -o fluid.attach=yes true 2>err && grep "fluid.attach=yes: must be owner, all, or off" err
'
test_done
