/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rank-service.c - a program that offers a service on its rank, and calls the service of other ranks
 *
 *   rank-service serve                offers rank-load on the rank of its broker, until a signal or the broker's end
 *   rank-service load [-t MS] RANK    requests the load of that rank
 *   rank-service least [-t MS]        asks its own rank for the rank with the least load; its rank calls all ranks, and
 *                                     waits for their answers for MS (1000)
 *   rank-service cost [-n N] RANK...  the median time of N calls (10000) to each rank, one after the other
 *
 * The service:
 *   rank-load.get                 {"rank":i,"load":x}: for all users
 *   rank-load.least {"wait":i}    {"rank":i,"load":x,"asked":i,"answered":i}: for the owner; calls each rank
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>

#define WAIT_MS 1000
#define CALLS 10000
#define CALLS_MAX 10000000
#define MAX_ASKING 16 /* most requests for the least load that are served at a time */

static int fail (const char *what, const char *why)
{
    fprintf (stderr, "rank-service: %s: %s\n", what, why);
    return -1;
}

/* Print the error of a failed call. 'f' is NULL if the request could not be sent. */
static int fail_call (const char *what, idt_future_t *f)
{
    return fail (what, f ? idt_future_error (f) : strerror (errno));
}

/* --- the service ------------------------------------------------------------------------------------------------- */

struct server {
    idt_t *h;
    uint32_t rank, size;
    int asking;
};

/* A request for the least load, until it is answered. */
struct search {
    struct server *sv;
    const idt_msg_t *request;
    uint32_t waiting, answered, best; /* ranks that must still answer; ranks that have answered; the best rank */
    double load;
};

static void get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct server *sv = arg;
    double load;

    if (getloadavg (&load, 1) == 1)
        idt_respond_pack (h, msg, "{s:i s:f}", "rank", (int)sv->rank, "load", load);
    else
        idt_respond_error (h, msg, EIO, "this host does not report its load");
}

static void search_end (struct search *s)
{
    idt_t *h = s->sv->h;

    if (s->answered > 0)
        idt_respond_pack (h, s->request, "{s:i s:f s:i s:i}", "rank", (int)s->best, "load", s->load, "asked",
                          (int)s->sv->size, "answered", (int)s->answered);
    else
        idt_respond_error (h, s->request, ETIMEDOUT, "no rank reported its load in time");
    idt_msg_unref (s->request);
    s->sv->asking--;
    free (s);
}

/* Called once for each rank: with its answer, with an error if the rank cannot be reached or has no such service, or
 * with ETIMEDOUT. So the last of these calls can send the answer to the requester.
 */
static void load_cb (idt_future_t *f, void *arg)
{
    struct search *s = arg;
    int rank;
    double load;

    if (idt_rpc_get_unpack (f, "{s:i s:F}", "rank", &rank, "load", &load) == 0) {
        if (s->answered++ == 0 || load < s->load) {
            s->best = rank;
            s->load = load;
        }
    }
    idt_future_destroy (f);
    if (--s->waiting == 0)
        search_end (s);
}

/* Send the requests of a search. This does not wait for answers, so other requests are served meanwhile. */
static void search_begin (struct server *sv, const idt_msg_t *msg, double wait_ms)
{
    struct search *s = calloc (1, sizeof (*s));

    if (!s) {
        idt_respond_error (sv->h, msg, ENOMEM, NULL);
        return;
    }
    s->sv = sv;
    s->request = idt_msg_ref (msg);
    s->waiting = 1; /* counts this function until requests were sent to all ranks */
    sv->asking++;
    for (uint32_t rank = 0; rank < sv->size; rank++) {
        idt_future_t *f = idt_rpc_pack (sv->h, "rank-load.get", rank, 0, "{}");

        if (f && idt_future_then (f, wait_ms, load_cb, s) == 0)
            s->waiting++;
        else
            idt_future_destroy (f);
    }
    if (--s->waiting == 0)
        search_end (s);
}

