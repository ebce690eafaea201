/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page_client.c - a client's page: gets it from the broker, and makes ids of it in the client's process
 *
 * The order of the steps in reserve () keeps ids unique (doc/model/page.pml): 'hi_ms' is read before the
 * word, and the time of use is checked after the swap. Ids are made from the millisecond of the call on, even if that
 * millisecond has passed. So a process that wakes up late wastes no sequence numbers.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "libpage/page_client.h"
#include "libutil/errprintf.h"

#define SCHEME "local://"
#define OWN "local-"
#define CLOCKS_APART_US 1000 /* two readings of the same clock differ by at most this */

union control { /* aligned as cmsg (3) requires */
    char buf[CMSG_SPACE (CALL_FDS * sizeof (int))];
    struct cmsghdr align;
};

/* --- the address of the socket ------------------------------------------------------------------------ */

/* Set '*addr' to the socket that serves the page of a broker. 'path' is the broker's local socket, or a link to it.
 * Returns 0, or -1 with errno ENOTSUP.
 */
static int find_address (const char *path, struct sockaddr_un *addr)
{
    const char *slash = strrchr (path, '/'), *name;
    char target[64];

    *addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (!slash || strchr (slash, '?'))
        return errset (ENOTSUP);
    name = slash + 1;
    ssize_t n = readlink (path, target, sizeof (target) - 1); /* the file "local" is a link to "local-RANK" */
    if (n > 0) {
        target[n] = '\0';
        name = target;
    }
    if (strncmp (name, OWN, strlen (OWN)) != 0 || strchr (name, '/')
        || snprintf (addr->sun_path, sizeof (addr->sun_path), "%.*spage-%s", (int)(slash + 1 - path), path,
                     name + strlen (OWN))
               >= (int)sizeof (addr->sun_path))
        return errset (ENOTSUP);
    return 0;
}

/* Read an environment variable. NULL if it is unset or empty. */
static const char *variable (const char *name)
{
    const char *s = getenv (name);

    return s && *s ? s : NULL;
}

bool call_is_told (void)
{
    return variable ("IDTREE_URI") || variable ("FLUX_URI");
}

const char *call_default_uri (void)
{
    const char *uri = variable ("IDTREE_URI");

    if (!uri)
        uri = variable ("FLUX_URI");
    return uri ? uri : CALL_DEFAULT_URI;
}

/* --- request and answer ------------------------------------------------------------------- */

int page_call (const char *uri)
{
    struct sockaddr_un addr;

    if (strncmp (uri, SCHEME, strlen (SCHEME)) != 0 || find_address (uri + strlen (SCHEME), &addr) < 0)
        return errset (ENOTSUP);
    int fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0) {
        int errnum = errno == EAGAIN ? ECONNREFUSED : errno; /* EAGAIN: the broker's queue of connections is full */
        close (fd);
        return errset (errnum);
    }
    return fd;
}

/* Map the page. The page is refused if its size is not sealed, because a process could then make it smaller, and an
 * access would raise SIGBUS. Returns NULL with errno set.
 */
static struct page *map_one (int fd, int prot)
{
    int seals = fcntl (fd, F_GET_SEALS);
    struct stat st;

