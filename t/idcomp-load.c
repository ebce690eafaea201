/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idcomp-load.c - work in a document on many ranks without pause, until standard input ends; then compare their data
 *
 *     idcomp-load URI-PREFIX DOCUMENT RECORD RANK...     for example idcomp-load local:///tmp/x/local- d record 0 3 7
 *
 * Each rank has a client in a thread of its own. It opens the document, makes ids, and requests what the ids mean.
 * Failed requests are repeated. Ids that an answer gave as final are written to the file RECORD. If the file exists, it
 * is read first, so that a later run also checks the ids of earlier ones.
 *
 * In the end all ranks must have equal final spaces. In these all recorded ids must be unchanged. Each session that
 * still exists must know its local ids unchanged. No session may break. The exit status is 0 if and only if all of that
 * is true.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idcomp.h>
#include <idtree/idtree.h>

#include "test/tap.h"

#define LOCALS 64  /* most ids of the rank's session that a client keeps */
#define PAUSE_MS 1 /* between a failure and the next request, to limit the load */
#define NEW_SESSION "12345678-1234-4234-8234-123456789abc"

/* An id that an answer gave as final. */
struct note {
    int64_t id;
    struct idcomp_uuid uuid;
};

struct load {
    const char *prefix;
    const char *document;
    atomic_bool stopping;
    pthread_mutex_t lock;
    struct note *notes;
    size_t n, room;
};

struct client {
    struct load *load;
    int rank;
    pthread_t thread;
    idt_t *h; /* NULL: not connected */
    unsigned random;
    char session[IDCOMP_UUID_TEXT_MAX];
    int64_t local[LOCALS]; /* local ids of the client's session */
    char local_uuid[LOCALS][IDCOMP_UUID_TEXT_MAX];
    int nlocal;
    unsigned long ids, requests, failed, sessions, broken;
};

static void die (const char *what)
{
    fprintf (stderr, "idcomp-load: %s: %s\n", what, strerror (errno));
    exit (2);
}

static void note_locked (struct load *l, int64_t id, const char *uuid)
{
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 4096;
        if (!(l->notes = realloc (l->notes, l->room * sizeof (l->notes[0]))))
            die ("realloc");
    }
    l->notes[l->n].id = id;
    if (idcomp_uuid_parse (uuid, strlen (uuid), &l->notes[l->n++].uuid, NULL) < 0)
        die (uuid);
}

/* --- requests -------------------------------------------------------------------------------------- */

static void disconnect (struct client *c)
{
    idt_close (c->h);
    c->h = NULL;
}

static bool is_connected (struct client *c)
{
    char uri[256];

    snprintf (uri, sizeof (uri), "%s%d", c->load->prefix, c->rank);
    return c->h || (c->h = idt_open (uri, NULL));
}

/* Send a request to the client's rank. Returns the answer, which the caller owns, or NULL with errno set. */
static json_t *ask (struct client *c, const char *topic, json_t *request)
{
    char *s = json_dumps (request, JSON_COMPACT);
    json_t *o = NULL;
    idt_future_t *f = NULL;

    json_decref (request);
    if (s && is_connected (c) && (f = idt_rpc (c->h, topic, s, (uint32_t)c->rank, 0))
        && idt_rpc_get_unpack (f, "O", &o) < 0)
        o = NULL;
    int saved = errno;
    if (!o && saved == ESTALE && c->broken++ == 0)
        printf ("rank %d: its session is broken: %s\n", c->rank, idt_future_error (f));
    idt_future_destroy (f);
    free (s);
    c->requests++;
    c->failed += !o;
    if (!o)
        poll (NULL, 0, PAUSE_MS);
    if (!o && (saved == ECONNRESET || saved == EPIPE))
        disconnect (c);
    errno = saved;
    return o;
}

static json_t *named (struct client *c)
{
    return json_pack ("{s:s}", "document", c->load->document);
}

/* --- what a client does ------------------------------------------------------------------------------ */

/* Open the document. If the session is a new one, forget the ids of the earlier session. */
static bool open_document (struct client *c)
{
    json_t *o = ask (c, "compressor.open", named (c));
    const char *session;

    if (!o)
        return false;
    session = json_string_value (json_object_get (o, "session"));
    if (strcmp (session, c->session) != 0) {
        snprintf (c->session, sizeof (c->session), "%s", session);
        c->nlocal = 0;
        c->sessions++;
    }
    json_decref (o);
    return true;
}

static json_t *list_ids (const json_t *runs)
{
    json_t *ids = json_array (), *run;
    size_t i;

    json_array_foreach (runs, i, run) {
        int64_t first = json_integer_value (json_array_get (run, 0));
        int64_t n = json_integer_value (json_array_get (run, 1));
        for (int64_t k = 0; k < n; k++)
            json_array_append_new (ids, json_integer (first < 0 ? first - k : first + k));
    }
    return ids;
}

