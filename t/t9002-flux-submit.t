#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t9002-flux-submit.t - the installed Flux commands and Flux's Python submit jobs to job-ingest
test_description='stock Flux clients submit jobs, and each id that they print is the id of a stored job'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs flux
test_under_idtree 3 --topology kary:1 -o log-stderr-level=0 -o broker.modules=fluid,job-ingest -o fluid.lease=1s

flux python -c 'import flux' 2>/dev/null && test_set_prereq FLUX_PYTHON

at() { # RANK command...: the command talks to that rank
    (FLUX_URI=${FLUX_URI%0}$1 IDTREE_URI=${IDTREE_URI%0}$1 && export FLUX_URI IDTREE_URI && shift && "$@")
}
ascii() { sed 's/^ƒ/f/'; } # how Flux begins an id depends on the locale
jobs_after() { idtree job list -a "$1" | awk 'NR > 1 { print $1 }'; }
job_of() { idtree job show --json "$1"; }
increase() { idtree id convert --to dec - <"$1" | sort -c -n -u; }
stored() { idtree job stats --json | sed 's/.*"stored": *\([0-9]*\).*/\1/'; }

# The jobs that are stored after 'last' are those of the file, in the same order. Sets 'last' to the last of them.
are_stored() { # file of ids
    increase "$1" && jobs_after "$last" >stored && test_cmp "$1" stored && last=$(tail -n 1 "$1")
}
last=0

# --- commands

test_expect_success 'flux submit prints the id of the job' '
    flux submit -n 2 --urgency=20 echo hello there | ascii >ids && test "$(wc -l <ids)" = 1 && are_stored ids &&
    job_of $last >job && grep "\"urgency\": *20" job && grep "\"userid\": *$(id -u)" job &&
    grep "\"command\": *\[\"echo\", *\"hello\", *\"there\"\]" job
'
test_expect_success 'flux submit works from each rank' '
    for r in 2 1 0; do at $r flux submit true || return 1; done | ascii >ids &&
    test "$(wc -l <ids)" = 3 && are_stored ids
'
test_expect_success 'flux job submit reads a file or a pipe' '
    flux submit --dry-run -t 5m hostname >spec && flux job submit spec | ascii >ids &&
    flux job submit --urgency=7 <spec | ascii >>ids &&
    at 2 flux job submit --flags=debug,waitable - <spec | ascii >>ids &&
    test "$(wc -l <ids)" = 3 && are_stored ids && job_of $last | grep "\"duration\": *300" &&
    job_of $(sed -n 2p ids) | grep "\"urgency\": *7"
'
test_expect_success 'flux bulksubmit stores each job' '
    at 1 flux bulksubmit echo {} ::: $(seq 50) | ascii >ids && test "$(wc -l <ids)" = 50 && are_stored ids &&
    job_of $last | grep "\"echo\", *\"50\""
'
test_expect_success 'flux submit --cc=1-1000 stores each of a thousand jobs' '
    at 2 flux submit --cc=1-1000 true | ascii >ids && test "$(wc -l <ids)" = 1000 && are_stored ids
'
test_expect_success 'flux batch stores a job, and so does flux submit with options that are written into the jobspec' '
    { flux batch -n1 --wrap true && flux submit --queue=q --begin-time=+1h --dependency=afterany:$last true &&
    flux submit --requires=rank:0 --output=o --env=X=1 --setattr=a.b=7 true; } | ascii >ids &&
    test "$(wc -l <ids)" = 3 && are_stored ids && job_of $last | grep "\"b\": *7"
'
test_expect_success 'flux submit works from all ranks concurrently' '
    for r in 0 1 2; do
        at $r flux submit --cc=1-200 true >ids.$r & eval "pid_$r=$!"
    done &&
    for r in 0 1 2; do eval "wait \$pid_$r" && ascii <ids.$r >in.$r && increase in.$r || return 1; done &&
    cat in.0 in.1 in.2 | sort >want && test "$(wc -l <want)" = 600 && jobs_after $last >ids && increase ids &&
    sort ids >got && test_cmp want got && last=$(tail -n 1 ids)
'

# --- refusals

