#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2010-broker.t - idtree-broker by itself and under other launchers: boot, command, refusals, shutdown
test_description='a broker boots, runs its command, refuses invalid settings, and leaves nothing behind'
. "$(dirname "$0")/idtree-sharness.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
TMPDIR=/tmp/idtree-t2010.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"
command -v mpiexec.hydra >/dev/null && test_set_prereq HYDRA
# valgrind cannot run a program that has a sanitizer, and cannot read the debug information of every compiler.
checked_broker() { # option of the broker...
    LD_LIBRARY_PATH="$IDTREE_BUILDDIR/src/common/libidtree/.libs" \
    exec valgrind -q --vgdb=no --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect,possible \
        "$IDTREE_BUILDDIR/src/broker/.libs/idtree-broker" "$@"
}
if is_sanitized; then
    say_color skip "# valgrind runs no broker with a sanitizer"
elif (checked_broker --help) >/dev/null 2>unreadable; then
    test_set_prereq VALGRIND
else
    say_color skip "# valgrind cannot run this broker: $(grep -m 1 "Valgrind:\|not found" unreadable)"
fi

# A broker keeps a rundir that was named, and the durable files in it.
nothing_left() {
    rm -f "$TMPDIR/run/instance" "$TMPDIR/run/fluid.sqlite" "$TMPDIR/run/compressor.sqlite" &&
    { ! test -e "$TMPDIR/run" || rmdir "$TMPDIR/run"; } && test_nothing_in "$TMPDIR"
}
hydra() { timeout "$WAIT_S" mpiexec.hydra -n "$@" </dev/null; }
# Hydra makes one exit code of all, and some of these may come from ranks that it killed.
hydra_fails() { ! hydra "$@"; }

# The command of a broker in the background. It writes the address of the broker, which blocks until the test reads it.
rm -f ready stop && mkfifo ready stop
serve='echo $IDTREE_URI >ready; cat stop >/dev/null'

test_expect_success 'a broker without a launcher is an instance of one broker' '
    idtree-broker idtree getattr size >out && test "$(cat out)" = 1 && nothing_left
'
test_expect_success 'the command of a broker has the address in IDTREE_URI and FLUX_URI, and the broker returns the exit code of the command' '
    test_expect_code 7 idtree-broker sh -c "echo \$IDTREE_URI >uri; echo \$FLUX_URI >flux-uri; exit 7" &&
    grep "^local://$TMPDIR/idtree-....../local-0$" uri && test_cmp uri flux-uri && nothing_left
'
test_expect_success 'the exit code of a broker is 128 plus the signal that ended its command, 127 if the command is missing, 126 if it cannot be run' '
    test_expect_code 143 idtree-broker sh -c "kill -TERM \$\$" &&
    test_expect_code 127 idtree-broker ./nosuch 2>err && grep nosuch err &&
    touch data && test_expect_code 126 idtree-broker ./data 2>err && grep data err && nothing_left
'
test_expect_success 'the command inherits neither the variables of a launcher nor blocked signals' '
    idtree-broker sh -c "env | grep ^PMI_; grep SigBlk /proc/self/status" >out; grep "SigBlk:.0*$" out && ! grep PMI out
'
test_expect_success 'a broker with an unknown option, or an attribute without a name or a value, exits with code 2' '
    test_expect_code 2 idtree-broker --nosuch 2>err && grep -- --help err &&
    test_expect_code 2 idtree-broker -o size 2>err && grep "ATTR=VALUE" err &&
    test_expect_code 2 idtree-broker -o =1 2>err && nothing_left
'
test_expect_success 'a value that is not UTF-8 or has control characters is refused with a message that names its attribute' '
    bad=$(printf "caf\351") && mkdir "$TMPDIR/$bad" &&
    test_expect_code 2 idtree-broker -o uid.node=$bad 2>err && grep "attribute uid.node: byte 4 of its value (0xe9) is not UTF-8" err &&
    test_expect_code 2 idtree-broker -t "kary:2$(printf "\033")" 2>err && grep "attribute tbon.topo: byte 7 .*control character" err &&
    echo "a.b = $bad" >conf && test_expect_code 2 idtree-broker -c conf 2>err && grep "conf:1: attribute a.b: byte 4" err &&
    test_expect_code 2 env TMPDIR="$TMPDIR/$bad" idtree-broker 2>err && grep "attribute rundir: byte" err &&
    test_expect_code 2 env IDTREE_MODULE_PATH=$bad idtree-broker 2>err && grep "attribute module.path: byte 4" err &&
    rmdir "$TMPDIR/$bad" && nothing_left
