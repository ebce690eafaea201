/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document-load.c - clients with their own compressors work in a document until standard input ends; then compare their
 * data
 *
 *     document-load URI-PREFIX DOCUMENT RANK...     for example document-load local:///tmp/x/local- d 0 3 7
 *
 * Each client is a thread with a connection to its rank. It makes ids, checks them repeatedly, and reconnects if its
 * broker ends. Its session lives as long as the client.
 *
 * In the end all ids must be final, and must mean what they meant when they were made. Final ids must not have changed,
 * and all clients must have equal final spaces. The exit status is 0 if and only if all of that is true.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "test/tap.h"

#define IDS_MAX 100000 /* most ids that a client keeps */
#define PAUSE_MS 1     /* ms between attempts to connect, to limit the load */
#define TURN_MS 200.0  /* ms that a client waits for its ids before it makes more */

struct client {
    const char *uri_prefix;
    const char *document;
    int rank;
    pthread_t thread;
    idt_t *h; /* NULL: not connected */
    idt_document_t *d;
    unsigned random;
    int n;
    int64_t *id;
    int64_t *op; /* the form of each id when it was last checked */
    struct idcomp_uuid *uuid;
    unsigned long connections;
    const char *wrong;
};

static atomic_bool stopping;

static void die (const char *what)
{
    fprintf (stderr, "document-load: %s: %s\n", what, strerror (errno));
    exit (2);
}

/* --- the connection ---------------------------------------------------------------------------------- */

static void disconnect (struct client *c)
{
    if (c->d)
        idt_document_attach (c->d, NULL);
    idt_close (c->h);
    c->h = NULL;
}

/* Connect, and open the document or attach to the session again. Makes only one attempt. */
static bool connect_once (struct client *c)
{
    char uri[256];

    snprintf (uri, sizeof (uri), "%s%d", c->uri_prefix, c->rank);
    if (!(c->h = idt_open (uri, NULL)))
        return false;
    c->connections++;
    if (c->d ? idt_document_attach (c->d, c->h) == 0 : (c->d = idt_document_open (c->h, c->document, -1, NULL)) != NULL)
        return true;
    disconnect (c);
    return false;
}

static void connect_again (struct client *c)
{
    disconnect (c);
    wait_until (connect_once (c)) poll (NULL, 0, PAUSE_MS);
}

/* --- what a client does -------------------------------------------------------------------------------- */

static void make_ids (struct client *c)
{
    int n = rand_r (&c->random) % 16 == 0 ? 2000 : 1 + rand_r (&c->random) % 30;
    struct idcomp *ids = idt_document_ids (c->d);

    for (; n > 0; n--) {
        int64_t *id = &c->id[c->n];
        if (idcomp_generate (ids, id) < 0 || idcomp_decompress (ids, *id, &c->uuid[c->n]) < 0)
            c->wrong = idcomp_strerror (errno);
        c->op[c->n] = -1;
        c->n += c->n < IDS_MAX;
    }
}

/* Check 'count' ids, beginning with number 'i'. */
static void look (struct client *c, int i, int count)
{
    struct idcomp *ids = idt_document_ids (c->d);
    struct idcomp_uuid uuid;
    int64_t op;

    for (; count > 0 && i < c->n; i++, count--) {
        if (idcomp_decompress (ids, c->id[i], &uuid) < 0 || idcomp_to_op (ids, c->id[i], &op) < 0)
            c->wrong = idcomp_strerror (errno);
        else if (memcmp (&uuid, &c->uuid[i], sizeof (uuid)) != 0)
            c->wrong = "an id has changed";
        else if (c->op[i] >= 0 && op != c->op[i])
            c->wrong = "a final id has changed";
        else
            c->op[i] = op;
    }
}

/* Call a function that waits. If the connection is lost, reconnect and call it again. */
static void wait_with (struct client *c, int (*wait) (idt_document_t *, double), double timeout_ms)
{
    while (!c->wrong && wait (c->d, timeout_ms) < 0) {
        if (errno == ETIMEDOUT)
            return;
        if (errno == EPIPE && idt_document_errnum (c->d) == EPIPE)
            c->wrong = idt_document_error (c->d);
        else
            connect_again (c);
    }
}

