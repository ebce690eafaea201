/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* choose_test.c - the method that a broker chooses in environments of launchers: complete, partial and forged */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "broker/boot/method.h"
#include "broker/boot/traces.h"
#include "test/tap.h"

#define ENV(...) ((char *const[]){ "HOME=/", __VA_ARGS__, NULL })

/* Returns the name of the chosen method, or the error text. */
static const char *chosen (const char *asked, char *const *env)
{
    static struct boot_conf conf;
    static idt_error_t err;
    struct launcher_traces t;

    traces_read (&t, env);
    errno = 0;
    if (boot_choose (&conf, asked, &t, &err) == 0)
        return conf.method->name;
    return errno == EINVAL ? err.text : "errno is wrong";
}

static bool is (const char *text, const char *asked, char *const *env)
{
    const char *got = chosen (asked, env);

    if (strcmp (got, text) == 0)
        return true;
    diag ("%s", got);
    return false;
}

/* Whether the choice fails, and the error text contains both words. */
static bool refused (const char *word, const char *other, const char *asked, char *const *env)
{
    const char *got = chosen (asked, env);

    if (strchr (got, ' ') && strstr (got, word) && strstr (got, other))
        return true;
    diag ("%s", got);
    return false;
}

static void test_alone (void)
{
    ok (is ("single", "auto", ENV ("PATH=/bin")), "a broker without a launcher is an instance of its own");
    ok (is ("single", "auto", ENV ("PMI_SIZE=1", "PMI_RANK=0")) && is ("single", "auto", ENV ("SLURM_NTASKS=1"))
            && is ("single", "auto", ENV ("OMPI_COMM_WORLD_SIZE=1", "PMIX_RANK=0", "PMIX_NAMESPACE=n")),
        "a broker that is the only task of a launcher is an instance of its own");
    ok (is ("pmix", "auto", ENV ("SLURM_NTASKS=1", "SLURM_NPROCS=1", "PMIX_RANK=0", "PMIX_NAMESPACE=n")),
        "a launcher may start several brokers inside of an allocation of one task");
    ok (is ("single", "auto", ENV ("SLURM_NTASKS=many", "XPMI_SIZE=4", "SLURM_NTASKS_PER_NODE=4", "FLUX_JOB_SIZE=")),
        "a malformed number of tasks is ignored");
    ok (is ("single", "single", ENV ("PMI_FD=3", "PMI_SIZE=4", "PMI_RANK=1", "SLURM_NTASKS=4")),
        "a broker with --standalone is an instance of its own in any environment");
}

static void test_traces (void)
{
    static const char *const many[] = { "PMI_SIZE=2",      "SLURM_NTASKS=4",         "SLURM_NPROCS=4",
                                        "FLUX_JOB_SIZE=9", "SLURM_STEP_NUM_TASKS=2", "OMPI_COMM_WORLD_SIZE=16",
                                        "PMIX_RANK=1",     "JSM_NAMESPACE_SIZE=2",   "MV2_COMM_WORLD_SIZE=2" };

    for (size_t i = 0; i < sizeof (many) / sizeof (many[0]); i++)
        ok (refused (many[i], "--standalone", "auto", ENV ((char *)many[i])),
            "a broker whose environment has only %s is refused, and the error names the variable and --standalone",
            many[i]);
    ok (refused ("SLURM_NTASKS=4", "--mpi=pmi2", "auto", ENV ("PMI_SIZE=1", "SLURM_NTASKS=4")),
        "if several variables show a launcher, the error reports the strongest one, with the remedy for that launcher");
}

/* The variables that each launcher sets: for one of four tasks, and for the first task if the number of tasks is
 * unknown.
 */
