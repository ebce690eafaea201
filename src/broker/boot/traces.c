/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* traces.c - variables that launchers of parallel programs set in the environment of a task */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "broker/boot/traces.h"
#include "libutil/duration.h"

#define PMI_CURE "mpiexec.hydra, srun --mpi=pmi2 or flux run"
#define HYDRA_CURE "mpiexec.hydra without -pmi-port"
#define FLUX_CURE "flux run -o pmi=simple"
#define SLURM_CURE "srun --mpi=pmi2 or srun --mpi=pmix"
#define PMIX_CURE "mpirun of Open MPI, prterun or srun --mpi=pmix"

/* The meaning of the value of a variable. */
enum kind {
    TASKS,     /* number of all tasks */
    ALLOCATED, /* number of tasks that fit into the allocation; a launcher in it may start more than 1 */
    SOME,      /* number of some tasks, for example on this host; if it is 1 there may be others */
    RANK,      /* number of this task, counted from 0; if it is 0 there may be others */
    RANK_1,    /* number of this task, counted from 1 */
    OF_JOB,    /* number of this task, counted from 0; a batch script without a launcher also has 0 */
    OF_JOB_1,  /* number of this task, counted from 1; a batch script without a launcher also has 1 */
    TASK,      /* not a number, but shows that there is a launcher */
};

/* All variables that launchers set for their tasks, except variables that users also set for launchers. A batch system
 * runs a script once, no matter how many slots the script has, so variables that count slots (PBS_NP, LSB_DJOB_NUMPROC)
 * are not in this table.
 */
static const struct {
    const char *name;
    const char *cure;
    enum kind kind;
} traces[] = {
    { "PMI_SIZE", PMI_CURE, TASKS },
    { "SLURM_STEP_NUM_TASKS", SLURM_CURE, TASKS },
    { "SLURM_NTASKS", SLURM_CURE, ALLOCATED },
    { "SLURM_NPROCS", SLURM_CURE, ALLOCATED },
    { "OMPI_COMM_WORLD_SIZE", PMIX_CURE, TASKS },
    { "FLUX_JOB_SIZE", FLUX_CURE, TASKS },
    { "JSM_NAMESPACE_SIZE", PMIX_CURE, TASKS },
    { "MV2_COMM_WORLD_SIZE", PMI_CURE, TASKS },
    { "MVP_COMM_WORLD_SIZE", PMI_CURE, TASKS },
    { "MPIRUN_NPROCS", PMI_CURE, TASKS },
    { "MPI_NRANKS", PMI_CURE, TASKS },
    { "PALS_SIZE", PMI_CURE, TASKS },

    { "PMI_ID", HYDRA_CURE, RANK }, /* Hydra and mpirun_rsh, if tasks connect to a port */
    { "PMI_PORT", HYDRA_CURE, TASK },
    { "PMI_RANK", PMI_CURE, RANK },
    { "PMI_LOCAL_SIZE", PMI_CURE, SOME }, /* this variable and the next ones: Cray */
    { "PMI_LOCAL_RANK", PMI_CURE, RANK },
    { "PMI_CONTROL_PORT", PMI_CURE, TASK },
    { "PMI_SHARED_SECRET", PMI_CURE, TASK },
    { "PMI_UNIVERSE_SIZE", PMI_CURE, TASK },
    { "PMI_JOBID", PMI_CURE, TASK },
    { "PMI_APPNUM", PMI_CURE, TASK },
    { "PMI_SPAWNED", PMI_CURE, TASK },
    { "MPI_LOCALNRANKS", HYDRA_CURE, SOME },
    { "MPI_LOCALRANKID", HYDRA_CURE, RANK },
    { "MPI_RANKID", PMI_CURE, RANK },
    { "HYDI_CONTROL_FD", PMI_CURE, TASK },
    { "MPIRUN_RANK", PMI_CURE, RANK },
    { "MV2_COMM_WORLD_RANK", PMI_CURE, RANK },
    { "MVP_COMM_WORLD_RANK", PMI_CURE, RANK },

    { "PMIX_RANK", PMIX_CURE, RANK },
    { "PMIX_NAMESPACE", PMIX_CURE, TASK },
    { "PMIX_ID", PMIX_CURE, TASK },
    { "PMIX_SERVER_URI*", PMIX_CURE, TASK },
    { "OMPI_COMM_WORLD_RANK", PMIX_CURE, RANK },
    { "OMPI_COMM_WORLD_LOCAL_SIZE", PMIX_CURE, SOME },
    { "OMPI_COMM_WORLD_LOCAL_RANK", PMIX_CURE, RANK },
    { "OMPI_COMM_WORLD_NODE_RANK", PMIX_CURE, RANK },
    { "OMPI_MCA_orte_ess_num_procs", PMIX_CURE, SOME }, /* Open MPI 4; its daemons also have this variable */
    { "OMPI_MCA_ess_base_vpid", PMIX_CURE, RANK },
    { "JSM_NAMESPACE_RANK", PMIX_CURE, RANK },
    { "JSM_NAMESPACE_LOCAL_SIZE", PMIX_CURE, SOME },
    { "JSM_NAMESPACE_LOCAL_RANK", PMIX_CURE, RANK },

    { "SLURM_STEP_ID", SLURM_CURE, TASK },
    { "SLURM_STEPID", SLURM_CURE, TASK },
    { "SLURM_STEP_NUM_NODES", SLURM_CURE, SOME },
    { "SLURM_PROCID", SLURM_CURE, OF_JOB },
    { "SLURM_LOCALID", SLURM_CURE, OF_JOB },
    { "SLURM_NODEID", SLURM_CURE, OF_JOB },

    { "FLUX_TASK_RANK", FLUX_CURE, RANK },
    { "FLUX_TASK_LOCAL_ID", FLUX_CURE, RANK },
    { "FLUX_JOB_NNODES", FLUX_CURE, SOME },

    { "ALPS_APP_PE", PMI_CURE, RANK },
    { "ALPS_APP_ID", PMI_CURE, TASK },
    { "PALS_RANKID", PMI_CURE, RANK },
    { "PALS_NODEID", PMI_CURE, RANK },
    { "PALS_LOCAL_SIZE", PMI_CURE, SOME },
    { "PALS_LOCAL_RANKID", PMI_CURE, RANK },
    { "PALS_APID", PMI_CURE, TASK },
    { "PALS_APINFO", PMI_CURE, TASK },
    { "PALS_SPOOL_DIR", PMI_CURE, TASK },

    { "LSF_PM_TASKID", PMI_CURE, RANK_1 },
    { "PBS_TASKNUM", PMI_CURE, OF_JOB_1 },
    { "PBS_NODENUM", PMI_CURE, OF_JOB },
    { "PBS_VNODENUM", PMI_CURE, OF_JOB },
};

