/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_fluid_wire.c - payloads of the fluid service from untrusted sources
 *
 * The first byte selects the decoder. If a payload is decoded without an error, it must be the same after it is encoded
 * and decoded again.
 */
#include <stdlib.h>
#include <string.h>

#include "modules/fluid/service/wire.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void must (int good)
{
    if (!good)
        abort ();
}

static void try_block (const uint8_t *data, size_t size)
{
    uint8_t buf[BLOCK_REQUEST_SIZE];
    idt_error_t err;
    uint32_t count;
    fluid_t after;

    if (wire_get_block (data, size, &count, &after, &err) < 0)
        return;
    block_put_request (buf, count, after);
    must (memcmp (buf, data, size) == 0);
}

static void try_runs (const uint8_t *data, size_t size)
{
    size_t n;
    struct id_run *run = wire_get_runs (data, size, NULL, 0, &n);

    for (size_t i = 0; run && i < n; i++) {
        uint8_t buf[BLOCK_RUN_SIZE];

        block_put_run (buf, run[i]);
        must (memcmp (buf, data + i * BLOCK_RUN_SIZE, BLOCK_RUN_SIZE) == 0);
    }
    free (run);
}

static void try_request (const json_t *o)
{
    struct lease_request a, b;
    idt_error_t err;

    if (wire_get_lease_request (o, &a, &err) < 0)
        return;
    json_t *again = wire_pack_lease_request (&a);
    must (again && wire_get_lease_request (again, &b, &err) == 0);
    must (a.nwant == b.nwant && a.is_part == b.is_part && a.has_epoch == b.has_epoch);
    must (a.nwant == 0 || memcmp (a.want, b.want, a.nwant * sizeof (a.want[0])) == 0);
    must (!a.has_epoch || a.epoch_ms == b.epoch_ms);
    json_decref (again);
    lease_request_fini (&a);
    lease_request_fini (&b);
}

static void try_answer (const json_t *o)
{
    struct lease_answer a, b;
    idt_error_t err;

    if (wire_get_lease_answer (o, &a, &err) < 0)
        return;
    json_t *again = wire_pack_lease_answer (&a);
    must (again && wire_get_lease_answer (again, &b, &err) == 0);
    must (a.ngrant == b.ngrant && a.has_time == b.has_time && a.has_epoch == b.has_epoch && a.lease_ms == b.lease_ms
          && a.share == b.share && a.retry_ms == b.retry_ms);
    must (a.ngrant == 0 || memcmp (a.grant, b.grant, a.ngrant * sizeof (a.grant[0])) == 0);
    must (!a.has_time || (a.received_us == b.received_us && a.sent_us == b.sent_us && a.bound_us == b.bound_us));
    must (!a.has_epoch || a.epoch_ms == b.epoch_ms);
    json_decref (again);
    free ((void *)a.grant);
    free ((void *)b.grant);
}

static void try_report (const json_t *o)
{
    struct report a, b;
    idt_error_t err;

    if (wire_get_report (o, &a, &err) < 0)
        return;
    json_t *again = wire_pack_report (&a);
    must (again && wire_get_report (again, &b, &err) == 0);
    must (a.rank == b.rank && strcmp (a.from, b.from) == 0 && a.holders.count == b.holders.count
          && a.holders.sum == b.holders.sum && a.low_ms == b.low_ms && a.part_low_ms == b.part_low_ms);
    json_decref (again);
}

static void try_count (const uint8_t *data, size_t size)
{
    struct jv_reader r = JV_READER_INIT;
    char *text = malloc (size + 1);
    idt_error_t err;
    uint32_t count;

    must (text != NULL);
    memcpy (text, data, size);
    text[size] = '\0';
    if (wire_get_count (&r, text, &count, &err) == 0)
        must (text[strspn (text, " \t\r\n")] == '{');
    jv_reader_fini (&r);
    free (text);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] == 'b')
        try_block (data + 1, size - 1);
    else if (data[0] == 'r')
        try_runs (data + 1, size - 1);
    else if (data[0] == 'g')
        try_count (data + 1, size - 1);
    else {
        json_t *o = json_loadb ((const char *)data, size, 0, NULL);

        if (json_is_object (o)) {
            try_request (o);
            try_answer (o);
            try_report (o);
        }
        json_decref (o);
    }
    return 0;
}