static void keep_local (struct client *c, int64_t id, const char *uuid)
{
    if (c->nlocal == LOCALS)
        return;
    c->local[c->nlocal] = id;
    strcpy (c->local_uuid[c->nlocal++], uuid);
}

/* Record what final ids mean, and keep local ids with the meaning that their session has reported. */
static void keep (struct client *c, const char *session, json_t *ids, bool final)
{
    json_t *request = named (c), *o, *uuids;

    json_object_set (request, "ids", ids);
    if (!(o = ask (c, "compressor.decompress", request)))
        return;
    uuids = json_object_get (o, "uuids");
    bool same = strcmp (session, json_string_value (json_object_get (o, "session"))) == 0;
    pthread_mutex_lock (&c->load->lock);
    for (size_t i = 0; i < json_array_size (uuids); i++) {
        int64_t id = json_integer_value (json_array_get (ids, i));
        const char *uuid = json_string_value (json_array_get (uuids, i));
        if (final)
            note_locked (c->load, id, uuid);
        else if (same && strcmp (session, c->session) == 0)
            keep_local (c, id, uuid);
    }
    pthread_mutex_unlock (&c->load->lock);
    json_decref (o);
}

static void make_ids (struct client *c)
{
    bool final = rand_r (&c->random) % 3 == 0;
    int count = rand_r (&c->random) % 8 == 0 ? 2000 : 1 + rand_r (&c->random) % 20;
    json_t *o = ask (c, "compressor.generate",
                     json_pack ("{s:s s:i s:b}", "document", c->load->document, "count", count, "final", final));

    if (!o) {
        open_document (c);
        return;
    }
    json_t *ids = list_ids (json_object_get (o, "runs"));
    c->ids += json_array_size (ids);
    keep (c, json_string_value (json_object_get (o, "session")), ids, final);
    json_decref (ids);
    json_decref (o);
}

static void *client_main (void *arg)
{
    struct client *c = arg;

    while (!atomic_load (&c->load->stopping))
        make_ids (c);
    return NULL;
}

/* --- the end ---------------------------------------------------------------------------------------------- */

/* Return the text of a stored form, which the caller frees. Pieces that are missing in 'o' are requested. */
static char *whole_text (struct client *c, const json_t *o)
{
    const char *first = json_string_value (json_object_get (o, "state"));
    size_t n = strlen (first), whole = (size_t)json_integer_value (json_object_get (o, "size"));
    char *text = malloc ((whole > n ? whole : n) + 1);

    strcpy (text, first);
    while (n < whole) {
        json_t *request = named (c), *piece;

        json_object_set (request, "uuid", json_object_get (o, "uuid"));
        json_object_set (request, "seq", json_object_get (o, "seq"));
        json_object_set_new (request, "offset", json_integer ((json_int_t)n));
        if (!(piece = ask (c, "compressor.state", request)))
            die ("a piece of a stored form is missing");
        strcpy (text + n, json_string_value (json_object_get (piece, "state")));
        n = strlen (text);
        json_decref (piece);
    }
    return text;
}

/* Return the state of a rank, or the stored state of rank 0, and set '*seq' to its number. The request is repeated
 * until it succeeds.
 */
static struct idcomp *get_state (struct client *c, const char *topic, int64_t *seq)
{
    json_t *o;

    wait_until ((o = ask (c, topic, named (c)))) open_document (c);
    char *text = whole_text (c, o);
    size_t size = strlen (text) / 4 * 3 + 1;
    void *form = malloc (size);
    ssize_t n = form ? idcomp_base64_parse (text, strlen (text), form, size, NULL) : -1;
    struct idcomp *ids = n < 0 ? NULL : idcomp_load (form, (size_t)n, NEW_SESSION, IDCOMP_STRICT);
    *seq = json_integer_value (json_object_get (o, "seq"));
    if (!ids)
        die ("a stored form cannot be loaded");
    free (form);
    free (text);
    json_decref (o);
    return ids;
}

/* Make one id final. Then all earlier ids of this rank are ordered, too, and this rank has received the newest order.
 */
static void settle (struct client *c)
{
    json_t *o;

    wait_until ((o = ask (c, "compressor.generate",
                          json_pack ("{s:s s:b}", "document", c->load->document, "final", 1)))) open_document (c);
    json_decref (o);
}

static bool check_equal (struct client *c, const struct idcomp *all, int64_t newest)
{
    struct idcomp *mine = NULL;
    int64_t seq = -1;

    wait_until (seq >= newest) /* events that were published may not have arrived yet */
    {
        idcomp_destroy (mine);
        mine = get_state (c, "compressor.save", &seq);
    }
    bool equal = seq == newest && idcomp_equal (mine, all, IDCOMP_WITHOUT_LOCAL);
    if (!equal)
        printf ("rank %d: seq %lld, differs from rank 0, %lld\n", c->rank, (long long)seq, (long long)newest);
    idcomp_destroy (mine);
    return equal;
}

