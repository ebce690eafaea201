/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* session_test.c - sessions of a document, with rank 0 in the test: all messages pass through document.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdocument/document.h"
#include "test/tap.h"

#define NAME "drawing"
#define UUID "6a0b79c1-7c4f-4c5b-9f3e-0123456789ab"
#define OTHER_UUID "6a0b79c1-7c4f-4c5b-9f3e-0123456789ac"
#define RANGES_MAX 16
#define WHOLE SIZE_MAX

/* --- rank 0 ----------------------------------------------------------------------------------------- */

static struct idcomp *ordered;
static char *ranges[RANGES_MAX];
static int64_t newest;

static void root_begin (void)
{
    if (!(ordered = idcomp_create ("00000000-0000-4000-8000-000000000000", IDCOMP_ORDERER)))
        bail_out ("out of memory");
    newest = 0;
}

static void root_end (void)
{
    while (newest > 0)
        free (ranges[--newest]);
    idcomp_destroy (ordered);
}

static json_t *parse_new (char *text)
{
    json_t *o = text ? json_loads (text, 0, NULL) : NULL;

    if (!o)
        bail_out ("the text is not JSON");
    free (text);
    return o;
}

static const char *range_text (void *arg, int64_t seq)
{
    return ranges[seq - 1];
}

static json_t *some_ranges (const char *uuid, int64_t first, size_t n)
{
    return parse_new (docwire_ranges (NAME, uuid, NULL, newest, first, n, range_text, NULL));
}

static json_t *ranges_from (const char *uuid, int64_t first)
{
    return some_ranges (uuid, first, (size_t)(newest + 1 - first));
}

/* The stored form, or a piece of it: 'n' bytes from 'offset' on; WHOLE: all. */
static json_t *form (size_t offset, size_t n)
{
    size_t size = idcomp_save_size (ordered, IDCOMP_WITHOUT_LOCAL);
    unsigned char *bytes = malloc (size);

    if (!bytes || idcomp_save (ordered, IDCOMP_WITHOUT_LOCAL, bytes, size) < 0)
        bail_out ("save");
    n = n < size - offset ? n : size - offset;
    json_t *o = parse_new (docwire_state (NAME, UUID, newest, newest, bytes + offset, n, 0));
    if (n < size)
        json_object_set_new (o, "size", json_integer ((json_int_t)IDCOMP_BASE64_TEXT_SIZE (size) - 1));
    free (bytes);
    return o;
}

/* Order the range that a session announces. */
static void order (struct docsession *s)
{
    const struct idcomp_range *range = replica_announce (s->replica);
    json_t *o = range ? parse_new (docsession_announcement (s, range)) : NULL;
    struct idcomp_range ours;

    if (!o || docwire_get_range (json_array_get (json_object_get (o, "ranges"), 0), &ours, NULL) < 0
        || idcomp_finalize (ordered, &ours) < 0 || newest == RANGES_MAX)
        bail_out ("order");
    idcomp_range_fini (&ours);
    ranges[newest++] = json_dumps (json_array_get (json_object_get (o, "ranges"), 0), JSON_COMPACT);
    json_decref (o);
}

/* --- sessions --------------------------------------------------------------------------------------- */

static int take_new (struct docsession *s, json_t *answer)
{
    int rc = docsession_take (s, answer, NULL), saved = errno;

    json_decref (answer);
    errno = saved;
    return rc;
}

static int hear_new (struct docsession *s, json_t *event)
{
    int rc = docsession_hear (s, event, NULL), saved = errno;

    json_decref (event);
    errno = saved;
    return rc;
}

static bool asks (const struct docsession *s, const char *topic)
{
    const char *t = docsession_topic (s);

    return topic ? t && strcmp (t, topic) == 0 : !t;
}

/* Make the request. Returns the number at 'key' in it; -1: it has no such key. */
static int64_t request_number (struct docsession *s, const char *key)
{
    json_t *o = parse_new (docsession_request (s)), *n = json_object_get (o, key);
    int64_t value = n ? json_integer_value (n) : -1;

    json_decref (o);
    return value;
}

static void join (struct docsession *s)
{
    if (docsession_init (s, NAME, NULL) < 0 || take_new (s, form (0, WHOLE)) < 0)
        bail_out ("join");
}

static void make (struct docsession *s, int n)
{
    int64_t id;

    while (n-- > 0)
        if (idcomp_generate (replica_ids (s->replica), &id) < 0)
            bail_out ("generate");
}

/* --- tests ------------------------------------------------------------------------------------------ */

