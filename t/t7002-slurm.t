#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7002-slurm.t - PMI-1 and PMIx as spoken by Slurm, with four virtual nodes on this host
test_description='brokers that srun starts find each other, or report why they cannot'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/launchers.sh"
. "$IDTREE_SRCDIR/t/slurm.sh"

slurm=/tmp/idtree-slurm.$$
mkdir "$slurm"
cleanup "slurm_stop; rm -rf '$slurm'"
if ! slurm_start "$slurm" 4 >why 2>&1; then
    skip_all="no Slurm here: $(tail -n 1 why)"
    test_done
fi
task='$SLURM_PROCID'
launch() { timeout "$WAIT_S" srun -Q -N "$1" -n "$@" </dev/null; }

test_set_prereq PMI2
has_pmix && ! is_sanitized && srun --mpi=list 2>&1 | grep -q pmix && test_set_prereq PMIX
for SLURM_MPI_TYPE in pmi2 pmix; do
    export SLURM_MPI_TYPE
    test_launcher "$(echo $SLURM_MPI_TYPE | tr a-z A-Z)" "Slurm, $SLURM_MPI_TYPE"
done
SLURM_MPI_TYPE=none
test_expect_success 'Slurm without PMI: each task refuses to start and names the remedy' '
    launch_broken 2 "" && said "SLURM_STEP_NUM_TASKS=2.*--mpi=pmi2" && grep SLURM_STEP_NUM_TASKS err.0 && grep SLURM_STEP_NUM_TASKS err.1
'
test_expect_success 'Slurm without PMI: a single task starts, and so does idtree start' '
    launch 1 idtree-broker idtree getattr size >out && launch 1 idtree start -s 2 idtree getattr size >>out &&
    test "$(echo $(cat out))" = "1 2"
'
test_expect_success 'Slurm without PMI: a batch script, which runs once, may be an instance, and so may a step of one task in the script' '
    printf "%s\n" "#!/bin/sh" "idtree-broker idtree getattr size && srun -n 1 idtree-broker idtree getattr size" >batch &&
    timeout "$WAIT_S" sbatch -W -N 1 -n 1 -o out batch </dev/null && test "$(echo $(cat out))" = "1 1" &&
    timeout "$WAIT_S" sbatch -W -N 2 -o out --wrap "idtree-broker idtree getattr size" </dev/null && test "$(cat out)" = 1
'
test_done
