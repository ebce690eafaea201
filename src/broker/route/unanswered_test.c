/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* unanswered_test.c - each service answers a request, even if it cannot make the response
 *
 * A broker with its modules runs in threads of this process.  In these threads the JSON allocation with number
 * 'fail_at' (counted from 0) fails.  Each request is sent with fail_at = 0, 1, 2, ... until no allocation has failed.
 * It must be answered each time, with a result or with an error.
 */
#include "config.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "broker/boot/boot.h"
#include "broker/broker_group.h"
#include "test/tap.h"

#define WAIT_MS 30000 /* ms to wait for a response; far longer than a busy machine needs */
#define POINTS 3000   /* largest number of allocations of one request */

static atomic_long fail_at = -1; /* each allocation lowers this number; the allocation that finds 0 fails */
static _Thread_local bool is_client;

static void *json_alloc (size_t size)
{
    if (!is_client && atomic_load (&fail_at) >= 0 && atomic_fetch_sub (&fail_at, 1) == 0)
        return NULL;
    return malloc (size);
}

struct run {
    struct process *process;
    struct broker_group *crew;
    struct attrs *attrs;
    pthread_t thread;
    char dir[64];
    char uri[128];
};

static void *run_main (void *arg)
{
    struct run *run = arg;

    process_run (run->process);
    broker_group_destroy (run->crew);
    process_destroy (run->process);
    attrs_destroy (run->attrs);
    return NULL;
}

static void run_start (struct run *run)
{
    struct broker_group_conf conf = { .attrs = attrs_create (),
                                      .boot = { .method = &boot_single, .size = 1 },
                                      .tmpdir = "/tmp",
                                      .module_path = BUILDDIR "/src/modules/.libs" };
    idt_error_t err;

    run->attrs = conf.attrs;
    snprintf (run->dir, sizeof (run->dir), "/tmp/unanswered_test.XXXXXX");
    if (!mkdtemp (run->dir))
        bail_out ("no folder");
    snprintf (run->uri, sizeof (run->uri), "local://%s/local-0", run->dir);
    attr_give (conf.attrs, "rundir", run->dir, NULL);
    attr_give (conf.attrs, "log-stderr-level", "0", NULL);
    if (!(conf.process = run->process = process_create (&err)) || !(run->crew = broker_group_create (&conf))
        || broker_group_start (run->crew, &err) < 0)
        bail_out (err.text);
    if (pthread_create (&run->thread, NULL, run_main, run) != 0)
        bail_out ("no thread");
}

static int remove_one (const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove (path);
}

/* Returns the errno of the response; 0: success; -1: no response. */
static int ask (idt_t *h, const char *topic, const char *payload, int flags)
{
    idt_future_t *f = idt_rpc (h, topic, payload, 0, flags);
    int rc = -1;

    if (f && idt_future_wait (f, WAIT_MS) == 0)
        rc = idt_future_errnum (f);
    idt_future_destroy (f);
    return rc;
}

static void test_request (idt_t *h, const char *topic, const char *payload, int flags)
{
    int rc = 0, errors = 0;
    long n = 0;

    for (; n < POINTS; n++) {
        atomic_store (&fail_at, n);
        rc = ask (h, topic, payload, flags);
        if (atomic_exchange (&fail_at, -1) >= 0 || rc < 0)
            break;
        errors += rc > 0;
    }
    ok (rc >= 0 && n < POINTS,
        "a request for %s is answered even if any one of its %ld allocations fails (%d errors)%s", topic, n, errors,
        rc < 0 ? ": no response arrived" : "");
    if (rc < 0)
        bail_out ("a request was not answered");
}

static const struct {
    const char *topic;
    const char *payload;
    int flags;
} requests[] = {
    { "attr.get", "{\"name\":\"size\"}", 0 },
    { "attr.list", NULL, 0 },
    { "attr.set", "{\"name\":\"log-level\",\"value\":\"6\"}", 0 },
    { "config.get", NULL, 0 },
    { "event.publish", "{\"topic\":\"a.b\"}", 0 },
    { "event.subscribe", "{\"topic\":\"a.b\"}", 0 },
    { "event.unsubscribe", "{\"topic\":\"a.b\"}", 0 },
    { "event.replay", "{\"stream\":\"x\",\"from\":1}", 0 },
    { "event.stats-get", NULL, 0 },
    { "service.add", "{\"service\":\"mine\"}", 0 },
    { "service.remove", "{\"service\":\"mine\"}", 0 },
    { "state-machine.get", NULL, 0 },
    { "broker.stats-get", NULL, 0 },
    { "broker.ping", "{\"seq\":1}", 0 },
    { "log.dmesg", "{}", IDT_RPC_STREAMING },
    { "module.list", NULL, 0 },
    { "module.remove", "{\"name\":\"nosuch\"}", 0 },
    { "overlay.health", NULL, 0 },
    { "overlay.topology", "{\"rank\":0}", 0 },
    { "overlay.stats-get", NULL, 0 },
    { "fluid.generate", "{\"count\":3}", 0 },
    { "fluid.info", NULL, 0 },
    { "fluid.watermark", NULL, 0 },
    { "fluid.stats-get", NULL, 0 },
    { "fluid.rusage", NULL, 0 },
    { "fluid.ping", "{\"seq\":1}", 0 },
    { "flax.generate", "{\"count\":3}", 0 },
    { "sno.generate", "{\"count\":3}", 0 },
    { "uid.generate", "{\"count\":3}", 0 },
    { "flake.stats-get", NULL, 0 },
    { "compressor.create", "{\"document\":\"d\"}", 0 },
    { "compressor.list", "{}", 0 },
    { "compressor.open", "{\"document\":\"d\"}", 0 },
    { "compressor.generate", "{\"document\":\"d\",\"count\":3}", 0 },
    { "compressor.generate", "{\"document\":\"d\",\"count\":3,\"final\":true}", 0 },
    { "compressor.normalize", "{\"document\":\"d\",\"ids\":[-1,-2]}", 0 },
    { "compressor.decompress", "{\"document\":\"d\",\"ids\":[-1,-2]}", 0 },
    { "compressor.stats", "{\"document\":\"d\"}", 0 },
    { "compressor.save", "{\"document\":\"d\"}", 0 },
    { "compressor.join", "{\"document\":\"d\"}", 0 },
    { "compressor.stats-get", NULL, 0 },
    { "compressor.close", "{\"document\":\"d\"}", 0 },
};

int main (int argc, char *argv[])
{
    struct run run;
    idt_error_t err;
    idt_t *h;

    is_client = true;
    json_set_alloc_funcs (json_alloc, free);
    run_start (&run);
    if (!(h = idt_open (run.uri, &err)))
        bail_out (err.text);
    ok (ask (h, "compressor.stats-get", NULL, 0) == 0, "all modules have started before allocations fail");
    for (size_t i = 0; i < sizeof (requests) / sizeof (requests[0]); i++)
        test_request (h, requests[i].topic, requests[i].payload, requests[i].flags);
    ok (ask (h, "shutdown.start", NULL, 0) == 0, "the broker answers requests after all failed allocations");
    idt_close (h);
    pthread_join (run.thread, NULL);
    nftw (run.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return done_testing ();
}