static void least_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct server *sv = arg;
    idt_error_t error;
    int wait_ms;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &error, "{s:i}", "wait", &wait_ms) < 0) {
        idt_respond_error (h, msg, EPROTO, error.text);
        return;
    }
    json_decref (o);
    if (wait_ms < 1 || wait_ms > 3600000)
        idt_respond_error (h, msg, EINVAL, "wait: must be 1 to 3600000 milliseconds");
    else if (sv->asking == MAX_ASKING)
        idt_respond_error (h, msg, EAGAIN, "the limit of concurrent requests for the least load is reached");
    else
        search_begin (sv, msg, wait_ms);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "rank-load.get", get_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "rank-load.least", least_cb, IDT_ROLE_OWNER },
    IDT_HANDLERS_END,
};

/* Serve requests. Handlers are set first, because a request may arrive as soon as the service is registered. */
static int serve (idt_t *h)
{
    struct server sv = { .h = h };
    idt_future_t *f = NULL;
    int rc = -1;

    if (idt_get_rank (h, &sv.rank) < 0 || idt_get_size (h, &sv.size) < 0 || idt_handlers_add (h, handlers, &sv) < 0)
        return fail ("cannot start", strerror (errno));
    if (!(f = idt_service_add (h, "rank-load")) || idt_rpc_get (f, NULL) < 0)
        fail_call ("service rank-load", f);
    else if (printf ("rank %u serves\n", sv.rank) > 0 && fflush (stdout) == 0)
        rc = idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    if (rc < 0 && f && idt_future_is_ready (f) && !idt_future_errnum (f))
        fail ("the broker is gone", strerror (errno));
    idt_future_destroy (f);
    return rc;
}

/* --- who calls it ------------------------------------------------------------------------------------------------ */

/* Wait for the answer until the deadline. If it arrives later, it is dropped with the future. */
static int await (idt_future_t *f, double wait_ms, const char *what)
{
    if (!f || idt_future_wait (f, wait_ms) < 0 || idt_rpc_get (f, NULL) < 0)
        return f && !idt_future_is_ready (f) ? fail (what, strerror (errno)) : fail_call (what, f);
    return 0;
}

static int ask_load (idt_t *h, uint32_t nodeid, double wait_ms)
{
    idt_future_t *f = idt_rpc_pack (h, "rank-load.get", nodeid, 0, "{}");
    char what[64];
    int rank, rc;
    double load;

    snprintf (what, sizeof (what), "rank %u", nodeid);
    rc = await (f, wait_ms, what);
    if (rc == 0 && (rc = idt_rpc_get_unpack (f, "{s:i s:F}", "rank", &rank, "load", &load)) < 0)
        fail_call (what, f);
    if (rc == 0)
        printf ("%d\t%.2f\n", rank, load);
    idt_future_destroy (f);
    return rc;
}

/* Request the least load. The rank that searches has its own deadline. So wait a little longer, to get what it has
 * found by then.
 */
static int ask_least (idt_t *h, double wait_ms)
{
    idt_future_t *f = idt_rpc_pack (h, "rank-load.least", IDT_NODEID_ANY, 0, "{s:i}", "wait", (int)wait_ms);
    int rank, asked, answered, rc = await (f, wait_ms + WAIT_MS, "the least load");
    double load;

    if (rc == 0
        && (rc = idt_rpc_get_unpack (f, "{s:i s:F s:i s:i}", "rank", &rank, "load", &load, "asked", &asked, "answered",
                                     &answered))
               < 0)
        fail_call ("the least load", f);
    if (rc == 0)
        printf ("%d\t%.2f\t%d of %d ranks answered\n", rank, load, answered, asked);
    idt_future_destroy (f);
    return rc;
}

/* --- the time of a call ------------------------------------------------------------------------------------------ */

static double now_us (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Make one call, or one echo of the same size. Returns 0, or -1 after a message. */
typedef int (*once_f) (void *arg);

static int measure (const char *name, once_f once, void *arg, double *us, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double start = now_us ();

        if (once (arg) < 0)
            return -1;
        us[i] = now_us () - start;
    }
    qsort (us, n, sizeof (*us), compare);
    printf ("%s\tmedian %.1f us\tp99 %.1f us\n", name, us[n / 2], us[n - 1 - n / 100]);
    return fflush (stdout);
}

