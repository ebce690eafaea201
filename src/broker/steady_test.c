/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* steady_test.c - the work for a request in the steady state: the number of allocations, and of reads and writes of the
 * reactor
 *
 * Brokers with their modules run in one thread of this process, and a client in another thread writes frames to their
 * socket. The test counts the allocations of all libraries, but only in the thread of the brokers. The links between
 * brokers are in memory, because ZeroMQ allocates memory for each frame.
 */
#include "config.h"

#include <dirent.h>
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "broker/boot/boot.h"
#include "broker/broker_group.h"
#include "test/tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS 0 /* no counts, because sanitizers have an allocator of their own */
#else
#define COUNTS 1
#endif

#define WARM 3000
#define BATCH 100
#define ROUNDS 20
#define HEADER 8
#define MIN_READ 4096 /* smallest read in bytes that counts, because shorter reads only drain wakeups */

/* --- counters ---------------------------------------------------------------------------------- */

static __thread bool counted; /* true in the thread of the brokers */
static uint64_t allocations, reads, writes;

static void count (uint64_t *n)
{
    if (counted)
        __atomic_add_fetch (n, 1, __ATOMIC_RELAXED);
}

#if COUNTS
void *__libc_malloc (size_t size);
void *__libc_calloc (size_t n, size_t size);
void *__libc_realloc (void *p, size_t size);

void *malloc (size_t size)
{
    count (&allocations);
    return __libc_malloc (size);
}

void *calloc (size_t n, size_t size)
{
    count (&allocations);
    return __libc_calloc (n, size);
}

void *realloc (void *p, size_t size)
{
    count (&allocations);
    return __libc_realloc (p, size);
}
#endif

ssize_t __real_read (int fd, void *buf, size_t size);
ssize_t __wrap_read (int fd, void *buf, size_t size);
ssize_t __real_send (int fd, const void *buf, size_t size, int flags);
ssize_t __wrap_send (int fd, const void *buf, size_t size, int flags);

ssize_t __wrap_read (int fd, void *buf, size_t size)
{
    if (size >= MIN_READ)
        count (&reads);
    return __real_read (fd, buf, size);
}

ssize_t __wrap_send (int fd, const void *buf, size_t size, int flags)
{
    count (&writes);
    return __real_send (fd, buf, size, flags);
}

static uint64_t value (const uint64_t *n)
{
    return __atomic_load_n (n, __ATOMIC_RELAXED);
}

/* --- brokers ------------------------------------------------------------------------------------- */

struct run {
    struct process *process;
    struct broker_group *group;
    struct attrs *attrs;
    pthread_t thread;
    char dir[64];
};

/* The brokers leave a state file and a store in their rundir. */
static void remove_folder (const char *path)
{
    DIR *dir = opendir (path);
    struct dirent *entry;

    while (dir && (entry = readdir (dir)))
        unlinkat (dirfd (dir), entry->d_name, 0); /* fails for "." and ".." */
    if (dir)
        closedir (dir);
    rmdir (path);
}

static void *run_main (void *arg)
{
    struct run *run = arg;

    counted = true;
    process_run (run->process);
    counted = false;
    broker_group_destroy (run->group);
    process_destroy (run->process);
    attrs_destroy (run->attrs);
    return NULL;
}

static void run_start (struct run *run, uint32_t size)
{
    const char *build = getenv ("IDTREE_BUILDDIR");
    char path[4096];
    struct broker_group_conf conf = {
        .attrs = attrs_create (),
        .boot = { .method = &boot_single, .size = size },
        .tmpdir = "/tmp",
        .module_path = path,
    };
    idt_error_t err;

    snprintf (path, sizeof (path), "%s/src/modules/.libs", build ? build : BUILDDIR);
    memset (run, 0, sizeof (*run));
    run->attrs = conf.attrs;
    snprintf (run->dir, sizeof (run->dir), "/tmp/steady_test.XXXXXX");
    if (!mkdtemp (run->dir))
        bail_out ("cannot make a folder");
    attr_give (conf.attrs, "rundir", run->dir, NULL);
    attr_give (conf.attrs, "broker.modules", "fluid", NULL);
    attr_give (conf.attrs, "log-stderr-level", "0", NULL);
    attr_give (conf.attrs, "tbon.topo", "kary:1", NULL);
    attr_give (conf.attrs, "tbon.transport", "memory", NULL);
    attr_give (conf.attrs, "local.sockets", "0,1", NULL);
    attr_give (conf.attrs, "fluid.max-generators", "1", NULL);
    attr_give (conf.attrs, "fluid.share", "off", NULL);
    if (!(conf.process = run->process = process_create (&err)) || !(run->group = broker_group_create (&conf))
        || broker_group_start (run->group, &err) < 0)
        bail_out (err.text);
    if (pthread_create (&run->thread, NULL, run_main, run) != 0)
        bail_out ("cannot make a thread");
}

static void run_stop (struct run *run)
{
    char uri[128];

    snprintf (uri, sizeof (uri), "local://%s/local-0", run->dir);
    idt_t *h = idt_open (uri, NULL);
    idt_future_t *f = h ? idt_rpc (h, "shutdown.start", NULL, IDT_NODEID_ANY, 0) : NULL;
    if (!f || idt_rpc_get (f, NULL) < 0)
        bail_out ("cannot shut down");
    idt_future_destroy (f);
    idt_close (h);
    pthread_join (run->thread, NULL);
    remove_folder (run->dir);
}

