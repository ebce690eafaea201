/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire_test.c - each payload is read back as it was written; a malformed one is refused */
#include <errno.h>
#include <string.h>

#include "test/tap.h"
#include "modules/fluid/service/wire.h"

#define UUID "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"

static void test_block (void)
{
    static const uint8_t expect[BLOCK_REQUEST_SIZE] = { 0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    uint8_t buf[2 * BLOCK_RUN_SIZE];
    idt_error_t err;
    uint32_t count;
    fluid_t after;
    size_t n;

    block_put_request (buf, 65536, 0x0102030405060708);
    ok (memcmp (buf, expect, sizeof (expect)) == 0, "a request for a block of ids is count and id, big-endian");
    ok (wire_get_block (buf, 12, &count, &after, &err) == 0 && count == 65536 && after == 0x0102030405060708,
        "a request for a block of ids is read back as it was written");
    ok (wire_get_block (buf, 11, &count, &after, &err) < 0 && errno == EPROTO
            && wire_get_block (buf, 13, &count, &after, &err) < 0,
        "a request for a block of ids of any other size is refused");

    block_put_run (buf, (struct id_run){ 0x1122334455667788, 1024 });
    block_put_run (buf + BLOCK_RUN_SIZE, (struct id_run){ 5, 6 });
    ok (buf[0] == 0x11 && buf[7] == 0x88 && buf[10] == 4 && buf[11] == 0,
        "a run in a response is id and number, big-endian");
    struct id_run *run = wire_get_runs (buf, sizeof (buf), NULL, 0, &n);
    ok (run && n == 2 && run[0].first == 0x1122334455667788 && run[1].n == 6,
        "runs in a response are read back as they were written");
    free (run);
    ok (!wire_get_runs (buf, 0, NULL, 0, &n) && errno == EPROTO && !wire_get_runs (buf, 13, NULL, 0, &n),
        "a response with an incomplete run is refused");
}

/* The count in 'text'; UINT32_MAX if it is malformed and the reason is given. */
static uint32_t count_of (const char *text)
{
    struct jv_reader r = JV_READER_INIT;
    idt_error_t err = { "" };
    uint32_t count;

    if (wire_get_count (&r, text, &count, &err) < 0)
        count = errno == EPROTO && err.text[0] ? UINT32_MAX : 0;
    jv_reader_fini (&r);
    return count;
}

static void test_generate (void)
{
    ok (count_of ("{}") == 1, "a request without a count asks for one id");
    ok (count_of ("{\"count\":65536}") == 65536, "the count of a request is read");
    ok (count_of ("{\"count\":-5}") == 0 && count_of ("{\"count\":4294967297}") == 0,
        "a count above 32 bits is read as 0");
    ok (count_of ("{\"count\":\"5\"}") == 0 && count_of ("{\"count\":1.5}") == 0 && count_of ("{\"count\":null}") == 0,
        "a count that is not an integer is read as 0");

    ok (count_of (NULL) == UINT32_MAX && count_of ("") == UINT32_MAX && count_of ("[]") == UINT32_MAX
            && count_of ("{\"count\":1") == UINT32_MAX && count_of ("{}x") == UINT32_MAX,
        "a request whose payload is not an object is malformed");
    ok (count_of ("{\"a\":[1,{\"b\":null}],\"count\":2}") == 2, "unknown members of a request are ignored");
    ok (count_of ("{\"a\":[[[[[[[[[]]]]]]]]]}") == UINT32_MAX,
        "a request with a member that is nested too deep is malformed");

    static const struct id_run run[] = { { 6731191091817518, 16 }, { UINT64_MAX, UINT32_MAX }, { 0, 0 } };
    char text[WIRE_RUNS_TEXT (3)];
    size_t size = wire_write_runs (text, run, 1);
    ok (strcmp (text, "{\"runs\":[[\"fuZZybuNNy\",16]]}") == 0 && size == strlen (text) + 1,
        "runs in a JSON response have ids in F58: %s", text);
    size = wire_write_runs (text, run, 3);
    ok (size == strlen (text) + 1 && strstr (text, ",4294967295],[\"f1\",0]]}"),
        "runs in a JSON response may have any first id and number: %s", text);
    ok (wire_write_runs (text, run, 0) == sizeof ("{\"runs\":[]}"), "a JSON response may have no runs: %s", text);
}

static bool same_want (const struct want *a, const struct want *b)
{
    return a->rank == b->rank && strcmp (a->incarnation, b->incarnation) == 0 && a->number == b->number
           && a->size == b->size && a->end_ms == b->end_ms && a->kept == b->kept && a->left_ms == b->left_ms
           && a->ranks == b->ranks;
}

static bool same_grant (const struct grant *a, const struct grant *b)
{
    return a->rank == b->rank && strcmp (a->incarnation, b->incarnation) == 0 && a->number == b->number
           && a->box.generator == b->box.generator && a->box.granules == b->box.granules
           && a->box.range.lo_ms == b->box.range.lo_ms && a->box.range.hi_ms == b->box.range.hi_ms
           && a->use_ms == b->use_ms;
}

/* Write a request, and read it back. Returns its text, which the caller frees; NULL: it was not read as it was written.
 */
static char *request_text (const struct lease_request *req)
{
    json_t *o = wire_pack_lease_request (req);
    char *text = json_dumps (o, JSON_COMPACT);
    struct lease_request again;
    idt_error_t err;
    bool same = wire_get_lease_request (o, &again, &err) == 0 && again.nwant == req->nwant
                && again.is_part == req->is_part && again.has_epoch == req->has_epoch
                && (!req->has_epoch || again.epoch_ms == req->epoch_ms);

    for (size_t i = 0; same && i < req->nwant; i++)
        same = same_want (&again.want[i], &req->want[i]);
    lease_request_fini (&again);
    json_decref (o);
    if (same)
        return text;
    free (text);
    return NULL;
}

static char *answer_text (const struct lease_answer *answer)
{
    json_t *o = wire_pack_lease_answer (answer);
    char *text = json_dumps (o, JSON_COMPACT);
    struct lease_answer a;
    idt_error_t err;
    bool same = wire_get_lease_answer (o, &a, &err) == 0 && a.ngrant == answer->ngrant && a.retry_ms == answer->retry_ms
                && a.has_epoch == answer->has_epoch && a.epoch_ms == answer->epoch_ms && a.lease_ms == answer->lease_ms
                && a.has_time == answer->has_time && a.received_us == answer->received_us
                && a.sent_us == answer->sent_us && a.bound_us == answer->bound_us;

    for (size_t i = 0; same && i < a.ngrant; i++)
        same = same_grant (&a.grant[i], &answer->grant[i]);
    free ((void *)a.grant);
    json_decref (o);
    if (same)
        return text;
    free (text);
    return NULL;
}

static void test_lease (void)
{
    const struct want want[] = { { 3, UUID, 7, BOX_WHOLE, 123, 0, 0, 0 },
                                 { 16383, UUID, 1, BOX_WHOLE, UINT64_MAX, 0, 0, 5 },
                                 { 4, UUID, 8, 0, 99, 0, 6, 0 } };
    const struct grant grant = { 3, UUID, 7, { 3, UINT64_MAX, { 100, UINT64_C (1) << 40 } }, 0 };
    struct lease_request req = { .want = want, .nwant = 3, .has_epoch = true, .epoch_ms = 1234 };
    char *s = request_text (&req);

    ok (s
            && strcmp (s, "{\"want\":[[3,\"" UUID "\",7,\"123\"],[16383,\"" UUID
                          "\",1,\"18446744073709551615\",1024,0,5],[4,\"" UUID
                          "\",8,\"99\",0,6]],\"epoch\":\"1970-01-01T00:00:01.234Z\"}")
                   == 0,
        "requests for and returns of whole generators are read back as they were written: %s", s ? s : "-");
    free (s);
    s = answer_text (&(struct lease_answer){ .grant = &grant,
                                             .ngrant = 1,
                                             .has_epoch = true,
                                             .epoch_ms = 1234,
                                             .has_time = true,
                                             .received_us = 5,
                                             .sent_us = UINT64_MAX,
                                             .bound_us = 7,
                                             .lease_ms = 60000 });
    ok (s
            && strcmp (s, "{\"lease\":[[3,\"" UUID
                          "\",7,\"100\",\"1099511627776\"]],\"time_us\":[\"5\",\"18446744073709551615\"],"
                          "\"bound_us\":\"7\",\"lease_ms\":\"60000\",\"epoch\":\"1970-01-01T00:00:01.234Z\"}")
                   == 0,
        "the answer to a lease request is read back as it was written, with times as strings: %s", s ? s : "-");
    free (s);
    s = request_text (&(struct lease_request){ 0 });
    ok (s && strcmp (s, "{\"want\":[]}") == 0, "a lease request without wants is read");
    free (s);
}

static void test_part (void)
{
    const uint64_t some = UINT64_C (0x8000000000000005);
    const struct want want = { 3, UUID, 7, 48, UINT64_MAX, 0, 0, 0 }, less = { 3, UUID, 8, 48, 5, some, 0, 0 },
                      back = { 40000, UUID, 9, 0, 5, 0, 15000, 0 };
    const struct grant grant[] = { { 40000, UUID, 7, { 4, some, { 100, 200 } }, 18 },
                                   { 40000, UUID, 7, { 4, 2, { 150, 200 } }, 18 } };
    char *s = request_text (&(struct lease_request){ .want = &want, .nwant = 1, .is_part = true });

    ok (s && strcmp (s, "{\"part\":[3,\"" UUID "\",7,\"18446744073709551615\",48,0,\"0\"]}") == 0,
        "a request for a part is read back as it was written: %s", s ? s : "-");
    free (s);
    s = request_text (&(struct lease_request){ .want = &less, .nwant = 1, .is_part = true });
    ok (s && strcmp (s, "{\"part\":[3,\"" UUID "\",8,\"5\",48,0,\"9223372036854775813\"]}") == 0,
        "a request that returns a part of what is held is read back as it was written: %s", s ? s : "-");
    free (s);
    s = request_text (&(struct lease_request){ .want = &back, .nwant = 1, .is_part = true });
    ok (s && strcmp (s, "{\"part\":[40000,\"" UUID "\",9,\"5\",0,15000,\"0\"]}") == 0,
        "the return of a part is read back as it was written, of any rank: %s", s ? s : "-");
    free (s);
    s = answer_text (&(struct lease_answer){ .grant = grant, .ngrant = 2, .share = 64, .retry_ms = 20 });
    ok (s
            && strcmp (s,
                       "{\"lease\":[[40000,\"" UUID "\",7,\"100\",\"200\",4,\"9223372036854775813\",18],[40000,\"" UUID
                       "\",7,\"150\",\"200\",4,\"2\",18]],\"share\":64,\"retry_ms\":20}")
                   == 0,
        "the boxes of a part are read back as they were written, with any sequence numbers: %s", s ? s : "-");
    free (s);
    s = answer_text (&(struct lease_answer){ .retry_ms = 1000 });
    ok (s && strcmp (s, "{\"lease\":[],\"retry_ms\":1000}") == 0,
        "the answer to a request for a part may have no box: %s", s ? s : "-");
    free (s);
}

static void test_report (void)
{
    static const char *bad[] = {
        "{}",
        "{\"rank\":2,\"from\":\"short\",\"holders\":[1,\"1\"],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"holders\":[-1,\"1\"],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"holders\":[4294967296,\"1\"],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"holders\":[1,\"1\",1],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"holders\":[1,\"x\"],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"holders\":[1,\"1\"],\"low_ms\":1}",
        "{\"rank\":-1,\"from\":\"" UUID "\",\"holders\":[1,\"1\"],\"low_ms\":\"1\"}",
        "{\"from\":\"" UUID "\",\"holders\":[1,\"1\"],\"low_ms\":\"1\"}",
    };
    struct report in = { 2, UUID, { 3, UINT64_MAX - 5 }, UINT64_MAX, 77 }, out;
    json_t *o = wire_pack_report (&in);
    int refused = 0;
    idt_error_t err;

    ok (o && wire_get_report (o, &out, &err) == 0 && out.rank == in.rank && strcmp (out.from, UUID) == 0
            && out.holders.count == 3 && out.holders.sum == in.holders.sum && out.low_ms == in.low_ms
            && out.part_low_ms == 77,
        "a position is read back as it was written");
    json_decref (o);
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        o = json_loads (bad[i], 0, NULL);
        refused += wire_get_report (o, &out, &err) < 0 && errno == EPROTO;
        json_decref (o);
    }
    ok (refused == 9, "a malformed position is refused");
}

