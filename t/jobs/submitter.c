/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* submitter.c - submits jobs, and records the answers
 *
 * A submission is recorded before it is sent, and its answer is recorded before the next submission is sent. The tag of
 * a submission is NAME.CLIENT.NUMBER. NAME is a random text that is drawn when the record is made. With keys, the key
 * of a submission is its tag.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "jobs.h"
#include "judge.h"
#include "libutil/queue/fifo.h"
#include "must.h"
#include "test/job_request.h"

#define SILENT_MS 90000. /* ms; a request that is not answered within this time counts as unanswered */
#define TAG_SIZE 64
#define TIMES_MAX (1u << 20) /* most response times that are kept */
#define MIXED 97             /* one of 'MIXED' submissions must be refused */
#define LONG 61              /* one of 'LONG' submissions is long */
#define LONG_SIZE 40000

struct submitter;

struct client {
    struct submitter *s;
    const char *uri;
    uint32_t index;
    idt_t *h; /* NULL: not connected */
    idt_watcher_t *timer;
    bool lost;
    uint64_t next;        /* number of the next submission */
    uint32_t outstanding; /* number of pending requests */
    struct fifo again;    /* requests that must be sent again */
    enum { LAST_NOT_SENT, LAST_SENT, LAST_DONE } last;
    uint8_t *fate; /* for each number in the record, while the record is read: 1 unknown */
    uint64_t fate_size;
};

struct submitter {
    const struct submit_options *o;
    idt_reactor_t *reactor;
    int fd;
    char name[16];
    bool stopping;
    struct client *clients;
    uint32_t nclients;
    uint64_t answered, refused, unknown;
    double begun_s;
    float *times_ms;
    size_t ntimes;
};

struct request {
    struct client *c;
    uint64_t number;
    bool last;
    double sent_s;
};

