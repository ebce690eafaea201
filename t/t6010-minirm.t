#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t6010-minirm.t - the example of a resource manager runs jobs in order, whichever process is killed
test_description='minirm, a small resource manager, runs the jobs that ingest.watch sends'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 3 --topology kary:1 -o log-stderr-level=0 -o broker.modules=fluid,job-ingest \
    -o ingest.require-signature=off -o fluid.lease=1s # a killed rank holds back what is shown until its lease is over

PATH=$IDTREE_BUILDDIR/examples/minirm:$PATH
uri_of() { echo "${IDTREE_URI%0}$1"; }
ask() { "$IDTREE_BUILDDIR/t/ask" "$@"; }

agent() { # rank, slots
    IDTREE_URI=$(uri_of "$1") minirm --agent "$2" 2>>"agent.$1" &
    eval "agent_$1=$!"
}
agent_of() { eval "echo \$agent_$1"; }
manager() { IDTREE_URI=$(uri_of 1) minirm 2>>manager.err & manager=$!; }
cleanup 'kill $manager $(agent_of 0) $(agent_of 1) $(agent_of 2) $events 2>/dev/null'

# Submit a job of one task on one core, and print its id.
submit() { # rank, line of the shell's
    IDTREE_URI=$(uri_of "$1") ask 4294967295 job-ingest.submit "{\"urgency\":16,\"flags\":0,\"jobspec\":{\"version\":1,
        \"resources\":[{\"type\":\"slot\",\"count\":1,\"label\":\"task\",\"with\":[{\"type\":\"core\",\"count\":1}]}],
        \"tasks\":[{\"command\":[$2],\"slot\":\"task\",\"count\":{\"per_slot\":1}}],
        \"attributes\":{\"system\":{\"duration\":0}}}}" >answer && sed "s/.*\"fluid\": *\"\([^\"]*\)\".*/\1/" answer
}
shell() { echo "\"sh\",\"-c\",\"$1\""; }

# What events said: of a job, and how many.
told() { grep "^job.$1	.*\"id\":\"$2\"" events; }
told_times() { test "$(told "$1" "$2" | wc -l)" = "$3"; }
rank_of() { told start "$1" | tail -n 1 | sed "s/.*\"rank\":\([0-9]*\).*/\1/"; }
finished() { # id...
    for id in "$@"; do wait_until "job $id is finished" told finish "$id" || return 1; done
}
all_finished() { finished $(cat "$1"); } # file of ids
nothing_left() { ask 4294967295 ingest.stats | grep -q '"jobs": *0[,}]'; }
all_acknowledged() { wait_until "all jobs are acknowledged" nothing_left; }

# Jobs that wait at the gate, and how many of them may go.
at_gate() { shell "echo x >>$1; read x <gate"; }
open_gate() { for n in $(seq "$1"); do echo go >gate; done; }
gone() { for pid in "$@"; do ! kill -0 "$pid" || return 1; done; }
mkfifo gate && exec 7<>gate

idtree event sub job. >events & events=$!

test_expect_success 'jobs that are submitted before minirm runs are kept' '
    wait_subscribers 0 1 && for n in 1 2 3 4 5; do submit 0 "$(shell "echo $n >>ran")" || return 1; done >ids
'
test_expect_success 'jobs run when agents and a manager of minirm are running, in whichever order these start' '
    agent 0 2 && manager && agent 1 2 && agent 2 2 &&
    all_finished ids && all_acknowledged
'
test_expect_success 'minirm runs jobs from all ranks exactly once, and starts them in the order of their ids' '
    for n in $(seq 6 40); do submit $((n % 3)) "$(shell "echo $n >>ran")" || return 1; done >more && cat more >>ids &&
    all_finished more &&
    sort -n ran >got && seq 40 >want && test_cmp want got &&
    grep "^job.start" events | sed "s/.*\"id\":\"\([^\"]*\)\".*/\1/" >started && test "$(wc -l <started)" = 40 &&
    idtree id sort - <started >sorted && test_cmp sorted started &&
    sort ids >want && sort started >got && test_cmp want got &&
    for id in $(cat ids); do told_times finish $id 1 || return 1; done