'
test_expect_success 'an invalid attribute is refused with one line that names the attribute' '
    for a in nosuch=1 rank=1 size=2 tbon.topo=kary:0 tbon.topo=kary:-1 tbon.topo=kary:0x tbon.topo=binomal tbon.timeout=0 \
        tbon.timeout=5x log-level=8 log-stderr-level=debug log-ring-size=0 local.max-message=1 local.max-queue=x \
        local.max-clients=0 event.replay=0 router.max-pending=-1 broker.shutdown-timeout=-1s broker.modules=nosuch statedir= \
        fluid.lease=0 fluid.max-generators=16385 fluid.max-waiting=0 fluid.epoch=2099 fluid.max-jump=x \
        compressor.window=0 compressor.timeout=never uid.fingerprint=x; do
        test_expect_code 2 idtree-broker -o $a touch started 2>err && test "$(wc -l <err)" = 1 &&
        grep "${a%%=*}\|${a#*=}" err || { echo "$a"; return 1; }
    done && test ! -e started && nothing_left
'
test_expect_success 'a broker keeps an attribute of a module that may be loaded later; a module that is loaded must know its attributes' '
    idtree-broker -o broker.modules=fluid -o compressor.window=3 sh -c "idtree module load compressor && idtree getattr compressor.window" >out &&
    test "$(cat out)" = 3 && idtree-broker -o broker.modules= -o fluid.lease=7s true &&
    test_expect_code 2 idtree-broker -o fluid.leese=7s true 2>err && grep "unknown attribute .fluid.leese" err &&
    test_expect_code 2 idtree-broker -o compressor.widow=3 true 2>err && grep "unknown attribute .compressor.widow" err &&
    idtree-broker -o broker.modules=fluid idtree lsattr >out && ! grep compressor out && nothing_left
'
test_expect_success 'a rundir that is too long for sockets is refused with a message' '
    long=$TMPDIR/$(printf %0100d 0) && mkdir -m 700 "$long" &&
    test_expect_code 2 idtree-broker -o rundir="$long" true 2>err && grep "choose a shorter rundir" err &&
    rmdir "$long"
'
test_expect_success 'a rundir that other users can write to is refused' '
    mkdir -m 777 open && test_expect_code 1 idtree-broker -o rundir=open true 2>err && grep "writable by no other user" err
'
test_expect_success 'a rundir that is a symbolic link is refused, and so is a statedir that is a symbolic link or that others can write to' '
    mkdir -m 700 own && ln -s own linked && mkdir -m 777 shared &&
    test_expect_code 1 idtree-broker -o rundir=linked/ true 2>err && grep "rundir linked/: is a symbolic link" err &&
    for d in linked shared; do
        test_expect_code 3 idtree-broker -o statedir="$PWD/$d" true 2>err && grep "statedir $PWD/$d: " err || return 1
    done && init_state own && : >precious && ln -s ../precious own/fluid.sqlite.holder &&
    idtree-broker -o statedir="$PWD/own" true && ! test -s precious && rm -r own linked shared open && nothing_left
'
cat >fill.py <<'END'
# Connect until the backlog is full, tell so, and wait for the end.
import socket, sys
socks = []
while True:
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(sys.argv[1])
    except BlockingIOError:
        break
    socks.append(s)