    if (fstat (fd, &st) < 0 || st.st_size < (off_t)PAGE_SIZE || seals < 0 || !(seals & F_SEAL_SHRINK))
        return errset_null (EPROTO);
    void *page = mmap (NULL, PAGE_SIZE, prot, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

static bool is_page (const idt_page_t *p)
{
    return p->terms->magic == PAGE_MAGIC && p->terms->version == PAGE_VERSION && p->generator <= FLUID_GENERATOR_MAX;
}

static idt_page_t *map (const int fd[CALL_FDS])
{
    idt_page_t *p = calloc (1, sizeof (*p));

    if (!p)
        return NULL;
    if (!(p->terms = map_one (fd[CALL_TERMS], PROT_READ))
        || !(p->page = map_one (fd[CALL_WORD], PROT_READ | PROT_WRITE))) {
        idt_page_close (p);
        return NULL;
    }
    p->generator = p->terms->generator;
    p->epoch_ms = p->terms->epoch_ms;
    memcpy (p->instance, p->terms->instance, sizeof (p->instance) - 1);
    if (is_page (p))
        return p;
    idt_page_close (p);
    return errset_null (EPROTO);
}

static void close_all (int fd[CALL_FDS])
{
    for (int i = 0; i < CALL_FDS; i++)
        if (fd[i] >= 0)
            close (fd[i]);
}

/* Take the descriptors of a message into 'fd'; a missing descriptor stays -1. Returns whether all arrived. */
static bool take_descriptors (struct msghdr *msg, int fd[CALL_FDS])
{
    struct cmsghdr *c = CMSG_FIRSTHDR (msg);
    size_t most = CALL_FDS * sizeof (int), size = 0;

    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        size = c->cmsg_len - CMSG_LEN (0);
    if (size > 0)
        memcpy (fd, CMSG_DATA (c), size < most ? size : most);
    return size == most;
}

/* Read the answer. Returns 0 with its descriptors in 'fd', or -1 with errno set. */
static int receive (int from, struct call_answer *answer, int fd[CALL_FDS])
{
    struct iovec iov = { answer, sizeof (*answer) };
    union control control;
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf, .msg_controllen = sizeof (control.buf)
    };
    ssize_t n = recvmsg (from, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0)
        return -1;
    if (n == 0)
        return errset (ECONNREFUSED); /* the broker closed the connection */
    bool whole = take_descriptors (&msg, fd) && n == sizeof (*answer);
    if (answer->errnum == 0 && whole)
        return 0;
    close_all (fd);
    return errset (answer->errnum != 0 ? answer->errnum : EPROTO);
}

static bool near (int64_t a_us, int64_t b_us)
{
    return (a_us > b_us ? a_us - b_us : b_us - a_us) <= CLOCKS_APART_US;
}

/* Whether the broker reads the same clocks as this process. If it does not, the times in the page have no meaning for
 * this process.
 */
static bool has_our_clocks (struct clocks there)
{
    struct clocks here;

    return clocks_look (&here) && near (here.boot_us, there.boot_us) && near (here.monotonic_us, there.monotonic_us);
}

idt_page_t *page_answer (int fd)
{
    struct call_answer answer = { .errnum = 0 };
    int got[CALL_FDS] = { -1, -1 }, rc = receive (fd, &answer, got), errnum = errno;

    if (rc < 0 && (errnum == EAGAIN || errnum == EWOULDBLOCK || errnum == EINTR))
        return errset_null (EAGAIN);
    close (fd);
    if (rc < 0)
        return errset_null (errnum);
    idt_page_t *p = has_our_clocks (answer.clocks) ? map (got) : errset_null (ENOTSUP);
    errnum = errno;
    close_all (got);
    errno = errnum;
    return p;
}

/* Wait like poll (). After a signal the function continues to wait for the rest of the timeout. */
static int await (int fd, int timeout_ms)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    int64_t end_ms = (int64_t)clock_ms (CLOCK_MONOTONIC) + timeout_ms, left_ms = timeout_ms;
    int n;

    while ((n = poll (&pfd, 1, (int)left_ms)) < 0 && errno == EINTR)
        if (timeout_ms >= 0 && (left_ms = end_ms - (int64_t)clock_ms (CLOCK_MONOTONIC)) < 0)
            left_ms = 0;
    return n;
}

idt_page_t *idt_page_open (const char *uri, int timeout_ms)
{
    int fd = page_call (uri ? uri : call_default_uri ());
    idt_page_t *p;

    if (fd < 0)
        return NULL;
    int n = await (fd, timeout_ms);
    if (n > 0 && ((p = page_answer (fd)) || errno != EAGAIN))
        return p;
    int errnum = n < 0 ? errno : ETIMEDOUT;
    close (fd);
    return errset_null (errnum);
}

void idt_page_close (idt_page_t *page)
{
    int saved_errno = errno;

    if (!page)
        return;
    if (page->page)
        munmap (page->page, PAGE_SIZE);
    if (page->terms)
        munmap (page->terms, PAGE_SIZE);
    free (page);
    errno = saved_errno;
}

/* --- ids ------------------------------------------------------------------------------------ */

/* Two times of a call, both of CLOCK_BOOTTIME: when it requested ids, and when it last read the clock. */
struct moment {
    uint64_t asked_us;
    uint64_t now_us;
};

static uint64_t ms_of (uint64_t boot_us, int64_t offset_us)
{
    return (uint64_t)((int64_t)boot_us + offset_us) / 1000;
}

/* Find the next ids that the word 'w' allows. They must not be before 'ms', and must be above 'after'. Sets '*f' to the
 * first id, and returns how many ids are left in the millisecond of that id.
 */
