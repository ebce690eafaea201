#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4022-ahead.t - an end in order leaves no clock debt, a kill does, and no id is issued twice
#
# A lease lasts an hour, so that a clock debt of one lease differs from the time that the test takes.
test_description='a clean stop leaves no clock debt, and after a crash no id is repeated'
. "$(dirname "$0")/idtree-sharness.sh"

opts='-s 4 --topology kary:2 -o fluid.lease=1h -o log-stderr-level=0'

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
value_of() { idtree info --uri "${IDTREE_URI%0}$1" | awk -v key="$2" '$1 == "fluid" && $2 == key { print int ($3) }'; }
is_active() { idtree info --uri "${IDTREE_URI%0}$1" | grep '^fluid state  *active'; }
until_active() { for r in "$@"; do wait_until "rank $r holds a lease" is_active $r || return 1; done; }
is_ahead() { ahead=$(value_of 0 ahead_ms) && echo "ahead $ahead" && test "$ahead" -ge 600000; }
is_now() { ahead=$(value_of 0 ahead_ms) && echo "ahead $ahead" && test "$ahead" -lt 1000; }
renewals() { idtree module stats -r $1 fluid | sed -n "s/^renewals  *//p"; }
is_renewed() { test "$(renewals $1)" -ge 3; }
until_renewed() { for r in "$@"; do wait_until "rank $r has renewed its lease" is_renewed $r || return 1; done; }
is_here() { ahead=$(value_of 0 ahead_ms) && echo "ahead $ahead" && test "$ahead" -lt 10000; }
# ids of all ranks, and time of the flake module
make_ids() {
    for r in "$@"; do idtree id new -n 3000 -r $r >>ids && idtree id new -s flax -r $r >>flaxes || return 1; done
}
reload() { idtree module remove fluid && idtree module load fluid; }
# Clients of all ranks ask until fifo 6 is closed.
load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" "${IDTREE_URI%0}" 0 1 2 3 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid; rc=$?; cat result; return $rc; }
END
no_id_twice() { sort ids flaxes | uniq -d >twice && { head twice; test ! -s twice; }; }
in_life() { # of the instance whose state is in folder $1: a line of the shell's
    init_state "$1" && printf '. ./lib.sh\n%s\n' "$2" >life.sh &&
    idtree start $opts -o statedir="$PWD/$1" sh life.sh </dev/null
}

test_expect_success 'an instance that was stopped cleanly, in whichever way, starts at the time of the clock' '
    rm -f ids flaxes && for end in true "idtree shutdown" true "reload" "idtree module remove flake"; do
        in_life order "is_here && until_active 0 1 2 3 && make_ids 0 1 2 3 && $end" || return 1
    done && in_life order "is_here && make_ids 0 1 2 3" && no_id_twice
'
# Leases of 6 s are renewed after 2: then a rank holds ranges that it was given in a row.
test_expect_success 'an instance starts at the time of the clock after a clean stop even if all ranks have renewed their leases' '
    rm -f ids flaxes && opts_were=$opts && opts="$opts -o fluid.lease=6s" && for i in 1 2 3 4; do
        in_life renewed "is_now && make_ids 0 1 2 3 && until_renewed 0 1 2 3 && make_ids 0 1 2 3" || return 1
    done && in_life renewed "is_now" && opts=$opts_were && no_id_twice
'
test_expect_success 'an instance starts at the time of the clock after a clean stop under load' '
    for i in 1 2 3; do
        in_life order "is_here && until_active 0 1 2 3 && make_ids 0 1 2 3 && load_start && make_ids 2 3" || return 1
    done && in_life order "is_here && make_ids 0 1 2 3" && no_id_twice
'
test_expect_success 'an instance starts above the end of a lease that was not returned' '
    rm -f ids flaxes && in_life killed "until_active 0 1 2 3 && make_ids 0 1 2 3 && idtree startctl kill 3 && is_here" &&
    in_life killed "is_ahead && make_ids 0 1 2 3" && no_id_twice
'
test_expect_success 'rank 0 reloads fluid twenty times under load, and has no clock debt' '
    in_life reload "until_active 0 1 2 3 && load_start && for i in \$(seq 20); do reload || { load_end; exit 1; }; done &&
        load_end && is_here"
'
test_expect_success 'a rank 0 that is killed while fluid is removed starts above all leases' '
    in_life between "until_active 0 1 2 3 && load_start && reload && is_here && idtree module remove fluid &&
        idtree startctl kill 0 && idtree startctl run 0 && wait_served 0 && wait_served 3 && is_ahead && load_end"
'
test_expect_success 'a rank 0 that is killed after a reload of fluid starts above all leases' '
    in_life after "until_active 0 1 2 3 && load_start && reload && reload && idtree startctl kill 0 &&
        idtree startctl run 0 && wait_served 0 && wait_served 3 && is_ahead && load_end"
'
test_done
