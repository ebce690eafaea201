/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* health_eval.c - grade the health of a broker by its answers */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/inspect/health_eval.h"
#include "libutil/text.h"

#define WHY_MAX 512
#define STILL_MAX_MS 15000 /* limit of a standing watermark; a healthy one advances each second */
#define AHEAD_LEASES 4     /* limit of rank 0's clock debt, in leases: half of the largest debt */

const char *grade_name (enum grade grade)
{
    static const char *const names[] = { "good", "degraded", "critical" };

    return names[grade];
}

void health_eval_begin (struct judgement *j, uint32_t rank, uint64_t lease_ms)
{
    *j = (struct judgement){ .rank = rank, .lease_ms = lease_ms, .reasons = json_array () };
}

void health_eval_add (struct judgement *j, enum grade grade, const char *what, const char *fmt, ...)
{
    char why[WHY_MAX];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (why, sizeof (why), fmt, ap);
    va_end (ap);
    json_t *reason = json_pack ("{s:s s:s s:s}", "status", grade_name (grade), "what", what, "why", why);
    if (grade > j->grade) {
        json_array_insert_new (j->reasons, 0, reason);
        j->grade = grade;
    }
    else
        json_array_append_new (j->reasons, reason);
}

static const char *text_of (const json_t *o, const char *key)
{
    const char *s = json_string_value (json_object_get (o, key));

    return s ? s : "";
}

/* Return a time in ms.  A timestamp may be a text, because it may have 64 bits. */
static int64_t ms_of (const json_t *value)
{
    const char *s = json_string_value (value);

    return s ? (int64_t)strtoull (s, NULL, 10) : json_integer_value (value);
}

static void health_eval_state (struct judgement *j, const json_t *answer)
{
    const char *state = text_of (answer, "state");

    if (strcmp (state, "run") != 0)
        health_eval_add (j, GRADE_DEGRADED, "broker", "rank %" PRIu32 " is in state %s", j->rank, state);
}

/* Write the ranks of the children that have this status into 'buf', as a set.  Returns the number of these children. */
static size_t children_in (const json_t *answer, const char *status, char *buf, size_t size)
{
    const json_t *children = json_object_get (answer, "children");
    uint32_t *ranks = calloc (json_array_size (children) + 1, sizeof (ranks[0]));
    size_t n = 0;

    for (size_t i = 0; ranks && i < json_array_size (children); i++) {
        const json_t *child = json_array_get (children, i);

        if (!strcmp (text_of (child, "status"), status))
            ranks[n++] = (uint32_t)json_integer_value (json_object_get (child, "rank"));
    }
    char *set = n > 0 ? ranges_format (ranks, n) : NULL;
    snprintf (buf, size, "%s", set ? set : "");
    free (set);
    free (ranks);
    return n;
}

/* Return the grade for missing ranks.  It is good if broker.quorum is reached: missing ranks are then only named. */
static enum grade health_eval_quorum (struct judgement *j, const json_t *answer)
{
    int64_t joined = json_integer_value (json_object_get (answer, "joined"));
    int64_t quorum = json_integer_value (json_object_get (answer, "quorum"));

    if (joined < quorum)
        health_eval_add (j, GRADE_DEGRADED, "quorum",
                         "%" PRId64 " ranks have joined, and %" PRId64 " must (broker.quorum)", joined, quorum);
    return quorum > 0 && joined >= quorum ? GRADE_GOOD : GRADE_DEGRADED;
}

static void health_eval_tree (struct judgement *j, const json_t *answer)
{
    static const struct {
        const char *status, *says;
    } kinds[] = {
        { "lost", "lost" },
        { "offline", "offline" },
        { "degraded", "online, but have lost ranks below" },
        { "partial", "online, but ranks below are offline" },
    };
    char ranks[WHY_MAX / 2];
    bool found = false;
    enum grade grade;

    if (!strcmp (text_of (answer, "status"), "full"))
        return;
    grade = health_eval_quorum (j, answer);
    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (children_in (answer, kinds[i].status, ranks, sizeof (ranks)) > 0) {
            health_eval_add (j, grade, "tree", "below rank %" PRIu32 ": %s %s (idtree overlay status --down)", j->rank,
                             ranks, kinds[i].says);
            found = true;
        }
    if (!found)
        health_eval_add (j, grade, "tree", "below rank %" PRIu32 " the tree is %s", j->rank,
                         text_of (answer, "status"));
}

static void health_eval_parent (struct judgement *j, const json_t *answer)
{
    if (json_is_false (json_object_get (answer, "parent-connected")))
        health_eval_add (j, GRADE_DEGRADED, "parent",
                         "rank %" PRIu32 " is cut off from rank 0: it makes ids until its lease ends", j->rank);
}

/* --- ids --------------------------------------------------------------------------------------------- */

static void health_eval_lease (struct judgement *j, const json_t *answer)
{
    int64_t now_ms = ms_of (json_object_get (answer, "timestamp_ms"));
    int64_t end_ms = ms_of (json_array_get (json_object_get (answer, "lease"), 1));

    if (j->lease_ms > 0 && end_ms - now_ms < (int64_t)j->lease_ms / 3)
        health_eval_add (j, GRADE_DEGRADED, "lease", "rank %" PRIu32 " could not renew its lease, which ends in %.1f s",
                         j->rank, (double)(end_ms > now_ms ? end_ms - now_ms : 0) / 1000);
}

