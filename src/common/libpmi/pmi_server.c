/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_server.c - the server side of PMI-1, used by the launcher; no sockets
 *
 * Barriers are counted: barrier n opens when every rank has entered it, and stays open. For each rank the server counts
 * the barriers that the rank entered since its last start. So a restarted rank passes the open barriers without
 * waiting, and waits with the others at the next one.
 */
#include <assert.h>
#include <czmq.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/pmi_server.h"
#include "libpmi/pmi_wire.h"
#include "libutil/errprintf.h"

struct pmi_rank {
    struct pmi_lines *lines; /* NULL until the first byte after a start */
    char *secret;
    unsigned keys;
    unsigned barriers; /* number of barriers that the rank entered since its last start */
};

struct pmi_server {
    int size;
    unsigned max_keys; /* maximum number of keys of a rank */
    char *kvsname;
    const struct pmi_server_ops *ops;
    void *arg;
    zhashx_t *kvs; /* key -> struct pmi_value */
    unsigned open; /* number of barriers that are open */
    int waiting;   /* number of ranks that wait for barrier open + 1 */
    struct pmi_rank *ranks;
};

struct pmi_value {
    int rank; /* the rank that put the value; -1: the server */
    char value[];
};

__attribute__ ((format (printf, 3, 4))) static void respond (struct pmi_server *s, int rank, const char *fmt, ...)
{
    char line[PMI_LINE_MAX];
    va_list ap;

    va_start (ap, fmt);
    int n = vsnprintf (line, sizeof (line), fmt, ap);
    va_end (ap);
    assert (n > 0 && n < (int)sizeof (line));
    s->ops->send (s->arg, rank, line);
    explicit_bzero (line, n);
}

static void destroy_bizcard (void **item)
{
    free (*item);
    *item = NULL;
}

static int store (struct pmi_server *s, int rank, const char *key, const char *value)
{
    size_t size = strlen (value) + 1;
    struct pmi_value *bizcard = malloc (sizeof (*bizcard) + size);

    if (!bizcard)
        return -1;
    bizcard->rank = rank;
    memcpy (bizcard->value, value, size);
    zhashx_update (s->kvs, key, bizcard);
    return 0;
}

/* The secret of a rank, which is made when the rank first requests it; NULL if it cannot be made. */
static const char *get_secret (struct pmi_server *s, int rank)
{
    struct pmi_rank *r = &s->ranks[rank];
    char buf[PMI_VALLEN_MAX];

    if (!r->secret && s->ops->make_secret (s->arg, rank, buf, sizeof (buf)) == 0) {
        r->secret = strdup (buf);
        explicit_bzero (buf, sizeof (buf));
    }
    return r->secret;
}

/* --- commands ------------------------------------------------------------------------------ */

/* Check a put command and store its value. Returns NULL, or a word that says why the command is refused. */
static const char *put (struct pmi_server *s, int rank, const char *line)
{
    struct pmi_rank *r = &s->ranks[rank];
    char kvsname[PMI_KVSNAME_MAX], key[PMI_KEYLEN_MAX], value[PMI_VALLEN_MAX];

    if (pmi_word (line, "kvsname", kvsname, sizeof (kvsname)) < 0 || strcmp (kvsname, s->kvsname))
        return "wrong_kvsname";
    if (pmi_word (line, "key", key, sizeof (key)) < 0 || !pmi_key_valid (key))
        return "bad_key";
    if (pmi_word (line, "value", value, sizeof (value)) < 0)
        return "bad_value";
    if (!strcmp (key, PMI_SERVER_SECRET_KEY))
        return "reserved_key";
    struct pmi_value *old = zhashx_lookup (s->kvs, key);
    if (old && old->rank != rank)
        return "key_of_another_rank";
    if (!old && r->keys == s->max_keys)
        return "too_many_keys";
    if (store (s, rank, key, value) < 0)
        return "out_of_memory";
    if (!old)
        r->keys++;
    return NULL;
}

static void put_cmd (struct pmi_server *s, int rank, const char *line)
{
    const char *why = put (s, rank, line);

    respond (s, rank, "cmd=put_result rc=%d msg=%s\n", why ? -1 : 0, why ? why : "success");
}

/* The value of 'key' that 'rank' may see; NULL if there is no such value. */
static const char *lookup (struct pmi_server *s, int rank, const char *key)
{
    if (!strcmp (key, PMI_SERVER_SECRET_KEY))
        return get_secret (s, rank);
    struct pmi_value *bizcard = zhashx_lookup (s->kvs, key);
    return bizcard ? bizcard->value : NULL;
}

static void get_cmd (struct pmi_server *s, int rank, const char *line)
{
    char kvsname[PMI_KVSNAME_MAX], key[PMI_KEYLEN_MAX];
    const char *value = NULL;

    if (pmi_word (line, "kvsname", kvsname, sizeof (kvsname)) == 0 && !strcmp (kvsname, s->kvsname)
        && pmi_word (line, "key", key, sizeof (key)) == 0)
        value = lookup (s, rank, key);
    if (value)
        respond (s, rank, "cmd=get_result rc=0 msg=success value=%s\n", value);
    else
        respond (s, rank, "cmd=get_result rc=-1 msg=no_such_key value=unknown\n");
}

