/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* settings.c - attributes that Flux's broker does not have, from the module's arguments and Flux's configuration */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flux/settings.h"
#include "libutil/errprintf.h"

#define NAME_SIZE 128

struct settings {
    json_t *given; /* the values; the key is the name */
    json_t *asked; /* the names that the module has read */
};

static int put (struct settings *s, const char *name, json_t *value, idt_error_t *errp)
{
    return json_object_set_new (s->given, name, value) < 0 ? errsetf (errp, ENOMEM, "out of memory") : 0;
}

/* --- configuration ---------------------------------------------------------------------------------- */

static int put_config (struct settings *s, const char *name, const json_t *value, idt_error_t *errp)
{
    char text[32];

    if (json_is_string (value))
        return put (s, name, json_string (json_string_value (value)), errp);
    if (!json_is_integer (value))
        return errsetf (errp, EINVAL, "idtree.%s: must be a text or a whole number", name);
    snprintf (text, sizeof (text), "%lld", (long long)json_integer_value (value));
    return put (s, name, json_string (text), errp);
}

/* Read a table: NAME in [idtree.fluid] is the attribute fluid.NAME. */
static int read_table (struct settings *s, const char *table, const json_t *values, idt_error_t *errp)
{
    char name[NAME_SIZE];
    const char *key;
    json_t *value;

    if (!json_is_object (values))
        return put_config (s, table, values, errp);
    json_object_foreach ((json_t *)values, key, value) {
        if (snprintf (name, sizeof (name), "%s.%s", table, key) >= (int)sizeof (name))
            return errsetf (errp, EINVAL, "idtree.%.100s...: there is no such name", table);
        if (put_config (s, name, value, errp) < 0)
            return -1;
    }
    return 0;
}

static int read_config (struct settings *s, const json_t *config, idt_error_t *errp)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)config, key, value) {
        if (read_table (s, key, value, errp) < 0)
            return -1;
    }
    return 0;
}

/* --- arguments ----------------------------------------------------------------------------------------- */

static int read_argument (struct settings *s, const char *arg, idt_error_t *errp)
{
    size_t len = strcspn (arg, "=");
    char name[NAME_SIZE];

    if (arg[len] != '=' || len == 0 || len >= sizeof (name))
        return errsetf (errp, EINVAL, "%.100s: an argument must be NAME=VALUE, as fluid.lease=10s", arg);
    snprintf (name, sizeof (name), "%.*s", (int)len, arg);
    return put (s, name, json_string (arg + len + 1), errp);
}

static int read_arguments (struct settings *s, int argc, char **argv, idt_error_t *errp)
{
    for (int i = 0; i < argc; i++)
        if (read_argument (s, argv[i], errp) < 0)
            return -1;
    return 0;
}

/* Flux's rank 0 cannot move to another host, so its idtree has no role to wait for. */
static int check_root (const struct settings *s, idt_error_t *errp)
{
    static const char *const names[] = { "root.store", "root.store-sync", "root.takeover", "cluster.root" };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (json_object_get (s->given, names[i]))
            return errsetf (errp, EINVAL,
                            "%s: a Flux instance keeps the state of rank 0 in statedir, because no other host can "
                            "become its rank 0: leave %s out",
                            names[i], names[i]);
    return 0;
}

/* --- read ------------------------------------------------------------------------------------------------ */

const char *settings_get (struct settings *s, const char *name)
{
    json_object_set_new (s->asked, name, json_true ());
    return json_string_value (json_object_get (s->given, name));
}

const char *settings_unknown (const struct settings *s)
{
    const char *name;
    json_t *value;

    json_object_foreach (s->given, name, value) {
        if (!json_object_get (s->asked, name))
            return name;
    }
    return NULL;
}

/* --- create and destroy ----------------------------------------------------------------------------------- */

void settings_destroy (struct settings *s)
{
    if (!s)
        return;
    int saved = errno;
    json_decref (s->given);
    json_decref (s->asked);
    free (s);
    errno = saved;
}

struct settings *settings_create (int argc, char **argv, const json_t *config, idt_error_t *errp)
{
    struct settings *s = calloc (1, sizeof (*s));

    if (s && (s->given = json_object ()) && (s->asked = json_object ())) {
        if (read_config (s, config, errp) == 0 && read_arguments (s, argc, argv, errp) == 0
            && check_root (s, errp) == 0)
            return s;
    }
    else
        errsetf (errp, ENOMEM, "out of memory");
    settings_destroy (s);
    return NULL;
}
