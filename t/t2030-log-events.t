#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2030-log-events.t - the log and the events of a chain of brokers
test_description='the log is forwarded to rank 0, and events reach every rank in one order'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 5 --topology kary:1 -o log-ring-size=100

uri() { echo "${IDTREE_URI%0}$1"; }
at() { # RANK command...
    rank=$1
    shift
    "$@" --uri "$(uri "$rank")"
}
# Lines of one rank stay in order on their way: when a later line has arrived, an earlier one has arrived or was
# dropped.
settled() { # RANK
    idtree logger --uri "$(uri "$1")" "settled-$1-$2" && 
    wait_until "rank 0 has a line of rank $1" holds "idtree dmesg | grep -q settled-$1-$2"
}

test_expect_success 'a log line is stored on its own rank and on rank 0, with its rank and name' '
    at 4 idtree logger -n me -s warning "over there" && settled 4 a &&
    at 4 idtree dmesg | grep "me.*\[4\].*over there" && idtree dmesg | grep "me.*\[4\].*over there" &&
    ! at 3 idtree dmesg | grep "over there"
'
test_expect_success 'an error is printed once on a stderr that all brokers of a launcher share' '
    idtree start -s 2 -o log-forward-level=7 sh -c "IDTREE_URI=\${IDTREE_URI%0}1 && idtree logger -s err bad-disk &&
        idtree logger -s debug after && . $IDTREE_SRCDIR/t/wait.sh &&
        wait_until there holds \"idtree dmesg -r 0 | grep -q after\"" 2>err && test "$(grep -c bad-disk err)" = 1
'
test_expect_success 'log lines less severe than log-forward-level are stored on their own rank only' '
    at 4 idtree logger -s debug "only here" && settled 4 b &&
    at 4 idtree dmesg | grep "only here" && ! idtree dmesg | grep "only here" &&
    idtree setattr -r 4 log-forward-level 7 && at 4 idtree logger -s debug "now there" && settled 4 c &&
    idtree dmesg | grep "now there"
'
test_expect_success 'log lines less severe than log-level are dropped' '
    idtree setattr -r 3 log-level 3 && at 3 idtree logger -s info "too little" && at 3 idtree logger -s err "enough" &&
    at 3 idtree dmesg >log && grep enough log && ! grep "too little" log && idtree setattr -r 3 log-level 7
'
test_expect_success 'an invalid log level is refused' '
    for l in 8 -1 "" debug 07; do
        test_must_fail idtree setattr log-level -- "$l" 2>err && grep "must be a level" err || return 1
    done &&
    test "$(idtree getattr log-level)" = 7
'
test_expect_success 'with log level -1 nothing is printed on stderr and nothing is forwarded' '
    idtree start -s 1 -o log-stderr-level=7 sh -c "
        idtree logger -s emerg before && idtree setattr log-stderr-level -- -1 && idtree getattr log-stderr-level &&
        idtree logger -s emerg between && idtree dmesg | grep between >dmesg &&
        idtree setattr log-stderr-level 0 && idtree logger -s emerg after" >out 2>err && cat err &&
    test "$(cat out)" = -1 && test -s dmesg && grep before err && ! grep between err && grep after err &&
    idtree start -s 1 -o log-stderr-level=-1 idtree logger -s emerg silence 2>err && test_must_be_empty err &&
    idtree setattr -r 3 log-forward-level -- -1 && at 3 idtree logger -s emerg "not sent" &&
    idtree setattr -r 3 log-forward-level 6 && settled 3 d && ! idtree dmesg | grep "not sent" &&
    test_must_fail idtree setattr log-stderr-level -1 2>err && grep -e "write -- before" err &&
    for l in -2 8 none; do
        test_must_fail idtree setattr log-stderr-level -- "$l" 2>err && grep "or -1 for none" err || return 1
    done
'
test_expect_success 'the log of a rank keeps only the last lines' '
    for i in $(seq 150); do at 2 idtree logger -s debug "line-$i." || return 1; done && at 2 idtree dmesg >log &&
    test "$(wc -l <log)" = 100 && grep "line-150\." log && ! grep "line-1\." log
'
test_expect_success 'a log line that is too long is cut, and the log contains no control characters' '
    at 1 idtree logger "$(printf "red\033[31m")" && at 1 idtree logger "$(printf %05000d 7)" && at 1 idtree dmesg >log &&
    grep "red" log && ! grep "$(printf "\033")" log && test "$(tail -1 log | wc -c)" -lt 4200
'
# CSI as one character of two bytes: terminals treat it like ESC and [.
csi=$(printf '\302\233')
test_expect_success 'control characters from clients reach neither a terminal nor the stderr of a broker' '
    at 1 idtree logger -s err "log ${csi}31m" && at 1 idtree dmesg >log && grep "log ??31m" log && { at 2 idtree event sub -c 2 ctl. >got & } && sub=$! && wait_subscribers 2 1 &&
    idtree event pub "ctl.$(printf "\033[2J")" "{\"a\":\"${csi}2J\"}" &&
    wait_until "the first event has arrived" test -s got && { at 2 idtree event sub -c 1 --json ctl. >json & } && subjson=$! && wait_subscribers 2 2 &&
    idtree event pub "ctl.x" "{\"a\":\"${csi}2J$(printf "\177")\"}" && wait $sub && wait $subjson && cat got json && grep "x1b.2J.*xc2.x9b2J" got &&
    grep "u009b2J.u007f" json && ! cat log got json | LC_ALL=C grep -a "$(printf "\033")" && ! cat log got json | LC_ALL=C grep -aF "$csi" &&
    idtree start sh -c "idtree logger -s err \"log ${csi}31m\"" 2>err && grep "log ??31m" err &&
    test_must_fail idtree getattr "no$(printf "\033")such${csi}" 2>err && cat err && ! LC_ALL=C grep -aF "$csi" err && ! LC_ALL=C grep -aF "$(printf "\033")" err
'
test_expect_success 'the log of a rank can be cleared' '
    at 2 idtree dmesg -C && ! at 2 idtree dmesg | grep "line-" && idtree dmesg | grep "over there"
'
test_expect_success 'events published on all ranks reach all ranks in one order and without a gap' '
    for r in 0 1 2 3 4; do at $r idtree event sub -c 100 ev. >got.$r & done &&
    for r in 0 1 2 3 4; do
        wait_subscribers $r 1 || return 1
    done &&
    for r in 0 1 2 3 4; do for i in $(seq 20); do echo "$r.$i"; at $r idtree event pub ev.$r.$i || exit 1; done & done >published &&
    wait && test "$(wc -l <published)" = 100 && test "$(wc -l <got.0)" = 100 &&
    for r in 1 2 3 4; do test_cmp got.0 got.$r || return 1; done &&
    for r in 0 1 2 3 4; do seq 20 >want && cut -f1 got.0 | sed -n "s/^ev\.$r\.//p" >order && test_cmp want order || return 1; done
'
test_expect_success 'a client that disconnects leaves no subscription' '
    for r in 0 4; do wait_subscribers $r 0 || return 1; done
'
test_done
