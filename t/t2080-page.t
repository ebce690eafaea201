#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2080-page.t - processes that make ids themselves, by the page that they share with a broker
test_description='processes of a host share a generator with their broker: none twice, in order, whoever is killed'
. "$(dirname "$0")/idtree-sharness.sh"

test_under_idtree 3 -o fluid.lease=4s -o fluid.max-generators=2
export LOAD="$IDTREE_BUILDDIR/t/pageload"
RUN=$(idtree getattr rundir)

# In a process of its own, at rank 1.
at1() { IDTREE_URI=${IDTREE_URI%0}1 exec "$@"; }
# Ids of one file above those of another.
last_of() { tail -c 8 "$1" | od -An -tu8 | tr -d " "; }
first_of() { head -c 8 "$1" | od -An -tu8 | tr -d " "; }

test_expect_success 'a rank that owns a generator has a page, and none but its owner gets at it' '
    wait_served 0 -g && wait_served 1 -g && wait_served 2 &&
    test "$(stat -c %a:%F "$RUN/page-0")" = 600:socket && test -S "$RUN/page-1" && test ! -e "$RUN/page-2"
'
if command -v pkg-config >/dev/null; then test_set_prereq PKGCONFIG; fi
test_expect_success PKGCONFIG 'pkg-config names the library that programs need for that, and nothing else' '
    PKG_CONFIG_PATH=$IDTREE_BUILDDIR/etc pkg-config --static --libs-only-l idtree-page >libs && test "$(tr -d " " <libs)" = -lidtree-page
'
test_expect_success 'eight processes and requests share one generator: each in order, none twice' '
    pids= && for i in 1 2 3 4 5 6; do "$LOAD" make make.$i 40000 $i & pids="$pids $!"; done &&
    for i in 1 2; do "$LOAD" ask ask.$i 20000 7 & pids="$pids $!"; done &&
    before=$(idtree id new --to=dec) && for i in 1 2 3 4 5; do idtree id new -n 3000 --to=dec || return 1; done >asked &&
    for p in $pids; do wait "$p" || return 1; done &&
    "$LOAD" check make.* ask.* && sort -n -c asked &&
    for i in make.* ask.*; do od -An -v -w8 -tu8 $i; done | tr -d " " | sort >made && sort asked | comm -12 made - >both && test_must_be_empty both
'
counted() { idtree metrics -r 0 | sed -n "s/^idtree_fluid_ids_total{origin=\"page\"} //p"; }
counts() { test "$(counted)" = "$1"; }
test_expect_success 'the broker counts them' '
    idtree module stats --clear fluid && idtree id new >/dev/null && before=$(counted) &&
    "$LOAD" make counted 5000 7 && wait_until "they are counted" counts $((before + 5000))
'
# A time namespace has a CLOCK_BOOTTIME of its own, a container's may be years away.
if unshare -T --boottime 1 --monotonic 1 --fork true 2>/dev/null; then test_set_prereq TIMENS; fi
test_expect_success TIMENS 'a process whose clocks are others makes no ids of the page, but gets them by message' '
    before=$(counted) && unshare -T --boottime 1 --monotonic 1 --fork "$LOAD" ask elsewhere 3000 7 &&
    "$LOAD" check elsewhere && idtree id new >/dev/null && counts "$before"
'
test_expect_success TIMENS 'one in a namespace of its own with the same clocks does' '
    unshare -T --fork "$LOAD" make here 3000 7 && wait_until "they are counted" counts $((before + 3000))
'
test_expect_success 'they are of this generator' '
    for i in make.1 ask.1; do last_of $i; done | idtree id show --json - | sed "s/.*\"generator\": *\([0-9]*\).*/\1/" >got &&
    printf "0\n0\n" >want && test_cmp want got
'
test_expect_success 'a request is answered with ids above what was made before' '
    "$LOAD" make before 1000 1 && asked=$(idtree id new --to=dec) && "$LOAD" make after 1 1 &&
    test "$asked" -gt "$(last_of before)" && test "$(first_of after)" -gt "$asked"
'
test_expect_success 'processes are killed while they make ids' '
    for i in 1 2 3 4 5 6 7 8; do "$LOAD" make killed.$i 100000000 $i & pid=$!;
        wait_until "it makes ids" test -s killed.$i && kill -9 $pid; wait $pid; done; "$LOAD" make rest 10000 1 &&
    "$LOAD" check killed.* rest make.* ask.* before after
'
load() { "$LOAD" make load.1 2000000 16 & pids=$!; "$LOAD" ask load.2 600000 16 & pids="$pids $!"; wait_until "ids are made" test -s load.1; }
test_expect_success 'the module is loaded anew, again and again' '
    load && for i in 1 2 3 4; do idtree module remove fluid && idtree module load fluid && wait_served 0 -g || return 1; done &&
    for p in $pids; do wait "$p" || return 1; done && "$LOAD" check load.* make.* rest
