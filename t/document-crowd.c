/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document-crowd.c - many documents, and many clients of a large document
 *
 *   document-crowd handle N             open N documents on one handle, make a final id in each
 *   document-crowd rank N               open N documents on the rank of IDTREE_URI, make a final id in each
 *   document-crowd make NAME N          make document NAME of N clusters
 *   document-crowd join NAME N OTHER    N clients read all of document NAME together, while one client makes final ids
 *                                       in document OTHER; print how long it took, and the longest time of such an id
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <idtree/idtree.h>

#define ORDERER "00000000-0000-4000-8000-000000000000"

static void die (const char *what, const char *why)
{
    fprintf (stderr, "document-crowd: %s: %s\n", what, why);
    exit (1);
}

static idt_t *connect_to (void)
{
    idt_error_t error;
    idt_t *h = idt_open (getenv ("IDTREE_URI"), &error);

    if (!h)
        die ("connect", error.text);
    return h;
}

static double now_s (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1E9;
}

static void finish (idt_future_t *f, const char *what)
{
    if (!f || idt_rpc_get (f, NULL) < 0)
        die (what, f ? idt_future_error (f) : strerror (errno));
    idt_future_destroy (f);
}

static idt_future_t *generate (idt_t *h, const char *name)
{
    return idt_rpc_pack (h, "compressor.generate", IDT_NODEID_ANY, 0, "{s:s s:b}", "document", name, "final", 1);
}

/* --- many documents ------------------------------------------------------------------------------ */

static void crowd_handle (int n)
{
    idt_t *h = connect_to ();
    idt_document_t **docs = calloc ((size_t)n, sizeof (docs[0]));
    idt_error_t error;
    char name[32];
    int64_t id;

    for (int i = 0; i < n; i++) {
        snprintf (name, sizeof (name), "d%d", i);
        if (!(docs[i] = idt_document_open (h, name, -1, &error)))
            die (name, error.text);
    }
    idt_document_close (docs[0]); /* the other documents still use the data that all documents share */
    for (int i = 1; i < n; i++)
        idcomp_generate (idt_document_ids (docs[i]), &id);
    for (int i = 1; i < n; i++) {
        if (idt_document_settle (docs[i], -1) < 0)
            die (idt_document_name (docs[i]),
                 idt_document_error (docs[i]) ? idt_document_error (docs[i]) : strerror (errno));
        idt_document_close (docs[i]);
    }
    free (docs);
    idt_close (h);
}

static void crowd_rank (int n)
{
    idt_t *h = connect_to ();
    char name[32];

    for (int i = 0; i < n; i++) {
        snprintf (name, sizeof (name), "d%d", i);
        finish (idt_rpc_pack (h, "compressor.open", IDT_NODEID_ANY, 0, "{s:s}", "document", name), name);
    }
    for (int i = 0; i < n; i++) {
        snprintf (name, sizeof (name), "d%d", i);
        finish (generate (h, name), name);
    }
    idt_close (h);
}

/* --- a large document ----------------------------------------------------------------------------- */

/* Make a large document: two sessions in turn make ranges that are larger than their reserves, so each range needs a
 * cluster.
 */
static void make_document (const char *name, int n)
{
    struct idcomp *c = idcomp_create (ORDERER, IDCOMP_ORDERER);
    struct idcomp_range range = { .has_ids = true, .count = 2, .cluster_size = 1 };
    idt_t *h = connect_to ();

    for (int i = 0; i < n; i++) {
        snprintf (range.session, sizeof (range.session), "%d1111111-1111-4111-8111-111111111111", 1 + i % 2);
        range.first = idcomp_expected (c, range.session);
        if (idcomp_finalize (c, &range) < 0)
            die ("finalize", idcomp_strerror (errno));
    }
    size_t size = idcomp_save_size (c, IDCOMP_WITHOUT_LOCAL);
    void *form = malloc (size);
    char *text = malloc (IDCOMP_BASE64_TEXT_SIZE (size));
    if (!form || !text || idcomp_save (c, IDCOMP_WITHOUT_LOCAL, form, size) < 0)
        die ("save", idcomp_strerror (errno));
    idcomp_base64_format (form, size, text, IDCOMP_BASE64_TEXT_SIZE (size));
    finish (idt_rpc_pack (h, "compressor.create", IDT_NODEID_ANY, 0, "{s:s s:s}", "document", name, "state", text),
            name);
    free (text);
    free (form);
    idcomp_destroy (c);
    idt_close (h);
}

