#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5010-start.t - idtree start and startctl, with processes that boot like brokers and misbehave on request
test_description='idtree start launches brokers and leaves nothing behind'
. "$(dirname "$0")/idtree-sharness.sh"

IDTREE_BROKER=$IDTREE_BUILDDIR/src/test/fake-broker
TMPDIR=/tmp/idtree-t5010.$$
mkdir "$TMPDIR" && export IDTREE_BROKER TMPDIR
cleanup "rm -rf '$TMPDIR'"

# The folder of all instances is empty.
nothing_left() { test_nothing_in "$TMPDIR"; }

test_expect_success 'the command of idtree start is connected to the instance, and idtree start returns its exit status' '
    test_expect_code 7 idtree start -s 3 sh -c "
        echo \$IDTREE_URI >uri; echo \$FLUX_URI >flux-uri
        ls \${IDTREE_URI%/*} 2>/dev/null; ls \$(dirname \${IDTREE_URI#local://}) >files; exit 7" &&
    grep "^local://$TMPDIR/idtree-....../local-0$" uri &&
    test_cmp uri flux-uri &&
    for f in local-0 local-1 local-2 start; do grep -x $f files || return 1; done &&
    nothing_left
'
test_expect_success 'if a signal ends the command, idtree start exits with 128 plus the number of the signal' '
    test_expect_code 143 idtree start sh -c "kill -TERM \$\$"
'
test_expect_success 'if the command is missing idtree start exits with 127, and with 126 if it cannot be run' '
    test_expect_code 127 idtree start ./nosuch 2>err && grep "cannot run ./nosuch: No such file" err &&
    touch data && test_expect_code 126 idtree start ./data 2>err && grep "Permission denied" err
'
test_expect_success 'a broker raises its limit of open files to the hard limit, and its command has the original soft limit' '
    (ulimit -Sn 300; idtree start -s 1 -- sh -c "ulimit -Sn") >out && test "$(cat out)" = 300 &&
    (ulimit -Sn 300; "$IDTREE_BUILDDIR/src/broker/idtree-broker" -- sh -c "ulimit -Sn; grep open.files /proc/\$PPID/limits") >out &&
    test "$(head -n 1 out)" = 300 && awk "NR == 2 && \$4 == \$5 { found = 1 } END { exit !found }" out
'
test_expect_success 'the directory of an instance is private' '
    idtree start sh -c "stat -c %a \$(dirname \${IDTREE_URI#local://})" >mode &&
    test "$(cat mode)" = 700
'
test_expect_success '--dir creates a directory, and removes it at the end' '
    idtree start --dir d sh -c "ls d" >out && grep local-0 out && test ! -e d
'
test_expect_success '--dir uses an existing empty directory and leaves it empty' '
    mkdir d && idtree start --dir d true && rmdir d
'
test_expect_success '--dir refuses a directory that is not empty' '
    mkdir d && touch d/f && test_must_fail idtree start --dir d true 2>err &&
    grep "d is not an empty directory" err && test -e d/f && rm -r d
'
test_expect_success 'a directory whose path is too long for sockets is refused, and not left behind' '
    long=$(printf %0100d 0) && test_must_fail idtree start --dir "$long" true 2>err &&
    grep "too long for UNIX sockets" err && test ! -e "$long"
'
test_expect_success 'a statedir inside a directory that is removed at the end is refused' '
    test_must_fail idtree start --dir d -o statedir="$PWD/d/state" true 2>err &&
    grep "is removed at the end" err && test ! -e d
'
test_expect_success 'with invalid options idtree start exits with status 2 before any broker starts' '
    for s in 0 -1 8x "" 1000001 99999999999999999999; do
        test_expect_code 2 idtree start --size="$s" touch started 2>err || return 1
        grep "a number from 1 to" err || return 1
    done &&
    test_expect_code 2 idtree start -o novalue touch started 2>err && grep "not ATTR=VALUE" err &&
    test_expect_code 2 idtree start -o rundir=/tmp touch started 2>err && grep "set with --dir" err &&
    test_expect_code 2 idtree start --topologi=kary:2 touch started 2>err &&
    grep "did you mean --topology?" err &&
    test ! -e started
'
test_expect_success 'more brokers than the host can run are refused, with the name of the limit' '
    (ulimit -n 150 && test_must_fail idtree start -s 200 --topology kary:2 touch started) 2>err && cat err &&
    grep "200 brokers are too many for this host: they need 200 open files" err &&
    grep "at most 118 can run here" err && test ! -e started &&
    test_must_fail idtree start -s 1000000 touch started 2>err &&
    grep "1000000 brokers are too many for this host" err && test ! -e started
'
broker=$IDTREE_BUILDDIR/src/broker/.libs/idtree-broker
test -x "$broker" || broker=$IDTREE_BUILDDIR/src/broker/idtree-broker
test_expect_success 'a limit of open files below what a broker needs is refused before any broker starts, with the number that is needed' '
    for n in 36 40 44 48 52 56 60 64; do
        for program in "idtree start -s 2 --per-process 1" "$broker"; do
            (unset IDTREE_BROKER && ulimit -n $n && test_expect_code 1 $program touch started) 2>err && test ! -e started &&
            grep "a process may have $n open files (ulimit -Hn), and a broker needs [0-9]* (children: " err &&
            test $(wc -l <err) = 1 && nothing_left || { cat err; return 1; }
        done
    done
'
test_expect_success 'with that number of open files a broker serves its documents, children and clients' '
    need=$(sed -n "s/.*a broker needs \([0-9]*\).*/\1/p" err) && cat >little <<-\EOF &&
	clients=
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
	    idtree event sub --count 1 end >/dev/null 2>&1 & clients="$clients $!"
	done
	idtree module list | grep compressor && idtree getattr -r 1 rank && idtree id new -r 1
	kill $clients
	EOF
    (unset IDTREE_BROKER && ulimit -n $((need + 8)) && idtree start -s 3 sh little) >out 2>err && cat err && test ! -s err &&
    test "$(wc -l <out)" = 3
'
test_expect_success 'brokers are forked from a zygote, or started one by one if the zygote has ended' '
    for nursery in "" "-o nursery=none"; do
        idtree start -s 8 $nursery sh -c "idtree startctl status; idtree startctl kill 3; idtree startctl run 3" >out 2>err && cat out err &&
        test "$(grep -c " up$" out)" = 8 && nothing_left || return 1
    done
'
test_expect_success 'if a broker ends before all are up, idtree start fails and names the broker' '
    test_expect_code 1 idtree start -s 4 -o die=2 touch started 2>err &&
    grep "broker 2 (pid [0-9]*) exited with status 3 before the instance was up" err &&
    test ! -e started && nothing_left
'
test_expect_success 'if rank 0 ends before it is up, the other brokers are not started' '
    test_expect_code 1 idtree start -s 4 -o die=0 true 2>err && test "$(wc -l <err)" = 1
'
test_expect_success 'idtree start fails when no further broker comes up within --start-timeout' '
    test_expect_code 1 idtree start -s 3 --start-timeout 0.3 -o silent=1 touch started 2>err &&
    grep "[0-2]/3 brokers are up, and no other came up for 0.3 s" err && # a busy host has not even started the others by then
    test ! -e started && nothing_left
'
test_expect_success 'a broker that does not end within --stop-timeout is killed' '
    idtree start -s 3 --stop-timeout 3 -o stubborn=1 true 2>err &&
    grep "1 brokers did not end within 3 s and are killed" err && nothing_left
'
test_expect_success 'a suspended broker does not prevent the end of the instance' '
    idtree start -s 3 idtree startctl stop 1 && nothing_left
'
test_expect_success 'a broker that crashes is reported, and the command continues' '
    idtree start -s 3 sh -c "
        told() { idtree startctl status | grep \"1 .* killed by SIGABRT\"; }
        kill -ABRT \$(idtree startctl status | awk \"\\\$1 == 1 { print \\\$2 }\") &&
        . \"\$IDTREE_SRCDIR/t/wait.sh\" && wait_until \"it is known\" told" 2>err &&
    grep "broker 1 (pid [0-9]*) was killed by SIGABRT" err
'
test_expect_success 'startctl kills a broker, and runs it again with the same secret' '
    idtree start -s 3 sh -c "
        idtree startctl kill 1 && idtree startctl status >down &&
        idtree startctl run 1 && idtree startctl status >up &&
        cat \$(dirname \${IDTREE_URI#local://})/secret-1 >secrets" 2>err &&
    grep "1  *- killed by SIGKILL" down && test "$(grep -c " up$" down)" = 2 &&
    test "$(grep -c " up$" up)" = 3 &&
    test "$(wc -l <secrets)" = 2 && test "$(uniq secrets | wc -l)" = 1 &&
    grep -E "^[^ ]{40}$" secrets && ! grep broker err
'
test_expect_success 'startctl suspends a broker, and continues it' '
    idtree start -s 2 sh -c "
        idtree startctl stop 1 && idtree startctl status >stopped &&
        idtree startctl cont 1 && idtree startctl status >cont" &&
    grep "1 .* stopped" stopped && grep "1 .* up" cont
'
test_expect_success 'startctl accepts several ranks, and any signal' '
    idtree start -s 4 sh -c "
        idtree startctl kill --signal TERM 1 3 && idtree startctl status --json" >json &&
    grep "\"rank\":1,\"pid\":null,\"state\":\"killed by SIGTERM\"" json &&
    grep "\"rank\":3,\"pid\":null,\"state\":\"killed by SIGTERM\"" json
'
test_expect_success 'startctl prints the reason for each request that it refuses' '
    idtree start -s 2 sh -c "
        idtree startctl run 1; idtree startctl kill 2; idtree startctl kill 1; idtree startctl kill 1;
        idtree startctl kil 1; idtree startctl kill; idtree startctl kill 1x; idtree startctl;
        idtree startctl kill --signal TREM 1" 2>err;
    grep "broker 1 is running" err && grep "there is no rank 2: the instance has ranks 0 to 1" err &&
    grep "broker 1 is not running" err && grep "did you mean kill?" err && grep "kill needs a RANK" err &&
    grep "rank .1x.: a number" err && grep "missing argument: status|kill" err && grep ".TREM. is not a signal" err &&
    test_must_fail idtree startctl status 2>err && grep "no launcher at /run/idtree/" err &&
    test_must_fail idtree startctl --uri "local://$PWD/local-0" status 2>err && grep "no launcher at" err
'
cat >crowd.py <<\EOF
import os, signal, socket, subprocess, sys
path, launcher = sys.argv[1:]
os.kill(int(launcher), signal.SIGSTOP)
held = []
while True: # until no more find a place
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(path)
    except BlockingIOError:
        break
    held.append(s)
rc = subprocess.run(["timeout", "-s", "KILL", os.environ["WAIT_S"], "idtree", "startctl", "--timeout", "0.1", "status"]).returncode
os.kill(int(launcher), signal.SIGCONT)
sys.exit(rc)
EOF
test_expect_success 'startctl waits at most --timeout for a suspended launcher whose socket accepts no connection' '
    test_expect_code 1 idtree start sh -c "python3 crowd.py \$(dirname \${IDTREE_URI#local://})/start \$PPID" 2>err &&
    grep "the launcher at .*/start does not answer" err
'
# The end of a launcher: "long" runs until something ends it, and leaves a process that its shell does not wait for.
cat >long <<\EOF
#!/bin/sh
ps -o ppid= -p $PPID | tr -d ' ' >keeper
echo $PPID >launcher
sleep 1000 &
echo ready >ready
sleep 1000
true
EOF
chmod +x long
rm -f ready; mkfifo ready
for sig in TERM INT HUP QUIT; do
    test_expect_success "SIG$sig to idtree start stops the instance" '
        test_launch env --default-signal idtree start -s 4 ./long && wait_fifo ready &&
        kill -'$sig' $(cat keeper) && test_all_gone && wait $test_pid; echo $? >status &&
        test $(cat status) = $((128 + $(kill -l '$sig' 2>/dev/null || /bin/kill -l '$sig'))) && nothing_left
    '
done
# script(1) provides a terminal.
test -x "$(command -v script)" && test_set_prereq SCRIPT
test_expect_success SCRIPT 'on a terminal idtree start shows its progress' '
    script -qec "idtree start -s 3 true" /dev/null </dev/null >out && grep "3/3 brokers are up" out
'
test_expect_success SCRIPT 'on a terminal idtree start runs a shell and returns its exit status' '
    printf "idtree startctl status; exit 5\n" >input &&
    SHELL=/bin/sh test_expect_code 5 script -qec "idtree start -s 2" /dev/null <input >out && grep " up" out
'
test_expect_success SCRIPT 'Ctrl-C stops the instance of idtree start' '
    rm -f keys && mkfifo keys && exec 6<>keys &&
    { script -qec "idtree start -s 3 ./long; echo ended \$?" /dev/null <keys >out & } && wait_fifo ready &&
    printf "\003" >&6 && wait $! && exec 6<&- && grep "ended 130" out && nothing_left
'
test_expect_success 'kill -9 of the idtree start process leaves nothing behind' '
    test_launch idtree start -s 4 ./long && wait_fifo ready && kill -KILL $(cat keeper) && test_all_gone &&
    nothing_left
'
test_expect_success 'kill -9 of the launcher, the child of idtree start, leaves nothing behind' '
    test_launch idtree start -s 4 ./long && wait_fifo ready && kill -KILL $(cat launcher) && test_all_gone &&
    wait $test_pid; test $? = 137 && nothing_left
'
test_expect_success 'background processes that the command of idtree start left running are ended' '
    test_launch idtree start -s 2 sh -c "setsid sleep 1000 & setsid sh -c \"trap : TERM; sleep 1000; sleep 1000\" & exit 0" &&
    test_all_gone && wait $test_pid && nothing_left
'
test_expect_success 'kill -9 of idtree start while its brokers boot leaves nothing behind' '
    test_launch idtree start -s 4 -o silent=0 true &&
    wait_until "brokers boot" holds "pgrep -P \$(pgrep -P $test_pid)" &&
    kill -KILL $test_pid && test_all_gone && nothing_left
'
test_done
