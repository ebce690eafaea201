/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_pg.c - the documents of an instance in PostgreSQL (root.store)
 *
 *   idtree.documents  id, name, uuid, seq, owner, form: the stored form with ranges 1 ... seq finalized
 *   idtree.ranges     document, seq, text: later ranges
 *
 * A commit is one fenced write, whose parameters are arrays. Several parts of a statement see the same rows and run in
 * no order, so no row is named by two of them: a document that gets a form gets its new name with it.
 *
 * What was read counts after a write that changes nothing but the fence. It proves that no other root wrote while the
 * documents were read, and that they are on a second server, even if the first one was replaced meanwhile.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libpg/fenced.h"
#include "libutil/errprintf.h"
#include "modules/compressor/root/document_backend.h"

/* PostgreSQL takes no message of 1 GiB. A part is left for the statement, and for what is read with a form. */
#define COMMIT_BYTES (((size_t)1 << 30) - ((size_t)1 << 20))
#define ITEM_BYTES 64 /* at most, of a document or a range without its form and text */

#define READ_BYTES ((size_t)16 << 20) /* forms that are read at a time, unless one is larger */
#define READ_RANGES 1024

#define ADVICE "ranks with open documents can save them; see A STANDBY FOR RANK 0 in idtree-operations(7)"

/* Columns of arrays, in the order of the parameters: documents with a form; up to which range rows are dropped, where
 * INT64_MAX means the document, too; ranges; documents with a new name only.
 */
enum column {
    PUT_ID,
    PUT_NAME,
    PUT_UUID,
    PUT_SEQ,
    PUT_OWNER,
    PUT_FORM,
    DROP_ID,
    DROP_SEQ,
    RANGE_DOCUMENT,
    RANGE_SEQ,
    RANGE_TEXT,
    NAME_ID,
    NAME_NAME,
    COLUMNS
};

_Static_assert(FENCED_FIRST == 4 && FENCED_FIRST - 1 + COLUMNS <= PG_PARAMS_MAX, "a statement names $4 to $16");

static const enum pg_type types[COLUMNS] = {
    [PUT_ID] = PG_INT8,         [PUT_NAME] = PG_TEXT,  [PUT_UUID] = PG_TEXT,   [PUT_SEQ] = PG_INT8,
    [PUT_OWNER] = PG_INT8,      [PUT_FORM] = PG_BYTEA, [DROP_ID] = PG_INT8,    [DROP_SEQ] = PG_INT8,
    [RANGE_DOCUMENT] = PG_INT8, [RANGE_SEQ] = PG_INT8, [RANGE_TEXT] = PG_TEXT, [NAME_ID] = PG_INT8,
    [NAME_NAME] = PG_TEXT,
};

#define FENCE_ONLY " SELECT serial FROM fence"

/* The statement that most commits need. */
#define RANGES_ONLY                                               \
    ", added AS (INSERT INTO idtree.ranges (document, seq, text)" \
    " SELECT r.* FROM fence, unnest ($4::bigint[], $5::bigint[], $6::text[]) AS r)" FENCE_ONLY

#define ALL                                                                                                         \
    ", put AS (INSERT INTO idtree.documents AS d (id, name, uuid, seq, owner, form) SELECT p.* FROM fence,"         \
    " unnest ($4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bytea[]) AS p"                  \
    " ON CONFLICT (id) DO UPDATE SET name = excluded.name, uuid = excluded.uuid, seq = excluded.seq,"               \
    " owner = coalesce (excluded.owner, d.owner), form = excluded.form),"                                           \
    " dropped AS (DELETE FROM idtree.ranges AS r USING fence, unnest ($10::bigint[], $11::bigint[]) AS u (id, seq)" \
    " WHERE r.document = u.id AND r.seq <= u.seq),"                                                                 \
    " deleted AS (DELETE FROM idtree.documents AS d USING fence, unnest ($10::bigint[], $11::bigint[])"             \
    " AS u (id, seq) WHERE d.id = u.id AND u.seq = 9223372036854775807),"                                           \
    " added AS (INSERT INTO idtree.ranges (document, seq, text)"                                                    \
    " SELECT r.* FROM fence, unnest ($12::bigint[], $13::bigint[], $14::text[]) AS r),"                             \
    " named AS (UPDATE idtree.documents AS d SET name = n.name FROM fence,"                                         \
    " unnest ($15::bigint[], $16::text[]) AS n (id, name) WHERE d.id = n.id)" FENCE_ONLY

