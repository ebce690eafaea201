#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5050-jobs.t - jobs on the command line
test_description='idtree job submits, lists, shows, watches and acknowledges jobs'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 3 --topology kary:1 -o broker.modules=fluid,job-ingest -o log-stderr-level=3

fails() { # pattern of the message, command...
    pattern=$1
    shift
    if "$@" >out 2>err; then return 1; fi
    grep -- "$pattern" err || { cat err; return 1; }
}
refuses() { # pattern of the message, arguments of idtree job...
    pattern=$1
    shift
    test_expect_code 2 idtree job "$@" </dev/null 2>err && grep -- "$pattern" err || { cat err; return 1; }
}

# Run a script in an instance that is separate from the one of this test.
other() { # option..., script
    (unset IDTREE_URI FLUX_URI && idtree start -s 2 -o log-stderr-level=3 "$@" </dev/null)
}
ids_listed() { idtree job list "$@" | sed 1d | cut -d" " -f1; }

cat >spec.json <<'END_SPEC'
{"version": 1, "resources": [{"type": "slot", "count": 2, "label": "a", "with": [{"type": "core", "count": 1}]}],
 "tasks": [{"command": ["from", "file"], "slot": "a", "count": {"per_slot": 1}}],
 "attributes": {"system": {"duration": 3600}}}
END_SPEC

test_expect_success 'wrong usage of idtree job is reported, and no job is stored' '
    refuses "missing argument: ID" show && refuses "missing argument: ID" ack && refuses "a##. is not an id" show "a##" &&
    refuses "does not fit in 64 bits" ack 99999999999999999999 && refuses "is not an id" list --after "x y" &&
    refuses "is not a form of fluid; there are dec" list --to nosuch && refuses "is not a form" submit --to nosuch -- true &&
    refuses "count .0.: a number from 1" submit -n 0 -- true && refuses "count" watch -n x &&
    refuses "urgency .32.: a number from 0 to 31" submit -u 32 -- true &&
    refuses "timeout .0s.: a number of seconds up to" submit --timeout 0s -- true &&
    refuses "a key has 1 to 64 bytes" submit --key "" -- true &&
    refuses "with the number of the job" submit -n 10 --key "$(printf %062d 0)" -- true &&
    refuses ".true. is one argument too many: a command is written after --" submit spec.json true &&
    refuses "a FILE and a command exclude each other" submit spec.json -- true &&
    refuses "there is no command after --" submit -- && refuses "one argument too many" stats x &&
    refuses "did you mean list" lst &&
    idtree job -h | grep "^  job watch " && idtree job submit -h | grep "^example: "
'
test_expect_success 'an input of idtree job submit that cannot be read is reported' '
    fails "^idtree job submit: nosuch: No such file" idtree job submit nosuch &&
    fails "^idtree job submit: .*: Is a directory" idtree job submit . &&
    fails "is not UTF-8, as a jobspec must be" idtree job submit -- "$(printf "a\377")"
'
test_expect_success 'completion offers the words of idtree job' '
    test "$(idtree complete job "" | tr "\n" " ")" = "submit list show watch ack stats " &&
    idtree complete job submit --ur >out && grep -x -e --urgency out &&
    test "$(idtree complete job submit --urgency e)" = expedite && test "$(idtree complete job list --to wo)" = words
'
test_expect_success 'if no broker has loaded the ingest module, the message says how to load it' '
    cat >without.sh <<-\EOF &&
	for c in "submit -- true" list "show 5" watch "ack 5" stats; do
	    if idtree job $c 2>err; then exit 1; fi
	    grep "the module job-ingest is not loaded: .* -o broker.modules=.*,job-ingest, or use" err || exit 1
	done
	idtree module load job-ingest && idtree job submit -- true
	EOF
    other -o broker.modules=fluid sh without.sh
'
test_expect_success 'idtree job submit with a command works on any rank, and prints the id of the job' '
    idtree job submit -- printf "%s\n" -n x >id && test_when_finished "cat id" && test "$(wc -l <id)" = 1 &&
    idtree job submit --uri "${IDTREE_URI%0}2" --to words -u hold -- true >words && grep "^[a-z]*-[a-z-]*$" words &&
    idtree job submit -q -- true >out && test_must_be_empty out
