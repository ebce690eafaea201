#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7000-hydra.t - environment variables of launchers, and PMI-1 as spoken by Hydra, idtree start and broken launchers
test_description='a broker that is one of several finds the others, or reports why it cannot'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/launchers.sh"

command -v mpiexec.hydra >/dev/null && test_set_prereq HYDRA
launch() { timeout "$WAIT_S" mpiexec.hydra -n "$@" </dev/null; }
task='$PMI_RANK'

# Environment variables that launchers set.

for seen in PMI_SIZE=2 SLURM_NTASKS=4 OMPI_COMM_WORLD_SIZE=3 FLUX_JOB_SIZE=2 PMIX_RANK=1 PMI_ID=0 PMI_PORT=h:1 \
    MPI_LOCALNRANKS=3 PALS_RANKID=0 LSF_PM_TASKID=1; do
    test_expect_success "$seen shows other tasks and no connection to them: the broker refuses to start and names what it found" '
        test_expect_code 2 env $seen idtree-broker touch started 2>err </dev/null && grep "$seen" err &&
        grep -e --standalone err && test ! -e started && test_nothing_in "$TMPDIR"
    '
done
test_expect_success 'a broker with --standalone, or with broker.boot = single in its configuration, starts although the environment shows other tasks' '
    SLURM_NTASKS=4 && export SLURM_NTASKS && echo broker.boot = single >conf &&
    test "$(idtree-broker --standalone idtree getattr size)" = 1 && test "$(idtree-broker -b single idtree getattr broker.boot)" = single &&
    test "$(idtree-broker -c conf idtree getattr broker.boot-method)" = single; rc=$?; unset SLURM_NTASKS; test $rc = 0
'
test_expect_success 'idtree start works inside a task of a launcher, and removes the variables of that launcher from the environment of its command' '
    SLURM_NTASKS=4 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=3 idtree start -s 2 sh -c \
        "idtree getattr size; idtree-broker idtree getattr size; env | grep -E \"^(SLURM|OMPI|PMIX?)_\"" >out </dev/null
    test "$(echo $(cat out))" = "2 1"
'
test_expect_success 'a broker refuses an unknown boot method, and a method that is not available' '
    test_expect_code 2 idtree-broker --boot=guess 2>err </dev/null && grep "broker.boot=guess" err &&
    test_expect_code 2 idtree-broker --boot=pmi 2>err </dev/null && grep "PMI_FD is not set" err
'
test_expect_success 'a broker reports a PMI_FD that is not an open descriptor' '
    test_expect_code 1 env PMI_FD=99 PMI_SIZE=2 PMI_RANK=0 idtree-broker 2>err </dev/null && grep "PMI_FD=99" err
'

# A process at PMI_FD that breaks the protocol.

broken_server() { # what it does with the first line
    cat >server.py <<END
import os, socket, subprocess, sys
a, b = socket.socketpair()
os.set_inheritable(b.fileno(), True)
env = dict(os.environ, PMI_FD=str(b.fileno()), PMI_RANK="0", PMI_SIZE="2")
p = subprocess.Popen(["idtree-broker", "-o", "broker.join-timeout=1s", "touch", "started"], env=env, close_fds=False)
b.close()
a.recv(2048)
$1
sys.exit(p.wait())
END
    test_expect_code 1 timeout "$WAIT_S" python3 server.py 2>err </dev/null && test ! -e started && test_nothing_in "$TMPDIR"
}
test_expect_success 'a broker stops waiting for a launcher that never answers' '
    broken_server "" && grep "PMI init of rank 0 of 2: the launcher does not answer (broker.join-timeout)" err
'
test_expect_success 'a broker reports a launcher that closes the connection' '
    broken_server "a.close()" && grep "the launcher closed the connection" err
'
test_expect_success 'a broker reports a launcher that sends malformed answers' '
    broken_server "a.send(b\"hello\\n\")" && grep "makes no sense" err
'

# Hydra.

test_launcher HYDRA Hydra
test_expect_success HYDRA 'Hydra: two tasks with the same rank are reported' '
    launch_broken 2 "export PMI_RANK=0" && said "several brokers as rank 0\|there is no rank 1" &&
    launch_broken 4 "test \$task != 3 || export PMI_RANK=1" && said "several brokers as rank 1\|there is no rank 3"
'
test_expect_success HYDRA 'Hydra: each task that gets a port instead of a connection refuses to start and names the remedy' '
    for n in 1 4; do
        rm -f started err.*
        test_expect_code 2 timeout "$WAIT_S" mpiexec.hydra -pmi-port -n $n \
            sh -c "exec idtree-broker touch started 2>err.\$PMI_ID" </dev/null >out 2>&1 &&
        test ! -e started && for i in err.*; do grep "^idtree-broker: [A-Z_]*=.*without -pmi-port" $i || return 1; done &&
        test "$(ls err.* | wc -l)" = $n || return 1
    done && test_nothing_in "$TMPDIR"
'
test_expect_success HYDRA 'Hydra: a rank that is not less than the size is reported' '
    launch_broken 2 "export PMI_RANK=5" && said "PMI_RANK=5: must be a number from 0 to 1"
'
test_expect_success HYDRA 'Hydra: tasks with different sizes are reported' '
    launch_broken 4 "test \$task != 1 || export PMI_SIZE=2" && said "started as one of [24] brokers, but rank . as one of [24]"
'
# A task that announces its bizcard, passes the barrier, and then does nothing: with $1 = 9 it dies, with 19 it stops;
# with 0 it does not even announce its bizcard. The other tasks have passed the barrier by then. With sanitizers on a
# busy host that takes longer than 3 seconds.
patience=3
! is_sanitized || patience=20
cat >half.py <<'END'
import os, signal, socket, sys
f = socket.socket(fileno=int(os.environ["PMI_FD"])).makefile("rw")
def ask(line):
    f.write(line + "\n")
    f.flush()
    return f.readline()
ask("cmd=init pmi_version=1 pmi_subversion=1")
name = ask("cmd=get_my_kvsname").split("kvsname=")[1].split()[0]
if sys.argv[1] != "0":
    ask("cmd=put kvsname=%s key=idtree.bizcard.%s value=-,%s,%s,kary:2" % (name, os.environ["PMI_RANK"], socket.gethostname(), "00" * 32))
ask("cmd=barrier_in")
os.kill(os.getpid(), int(sys.argv[1]))
signal.pause()
END
test_expect_success HYDRA 'Hydra: a task that announces no bizcard is reported' '
    launch_broken 4 "test \$task != 2 || exec python3 half.py 0" && said "there is no rank 2 of 4"
'
test_expect_success HYDRA 'Hydra: if one task dies after the barrier, the other tasks end' '
    for r in 0 1 3; do launch_broken 4 "test \$task != $r || exec python3 half.py 9" $patience || return 1; done
'
# Hydra ends all tasks when the first one gives up. If several wait, any of them may be the first.
test_expect_success HYDRA 'Hydra: if one task hangs after the barrier, the instance does not begin without that task' '
    launch_broken 4 "test \$task != 3 || exec python3 half.py 19" $patience && said "4 brokers is not complete: ranks below 1 did not join" &&
    launch_broken 4 "test \$task != 2 || exec python3 half.py 19" $patience && said "4 brokers is not complete: rank 2 did not join" &&
    launch_broken 4 "test \$task != 0 || exec python3 half.py 19" $patience && said "rank [123] could not join rank [01]"
'
test_done