static void *client_main (void *arg)
{
    struct client *c = arg;

    connect_again (c);
    while (!atomic_load (&stopping) && !c->wrong) {
        make_ids (c);
        wait_with (c, idt_document_settle, TURN_MS);
        look (c, c->n ? rand_r (&c->random) % c->n : 0, 100);
        if (rand_r (&c->random) % 500 == 0)
            connect_again (c);
    }
    wait_with (c, idt_document_settle, 1E3 * TAP_WAIT_S);
    return NULL;
}

/* --- the end --------------------------------------------------------------------------------------------- */

static void check (struct client *c, struct client *first)
{
    wait_with (c, idt_document_sync, 1E3 * TAP_WAIT_S);
    look (c, 0, c->n);
    for (int i = 0; !c->wrong && i < c->n; i++)
        if (c->op[i] < 0)
            c->wrong = "an id is not final";
    if (!c->wrong && !idcomp_equal (idt_document_ids (c->d), idt_document_ids (first->d), IDCOMP_WITHOUT_LOCAL))
        c->wrong = "its final space differs from the other clients'";
}

/* Check that each id of 'c' is the same for another client. */
static void check_at (struct client *c, struct client *other)
{
    struct idcomp_uuid uuid;

    for (int i = 0; !c->wrong && i < c->n; i++)
        if (idcomp_decompress (idt_document_ids (other->d), c->op[i], &uuid) < 0
            || memcmp (&uuid, &c->uuid[i], sizeof (uuid)) != 0)
            c->wrong = "another client does not know its id";
}

static void await_end_of_input (void)
{
    char c;

    while (read (STDIN_FILENO, &c, 1) > 0)
        ;
}

static void start_client (struct client *c, char **argv, int i)
{
    *c = (struct client){
        .uri_prefix = argv[1], .document = argv[2], .rank = atoi (argv[3 + i]), .random = 1u + (unsigned)i
    };
    c->id = calloc (IDS_MAX + 1, sizeof (c->id[0]));
    c->op = calloc (IDS_MAX + 1, sizeof (c->op[0]));
    c->uuid = calloc (IDS_MAX + 1, sizeof (c->uuid[0]));
    if (!c->id || !c->op || !c->uuid || pthread_create (&c->thread, NULL, client_main, c) != 0)
        die ("client");
}

/* Print a summary of a client, and free the client. Returns whether all of its checks succeeded. */
static bool end_client (struct client *c)
{
    printf ("rank %d: ids %d connections %lu seq %lld%s%s\n", c->rank, c->n, c->connections,
            (long long)idt_document_seq (c->d), c->wrong ? ": " : "", c->wrong ? c->wrong : "");
    bool good = !c->wrong;
    idt_document_close (c->d);
    idt_close (c->h);
    free (c->id);
    free (c->op);
    free (c->uuid);
    return good;
}

int main (int argc, char **argv)
{
    int n = argc - 3;
    bool good = true;

    if (n < 1) {
        fprintf (stderr, "usage: document-load URI-PREFIX DOCUMENT RANK...\n");
        return 2;
    }
    struct client *clients = calloc ((size_t)n, sizeof (*clients));
    for (int i = 0; i < n; i++)
        start_client (&clients[i], argv, i);
    await_end_of_input ();
    atomic_store (&stopping, true);
    for (int i = 0; i < n; i++)
        pthread_join (clients[i].thread, NULL);
    for (int i = 0; i < n; i++)
        check (&clients[i], &clients[0]);
    for (int i = 1; i < n; i++)
        check_at (&clients[i - 1], &clients[i]);
    for (int i = 0; i < n; i++)
        good = end_client (&clients[i]) && good;
    printf ("%s\n", good ? "all agree" : "not all agree");
    free (clients);
    return good ? 0 : 1;
}