static void test_malformed (void)
{
    static const char *bad[] = {
        "{\"want\":5}",
        "{\"want\":[5]}",
        "{\"want\":[[3,\"" UUID "\",7]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",-1]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",1]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",16]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",2048]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",0,-1]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",1024,0,-1]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",1024,0,4294967296]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",1024,0,1,1]]}",
        "{\"want\":[[16384,\"" UUID "\",7,\"1\"]]}",
        "{\"want\":[[-1,\"" UUID "\",7,\"1\"]]}",
        "{\"want\":[[3,\"short\",7,\"1\"]]}",
        "{\"want\":[[3,\"" UUID "x\",7,\"1\"]]}",
        "{\"want\":[[3,\"" UUID "\",0,\"1\"]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"-1\"]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"18446744073709551616\"]]}",
        "{\"want\":[[3,\"" UUID "\",7,1]]}",
        "{\"want\":[],\"epoch\":5}",
        "{\"want\":[],\"epoch\":\"yesterday\"}",
        "{\"part\":{}}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",16,0]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",16,0,0]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",16,0,\"x\"]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",0,0,\"1\"]}",
        "{\"part\":[-1,\"" UUID "\",1,\"1\",16,0,\"0\"]}",
        "{\"part\":[3,\"short\",1,\"1\",16,0,\"0\"]}",
        "{\"part\":[3,\"" UUID "\",0,\"1\",16,0,\"0\"]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",17,0,\"0\"]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",1024,0,\"0\"]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",-16,0,\"0\"]}",
        "{\"part\":[3,\"" UUID "\",1,\"x\",16,0,\"0\"]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",16,-1,\"0\"]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",16,1099511627776,\"0\"]}",
        "{\"part\":[3,\"" UUID "\",1,\"1\",16,0,\"0\",1]}",
        "{\"lease\":{}}",
        "{\"lease\":[[3,\"" UUID "\",7,\"1\"]]}",
        "{\"lease\":[[16384,\"" UUID "\",7,\"1\",\"2\"]]}",
        "{\"lease\":[[3,\"short\",1,\"1\",\"2\",4,\"1\",9]]}",
        "{\"lease\":[[3,\"" UUID "\",0,\"1\",\"2\",4,\"1\",9]]}",
        "{\"lease\":[[3,\"" UUID "\",1,\"1\",\"2\",16384,\"1\",9]]}",
        "{\"lease\":[[3,\"" UUID "\",1,\"1\",\"2\",4,\"0\",9]]}",
        "{\"lease\":[[3,\"" UUID "\",1,\"1\",\"2\",4,\"18446744073709551615\",9]]}",
        "{\"lease\":[[3,\"" UUID "\",1,\"1\",\"2\",4,1,9]]}",
        "{\"lease\":[[3,\"" UUID "\",1,\"1\",\"2\",4,\"1\",0]]}",
        "{\"lease\":[[3,\"" UUID "\",1,\"1\",\"2\",4,\"1\"]]}",
        "{\"lease\":[[3,\"" UUID "\",1,\"1\",\"2\",4,\"1\",9,1]]}",
        "{\"lease\":[],\"share\":-1}",
        "{\"lease\":[],\"share\":1025}",
        "{\"lease\":[],\"retry_ms\":-1}",
        "{\"lease\":[],\"time_us\":[\"1\"],\"bound_us\":\"1\"}",
        "{\"lease\":[],\"time_us\":[\"1\",\"x\"],\"bound_us\":\"1\"}",
        "{\"lease\":[],\"time_us\":[\"1\",\"2\"]}",
        "{\"lease\":[],\"lease_ms\":\"0\"}",
        "{\"lease\":[],\"lease_ms\":\"11\"}",
        "{\"lease\":[],\"lease_ms\":\"999999999999999\"}",
    };

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        json_t *o = json_loads (bad[i], 0, NULL);
        struct lease_request req;
        struct lease_answer answer;
        idt_error_t err;
        int rc = bad[i][2] != 'l' ? wire_get_lease_request (o, &req, &err) : wire_get_lease_answer (o, &answer, &err);

        ok (rc < 0 && errno == EPROTO && strncmp (err.text, "malformed", 9) == 0,
            "the malformed lease request or answer %s is refused", bad[i]);
        json_decref (o);
    }
}

int main (void)
{
    test_block ();
    test_generate ();
    test_lease ();
    test_part ();
    test_report ();
    test_malformed ();
    return done_testing ();
}