struct document_pg {
    char *uuid; /* of the instance */
    struct fenced *fenced;
};

/* Another root is no error of a document. A session would take ESTALE for one. */
static int failed (int errnum)
{
    errno = errnum == ESTALE ? EAGAIN : errnum == EAGAIN ? EIO : errnum;
    return -1;
}

/* --- writing -------------------------------------------------------------------------------------------- */

struct columns {
    struct pg_array a[COLUMNS];
};

static void put_text (struct pg_array *a, const char *text)
{
    pg_array_bytes (a, text, strlen (text));
}

static void drop_rows (struct columns *c, int64_t id, int64_t seq)
{
    pg_array_int (&c->a[DROP_ID], id);
    pg_array_int (&c->a[DROP_SEQ], seq);
}

static void put_document (struct columns *c, const struct document_store_document *doc, const char *name)
{
    pg_array_int (&c->a[PUT_ID], doc->id);
    put_text (&c->a[PUT_NAME], name);
    put_text (&c->a[PUT_UUID], doc->uuid);
    pg_array_int (&c->a[PUT_SEQ], doc->seq);
    if (doc->owner == IDT_USERID_UNKNOWN)
        pg_array_null (&c->a[PUT_OWNER]);
    else
        pg_array_int (&c->a[PUT_OWNER], doc->owner);
    pg_array_bytes (&c->a[PUT_FORM], doc->form, doc->form_size);
    drop_rows (c, doc->id, doc->seq);
}

static void rename_document (struct columns *c, int64_t id, const char *name)
{
    pg_array_int (&c->a[NAME_ID], id);
    put_text (&c->a[NAME_NAME], name);
}

static void put_change (struct columns *c, const struct document_store_change *change)
{
    const struct document_store_document *doc = &change->document;

    if (change->deleted) {
        drop_rows (c, doc->id, INT64_MAX);
        return;
    }
    if (doc->form)
        put_document (c, doc, change->new_name ? change->new_name : doc->name);
    else if (change->new_name)
        rename_document (c, doc->id, change->new_name);
    for (size_t i = document_change_skip (change); i < change->nranges; i++) {
        pg_array_int (&c->a[RANGE_DOCUMENT], doc->id);
        pg_array_int (&c->a[RANGE_SEQ], change->first + (int64_t)i);
        put_text (&c->a[RANGE_TEXT], change->ranges[i]);
    }
}

static size_t count_bytes (const struct document_store_change *changes, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++) {
        const struct document_store_change *c = &changes[i];

        bytes += ITEM_BYTES * (c->nranges + 4) + (c->document.form ? c->document.form_size : 0);
        for (size_t j = document_change_skip (c); !c->deleted && j < c->nranges; j++)
            bytes += strlen (c->ranges[j]);
    }
    return bytes;
}

/* Run the shortest statement that has all parts. */
static int write_columns (struct document_pg *st, struct columns *c, idt_error_t *errp)
{
    bool all = c->a[PUT_ID].count > 0 || c->a[DROP_ID].count > 0 || c->a[NAME_ID].count > 0,
         ranges = c->a[RANGE_SEQ].count > 0;
    struct pg_params p;

    fenced_params (st->fenced, &p);
    for (int i = 0; i < COLUMNS; i++)
        if (all || (ranges && i >= RANGE_DOCUMENT && i <= RANGE_TEXT))
            pg_put_array (&p, &c->a[i]);
    return fenced_write (st->fenced, all ? ALL : ranges ? RANGES_ONLY : FENCE_ONLY, &p, NULL, errp);
}