static double now_s (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- what is submitted -------------------------------------------------------------------------------------------- */

static void format_tag (const struct request *r, char tag[TAG_SIZE])
{
    snprintf (tag, TAG_SIZE, "%s.%" PRIu32 ".%" PRIu64, r->c->s->name, r->c->index, r->number);
}

/* Return what is wrong with a submission. Requests that are too large are rare. */
static enum job_fault fault_of (const struct request *r)
{
    uint64_t turn = r->number / MIXED;

    if (!r->c->s->o->mixed || r->last || r->number % MIXED != MIXED - 1)
        return JOB_GOOD;
    return turn % 40 == 39 ? JOB_TOO_LARGE : JOB_URGENCY + turn % (JOB_TOO_LARGE - JOB_URGENCY);
}

static char *make_text (const struct request *r, const char *tag)
{
    const struct submit_options *o = r->c->s->o;
    struct job_request job = { .tag = tag,
                               .key = o->keys || r->last ? tag : NULL,
                               .userid = getuid (),
                               .size = o->mixed && r->number % LONG == 0 ? LONG_SIZE : o->size,
                               .fault = fault_of (r) };

    return must (job_request_text (&job));
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static bool is_done (const struct client *c)
{
    const struct submit_options *o = c->s->o;

    if (c->outstanding > 0 || c->again.count > 0)
        return false;
    return o->count > 0 ? c->next >= o->count : c->s->stopping && c->last == LAST_DONE;
}

static void maybe_finish (struct submitter *s)
{
    for (uint32_t i = 0; i < s->nclients; i++)
        if (!is_done (&s->clients[i]))
            return;
    idt_reactor_stop (s->reactor);
}

static void submit (struct client *c);

static void take_id (struct request *r, const char *tag, uint64_t id)
{
    struct submitter *s = r->c->s;

    record_print (s->fd, "id %s %" PRIu64, tag, id);
    s->answered++;
    if (s->ntimes < TIMES_MAX)
        s->times_ms[s->ntimes++] = (float)((now_s () - r->sent_s) * 1e3);
    if (r->last)
        r->c->last = LAST_DONE;
    free (r);
}

/* A request has failed. If it is unknown whether the job was stored, the request is repeated if that is safe. The last
 * request is repeated until it has an id.
 */
static void take_error (struct request *r, const char *tag, int errnum)
{
    struct submitter *s = r->c->s;
    bool refused = judge_is_refusal (errnum);

    if (errnum == ETIMEDOUT && now_s () - r->sent_s >= SILENT_MS / 1e3)
        record_print (s->fd, "silent %s", tag);
    record_print (s->fd, "errno %s %d", tag, errnum);
    *(refused ? &s->refused : &s->unknown) += 1;
    if (!r->last && (refused || !s->o->keys))
        free (r);
    else if (fifo_push (&r->c->again, r) < 0)
        die ("memory");
}

static void answered (idt_future_t *f, void *arg)
{
    struct request *r = arg;
    struct client *c = r->c;
    char tag[TAG_SIZE];
    json_int_t id;

    format_tag (r, tag);
    c->outstanding--;
    bool good = idt_rpc_get_unpack (f, "{s:I}", "id", &id) == 0;
    if (good)
        take_id (r, tag, (uint64_t)id);
    else
        take_error (r, tag, errno);
    idt_future_destroy (f);
    if (good && !c->lost)
        submit (c);
    else
        idt_watcher_start (c->timer);
    maybe_finish (c->s);
}

/* --- submissions -------------------------------------------------------------------------------------------------- */

/* Send a request. Returns false if it could not be sent. */
static bool send_request (struct request *r)
{
    struct client *c = r->c;
    char tag[TAG_SIZE];

    format_tag (r, tag);
    record_print (c->s->fd, "%s %s", fault_of (r) == JOB_GOOD ? "sent" : "bad", tag);
    char *text = make_text (r, tag);
    r->sent_s = now_s ();
    idt_future_t *f = idt_rpc (c->h, "job-ingest.submit", text, IDT_NODEID_ANY, 0);
    free (text);
    if (!f || idt_future_then (f, SILENT_MS, answered, r) < 0) {
        idt_future_destroy (f);
        take_error (r, tag, EPIPE);
        idt_watcher_start (c->timer);
        return false;
    }
    c->outstanding++;
    return true;
}

static struct request *make_request (struct client *c, uint64_t number, bool last)
{
    struct request *r = must (calloc (1, sizeof (*r)));

    r->c = c;
    r->number = number;
    r->last = last;
    return r;
}

/* Return the next request; NULL if no request can be sent now. */
static struct request *next_request (struct client *c)
{
    struct submitter *s = c->s;
    struct request *r = (struct request *)fifo_pop (&c->again);

    if (r)
        return r;
    if (s->o->count > 0)
        return c->next < s->o->count ? make_request (c, c->next++, false) : NULL;
    if (!s->stopping)
        return make_request (c, c->next++, false);
    if (c->outstanding > 0 || c->last != LAST_NOT_SENT)
        return NULL;
    c->last = LAST_SENT;
    return make_request (c, c->next++, true);
}

static void submit (struct client *c)
{
    struct request *r;

    while (c->h && !c->lost && c->outstanding < c->s->o->window && (r = next_request (c)))
        if (!send_request (r))
            return;
}

/* --- connections -------------------------------------------------------------------------------------------------- */

/* A handle must not be closed in its own callbacks, so the timer closes it. */
static void lost (idt_t *h, int errnum, void *arg)
{
    struct client *c = arg;

    c->lost = true;
    idt_watcher_start (c->timer);
}

static void open_client (struct client *c)
{
    c->lost = false;
    if (!(c->h = idt_open (c->uri, NULL)) || idt_set_reactor (c->h, c->s->reactor) < 0) {
        idt_close (c->h);
        c->h = NULL;
        idt_timer_watcher_reset (c->timer, REOPEN_MS, 0.);
        idt_watcher_start (c->timer);
        return;
    }
    idt_timer_watcher_reset (c->timer, PAUSE_MS, 0.);
    idt_watcher_stop (c->timer);
    idt_set_lost (c->h, lost, c);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    if (c->lost) {
        idt_close (c->h);
        c->h = NULL;
    }
    if (!c->h)
        open_client (c);
    submit (c);
}

static void stdin_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct submitter *s = arg;
    char buf[256];

    if (read (STDIN_FILENO, buf, sizeof (buf)) > 0)
        return;
    idt_watcher_stop (w);
    s->stopping = true;
    for (uint32_t i = 0; i < s->nclients; i++)
        submit (&s->clients[i]);
}

/* --- the record of a life before ---------------------------------------------------------------------------------- */

static void set_fate (struct client *c, uint64_t number, bool unknown)
{
    if (number >= c->fate_size) {
        uint64_t size = number * 2 + 1024;

        c->fate = must (realloc (c->fate, size));
        memset (c->fate + c->fate_size, 0, size - c->fate_size);
        c->fate_size = size;
    }
    c->fate[number] = unknown;
    c->next = number >= c->next ? number + 1 : c->next;
}

static void recall (void *arg, char *line)
{
    struct submitter *s = arg;
    char verb[16], name[16];
    uint32_t index;
    uint64_t number;
    int errnum = 0;

    if (sscanf (line, "%15s %15[^.].%" SCNu32 ".%" SCNu64 " %d", verb, name, &index, &number, &errnum) < 4
        || index >= s->nclients) {
        fprintf (stderr, "jobload: %s: '%s' is not a line of these clients\n", s->o->record, line);
        exit (EXIT_DIED);
    }
    strcpy (s->name, name);
    if (!strcmp (verb, "sent"))
        set_fate (&s->clients[index], number, true);
    else if (!strcmp (verb, "id") || (!strcmp (verb, "errno") && judge_is_refusal (errnum)))
        set_fate (&s->clients[index], number, false);
}

static void resume (struct client *c)
{
    for (uint64_t i = 0; c->s->o->keys && i < c->fate_size; i++)
        if (c->fate[i] && fifo_push (&c->again, make_request (c, i, false)) < 0)
            die ("memory");
    free (c->fate);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void start_clients (struct submitter *s)
{
    uint32_t random;

    while (s->o->uris[s->nclients])
        s->nclients++;
    s->clients = must (calloc (s->nclients, sizeof (*s->clients)));
    if (getrandom (&random, sizeof (random), 0) != sizeof (random))
        die ("getrandom");
    snprintf (s->name, sizeof (s->name), "%08" PRIx32, random);
    s->fd = record_open (s->o->record, recall, s);
    for (uint32_t i = 0; i < s->nclients; i++) {
        struct client *c = &s->clients[i];

        c->s = s;
        c->uri = s->o->uris[i];
        c->index = i;
        c->timer = must (idt_timer_watcher_create (s->reactor, 0., 0., timer_cb, c));
        idt_watcher_start (c->timer);
        resume (c);
    }
}

static int compare (const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void tell (struct submitter *s)
{
    double seconds = now_s () - s->begun_s;

    qsort (s->times_ms, s->ntimes, sizeof (s->times_ms[0]), compare);
    printf ("answered %" PRIu64 " refused %" PRIu64 " unknown %" PRIu64 " seconds %.3f jobs/s %.0f", s->answered,
            s->refused, s->unknown, seconds, (double)s->answered / seconds);
    if (s->ntimes > 0)
        printf (" p50-ms %.3f p99-ms %.3f max-ms %.3f", s->times_ms[s->ntimes / 2], s->times_ms[s->ntimes * 99 / 100],
                s->times_ms[s->ntimes - 1]);
    putchar ('\n');
}

int submitter_main (const struct submit_options *o)
{
    struct submitter s = { .o = o, .reactor = must (idt_reactor_create ()), .begun_s = now_s () };
    idt_watcher_t *in = must (idt_fd_watcher_create (s.reactor, STDIN_FILENO, IDT_POLLIN, stdin_cb, &s));

    s.times_ms = must (calloc (TIMES_MAX, sizeof (s.times_ms[0])));
    start_clients (&s);
    if (o->count == 0)
        idt_watcher_start (in);
    if (idt_reactor_run (s.reactor, IDT_REACTOR_DEFAULT) < 0)
        die ("reactor");
    for (uint32_t i = 0; i < s.nclients; i++) {
        idt_watcher_destroy (s.clients[i].timer);
        idt_close (s.clients[i].h);
        fifo_fini (&s.clients[i].again);
    }
    idt_watcher_destroy (in);
    idt_reactor_destroy (s.reactor);
    close (s.fd);
    tell (&s);
    free (s.times_ms);
    free (s.clients);
    return 0;
}