static bool check_notes (const struct load *l, const struct idcomp *all)
{
    struct idcomp_uuid uuid;
    int64_t id;

    for (size_t i = 0; i < l->n; i++) {
        if (idcomp_decompress (all, l->notes[i].id, &uuid) < 0 || memcmp (&uuid, &l->notes[i].uuid, sizeof (uuid)) != 0
            || idcomp_recompress (all, &uuid, &id) < 0 || id != l->notes[i].id) {
            printf ("final id %lld has changed\n", (long long)l->notes[i].id);
            return false;
        }
    }
    return true;
}

/* Check the local ids of a session, if the session still exists. */
static bool check_locals (struct client *c)
{
    json_t *request = named (c), *ids = json_array (), *o;
    bool good = true;

    for (int i = 0; i < c->nlocal; i++)
        json_array_append_new (ids, json_integer (c->local[i]));
    json_object_set_new (request, "ids", ids);
    if (!(o = ask (c, "compressor.decompress", request)))
        good = false;
    for (int i = 0; good && i < c->nlocal; i++)
        good = strcmp (c->local_uuid[i], json_string_value (json_array_get (json_object_get (o, "uuids"), (size_t)i)))
               == 0;
    json_decref (o);
    if (!good)
        printf ("rank %d: an id of its session has changed\n", c->rank);
    return good;
}

static bool check_all (struct load *l, struct client *clients, int n)
{
    bool good = true;
    int64_t newest;

    for (int i = 0; i < n; i++) {
        wait_until (open_document (&clients[i]));
        settle (&clients[i]);
    }
    struct idcomp *all = get_state (&clients[0], "compressor.join", &newest);
    for (int i = 0; i < n; i++)
        good = check_equal (&clients[i], all, newest) && check_locals (&clients[i]) && !clients[i].broken && good;
    good = check_notes (l, all) && good;
    struct idcomp_stats s = idcomp_stats (all);
    printf ("ranges %lld sessions %u clusters %u finals-noted %zu\n", (long long)newest, s.sessions - 1, s.clusters,
            l->n);
    idcomp_destroy (all);
    return good;
}

/* --- the record ------------------------------------------------------------------------------------------------ */

static void read_record (struct load *l, const char *path)
{
    char uuid[IDCOMP_UUID_TEXT_MAX];
    long long id;
    FILE *f = fopen (path, "r");

    while (f && fscanf (f, "%lld %36s", &id, uuid) == 2)
        note_locked (l, id, uuid);
    if (f)
        fclose (f);
}

static void write_record (const struct load *l, const char *path)
{
    char uuid[IDCOMP_UUID_TEXT_MAX];
    FILE *f = fopen (path, "w");

    if (!f)
        die (path);
    for (size_t i = 0; i < l->n; i++) {
        idcomp_uuid_format (&l->notes[i].uuid, uuid, sizeof (uuid));
        fprintf (f, "%lld %s\n", (long long)l->notes[i].id, uuid);
    }
    if (fclose (f) != 0)
        die (path);
}

static void await_end_of_input (void)
{
    char c;

    while (read (STDIN_FILENO, &c, 1) > 0)
        ;
}

int main (int argc, char **argv)
{
    int n = argc - 4;

    if (n < 1) {
        fprintf (stderr, "usage: idcomp-load URI-PREFIX DOCUMENT RECORD RANK...\n");
        return 2;
    }
    struct load l = { .prefix = argv[1], .document = argv[2] };
    struct client *clients = calloc ((size_t)n, sizeof (*clients));

    pthread_mutex_init (&l.lock, NULL);
    read_record (&l, argv[3]);
    for (int i = 0; i < n; i++) {
        clients[i] = (struct client){ .load = &l, .rank = atoi (argv[4 + i]), .random = (unsigned)(i + 1) };
        if (pthread_create (&clients[i].thread, NULL, client_main, &clients[i]) != 0)
            die ("pthread_create");
    }
    await_end_of_input ();
    atomic_store (&l.stopping, true);
    for (int i = 0; i < n; i++)
        pthread_join (clients[i].thread, NULL);
    bool good = check_all (&l, clients, n);
    write_record (&l, argv[3]);
    for (int i = 0; i < n; i++) {
        printf ("rank %d: ids %lu requests %lu failed %lu sessions %lu\n", clients[i].rank, clients[i].ids,
                clients[i].requests, clients[i].failed, clients[i].sessions);
        disconnect (&clients[i]);
    }
    printf ("%s\n", good ? "all agree" : "not all agree");
    free (clients);
    free (l.notes);
    return good ? 0 : 1;
}
