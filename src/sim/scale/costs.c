/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* costs.c - the times of steps, read from a file */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "sim/scale/scale.h"

#define MOST 1e9

struct cost_member {
    const char *name;
    size_t offset;
    size_t count; /* number of values: 1, or 2 for struct cost_grows */
};

#define MEMBER(x)                                                                         \
    {                                                                                     \
#x, offsetof(struct costs, x), sizeof(((struct costs *)NULL)->x) / sizeof(double) \
    }

static const struct cost_member members[] = {
    MEMBER (request_us),       MEMBER (send_us),         MEMBER (receive_us), MEMBER (heartbeat_us),
    MEMBER (lease_us),         MEMBER (want_us),         MEMBER (report_us),  MEMBER (hello_us),
    MEMBER (tick_us),          MEMBER (wake_us),         MEMBER (io_us),      MEMBER (client_us),
    MEMBER (local_us),         MEMBER (latency_us),      MEMBER (jitter_us),  MEMBER (bytes_per_us),
    MEMBER (store_ms),         MEMBER (lost_ms),         MEMBER (inside_us),  MEMBER (brokers),
    MEMBER (inside_report_us), MEMBER (inside_local_us), MEMBER (cold_us),    MEMBER (inside_heartbeat_us),
    MEMBER (inside_client_us), MEMBER (start_us),        MEMBER (boot_ms),
};

#define NMEMBERS (sizeof (members) / sizeof (members[0]))

static bool is_cost (const json_t *value)
{
    return json_is_number (value) && json_number_value (value) >= 0 && json_number_value (value) <= MOST;
}

static int read_number (struct costs *c, const char *path, const json_t *value, const struct cost_member *m,
                        idt_error_t *errp)
{
    double number = json_number_value (value);

    if (!is_cost (value))
        return errsetf (errp, EINVAL, "%s: '%s' must be a number from 0 to %g", path, m->name, MOST);
    memcpy ((char *)c + m->offset, &number, sizeof (number));
    return 0;
}

static int read_grows (struct costs *c, const char *path, const json_t *value, const struct cost_member *m,
                       idt_error_t *errp)
{
    const json_t *few = json_array_get (value, 0), *many = json_array_get (value, 1);
    struct cost_grows g = { json_number_value (few), json_number_value (many) };

    if (json_array_size (value) != 2 || !is_cost (few) || !is_cost (many))
        return errsetf (errp, EINVAL, "%s: '%s' must be two numbers from 0 to %g", path, m->name, MOST);
    memcpy ((char *)c + m->offset, &g, sizeof (g));
    return 0;
}

static int read_member (struct costs *c, const char *path, json_t *o, const struct cost_member *m, idt_error_t *errp)
{
    const json_t *value = json_object_get (o, m->name);

    if (!value)
        return errsetf (errp, EINVAL, "%s: '%s' is missing", path, m->name);
    return m->count == 1 ? read_number (c, path, value, m, errp) : read_grows (c, path, value, m, errp);
}

static bool is_known (const char *name)
{
    for (size_t i = 0; i < NMEMBERS; i++)
        if (strcmp (members[i].name, name) == 0)
            return true;
    return strcmp (name, "about") == 0;
}

static int read_members (struct costs *c, const char *path, json_t *o, idt_error_t *errp)
{
    const char *name;
    json_t *value;

    for (size_t i = 0; i < NMEMBERS; i++)
        if (read_member (c, path, o, &members[i], errp) < 0)
            return -1;
    json_object_foreach (o, name, value)
        if (!is_known (name))
            return errsetf (errp, EINVAL, "%s: '%s' is not the name of a time", path, name);
    if (c->bytes_per_us == 0)
        return errsetf (errp, EINVAL, "%s: 'bytes_per_us' must be above 0", path);
    if (c->brokers.few < 1 || c->brokers.many <= c->brokers.few)
        return errsetf (errp, EINVAL,
                        "%s: 'brokers' must be two numbers, the first at least 1 and less than the "
                        "second",
                        path);
    return 0;
}

int costs_read (struct costs *c, const char *path, idt_error_t *errp)
{
    json_error_t error;
    json_t *o = json_load_file (path, JSON_REJECT_DUPLICATES, &error);
    int rc;

    if (!o)
        return errsetf (errp, EINVAL, "%s: %s", path, error.text);
    rc = json_is_object (o) ? read_members (c, path, o, errp) : errsetf (errp, EINVAL, "%s: not a JSON object", path);
    json_decref (o);
    return rc;
}

double costs_with (const struct costs *c, struct cost_grows g, double brokers)
{
    double doublings = log2 (fmax (brokers / c->brokers.few, 1)), all = log2 (c->brokers.many / c->brokers.few);

    return fmax (g.few + (g.many - g.few) * doublings / all, 0);
}
