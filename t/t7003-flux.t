#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7003-flux.t - PMI-1 as Flux speaks it to the tasks that it runs
test_description='brokers that flux run starts find each other, or report why they cannot'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/launchers.sh"
. "$IDTREE_SRCDIR/t/flux-instance.sh"

test_needs flux
tasks_tmpdir=$TMPDIR
TMPDIR=/tmp/idtree-flux.$$
mkdir "$TMPDIR"
cleanup "flux_end; rm -rf '$TMPDIR'"
if ! flux_begin; then
    skip_all='no instance of Flux here'
    test_done
fi
TMPDIR=$tasks_tmpdir
task='$FLUX_TASK_RANK'
launch() { FLUX_URI=$flux_uri_zero timeout "$WAIT_S" flux run -n "$@" </dev/null; }

test_set_prereq FLUX
test_launcher FLUX Flux
test_expect_success FLUX 'Flux: two tasks with the same rank are reported' '
    launch_broken 4 "test \$task != 3 || export PMI_RANK=1" && said "several brokers as rank 1\|there is no rank 3"
'
test_expect_success FLUX 'Flux: brokers refuse a job that Flux starts without PMI' '
    FLUX_URI=$flux_uri_zero test_must_fail timeout "$WAIT_S" flux run -o pmi=off -n 2 idtree-broker touch started </dev/null >out 2>&1 &&
    grep "FLUX_JOB_SIZE=2.*--standalone" out && test ! -e started
'
test_done
