/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* standin.c - a stand-in of the part of libflux-core that src/flux uses: two queues of messages, attributes and a
 * configuration
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "libutil/errprintf.h"
#include "t/flux-core/standin.h"

#define MAX_QUEUE 4096
#define FIRST_TAG 1000000 /* matchtag of the first request that is made here; the matchtags of libidtree begin with 1 */

struct flux_msg {
    idt_msg_t *msg;
};

struct queue {
    const idt_msg_t *msgs[MAX_QUEUE];
    int count;
};

struct flux_handle {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct queue in, out; /* 'in': messages to the module, 'out': messages from it */
    int fd;
    uint32_t tag;
    char *name;
    json_t *attrs;
    json_t *config;
};

struct flux_future {
    flux_t *h;
    uint32_t tag;
    json_t *answer; /* NULL: it has not arrived yet */
};

static void *need (void *p)
{
    if (p)
        return p;
    fprintf (stderr, "the stand-in for Flux has no memory\n");
    abort ();
}

/* --- queues -------------------------------------------------------------------------------------------- */

static void put (flux_t *h, struct queue *q, const idt_msg_t *msg)
{
    pthread_mutex_lock (&h->lock);
    need (q->count < MAX_QUEUE ? q : NULL);
    q->msgs[q->count++] = idt_msg_ref (msg);
    pthread_cond_broadcast (&h->change);
    pthread_mutex_unlock (&h->lock);
}

/* Remove message 'i' from the queue, and return it. The caller holds the lock. */
static idt_msg_t *take (struct queue *q, int i)
{
    const idt_msg_t *msg = q->msgs[i];

    memmove (q->msgs + i, q->msgs + i + 1, (size_t)(--q->count - i) * sizeof (q->msgs[0]));
    return (idt_msg_t *)msg;
}

void standin_put (flux_t *h, const idt_msg_t *msg)
{
    put (h, &h->in, msg);
    if (eventfd_write (h->fd, 1) < 0)
        abort ();
}

idt_msg_t *standin_take (flux_t *h, int ms)
{
    struct timespec until;
    idt_msg_t *msg = NULL;
    int rc = 0;

    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock (&h->lock);
    while (h->out.count == 0 && rc == 0)
        rc = pthread_cond_timedwait (&h->change, &h->lock, &until);
    if (h->out.count > 0)
        msg = take (&h->out, 0);
    pthread_mutex_unlock (&h->lock);
    return msg;
}

flux_msg_t *flux_recv (flux_t *h, struct flux_match match, int flags)
{
    flux_msg_t *msg = NULL;

    pthread_mutex_lock (&h->lock);
    if (h->in.count > 0) {
        msg = need (malloc (sizeof (*msg)));
        msg->msg = take (&h->in, 0);
    }
    pthread_mutex_unlock (&h->lock);
    return msg ? msg : errset_null (EAGAIN);
}

int flux_send_new (flux_t *h, flux_msg_t **msg, int flags)
{
    put (h, &h->out, (*msg)->msg);
    flux_msg_decref (*msg);
    *msg = NULL;
    return 0;
}

int flux_pollfd (flux_t *h)
{
    return h->fd;
}

int flux_pollevents (flux_t *h)
{
    eventfd_t n;
    int events;

    (void)!eventfd_read (h->fd, &n);
    pthread_mutex_lock (&h->lock);
    events = FLUX_POLLOUT | (h->in.count > 0 ? FLUX_POLLIN : 0);
    pthread_mutex_unlock (&h->lock);
    return events;
}

/* --- what is known ------------------------------------------------------------------------------------- */

void *flux_aux_get (flux_t *h, const char *name)
{
    return strcmp (name, "flux::name") == 0 ? h->name : errset_null (ENOENT);
}

const char *flux_attr_get (flux_t *h, const char *name)
{
    const char *value = json_string_value (json_object_get (h->attrs, name));

    return value ? value : errset_null (ENOENT);
}

static int get_number (flux_t *h, const char *name, uint32_t *number)
{
    const char *value = flux_attr_get (h, name);

    if (!value)
        return -1;
    *number = (uint32_t)strtoul (value, NULL, 10);
    return 0;
}

int flux_get_rank (flux_t *h, uint32_t *rank)
{
    return get_number (h, "rank", rank);
}

int flux_get_size (flux_t *h, uint32_t *size)
{
    return get_number (h, "size", size);
}

const flux_conf_t *flux_get_conf (flux_t *h)
{
    return (const flux_conf_t *)h->config;
}

int flux_conf_unpack (const flux_conf_t *conf, flux_error_t *error, const char *fmt, ...)
{
    json_error_t why;
    va_list ap;
    int rc;

    va_start (ap, fmt);
    rc = json_vunpack_ex ((json_t *)conf, &why, 0, fmt, ap);
    va_end (ap);
    if (rc < 0) {
        snprintf (error->text, sizeof (error->text), "%.150s", why.text);
        return errset (EINVAL);
    }
    return 0;
}

/* --- requests -------------------------------------------------------------------------------------------- */