static void test_launchers (void)
{
    static const char *const others[] = {
        "PMI_ID=1",
        "MPI_LOCALNRANKS=3",
        "MPI_LOCALRANKID=1",
        "MPIRUN_NPROCS=4",
        "MPIRUN_RANK=3",
        "MVP_COMM_WORLD_SIZE=4",
        "MV2_COMM_WORLD_RANK=1",
        "PMI_LOCAL_SIZE=4",
        "PMI_LOCAL_RANK=1",
        "ALPS_APP_PE=2",
        "PALS_RANKID=1",
        "PALS_NODEID=1",
        "PALS_LOCAL_SIZE=2",
        "SLURM_PROCID=1",
        "SLURM_LOCALID=1",
        "SLURM_NODEID=2",
        "SLURM_STEP_NUM_NODES=2",
        "OMPI_COMM_WORLD_RANK=1",
        "OMPI_COMM_WORLD_LOCAL_SIZE=2",
        "OMPI_MCA_ess_base_vpid=3",
        "OMPI_MCA_orte_ess_num_procs=4",
        "JSM_NAMESPACE_RANK=1",
        "JSM_NAMESPACE_LOCAL_SIZE=2",
        "FLUX_TASK_RANK=1",
        "FLUX_TASK_LOCAL_ID=1",
        "FLUX_JOB_NNODES=4",
        "LSF_PM_TASKID=2",
        "PBS_TASKNUM=2",
        "PBS_VNODENUM=1",
        "PBS_NODENUM=1",
    };
    static const char *const maybe[] = {
        "PMI_ID=0",
        "PMI_PORT=h:1",
        "PMI_RANK=0",
        "PMI_CONTROL_PORT=1",
        "PMI_SHARED_SECRET=1",
        "PMI_JOBID=7.0",
        "MPI_LOCALNRANKS=1",
        "HYDI_CONTROL_FD=7",
        "PMIX_RANK=0",
        "PMIX_NAMESPACE=n",
        "PMIX_SERVER_URI41=n",
        "OMPI_COMM_WORLD_RANK=0",
        "JSM_NAMESPACE_RANK=0",
        "SLURM_STEP_ID=0",
        "FLUX_TASK_RANK=0",
        "ALPS_APP_PE=0",
        "PALS_RANKID=0",
        "PALS_APID=x",
        "LSF_PM_TASKID=1",
        "JSM_NAMESPACE_SIZE=x",
    };

    for (size_t i = 0; i < sizeof (others) / sizeof (others[0]); i++)
        ok (refused (others[i], "several brokers", "auto", ENV ((char *)others[i])),
            "%s in the environment means that the launcher has started other tasks", others[i]);
    for (size_t i = 0; i < sizeof (maybe) / sizeof (maybe[0]); i++)
        ok (refused (maybe[i], "maybe others", "auto", ENV ((char *)maybe[i]))
                && is ("single", "auto", ENV ((char *)maybe[i], "PMI_SIZE=1"))
                && is ("single", "single", ENV ((char *)maybe[i])),
            "%s in the environment means that other tasks may exist, unless another variable shows that only one "
            "task exists",
            maybe[i]);
    ok (refused ("PMI_ID=1", "without -pmi-port", "auto", ENV ("PMI_ID=1", "PMI_PORT=h:1", "MPI_LOCALNRANKS=3")),
        "the error for Hydra with PMI_PORT recommends to run Hydra without a port");
    ok (is ("single", "auto", ENV ("SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NODEID=0", "SLURM_JOB_NUM_NODES=4"))
            && is ("single", "auto", ENV ("PBS_TASKNUM=1", "PBS_NODENUM=0", "PBS_VNODENUM=0", "PBS_NP=8"))
            && is ("single", "auto", ENV ("LSB_DJOB_NUMPROC=8", "LSB_MCPU_HOSTS=a 8")),
        "a broker in the script of a batch job, which runs once, is an instance of its own");
    ok (is ("single", "auto", ENV ("PMI_DEBUG=1", "PMI_NO_FORK=1", "PMIX_MCA_gds=hash", "OMPI_MCA_btl=tcp", "PMI_ID=")),
        "variables that users set, and empty variables, do not show a launcher");
}

static void test_pmi (void)
{
    ok (is ("pmi", "auto", ENV ("PMI_FD=3", "PMI_SIZE=4", "PMI_RANK=3"))
            && is ("pmi", "pmi", ENV ("PMI_FD=3", "PMI_SIZE=1", "PMI_RANK=0")),
        "a PMI-1 launcher with a connection is used");
    ok (is ("pmi", "auto", ENV ("SLURM_NTASKS=64", "PMIX_RANK=3", "PMI_FD=9", "PMI_SIZE=2", "PMI_RANK=0")),
        "a PMI-1 launcher is used even within a task of another launcher");
    ok (refused ("PMI_SIZE is not", "PMI-1", "auto", ENV ("PMI_FD=3")),
        "a PMI-1 launcher that does not set the size is refused");
    ok (refused ("PMI_RANK is not", "PMI-1", "auto", ENV ("PMI_FD=3", "PMI_SIZE=4")),
        "a PMI-1 launcher that does not set the rank is refused");
    ok (refused ("PMI_RANK=4", "from 0 to 3", "auto", ENV ("PMI_FD=3", "PMI_SIZE=4", "PMI_RANK=4")),
        "a rank that is not below the size of the instance is refused");
    ok (refused ("PMI_SIZE=0", "from 1", "auto", ENV ("PMI_FD=3", "PMI_SIZE=0", "PMI_RANK=0"))
            && refused ("PMI_SIZE=9999999", "to 1000000", "auto", ENV ("PMI_FD=3", "PMI_SIZE=9999999", "PMI_RANK=0"))
            && refused ("PMI_FD=x", "number", "auto", ENV ("PMI_FD=x", "PMI_SIZE=2", "PMI_RANK=0"))
            && refused ("PMI_RANK=-1", "number", "auto", ENV ("PMI_FD=3", "PMI_SIZE=2", "PMI_RANK=-1")),
        "malformed numbers for rank and size are refused");
    ok (refused ("PMI_FD", "no launcher", "pmi", ENV ("PMI_SIZE=2")),
        "a boot method is refused if its launcher is missing");
    ok (refused ("broker.boot=guess", "auto", "guess", ENV ("PATH=/bin")), "an unknown boot method is refused");
}

