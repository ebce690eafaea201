/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - payloads of the compressor service, and a session of a document
 *
 * Large payloads are put together as text. Nothing needs to be escaped: names and UUIDs have no character that JSON
 * would escape, and ranges are JSON text already.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libcompressor/compressor.h"
#include "libdocument/document.h"
#include "libutil/errprintf.h"

static const char name_characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

int docwire_check_name (const char *name, idt_error_t *errp)
{
    size_t n = strlen (name);

    if (n >= 1 && n <= DOCWIRE_NAME_MAX && strspn (name, name_characters) == n && *name != '.' && *name != '-')
        return 0;
    return errsetf (
        errp, EINVAL,
        "'%.110s' is not a valid name of a document: 1 to 100 letters, digits, '.', '_', '-', not beginning with "
        "'.' or '-'",
        name);
}

int docwire_random_uuid (char text[IDCOMP_UUID_TEXT_MAX])
{
    unsigned char random[16];

    if (getrandom (random, sizeof (random), 0) != sizeof (random))
        return -1;
    struct idcomp_uuid uuid = idcomp_uuid_random (random);
    idcomp_uuid_format (&uuid, text, IDCOMP_UUID_TEXT_MAX);
    return 0;
}

int docwire_get_range (const json_t *o, struct idcomp_range *range, idt_error_t *errp)
{
    char *text = json_dumps (o, JSON_COMPACT | JSON_ENCODE_ANY);
    int rc = text ? idcomp_range_parse (text, strlen (text), range, NULL) : -1;

    if (!text)
        errno = ENOMEM;
    if (rc < 0) {
        errprintf (errp, "%s: %.80s", idcomp_strerror (errno), text ? text : "a range");
        errno = errno == ENOMEM ? ENOMEM : EINVAL;
    }
    free (text);
    return rc;
}

/* --- writing ------------------------------------------------------------------------------------------ */

/* Close a text and return it; NULL if it could not be written completely. */
static char *end_text (FILE *f, char **text)
{
    if (!f || fclose (f) != 0) {
        if (f)
            free (*text);
        return errset_null (ENOMEM);
    }
    return *text;
}

char *docwire_ranges (const char *document, const char *uuid, const uint64_t *digest, int64_t newest, int64_t first,
                      size_t n, const char *(*text_of) (void *arg, int64_t seq), void *arg)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f) {
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",", document, uuid);
        if (newest >= 0)
            fprintf (f, "\"newest\":%lld,", (long long)newest);
        fprintf (f, "\"seq\":%lld,", (long long)first);
        if (digest)
            fprintf (f, "\"digest\":\"" REPLICA_DIGEST "\",", *digest);
        fputs ("\"ranges\":[", f);
        for (size_t i = 0; i < n; i++)
            fprintf (f, "%s%s", i > 0 ? "," : "", text_of (arg, first + (int64_t)i));
        fputs ("]}", f);
    }
    return end_text (f, &text);
}

char *docwire_edit (const char *document, const char *uuid, const char *name)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f && *name)
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",\"name\":\"%s\"}", document, uuid, name);
    else if (f)
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",\"deleted\":true}", document, uuid);
    return end_text (f, &text);
}

static const char *given_text (void *arg, int64_t seq)
{
    return arg;
}

char *docwire_element (const char *document, const char *uuid, uint64_t digest, int64_t seq,
                       const struct idcomp_range *range)
{
    size_t size = idcomp_range_format_size (range);
    char *text = malloc (size), *element = NULL;

    if (text && idcomp_range_format (range, text, size) >= 0)
        element = docwire_ranges (document, uuid, &digest, -1, seq, 1, given_text, text);
    free (text);
    return element;
}