/* --- a client of frames -------------------------------------------------------------------------- */

struct client {
    int fd;
    uint32_t tag;
    size_t size; /* bytes of a frame */
    uint8_t frame[256];
    uint8_t in[1 << 16];
};

static void client_open (struct client *c, const struct run *run, int rank, const char *topic, const void *data,
                         size_t size)
{
    const uint32_t magic = 0xffee0012;
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    char welcome;

    *c = (struct client){ .fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/local-%d", run->dir, rank);
    if (c->fd < 0 || connect (c->fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || read (c->fd, &welcome, 1) != 1)
        bail_out ("cannot connect");
    idt_msg_set_topic (msg, topic);
    idt_msg_set_payload (msg, data, size);
    idt_msg_route_clear (msg);
    c->size = HEADER + idt_msg_encode_size (msg);
    memcpy (c->frame, &magic, 4);
    uint32_t size_be = htobe32 ((uint32_t)c->size - HEADER);
    memcpy (c->frame + 4, &size_be, 4);
    idt_msg_encode (msg, c->frame + HEADER, sizeof (c->frame) - HEADER);
    idt_msg_unref (msg);
}

static void read_all (int fd, void *buf, size_t size)
{
    for (size_t n = 0; n < size;) {
        ssize_t rc = read (fd, (char *)buf + n, size - n);

        if (rc <= 0)
            bail_out ("the broker closed the connection");
        n += (size_t)rc;
    }
}

/* Send 'n' requests together and read the responses. Returns the number of errors. */
static int ask (struct client *c, int n)
{
    static uint8_t out[BATCH * sizeof (c->frame)];
    int errors = 0;

    for (int i = 0; i < n; i++) {
        uint8_t *at = memcpy (out + (size_t)i * c->size, c->frame, c->size);

        uint32_t tag_be = htobe32 (++c->tag);

        memcpy (at + c->size - 4, &tag_be, 4);
    }
    if (write (c->fd, out, (size_t)n * c->size) != (ssize_t)((size_t)n * c->size))
        bail_out ("write");
    for (int i = 0; i < n; i++) {
        uint32_t size;

        read_all (c->fd, c->in, HEADER);
        memcpy (&size, c->in + 4, 4);
        read_all (c->fd, c->in, be32toh (size));
        idt_msg_t *msg = idt_msg_decode (c->in, be32toh (size));
        errors += !msg || idt_msg_errnum (msg) != 0;
        idt_msg_unref (msg);
    }
    return errors;
}

/* --- tests ----------------------------------------------------------------------------------------- */

/* The smallest counts of several rounds, because brokers also do occasional work of their own. */
struct least {
    uint64_t allocations, reads, writes;
    int errors;
};

static struct least measure (struct client *c, int n)
{
    struct least least = { UINT64_MAX, UINT64_MAX, UINT64_MAX, 0 };

    for (int i = 0; i < WARM / n; i++)
        least.errors += ask (c, n);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t a = value (&allocations), r = value (&reads), w = value (&writes);

        least.errors += ask (c, n);
        a = value (&allocations) - a;
        r = value (&reads) - r;
        w = value (&writes) - w;
        least.allocations = a < least.allocations ? a : least.allocations;
        least.reads = r < least.reads ? r : least.reads;
        least.writes = w < least.writes ? w : least.writes;
    }
    return least;
}

static void test_path (const struct run *run, int rank, const char *topic, const void *data, size_t size)
{
    struct client c;

    client_open (&c, run, rank, topic, data, size);
    struct least one = measure (&c, 1), many = measure (&c, BATCH);
    diag ("%s at rank %d: one: %ju allocations, %ju reads, %ju writes; %d: %ju, %ju, %ju", topic, rank,
          (uintmax_t)one.allocations, (uintmax_t)one.reads, (uintmax_t)one.writes, BATCH, (uintmax_t)many.allocations,
          (uintmax_t)many.reads, (uintmax_t)many.writes);
    ok (one.errors == 0 && many.errors == 0, "a request for %s to rank %d is answered", topic, rank);
#if COUNTS
    ok (one.allocations == 0 && many.allocations == 0, "in a steady state a request allocates no memory");
    ok (one.reads == 1 && one.writes == 1, "in a steady state a request needs one read and one write");
    ok (many.reads == 1 && many.writes <= BATCH / 16, "%d requests sent together need one read and few writes", BATCH);
#else
    skip ("counts of a request", "a sanitizer has its own allocator");
#endif
    close (c.fd);
}

int main (void)
{
    static const uint8_t block[12] = { 0, 0, 0, 1 };
    static const char json[] = "{\"count\":1}";
    struct run run;

    run_start (&run, 2);
    test_path (&run, 0, "fluid.block", block, sizeof (block));
    test_path (&run, 0, "fluid.generate", json, sizeof (json));
    test_path (&run, 1, "fluid.block", block, sizeof (block));
    test_path (&run, 1, "fluid.generate", json, sizeof (json));
    run_stop (&run);
    return done_testing ();
}
