/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_pg_test.c - documents in a real PostgreSQL: whatever statements and answers are lost or late, and whichever
 * root takes over, the store has what was answered, and nothing twice
 *
 * Usage: document_pg_test.t [HISTORIES [SEED]]
 */
#include <stdint.h>
#include <stdlib.h>

#include "libpg/pgstate.h"
#include "test/document_cases.h"
#include "test/pg_proxy.h"
#include "test/pg_server.h"

#define UUID "11111111-2222-4333-8444-555555555555"

static const char *direct; /* how to connect */
static char proxied[256];
static struct pg_server *server;
static struct pg_proxy *proxy;
static uint64_t term;

static struct module_place place_of (const char *conninfo, uint64_t at_term)
{
    return (struct module_place){ .store = conninfo, .uuid = UUID, .term = at_term };
}

static void make_tables (void)
{
    const struct pg_config config = { direct, "test", 10000 };
    const struct pgstate state = { .uuid = UUID, .name = "test", .created_ms = 1 };
    struct pg *pg = pg_open (&config, &error);

    if (!pg || pgstate_make (pg, &state, &error) < 0)
        bail_out (error.text);
    pg_close (pg);
}

static void clear (void)
{
    pg_server_sql (server, "WITH d AS (DELETE FROM idtree.documents) DELETE FROM idtree.ranges");
}

/* Rank 0 tries again if the store cannot be opened or written at the moment. A busy server may need that. */
static struct document_store *open_surely (const struct module_place *place)
{
    struct document_store *st;

    wait_until ((st = open_place (place)) || errno == EAGAIN);
    if (!st)
        bail_out (error.text);
    return st;
}

static int commit_surely (struct document_store *st, const struct document_store_change *changes, size_t n)
{
    int rc;

    wait_until ((rc = commit (st, changes, n)) > 0 || errno == EAGAIN);
    return rc;
}

/* --- cases --------------------------------------------------------------------------------------------------- */

static void check_cases (void)
{
    const struct module_place place = place_of (direct, ++term);

    clear ();
    cases_content (&place);
    ok (strstr (error.text, "PostgreSQL ") && strstr (error.text, "document two is missing"),
        "a damaged store is named with its server: %s", error.text);
    clear ();
    cases_ends (&place);
}

static const struct document_store_change more = { { .id = 1 }, 3, cd, 2, false, NULL, NULL };

static void check_takeover (void)
{
    const struct module_place place = place_of (direct, ++term), next = place_of (direct, ++term);

    clear ();
    struct document_store *old = open_place (&place);
    ok (commit (old, made, 2) == 1, "the first root stores documents");
    struct document_store *new = open_place (&next);
    ok (reads (new, "1:one/U1@0=x,a,b;2:two/U2@0=y"), "a root of the next term reads them: %s", content);
    ok (commit (old, &more, 1) < 0 && errno == EAGAIN && strstr (error.text, "another root leads"),
        "afterwards the first root stores nothing: %s", error.text);
    ok (commit (old, NULL, 0) < 0 && errno == EAGAIN, "a commit without changes tells the first root, too");
    ok (!open_place (&place) && errno == EAGAIN, "the first root cannot open the store again: %s", error.text);
    ok (commit (new, &more, 1) == 1 && (new = reopen (new, &next)) && reads (new, "1:one/U1@0=x,a,b,c,d;2:two/U2@0=y"),
        "the root of the next term goes on, and may open the store again: %s", content);
    document_store_close (old);
    document_store_close (new);
}

static int none_cb (void *arg, int64_t seq, const char *text, idt_error_t *errp)
{
    return 0;
}

/* Let another root take over when the first document is read. */
static int replace_cb (void *arg, const struct document_store_document *doc, idt_error_t *errp)
{
    struct document_store **next = arg;
    static struct module_place place;

    if (*next)
        return 0;
    place = place_of (direct, ++term);
    *next = open_place (&place);
    return 0;
}

static void check_reading (void)
{
    static const struct document_store_reader reader = { replace_cb, none_cb };
    const struct module_place place = place_of (direct, ++term);
    struct document_store *next = NULL, *st = document_store_create (&place, "", &reader, &next, &error);

    document_store_open (st);
    ok (document_store_wait (st, &error) < 0 && errno == EAGAIN && next,
        "a root that is replaced while it reads does not open: %s", error.text);
    document_store_close (st);
    document_store_close (next);
}

