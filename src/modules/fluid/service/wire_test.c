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

static bool same_want (const struct lease_want *a, const struct lease_want *b)
{
    return a->generator == b->generator && strcmp (a->incarnation, b->incarnation) == 0 && a->number == b->number
           && a->have_hi_ms == b->have_hi_ms && a->size == b->size;
}

static void test_lease (void)
{
    const struct lease_want want[2] = { { 3, UUID, 7, 123, 0 }, { 16383, UUID, 1, UINT64_MAX, 5 } };
    const struct lease_back back = { 4, UUID, 99, 6 };
    const struct lease_grant grant = { 3, UUID, 7, 100, UINT64_C (1) << 40 };
    struct lease_request req = {
        .want = want, .nwant = 2, .back = &back, .nback = 1, .has_epoch = true, .epoch_ms = 1234
    };
    struct lease_answer answer = { .grant = &grant,
                                   .ngrant = 1,
                                   .has_epoch = true,
                                   .epoch_ms = 1234,
                                   .has_time = true,
                                   .received_us = 5,
                                   .sent_us = UINT64_MAX,
                                   .bound_us = 7,
                                   .lease_ms = 60000 };
    idt_error_t err;

    json_t *o = wire_pack_lease_request (&req);
    ok (o && wire_get_lease_request (o, &req, &err) == 0 && req.nwant == 2 && same_want (&req.want[0], &want[0])
            && same_want (&req.want[1], &want[1]) && req.nback == 1 && req.back->generator == 4
            && strcmp (req.back->incarnation, UUID) == 0 && req.back->end_ms == 99 && req.back->left_ms == 6
            && req.has_epoch && req.epoch_ms == 1234,
        "a lease request is read back as it was written");
    lease_request_fini (&req);
    json_decref (o);

    o = wire_pack_lease_answer (&answer);
    char *s = json_dumps (o, JSON_COMPACT);
    ok (strcmp (s, "{\"lease\":[[3,\"" UUID
                   "\",7,\"100\",\"1099511627776\"]],\"time_us\":[\"5\",\"18446744073709551615\"],"
                   "\"bound_us\":\"7\",\"lease_ms\":\"60000\",\"epoch\":\"1970-01-01T00:00:01.234Z\"}")
            == 0,
        "the answer to a lease request is written with times as strings");
    ok (wire_get_lease_answer (o, &answer, &err) == 0 && answer.ngrant == 1 && answer.grant->generator == 3
            && strcmp (answer.grant->incarnation, UUID) == 0 && answer.grant->number == 7 && answer.grant->lo_ms == 100
            && answer.grant->hi_ms == grant.hi_ms && answer.has_time && answer.received_us == 5
            && answer.sent_us == UINT64_MAX && answer.bound_us == 7 && answer.has_epoch && answer.epoch_ms == 1234
            && answer.lease_ms == 60000,
        "the answer to a lease request is read back as it was written");
    free ((void *)answer.grant);
    free (s);
    json_decref (o);

    o = wire_pack_lease_request (&(struct lease_request){ 0 });
    ok (wire_get_lease_request (o, &req, &err) == 0 && req.nwant == 0 && !req.has_epoch,
        "a lease request without wants and returns is read");
    lease_request_fini (&req);
    json_decref (o);
}

static void test_report (void)
{
    static const char *bad[] = {
        "{}",
        "{\"rank\":2,\"from\":\"short\",\"lessees\":[1,\"1\"],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"lessees\":[-1,\"1\"],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"lessees\":[4294967296,\"1\"],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"lessees\":[1,\"1\",1],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"lessees\":[1,\"x\"],\"low_ms\":\"1\"}",
        "{\"rank\":2,\"from\":\"" UUID "\",\"lessees\":[1,\"1\"],\"low_ms\":1}",
        "{\"rank\":-1,\"from\":\"" UUID "\",\"lessees\":[1,\"1\"],\"low_ms\":\"1\"}",
        "{\"from\":\"" UUID "\",\"lessees\":[1,\"1\"],\"low_ms\":\"1\"}",
    };
    struct report in = { 2, UUID, { 3, UINT64_MAX - 5 }, UINT64_MAX, 77 }, out;
    json_t *o = wire_pack_report (&in);
    int refused = 0;
    idt_error_t err;

    ok (o && wire_get_report (o, &out, &err) == 0 && out.rank == in.rank && strcmp (out.from, UUID) == 0
            && out.lessees.count == 3 && out.lessees.sum == in.lessees.sum && out.low_ms == in.low_ms
            && out.borrowed_low_ms == 77,
        "a position is read back as it was written");
    json_decref (o);
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        o = json_loads (bad[i], 0, NULL);
        refused += wire_get_report (o, &out, &err) < 0 && errno == EPROTO;
        json_decref (o);
    }
    ok (refused == 9, "a malformed position is refused");
}

/* Parse JSON in which ' stands for ". */
static json_t *parse (const char *text)
{
    char s[256];

    snprintf (s, sizeof (s), "%s", text);
    for (char *c = s; *c; c++)
        if (*c == '\'')
            *c = '"';
    return json_loads (s, 0, NULL);
}