static void check_joining (void)
{
    struct docsession s;
    idt_error_t error;

    root_begin ();
    ok (docsession_init (&s, "a b", &error) < 0 && errno == EINVAL && *error.text,
        "a session of a document needs a valid name of the document");
    ok (docsession_init (&s, NAME, NULL) == 0 && asks (&s, "compressor.join"),
        "the first request of a session joins the document");
    ok (request_number (&s, "from") == -1 && hear_new (&s, ranges_from (UUID, 1)) == 0 && !s.replica,
        "events that arrive before the form are ignored, because the form contains their ranges");
    ok (take_new (&s, json_pack ("{s:i}", "seq", 0)) < 0 && errno == EPROTO && !s.replica,
        "a response to a join without a form is refused");
    ok (take_new (&s, form (0, WHOLE)) == 0 && s.replica && strcmp (s.uuid, UUID) == 0 && asks (&s, NULL),
        "a response with the whole form creates the replica, and no range is missing");
    docsession_fini (&s);
    root_end ();
}

static void check_pieces (void)
{
    struct docsession a, s;

    root_begin ();
    join (&a);
    make (&a, 5);
    order (&a);
    ok (docsession_init (&s, NAME, NULL) == 0 && take_new (&s, form (0, 30)) == 0 && docsession_in_pieces (&s)
            && asks (&s, "compressor.state") && request_number (&s, "offset") == 40,
        "a form in pieces is requested piece by piece");
    docsession_failed (&s);
    ok (asks (&s, "compressor.join"),
        "if rank 0 no longer has the stored form that a session reads in pieces, the session joins again");
    ok (take_new (&s, form (0, 30)) == 0 && take_new (&s, form (30, WHOLE)) == 0 && replica_seq (s.replica) == 1,
        "the last piece of a form creates the replica");
    ok (asks (&s, "compressor.fetch") && request_number (&s, "from") == 2 && asks (&s, NULL),
        "after the last piece of a form, the ranges that were ordered meanwhile are requested once");
    docsession_fini (&a);
    docsession_fini (&s);
    root_end ();
}

static void check_order (void)
{
    struct docsession a, b;

    root_begin ();
    join (&a);
    join (&b);
    make (&a, 3);
    order (&a);
    ok (hear_new (&a, ranges_from (UUID, 1)) == 0 && replica_settled (a.replica) && asks (&a, NULL) && a.ranges == 1,
        "a session has settled when its own range arrives");
    make (&a, 600);
    order (&a);
    ok (hear_new (&b, ranges_from (UUID, 2)) == 0 && replica_seq (b.replica) == 0 && asks (&b, "compressor.fetch")
            && request_number (&b, "from") == 1,
        "a session that missed a range requests ranges from that one on");
    ok (take_new (&b, some_ranges (UUID, 1, 1)) == 0 && replica_seq (b.replica) == 1 && asks (&b, "compressor.fetch"),
        "a session sends another request if the response has fewer ranges than exist");
    ok (take_new (&b, ranges_from (UUID, 1)) == 0 && replica_seq (b.replica) == 2 && asks (&b, NULL) && b.ranges == 2,
        "when the next response has the remaining ranges, a range that is already known is not processed again");
    ok (hear_new (&b, ranges_from (UUID, 1)) == 0 && replica_seq (b.replica) == 2 && b.ranges == 2,
        "a known range in an event is not processed again");
    docsession_fini (&a);
    docsession_fini (&b);
    root_end ();
}

static void check_answer (void)
{
    struct docsession a, b;

    root_begin ();
    join (&a);
    join (&b);
    make (&a, 3);
    order (&a);
    ok (hear_new (&a, ranges_from (UUID, 1)) == 0, "a session accepts an event with one range");
    make (&a, 600);
    order (&a);
    b.ask = true;
    ok (request_number (&b, "from") == 1 && take_new (&b, some_ranges (UUID, 1, 1)) == 0
            && asks (&b, "compressor.fetch") && request_number (&b, "from") == 2,
        "a session that gets some ranges requests further ones up to the newest number in the response");
    docsession_fini (&a);
    docsession_fini (&b);
    root_end ();
}

static void check_form (void)
{
    struct docsession a, b;

    root_begin ();
    join (&a);
    join (&b);
    make (&a, 3);
    order (&a);
    make (&b, 2);
    b.ask = true;
    ok (request_number (&b, "from") == 1 && take_new (&b, form (0, 30)) == 0 && asks (&b, "compressor.state")
            && take_new (&b, form (30, WHOLE)) == 0 && replica_seq (b.replica) == 1 && b.forms == 1,
        "a session that is far behind loads a form");
    ok (asks (&b, NULL) && !replica_settled (b.replica), "a session that loaded a form keeps its own ids");
    b.ask = true;
    ok (request_number (&b, "from") == 2 && take_new (&b, form (0, 30)) == 0
            && hear_new (&a, ranges_from (UUID, 1)) == 0,
        "a session accepts the first piece of another form");
    make (&a, 600);
    order (&a);
    ok (take_new (&b, form (30, WHOLE)) < 0 && errno == EPROTO && !docsession_in_pieces (&b),
        "a piece of a different form is refused, and the earlier pieces are dropped");
    docsession_fini (&a);
    docsession_fini (&b);
    root_end ();
}