static void test_pmix (void)
{
    ok (is ("pmix", "auto", ENV ("PMIX_NAMESPACE=job", "PMIX_RANK=0", "OMPI_COMM_WORLD_SIZE=4"))
            && is ("pmix", "auto", ENV ("PMIX_NAMESPACE=job", "PMIX_RANK=0")),
        "a PMIx launcher is used, even without a number of tasks");
    ok (is ("pmix", "pmix", ENV ("PMI_FD=3", "PMI_SIZE=4", "PMI_RANK=3", "PMIX_NAMESPACE=job", "PMIX_RANK=3")),
        "PMIx is used on request");
    ok (refused ("PMIX_NAMESPACE", "no launcher", "pmix", ENV ("PMIX_RANK=3"))
            && refused ("PMIX_RANK", "no launcher", "pmix", ENV ("PMIX_NAMESPACE=job")),
        "a part of the PMIx variables without the others is refused");
    ok (refused ("PMIX_RANK=x", "number", "auto", ENV ("PMIX_NAMESPACE=job", "PMIX_RANK=x")),
        "a malformed PMIx rank is refused");
}

static void test_names (void)
{
    static const char *const task[] = { "PMI_FD=3",         "PMI_JOBID=1",     "PMIX_SERVER_URI2=x",
                                        "SLURM_NTASKS=4",   "SLURM_PROCID=1",  "OMPI_COMM_WORLD_LOCAL_RANK=0",
                                        "FLUX_TASK_RANK=1", "FLUX_JOB_SIZE=3", "HYDI_CONTROL_FD=7",
                                        "PALS_RANKID=0",    "SLURM_STEP_ID=0", "LSF_PM_TASKID=1" };
    static const char *const other[] = { "SLURM_JOB_ID=7", "PATH=/bin", "FLUX_URI=x",     "OMPI_MCA_btl=tcp",
                                         "PMI=1",          "PMI",       "PBS_NODEFILE=/f" };
    bool good = true;

    for (size_t i = 0; i < sizeof (task) / sizeof (task[0]); i++)
        good = good && traces_name_task (task[i]);
    ok (good, "variables that identify a task are not passed on to children");
    for (size_t i = 0; i < sizeof (other) / sizeof (other[0]); i++)
        good = good && !traces_name_task (other[i]);
    ok (good, "variables of the allocation or of the user are passed on to children");
}

static void test_config (void)
{
    struct boot_conf conf = { .attrs = attrs_create (), .own_host = "a" };
    idt_error_t err = { "" };
    struct launcher_traces t;

    traces_read (&t, ENV ("PMI_FD=3", "PMI_SIZE=4", "PMI_RANK=1"));
    ok (boot_choose (&conf, "auto", &t, &err) < 0 && strstr (err.text, "cluster.hosts is missing"),
        "--host and --rank are refused without a list of hosts: %s", err.text);
    ok (boot_choose (&conf, "config", &t, &err) < 0 && strstr (err.text, "cluster.hosts is missing"),
        "the boot method config is refused without a list of hosts: %s", err.text);
    attr_give (conf.attrs, "cluster.hosts", "a,b", NULL);
    ok (boot_choose (&conf, "auto", &t, &err) == 0 && conf.method == &boot_config,
        "a list of hosts has precedence over a launcher");
    ok (boot_choose (&conf, "single", &t, &err) == 0 && conf.method == &boot_single,
        "an explicit boot method has precedence over a list of hosts");
    attrs_destroy (conf.attrs);
}

int main (int argc, char **argv)
{
    test_alone ();
    test_traces ();
    test_launchers ();
    test_pmi ();
    test_pmix ();
    test_names ();
    test_config ();
    return done_testing ();
}