/* Further variables that identify a task and say nothing about other tasks. * at the end means all names with this
 * prefix.
 */
static const char *const names[] = {
    "PMI_*",           "PMIX_*",      "OMPI_COMM_WORLD_*", "OMPI_UNIVERSE_SIZE", "MV2_COMM_WORLD_*", "MVP_COMM_WORLD_*",
    "JSM_NAMESPACE_*", "FLUX_TASK_*", "SLURM_TASK_PID",    "SLURM_GTIDS",        "ALPS_APP_*",
};

#define TRACES (sizeof (traces) / sizeof (traces[0]))

static bool has_name (const char *entry, const char *name)
{
    size_t len = strcspn (name, "*");

    return strncmp (entry, name, len) == 0 && (name[len] == '*' || entry[len] == '=');
}

/* The entry with this name; NULL: no entry has it. */
static const char *find (char *const *env, const char *name)
{
    for (; *env; env++)
        if (has_name (*env, name))
            return *env;
    return NULL;
}

static const char *value (char *const *env, const char *name)
{
    const char *entry = find (env, name);

    return entry ? strchr (entry, '=') + 1 : NULL;
}

/* Whether 'n' means that there are several tasks. */
static bool says_many (enum kind kind, uint64_t n)
{
    switch (kind) {
    case TASKS:
    case ALLOCATED:
    case SOME:
    case RANK_1:
    case OF_JOB_1:
        return n > 1;
    case RANK:
    case OF_JOB:
        return n > 0;
    default:
        return false;
    }
}

/* Whether the variable shows that there is a launcher, even if its value is not a number or does not mean several
 * tasks.
 */
static bool is_of_launcher (enum kind kind)
{
    return kind != ALLOCATED && kind != OF_JOB && kind != OF_JOB_1;
}

/* Evaluate an entry. An empty value counts as not set. */
static void note (struct launcher_traces *t, const char *entry, size_t i)
{
    const char *text = strchr (entry, '=') + 1;
    enum kind kind = traces[i].kind;
    uint64_t n = 0;
    bool is_number = parse_number (text, 0, UINT32_MAX, &n) == 0;

    if (!*text)
        return;
    if (is_number && says_many (kind, n)) {
        if (!t->many) {
            t->many = entry;
            t->cure = traces[i].cure;
        }
    }
    else if (is_number && kind == TASKS && n == 1)
        t->one = true;
    else if (is_of_launcher (kind) && !t->task) {
        t->task = entry;
        t->task_cure = traces[i].cure;
    }
}

void traces_read (struct launcher_traces *t, char *const *env)
{
    const char *entry;

    *t = (struct launcher_traces){
        .pmi_fd = value (env, "PMI_FD"),
        .pmi_rank = value (env, "PMI_RANK"),
        .pmi_size = value (env, "PMI_SIZE"),
        .pmix_namespace = value (env, "PMIX_NAMESPACE"),
        .pmix_rank = value (env, "PMIX_RANK"),
    };
    for (size_t i = 0; i < TRACES; i++)
        if ((entry = find (env, traces[i].name)))
            note (t, entry, i);
    t->one = t->one && !t->many;
}

bool traces_name_task (const char *entry)
{
    for (size_t i = 0; i < TRACES; i++)
        if (has_name (entry, traces[i].name))
            return true;
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (has_name (entry, names[i]))
            return true;
    return false;
}