open("full", "w").close()
sys.stdin.read()
END
test_expect_success 'a second broker is refused immediately while the first is stopped and the backlog of its socket is full' '
    rm -f full && mkfifo full go && idtree-broker -o rundir="$TMPDIR/run" sh -c "$serve" & pid=$! &&
    uri=$(wait_fifo ready) && kill -STOP $pid && { python3 fill.py "$TMPDIR/run/local-0" <go & } && exec 7>go && wait_fifo full &&
    test_expect_code 1 timeout 60 idtree-broker -o rundir="$TMPDIR/run" true 2>err; rc=$?
    exec 7>&-; kill -CONT $pid; cat err && test $rc = 0 && grep "another broker is serving this socket" err && : >stop && wait $pid && nothing_left
'
cat >strangers.py <<'END'
# 200 clients that talk nonsense, one after the other.
import socket, sys
for i in range(200):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.recv(1)
    s.sendall(b"nonsense" * 8)
    while s.recv(100):
        pass
END
test_expect_success 'clients that send garbage do not fill the log' '
    idtree-broker -o log-stderr-level=0 sh -c "python3 strangers.py \${IDTREE_URI#local://} && idtree dmesg" >out &&
    test $(grep -c "is disconnected" out) = 20
'
test_expect_success 'a second broker on the same rundir is refused, and the first continues to serve' '
    idtree-broker -o rundir="$TMPDIR/run" sh -c "$serve" & pid=$! &&
    uri=$(wait_fifo ready) && test_expect_code 1 idtree-broker -o rundir="$TMPDIR/run" true 2>err &&
    grep "another broker is serving" err && idtree getattr --uri "$uri" rank && : >stop && wait $pid &&
    nothing_left
'
test_expect_success HYDRA 'a second tree on the same rundir is refused, and the brokers of the first still accept their children' '
    hydra 3 idtree-broker -o rundir="$TMPDIR/run" -t kary:1 sh -c "$serve" & pid=$! &&
    uri=$(wait_fifo ready) && hydra_fails 3 idtree-broker -o rundir="$TMPDIR/run" -t kary:1 true >out 2>&1 &&
    ls "$TMPDIR/run" >files && test "$(grep -c "^local-[012]$\|^tbon-[01]$" files)" = 5 &&
    idtree ping --uri "$uri" -c 1 2 && : >stop && wait $pid && nothing_left
'
test_expect_success 'a broker replaces the socket that a killed broker left' '
    idtree-broker -o rundir="$TMPDIR/run" sh -c "$serve" 2>/dev/null & pid=$! &&
    uri=$(wait_fifo ready) && kill -9 $pid && : >stop && ! wait $pid && test -e "$TMPDIR/run/local-0" &&
    idtree-broker -o rundir="$TMPDIR/run" idtree getattr rank && rm -rf "$TMPDIR/run"
'
for sig in TERM INT HUP; do
    test_expect_success "SIG$sig stops a broker" '
        test_launch env --default-signal idtree-broker sh -c "echo \$PPID >ready; exec sleep 1000" && kill -'$sig' $(wait_fifo ready) && test_all_gone &&
        ! wait $test_pid && nothing_left
    '
done
test_expect_success HYDRA 'under Hydra 16 brokers form one tree, and its rank 0 runs the command once' '
    hydra 16 idtree-broker idtree getattr size >out && test "$(cat out)" = 16 && nothing_left
'
test_expect_success HYDRA 'on several hosts each rank returns the list of hosts that rank 0 has learned' '
    mpiexec.hydra -launcher fork -hosts a,b -ppn 2 -n 4 idtree-broker sh -c "
        for r in 0 1 3; do idtree getattr -r \$r hostlist; done" </dev/null >out &&
    grep -q . out && test "$(sort -u out | wc -l)" = 1 && test "$(wc -l <out)" = 3 && nothing_left
'
test_expect_success HYDRA 'the launcher returns the exit code of the command of rank 0' '
    test_expect_code 7 hydra 4 idtree-broker sh -c "exit 7" && nothing_left
'
test_expect_success HYDRA 'eight brokers form a chain over tcp' '
    hydra 8 idtree-broker -t kary:1 -o tbon.prefertcp=1 sh -c "
        idtree getattr -r 7 tbon.level; idtree getattr -r 7 tbon.parent-endpoint; idtree ping -c 3 -i 0.01 7" >out &&
    grep -x 7 out && grep "^tcp://" out && nothing_left
