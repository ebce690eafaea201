/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* health_eval_test.c - grades of health by the answers of a broker */
#include <errno.h>
#include <string.h>

#include "cmd/inspect/health_eval.h"
#include "test/tap.h"

#define LEASE_MS 60000

static const struct question *question (const char *topic)
{
    const struct question *q = judge_questions;

    while (strcmp (q->topic, topic) != 0)
        q++;
    return q;
}

/* Whether an answer gets 'grade', and 'why' is a part of the first reason. */
static bool judged (uint32_t rank, const char *topic, const char *answer, enum grade grade, const char *why)
{
    struct judgement j;
    json_t *o = json_loads (answer, 0, NULL);

    health_eval_begin (&j, rank, LEASE_MS);
    question (topic)->judge (&j, o);
    const char *said = json_string_value (json_object_get (json_array_get (j.reasons, 0), "why"));
    bool fits = o && j.grade == grade && (why ? said && strstr (said, why) : !said);
    if (!fits)
        diag ("%s: %s", grade_name (j.grade), said ? said : "no reason");
    json_decref (o);
    json_decref (j.reasons);
    return fits;
}

static bool failed (uint32_t rank, const char *topic, int errnum, enum grade grade, const char *why)
{
    struct judgement j;

    health_eval_begin (&j, rank, LEASE_MS);
    health_eval_error (&j, question (topic), errnum, strerror (errnum));
    const char *said = json_string_value (json_object_get (json_array_get (j.reasons, 0), "why"));
    bool fits = j.grade == grade && (why ? said && strstr (said, why) : !said);
    if (!fits)
        diag ("%s: %s", grade_name (j.grade), said ? said : "no reason");
    json_decref (j.reasons);
    return fits;
}

/* If the broker belongs to Flux, the module has another file name and another command loads it, so the text differs. */
static void test_flux (void)
{
    struct judgement j;

    health_eval_begin (&j, 0, LEASE_MS);
    j.in_flux = true;
    health_eval_error (&j, question ("fluid.info"), ENOSYS, strerror (ENOSYS));
    const char *said = json_string_value (json_object_get (json_array_get (j.reasons, 0), "why"));
    ok (j.grade == GRADE_CRITICAL && said && strstr (said, "flux module load") && strstr (said, "idtree-flux.so")
            && !strstr (said, "idtree module load"),
        "inside a Flux instance the reason for a missing module names the command flux module load");
    json_decref (j.reasons);
}

static void test_tree (void)
{
    ok (judged (0, "overlay.health", "{\"status\":\"full\",\"children\":[]}", GRADE_GOOD, NULL), "a full tree is good");
    ok (judged (
            0, "overlay.health",
            "{\"status\":\"degraded\",\"children\":[{\"rank\":1,\"status\":\"lost\"},{\"rank\":2,\"status\":\"lost\"},"
            "{\"rank\":3,\"status\":\"full\"}]}",
            GRADE_DEGRADED, "1-2 lost"),
        "lost children are reported as one set of ranks");
    ok (judged (0, "overlay.health", "{\"status\":\"degraded\",\"children\":[{\"rank\":1,\"status\":\"degraded\"}]}",
                GRADE_DEGRADED, "1 online, but have lost ranks below"),
        "children whose subtrees have lost ranks are reported");
    ok (judged (0, "overlay.health", "{\"status\":\"partial\"}", GRADE_DEGRADED, "partial"),
        "a rank whose tree is partial, but which has no children, is degraded");
    ok (judged (0, "overlay.health",
                "{\"status\":\"degraded\",\"joined\":18,\"quorum\":18,\"children\":[{\"rank\":7,\"status\":\"lost\"}]}",
                GRADE_GOOD, "7 lost"),
        "if the quorum is reached, missing ranks are named and the grade is good");
    ok (judged (0, "overlay.health", "{\"status\":\"partial\",\"joined\":17,\"quorum\":18,\"children\":[]}",
                GRADE_DEGRADED, "17 ranks have joined, and 18 must"),
        "if fewer ranks than the quorum have joined, the grade is degraded");
    ok (judged (3, "state-machine.get", "{\"state\":\"cleanup\"}", GRADE_DEGRADED, "rank 3 is in state cleanup"),
        "a broker that stops is degraded");
    ok (judged (3, "overlay.stats-get", "{\"parent-connected\":false}", GRADE_DEGRADED, "cut off"),
        "a rank without a parent is degraded");
}