char *docwire_state (const char *document, const char *uuid, int64_t newest, int64_t seq, const void *form, size_t size,
                     size_t offset)
{
    size_t from = offset == DOCWIRE_WHOLE ? 0 : offset, left = size - from;
    size_t n = offset == DOCWIRE_WHOLE || left < DOCWIRE_PIECE ? left : DOCWIRE_PIECE;
    assert (from <= size);
    char *base64 = malloc (IDCOMP_BASE64_TEXT_SIZE (n));
    char *text = NULL;
    size_t text_size;
    FILE *f = base64 ? open_memstream (&text, &text_size) : NULL;

    if (f) {
        idcomp_base64_format ((const char *)form + from, n, base64, IDCOMP_BASE64_TEXT_SIZE (n));
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",\"newest\":%lld,\"seq\":%lld,\"state\":\"%s\"", document,
                 uuid, (long long)newest, (long long)seq, base64);
        if (n < size)
            fprintf (f, ",\"size\":%zu", IDCOMP_BASE64_TEXT_SIZE (size) - 1);
        fputc ('}', f);
    }
    free (base64);
    return end_text (f, &text);
}

/* --- reading a form ----------------------------------------------------------------------------------- */

/* The text of each piece except the last is whole groups of four base64 characters, so each piece is decoded when it
 * arrives.
 */

void pieces_fini (struct pieces *p)
{
    int saved = errno;

    free (p->form);
    *p = (struct pieces){ 0 };
    errno = saved;
}

int pieces_add (struct pieces *p, int64_t seq, const char *text)
{
    size_t len = strlen (text);

    if (seq != p->seq || (int64_t)len > p->whole - p->text || (len == 0 && p->whole > 0))
        return errset (EPROTO);
    ssize_t n = idcomp_base64_parse (text, len, p->form + p->size, p->room - p->size, NULL);
    if (n < 0)
        return -1;
    p->size += (size_t)n;
    p->text += (int64_t)len;
    assert (p->text <= p->whole && p->size <= p->room);
    return 0;
}

int pieces_begin (struct pieces *p, int64_t seq, const char *text, int64_t whole)
{
    pieces_fini (p);
    if (whole == 0)
        whole = (int64_t)strlen (text);
    if (whole < 0 || whole > PIECES_MAX)
        return errset (EFBIG);
    p->room = (size_t)whole / 4 * 3 + 3;
    if (!(p->form = malloc (p->room)))
        return -1;
    p->seq = seq;
    p->whole = whole;
    return pieces_add (p, seq, text);
}

bool pieces_whole (const struct pieces *p)
{
    return p->form && p->text == p->whole;
}

void *docwire_get_form (const char *state, size_t *size)
{
    struct pieces p = { 0 };

    if (pieces_begin (&p, 0, state, 0) < 0)
        pieces_fini (&p);
    *size = p.size;
    return p.form;
}

/* --- a session -------------------------------------------------------------------------------------- */

int docsession_init (struct docsession *s, const char *name, idt_error_t *errp)
{
    *s = (struct docsession){ 0 };
    if (docwire_check_name (name, errp) < 0)
        return -1;
    strcpy (s->name, name);
    return 0;
}

void docsession_fini (struct docsession *s)
{
    pieces_fini (&s->pieces);
    replica_destroy (s->replica);
    s->replica = NULL;
}

/* --- requests --------------------------------------------------------------------------------------- */

bool docsession_in_pieces (const struct docsession *s)
{
    return s->pieces.form != NULL;
}

const char *docsession_topic (const struct docsession *s)
{
    if (s->replica && replica_broken (s->replica))
        return NULL;
    if (docsession_in_pieces (s))
        return "compressor.state";
    if (!s->replica)
        return "compressor.join";
    return s->ask || replica_missing (s->replica) ? "compressor.fetch" : NULL;
}

static json_t *pack_fetch (const struct docsession *s)
{
    char digest[REPLICA_DIGEST_TEXT];

    replica_digest (s->replica, digest);
    return json_pack ("{s:s s:s s:I s:s}", "document", s->name, "uuid", s->uuid, "from",
                      (json_int_t)replica_seq (s->replica) + 1, "digest", digest);
}

