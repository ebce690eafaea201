/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* traces.c - what launchers of parallel programs leave in the environment of a task */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "broker/boot/traces.h"
#include "libutil/duration.h"

#define PMI_CURE "mpiexec.hydra, srun --mpi=pmi2 or flux run"
#define SLURM_CURE "srun --mpi=pmi2 or srun --mpi=pmix"
#define PMIX_CURE "mpirun of Open MPI, prterun or srun --mpi=pmix"

/* Variables that tell how many tasks there are.  Those of an allocation do not say how many a launcher in it starts. */
static const struct {
    const char *name;
    const char *cure;
    bool of_allocation;
} counts[] = {
    { "PMI_SIZE", PMI_CURE, false },
    { "SLURM_STEP_NUM_TASKS", SLURM_CURE, false },
    { "SLURM_NTASKS", SLURM_CURE, true },
    { "SLURM_NPROCS", SLURM_CURE, true },
    { "OMPI_COMM_WORLD_SIZE", PMIX_CURE, false },
    { "FLUX_JOB_SIZE", "flux run -o pmi=simple", false },
    { "JSM_NAMESPACE_SIZE", PMIX_CURE, false },
    { "MV2_COMM_WORLD_SIZE", PMI_CURE, false },
};

/* Others that are for one task alone; with a * at the end: all that begin so. */
static const char *const names[] = {
    "PMI_*",           "PMIX_*",          "OMPI_COMM_WORLD_*", "OMPI_UNIVERSE_SIZE", "MV2_COMM_WORLD_*",
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "JSM_NAMESPACE_*",   "FLUX_TASK_*",        "SLURM_PROCID",
    "SLURM_LOCALID",   "SLURM_TASK_PID",
};

#define COUNTS (sizeof (counts) / sizeof (counts[0]))

static bool has_name (const char *entry, const char *name)
{
    size_t len = strcspn (name, "*");

    return strncmp (entry, name, len) == 0 && (name[len] == '*' || entry[len] == '=');
}

/* The entry of a name; NULL: there is none. */
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

/* How many an entry counts; 0: it is no number. */
static uint64_t count (const char *entry)
{
    uint64_t n = 0;

    return parse_number (strchr (entry, '=') + 1, 0, UINT32_MAX, &n) == 0 ? n : 0;
}

static void note (struct traces *t, const char *entry, bool many, const char *cure)
{
    if (!many || t->many)
        return;
    t->many = entry;
    t->cure = cure;
}

void traces_read (struct traces *t, char *const *env)
{
    const char *entry;

    *t = (struct traces){
        .pmi_fd = value (env, "PMI_FD"),
        .pmi_rank = value (env, "PMI_RANK"),
        .pmi_size = value (env, "PMI_SIZE"),
        .pmix_namespace = value (env, "PMIX_NAMESPACE"),
        .pmix_rank = value (env, "PMIX_RANK"),
    };
    for (size_t i = 0; i < COUNTS; i++) {
        if (!(entry = find (env, counts[i].name)))
            continue;
        note (t, entry, count (entry) > 1, counts[i].cure);
        t->one = t->one || (count (entry) == 1 && !counts[i].of_allocation);
    }
    if ((entry = find (env, "PMIX_RANK"))) /* it does not say of how many, but the first is 0 */
        note (t, entry, count (entry) > 0, PMIX_CURE);
    t->one = t->one && !t->many;
}

bool traces_name_task (const char *entry)
{
    for (size_t i = 0; i < COUNTS; i++)
        if (has_name (entry, counts[i].name))
            return true;
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (has_name (entry, names[i]))
            return true;
    return false;
}