static void test_ids (void)
{
    ok (judged (1, "fluid.info",
                "{\"state\":\"active\",\"served_by\":1,\"timestamp_ms\":\"1000\",\"lease\":[\"0\",\"61000\"]}",
                GRADE_GOOD, NULL),
        "a fresh lease is good");
    ok (judged (1, "fluid.info",
                "{\"state\":\"active\",\"served_by\":1,\"timestamp_ms\":\"41000\",\"lease\":[\"0\",\"60999\"]}",
                GRADE_DEGRADED, "could not renew its lease, which ends in 20.0 s"),
        "a lease with less than a third left is degraded");
    ok (judged (1, "fluid.info", "{\"state\":\"idle\",\"served_by\":0}", GRADE_GOOD, NULL),
        "a rank without a lease that another rank serves is good");
    ok (judged (1, "fluid.info", "{\"state\":\"fenced\",\"served_by\":0}", GRADE_DEGRADED, "ids come from rank 0"),
        "a fenced rank that another rank serves is degraded");
    ok (judged (0, "fluid.info", "{\"state\":\"fenced\",\"served_by\":null}", GRADE_CRITICAL, "no rank makes ids"),
        "a rank that cannot make ids and is served by no other rank is critical");
    ok (judged (0, "fluid.info", "{\"state\":\"idle\",\"served_by\":0,\"store\":\"failing: disk full\"}",
                GRADE_CRITICAL, "disk full"),
        "a failing store is critical");
    ok (judged (0, "fluid.info", "{\"state\":\"idle\",\"served_by\":0,\"store\":\"slow: x\"}", GRADE_DEGRADED, "slow"),
        "a slow store is degraded");
    ok (judged (0, "fluid.info", "{\"state\":\"idle\",\"served_by\":0,\"store\":\"good\",\"ahead_ms\":240000}",
                GRADE_GOOD, NULL),
        "a clock debt of a few crashes is good");
    ok (judged (0, "fluid.info", "{\"state\":\"idle\",\"served_by\":0,\"ahead_ms\":240001}", GRADE_DEGRADED,
                "240.0 s ahead of its wall clock"),
        "a clock debt of more crashes is degraded");
    ok (judged (0, "fluid.info", "{\"state\":\"idle\",\"served_by\":0,\"ahead_ms\":-240001}", GRADE_DEGRADED,
                "behind its"),
        "rank 0 is degraded if it is behind its wall clock");
    ok (judged (0, "fluid.watermark", "{\"behind_ms\":130000,\"still_ms\":15000}", GRADE_GOOD, NULL)
            && judged (0, "fluid.watermark", "{\"behind_ms\":130000,\"still_ms\":15001}", GRADE_DEGRADED,
                       "not advanced for 15 s"),
        "a watermark that does not advance is degraded, and the reason has the time since the last advance");
    ok (judged (0, "fluid.watermark", "{\"behind_ms\":0,\"still_ms\":20000}", GRADE_GOOD, NULL),
        "a watermark that is close to the present is good even if it does not advance");
    ok (judged (0, "compressor.stats-get", "{\"root\":{\"store\":\"good\"}}", GRADE_GOOD, NULL)
            && judged (0, "compressor.stats-get", "{\"root\":{\"store\":\"full\"}}", GRADE_CRITICAL, "full")
            && judged (0, "ingest.stats", "{\"failing\":null}", GRADE_GOOD, NULL)
            && judged (0, "ingest.stats", "{\"failing\":\"full\"}", GRADE_CRITICAL, "full"),
        "stores of documents and jobs that fail are critical");
}

static void test_errors (void)
{
    ok (failed (0, "fluid.info", ENOSYS, GRADE_CRITICAL, "not loaded on rank 0")
            && failed (2, "fluid.info", ENOSYS, GRADE_DEGRADED, "not loaded on rank 2"),
        "a missing fluid module is critical at rank 0 and degraded elsewhere");
    ok (failed (0, "compressor.stats-get", ENOSYS, GRADE_GOOD, NULL)
            && failed (0, "ingest.stats", ENOSYS, GRADE_GOOD, NULL)
            && failed (0, "fluid.watermark", ENOSYS, GRADE_GOOD, NULL),
        "a missing optional module is good");
    ok (failed (0, "root.get", ENOTSUP, GRADE_GOOD, NULL) && failed (0, "root.get", ENOSYS, GRADE_GOOD, NULL),
        "a rank 0 that keeps its state in a folder is good");
    ok (failed (0, "fluid.info", EPERM, GRADE_GOOD, NULL), "a request that was refused gives no reason");
    ok (failed (0, "fluid.info", ETIMEDOUT, GRADE_CRITICAL, "does not answer")
            && failed (0, "compressor.stats-get", ETIMEDOUT, GRADE_DEGRADED, "does not answer")
            && failed (0, "fluid.watermark", EAGAIN, GRADE_DEGRADED, "fluid.watermark: "),
        "a rank that does not answer is reported");
}

/* Each answer gets a grade, even if it is malformed or comes from another version. */
static void test_nonsense (void)
{
    static const char *const answers[] = { "{}",
                                           "{\"status\":1,\"state\":[],\"lease\":7,\"children\":{},\"root\":[]}" };
    struct judgement j;

    for (size_t i = 0; i < 2; i++)
        for (const struct question *q = judge_questions; q->topic; q++) {
            json_t *o = json_loads (answers[i], 0, NULL);

            health_eval_begin (&j, 0, 0);
            q->judge (&j, o);
            ok (json_array_size (j.reasons) <= 1, "%s: a malformed answer does not crash", q->topic);
            json_decref (o);
            json_decref (j.reasons);
        }
    health_eval_begin (&j, 0, 0);
    health_eval_add (&j, GRADE_DEGRADED, "a", "a");
    health_eval_add (&j, GRADE_CRITICAL, "b", "b");
    health_eval_add (&j, GRADE_DEGRADED, "c", "c");
    ok (j.grade == GRADE_CRITICAL
            && !strcmp (json_string_value (json_object_get (json_array_get (j.reasons, 0), "why")), "b"),
        "the worst of several reasons is reported first");
    json_decref (j.reasons);
    ok (health_eval_asks (question ("fluid.watermark"), 0) && !health_eval_asks (question ("fluid.watermark"), 1)
            && !health_eval_asks (question ("overlay.stats-get"), 0),
        "only rank 0 is asked about the instance, and only the other ranks are asked about their parents");
}

int main (void)
{
    test_tree ();
    test_flux ();
    test_ids ();
    test_errors ();
    test_nonsense ();
    done_testing ();
}