static void check_strangers (void)
{
    struct docsession a, b;
    json_t *event;

    root_begin ();
    join (&a);
    join (&b);
    make (&a, 3);
    order (&a);
    ok (hear_new (&b, ranges_from (OTHER_UUID, 1)) == 0 && replica_seq (b.replica) == 0 && asks (&b, "compressor.fetch")
            && request_number (&b, "from") == 1 && take_new (&b, ranges_from (OTHER_UUID, 1)) < 0 && errno == ESTALE
            && replica_seq (b.replica) == 0,
        "after an event of another document of the same name a session changes nothing and asks rank 0");
    event = ranges_from (UUID, 1);
    json_object_set_new (event, "digest", json_string ("0123456789abcdef"));
    ok (hear_new (&b, event) == 0 && replica_seq (b.replica) == 0 && asks (&b, "compressor.fetch"),
        "after an event with ranges of another history a session processes none of them and asks rank 0");
    docsession_fini (&b);
    join (&b);
    event = ranges_from (OTHER_UUID, 1);
    json_object_set_new (event, "document", json_string ("drawing2"));
    ok (hear_new (&b, event) == 0 && asks (&b, NULL),
        "events of a document whose name begins with this document's name are ignored");
    docsession_fini (&a);
    docsession_fini (&b);
    root_end ();
}

static void check_edits (void)
{
    struct docsession a, b;
    json_t *answer;

    root_begin ();
    join (&a);
    join (&b);
    ok (hear_new (&b, parse_new (docwire_edit (NAME, OTHER_UUID, ""))) == 0 && asks (&b, "compressor.fetch")
            && request_number (&b, "from") == 1 && take_new (&b, ranges_from (UUID, 1)) == 0 && asks (&b, NULL),
        "after the deletion of another document of the same name a session changes nothing");
    ok (hear_new (&b, parse_new (docwire_edit (NAME, UUID, "plan"))) == 0 && asks (&b, "compressor.fetch")
            && strcmp (b.name, NAME) == 0 && request_number (&b, "from") == 1,
        "after an event that its document has a new name, a session asks rank 0");
    make (&a, 3);
    order (&a);
    answer = ranges_from (UUID, 1);
    json_object_set_new (answer, "document", json_string ("plan"));
    ok (take_new (&b, answer) == 0 && strcmp (b.name, "plan") == 0 && strcmp (b.uuid, UUID) == 0
            && replica_seq (b.replica) == 1 && asks (&b, NULL),
        "a session continues under the new name of its document that rank 0 returns");
    ok (hear_new (&b, ranges_from (OTHER_UUID, 1)) == 0 && asks (&b, NULL),
        "after its document got a new name, a session ignores events of another document with the old name");
    answer = ranges_from (UUID, 1);
    json_object_set_new (answer, "document", json_string ("/"));
    ok (take_new (&b, answer) < 0 && errno == EPROTO && strcmp (b.name, "plan") == 0,
        "a response with an invalid new name of the document is refused");
    ok (hear_new (&a, parse_new (docwire_edit (NAME, UUID, ""))) == 0 && asks (&a, "compressor.fetch")
            && !replica_broken (a.replica),
        "after an event that its document was deleted, a session asks rank 0");
    docsession_fini (&a);
    docsession_fini (&b);
    root_end ();
}

static void check_malformed (void)
{
    struct docsession s;
    idt_error_t error;

    root_begin ();
    join (&s);
    json_t *event = json_pack ("{s:s s:s s:i s:[i]}", "document", NAME, "uuid", UUID, "seq", 1, "ranges", 7);
    ok (docsession_hear (&s, event, &error) < 0 && errno == EPROTO && strstr (error.text, "range 1"),
        "an invalid range in an event is reported: %s", error.text);
    ok (asks (&s, "compressor.fetch"), "an invalid range in an event is requested again");
    json_object_set_new (event, "seq", json_integer (0));
    ok (hear_new (&s, event) < 0 && errno == EPROTO, "an event with range number 0 is refused");
    ok (take_new (&s, json_pack ("{s:s s:i s:i}", "uuid", UUID, "newest", 1, "seq", 1)) < 0 && errno == EPROTO,
        "a response without ranges and without a form is refused");
    replica_break (s.replica, "a contradiction was found");
    ok (asks (&s, NULL), "a session whose replica is broken makes no request");
    docsession_fini (&s);
    root_end ();
}

int main (void)
{
    check_joining ();
    check_pieces ();
    check_order ();
    check_answer ();
    check_form ();
    check_strangers ();
    check_edits ();
    check_malformed ();
    return done_testing ();
}