static int pg_write (void *b, const struct document_store_change *changes, size_t n, idt_error_t *errp)
{
    size_t bytes = count_bytes (changes, n);
    struct columns c;

    if (bytes > COMMIT_BYTES)
        return errsetf (errp, EFBIG,
                        "documents: a commit of %zu bytes is larger than PostgreSQL takes, %zu bytes: reload the "
                        "compressor of rank 0, which gives up the requests of that commit",
                        bytes, COMMIT_BYTES);
    for (int i = 0; i < COLUMNS; i++)
        pg_array_init (&c.a[i], types[i]);
    for (size_t i = 0; i < n; i++)
        put_change (&c, &changes[i]);
    int rc = write_columns (b, &c, errp), saved = errno;
    for (int i = 0; i < COLUMNS; i++)
        pg_array_fini (&c.a[i]);
    return rc < 0 ? failed (saved) : 0;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* Ranges of all documents, in order, a page at a time. */
struct range_pages {
    struct pg_rows rows;
    int at;                /* row of the next range */
    int64_t document, seq; /* the last range that was read */
};

static int64_t next_document (const struct range_pages *r)
{
    return r->at < r->rows.count ? pg_int (&r->rows, r->at, 0) : INT64_MAX;
}

static int read_page (struct document_pg *st, struct range_pages *r, idt_error_t *errp)
{
    struct pg_params p;

    pg_rows_free (&r->rows);
    r->at = 0;
    fenced_params (st->fenced, &p);
    pg_put_int (&p, r->document);
    pg_put_int (&p, r->seq);
    pg_put_int (&p, READ_RANGES);
    return fenced_read (st->fenced,
                        "SELECT document, seq, text FROM idtree.ranges WHERE (document, seq) > ($4, $5)"
                        " AND " FENCED_HOLDS " ORDER BY document, seq LIMIT $6",
                        &p, &r->rows, errp);
}

/* Go to the next range; its document is INT64_MAX after the last one. */
static int next_range (struct document_pg *st, struct range_pages *r, idt_error_t *errp)
{
    r->document = pg_int (&r->rows, r->at, 0);
    r->seq = pg_int (&r->rows, r->at, 1);
    if (++r->at < r->rows.count || r->rows.count < READ_RANGES)
        return 0;
    return read_page (st, r, errp);
}

static int read_ranges (struct document_pg *st, const struct document_store_document *doc, struct range_pages *r,
                        const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    int64_t expected = doc->seq;

    while (next_document (r) <= doc->id) {
        if (next_document (r) == doc->id) {
            if (pg_int (&r->rows, r->at, 1) != ++expected)
                return errsetf (errp, EBADMSG, "PostgreSQL %s: damaged (range %lld of document %s is missing): " ADVICE,
                                fenced_server (st->fenced), (long long)expected, doc->name);
            if (reader->range (arg, expected, pg_bytes (&r->rows, r->at, 2, NULL), errp) < 0)
                return -1;
        }
        if (next_range (st, r, errp) < 0)
            return -1;
    }
    return 0;
}

static int take_documents (struct document_pg *st, const struct pg_rows *rows, struct range_pages *r,
                           const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    for (int i = 0; i < rows->count; i++) {
        struct document_store_document doc = {
            .id = pg_int (rows, i, 0),
            .name = pg_bytes (rows, i, 1, NULL),
            .uuid = pg_bytes (rows, i, 2, NULL),
            .seq = pg_int (rows, i, 3),
            .owner = pg_is_null (rows, i, 4) ? IDT_USERID_UNKNOWN : (uint32_t)pg_int (rows, i, 4),
        };
        doc.form = pg_bytes (rows, i, 5, &doc.form_size);
        if (reader->document (arg, &doc, errp) < 0 || read_ranges (st, &doc, r, reader, arg, errp) < 0)
            return -1;
    }
    return 0;
}

/* Read the documents from 'first' to 'last', with their ranges. */
static int read_between (struct document_pg *st, int64_t first, int64_t last, struct range_pages *r,
                         const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    struct pg_params p;
    struct pg_rows rows;

    fenced_params (st->fenced, &p);
    pg_put_int (&p, first);
    pg_put_int (&p, last);
    if (fenced_read (st->fenced,
                     "SELECT id, name, uuid, seq, owner, form FROM idtree.documents WHERE id BETWEEN $4 AND $5"
                     " AND " FENCED_HOLDS " ORDER BY id",
                     &p, &rows, errp)
        < 0)
        return -1;
    int rc = take_documents (st, &rows, r, reader, arg, errp), saved = errno;
    pg_rows_free (&rows);
    errno = saved;
    return rc;
}

/* Read all documents, whose ids and sizes of forms are 'sizes': several at a time, as far as their forms are small. */
static int read_by_size (struct document_pg *st, const struct pg_rows *sizes, struct range_pages *r,
                         const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    for (int i = 0, next; i < sizes->count; i = next) {
        size_t bytes = 0;

        for (next = i; next < sizes->count && (next == i || bytes + (size_t)pg_int (sizes, next, 1) <= READ_BYTES);
             next++)
            bytes += (size_t)pg_int (sizes, next, 1);
        if (read_between (st, pg_int (sizes, i, 0), pg_int (sizes, next - 1, 0), r, reader, arg, errp) < 0)
            return -1;
    }
    return 0;
}

static int read_all (struct document_pg *st, const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    struct range_pages r = { 0 };
    struct pg_params p;
    struct pg_rows sizes;

    fenced_params (st->fenced, &p);
    if (fenced_read (st->fenced,
                     "SELECT id, octet_length (form) FROM idtree.documents WHERE " FENCED_HOLDS " ORDER BY id", &p,
                     &sizes, errp)
        < 0)
        return -1;
    int rc = read_page (st, &r, errp);
    if (rc == 0)
        rc = read_by_size (st, &sizes, &r, reader, arg, errp);
    int saved = errno;
    pg_rows_free (&r.rows);
    pg_rows_free (&sizes);
    errno = saved;
    return rc;
}

static int pg_read (void *b, const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    struct document_pg *st = b;
    struct pg_params p;

    if (read_all (st, reader, arg, errp) < 0)
        return failed (errno);
    fenced_params (st->fenced, &p);
    return fenced_write (st->fenced, FENCE_ONLY, &p, NULL, errp) < 0 ? failed (errno) : 0;
}

/* --- open, stop and close --------------------------------------------------------------------------------- */

static int pg_open_store (void *b, idt_error_t *errp)
{
    struct document_pg *st = b;

    return fenced_take (st->fenced, errp) < 0 ? failed (errno) : 0;
}

static void pg_stop_store (void *b)
{
    fenced_stop (((struct document_pg *)b)->fenced);
}

static void pg_late (void *b, uint64_t ms, idt_error_t *why)
{
    struct document_pg *st = b;
    idt_error_t last = { "" };
    bool unsure = fenced_is_unsure (st->fenced, &last);

    errprintf (why, "documents: PostgreSQL has not answered" DOCUMENT_LATE "%s%.300s", (unsigned long long)ms,
               unsure ? ": " : "", last.text);
}

static int64_t pg_copied (const void *b)
{
    return 0;
}

static void pg_close_store (void *b)
{
    struct document_pg *st = b;

    fenced_close (st->fenced);
    free (st->uuid);
    free (st);
}

static void *pg_create (const struct module_place *place, const char *holder)
{
    struct document_pg *st = calloc (1, sizeof (*st));
    struct fenced_config config = {
        .conninfo = place->store, .store = "documents", .term = place->term, .trust = place->trust
    };

    if (!st)
        return NULL;
    config.uuid = st->uuid = strdup (place->uuid);
    if (st->uuid && (st->fenced = fenced_create (&config, NULL)))
        return st;
    pg_close_store (st);
    return NULL;
}

const struct document_backend document_pg = {
    .create = pg_create,
    .open = pg_open_store,
    .read = pg_read,
    .write = pg_write,
    .stop = pg_stop_store,
    .late = pg_late,
    .copied = pg_copied,
    .close = pg_close_store,
};
