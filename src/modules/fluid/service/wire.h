/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.h - payloads of the fluid service (protocol.md section 5)
 *
 * Payloads may come from untrusted senders. If anything in a payload is malformed, the function that decodes the
 * payload fails with EPROTO. If the function has an 'errp', it writes a text there that names the fault.
 */
#ifndef FLUID_WIRE_H
#define FLUID_WIRE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

#include "libfluid/block.h"
#include "libjsonview/jsonview.h"
#include "modules/fluid/lease/box.h"
#include "modules/fluid/node/waiting.h"
#include "modules/fluid/lease/watermark.h"

/* --- values in JSON: 64-bit numbers and dates are strings ------------------------------------------- */

json_t *wire_number (uint64_t n);    /* "1700000000000"; NULL: ENOMEM */
json_t *wire_date (int64_t unix_ms); /* "2026-01-01T00:00:00.000Z"; NULL: ENOMEM */

/* --- fluid.block: libfluid/block.h ---------------------------------------------------------------- */

/* Read a request. Returns 0, or -1 with errno EPROTO and 'errp' filled. */
int wire_get_block (const void *data, size_t size, uint32_t *count, fluid_t *after, idt_error_t *errp);

/* Read runs. Returns an array, and its length in '*n': the array is 'small' if its 'room' entries suffice; otherwise
 * the caller frees the array. On failure returns NULL with errno EPROTO or ENOMEM.
 */
struct id_run *wire_get_runs (const void *data, size_t size, struct id_run *small, size_t room, size_t *n);

/* --- fluid.generate: JSON ------------------------------------------------------------------------- */

/* Read the number of ids that a request asks for: "count", or 1 if it is missing. '*r' keeps its memory for the next
 * call. A value that is not an integer or does not fit is returned as 0, which is not a valid count. 'text' may be NULL
 * (no payload), which is malformed. Returns 0, or -1 with errno EPROTO or ENOMEM and 'errp' filled.
 */
int wire_get_count (struct jv_reader *r, const char *text, uint32_t *count, idt_error_t *errp);

/* Write {"runs":[["fuZZybuNNy",16],...]} with its NUL. Returns the size, at most WIRE_RUNS_TEXT (n). */
#define WIRE_RUNS_TEXT(n) (16 + (size_t)(n) * (FLUID_TEXT_MAX + 16))
size_t wire_write_runs (char *buf, const struct id_run *run, size_t n);

/* --- fluid.lease: JSON ---------------------------------------------------------------------------- */

/* A request for whole generators, of any number of ranks, and one for a part:
 *
 *     {"want": [[rank, "UUID", number, "end_ms", size, left_ms, ranks], ...], "epoch": "date"}
 *     {"part": [rank, "UUID", number, "end_ms", size, left_ms, "kept"]}
 *
 * The last elements of a want may be left out: size 1024, left_ms 0, ranks 0. The answer:
 *
 *     {"lease": [[rank, "UUID", number, "lo_ms", "hi_ms"], ...],            of whole generators
 *      "time_us": ["received", "sent"], "bound_us": "...", "lease_ms": "...", "epoch": "date"}
 *     {"lease": [[rank, "UUID", number, "lo_ms", "hi_ms", generator, "granules", use_ms], ...],     of a part
 *      "share": n, "retry_ms": n}
 */
json_t *wire_pack_lease_request (const struct lease_request *req);
json_t *wire_pack_lease_answer (const struct lease_answer *answer);

/* Read a request or an answer. The caller frees the array in the result, with lease_request_fini () and free ().
 * Returns 0, or -1 with errno EPROTO or ENOMEM, 'errp' filled and nothing to free.
 */
int wire_get_lease_request (const json_t *o, struct lease_request *req, idt_error_t *errp);
int wire_get_lease_answer (const json_t *o, struct lease_answer *answer, idt_error_t *errp);

/* --- fluid.position: JSON ------------------------------------------------------------------------ */

/* {"rank":n,"from":"UUID","holders":[COUNT,"SUM"],"low_ms":"...","part_low_ms":"..."}; the last member only if the
 * report has it. NULL: ENOMEM.
 */
json_t *wire_pack_report (const struct report *report);

/* Return 0, or -1 with errno EPROTO and 'errp' filled. */
int wire_get_report (const json_t *o, struct report *report, idt_error_t *errp);

#endif /* FLUID_WIRE_H */