static json_t *pack_request (struct docsession *s)
{
    if (docsession_in_pieces (s))
        return json_pack ("{s:s s:s s:I s:I}", "document", s->name, "uuid", s->uuid, "seq", (json_int_t)s->pieces.seq,
                          "offset", (json_int_t)s->pieces.text);
    if (!s->replica)
        return json_pack ("{s:s s:b}", "document", s->name, "behind", 1);
    s->ask = false;
    return pack_fetch (s);
}

char *docsession_request (struct docsession *s)
{
    json_t *o = pack_request (s);
    char *text = o ? json_dumps (o, JSON_COMPACT) : NULL;

    json_decref (o);
    if (!text)
        errno = ENOMEM;
    return text;
}

void docsession_failed (struct docsession *s)
{
    pieces_fini (&s->pieces);
    s->ask = true;
}

bool docsession_is_final (int errnum)
{
    return errnum == EINVAL || errnum == ESTALE || errnum == ENOENT;
}

/* --- stored forms ----------------------------------------------------------------------------------- */

/* Make the replica of a new session from the form that was received. */
static int start (struct docsession *s)
{
    char session[IDCOMP_UUID_TEXT_MAX];

    if (docwire_random_uuid (session) < 0)
        return -1;
    s->replica = replica_create (session, s->pieces.form, s->pieces.size, s->pieces.seq);
    return s->replica ? 0 : -1;
}

static int load (struct docsession *s)
{
    if (replica_load (s->replica, s->pieces.form, s->pieces.size, s->pieces.seq) < 0)
        return -1;
    s->forms++;
    return 0;
}

/* Use the form if it is whole. If it is not, docsession_topic () requests its next piece. 'rc' is the result of adding
 * the last piece.
 */
static int go_on (struct docsession *s, int rc, idt_error_t *errp)
{
    if (rc == 0 && !pieces_whole (&s->pieces))
        return 0;
    if (rc == 0)
        rc = s->replica ? load (s) : start (s);
    if (rc < 0)
        errprintf (errp, "%s", idcomp_strerror (errno));
    pieces_fini (&s->pieces);
    return rc;
}

/* --- ranges ----------------------------------------------------------------------------------------- */

static int take_range (struct docsession *s, int64_t seq, const json_t *o, idt_error_t *errp)
{
    struct idcomp_range range;
    idt_error_t error;

    if (docwire_get_range (o, &range, &error) < 0)
        return errsetf (errp, errno == ENOMEM ? ENOMEM : EPROTO, "%s: range %lld: %s", s->name, (long long)seq,
                        error.text);
    int rc = replica_apply (s->replica, seq, &range);
    idcomp_range_fini (&range);
    if (rc < 0)
        return errprintf (errp, "%s", errno == EPIPE ? replica_broken (s->replica) : strerror (errno));
    s->ranges++;
    return 0;
}

/* Process a list of ranges in order, except ranges that the replica already has. 'seq' is the number of the first range
 * of the list.
 */
static int take_ranges (struct docsession *s, int64_t seq, const json_t *ranges, idt_error_t *errp)
{
    size_t i;
    json_t *o;

    json_array_foreach (ranges, i, o) {
        if (seq + (int64_t)i > replica_seq (s->replica) && take_range (s, seq + (int64_t)i, o, errp) < 0)
            return -1;
    }
    return 0;
}

/* --- responses -------------------------------------------------------------------------------------- */

static int check_uuid (const struct docsession *s, const char *uuid, idt_error_t *errp)
{
    return strcmp (uuid, s->uuid) == 0 ? 0 : errsetf (errp, ESTALE, "another document has its name now");
}

/* Take the document's name from a response, since the document may have been renamed. */
static int take_name (struct docsession *s, const char *name, idt_error_t *errp)
{
    if (strcmp (name, s->name) == 0)
        return 0;
    if (docwire_check_name (name, errp) < 0)
        return errset (EPROTO);
    strcpy (s->name, name);
    return 0;
}

static int take_piece (struct docsession *s, const json_t *answer, idt_error_t *errp)
{
    const char *state;
    json_int_t seq;

    if (json_unpack ((json_t *)answer, "{s:I s:s}", "seq", &seq, "state", &state) < 0)
        return errsetf (errp, EPROTO, "the response is not a piece of a stored form");
    return go_on (s, pieces_add (&s->pieces, seq, state), errp);
}

