/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_jobspec.c - each text is a jobspec, or is refused with one printable line; an accepted jobspec has the form that
 * readers expect
 */
#include <errno.h>
#include <jansson.h>

#include "fuzz.h"
#include "libutil/text.h"
#include "modules/ingest/job/jobspec.h"

/* Check the parts of a jobspec that a resource manager reads without further checks. */
static void check_form (json_t *o)
{
    const char *label, *slot;
    json_t *vertex, *with, *command;
    json_int_t slots;
    double duration;
    int version;

    must (json_unpack (o, "{s:i s:[o!] s:[{s:s s:o}!] s:{s:{s:F}}}", "version", &version, "resources", &vertex, "tasks",
                       "slot", &slot, "command", &command, "attributes", "system", "duration", &duration)
          == 0);
    if (!json_object_get (vertex, "label")
        || strcmp (json_string_value (json_object_get (vertex, "type")), "node") == 0)
        must (json_unpack (vertex, "{s:[o!]}", "with", &vertex) == 0);
    must (json_unpack (vertex, "{s:I s:s s:o}", "count", &slots, "label", &label, "with", &with) == 0);
    must (version == 1 && duration >= 0 && slots >= 1 && strcmp (slot, label) == 0);
    must (json_array_size (with) >= 1 && json_array_size (with) <= 2 && json_array_size (command) >= 1);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    idt_error_t err = { "" };

    struct jv_reader reader = JV_READER_INIT;
    int rc = jobspec_check (&reader, text, size, &err);

    jv_reader_fini (&reader);
    if (rc < 0) {
        must (errno == EINVAL && strncmp (err.text, "jobspec: ", 9) == 0);
        must (utf8_span_printable (err.text, strlen (err.text)) == strlen (err.text));
        return 0;
    }
    must (err.text[0] == '\0' && utf8_span (text, size) == size && !memchr (text, '\0', size));
    json_t *o = json_loadb (text, size, JSON_REJECT_DUPLICATES, NULL);
    check_form (o);
    json_decref (o);
    return 0;
}