static void test_share (void)
{
    static const char *bad_wants[] = {
        "{}",
        "{'want':[3,'" UUID "',1,16,'1']}",
        "{'want':[-1,'" UUID "',1,16,'1',0]}",
        "{'want':[3,'short',1,16,'1',0]}",
        "{'want':[3,'" UUID "',0,16,'1',0]}",
        "{'want':[3,'" UUID "',1,17,'1',0]}",
        "{'want':[3,'" UUID "',1,1024,'1',0]}",
        "{'want':[3,'" UUID "',1,-16,'1',0]}",
        "{'want':[3,'" UUID "',1,16,'x',0]}",
        "{'want':[3,'" UUID "',1,16,'1',-1]}",
    };
    static const char *bad_shares[] = {
        "{'share':[]}",
        "{'share':['short',1,3,0,16,'1','2',1]}",
        "{'share':['" UUID "',0,3,0,16,'1','2',1]}",
        "{'share':['" UUID "',1,16384,0,16,'1','2',1]}",
        "{'share':['" UUID "',1,3,8,16,'1','2',1]}",
        "{'share':['" UUID "',1,3,0,48,'1','2',1]}",
        "{'share':['" UUID "',1,3,1008,32,'1','2',1]}",
        "{'share':['" UUID "',1,3,0,16,'1','2',-1]}",
        "{'share':['" UUID "',1,3,0,16,'1',2,1]}",
        "{'retry_ms':-1}",
    };
    struct share_want want = { 3, UUID, 7, 64, UINT64_MAX, 5 }, w;
    struct share share = { UUID, 7, 4, area_granules (64, 64), { 100, 200 }, 18 }, s;
    uint64_t retry_ms = 0;
    bool any = false;
    idt_error_t err;
    int refused = 0;
    json_t *o = wire_pack_share_want (&want);

    ok (wire_get_share_want (o, &w, &err) == 0 && w.rank == 3 && strcmp (w.incarnation, UUID) == 0 && w.number == 7
            && w.size == 64 && w.end_ms == UINT64_MAX && w.left_ms == 5,
        "a request for a sublease is read back as it was written");
    json_decref (o);
    o = wire_pack_share (&share, 9);
    ok (wire_get_share (o, &s, &any, &retry_ms, &err) == 0 && any && retry_ms == 9 && strcmp (s.incarnation, UUID) == 0
            && s.number == 7 && s.generator == 4 && s.granules == share.granules && s.range.lo_ms == 100
            && s.range.hi_ms == 200 && s.use_ms == 18,
        "a sublease is read back as it was written");
    json_decref (o);
    o = wire_pack_share (NULL, 1000);
    ok (wire_get_share (o, &s, &any, &retry_ms, &err) == 0 && !any && retry_ms == 1000,
        "an answer to a request for a sublease may have no sublease");
    json_decref (o);
    for (size_t i = 0; i < 10; i++) {
        json_t *x = parse (bad_wants[i]), *y = parse (bad_shares[i]);

        refused += x && y && wire_get_share_want (x, &w, &err) < 0 && errno == EPROTO;
        refused += x && y && wire_get_share (y, &s, &any, &retry_ms, &err) < 0 && errno == EPROTO;
        json_decref (x);
        json_decref (y);
    }
    ok (refused == 20, "malformed requests and answers for subleases are refused: %d", refused);
}

static void test_malformed (void)
{
    static const char *bad[] = {
        "{\"want\":5}",
        "{\"want\":[5]}",
        "{\"want\":[[3,\"" UUID "\",7]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",-1]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"1\",1,1]]}",
        "{\"want\":[[16384,\"" UUID "\",7,\"1\"]]}",
        "{\"want\":[[-1,\"" UUID "\",7,\"1\"]]}",
        "{\"want\":[[3,\"short\",7,\"1\"]]}",
        "{\"want\":[[3,\"" UUID "x\",7,\"1\"]]}",
        "{\"want\":[[3,\"" UUID "\",0,\"1\"]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"-1\"]]}",
        "{\"want\":[[3,\"" UUID "\",7,\"18446744073709551616\"]]}",
        "{\"want\":[[3,\"" UUID "\",7,1]]}",
        "{\"want\":[],\"back\":[[3,\"" UUID "\"]]}",
        "{\"want\":[],\"epoch\":5}",
        "{\"want\":[],\"epoch\":\"yesterday\"}",
        "{\"lease\":{}}",
        "{\"lease\":[[3,\"" UUID "\",7,\"1\"]]}",
        "{\"lease\":[],\"time_us\":[\"1\"],\"bound_us\":\"1\"}",
        "{\"lease\":[],\"time_us\":[\"1\",\"x\"],\"bound_us\":\"1\"}",
        "{\"lease\":[],\"time_us\":[\"1\",\"2\"]}",
        "{\"lease\":[],\"lease_ms\":\"0\"}",
        "{\"lease\":[],\"lease_ms\":\"999999999999999\"}",
    };

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        json_t *o = json_loads (bad[i], 0, NULL);
        struct lease_request req;
        struct lease_answer answer;
        idt_error_t err;
        int rc = bad[i][2] == 'w' ? wire_get_lease_request (o, &req, &err) : wire_get_lease_answer (o, &answer, &err);

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
    test_report ();
    test_share ();
    test_malformed ();
    return done_testing ();
}
