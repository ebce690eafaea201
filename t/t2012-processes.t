#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2012-processes.t - an instance whose processes host many brokers each
test_description='brokers that share processes form an ordinary tree, and each of them can be killed'
. "$(dirname "$0")/idtree-sharness.sh"

TMPDIR=/tmp/idtree-t2012.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"
nothing_left() { test_nothing_in "$TMPDIR"; }

# A tree of 40 ranks with three levels below rank 0. Rank 1 and its children are in another process than rank 0.
many="--per-process 10 -s 40 --topology kary:3 -o tbon.timeout=2"

# Functions for scripts that run inside an instance.
cat >inside.sh <<'EOF'
. "$IDTREE_SRCDIR/t/wait.sh"
pid_of() { idtree startctl status | awk -v rank="$1" '$1 == rank { print $2 }'; }
is_state() { idtree startctl status | grep -q "^ *$1 .* $2\$"; }
is_full() { test "$(idtree overlay status --json | jq -r ".overlay[0].status")" = full; }
all_ids() { for r in $(seq 0 39); do idtree id new --rank "$r" || return 1; done; }
# The ranks of the process that hosts rank $1, and another process than rank 0's.
ranks_with() { idtree startctl status | awk -v pid="$(pid_of "$1")" '$2 == pid { print $1 }'; }
elsewhere() { idtree startctl status | awk '$1 == 0 { pid = $2 } NR > 2 && $2 != pid { print $1; exit }'; }
EOF
inside() { # options of idtree start, script
    script=$1
    # shellcheck disable=SC2086
    idtree start $many sh -ec ". ./inside.sh; $script"
}

test_expect_success 'four processes host 40 ranks, and all ranks are up' '
    inside "wait_until full is_full; idtree startctl status >status; idtree overlay status >overlay" 2>err &&
    test "$(grep -c " up$" status)" = 40 && test "$(awk "NR > 1 { print \$2 }" status | sort -u | wc -l)" = 4 &&
    test "$(grep -c " full " overlay)" = 40 && test ! -s err && nothing_left
'
test_expect_success 'with --per-process 100 and auto five brokers share one process, and with --per-process 1 each has its own' '
    for n in 100 auto 1; do
        idtree start -s 5 --per-process $n idtree startctl status >status &&
        awk "NR > 1 { print \$2 }" status | sort -u | wc -l || return 1
    done >pids && printf "1\n1\n5\n" >expected && test_cmp expected pids && nothing_left