'
test_expect_success 'minirm acknowledges finished jobs' all_acknowledged
test_expect_success 'an event of minirm says how a job ended, or why it did not run' '
    three=$(submit 0 "$(shell "exit 3")") && killed=$(submit 0 "$(shell "kill -9 \$\$")") &&
    none=$(submit 0 "\"./no-such-command\"") && finished $three $killed $none &&
    told finish $three | grep "\"status\":3}" && told finish $killed | grep "\"status\":137}" &&
    told finish $none | grep "\"status\":-1,\"error\":\"cannot run ./no-such-command: No such file" && all_acknowledged
'
test_expect_success 'an agent of minirm refuses an invalid command with a message' '
    test_must_fail ask 0 minirm-exec.run "{\"id\":\"f1\"}" 2>err && grep "EPROTO: .*command" err &&
    for c in "[]" "[1]" "[\"true\",{}]" "\"true\"" "{}"; do
        test_must_fail ask 0 minirm-exec.run "{\"id\":\"f1\",\"command\":$c}" 2>err &&
            grep "EPROTO: cannot run it" err || return 1
    done
'
test_expect_success 'an agent of minirm runs at most as many jobs at a time as it has slots' '
    for n in 1 2 3 4 5 6 7 8; do
        submit 0 "$(at_gate busy)" || return 1
    done >ids && last=$(tail -n 1 ids) && wait_until "six run" holds "test \$(wc -l <busy) = 6" &&
    wait_until "six starts are told" holds "test -n \"\$(rank_of $(sed -n 6p ids))\"" && ! told start $last &&
    for id in $(head -n 6 ids); do rank_of $id; done | sort >got && printf "%s\n" 0 0 1 1 2 2 >want &&
    test_cmp want got && test_must_fail ask 1 minirm-exec.run "{\"id\":\"f1\",\"command\":[\"true\"]}" 2>err &&
    grep "EAGAIN: rank 1 runs 2 commands already" err &&
    open_gate 8 && finished $last && all_finished ids &&
    test "$(wc -l <busy)" = 8 && all_acknowledged
'
test_expect_success 'when the manager of minirm is killed no job is left running, and the next manager continues after the last acknowledged job' '
    long=$(submit 2 "$(shell "echo \$\$ >>long; read x <gate")") && wait_until "it runs" test -s long &&
    kill -9 $manager && wait_until "its command is killed" gone $(cat long) &&
    later=$(submit 1 "$(shell "echo later >>later")") && ! told start $later && ! told finish $long &&
    manager && wait_until "it runs again" holds "test \$(wc -l <long) = 2" && finished $later && echo go >gate &&
    finished $long && told_times start $long 2 && told_times finish $long 1 && told_times finish $later 1 &&
    test "$(cat later)" = later && all_acknowledged
'
test_expect_success 'when the manager of minirm is killed while jobs finish, no job is forgotten' '
    for n in $(seq 100 130); do submit 0 "$(shell "echo $n >>again")" || return 1; done >ids & submitting=$!
    wait_until "some ran" test -s again && kill -9 $manager && manager && wait $submitting &&
    all_finished ids &&
    sort -un again >got && seq 100 130 >want && test_cmp want got && all_acknowledged
'
test_expect_success 'minirm runs the jobs of a rank that dies on other ranks' '
    for n in 1 2 3 4 5 6; do submit 0 "$(at_gate moved)" || return 1; done >ids &&
    wait_until "all run" holds "test \$(wc -l <moved) = 6" && for id in $(cat ids); do
        wait_until "it is told where $id runs" told start $id || return 1
    done &&
    for id in $(cat ids); do test "$(rank_of $id)" != 2 || echo $id; done >hit && test "$(wc -l <hit)" = 2 &&
    idtree startctl kill 2 && ! wait $(agent_of 2) && grep "the broker is gone" agent.2 &&
    open_gate 6 && all_finished ids &&
    for id in $(cat hit); do test "$(rank_of $id)" != 2 && told_times start $id 2 || return 1; done && all_acknowledged