struct joiner {
    pthread_t thread;
    const char *name;
    size_t characters;
};

/* Read the document once. Returns false if the broker dropped the stored form before all of it was read. */
static bool join_once (struct joiner *j, idt_t *h)
{
    idt_future_t *f = idt_rpc_pack (h, "compressor.join", 0, 0, "{s:s s:b}", "document", j->name, "behind", 1), *next;
    const char *uuid, *state;
    json_int_t seq, size = 0;

    for (j->characters = 0;; f = next) {
        if (f && idt_future_wait (f, -1) == 0 && idt_future_errnum (f) == EAGAIN)
            break;
        if (!f
            || idt_rpc_get_unpack (f, "{s:s s:I s:s s?I}", "uuid", &uuid, "seq", &seq, "state", &state, "size", &size)
                   < 0)
            die ("join", f ? idt_future_error (f) : strerror (errno));
        if ((j->characters += strlen (state)) >= (size_t)size)
            break;
        next = idt_rpc_pack (h, "compressor.state", 0, 0, "{s:s s:s s:I s:I}", "document", j->name, "uuid", uuid, "seq",
                             seq, "offset", (json_int_t)j->characters);
        idt_future_destroy (f);
    }
    bool whole = idt_future_errnum (f) == 0;
    idt_future_destroy (f);
    return whole;
}

static void *joiner_main (void *arg)
{
    idt_t *h = connect_to ();

    while (!join_once (arg, h))
        ;
    idt_close (h);
    return NULL;
}

/* A client of another document, which works until the joiners are done. */
struct neighbour {
    const char *name;
    _Atomic int over;
    double longest;
};

static void *neighbour_main (void *arg)
{
    struct neighbour *n = arg;
    idt_t *h = connect_to ();

    finish (idt_rpc_pack (h, "compressor.open", IDT_NODEID_ANY, 0, "{s:s}", "document", n->name), n->name);
    while (!n->over) {
        double asked = now_s ();

        finish (generate (h, n->name), n->name);
        n->longest = now_s () - asked > n->longest ? now_s () - asked : n->longest;
    }
    idt_close (h);
    return NULL;
}

static void crowd_join (const char *name, int n, const char *other)
{
    struct neighbour neighbour = { .name = other };
    struct joiner *joiners = calloc ((size_t)n, sizeof (joiners[0]));
    double start = now_s ();
    pthread_t thread;

    pthread_create (&thread, NULL, neighbour_main, &neighbour);
    for (int i = 0; i < n; i++) {
        joiners[i].name = name;
        pthread_create (&joiners[i].thread, NULL, joiner_main, &joiners[i]);
    }
    for (int i = 0; i < n; i++)
        pthread_join (joiners[i].thread, NULL);
    double took = now_s () - start;
    neighbour.over = 1;
    pthread_join (thread, NULL);
    printf ("{\"joins\":%d,\"characters\":%zu,\"seconds\":%.2f,\"longest_other_ms\":%.0f}\n", n, joiners[0].characters,
            took, 1E3 * neighbour.longest);
    free (joiners);
}

int main (int argc, char **argv)
{
    if (argc == 3 && strcmp (argv[1], "handle") == 0)
        crowd_handle (atoi (argv[2]));
    else if (argc == 3 && strcmp (argv[1], "rank") == 0)
        crowd_rank (atoi (argv[2]));
    else if (argc == 4 && strcmp (argv[1], "make") == 0)
        make_document (argv[2], atoi (argv[3]));
    else if (argc == 5 && strcmp (argv[1], "join") == 0)
        crowd_join (argv[2], atoi (argv[3]), argv[4]);
    else {
        fprintf (stderr, "usage: document-crowd handle N | rank N | make NAME N | join NAME N OTHER\n");
        return 2;
    }
    return 0;
}
