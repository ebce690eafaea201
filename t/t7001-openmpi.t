#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7001-openmpi.t - PMIx as spoken by the launcher of Open MPI
test_description='brokers find each other by PMIx, or report why they cannot'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/launchers.sh"

if ! command -v mpirun.openmpi >/dev/null; then
    skip_all='Open MPI (openmpi-bin) is not installed'
    test_done
elif ! has_pmix; then
    skip_all='idtree is built without PMIx (libpmix-dev)'
    test_done
elif is_sanitized; then
    skip_all='a sanitizer does not let a library find its own functions first'
    test_done
fi
# In containers, tests run as root.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
# mpirun does not remove the folder of its own files.
launch() { # N, command...
    timeout "$WAIT_S" mpirun.openmpi --oversubscribe -n "$@" </dev/null
    set -- $?
    rm -rf "$TMPDIR"/ompi.*
    return "$1"
}
test_set_prereq OPENMPI
task='$OMPI_COMM_WORLD_RANK'

test_launcher OPENMPI "Open MPI"
test_expect_success OPENMPI 'Open MPI: rank 0 of several ranks reports pmix as its boot method' '
    launch 2 idtree-broker idtree getattr broker.boot-method >out && test "$(cat out)" = pmix
'
test_expect_success OPENMPI 'Open MPI: two tasks with the same rank are reported' '
    launch_broken 4 "test \$task != 2 || export PMIX_RANK=1" && said "several brokers as rank 1\|there is no rank 2 of 4: the launcher did not start it, or as another rank"
'
test_expect_success OPENMPI 'Open MPI: a rank or a job that the launcher does not know is reported' '
    launch_broken 2 "test \$task != 1 || export PMIX_RANK=7" && said "PMIX_RANK=7: the launcher does not accept this process" &&
    launch_broken 2 "test \$task != 1 || export PMIX_NAMESPACE=other" && said "PMIX_NAMESPACE=other.*does not accept this process"
'
test_done