/* Measure the least that any server needs: a process sends back the bytes that it reads from a socket. */
static int echo_once (void *arg)
{
    char buf[128] = { 0 };
    int fd = *(int *)arg;

    if (write (fd, buf, sizeof (buf)) != sizeof (buf) || read (fd, buf, sizeof (buf)) != sizeof (buf))
        return fail ("echo", "the other end is closed");
    return 0;
}

static int measure_echo (double *us, size_t n)
{
    int fds[2], rc;
    char buf[128];
    ssize_t size;

    if (socketpair (AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        return fail ("socketpair", strerror (errno));
    pid_t pid = fork ();
    if (pid == 0) {
        close (fds[0]);
        while ((size = read (fds[1], buf, sizeof (buf))) > 0 && write (fds[1], buf, size) == size)
            ;
        _exit (0);
    }
    rc = pid < 0 ? fail ("fork", strerror (errno)) : 0;
    close (fds[1]);
    if (pid > 0)
        rc = measure ("echo", echo_once, &fds[0], us, n);
    close (fds[0]);
    if (pid > 0)
        waitpid (pid, NULL, 0);
    return rc;
}

struct callee {
    idt_t *h;
    uint32_t rank;
};

static int call_it (void *arg)
{
    struct callee *c = arg;
    idt_future_t *f = idt_rpc (c->h, "rank-load.get", "{}", c->rank, 0);
    int rc = await (f, -1, "rank-load.get");

    idt_future_destroy (f);
    return rc;
}

static int measure_calls (idt_t *h, char **ranks, size_t n)
{
    double *us = calloc (n, sizeof (*us));
    int rc = us ? measure_echo (us, n) : fail ("times", strerror (errno));
    char name[64];

    for (; rc == 0 && *ranks; ranks++) {
        struct callee c = { h, (uint32_t)strtoul (*ranks, NULL, 10) };

        snprintf (name, sizeof (name), "rank %u", c.rank);
        rc = measure (name, call_it, &c, us, n);
    }
    free (us);
    return rc;
}

/* --- arguments --------------------------------------------------------------------------------------------------- */

static int usage (void)
{
    fputs ("usage: rank-service serve | load [-t MS] RANK | least [-t MS] | cost [-n N] RANK...\n", stderr);
    return 2;
}

static int run (idt_t *h, const char *what, double wait_ms, size_t calls, char **ranks)
{
    if (strcmp (what, "serve") == 0)
        return serve (h);
    if (strcmp (what, "load") == 0)
        return ask_load (h, (uint32_t)strtoul (ranks[0], NULL, 10), wait_ms);
    if (strcmp (what, "least") == 0)
        return ask_least (h, wait_ms);
    return measure_calls (h, ranks, calls);
}

/* Whether 'what' is the command, and the command allows this number of ranks. */
static bool is_command (const char *what, int ranks)
{
    return (ranks == 0 && (strcmp (what, "serve") == 0 || strcmp (what, "least") == 0))
           || (ranks == 1 && strcmp (what, "load") == 0) || (ranks > 0 && strcmp (what, "cost") == 0);
}

int main (int argc, char **argv)
{
    double wait_ms = WAIT_MS;
    size_t calls = CALLS;
    idt_error_t error;
    int option;

    /* GNU's getopt () finds options between other arguments, too */
    while ((option = getopt (argc, argv, "t:n:")) != -1)
        if (option == 't')
            wait_ms = atof (optarg);
        else if (option == 'n')
            calls = strtoul (optarg, NULL, 10);
        else
            return usage ();
    if (optind == argc || !is_command (argv[optind], argc - optind - 1) || wait_ms < 1 || calls < 1
        || calls > CALLS_MAX)
        return usage ();
    idt_t *h = idt_open (NULL, &error);
    if (!h) {
        fail ("cannot connect", error.text);
        return 1;
    }
    int rc = run (h, argv[optind], wait_ms, calls, argv + optind + 1);
    idt_close (h);
    return rc < 0;
}
