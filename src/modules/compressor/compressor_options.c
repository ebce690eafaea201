/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor_options.c - reads the compressor.* attributes; the message for an invalid value says what is allowed */
#include "libmodule/module.h"
#include "libutil/errprintf.h"
#include "modules/compressor/compressor_options.h"

#define MILLION 1000000

int compressor_options_read (idt_t *h, struct compressor_options *o, idt_error_t *errp)
{
    *o = (struct compressor_options){ 0 };
    if (idt_get_rank (h, &o->rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if ((o->rank == 0 && module_option_statedir (h, "documents", &o->statedir, errp) < 0)
        || module_option_number (h, "compressor.max-documents", "1024", 1, 65536, &o->max_documents, errp) < 0
        || module_option_number (h, "compressor.max-sessions", "65536", 1, MILLION, &o->limits.sessions, errp) < 0
        || module_option_number (h, "compressor.max-clusters", "1000000", 1, MILLION, &o->limits.clusters, errp) < 0
        || module_option_number (h, "compressor.max-count", "1048576", 1, 1 << 30, &o->max_count, errp) < 0
        || module_option_number (h, "compressor.max-waiting", "16384", 1, MILLION, &o->max_waiting, errp) < 0
        || module_option_number (h, "compressor.window", "4096", 1, MILLION, &o->limits.window, errp) < 0
        || module_option_number (h, "compressor.compact", "4096", 1, MILLION, &o->compact, errp) < 0)
        return -1;
    return module_option_duration (h, "compressor.timeout", "5s", 10, 3600000, "10ms to 1h, such as 5s", &o->timeout_ms,
                                   errp);
}