'
test_expect_success 'job show prints all forms of the id, the fields and the jobspec of a job' '
    idtree job show "$(cat id)" >out && grep "^f58  *$(cat id)$" out && grep "^state  *stored$" out &&
    grep "^user  *$(id -un)$" out && grep "^userid  *$(id -u)$" out &&
    grep "^urgency  *16$" out && grep "^date  *20" out &&
    idtree job show --json "$(idtree id convert --to emoji "$(cat id)")" >json && grep "^{\"id\":\"$(cat id)\"," json &&
    grep -F "\"command\":[\"printf\",\"%s\\\\n\",\"-n\",\"x\"]" json && grep "\"cwd\":\"$PWD\"" json &&
    grep "\"duration\":0" json && idtree job show --json "$(cat words)" | grep "\"urgency\":0," &&
    fails "^idtree job show: f6: there is no such job" idtree job show 5
'
test_expect_success 'job submit reads a jobspec from a file or stdin' '
    idtree job submit -u 31 spec.json >ids && idtree job submit - <spec.json >>ids &&
    cat spec.json | idtree job submit >>ids && test "$(wc -l <ids)" = 3 && while read -r id; do
        idtree job show --json "$id" | grep -F "\"command\":[\"from\",\"file\"]" || return 1
    done <ids
'
test_expect_success 'a refused jobspec is reported once, however many jobs were requested' '
    sed s/slot/slit/ spec.json >bad.json && fails "^idtree job submit: jobspec: " idtree job submit bad.json &&
    fails "^idtree job submit: job 1: jobspec: " idtree job submit -n 3000 bad.json && test_must_be_empty out &&
    grep "^idtree job submit: 0 of 3000 jobs are stored; [0-9]* failed, and no others were submitted after that$" err &&
    test "$(wc -l <err)" = 2 && fails "jobspec" idtree job submit /dev/null
'
test_expect_success 'each of 2500 submitted jobs is stored once' '
    idtree job submit -n 2500 -- true >many && test "$(sort -u many | wc -l)" = 2500 &&
    ids_listed >listed && sort many >a && sort listed | comm -13 - a >missing && test_must_be_empty missing
'
test_expect_success 'job list prints jobs in the order of their ids, across pages, from any id, in any form' '
    idtree id sort - <listed | cmp - listed && head -n 1001 listed >first && ids_listed -n 1001 | cmp - first &&
    idtree job list | head -n 1 | grep -E "^ID +USER +URGENCY  KEY$" &&
    idtree job list | grep -E " +$(id -un) +0  -$" &&
    id=$(sed -n 1001p listed) && sed 1,1001d listed >rest &&
    ids_listed -a "$(idtree id convert --to dec "$id")" | cmp - rest &&
    idtree job list --to dec -n 3 | sed 1d | cut -d" " -f1 >dec && idtree id convert --to f58 - <dec >back &&
    head -n 3 listed | cmp - back &&
    idtree job list --json -n 1 | grep "^{\"id\":\"$(head -n 1 listed)\",\"userid\":$(id -u),"
'
test_expect_success 'job show finds a job by its key' '
    idtree job submit --key one -- true >a && idtree job submit --key one -- false >b && test_cmp a b &&
    idtree job submit -n 20 --key k -- true >a &&
    idtree job submit -n 30 --key k -- true >b && head -n 20 b | cmp - a &&
    test "$(sort -u b | wc -l)" = 30 && idtree job submit --json --key k-30 -- true >json &&
    grep "^{\"id\":\"$(tail -n 1 b)\",\"key\":\"k-30\",\"same\":true}$" json && idtree job list | grep "  k-30$"
