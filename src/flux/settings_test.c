/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* settings_test.c - arguments of the module, and Flux's configuration */
#include <errno.h>
#include <string.h>

#include "flux/settings.h"
#include "test/tap.h"

static struct settings *make (char *arg, const char *config, idt_error_t *errp)
{
    json_t *o = config ? json_loads (config, 0, NULL) : NULL;
    struct settings *s = settings_create (arg ? 1 : 0, &arg, o, errp);

    json_decref (o);
    return s;
}

static bool is_set (struct settings *s, const char *name, const char *value)
{
    const char *found = settings_get (s, name);

    return value ? found && strcmp (found, value) == 0 : !found;
}

static bool refuses (char *arg, const char *config, const char *text)
{
    idt_error_t error = { "" };

    errno = 0;
    struct settings *s = make (arg, config, &error);
    bool good = !s && errno == EINVAL && strcmp (error.text, text) == 0;
    if (!good)
        diag ("%s", error.text);
    settings_destroy (s);
    return good;
}

int main (void)
{
    struct settings *s = make ("fluid.lease=10s",
                               "{\"fluid\":{\"lease\":\"20s\",\"max-generators\":2},\"statedir\":\"/x\"}", NULL);

    ok (s && is_set (s, "fluid.lease", "10s"), "an argument of the module overrides the configuration");
    ok (settings_unknown (s) && strcmp (settings_unknown (s), "fluid.max-generators") == 0,
        "a setting that is given but was never read is reported as unknown");
    ok (is_set (s, "fluid.max-generators", "2"), "a setting that is a number is read as a text");
    ok (is_set (s, "statedir", "/x") && !settings_unknown (s),
        "a key of the configuration that is in no table is used as it is");
    ok (is_set (s, "fluid.lanes", NULL), "a setting that was not given is read as NULL");
    settings_destroy (s);
    s = make ("fluid.epoch==", NULL, NULL);
    ok (s && is_set (s, "fluid.epoch", "="), "the value of a setting may be any text");
    settings_destroy (s);
    s = make (NULL, NULL, NULL);
    ok (s && !settings_unknown (s), "the settings may have neither arguments nor a configuration");
    settings_destroy (s);
    ok (refuses ("verbose", NULL, "verbose: an argument must be NAME=VALUE, as fluid.lease=10s")
            && refuses ("=1", NULL, "=1: an argument must be NAME=VALUE, as fluid.lease=10s"),
        "an argument must have the form name=value");
    ok (refuses (NULL, "{\"fluid\":{\"lease\":1.5}}", "idtree.fluid.lease: must be a text or a whole number")
            && refuses (NULL, "{\"fluid\":{\"lease\":{\"a\":1}}}",
                        "idtree.fluid.lease: must be a text or a whole number")
            && refuses (NULL, "{\"fluid\":[1]}", "idtree.fluid: must be a text or a whole number"),
        "the values in the configuration must be texts or whole numbers");
    ok (refuses ("root.store=service=idtree", NULL,
                 "root.store: a Flux instance keeps the state of rank 0 in statedir, because no other "
                 "host can become its rank 0: leave root.store out")
            && refuses (NULL, "{\"cluster\":{\"root\":\"n0,n1:8061\"}}",
                        "cluster.root: a Flux instance keeps the state of rank 0 in statedir, because no other "
                        "host can become its rank 0: leave cluster.root out"),
        "in Flux there is no standby for rank 0");
    settings_destroy (NULL);
    return done_testing ();
}