static void check_refused (void)
{
    struct module_place place = place_of (direct, ++term);

    place.uuid = "99999999-2222-4333-8444-555555555555";
    ok (!open_place (&place) && errno == STATE_REFUSED, "the store of another instance is refused: %s", error.text);
    place = place_of ("host=/nowhere user=postgres dbname=postgres", term);
    ok (!open_place (&place) && errno == ECONNREFUSED, "a store without a server is not opened: %s", error.text);
    place = place_of (direct, term);
    struct document_store *st = open_place (&place);
    const struct document_store_change huge[] = {
        { .document = { 1, "one", "U1", 0, "x", (size_t)600 << 20, 1 } },
        { .document = { 2, "two", "U2", 0, "x", (size_t)500 << 20, 1 } },
    };
    ok (commit (st, huge, 2) < 0 && errno == EFBIG, "a commit of more than 1 GiB is refused: %s", error.text);
    ok (commit (st, NULL, 0) == 1, "after that the store can be used");
    document_store_close (st);
}

/* --- the server ---------------------------------------------------------------------------------------------- */

/* A commit that only one server has does not count. */
static void check_copy (void)
{
    const struct module_place place = place_of (direct, ++term);
    struct module_place trusting = place_of (direct, ++term);

    clear ();
    struct document_store *st = open_place (&place);
    pg_server_copy_stop (server);
    document_store_commit (st, made, 2);
    pg_server_wait (server, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", 1);
    ok (document_store_result (st, &error) == 0, "a commit that is not on the second server yet has no result");
    pg_server_copy_continue (server);
    ok (document_store_wait (st, &error) == 1, "it is stored when the second server has it");
    pg_server_set_names (server, "");
    ok (commit (st, &more, 1) < 0 && errno == ENOTSUP, "without a second server nothing is stored: %s", error.text);
    ok (!open_place (&place) && errno == ENOTSUP, "without a second server no store is opened");
    trusting.trust = true;
    document_store_close (st);
    st = open_place (&trusting);
    ok (commit (st, &more, 1) == 1, "with root.store-sync=trust a commit is stored all the same");
    pg_server_set_names (server, "*");
    st = reopen (st, &trusting);
    ok (reads (st, "1:one/U1@0=x,a,b,c,d;2:two/U2@0=y"), "the refused commit left nothing: %s", content);
    document_store_close (st);
}

/* A commit survives the end of the server, and is done once. */
static void check_server (void)
{
    const struct module_place place = place_of (direct, ++term);

    clear ();
    struct document_store *st = open_place (&place);
    pg_server_copy_stop (server);
    document_store_commit (st, made, 2);
    pg_server_wait (server, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", 1);
    pg_server_kill (server);
    pg_server_copy_end (server);
    pg_server_run (server);
    pg_server_copy_start (server);
    ok (document_store_wait (st, &error) == 1, "a commit is stored after its server was killed and started again");
    ok (commit (st, &more, 1) == 1, "so is the next one: %s", error.text);
    st = reopen (st, &place);
    ok (reads (st, "1:one/U1@0=x,a,b,c,d;2:two/U2@0=y"), "both are there, once: %s", content);
    document_store_close (st);
}

/* --- large forms --------------------------------------------------------------------------------------------- */

static uint64_t sum;

static int sum_cb (void *arg, const struct document_store_document *doc, idt_error_t *errp)
{
    sum += doc->form_size;
    for (size_t i = 0; i < doc->form_size; i += 4093)
        sum += ((const unsigned char *)doc->form)[i];
    return 0;
}

static int sum_range_cb (void *arg, int64_t seq, const char *text, idt_error_t *errp)
{
    sum++;
    return 0;
}

static void check_large (size_t size)
{
    static const struct document_store_reader reader = { sum_cb, sum_range_cb };
    const struct module_place place = place_of (direct, ++term);
    char *form = malloc (size), name[4][8];
    struct document_store_change changes[4] = { 0 };
    const char **texts = calloc (5000, sizeof (*texts));
    uint64_t wanted = 0;

    clear ();
    memset (form, 'x', size);
    for (int i = 0; i < 5000; i++)
        texts[i] = "range";
    for (int i = 0; i < 4; i++) {
        snprintf (name[i], sizeof (name[i]), "d%d", i);
        changes[i] = (struct document_store_change){
            { i + 1, name[i], name[i], 0, form, size / 4 * (size_t)i, 1 }, 1, texts, 5000, false, NULL, NULL
        };
        wanted += 5000 + changes[i].document.form_size + (changes[i].document.form_size + 4092) / 4093 * 'x';
    }
    struct document_store *st = open_place (&place);
    ok (commit (st, changes, 4) == 1, "forms of %zu bytes are stored", size / 2 * 3);
    document_store_close (st);
    sum = 0;
    st = document_store_create (&place, "", &reader, NULL, &error);
    document_store_open (st);
    ok (document_store_wait (st, &error) == 1 && sum == wanted, "large forms and many ranges are read again: %s",
        error.text);
    document_store_close (st);
    free (form);
    free (texts);
    clear ();
}

/* --- stop ---------------------------------------------------------------------------------------------------- */

static void check_stop (void)
{
    const struct module_place place = place_of (proxied, ++term);

    clear ();
    struct document_store *st = open_surely (&place);
    pg_proxy_fault (proxy, PG_FAULT_LATE);
    document_store_commit (st, made, 2);
    wait_until (!pg_proxy_is_armed (proxy));
    idt_error_t why;
    document_store_late (st, 7500, &why);
    ok (strstr (why.text, "PostgreSQL has not answered for 7500 ms (half of compressor.timeout)"),
        "a commit without an answer is described: %s", why.text);
    document_store_close (st);
    ok (pg_proxy_deliver (proxy) == 1, "a store can be closed while a commit has no answer");
    st = open_surely (&place);
    ok (reads (st, "1:one/U1@0=x,a,b;2:two/U2@0=y") || reads (st, ""),
        "afterwards all of the commit is stored, or none");
    document_store_close (st);
}

/* --- random histories ---------------------------------------------------------------------------------------- */

#define DOCS 6
#define RANGES 64

/* What the store must have. */
struct model_document {
    int64_t id; /* 0: none */
    char name[16], uuid[16], form[16];
    int64_t seq, newest;
    uint32_t owner;
};

struct model {
    struct model_document docs[DOCS];
    int64_t last_id;
};

static uint64_t state;

static unsigned pick (unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

static void describe (const struct model *m, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (int64_t id = 1; id <= m->last_id; id++)
        for (int i = 0; i < DOCS; i++) {
            const struct model_document *d = &m->docs[i];
            if (d->id != id)
                continue;
            at += (size_t)snprintf (text + at, size - at, "%s%lld:%s/%s@%lld=%s", at > 0 ? ";" : "", (long long)d->id,
                                    d->name, d->uuid, (long long)d->seq, d->form);
            for (int64_t seq = d->seq + 1; seq <= d->newest; seq++)
                at += (size_t)snprintf (text + at, size - at, ",r%lld.%lld", (long long)id, (long long)seq);
        }
}

/* The texts of a commit, which must stay until it ends. */
struct batch {
    struct document_store_change changes[DOCS];
    size_t n;
    char ranges[DOCS][RANGES][24];
    const char *texts[DOCS][RANGES];
};

static void add_ranges (struct batch *b, struct document_store_change *c, struct model_document *d)
{
    c->first = d->newest + 1;
    c->nranges = pick (4);
    c->ranges = b->texts[b->n];
    for (size_t i = 0; i < c->nranges; i++) {
        snprintf (b->ranges[b->n][i], sizeof (b->ranges[0][0]), "r%lld.%lld", (long long)d->id,
                  (long long)d->newest + 1);
        b->texts[b->n][i] = b->ranges[b->n][i];
        d->newest++;
    }
}

static void add_form (struct document_store_change *c, struct model_document *d)
{
    d->seq = d->newest;
    snprintf (d->form, sizeof (d->form), "f%u", pick (1000));
    c->document = (struct document_store_document){
        d->id, d->name, d->uuid, d->seq, d->form, strlen (d->form), d->owner
    };
}

/* Draw a commit, and what the store has afterwards. */
static void draw (struct model *after, struct batch *b)
{
    static unsigned names;

    b->n = 0;
    for (int i = 0; i < DOCS; i++) {
        struct model_document *d = &after->docs[i];
        struct document_store_change *c = &b->changes[b->n];

        *c = (struct document_store_change){ 0 };
        if (pick (2))
            continue;
        if (d->id == 0) {
            *d = (struct model_document){ .id = ++after->last_id, .owner = pick (2) ? IDT_USERID_UNKNOWN : pick (9) };
            snprintf (d->name, sizeof (d->name), "n%u", names++);
            snprintf (d->uuid, sizeof (d->uuid), "u%u", names++);
            add_form (c, d);
            add_ranges (b, c, d);
        }
        else {
            c->document.id = d->id;
            c->document.name = d->name;
            add_ranges (b, c, d);
            if (d->newest - d->seq > RANGES / 4 || pick (4) == 0)
                add_form (c, d);
            if ((c->deleted = pick (8) == 0))
                d->id = 0;
            else if (pick (4) == 0) {
                snprintf (d->name, sizeof (d->name), "n%u", names++);
                c->new_name = d->name;
            }
        }
        b->n++;
    }
}

struct history {
    struct model model; /* of all that was answered */
    char text[sizeof (content)];
    struct module_place place[2]; /* of the root, and of its successor */
    struct document_store *root;
    unsigned commits, faults, takeovers, lost;
    const char *wrong;
};

static void expect (struct history *h, bool good, const char *what)
{
    if (!good && !h->wrong) {
        h->wrong = what;
        diag ("%s: %s", what, error.text);
        diag ("  read   %s", content);
        describe (&h->model, h->text, sizeof (h->text));
        diag ("  wanted %s", h->text);
    }
}

static bool model_is_read (struct history *h, const struct model *m)
{
    describe (m, h->text, sizeof (h->text));
    return strcmp (content, h->text) == 0;
}

static void set_fault (struct history *h)
{
    enum pg_fault fault = (enum pg_fault)pick (6);

    if (fault > PG_FAULT_LATE)
        fault = PG_FAULT_NONE;
    h->faults += fault != PG_FAULT_NONE;
    pg_proxy_fault (proxy, fault);
    if (pick (3) == 0)
        pg_proxy_deliver (proxy);
}

/* A commit of a root that leads: it is done, whatever happens to statements and answers. */
static void commit_step (struct history *h)
{
    static struct batch b;

    set_fault (h);
    draw (&h->model, &b);
    expect (h, commit_surely (h->root, b.changes, b.n) == 1, "a commit of the only root is stored");
    h->commits++;
}

/* Open the store again, at a later time in the same term. */
static void reopen_step (struct history *h)
{
    document_store_close (h->root);
    h->root = open_surely (&h->place[0]);
    expect (h, model_is_read (h, &h->model), "a store that is opened again has all that was answered");
}

/* Another root takes over while a commit is under way. */
static void takeover_step (struct history *h)
{
    static struct batch b;
    struct model after = h->model;

    set_fault (h);
    draw (&after, &b);
    document_store_commit (h->root, b.changes, b.n);
    h->place[1] = place_of (direct, ++term);
    struct document_store *next = open_surely (&h->place[1]);
    bool has = model_is_read (h, &after);
    expect (h, has || model_is_read (h, &h->model),
            "a successor reads all that was answered, and all or none of the rest");
    int rc = document_store_wait (h->root, &error);
    expect (h, rc > 0 ? has : errno == EAGAIN || !has, "a root that was replaced answers only what its successor has");
    h->lost += rc < 0;
    if (has)
        h->model = after;
    after = h->model;
    draw (&after, &b);
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    expect (h, commit_surely (h->root, b.changes, b.n) < 0, "a root that was replaced stores nothing");
    document_store_close (h->root);
    document_store_close (next);
    h->place[0] = place_of (proxied, term);
    h->root = NULL;
    reopen_step (h);
    h->takeovers++;
}

static void run_history (struct history *h)
{
    clear ();
    h->model = (struct model){ 0 };
    h->place[0] = place_of (proxied, ++term);
    reopen_step (h);
    for (int i = 0; i < 40 && !h->wrong; i++) {
        unsigned what = pick (12);

        if (what == 0)
            takeover_step (h);
        else if (what == 1)
            reopen_step (h);
        else
            commit_step (h);
    }
    pg_proxy_fault (proxy, PG_FAULT_NONE);
    pg_proxy_deliver (proxy);
    reopen_step (h);
    document_store_close (h->root);
    h->root = NULL;
}

static void check_histories (unsigned n, uint64_t seed)
{
    static struct history h;
    unsigned i;

    for (i = 0; i < n && !h.wrong; i++) {
        state = seed + i;
        run_history (&h);
    }
    ok (!h.wrong,
        "in %u histories (seed %llu) the store has all that was answered, once: %u commits, %u faults, %u takeovers", i,
        (unsigned long long)seed, h.commits, h.faults, h.takeovers);
    ok (h.lost > 0 && h.lost < h.takeovers, "%u commits were lost in takeovers, and others were not", h.lost);
}

int main (int argc, char **argv)
{
    const char *lacks = pg_server_lacks ();

    if (lacks) {
        printf ("1..0 # SKIP %s\n", lacks);
        return 0;
    }
    server = pg_server_start ();
    direct = pg_server_conninfo (server);
    proxy = pg_proxy_start (pg_server_dir (server));
    snprintf (proxied, sizeof (proxied), "host=%s user=postgres dbname=postgres", pg_proxy_host (proxy));
    make_tables ();
    check_cases ();
    check_takeover ();
    check_reading ();
    check_refused ();
    check_copy ();
    check_server ();
    check_large ((size_t)32 << 20);
    check_stop ();
    check_histories (argc > 1 ? (unsigned)atoi (argv[1]) : 8, argc > 2 ? strtoull (argv[2], NULL, 10) : 1);
    pg_proxy_stop (proxy);
    pg_server_destroy (server);
    return done_testing ();
}
