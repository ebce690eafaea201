/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generate_test.c - FLUIDs in blocks: valid responses give ids, and invalid ones are refused */
#include <errno.h>

#include <idtree/generate.h>

#include "libfluid/block.h"
#include "test/test_server.h"
#include "test/tap.h"

static fluid_t ids[IDT_FLUID_MAX_COUNT];

/* From now on fluid.block is answered with these runs, and 'extra' more bytes. 'n' < 0: with a valid response. */
static void answer_with (idt_t *h, const struct id_run *runs, int n, size_t extra)
{
    uint8_t buf[256] = { 0 };

    for (int i = 0; i < n; i++)
        block_put_run (buf + i * BLOCK_RUN_SIZE, runs[i]);
    idt_future_t *f = idt_rpc_raw (h, "test.fluid", n < 0 ? NULL : buf, n < 0 ? 0 : n * BLOCK_RUN_SIZE + extra,
                                   IDT_NODEID_ANY, 0);
    if (!f || idt_rpc_get (f, NULL) < 0)
        bail_out ("test.fluid");
    idt_future_destroy (f);
}

static bool increasing (uint32_t n, fluid_t after)
{
    for (uint32_t i = 0; i < n; i++) {
        if (ids[i] <= after)
            return false;
        after = ids[i];
    }
    return true;
}

static void test_good (idt_t *h)
{
    static const uint32_t counts[] = { 1, 2, 24, 1024, 1025, 5000, IDT_FLUID_MAX_COUNT, 1 };
    fluid_t last = 0;

    for (size_t i = 0; i < sizeof (counts) / sizeof (counts[0]); i++) {
        uint32_t n = counts[i];
        ok (idt_fluid_generate (h, n, ids) == 0 && increasing (n, last), "each of %u ids is above the previous one",
            (unsigned)n);
        last = ids[n - 1];
    }
}

static void test_async (idt_t *h)
{
    idt_future_t *f[64];
    fluid_t last = 0;
    bool good = true;

    for (int i = 0; i < 64; i++)
        f[i] = idt_fluid_generate_async (h, 1000);
    for (int i = 0; i < 64; i++) {
        good = good && f[i] && idt_fluid_generate_get (f[i], 1000, ids) == 0 && increasing (1000, last);
        last = ids[999];
        idt_future_destroy (f[i]);
    }
    ok (good, "64 concurrent requests return increasing ids");
    f[0] = idt_fluid_generate_async (h, 10);
    ok (idt_fluid_generate_get (f[0], 9, ids) < 0 && errno == EPROTO,
        "reading a response as another number of ids than requested fails with EPROTO");
    ok (idt_fluid_generate_get (f[0], 10, ids) == 0 && idt_fluid_generate_get (f[0], 10, ids) == 0,
        "a response can be read twice");
    idt_future_destroy (f[0]);
}

static void test_limits (idt_t *h)
{
    ok (idt_fluid_generate (h, 0, ids) < 0 && errno == EINVAL, "a request for 0 ids fails with EINVAL");
    ok (idt_fluid_generate (h, IDT_FLUID_MAX_COUNT + 1, ids) < 0 && errno == EINVAL,
        "a request for too many ids fails with EINVAL");
}

static bool refused (idt_t *h, const struct id_run *runs, int n, size_t extra)
{
    fluid_t got[8] = { 0 };

    answer_with (h, runs, n, extra);
    bool good = idt_fluid_generate (h, 4, got) < 0 && errno == EPROTO;
    for (int i = 0; i < 8; i++)
        good = good && got[i] == 0;
    return good;
}

static void test_bad (idt_t *h)
{
    const fluid_t base = UINT64_C (1) << 60;
    fluid_t got[4];

    answer_with (h, (struct id_run[]){ { base, 4 } }, 1, 0);
    ok (idt_fluid_generate (h, 4, got) == 0 && got[0] == base && got[3] == base + 3,
        "a response with one run of ids is accepted");
    ok (refused (h, (struct id_run[]){ { base, 4 } }, 1, 0), "a response with the same run twice is refused");
    ok (refused (h, (struct id_run[]){ { base + 3, 4 } }, 1, 0),
        "a response with a run that overlaps the run of the previous response is refused");
    ok (refused (h, (struct id_run[]){ { base + 4, 3 } }, 1, 0), "a response with one id too few is refused");
    ok (refused (h, (struct id_run[]){ { base + 4, 5 } }, 1, 0), "a response with one id too many is refused");
    ok (refused (h, (struct id_run[]){ { base + 4, UINT32_MAX } }, 1, 0),
        "a response with a run of UINT32_MAX ids is refused");
    ok (refused (h, (struct id_run[]){ { base + 4, 0 }, { base + 5, 4 } }, 2, 0),
        "a response with an empty run is refused");
    ok (refused (h, (struct id_run[]){ { base + 4, 4 }, { base + 9, 0 } }, 2, 0),
        "a response with an empty run at the end is refused");
    ok (refused (h, (struct id_run[]){ { base + 9, 2 }, { base + 7, 2 } }, 2, 0),
        "a response with runs in decreasing order is refused");
    ok (refused (h, (struct id_run[]){ { base + 9, 2 }, { base + 10, 2 } }, 2, 0),
        "a response with runs that overlap is refused");
    ok (refused (h, (struct id_run[]){ { base + 1022, 4 } }, 1, 0),
        "a response with a run beyond its millisecond is refused");
    ok (refused (h, (struct id_run[]){ { UINT64_MAX - 1, 4 } }, 1, 0),
        "a response with a run beyond 64 bits is refused");
    ok (refused (h, (struct id_run[]){ { base + 4, 4 } }, 1, 1), "a response with an extra byte is refused");
    ok (refused (h, NULL, 0, 11), "a response shorter than one run is refused");
    ok (refused (h, NULL, 0, 0), "an empty response is refused");
    answer_with (h, (struct id_run[]){ { base + 1020, 2 }, { base + 1022, 1 }, { base + 1023, 1 } }, 3, 0);
    ok (idt_fluid_generate (h, 4, got) == 0 && got[3] == base + 1023, "a response with several valid runs is accepted");
    answer_with (h, (struct id_run[]){ { UINT64_MAX - 3, 4 } }, 1, 0);
    ok (idt_fluid_generate (h, 4, got) == 0 && got[3] == UINT64_MAX, "a response with the largest id is accepted");
    ok (refused (h, (struct id_run[]){ { 5, 4 } }, 1, 0), "after the largest id each further response is refused");
}

int main (int argc, char *argv[])
{
    struct test_server *s = test_server_create (0);
    idt_t *h = test_server_open (s);

    test_good (h);
    test_async (h);
    test_limits (h);
    test_bad (h);
    idt_close (h);
    test_server_destroy (s);
    return done_testing ();
}