'
test_expect_success 'a consumer reads jobs in order, and reads jobs again until they are acknowledged' '
    ids_listed >listed && n=$(wc -l <listed) && idtree job watch -n $n >out && cut -f1 out | cmp - listed &&
    ids_listed | cmp - listed && idtree job watch --json --no-jobspec -n 1 >one &&
    grep "^{\"id\":\"$(head -n 1 listed)\"," one && ! grep jobspec one &&
    sed -n 1p out | grep -F "	$(id -un)	16	{" &&
    idtree job watch --to dec -n 1 | cut -f1 | idtree id convert --to f58 - >a &&
    head -n 1 listed | cmp - a
'
test_expect_success 'job watch --ack acknowledges exactly the jobs that it printed' '
    idtree job watch --ack -n 1300 | cut -f1 >out && head -n 1300 listed | cmp - out && sed 1,1300d listed >rest &&
    ids_listed | cmp - rest && idtree job show "$(head -n 1 listed)" >out && grep "^state  *acknowledged$" out &&
    ! grep jobspec out && idtree job watch -n 1 | cut -f1 >a && head -n 1 rest | cmp - a &&
    idtree job watch -n 1 --after "$(head -n 1 rest)" | cut -f1 >a && sed -n 2p rest | cmp - a
'
test_expect_success 'job ack acknowledges all jobs up to an id' '
    idtree job ack "$(sed -n 100p rest)" && sed 1,100d rest >left && ids_listed | cmp - left &&
    fails "^idtree job ack: .*above what any consumer was shown" idtree job ack 0x7fffffffffffffff
'
test_expect_success 'a consumer waits for jobs that arrive later' '
    n=$(wc -l <left) && { idtree job watch -n $((n + 2)) >got & } && pid=$! &&
    wait_until "what is there was printed" holds "test \$(wc -l <got) -ge $n" &&
    idtree job submit -n 2 -- late >ids && wait $pid && tail -n 2 got | cut -f1 | sort >a && sort ids | cmp - a
'
test_expect_success 'job stats prints counters and limits' '
    idtree job stats >out && grep -E "^jobs +$((n + 2))$" out && grep -E "^limit max-jobs +[0-9]+$" out &&
    idtree job stats --json | grep "^{.*\"limits\":{.*}.*}$"
'
test_expect_success 'jobs above the limit of a rank (ingest.max-waiting) are submitted again and stored' '
    cat >full.sh <<-\EOF &&
	idtree job submit -n 300 -- true | sort -u | wc -l | grep -w 300
	EOF
    other -o broker.modules=fluid,job-ingest -o ingest.max-waiting=8 sh full.sh
'
test_expect_success 'jobs above the limit of an instance (ingest.max-jobs) are reported' '
    cat >full.sh <<-\EOF &&
	if idtree job submit -n 12 -- true >out 2>err; then exit 1; fi
	cat err
	test "$(wc -l <out)" = 10 && grep "ingest.max-jobs" err && grep "10 of 12 jobs are stored; 2 failed" err
	EOF
    other -o broker.modules=fluid,job-ingest -o ingest.max-jobs=10 sh full.sh
'
cat >keys.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
round() { idtree job submit -n 4 --key="$1" -- true >"$1" && idtree job watch -n 4 --ack --no-jobspec >/dev/null; }
known() { test "$(idtree job submit --key=a-1 -- true)" = "$(sed -n 1p a)"; }
# What is forgotten is so by whole seconds: ask until the clock shows the second after the next.
stays_known() { until test "$(date +%s)" -ge $((acked + 2)); do known || return 1; done; }
forgotten() { idtree job submit -- true >more && idtree job watch -n 1 --ack --no-jobspec >/dev/null && ! known; }
round a && round b && round c && acked=$(date +%s) && "$@"
END
test_expect_success 'the keys of more acknowledged jobs than ingest.max-jobs are remembered' '
    other -o broker.modules=fluid,job-ingest -o ingest.max-jobs=4 sh keys.sh stays_known
'
test_expect_success 'the oldest keys of more jobs than ingest.max-remembered are forgotten' '
    other -o broker.modules=fluid,job-ingest -o ingest.max-remembered=4 sh keys.sh wait_until "it is forgotten" forgotten
'
test_done