'
test_expect_success 'minirm uses a rank that reconnects again' '
    idtree startctl run 2 && agent 2 20 && for n in 1 2 3 4 5; do # the others have room for four
        submit 0 "$(shell "read x <gate")" || return 1
    done >ids && wait_until "rank 2 runs some" holds "for id in \$(cat ids); do rank_of \$id; done | grep 2" &&
    open_gate 5 && all_finished ids && all_acknowledged
'
test_expect_success 'minirm reports a job that kills three agents as failed, and does not delay the next job' '
    bad=$(submit 0 "$(shell "kill -9 \$PPID")") && good=$(submit 0 "\"true\"") && finished $bad &&
    told finish $bad | grep "\"status\":-1,\"error\":\"" && told_times start $bad 3 &&
    wait_until "the agents are gone" gone $(agent_of 0) $(agent_of 1) $(agent_of 2) &&
    agent 0 2 && agent 1 2 && agent 2 2 && finished $good && all_acknowledged
'
cat >guest.py <<'END'
# A user who is not the owner wants a command run, and says that rank 0 has room for thousands.
import base64, errno, os, sys
sys.path.insert(0, os.path.join(os.environ["IDTREE_SRCDIR"], "t"))
from flux_client import *
with Client() as c:
    c.refuse(errno.EPERM, "minirm-exec.run", {"id": "f1", "command": ["true"]}, 0, userid=4711, roles=USER)
    payload = base64.b64encode(b'{"rank":0,"slots":9999}\0').decode()
    room = {"topic": "minirm.agent", "flags": 0, "payload": payload}
    c.refuse(errno.EPERM, "event.publish", room, userid=4711, roles=USER)
    c.ask("event.publish", room, userid=4711, roles=USER | 0x200)  # a member of access.group
END
test_expect_success 'minirm ignores messages of other users' '
    FLUX_URI=$IDTREE_URI python3 guest.py && : >busy && for n in 1 2 3 4 5 6 7; do
        submit 0 "$(at_gate busy)" || return 1
    done >ids && last=$(tail -n 1 ids) && wait_until "six run" holds "test \$(wc -l <busy) = 6" && ! told start $last &&
    open_gate 7 && finished $last && all_acknowledged
'
test_expect_success 'while job-ingest is reloaded, the jobs of minirm continue, and no job starts twice' '
    : >held && held=$(submit 0 "$(at_gate held)") && wait_until "it runs" test -s held &&
    idtree module remove job-ingest && idtree module load job-ingest &&
    id=$(submit 0 "\"true\"") && finished $id && told_times start $held 1 &&
    open_gate 1 && finished $held && all_acknowledged && told_times start $held 1 && told_times finish $held 1
'
test_expect_success 'an agent of minirm that ends also ends its jobs' '
    : >long && id=$(submit 0 "$(shell "echo \$\$ >>long; read x <gate")") && wait_until "it runs" test -s long &&
    kill $manager $(agent_of 0) $(agent_of 1) $(agent_of 2) &&
    for r in 0 1 2; do wait $(agent_of $r) || return 1; done &&
    wait_until "its command is killed" gone $(cat long)
'
test_expect_success 'minirm refuses invalid arguments' '
    for args in nosuch "--agent 0" "--agent 257" "--agent 1 2"; do
        test_expect_code 2 minirm $args 2>err && grep "^usage" err || return 1
    done && test_must_fail env -u IDTREE_URI -u FLUX_URI minirm 2>err && grep "minirm: cannot connect: " err
'
test_done