'
test_expect_success HYDRA 'SIGTERM to rank 0 stops all brokers, and they leave nothing behind' '
    test_expect_code 143 hydra 7 idtree-broker -t kary:2 sh -c "kill -TERM \$PPID; exec sleep 1000" 2>err && nothing_left &&
    ! grep "at once" err
'
test_expect_success HYDRA 'after SIGTERM to all brokers at the same time a broker still ends after its children' '
    for i in 1 2 3; do
        hydra 7 idtree-broker -t kary:2 sh -c "kill -TERM \$(for r in 6 5 4 3 2 1 0; do idtree getattr -r \$r broker.pid; done);
            exec sleep 1000" 2>err; nothing_left && ! grep "at once" err || return 1
    done
'
# Hydra kills processes that do not end within its patience, and now and then it kills them immediately.
test_expect_success HYDRA 'SIGTERM to the launcher leaves no process behind' '
    test_launch mpiexec.hydra -n 5 idtree-broker -t kary:2 sh -c "$serve" </dev/null && wait_fifo ready &&
    kill -TERM $test_pid && test_all_gone && rm -rf "$TMPDIR"/*
'
# Hydra may drop the output of a rank that ends, so each rank has a file. It kills the other ranks, which may leave
# their folders behind.
test_expect_success HYDRA 'an attribute that one rank refuses ends all ranks' '
    hydra_fails 3 sh -c "exec idtree-broker -o tbon.topo=kary:0 true 2>said.\$PMI_RANK" && grep "kary:0" said.?
    rc=$?; rm -rf "$TMPDIR"/*; test $rc = 0
'
cat >other.sh <<'END'
# Rank $1 has the topology $2, the others have kary:3.
topology=kary:3
test "$PMI_RANK" != "$1" || topology=$2
exec idtree-broker -t $topology -o broker.join-timeout=300s touch started 2>err.$PMI_RANK
END
test_expect_success HYDRA 'a rank whose topology differs from that of rank 0 ends all ranks with a message' '
    for r in 1 2 4; do for t in kary:1 kary:2 mincrit binomial; do
        hydra_fails 5 sh other.sh $r $t &&
        grep "rank $r has the topology $t.*, but rank 0 began with kary:3: all must have the same" err.$r ||
            { tail -n 3 err.?; return 1; }
    done; done
    hydra_fails 5 sh other.sh 0 kary:2 &&
    grep "rank [1-4] has the topology kary:3, but rank 0 began with kary:2: all must have the same" err.? &&
    test ! -e started; rc=$?; rm -rf "$TMPDIR"/*; test $rc = 0
'
test_expect_success HYDRA 'an error that is found only after the brokers have exchanged bizcards is reported' '
    test_expect_code 2 hydra 1 idtree-broker -o nosuch=1 true >out 2>&1 && grep "unknown attribute .nosuch" out &&
    rm -f said.? && hydra_fails 3 sh -c "exec idtree-broker -o nosuch=1 true 2>said.\$PMI_RANK" && grep "unknown attribute .nosuch" said.?
    rc=$?; rm -rf "$TMPDIR"/*; test $rc = 0
'
test_expect_success HYDRA 'idtree shutdown ends all ranks' '
    test_expect_code 143 hydra 6 idtree-broker -t kary:2 sh -c "idtree shutdown; exec sleep 1000" && nothing_left
'
test_expect_success VALGRIND 'a broker that served clients and modules frees all memory' '
    { checked_broker -o rundir="$TMPDIR/run" 2>err & } && pid=$! &&
    uri=local://$TMPDIR/run/local-0 && wait_until "the broker serves or is gone" holds "idtree getattr --uri $uri rank || ! kill -0 $pid" &&
    export IDTREE_URI=$uri && idtree id new -n 10 && idtree module remove fluid && idtree module load fluid && idtree id new &&
    idtree event pub a.b && idtree dmesg && idtree shutdown; rc=$?; unset IDTREE_URI
    wait $pid || { cat err; false; } && test $rc = 0 && nothing_left
'
test_done