/* Send a request of the module. Steals 'payload'. */
static void request_new (flux_t *h, const char *topic, uint32_t nodeid, uint32_t tag, json_t *payload)
{
    idt_msg_t *msg = need (idt_msg_create (IDT_MSGTYPE_REQUEST));
    char *text = need (json_dumps (need (payload), JSON_COMPACT));

    idt_msg_set_nodeid (msg, nodeid);
    idt_msg_set_matchtag (msg, tag);
    if (tag == 0)
        idt_msg_set_flag (msg, IDT_MSGFLAG_NORESPONSE);
    need (idt_msg_set_topic (msg, topic) == 0 && idt_msg_set_string (msg, text) == 0 ? msg : NULL);
    put (h, &h->out, msg);
    idt_msg_unref (msg);
    free (text);
    json_decref (payload);
}

int flux_log (flux_t *h, int level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    request_new (h, STANDIN_LOG, FLUX_NODEID_ANY, 0, json_pack ("{s:i s:s}", "level", level, "text", text));
    return 0;
}

int flux_module_set_running (flux_t *h)
{
    request_new (h, "module.status", FLUX_NODEID_ANY, 0, json_object ());
    return 0;
}

flux_future_t *flux_rpc_pack (flux_t *h, const char *topic, uint32_t nodeid, int flags, const char *fmt, ...)
{
    flux_future_t *f = need (calloc (1, sizeof (*f)));
    va_list ap;

    *f = (flux_future_t){ .h = h, .tag = FIRST_TAG + h->tag++ };
    va_start (ap, fmt);
    request_new (h, topic, nodeid, f->tag, json_vpack_ex (NULL, 0, fmt, ap));
    va_end (ap);
    return f;
}

/* Return the index of the answer in the queue, or -1. The caller holds the lock. */
static int find_answer (const struct queue *q, uint32_t tag)
{
    int i = q->count - 1;

    while (i >= 0 && (idt_msg_type (q->msgs[i]) != IDT_MSGTYPE_RESPONSE || idt_msg_matchtag (q->msgs[i]) != tag))
        i--;
    return i;
}

static idt_msg_t *wait_for_answer (flux_future_t *f)
{
    flux_t *h = f->h;
    idt_msg_t *msg;
    int i;

    pthread_mutex_lock (&h->lock);
    while ((i = find_answer (&h->in, f->tag)) < 0)
        pthread_cond_wait (&h->change, &h->lock);
    msg = take (&h->in, i);
    pthread_mutex_unlock (&h->lock);
    return msg;
}

int flux_rpc_get_unpack (flux_future_t *f, const char *fmt, ...)
{
    va_list ap;
    int rc;

    if (!f->answer) {
        idt_msg_t *msg = wait_for_answer (f);
        uint32_t errnum = idt_msg_errnum (msg);
        const char *text = idt_msg_string (msg);

        f->answer = errnum == 0 && text ? json_loads (text, 0, NULL) : NULL;
        idt_msg_unref (msg);
        if (!f->answer)
            return errset (errnum ? (int)errnum : EPROTO);
    }
    va_start (ap, fmt);
    rc = json_vunpack_ex (f->answer, NULL, 0, fmt, ap);
    va_end (ap);
    return rc < 0 ? errset (EPROTO) : 0;
}

void flux_future_destroy (flux_future_t *f)
{
    if (f)
        json_decref (f->answer);
    free (f);
}

/* --- messages ---------------------------------------------------------------------------------------------- */

ssize_t flux_msg_encode_size (const flux_msg_t *msg)
{
    return (ssize_t)idt_msg_encode_size (msg->msg);
}

int flux_msg_encode (const flux_msg_t *msg, void *buf, size_t size)
{
    return idt_msg_encode (msg->msg, buf, size) < 0 ? -1 : 0;
}

flux_msg_t *flux_msg_decode (const void *buf, size_t size)
{
    flux_msg_t *msg = need (malloc (sizeof (*msg)));

    if ((msg->msg = idt_msg_decode (buf, size)))
        return msg;
    free (msg);
    return errset_null (EPROTO);
}

void flux_msg_decref (const flux_msg_t *msg)
{
    if (msg)
        idt_msg_unref (msg->msg);
    free ((flux_msg_t *)msg);
}

int flux_msg_route_push (flux_msg_t *msg, const char *id)
{
    return idt_msg_route_push (msg->msg, id);
}

int flux_msg_route_delete_last (flux_msg_t *msg)
{
    idt_msg_route_pop (msg->msg);
    return 0;
}

/* --- life ---------------------------------------------------------------------------------------------------- */

static void drain (struct queue *q)
{
    while (q->count > 0)
        idt_msg_unref (take (q, 0));
}

void standin_destroy (flux_t *h)
{
    drain (&h->in);
    drain (&h->out);
    close (h->fd);
    pthread_cond_destroy (&h->change);
    pthread_mutex_destroy (&h->lock);
    json_decref (h->attrs);
    json_decref (h->config);
    free (h->name);
    free (h);
}

flux_t *standin_create (const char *name, const json_t *attrs, const json_t *config)
{
    flux_t *h = need (calloc (1, sizeof (*h)));
    pthread_condattr_t by_monotonic;

    pthread_condattr_init (&by_monotonic);
    pthread_condattr_setclock (&by_monotonic, CLOCK_MONOTONIC);
    pthread_cond_init (&h->change, &by_monotonic);
    pthread_condattr_destroy (&by_monotonic);
    pthread_mutex_init (&h->lock, NULL);
    h->name = need (strdup (name));
    h->attrs = need (json_deep_copy (attrs));
    h->config = need (json_deep_copy (config));
    if ((h->fd = eventfd (0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
        abort ();
    return h;
}
