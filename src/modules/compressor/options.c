/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* options.c - the compressor.* attributes: nonsense is refused with a sentence that says what would do */
#include <errno.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/duration.h"
#include "modules/compressor/options.h"

#define MILLION 1000000

static int get_number (idt_t *h, const char *name, const char *unless_given, uint32_t min, uint32_t max,
                       uint32_t *value, idt_error_t *errp)
{
    const char *s = idt_attr_define (h, name, unless_given);
    uint64_t n;

    if (!s)
        return errprintf (errp, "%s: %s", name, strerror (errno));
    if (parse_number (s, min, max, &n) < 0) {
        errno = EINVAL;
        return errprintf (errp, "%s=%s: must be a number from %u to %u", name, s, min, max);
    }
    *value = (uint32_t)n;
    return 0;
}

static int get_timeout (idt_t *h, struct options *o, idt_error_t *errp)
{
    const char *s = idt_attr_define (h, "compressor.timeout", "5s");

    if (!s)
        return errprintf (errp, "compressor.timeout: %s", strerror (errno));
    if (parse_duration (s, 3600000, &o->timeout_ms) == 0 && o->timeout_ms >= 10)
        return 0;
    errno = EINVAL;
    return errprintf (errp, "compressor.timeout=%s: must be 10ms to 1h, such as 5s", s);
}

static int get_place (idt_t *h, struct options *o, idt_error_t *errp)
{
    if (idt_get_rank (h, &o->rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if (o->rank != 0)
        return 0;
    if (!(o->statedir = idt_attr_get (h, "statedir")))
        o->statedir = idt_attr_get (h, "rundir");
    if (!o->statedir || !*o->statedir) {
        errno = EINVAL;
        return errprintf (errp, "rank 0 needs a folder to keep documents in: set statedir");
    }
    return 0;
}

int options_read (idt_t *h, struct options *o, idt_error_t *errp)
{
    *o = (struct options){ 0 };
    if (get_place (h, o, errp) < 0
        || get_number (h, "compressor.max-documents", "1024", 1, 65536, &o->max_documents, errp) < 0
        || get_number (h, "compressor.max-sessions", "65536", 1, MILLION, &o->limits.sessions, errp) < 0
        || get_number (h, "compressor.max-clusters", "1000000", 1, MILLION, &o->limits.clusters, errp) < 0
        || get_number (h, "compressor.max-count", "1048576", 1, 1 << 30, &o->max_count, errp) < 0
        || get_number (h, "compressor.max-waiting", "16384", 1, MILLION, &o->max_waiting, errp) < 0
        || get_number (h, "compressor.window", "4096", 1, MILLION, &o->limits.window, errp) < 0
        || get_number (h, "compressor.compact", "4096", 1, MILLION, &o->compact, errp) < 0)
        return -1;
    return get_timeout (h, o, errp);
}