static uint32_t choose (const idt_page_t *p, const struct word *w, uint64_t ms, fluid_t after, struct fluid_fields *f)
{
    uint32_t first = w->first * FLUID_GRANULE, kept = atomic_load_explicit (&p->terms->kept, memory_order_relaxed);
    uint32_t end = kept < PAGE_OWN_FIRST ? PAGE_OWN_FIRST - kept : 0;
    fluid_t id;

    *f = (struct fluid_fields){ ms, p->generator, first };
    if (ms <= w->ms) {
        f->timestamp_ms = w->ms;
        f->sequence = w->used > first ? w->used : first;
    }
    if (f->sequence >= end) {
        f->timestamp_ms++;
        f->sequence = first;
    }
    if (fluid_join (f, &id) == 0 && id <= after) {
        f->timestamp_ms = fluid_split (after).timestamp_ms + 1;
        f->sequence = first;
    }
    return f->sequence < end ? end - f->sequence : 0;
}

/* Sleep until millisecond 'ms'. If it is more than IDT_PAGE_WAIT_MS away, fail with EAGAIN. Returns 0, or -1. */
static int wait_for (uint64_t ms, int64_t offset_us, struct moment *m)
{
    uint64_t at_us = (uint64_t)((int64_t)(ms * 1000) - offset_us);
    struct timespec ts = { .tv_sec = (time_t)(at_us / 1000000), .tv_nsec = (long)(at_us % 1000000 * 1000) };

    if (at_us > m->now_us + IDT_PAGE_WAIT_MS * 1000)
        return errset (EAGAIN);
    /* a signal may end the sleep early, so the caller checks the time */
    clock_nanosleep (CLOCK_BOOTTIME, TIMER_ABSTIME, &ts, NULL);
    m->now_us = clock_us (CLOCK_BOOTTIME);
    return 0;
}

/* Reserve up to 'want' ids of one millisecond. Returns how many, or -1 with errno as for idt_page_generate (). */
static int reserve (idt_page_t *p, struct moment *m, fluid_t after, uint32_t want, fluid_t *first)
{
    struct page *page = p->page, *terms = p->terms;

    for (;;) {
        uint64_t hi_ms = atomic_load (&terms->hi_ms); /* this load must precede the load of the word */
        uint64_t had = atomic_load (&page->word);
        int64_t offset_us = atomic_load_explicit (&terms->offset_us, memory_order_relaxed);
        const struct word was = word_unpack (had);
        struct word w = was;
        struct fluid_fields f;

        if (w.closed)
            return errset (ESTALE);
        uint32_t n = choose (p, &w, ms_of (m->asked_us, offset_us), after, &f);
        if (n == 0 || f.timestamp_ms >= hi_ms || f.timestamp_ms > FLUID_TIMESTAMP_MAX)
            return errset (EAGAIN);
        if (f.timestamp_ms > ms_of (m->now_us, offset_us)) {
            if (wait_for (f.timestamp_ms, offset_us, m) < 0)
                return -1;
            continue;
        }
        n = want < n ? want : n;
        w.ms = f.timestamp_ms;
        w.used = f.sequence + n;
        if (!atomic_compare_exchange_weak (&page->word, &had, word_pack (w))) /* COMPARE_WORD of page.pml */
            continue;
        if (word_left (was, w) > 0)
            atomic_fetch_add_explicit (&page->passed, word_left (was, w), memory_order_relaxed);
        if (clock_us (CLOCK_MONOTONIC_COARSE) >= atomic_load (&terms->until_us)) /* LOOK_AGAIN of page.pml */
            return errset (EAGAIN);
        fluid_join (&f, first); /* cannot fail: all fields are in range */
        return (int)n;
    }
}

/* The loop is unrolled by hand, because compilers unroll it only with -O3, and a large block spends most of its time
 * here.
 */
static void store_run (fluid_t *ids, fluid_t first, uint32_t n)
{
    uint32_t i = 0;

    for (; i + 4 <= n; i += 4) {
        ids[i] = first + i;
        ids[i + 1] = first + i + 1;
        ids[i + 2] = first + i + 2;
        ids[i + 3] = first + i + 3;
    }
    for (; i < n; i++)
        ids[i] = first + i;
}

int idt_page_generate (idt_page_t *p, fluid_t after, uint32_t n, fluid_t *ids)
{
    struct moment m;
    uint32_t got = 0;

    if (n == 0)
        return errset (EINVAL);
    m.asked_us = m.now_us = clock_us (CLOCK_BOOTTIME);
    while (got < n) {
        fluid_t first;
        int k = reserve (p, &m, after, n - got, &first);

        if (k < 0)
            return got > 0 ? (int)got : -1;
        store_run (ids + got, first, (uint32_t)k);
        got += (uint32_t)k;
        after = ids[got - 1];
    }
    return (int)got;
}

int64_t idt_page_epoch (const idt_page_t *p)
{
    return p->epoch_ms;
}

const char *idt_page_instance (const idt_page_t *p)
{
    return p->instance;
}

uint32_t idt_page_generator (const idt_page_t *p)
{
    return p->generator;
}