static int take_joined (struct docsession *s, const json_t *answer, idt_error_t *errp)
{
    const char *uuid, *state;
    json_int_t seq, size = 0;

    if (json_unpack ((json_t *)answer, "{s:s s:I s:s s?I}", "uuid", &uuid, "seq", &seq, "state", &state, "size", &size)
            < 0
        || strlen (uuid) >= sizeof (s->uuid))
        return errsetf (errp, EPROTO, "the response has no stored form of a document");
    strcpy (s->uuid, uuid);
    int rc = pieces_begin (&s->pieces, seq, state, size);
    s->ask = rc == 0 && !pieces_whole (&s->pieces); /* no event is processed until all pieces have arrived */
    return go_on (s, rc, errp);
}

static int take_fetched (struct docsession *s, const json_t *answer, idt_error_t *errp)
{
    const char *name = s->name, *uuid, *state = NULL;
    json_int_t newest, seq, size = 0;
    json_t *ranges = NULL;

    if (json_unpack ((json_t *)answer, "{s?s s:s s:I s:I s?o s?s s?I}", "document", &name, "uuid", &uuid, "newest",
                     &newest, "seq", &seq, "ranges", &ranges, "state", &state, "size", &size)
            < 0
        || !(ranges || state))
        return errsetf (errp, EPROTO, "the response has neither ranges nor a stored form");
    if (check_uuid (s, uuid, errp) < 0 || take_name (s, name, errp) < 0)
        return -1;
    replica_heard (s->replica, newest);
    return state ? go_on (s, pieces_begin (&s->pieces, seq, state, size), errp) : take_ranges (s, seq, ranges, errp);
}

int docsession_take (struct docsession *s, const json_t *answer, idt_error_t *errp)
{
    if (docsession_in_pieces (s))
        return take_piece (s, answer, errp);
    return s->replica ? take_fetched (s, answer, errp) : take_joined (s, answer, errp);
}

/* --- events ----------------------------------------------------------------------------------------- */

/* Whether ranges continue from the replica's state. If they do not, there are three possible reasons: the replica
 * already has them, ranges before them are missing, or they belong to another history. In all three cases the session
 * asks rank 0.
 */
static bool continues (struct docsession *s, int64_t seq, const char *digest)
{
    char ours[REPLICA_DIGEST_TEXT];

    replica_digest (s->replica, ours);
    if (seq == replica_seq (s->replica) + 1 && (!digest || strcmp (digest, ours) == 0))
        return true;
    s->ask = true;
    return false;
}

int docsession_hear (struct docsession *s, const json_t *event, idt_error_t *errp)
{
    const char *name, *uuid, *digest = NULL;
    json_int_t seq = 0;
    json_t *ranges = NULL;

    if (json_unpack ((json_t *)event, "{s:s s:s s?I s?s s?o}", "document", &name, "uuid", &uuid, "seq", &seq, "digest",
                     &digest, "ranges", &ranges)
            < 0
        || (ranges && seq < 1))
        return errsetf (errp, EPROTO, "the event is not one of a document");
    if (!s->replica)
        return 0;
    bool same_name = strcmp (name, s->name) == 0, same_uuid = strcmp (uuid, s->uuid) == 0;
    if (same_name != same_uuid || (same_uuid && !ranges))
        s->ask = true;
    if (!same_name || !same_uuid || !ranges)
        return 0;
    int rc = continues (s, seq, digest) ? take_ranges (s, seq, ranges, errp) : 0, saved = errno;
    replica_heard (s->replica, seq + (int64_t)json_array_size (ranges) - 1);
    errno = saved;
    return rc;
}

/* --- announcements ---------------------------------------------------------------------------------- */

char *docsession_announcement (const struct docsession *s, const struct idcomp_range *range)
{
    uint64_t digest = compressor_digest (replica_ids (s->replica));

    return docwire_element (s->name, s->uuid, digest, replica_seq (s->replica), range);
}