'
grows() { test "$(stat -c %s "$1")" -gt "$2"; }
test_expect_success 'a broker is stopped: its page goes on until the lease is used up, and after it goes on' '
    at1 "$LOAD" make stop.1 3000000 8 & stopped=$!; wait_until "ids are made" test -s stop.1 &&
    idtree startctl stop 1 && size=$(stat -c %s stop.1) && wait_until "ids are made without the broker" grows stop.1 $size &&
    idtree startctl cont 1 && wait $stopped && "$LOAD" check stop.1
'
test_expect_success 'a broker is killed, and runs again' '
    at1 "$LOAD" make kill.1 2000000 8 & load=$!; at1 "$LOAD" ask kill.2 20000 8 & asker=$!;
    wait_until "ids are made" test -s kill.1 && idtree startctl kill 1 && idtree startctl run 1 &&
    wait $asker && wait_served 1 -g && kill -9 $load; wait $load; (at1 "$LOAD" make kill.3 1000 8) && "$LOAD" check kill.* stop.* make.* load.*
'
test_expect_success 'who calls while the broker has no descriptor for him is answered when it has one' '
    pid=$(idtree startctl status | awk "\$1 == 1 { print \$2 }") && had=$(prlimit --pid "$pid" --nofile --noheadings -o SOFT) &&
    prlimit --pid "$pid" --nofile=10: && { (at1 "$LOAD" make deaf 10 1) & } && load=$! &&
    wait_until "he calls" sh -c "ls -l /proc/$load/fd | grep socket" >calls && prlimit --pid "$pid" --nofile="$had:" && wait $load
'
test_expect_success 'a request that was sent before a call gets the ids that are below, also where the call needs no message' '
    "$LOAD" turns turns 4000 5 && "$LOAD" check turns
'
# Leases of an hour: who would wait for the end of one would wait for ever.
cat >spoil.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
wait_served 0 -g && "$LOAD" make spoilt.1 1000 1 && "$IDTREE_BUILDDIR/t/pagevandal" $1 || exit 1
idtree id new -n 200 --to=dec >asked.spoilt && "$LOAD" ask spoilt.2 500 7 || exit 1
idtree dmesg | grep "holds an invalid word" && "$LOAD" check spoilt.1 spoilt.2 && sort -n -c asked.spoilt
END
test_expect_success 'rank 0 goes on at once where somebody spoilt its page, whatever was written there' '
    for what in back ahead; do
        idtree start -o fluid.lease=1h sh spoil.sh $what && test "$(head -n 1 asked.spoilt)" -gt "$(last_of spoilt.1)" &&
        test "$(first_of spoilt.2)" -gt "$(tail -n 1 asked.spoilt)" && rm spoilt.* || return 1
    done
'
# Whoever would wait for those times would wait for as long as they are written.
cat >chase.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
wait_served 0 -g || exit 1
"$IDTREE_BUILDDIR/t/pagevandal" chase & vandal=$!
idtree id new -n 200 --to=dec >asked.chase && idtree id new -n 200 --to=dec >>asked.chase && wait $vandal && sort -n -c asked.chase
rc=$?
kill $vandal 2>/dev/null
exit $rc
END
test_expect_success 'a process writes times of a second ahead, again and again: the broker sees it, and answers by message' '
    idtree start -o fluid.lease=1h sh chase.sh
'
test_expect_success 'who has the page and writes nonsense: it is closed, and ids go on when that lease is over' '
    (at1 "$LOAD" make nonsense.1 1000 1) && (at1 "$IDTREE_BUILDDIR/t/pagevandal") &&
    wait_until "it is told" sh -c "idtree dmesg -r 1 | grep \"holds an invalid word\"" &&
    wait_served 1 -g && test_expect_code 1 env IDTREE_URI="${IDTREE_URI%0}1" "$IDTREE_BUILDDIR/t/pagevandal" 2>err && grep "not supported" err &&
    idtree id new -r 1 -n 1000 --to=dec >asked && test "$(head -n 1 asked)" -gt "$(last_of nonsense.1)"
'
test_expect_success 'fluid.attach=off: there is none' '
    idtree start -o fluid.attach=off sh -c "ls \$(idtree getattr rundir)" >files && test_must_fail grep page files &&
    idtree start -o fluid.attach=off sh -c "$LOAD ask off 100 1 && $LOAD check off" >out && grep "^ids 100 twice 0 disorder 0$" out
'
test_expect_success 'fluid.attach=all: for all who may connect; nonsense is refused with a sentence' '
    idtree start -o fluid.attach=all -o access.allow-guest-user=on sh -c "cd \$(idtree getattr rundir) && stat -c %a page-0 local-0" >modes &&
    test "$(sort -u modes | wc -l)" = 1 &&
    test_must_fail idtree start -o fluid.attach=yes true 2>err && grep "fluid.attach=yes: must be owner, all, or off" err
'
test_done
