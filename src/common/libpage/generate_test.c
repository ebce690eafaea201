/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generate_test.c - threads and processes make ids of a page; some of the processes are killed
 *
 * The test plays the broker: it has the generator whose page the others map.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libpage/page_client.h"
#include "libpage/page_gen.h"
#include "test/tap.h"

#define GENERATOR 77
#define EPOCH_MS INT64_C (1700000000000)
#define START_US UINT64_C (5000000) /* the instance's time at the start of each test */

static uint64_t clock_now_us (clockid_t which)
{
    struct timespec ts;

    clock_gettime (which, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

struct world {
    struct page_gen gen;
    struct idt_page client;
    struct page_terms terms;
};

static void world_init (struct world *w, uint64_t range_ms)
{
    void *memory = mmap (NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        abort ();
    memset (w, 0, sizeof (*w));
    page_gen_init (&w->gen, GENERATOR);
    page_gen_set_range (&w->gen, START_US / 1000, START_US / 1000 + range_ms);
    page_gen_share (&w->gen, memory, memory, "an-instance", EPOCH_MS);
    w->terms = (struct page_terms){ .hi_ms = START_US / 1000 + range_ms,
                                    .offset_us = (int64_t)START_US - (int64_t)clock_now_us (CLOCK_BOOTTIME),
                                    .until_us = clock_now_us (CLOCK_MONOTONIC) + UINT64_C (3600000000) };
    page_gen_set_terms (&w->gen, &w->terms);
    w->client = (struct idt_page){ .page = memory, .terms = memory, .generator = GENERATOR, .epoch_ms = EPOCH_MS };
}

static void world_fini (struct world *w)
{
    munmap (w->client.page, PAGE_SIZE);
}

static uint64_t now_ms (const struct world *w)
{
    return (uint64_t)((int64_t)clock_now_us (CLOCK_BOOTTIME) + w->terms.offset_us) / 1000;
}

/* --- one client ---------------------------------------------------------------------------------- */

static void test_one (void)
{
    struct world w;
    fluid_t ids[5000], last = 0;
    bool rising = true;

    world_init (&w, 3600000);
    uint64_t before_ms = now_ms (&w);
    ok (idt_page_generate (&w.client, 0, 0, ids) < 0 && errno == EINVAL, "a request for 0 ids of a page is refused");
    ok (idt_page_generate (&w.client, 0, 1, ids) == 1, "a client makes an id of a page");
    struct fluid_fields f = fluid_split (ids[0]);
    ok (f.generator == GENERATOR && f.timestamp_ms >= before_ms && f.timestamp_ms <= now_ms (&w),
        "an id of a page has the page's generator and the present time");
    ok (idt_page_generator (&w.client) == GENERATOR && idt_page_epoch (&w.client) == EPOCH_MS,
        "a client reads generator and epoch of a page");
    last = ids[0];
    ok (idt_page_generate (&w.client, last, 5000, ids) == 5000,
        "one call makes more ids of a page than a millisecond has");
    for (int i = 0; i < 5000; i++) {
        rising = rising && ids[i] > last;
        last = ids[i];
    }
    ok (rising, "the ids of one call are in increasing order");
    fluid_join (&(struct fluid_fields){ now_ms (&w) + 1, GENERATOR + 1, 0 }, &last);
    ok (idt_page_generate (&w.client, last, 1, ids) == 1 && ids[0] > last, "a call waits for an id above 'after'");
    fluid_join (&(struct fluid_fields){ now_ms (&w) + 60000, 0, 0 }, &last);
    ok (idt_page_generate (&w.client, last, 1, ids) < 0 && errno == EAGAIN,
        "a call does not wait a minute for an id above 'after'");
    ok (idt_page_generate (&w.client, UINT64_MAX, 1, ids) < 0 && errno == EAGAIN,
        "no id is above the last one of the format");
    world_fini (&w);
}

/* --- how a client gets the page ------------------------------------------------------------------------ */

static void on_alarm (int signum)
{
}

/* A broker that does not answer, and signals that arrive before the timeout ends. */
static void test_silence (void)
{
    const struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    char dir[] = "/tmp/generate_test.XXXXXX", uri[64];
    int fd = socket (AF_UNIX, SOCK_SEQPACKET, 0);

    if (fd < 0 || !mkdtemp (dir))
        abort ();
    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/page-0", dir);
    snprintf (uri, sizeof (uri), "local://%s/local-0", dir);
    if (bind (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || listen (fd, 1) < 0)
        abort ();
    sigaction (SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
    setitimer (ITIMER_REAL, &often, NULL);
    ok (!idt_page_open (uri, 100) && errno == ETIMEDOUT,
        "a client that opens a page waits for a silent broker until its timeout, even with signals");
    setitimer (ITIMER_REAL, &never, NULL);
    close (fd);
    unlink (addr.sun_path);
    rmdir (dir);
}

/* The broker's part: send the page, with clocks that are shifted by the given offsets. */
static void answer_call (int server, const int memory[CALL_FDS], int64_t boot_off_us, int64_t monotonic_off_us)
{
    union {
        char buf[CMSG_SPACE (CALL_FDS * sizeof (int))];
        struct cmsghdr align;
    } control = { .buf = { 0 } };
    struct call_answer answer = { .errnum = 0 };
    struct clocks clocks;
    struct iovec iov = { &answer, sizeof (answer) };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf, .msg_controllen = sizeof (control.buf)
    };
    struct cmsghdr *c = CMSG_FIRSTHDR (&msg);
    int fd = accept (server, NULL, NULL);

    if (fd < 0 || !clocks_look (&clocks))
        abort ();
    answer.clocks = (struct clocks){ clocks.boot_us - boot_off_us, clocks.monotonic_us - monotonic_off_us };
    *c = (struct cmsghdr){ CMSG_LEN (CALL_FDS * sizeof (int)), SOL_SOCKET, SCM_RIGHTS };
    memcpy (CMSG_DATA (c), memory, CALL_FDS * sizeof (int));
    if (sendmsg (fd, &msg, 0) != sizeof (answer))
        abort ();
    close (fd);
}

/* Get the page of a broker whose clocks are ahead of ours by the given offsets; NULL with errno. */
static idt_page_t *call_one (const char *uri, int server, const int memory[CALL_FDS], int64_t boot_off_us,
                             int64_t monotonic_off_us)
{
    int fd = page_call (uri);

    if (fd < 0)
        abort ();
    answer_call (server, memory, boot_off_us, monotonic_off_us);
    return page_answer (fd);
}

static int make_memory (void)
{
    int fd = memfd_create ("generate_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct page page = { .magic = PAGE_MAGIC, .version = PAGE_VERSION, .generator = GENERATOR };

    if (fd < 0 || ftruncate (fd, PAGE_SIZE) < 0 || fcntl (fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0
        || pwrite (fd, &page, sizeof (page), 0) != sizeof (page))
        abort ();
    return fd;
}

/* A process of another time namespace has other clocks, and would make ids with wrong times. */
static void test_clocks (void)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    char dir[] = "/tmp/generate_test.XXXXXX", uri[64];
    int server = socket (AF_UNIX, SOCK_SEQPACKET, 0), memory[CALL_FDS] = { make_memory (), make_memory () };

    if (server < 0 || !mkdtemp (dir))
        abort ();
    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/page-0", dir);
    snprintf (uri, sizeof (uri), "local://%s/local-0", dir);
    if (bind (server, (struct sockaddr *)&addr, sizeof (addr)) < 0 || listen (server, 1) < 0)
        abort ();
    idt_page_t *page = call_one (uri, server, memory, 0, 0);
    ok (page != NULL, "a client accepts the page of a broker with the same clocks");
    idt_page_close (page);
    ok (!call_one (uri, server, memory, 20000000, 20000000) && errno == ENOTSUP,
        "a client refuses the page of a broker whose clocks are 20 s ahead");
    ok (!call_one (uri, server, memory, -20000000, 0) && errno == ENOTSUP,
        "a client refuses the page of a broker whose CLOCK_BOOTTIME alone is behind");
    ok (!call_one (uri, server, memory, 0, 5000) && errno == ENOTSUP,
        "a client refuses the page of a broker whose CLOCK_MONOTONIC is 5 ms ahead");
    close (memory[0]);
    close (memory[1]);
    close (server);
    unlink (addr.sun_path);
    rmdir (dir);
}

/* --- when no id may be made ---------------------------------------------------------------------------- */

static void test_refusals (void)
{
    struct world w;
    fluid_t id;

    world_init (&w, 3600000);
    w.terms.hi_ms = START_US / 1000;
    page_gen_set_terms (&w.gen, &w.terms);
    ok (idt_page_generate (&w.client, 0, 1, &id) < 0 && errno == EAGAIN,
        "no id of a page is made above the end of its range");
    w.terms.hi_ms = START_US / 1000 + 3600000;
    w.terms.until_us = clock_now_us (CLOCK_MONOTONIC) - 1000000;
    page_gen_set_terms (&w.gen, &w.terms);
    ok (idt_page_generate (&w.client, 0, 1, &id) < 0 && errno == EAGAIN,
        "no id of a page is returned after its time of use");
    w.terms.until_us = UINT64_MAX;
    page_gen_set_terms (&w.gen, &w.terms);
    page_gen_pause (&w.gen);
    ok (idt_page_generate (&w.client, 0, 1, &id) < 0 && errno == EAGAIN, "no id of a page is made during a pause");
    page_gen_grant (&w.gen, 62);
    bool apart = true;
    fluid_t ids[64];
    apart = idt_page_generate (&w.client, 0, 64, ids) == 64;
    for (int i = 0; i < 64; i++)
        apart = apart && fluid_split (ids[i]).sequence >= 62 * FLUID_GRANULE;
    ok (apart, "a client makes no id of granules that the broker granted to others");
    w.terms.kept = FLUID_PER_MS / 2;
    page_gen_set_terms (&w.gen, &w.terms);
    page_gen_grant (&w.gen, 0);
    apart = idt_page_generate (&w.client, 0, 64, ids) == 64;
    for (int i = 0; i < 64; i++)
        apart = apart && fluid_split (ids[i]).sequence < FLUID_PER_MS / 2;
    ok (apart, "a client makes no id of the numbers that the broker asked to keep");
    w.terms.kept = 0;
    page_gen_set_terms (&w.gen, &w.terms);
    fluid_t many[2 * FLUID_PER_MS];
    apart = idt_page_generate (&w.client, 0, 2 * FLUID_PER_MS, many) == 2 * FLUID_PER_MS;
    for (unsigned i = 0; i < 2 * FLUID_PER_MS; i++)
        apart = apart && fluid_split (many[i]).sequence < PAGE_OWN_FIRST;
    ok (apart, "a client makes no id of the broker's own numbers, even if the page does not protect them");
    page_gen_close (&w.gen, 0);
    ok (idt_page_generate (&w.client, 0, 1, &id) < 0 && errno == ESTALE,
        "a request for an id of a closed page fails with ESTALE");
    world_fini (&w);
}

/* --- many clients --------------------------------------------------------------------------------- */

#define WORKERS 4
#define EACH 60000

struct log { /* shared memory: the ids of each process, written after they were made */
    _Atomic uint32_t count[WORKERS];
    fluid_t id[WORKERS][EACH];
};

static int by_value (const void *a, const void *b)
{
    fluid_t x = *(const fluid_t *)a, y = *(const fluid_t *)b;

    return (x > y) - (x < y);
}

/* Sort the ids. Returns the number of duplicates. */
static size_t twice (fluid_t *ids, size_t n)
{
    size_t found = 0;

    qsort (ids, n, sizeof (*ids), by_value);
    for (size_t i = 1; i < n; i++)
        found += ids[i] == ids[i - 1];
    return found;
}

static void work (const struct world *w, struct log *log, int k)
{
    fluid_t last = 0, block[8];

    while (log->count[k] + 8 <= EACH) {
        int n = idt_page_generate ((idt_page_t *)&w->client, last, 1 + log->count[k] % 8, block);

        if (n <= 0)
            continue;
        memcpy (&log->id[k][log->count[k]], block, (size_t)n * sizeof (fluid_t));
        last = block[n - 1];
        log->count[k] += (uint32_t)n;
    }
}

/* Check the ids of workers and broker: increasing for each of them, and no duplicate. */
static void judge (struct log *log, fluid_t *own, size_t own_count, const char *who)
{
    fluid_t *all = calloc ((size_t)WORKERS * EACH + own_count, sizeof (fluid_t));
    bool rising = true;
    size_t n = 0;

    for (int k = 0; all && k < WORKERS; k++) {
        for (uint32_t i = 1; i < log->count[k]; i++)
            rising = rising && log->id[k][i] > log->id[k][i - 1];
        memcpy (all + n, log->id[k], log->count[k] * sizeof (fluid_t));
        n += log->count[k];
    }
    ok (rising, "%s: the ids of each maker increase", who);
    if (own_count > 0)
        memcpy (all + n, own, own_count * sizeof (fluid_t));
    ok (all && twice (all, n + own_count) == 0, "%s: %zu ids have no duplicate", who, n + own_count);
    free (all);
}

/* A client read its clock before the last millisecond ended, and then the word moves to the end of time or beyond. */
static void test_end_of_time (void)
{
    const uint64_t end_ms = FLUID_TIMESTAMP_MAX + 1;
    struct world w;
    fluid_t id = 0;

    world_init (&w, 1000);
    page_gen_set_range (&w.gen, FLUID_TIMESTAMP_MAX - 3600000, end_ms);
    w.terms.hi_ms = end_ms;
    w.terms.offset_us = (int64_t)(FLUID_TIMESTAMP_MAX - 1800000) * 1000 - (int64_t)clock_now_us (CLOCK_BOOTTIME);
    page_gen_set_terms (&w.gen, &w.terms);
    ok (idt_page_generate (&w.client, 0, 1, &id) == 1, "a client makes ids of a page in the last hour of the format");
    page_gen_advance (&w.gen, end_ms);
    ok (idt_page_generate (&w.client, 0, 1, &id) < 0 && errno == EAGAIN,
        "a client makes no id of a page whose generator is at the end of its range");
    page_gen_advance (&w.gen, end_ms + 3600000);
    ok (idt_page_generate (&w.client, 0, 1, &id) < 0 && errno == EAGAIN,
        "a client makes no id of a page whose generator is an hour after the end of its range");
    w.terms.offset_us += INT64_C (3600000000);
    w.terms.hi_ms = UINT64_MAX;
    page_gen_set_terms (&w.gen, &w.terms);
    ok (idt_page_generate (&w.client, UINT64_MAX, 1, &id) < 0 && errno == EAGAIN,
        "a client makes no id after the end of the format even if the page's terms allow it");
    world_fini (&w);
}

struct thread {
    pthread_t id;
    const struct world *w;
    struct log *log;
    int k;
};

static void *thread_main (void *arg)
{
    struct thread *t = arg;

    work (t->w, t->log, t->k);
    return NULL;
}

static struct log *log_create (void)
{
    struct log *log = mmap (NULL, sizeof (*log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (log == MAP_FAILED)
        abort ();
    return log;
}

static void test_threads (void)
{
    struct thread t[WORKERS];
    struct log *log = log_create ();
    static fluid_t own[EACH];
    struct world w;
    size_t own_count = 0;
    uint64_t counted = 0, made = 0;

    world_init (&w, 3600000);
    for (int k = 0; k < WORKERS; k++) {
        t[k] = (struct thread){ .w = &w, .log = log, .k = k };
        if (pthread_create (&t[k].id, NULL, thread_main, &t[k]) != 0)
            abort ();
    }
    for (uint32_t granted = 0; own_count < 2000; granted++) { /* the broker makes ids, too, and grants parts */
        fluid_t first;
        int n = page_gen_reserve_in (&w.gen, now_ms (&w), UINT64_MAX, 3, &first);

        for (int i = 0; i < n; i++)
            own[own_count++] = first + (uint32_t)i;
        page_gen_pause (&w.gen);
        page_gen_grant (&w.gen, granted % 32);
        struct word word;
        if (!page_gen_look (&w.gen, &word))
            break;
        counted += page_gen_others (&w.gen);
    }
    page_gen_grant (&w.gen, 0);
    for (int k = 0; k < WORKERS; k++) {
        pthread_join (t[k].id, NULL);
        made += log->count[k];
    }
    counted += page_gen_others (&w.gen);
    ok (counted == made, "the broker counts the ids that threads made of its page: %ju of %ju", (uintmax_t)counted,
        (uintmax_t)made);
    ok (own_count >= 2000, "a broker makes ids beside %d threads, and finds its page valid", WORKERS);
    judge (log, own, own_count, "threads and the broker");
    world_fini (&w);
    munmap (log, sizeof (*log));
}

/* Some processes are killed at any instruction; new ones continue in their place. */
static void test_killed (void)
{
    struct log *log = log_create ();
    struct world w;
    pid_t pid[WORKERS] = { 0 };
    struct word word;
    unsigned killed = 0;

    world_init (&w, 3600000);
    for (int round = 0; round < 40; round++) {
        for (int k = 0; k < WORKERS; k++)
            if (round == 0 || k == round % WORKERS) {
                if ((pid[k] = fork ()) == 0) {
                    work (&w, log, k);
                    _exit (0);
                }
            }
        int k = (round + 1) % WORKERS;
        uint32_t begun = log->count[k];
        for (int i = 0; i < 20000 && log->count[k] == begun; i++) /* until the process has made an id, or has ended */
            clock_nanosleep (CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 10000 }, NULL);
        kill (pid[k], SIGKILL);
        int status;
        waitpid (pid[k], &status, 0);
        killed += WIFSIGNALED (status);
        if (round == 39)
            for (int j = 0; j < WORKERS; j++)
                if (j != k)
                    waitpid (pid[j], NULL, 0);
    }
    ok (killed > 0, "%u processes were killed while they made ids of a page", killed);
    ok (page_gen_look (&w.gen, &word), "a page whose clients were killed is still valid");
    uint64_t counted = page_gen_others (&w.gen), made = 0;
    for (int k = 0; k < WORKERS; k++)
        made += log->count[k];
    ok (counted <= made + 40 * 8 && counted + UINT64_C (40) * FLUID_PER_MS >= made,
        "the broker counts %ju ids of a page: for each killed process up to a block more, or a millisecond less, "
        "than the %ju that were logged",
        (uintmax_t)counted, (uintmax_t)made);
    judge (log, NULL, 0, "processes");
    world_fini (&w);
    munmap (log, sizeof (*log));
}

int main (void)
{
    test_one ();
    test_silence ();
    test_clocks ();
    test_refusals ();
    test_end_of_time ();
    test_threads ();
    test_killed ();
    return done_testing ();
}