'
test_expect_success 'the ranks of --local-sockets, and the first rank of each process, have sockets of their own' '
    idtree start -s 12 --per-process 12 --topology kary:3 --local-sockets 2,7-8 sh -ec "
        ls \$(dirname \${IDTREE_URI#local://}) >files
        for r in 2 8; do idtree getattr --uri \${IDTREE_URI%/*}/local-\$r rank; done >ranks" &&
    grep "^local-" files >sockets && printf "local-0\nlocal-2\nlocal-7\nlocal-8\n" >expected && test_cmp expected sockets &&
    printf "2\n8\n" >expected && test_cmp expected ranks && nothing_left
'
test_expect_success '--local-sockets refuses an invalid set of ranks, and a rank that the instance does not have' '
    for r in x 1- 2-1 -1 1,,2; do
        test_expect_code 2 idtree start -s 4 --local-sockets=$r true 2>err && grep -e "$r. is not a list of ranks such as 0,8-15" err || return 1
    done && test_expect_code 2 idtree start --local-sockets 1,2-4 -s 4 true 2>err &&
    grep -e "--local-sockets: there is no rank 4: the instance has ranks 0 to 3" err && nothing_left
'
test_expect_success 'trees of other topologies than kary can be divided into processes' '
    for t in kary:1 kary:2 mincrit:3 binomial; do
        idtree start -s 20 --per-process 6 --topology $t sh -c ". ./inside.sh; wait_until full is_full && idtree startctl status" >status &&
        awk "NR > 1 { print \$2 }" status | sort | uniq -c | awk "\$1 > 9 { exit 1 } END { exit NR < 3 || NR > 4 }" ||
            { echo "$t:"; cat status; return 1; }
    done && nothing_left
'
test_expect_success 'every rank of shared processes makes ids, and no id is issued twice' '
    inside "all_ids >ids" && test "$(sort -u ids | wc -l)" = 40
'
test_expect_success 'a subscriber in another process receives an event' '
    inside "r=\$(elsewhere); IDTREE_URI=\${IDTREE_URI%/*}/local-\$r idtree event sub --count=1 x. >event &
        r=\$(elsewhere); wait_subscribers \$r 1; idtree event pub x.y; wait" && grep x.y event
'
test_expect_success 'a killed rank sends no goodbye: its children attach to its parent, and return when the rank runs again' '
    inside "
        pid=\$(pid_of 1); idtree startctl kill 1; is_state 1 \"killed by SIGKILL\"
        wait_attached 4 0; wait_attached 6 0; all_ids_but_1() { for r in 0 4 13 39; do idtree id new --rank \$r; done; }
        all_ids_but_1 >ids; idtree startctl run 1; test \"\$(pid_of 1)\" = \$pid
        wait_attached 4 1; wait_attached 1 0; wait_until full is_full; idtree id new --rank 1 >>ids" 2>err &&
    test "$(sort -u ids | wc -l)" = 5 && grep "lost: the connection was closed" err && ! grep "has stopped\|was killed" err &&
    nothing_left
'
test_expect_success 'when a process is killed all of its ranks are lost, and all return when the process is run again' '
    inside "
        r=\$(elsewhere); pid=\$(pid_of \$r); ranks_with \$r >ranks; kill -9 \$pid
        wait_until \"rank \$r is down\" is_state \$r \"killed by SIGKILL\"
        for k in \$(cat ranks); do is_state \$k \"killed by SIGKILL\"; done
        idtree id new --rank 0; idtree startctl run \$r
        for k in \$(cat ranks); do wait_until \"\$k is up\" is_state \$k up; done
        wait_until full is_full; all_ids" >ids 2>err &&
    test "$(wc -l <ranks)" -gt 5 && test "$(sort -u ids | wc -l)" = 41 &&
    grep "the process (pid [0-9]*) of $(wc -l <ranks) brokers, rank [0-9]* the first of them, was killed by SIGKILL" err &&
    nothing_left
'
test_expect_success 'the parent and the children of a stopped rank end their links to it, and the rank returns when it is continued' '
    inside "
        idtree startctl stop 1; is_state 1 stopped; wait_attached 4 0; wait_attached 5 0
        idtree startctl cont 1; is_state 1 up; wait_attached 1 0; wait_attached 4 1; wait_until full is_full; all_ids >ids" &&
    test "$(sort -u ids | wc -l)" = 40 && nothing_left
'
test_expect_success 'a process whose ranks were all killed does not end, and one of its ranks can be run again alone' '
    inside "
        r=\$(elsewhere); pid=\$(pid_of \$r); ranks_with \$r >ranks
        idtree startctl kill \$(cat ranks); idtree startctl run \$r; test \$(pid_of \$r) = \$pid
        ranks_with \$r >again" && test "$(wc -l <again)" = 1 && nothing_left
'
test_expect_success 'an instance ends although all ranks of a process were killed and another rank is stopped' '
    inside "idtree startctl kill \$(ranks_with \$(elsewhere)); idtree startctl stop 0" 2>err && ! grep "did not end" err &&
    nothing_left
'
test_expect_success 'SIGTERM ends a rank in an orderly way, and other signals are refused' '
    inside "
        idtree startctl kill --signal TERM 39; is_state 39 \"exited with status 0\"
        idtree startctl kill --signal USR1 38" 2>err; test $? = 1 &&
    grep "broker 38 shares its process with others: it takes KILL, TERM, INT, HUP, STOP and CONT" err && nothing_left
'
# AddressSanitizer prints that it cannot read the registers of a thread that has just ended.
said() { grep -v "Unable to get registers from thread" err; }
test_expect_success 'each of several processes reports an invalid option at most once' '
    for o in "--topology kary:-1" "--topology custom:nosuch" "-o log-level=9"; do
        test_must_fail idtree start -s 40 --per-process 10 $o true 2>err && test "$(said | wc -l)" -le 5 &&
        test "$(said | sort -u | wc -l)" -le 2 || { cat err; return 1; }
    done && for n in 0 -1 x 1000001; do
        test_expect_code 2 idtree start --per-process $n true 2>err && grep "brokers of a process" err || return 1
    done && nothing_left
'
test_expect_success 'a chain of more than 512 levels is refused, whichever process detects it first' '
    for n in 100 514; do
        test_must_fail idtree start -s 514 --per-process $n --topology kary:1 true 2>err &&
        grep "topology .kary:1.: the last of 514 brokers is more than 512 levels below rank 0: take kary:2" err &&
        test "$(wc -l <err)" -le 5 || { cat err; return 1; }
    done && nothing_left
'
test_expect_success 'an instance that is too large for its host is refused with the number of brokers that fit' '
    test_must_fail idtree start -s 1000000 --per-process auto true 2>err &&
    grep "1000000 brokers are too many for this host: they need .* at most [1-9][0-9]* can run here" err && nothing_left
'
# Of the 200 files that a process may open, 128 are not available to its brokers.
few_files() { (ulimit -n 200 && exec idtree start --per-process 300 "$@") 2>err; }
# A busy host may lose a link and restore it in the meantime.
wait_full='. "$IDTREE_SRCDIR/t/wait.sh"
    is_full() { idtree overlay status --summary | grep -qE "^full +$1 "; }
    wait_until "all are there" is_full "$1"'
fit() { # of 300 brokers as many as that fit, and do start; with "sockets" each has one; options of idtree start
    n=$1 each=$2 && shift 2 && all="" && fewer="" &&
    { test "$each" = none || { all="--local-sockets=0-299" fewer="--local-sockets=0-$((n - 1))"; }; } &&
    test_must_fail few_files -s 300 ${all:+"$all"} "$@" true &&
    grep "open files of a process, and of 200 (ulimit -n) 128 are in use; at most $n can run here: more processes, or" err &&
    few_files -s "$n" ${fewer:+"$fewer"} "$@" sh -c "$wait_full" full $n ||
        { echo "$n $each $*"; cat err; return 1; }
}
test_expect_success 'brokers of a process need no open files for links in memory' '
    few_files -s 300 --local-sockets 3-5 sh -c "$wait_full" full 300 || { cat err; false; }
'
test_expect_success 'sockets and other links need open files, and as many brokers as are reported to fit can be started' '
    fit 24 sockets && fit 69 none -o tbon.transport=inproc && fit 36 none -o tbon.transport=inproc --topology kary:1 &&
    fit 14 none -o tbon.transport=zmq && fit 8 sockets -o tbon.transport=zmq && nothing_left
'
test_expect_success 'kill -9 of the launcher leaves nothing behind' '
    rm -f ready && mkfifo ready && test_launch idtree start $many sh -c "echo \$PPID >ready; exec sleep 1000" &&
    pid=$(wait_fifo ready) && kill -KILL $pid && test_all_gone && wait $test_pid; test $? = 137 && nothing_left
'
test_done
