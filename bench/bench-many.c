/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-many.c - many brokers in one process: the time to form a tree, and the resources of each broker
 *
 *     bench-many [KIND [MODULES [SIZE...]]]
 *
 * KIND: the kind of links inside of the process, a value of tbon.transport; "" for each kind in turn. MODULES: a value
 * of broker.modules; "" for no modules. For each kind and size it prints a line with a JSON object: the seconds until
 * rank 0 sees all brokers, and until all have stopped; the descriptors and private memory of each broker, and its
 * processor time while it is idle. Each run is a process of its own.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "broker/boot/boot.h"
#include "broker/broker_group.h"
#include "timing.h"

#define IDLE_S 5
#define MODULES BUILDDIR "/src/modules/.libs"

struct run {
    struct process *process;
    struct broker_group *crew;
    struct attrs *attrs;
};

static void must (bool good, const char *what)
{
    if (!good) {
        fprintf (stderr, "bench-many: %s: %s\n", what, strerror (errno));
        exit (1);
    }
}

static void *run_main (void *arg)
{
    struct run *run = arg;

    process_run (run->process);
    broker_group_destroy (run->crew);
    process_destroy (run->process);
    attrs_destroy (run->attrs);
    return NULL;
}

static void wait_for_all (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "overlay.health", NULL, 0, IDT_RPC_STREAMING);
    const char *status = "";

    while (strcmp (status, "full") != 0) {
        must (idt_rpc_get_unpack (f, "{s:s}", "status", &status) == 0, "overlay.health");
        if (strcmp (status, "full") != 0)
            idt_future_reset (f);
    }
    idt_future_destroy (f);
}

static int count_descriptors (void)
{
    DIR *dir = opendir ("/proc/self/fd");
    int n = -3; /* do not count ".", ".." and this descriptor */

    must (dir != NULL, "/proc/self/fd");
    while (readdir (dir))
        n++;
    closedir (dir);
    return n;
}

static long private_kib (void)
{
    FILE *f = fopen ("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib, sum = 0;

    must (f != NULL, "/proc/self/smaps_rollup");
    while (fgets (line, sizeof (line), f))
        if (sscanf (line, "Private_%*[a-zA-Z]: %ld kB", &kib) == 1)
            sum += kib;
    fclose (f);
    return sum;
}

static double cpu_s (void)
{
    struct rusage u;

    getrusage (RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void give (struct attrs *attrs, const char *name, const char *value)
{
    must (attr_give (attrs, name, value, NULL) == 0, name);
}

static void start (struct run *run, const char *kind, const char *modules, uint32_t size, const char *dir)
{
    struct broker_group_conf conf = {
        .attrs = attrs_create (),
        .boot = { .method = &boot_single, .size = size },
        .tmpdir = "/tmp",
        .module_path = MODULES,
    };
    idt_error_t err = { "" };

    give (conf.attrs, "tbon.transport", kind);
    give (conf.attrs, "broker.modules", modules);
    give (conf.attrs, "rundir", dir);
    give (conf.attrs, "log-stderr-level", "4");
    run->attrs = conf.attrs;
    conf.process = run->process = process_create (&err);
    if (!conf.process || !(run->crew = broker_group_create (&conf)) || broker_group_start (run->crew, &err) < 0) {
        fprintf (stderr, "bench-many: %u brokers, %s: %s\n", size, kind, err.text);
        exit (1);
    }
}

static void measure (const char *kind, const char *modules, uint32_t size)
{
    double start_ns = now_ns (), up_ns, cpu, stop_ns;
    char dir[] = "/tmp/bench-many.XXXXXX", uri[64];
    int descriptors = count_descriptors ();
    long kib = private_kib ();
    idt_error_t err;
    pthread_t thread;
    struct run run;
    idt_t *h;

    must (mkdtemp (dir) != NULL, "mkdtemp");
    snprintf (uri, sizeof (uri), "local://%s/local-0", dir);
    start (&run, kind, modules, size, dir);
    must (pthread_create (&thread, NULL, run_main, &run) == 0, "pthread_create");
    must ((h = idt_open (uri, &err)) != NULL, "idt_open");
    wait_for_all (h);
    up_ns = now_ns () - start_ns;
    sleep (2);
    descriptors = count_descriptors () - descriptors;
    kib = private_kib () - kib;
    cpu = cpu_s ();
    sleep (IDLE_S);
    cpu = cpu_s () - cpu;
    stop_ns = now_ns ();
    idt_future_destroy (idt_rpc (h, "shutdown.start", NULL, 0, IDT_RPC_NORESPONSE));
    must (idt_flush (h) == 0, "idt_flush");
    pthread_join (thread, NULL);
    stop_ns = now_ns () - stop_ns;
    idt_close (h);
    rmdir (dir);
    printf ("{\"bench\":\"many\",\"inside\":\"%s\",\"modules\":\"%s\",\"size\":%u,\"up_s\":%.2f,\"stop_s\":%.2f,"
            "\"descriptors\":%.2f,\"private_kib\":%.0f,\"idle_us\":%.1f}\n",
            kind, modules, size, up_ns * 1e-9, stop_ns * 1e-9, (double)descriptors / size, (double)kib / size,
            cpu / IDLE_S * 1e6 / size);
    fflush (stdout);
}

static bool run_apart (const char *kind, const char *modules, uint32_t size)
{
    pid_t pid = fork ();
    int status = 1;

    must (pid >= 0, "fork");
    if (pid == 0) {
        measure (kind, modules, size);
        _exit (0);
    }
    waitpid (pid, &status, 0);
    return status == 0;
}

/* Raise the soft limit of open files, because the brokers need more than it usually allows. */
static void raise_files (void)
{
    struct rlimit r;

    getrlimit (RLIMIT_NOFILE, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit (RLIMIT_NOFILE, &r);
}

int main (int argc, char **argv)
{
    static const char *kinds[] = { "zmq", "inproc", "memory" };
    const char *kind = argc > 1 ? argv[1] : "", *modules = argc > 2 ? argv[2] : "";
    bool good = true;

    raise_files ();
    for (int k = 0; k < 3; k++) {
        if (*kind && strcmp (kind, kinds[k]) != 0)
            continue;
        if (argc <= 3)
            good = run_apart (kinds[k], modules, 100) && run_apart (kinds[k], modules, 500) && good;
        for (int i = 3; i < argc; i++)
            good = run_apart (kinds[k], modules, (uint32_t)atol (argv[i])) && good;
    }
    return !good;
}
