/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ingest_options.c - reads the ingest.* attributes; the message for an invalid value says what is allowed */
#include <errno.h>

#include "libmodule/module.h"
#include "libutil/errprintf.h"
#include "modules/ingest/ingest_options.h"

#define MIB (1u << 20)

int ingest_options_read (idt_t *h, struct ingest_options *o, idt_error_t *errp)
{
    uint32_t mib = 0;

    *o = (struct ingest_options){ 0 };
    if (idt_get_rank (h, &o->rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if ((o->rank == 0 && module_option_statedir (h, "jobs", &o->statedir, errp) < 0)
        || module_option_switch (h, "ingest.require-signature", "true", &o->require_signature, errp) < 0
        || module_option_switch (h, "ingest.allow-guests", "false", &o->allow_guests, errp) < 0
        || module_option_number (h, "ingest.max-jobspec", "1048576", 1024, 16 * MIB, &o->max_jobspec, errp) < 0
        || module_option_number (h, "ingest.max-waiting", "65536", 1, 1 << 24, &o->max_waiting, errp) < 0
        || module_option_number (h, "ingest.max-waiting-bytes", "67108864", MIB, 1u << 31, &o->max_waiting_bytes, errp)
               < 0
        || module_option_number (h, "ingest.max-jobs", "1000000", 1, 1u << 30, &o->max_jobs, errp) < 0
        || module_option_number (h, "ingest.max-mib", "4096", 1, 1u << 24, &mib, errp) < 0
        || module_option_number (h, "ingest.max-remembered", "10000000", 1, 1u << 30, &o->max_remembered, errp) < 0
        || module_option_duration (h, "ingest.remember", "1h", 1000, UINT64_C (7) * 86400000, "1s to 7d, such as 1h",
                                   &o->remember_ms, errp)
               < 0)
        return -1;
    if (module_option_duration (h, "ingest.settle", "100ms", 10, 3600000, "10ms to 1h, such as 100ms", &o->settle_ms,
                                errp)
        < 0)
        return -1;
    o->max_bytes = (uint64_t)mib * MIB;
    return module_option_duration (h, "ingest.timeout", "30s", 100, 3600000, "100ms to 1h, such as 30s", &o->timeout_ms,
                                   errp);
}