/* Grade the values that only rank 0 reports. */
static void health_eval_authority (struct judgement *j, const json_t *answer)
{
    const char *store = text_of (answer, "store");
    double ahead_ms = json_number_value (json_object_get (answer, "ahead_ms"));

    if (*store && strcmp (store, "good") != 0)
        health_eval_add (j, strncmp (store, "slow", 4) ? GRADE_CRITICAL : GRADE_DEGRADED, "store",
                         "the store of leases is %s", store);
    if (j->lease_ms > 0 && fabs (ahead_ms) > AHEAD_LEASES * (double)j->lease_ms)
        health_eval_add (j, GRADE_DEGRADED, "clock", "rank 0 is %.1f s %s its wall clock", fabs (ahead_ms) / 1000,
                         ahead_ms > 0 ? "ahead of" : "behind");
}

static void health_eval_fluid (struct judgement *j, const json_t *answer)
{
    const char *state = text_of (answer, "state");
    const json_t *served_by = json_object_get (answer, "served_by");

    if (!json_is_integer (served_by))
        health_eval_add (j, GRADE_CRITICAL, "ids", "rank %" PRIu32 " is %s, and no rank makes ids for it", j->rank,
                         state);
    else if (!strcmp (state, "fenced"))
        health_eval_add (j, GRADE_DEGRADED, "ids",
                         "rank %" PRIu32 " has no lease: its ids come from rank %" JSON_INTEGER_FORMAT, j->rank,
                         json_integer_value (served_by));
    else if (!strcmp (state, "active"))
        health_eval_lease (j, answer);
    health_eval_authority (j, answer);
}

static void health_eval_watermark (struct judgement *j, const json_t *answer)
{
    int64_t behind_ms = json_integer_value (json_object_get (answer, "behind_ms"));
    int64_t still_ms = json_integer_value (json_object_get (answer, "still_ms"));

    if (still_ms > STILL_MAX_MS && behind_ms > STILL_MAX_MS)
        health_eval_add (
            j, GRADE_DEGRADED, "watermark",
            "the watermark has not advanced for %.0f s: a rank was killed, stopped or cut off, and its lease has not "
            "ended",
            (double)still_ms / 1000);
}

static void health_eval_documents (struct judgement *j, const json_t *answer)
{
    const char *store = text_of (json_object_get (answer, "root"), "store");

    if (*store && strcmp (store, "good") != 0)
        health_eval_add (j, GRADE_CRITICAL, "documents", "documents are not stored: %s", store);
}

static void health_eval_jobs (struct judgement *j, const json_t *answer)
{
    const char *why = text_of (answer, "failing");

    if (*why)
        health_eval_add (j, GRADE_CRITICAL, "jobs", "jobs are not stored: %s", why);
}

/* Only rank 0 with root.store answers without an error. 'standbys' is missing until it is known. */
static void health_eval_root (struct judgement *j, const json_t *answer)
{
    const json_t *standbys = json_object_get (answer, "standbys");
    const char *why = text_of (answer, "why"), *host = text_of (answer, "host");
    int64_t term = json_integer_value (json_object_get (answer, "term"));
    int64_t candidates = json_integer_value (json_object_get (answer, "candidates"));

    if (*why)
        health_eval_add (j, GRADE_DEGRADED, "root", "root.store: %s", why);
    if (candidates > 1 && json_is_integer (standbys) && json_integer_value (standbys) == 0)
        health_eval_add (j, GRADE_DEGRADED, "root",
                         "no host can take over: rank 0 is %s in term %" PRId64 ", and of the other %" PRId64
                         " of cluster.root none stands by",
                         host, term, candidates - 1);
}

const struct question judge_questions[] = {
    { "tree", "overlay.health", 0, health_eval_tree },
    { "broker", "state-machine.get", 0, health_eval_state },
    { "parent", "overlay.stats-get", QUESTION_NOT_ROOT, health_eval_parent },
    { "ids", "fluid.info", 0, health_eval_fluid },
    { "watermark", "fluid.watermark", QUESTION_ROOT, health_eval_watermark },
    { "documents", "compressor.stats-get", QUESTION_ROOT | QUESTION_OPTIONAL, health_eval_documents },
    { "jobs", "ingest.stats", QUESTION_ROOT | QUESTION_OPTIONAL, health_eval_jobs },
    { "root", "root.get", QUESTION_ROOT | QUESTION_OPTIONAL, health_eval_root },
    { NULL, NULL, 0, NULL },
};

int health_eval_asks (const struct question *q, uint32_t rank)
{
    return !(q->flags & (rank == 0 ? QUESTION_NOT_ROOT : QUESTION_ROOT));
}

/* Grade the error of a request.  EPERM is no fault, because the client may not read the value.  ENOSYS is no fault for
 * an optional module.  Neither is it for the watermark, because the missing fluid module is reported by another
 * request.
 */
void health_eval_error (struct judgement *j, const struct question *q, int errnum, const char *text)
{
    bool ids = q->judge == health_eval_fluid;

    if (errnum == ENOTSUP && q->judge == health_eval_root) /* root.store is not set */
        return;
    if (errnum == EPERM || (errnum == ENOSYS && (q->flags & QUESTION_OPTIONAL || q->judge == health_eval_watermark)))
        return;
    if (errnum == ENOSYS && ids)
        health_eval_add (j, j->rank == 0 ? GRADE_CRITICAL : GRADE_DEGRADED, "ids",
                         "the module %s is not loaded on rank %" PRIu32 " (%s)", j->in_flux ? "idtree-flux" : "fluid",
                         j->rank,
                         j->in_flux ? "flux module load .../idtree/flux/idtree-flux.so" : "idtree module load fluid");
    else if (errnum == ETIMEDOUT)
        health_eval_add (j, ids ? GRADE_CRITICAL : GRADE_DEGRADED, q->what, "rank %" PRIu32 " does not answer to %s",
                         j->rank, q->topic);
    else
        health_eval_add (j, ids ? GRADE_CRITICAL : GRADE_DEGRADED, q->what, "%s: %s", q->topic, text);
}
