/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_request.c - makes requests for job-ingest.submit: J is HEADER.PAYLOAD.SIGNATURE (RFC 15) with the mechanism
 * "none"
 *
 * This code is independent of the module's code that reads J, so that tests notice an error in one of them.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/base64.h"
#include "test/job_request.h"

#define TOO_LARGE ((1u << 20) + 1024)
#define HEADER_MAX 128

/* Return the text that fills the jobspec up to the wanted size. */
static char *make_pad (size_t have, size_t want, uint32_t seed)
{
    size_t n = want > have ? want - have : 0;
    char *pad = malloc (n + 1);

    if (pad) {
        memset (pad, 'x', n);
        for (size_t i = 0; seed && i < n / 2; i++) {
            seed = seed * 1664525 + 1013904223;
            pad[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/="[seed >> 26];
        }
        pad[n] = '\0';
    }
    return pad;
}

__attribute__ ((format (printf, 1, 2))) static char *print (const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start (ap, fmt);
    if (vasprintf (&text, fmt, ap) < 0)
        text = NULL;
    va_end (ap);
    return text;
}

static char *make_jobspec (const struct job_request *r)
{
    static const char fmt[] =
        "{\"resources\":[{\"type\":\"slot\",\"count\":1,\"label\":\"task\",\"with\":[{\"type\":\"core\","
        "\"count\":1}]}],\"tasks\":[{\"command\":[\"true\"],\"slot\":\"task\",\"count\":{\"per_slot\":1}}],"
        "\"attributes\":{\"system\":{\"duration\":0},\"user\":{\"tag\":\"%s\",\"pad\":\"%s\"}},\"version\":%d}";
    char *pad = make_pad (sizeof (fmt) + strlen (r->tag), r->fault == JOB_TOO_LARGE ? TOO_LARGE : r->size, r->seed);
    char *text = pad ? print (fmt, r->tag, pad, r->fault == JOB_VERSION ? 999 : 1) : NULL;

    if (text && r->fault == JOB_NOT_JSON)
        text[0] = '[';
    free (pad);
    return text;
}

/* Write the header: pairs of a name and a value. The value's type stands before it, and a NUL follows each text. */
static size_t make_header (const struct job_request *r, char header[HEADER_MAX])
{
    uint32_t userid = r->fault == JOB_OTHERS ? r->userid + 1 : r->userid;

    return (size_t)snprintf (header, HEADER_MAX, "version%ci1%cuserid%ci%" PRIu32 "%cmechanism%csnone%c", 0, 0, 0,
                             userid, 0, 0, 0);
}

static char *wrap (const struct job_request *r, const char *jobspec)
{
    static const char signature[] = ".none";
    char header[HEADER_MAX];
    size_t header_size = make_header (r, header), size = strlen (jobspec);
    char *j = malloc (BASE64_ENCODED_SIZE (header_size) + BASE64_ENCODED_SIZE (size) + sizeof (signature) + 2);

    if (!j)
        return NULL;
    size_t n = base64_encode (header, header_size, j);
    j[n++] = '.';
    n += base64_encode (jobspec, size, j + n);
    memcpy (j + n, signature, sizeof (signature));
    return j;
}

char *job_request_text (const struct job_request *r)
{
    char *jobspec = make_jobspec (r), *j = jobspec ? wrap (r, jobspec) : NULL, *text = NULL;
    const char *quote = r->key ? "\"" : "", *name = r->key ? ",\"key\":" : "", *key = r->key ? r->key : "";

    if (j)
        text = print ("{\"%s\":\"%s\",\"urgency\":%d,\"flags\":0%s%s%s%s}", r->fault == JOB_NO_J ? "K" : "J", j,
                      r->fault == JOB_URGENCY ? 99 : 16, name, quote, key, quote);
    free (j);
    free (jobspec);
    return text;
}