static void open_barrier (struct pmi_server *s)
{
    assert (s->waiting == s->size);
    s->open++;
    s->waiting = 0;
    for (int rank = 0; rank < s->size; rank++)
        respond (s, rank, "cmd=barrier_out rc=0\n");
}

static void barrier_cmd (struct pmi_server *s, int rank)
{
    struct pmi_rank *r = &s->ranks[rank];

    assert (r->barriers <= s->open + 1 && s->waiting < s->size);
    if (r->barriers > s->open)
        return; /* the rank waits already, and gets one answer */
    if (++r->barriers <= s->open)
        respond (s, rank, "cmd=barrier_out rc=0\n");
    else if (++s->waiting == s->size)
        open_barrier (s);
}

static void finalize_cmd (struct pmi_server *s, int rank)
{
    respond (s, rank, "cmd=finalize_ack rc=0\n");
    s->ops->finalized (s->arg, rank);
}

static int dispatch (struct pmi_server *s, int rank, const char *line, idt_error_t *errp)
{
    if (pmi_is (line, "init"))
        respond (s, rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    else if (pmi_is (line, "get_maxes"))
        respond (s, rank, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d rc=0\n", PMI_KVSNAME_MAX,
                 PMI_KEYLEN_MAX, PMI_VALLEN_MAX);
    else if (pmi_is (line, "get_my_kvsname"))
        respond (s, rank, "cmd=my_kvsname kvsname=%s rc=0\n", s->kvsname);
    else if (pmi_is (line, "get_appnum"))
        respond (s, rank, "cmd=appnum appnum=0 rc=0\n");
    else if (pmi_is (line, "get_universe_size"))
        respond (s, rank, "cmd=universe_size size=%d rc=0\n", s->size);
    else if (pmi_is (line, "put"))
        put_cmd (s, rank, line);
    else if (pmi_is (line, "get"))
        get_cmd (s, rank, line);
    else if (pmi_is (line, "barrier_in"))
        barrier_cmd (s, rank);
    else if (pmi_is (line, "finalize"))
        finalize_cmd (s, rank);
    else if (!s->ops->line || s->ops->line (s->arg, rank, line) < 0)
        return errsetf (errp, EPROTO, "PMI: rank %d sent '%.64s', which is no command", rank, line);
    return 0;
}

/* --- life ---------------------------------------------------------------------------------- */

void pmi_server_destroy (struct pmi_server *s)
{
    if (!s)
        return;
    for (int rank = 0; s->ranks && rank < s->size; rank++) {
        struct pmi_rank *r = &s->ranks[rank];

        free (r->lines);
        if (r->secret)
            explicit_bzero (r->secret, strlen (r->secret));
        free (r->secret);
    }
    free (s->ranks);
    zhashx_destroy (&s->kvs);
    free (s->kvsname);
    free (s);
}

/* Store the mapping as MPICH writes it: (vector,(FIRST NODE,NODES,RANKS OF EACH)). */
static int store_mapping (struct pmi_server *s)
{
    char buf[64];

    snprintf (buf, sizeof (buf), "(vector,(0,1,%d))", s->size);
    return store (s, -1, "PMI_process_mapping", buf);
}

struct pmi_server *pmi_server_create (int size, const char *kvsname, const struct pmi_server_ops *ops, void *arg)
{
    struct pmi_server *s;

    if (size < 1 || !pmi_key_valid (kvsname))
        return errset_null (EINVAL);
    if (!(s = calloc (1, sizeof (*s))))
        return NULL;
    s->size = size;
    s->max_keys = PMI_SERVER_KEYS_PER_RANK;
    s->ops = ops;
    s->arg = arg;
    if (!(s->kvsname = strdup (kvsname)) || !(s->ranks = calloc (size, sizeof (s->ranks[0])))
        || !(s->kvs = zhashx_new ()))
        goto error;
    zhashx_set_destructor (s->kvs, destroy_bizcard);
    if (store_mapping (s) < 0)
        goto error;
    return s;
error:
    errno = ENOMEM;
    pmi_server_destroy (s);
    return NULL;
}

int pmi_server_set (struct pmi_server *s, const char *key, const char *value)
{
    return store (s, -1, key, value) < 0 ? errset (ENOMEM) : 0;
}

void pmi_server_set_keys (struct pmi_server *s, unsigned keys)
{
    s->max_keys = keys;
}

int pmi_server_input (struct pmi_server *s, int rank, const char *data, size_t size, idt_error_t *errp)
{
    assert (rank >= 0 && rank < s->size);
    struct pmi_rank *r = &s->ranks[rank];
    const char *line;

    if (!r->lines && !(r->lines = calloc (1, sizeof (*r->lines))))
        return errprintf (errp, "PMI: out of memory");
    while ((line = pmi_lines_add (r->lines, &data, &size)))
        if (dispatch (s, rank, line, errp) < 0)
            return -1;
    if (errno != EAGAIN)
        return errprintf (errp, "PMI: rank %d sent a line longer than %d bytes or with a NUL", rank, PMI_LINE_MAX);
    return 0;
}

void pmi_server_reset (struct pmi_server *s, int rank)
{
    assert (rank >= 0 && rank < s->size);
    struct pmi_rank *r = &s->ranks[rank];

    if (r->barriers > s->open)
        s->waiting--;
    r->barriers = 0;
    free (r->lines);
    r->lines = NULL;
}
