/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_sign.c - arbitrary bytes are a signed J, or are refused with a reason; if a J is accepted, it equals the J that
 * is made of its payload and user
 *
 * The first byte is the largest allowed size of a payload.
 */
#include <errno.h>

#include "fuzz.h"
#include "libjob/sign.h"
#include "libutil/text.h"

/* Check that a J that is made of the same payload and user is equal behind the header. Headers may differ, because the
 * keys may be in another order, and the number may have leading zeros.
 */
static void made_again (const char *j, size_t size, const char *payload, size_t payload_size, uint32_t userid)
{
    char *again = job_sign_wrap (payload, payload_size, userid), *back = NULL;
    size_t tail = size - (size_t)((const char *)memchr (j, '.', size) - j), back_size = 0;
    uint32_t back_userid = 0;

    must (again && strlen (again) >= tail && memcmp (again + strlen (again) - tail, j + size - tail, tail) == 0);
    must (job_sign_unwrap (again, strlen (again), payload_size, &back, &back_size, &back_userid, NULL) == 0);
    must (back_size == payload_size && memcmp (back, payload, back_size) == 0 && back_userid == userid);
    free (again);
    free (back);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    idt_error_t err = { "" };
    char *payload = NULL;
    size_t payload_size = 77;
    uint32_t userid = 77;

    if (size == 0)
        return 0;
    const char *j = (const char *)data + 1;
    if (job_sign_unwrap (j, size - 1, data[0], &payload, &payload_size, &userid, &err) < 0) {
        must (errno == EINVAL || errno == ENOTSUP || errno == EMSGSIZE);
        must (!payload && payload_size == 77 && userid == 77 && strncmp (err.text, "J: ", 3) == 0);
        must (utf8_span_printable (err.text, strlen (err.text)) == strlen (err.text));
        return 0;
    }
    must (payload_size <= data[0] && payload[payload_size] == '\0');
    made_again (j, size - 1, payload, payload_size, userid);
    free (payload);
    return 0;
}