test_expect_success 'a job of flux submit that is refused is reported with a message, and is not stored' '
    before=$(stored) &&
    test_must_fail flux submit --urgency=40 true 2>err && grep "urgency: must be an integer from 0 to 31" err &&
    test_must_fail flux job submit <err 2>out && grep "jobspec: .*must be JSON" out &&
    echo "{\"version\":1}" | test_must_fail flux job submit 2>err && grep "jobspec: resources: .*missing" err &&
    sed "s/\"version\": *1/\"version\":99/" spec | test_must_fail flux job submit 2>err && grep "version" err &&
    echo "what.is.this" | test_must_fail flux job submit --flags=signed 2>err && grep "^flux-job: J" err &&
    test "$(stored)" = "$before" && test -z "$(jobs_after $last)"
'
test_expect_success 'jobspecs of flux submit that RFC 25 does not allow are refused, as the guide says, although Flux accepts them' '
    test_must_fail flux submit --resources-shape=slot=4/node true 2>err &&
    grep "with\[0\].type: must be core or gpu, and is \"node\"" err &&
    sed "s/\"slot\": *\"task\"/\"slot\":\"foo\"/" spec | test_must_fail flux job submit 2>err &&
    grep "tasks\[0\].slot: must be the label of the slot" err && test -z "$(jobs_after $last)"
'
test_expect_success 'of many jobs of flux submit the valid ones are stored, and the others are refused one by one' '
    test_must_fail flux bulksubmit --urgency={} true ::: $(seq 0 40) >out 2>err && ascii <out >ids &&
    test "$(wc -l <ids)" = 32 && test "$(grep -c "urgency: must be" err)" = 9 && are_stored ids
'
test_expect_success 'a flux command that waits for the job to run gets a message that names the missing service' '
    for c in "submit --wait" "submit --watch" run; do
        test_must_fail flux $c true >>out 2>err && grep "No service matching job-info.* is registered" err || return 1
    done && jobs_after $last >ids && test "$(wc -l <ids)" = 3 && are_stored ids
'

# --- Python

cat >submit.py <<\EOF
import sys

import flux
import flux.job

h = flux.Flux()
spec = flux.job.JobspecV1.from_command(["true"])
count, window = int(sys.argv[1]), int(sys.argv[2])
ids, left = [], count


def submit():
    global left
    if left > 0:
        left -= 1
        flux.job.submit_async(h, spec).then(answered)


def answered(future):
    ids.append(future.get_id())
    submit()


for _ in range(window):
    submit()
h.reactor_run()
assert len(ids) == count, len(ids)
for i in ids:
    print(i.f58plain)
one = flux.job.submit(h, spec, urgency=31, waitable=True)
print(one.f58plain)
EOF
test_expect_success FLUX_PYTHON 'Flux in Python submits many jobs concurrently with submit_async, and single ones with submit' '
    at 2 flux python submit.py 2500 2000 >ids && test "$(wc -l <ids)" = 2501 && are_stored ids
'

# --- faults

# Clients do not retry. If a client got an error, the job may be stored or not.
are_among_stored() { # file of ids
    test -z "$(sort "$1" | uniq -d)" && jobs_after "$last" >ids && increase ids && sort "$1" >want && sort ids >got &&
    comm -23 want got >missing && test_must_be_empty missing && last=$(tail -n 1 ids)
}
some_came() { test "$(wc -l <"$1")" -ge "$2"; }
submit_from_2() { # each id is written when it comes
    at 2 flux python -u submit-on.py 2>err >seen & client=$!
}
cat >submit-on.py <<\EOF
import os
import sys

import flux
import flux.job

h = flux.Flux()
spec = flux.job.JobspecV1.from_command(["true"])


def answered(future):
    try:
        print(future.get_id().f58plain)
    except OSError as e:
        print(e, file=sys.stderr)
    if not os.path.exists("enough"):
        flux.job.submit_async(h, spec).then(answered)


for _ in range(100):
    flux.job.submit_async(h, spec).then(answered)
h.reactor_run()
EOF
for rank in 1 0; do
    test_expect_success FLUX_PYTHON "each id that a client of Flux in Python got is the id of one stored job, although rank $rank was killed meanwhile" "
        rm -f enough && submit_from_2 && wait_until 'ids come' some_came seen 500 &&
        idtree startctl kill $rank && idtree startctl run $rank &&
        wait_until 'ids come again' some_came seen \$((\$(wc -l <seen) + 500)) &&
        : >enough && wait \$client && are_among_stored seen
    "
done
test_done
