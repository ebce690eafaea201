/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobspec_test.c - jobspecs that Flux's commands send are accepted; a refusal names the path of the field, the rule,
 * and the value
 */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <string.h>

#include "libutil/text.h"
#include "modules/ingest/job/jobspec.h"
#include "test/failing_alloc.h"
#include "test/tap.h"

static struct jv_reader reader = JV_READER_INIT;
static idt_error_t error;

static int check (const char *text, size_t size)
{
    error.text[0] = '\0';
    errno = 0;
    return jobspec_check (&reader, text, size, &error);
}

/* A refusal must be one line of printable characters. */
static bool is_refusal (int rc)
{
    return rc < 0 && errno == EINVAL && strncmp (error.text, "jobspec: ", 9) == 0
           && utf8_span_printable (error.text, strlen (error.text)) == strlen (error.text);
}

/* --- jobspecs as Flux's commands make them ------------------------------------------------------------------ */

static const struct {
    const char *command, *text;
} stock[] = {
    { "flux submit hostname",
      "{\"resources\": [{\"type\": \"slot\", \"count\": 1, \"with\": [{\"type\": \"core\", \"count\": 1}], \"label\": "
      "\"task\"}], \"tasks\": [{\"command\": [\"hostname\"], \"slot\": \"task\", \"count\": {\"per_slot\": 1}}], "
      "\"attributes\": {\"system\": {\"duration\": 0, \"environment\": {\"PATH\": \"/bin\", \"LANG\": \"C\"}, \"cwd\": "
      "\"/home/u\", \"shell\": {\"options\": {\"rlimit\": {\"cpu\": -1, \"nofile\": 1024}}}}}, \"version\": 1}" },
    { "flux run -N4 -n5 -x -g1 -t 1.5m --cwd=.. app é",
      "{\"resources\": [{\"type\": \"node\", \"count\": 4, \"exclusive\": true, \"with\": [{\"type\": \"slot\", \"co"
      "unt\": "
      "2, \"with\": [{\"type\": \"core\", \"count\": 1}, {\"type\": \"gpu\", \"count\": 1}], \"label\": \"task\"}]}], "
      "\"tasks\": [{\"command\": [\"app\", \"é\"], \"slot\": \"task\", \"count\": {\"total\": 5}}], \"attributes\": "
      "{\"system\": {\"duration\": 90.0, \"environment\": {}, \"cwd\": \"..\", \"shell\": {\"options\": {\"rlimit\":"
      " {}, "
      "\"verbose\": 1}}}}, \"version\": 1}" },
    { "flux submit --dependency --requires --queue --bank --job-name --setattr=user.x",
      "{\"resources\": [{\"type\": \"slot\", \"count\": 2, \"with\": [{\"type\": \"core\", \"count\": 4}], \"label\": "
      "\"task\"}], \"tasks\": [{\"command\": [\"a\", \"\"], \"slot\": \"task\", \"count\": {\"per_slot\": 1}}], "
      "\"attributes\": {\"system\": {\"duration\": 0, \"dependencies\": [{\"scheme\": \"afterok\", \"value\": "
      "\"ƒ2oLkTLb\"}, {\"scheme\": \"string\", \"value\": \"foo\", \"type\": [\"in\", \"out\"]}], \"constraints\": "
      "{\"and\": [{\"properties\": [\"ssd\", \"^slow\"]}, {\"not\": [{\"hostlist\": [\"host[0-3]\"]}]}, {\"or\": "
      "[{\"ranks\": [\"0-3,7\", \"9\"]}, {}]}]}, \"queue\": \"batch\", \"bank\": \"b\", \"job\": {\"name\": \"n\"}}, "
      "\"user\": {\"x\": [1, null, true]}}, \"version\": 1}" },
    { "flux batch -n2 --conf script",
      "{\"resources\": [{\"type\": \"slot\", \"count\": 2, \"with\": [{\"type\": \"core\", \"count\": 1}], \"label\": "
      "\"task\"}], \"tasks\": [{\"command\": [\"flux\", \"broker\", \"{{tmpdir}}/script\"], \"slot\": \"task\", "
      "\"count\": {\"per_slot\": 1}}], \"attributes\": {\"system\": {\"duration\": 0, \"job\": {\"name\": \"script\"}, "
      "\"shell\": {\"options\": {\"per-resource\": {\"type\": \"node\"}, \"mpi\": \"none\", \"output\": {\"stdout\": "
      "{\"type\": \"file\", \"path\": \"flux-{{id}}.out\"}}}}, \"files\": {\"script\": {\"mode\": 33216, \"data\": "
      "\"#!/bin/sh\\nhostname\\n\", \"encoding\": \"utf-8\"}, \"conf.json\": {\"mode\": 33152, \"data\": {\"a\": {\""
      "b\": "
      "[]}}}}}}, \"version\": 1}" },
    { "flux alloc -N2",
      "{\"resources\": [{\"type\": \"node\", \"count\": 2, \"exclusive\": true, \"with\": [{\"type\": \"slot\", \"co"
      "unt\": "
      "1, \"with\": [{\"type\": \"core\", \"count\": 1}], \"label\": \"task\"}]}], \"tasks\": [{\"command\": [\"flux"
      "\", "
      "\"broker\"], \"slot\": \"task\", \"count\": {\"per_slot\": 1}}], \"attributes\": {\"system\": {\"duration\": 0, "
      "\"shell\": {\"options\": {\"per-resource\": {\"type\": \"node\"}, \"mpi\": \"none\", \"pty\": {\"interactive\": "
      "1}}}}}, \"version\": 1}" },
    { "a file as people write it",
      "\n{ \"version\" : 1,\n\t\"resources\": [ {\"type\": \"slot\", \"count\": 1, \"label\": \"s\", \"exclusive\": "
      "false, "
      "\"unit\": \"u\",\r\n \"with\": [{\"type\": \"gpu\", \"count\": 0}, {\"type\": \"core\", \"count\": 1, \"unit\": "
      "\"\"}]}],\n \"tasks\": [{\"slot\": \"s\", \"count\": {\"total\": 7}, \"command\": [\"\\u00e9\\ud83d\\ude00\"], "
      "\"distribution\": \"x\", \"attributes\": {}}],\n\"attributes\": {\"user\": {}, \"system\": {\"duration\": 1e-3, "
      "\"environment\": {\"GONE\": null}, \"preemptible-after\": 0.5, \"project\": \"p\", \"shell\": {}, \"later\": "
      "{}}}, \"comment\": [] }\n \n" },
};

static void test_stock (void)
{
    for (size_t i = 0; i < sizeof (stock) / sizeof (stock[0]); i++)
        if (!ok (check (stock[i].text, strlen (stock[i].text)) == 0, "a jobspec of a Flux command is accepted: %s",
                 stock[i].command))
            diag ("%s", error.text);
}

/* --- rules: a valid jobspec with one field changed ---------------------------------------------------------- */

static const char base[] =
    "{\"version\":1,\"resources\":[{\"type\":\"node\",\"count\":2,\"exclusive\":false,\"with\":[{\"type\":\"slot\","
    "\"count\":3,"
    "\"label\":\"task\",\"with\":[{\"type\":\"core\",\"count\":4},{\"type\":\"gpu\",\"count\":1}]}]}],"
    "\"tasks\":[{\"command\":[\"app\",\"-x\"],\"slot\":\"task\",\"count\":{\"total\":6}}],"
    "\"attributes\":{\"system\":{\"duration\":60,\"environment\":{\"A\":\"1\"},\"cwd\":\"/\",\"queue\":\"q\",\"bank"
    "\":\"b\","
    "\"project\":\"p\",\"dependencies\":[{\"scheme\":\"after\",\"value\":\"f1\"}],\"constraints\":{\"and\":[{\"ranks"
    "\":[\"0\"]},"
    "{\"properties\":[\"x\"]}]},\"job\":{\"name\":\"n\"},\"shell\":{\"options\":{\"verbose\":1}},\"files\":{\"f\":{"
    "\"mode\":"
    "33216}}},\"user\":{}}}";

#define SLOT "resources.0.with.0"
#define AT_SLOT "jobspec: resources[0].with[0]"
#define SYSTEM "attributes.system"
#define AT_SYSTEM "jobspec: attributes.system"
#define COUNT "must be an integer from 1 to 2147483647, and is "
#define CORE "must be an array of a core, or a core and a gpu, and "

/* 'value' is JSON; NULL removes the field. 'sentence' is the expected refusal; NULL: the jobspec stays valid. */
static const struct rule {
    const char *field, *value, *sentence;
} rules[] = {
    { "version", NULL, "jobspec: version: must be 1, and is missing" },
    { "version", "0", "jobspec: version: must be 1, and is 0" },
    { "version", "2", "jobspec: version: must be 1, and is 2" },
    { "version", "1.0", "jobspec: version: must be 1, and is 1.0" },
    { "version", "\"1\"", "jobspec: version: must be 1, and is \"1\"" },
    { "version", "true", "jobspec: version: must be 1, and is true" },
    { "other", "1", NULL },

    { "resources", NULL, "jobspec: resources: must be an array of one node or slot, and is missing" },
    { "resources", "{}", "jobspec: resources: must be an array of one node or slot, and is an object" },
    { "resources", "[]", "jobspec: resources: must be an array of one node or slot, and is an array of 0" },
    { "resources", "[{},{}]", "jobspec: resources: must be an array of one node or slot, and is an array of 2" },
    { "resources.0", "[]", "jobspec: resources[0]: must be an object, and is an array of 0" },
    { "resources.0", "{}", "jobspec: resources[0].type: must be node or slot, and is missing" },
    { "resources.0.type", "\"core\"", "jobspec: resources[0].type: must be node or slot, and is \"core\"" },
    { "resources.0.type", "5", "jobspec: resources[0].type: must be node or slot, and is 5" },
    { "resources.0.type", "\"slot\"", "jobspec: resources[0].label: must be a string, and is missing" },
    { "resources.0.count", NULL, "jobspec: resources[0].count: " COUNT "missing" },
    { "resources.0.count", "0", "jobspec: resources[0].count: " COUNT "0" },
    { "resources.0.count", "-1", "jobspec: resources[0].count: " COUNT "-1" },
    { "resources.0.count", "1.5", "jobspec: resources[0].count: " COUNT "1.5" },
    { "resources.0.count", "\"1-3\"", "jobspec: resources[0].count: " COUNT "\"1-3\"" },
    { "resources.0.count", "{\"min\":1}", "jobspec: resources[0].count: " COUNT "an object" },
    { "resources.0.count", "true", "jobspec: resources[0].count: " COUNT "true" },
    { "resources.0.count", "2147483648", "jobspec: resources[0].count: " COUNT "2147483648" },
    { "resources.0.count", "9223372036854775807", "jobspec: resources[0].count: " COUNT "9223372036854775807" },
    { "resources.0.with", NULL, "jobspec: resources[0].with: must be an array of one slot, and is missing" },
    { "resources.0.with", "2", "jobspec: resources[0].with: must be an array of one slot, and is 2" },
    { "resources.0.with", "[1,2]", "jobspec: resources[0].with: must be an array of one slot, and is an array of 2" },
    { "resources.0.with.0", "null", AT_SLOT ": must be an object, and is null" },
    { "resources.0.exclusive", "1", "jobspec: resources[0].exclusive: must be true or false, and is 1" },
    { "resources.0.exclusive", "true", NULL },
    { "resources.0.unit", "[]", "jobspec: resources[0].unit: must be a string, and is an array of 0" },
    { "resources.0.label", "\"other\"", NULL },
    { "resources.0.label", "\"task\"",
      "jobspec: resources[0].label: must be unique among the labels of the resources, and is \"task\"" },
    { "resources.0.id", "\"0\"",
      "jobspec: resources[0].id: unknown key; allowed here are type, count, with, label, unit, exclusive" },

    { SLOT ".type", NULL, AT_SLOT ".type: must be slot, and is missing" },
    { SLOT ".type", "\"node\"", AT_SLOT ".type: must be slot, and is \"node\"" },
    { SLOT ".count", "0", AT_SLOT ".count: " COUNT "0" },
    { SLOT ".label", NULL, AT_SLOT ".label: must be a string, and is missing" },
    { SLOT ".label", "7", AT_SLOT ".label: must be a string, and is 7" },
    { SLOT ".exclusive", "true", NULL },
    { SLOT ".exclusive", "\"true\"", AT_SLOT ".exclusive: must be true or false, and is \"true\"" },
    { SLOT ".with", NULL, AT_SLOT ".with: " CORE "is missing" },
    { SLOT ".with", "[]", AT_SLOT ".with: " CORE "is an array of 0" },
    { SLOT ".with", "[1,2,3]", AT_SLOT ".with: " CORE "is an array of 3" },
    { SLOT ".with.0", "1", AT_SLOT ".with[0]: must be an object, and is 1" },
    { SLOT ".with.0.type", "\"gpu\"", AT_SLOT ".with: " CORE "has 0 cores" },
    { SLOT ".with.1.type", "\"core\"", AT_SLOT ".with: " CORE "has 2 cores" },
    { SLOT ".with.1.type", "\"memory\"", AT_SLOT ".with[1].type: must be core or gpu, and is \"memory\"" },
    { SLOT ".with.0.type", "\"node\"", AT_SLOT ".with[0].type: must be core or gpu, and is \"node\"" },
    { SLOT ".with.1.count", "0", NULL },
    { SLOT ".with.0.count", "1.0", AT_SLOT ".with[0].count: " COUNT "1.0" },
    { SLOT ".with.1.count", "-1", AT_SLOT ".with[1].count: must be an integer from 0 to 2147483647, and is -1" },
    { SLOT ".with.0.count", "0", AT_SLOT ".with[0].count: " COUNT "0" },
    { SLOT ".with.0.with", "[]", AT_SLOT ".with[0].with: unknown key; allowed here are type, count, unit, label" },
    { SLOT ".with.0.label", "\"task\"",
      AT_SLOT ".with[0].label: must be unique among the labels of the resources, and is \"task\"" },

    { "tasks", NULL, "jobspec: tasks: must be an array of one task, and is missing" },
    { "tasks", "[]", "jobspec: tasks: must be an array of one task, and is an array of 0" },
    { "tasks", "[{},{}]", "jobspec: tasks: must be an array of one task, and is an array of 2" },
    { "tasks.0", "\"app\"", "jobspec: tasks[0]: must be an object, and is \"app\"" },
    { "tasks.0.command", NULL, "jobspec: tasks[0].command: must be an array of at least one string, and is missing" },
    { "tasks.0.command", "\"app\"",
      "jobspec: tasks[0].command: must be an array of at least one string, and is \"app\"" },
    { "tasks.0.command", "[]",
      "jobspec: tasks[0].command: must be an array of at least one string, and is an array of 0" },
    { "tasks.0.command.1", "5", "jobspec: tasks[0].command[1]: must be a string, and is 5" },
    { "tasks.0.slot", NULL, "jobspec: tasks[0].slot: must be the label of the slot (\"task\"), and is missing" },
    { "tasks.0.slot", "\"Task\"", "jobspec: tasks[0].slot: must be the label of the slot (\"task\"), and is \"Task\"" },
    { "tasks.0.count", NULL, "jobspec: tasks[0].count: must be an object, and is missing" },
    { "tasks.0.count", "6", "jobspec: tasks[0].count: must be an object, and is 6" },
    { "tasks.0.count", "{}", "jobspec: tasks[0].count: must have exactly one of per_slot and total, and has none" },
    { "tasks.0.count.per_slot", "1",
      "jobspec: tasks[0].count: must have exactly one of per_slot and total, and has both" },
    { "tasks.0.count", "{\"per_slot\":1}", NULL },
    { "tasks.0.count", "{\"per_slot\":2}", "jobspec: tasks[0].count.per_slot: must be 1, and is 2" },
    { "tasks.0.count", "{\"per_resource\":{\"type\":\"core\",\"count\":1}}",
      "jobspec: tasks[0].count.per_resource: unknown key; allowed here are per_slot, total" },
    { "tasks.0.count.total", "0", "jobspec: tasks[0].count.total: " COUNT "0" },
    { "tasks.0.count.total", "2147483648", "jobspec: tasks[0].count.total: " COUNT "2147483648" },
    { "tasks.0.count.total", "2", NULL },
    { "tasks.0.count.total", "1", "jobspec: tasks[0].count.total: must be at least the number of nodes (2), and is 1" },
    { "tasks.0.count.total", "7", NULL },
    { "tasks.0.attributes", "[]", "jobspec: tasks[0].attributes: must be an object, and is an array of 0" },
    { "tasks.0.distribution", "1", "jobspec: tasks[0].distribution: must be a string, and is 1" },
    { "tasks.0.x", "1",
      "jobspec: tasks[0].x: unknown key; allowed here are command, slot, count, attributes, distribution" },

    { "attributes", NULL, "jobspec: attributes: must be an object, and is missing" },
    { "attributes", "null", "jobspec: attributes: must be an object, and is null" },
    { "attributes.system", NULL, AT_SYSTEM ": must be an object, and is missing" },
    { "attributes.user", NULL, NULL },
    { "attributes.user", "1", "jobspec: attributes.user: must be an object, and is 1" },
    { "attributes.foo", "{}", "jobspec: attributes.foo: unknown key; allowed here are system, user" },
    { "attributes.f\x1b[2J", "{}", "jobspec: attributes.f?[2J: unknown key; allowed here are system, user" },
    { SYSTEM ".duration", NULL, AT_SYSTEM ".duration: must be a number of seconds, 0 or more, and is missing" },
    { SYSTEM ".duration", "-0.5", AT_SYSTEM ".duration: must be a number of seconds, 0 or more, and is -0.5" },
    { SYSTEM ".duration", "\"1h\"", AT_SYSTEM ".duration: must be a number of seconds, 0 or more, and is \"1h\"" },
    { SYSTEM ".duration", "0.0", NULL },
    { SYSTEM ".preemptible-after", "-1",
      AT_SYSTEM ".preemptible-after: must be a number of seconds, 0 or more, and is -1" },
    { SYSTEM ".environment", "[]", AT_SYSTEM ".environment: must be an object, and is an array of 0" },
    { SYSTEM ".environment.A", "1", AT_SYSTEM ".environment.A: must be a string or null, and is 1" },
    { SYSTEM ".environment.A", "null", NULL },
    { SYSTEM ".cwd", "null", AT_SYSTEM ".cwd: must be a string, and is null" },
    { SYSTEM ".queue", "1", AT_SYSTEM ".queue: must be a string, and is 1" },
    { SYSTEM ".bank", "false", AT_SYSTEM ".bank: must be a string, and is false" },
    { SYSTEM ".project", "{}", AT_SYSTEM ".project: must be a string, and is an object" },
    { SYSTEM ".dependencies", "{}", AT_SYSTEM ".dependencies: must be an array, and is an object" },
    { SYSTEM ".dependencies", "[]", NULL },
    { SYSTEM ".dependencies.0", "\"after:f1\"", AT_SYSTEM ".dependencies[0]: must be an object, and is \"after:f1\"" },
    { SYSTEM ".dependencies.0.scheme", NULL, AT_SYSTEM ".dependencies[0].scheme: must be a string, and is missing" },
    { SYSTEM ".dependencies.0.value", "1", AT_SYSTEM ".dependencies[0].value: must be a string, and is 1" },
    { SYSTEM ".constraints", "[]", AT_SYSTEM ".constraints: must be an object, and is an array of 0" },
    { SYSTEM ".constraints", "{}", NULL },
    { SYSTEM ".constraints", "{\"new\":[1]}", NULL },
    { SYSTEM ".constraints", "{\"new\":1}", AT_SYSTEM ".constraints.new: must be an array, and is 1" },
    { SYSTEM ".constraints.and.0", "\"x\"", AT_SYSTEM ".constraints.and[0]: must be an object, and is \"x\"" },
    { SYSTEM ".constraints.and.0.ranks", "\"0\"",
      AT_SYSTEM ".constraints.and[0].ranks: must be an array, and is \"0\"" },
    { SYSTEM ".constraints.and.0.ranks.0", "\"x\"",
      AT_SYSTEM ".constraints.and[0].ranks[0]: must be a set of ranks, such as \"0-3,7\", and is \"x\"" },
    { SYSTEM ".constraints.and.1.properties.0", "1",
      AT_SYSTEM ".constraints.and[1].properties[0]: must be a string, and is 1" },
    { SYSTEM ".job.name", "5", AT_SYSTEM ".job.name: must be a string, and is 5" },
    { SYSTEM ".shell", "1", AT_SYSTEM ".shell: must be an object, and is 1" },
    { SYSTEM ".shell.options", "1", AT_SYSTEM ".shell.options: must be an object, and is 1" },
    { SYSTEM ".files", "[]", AT_SYSTEM ".files: must be an object, and is an array of 0" },
    { SYSTEM ".files.f", "\"x\"", AT_SYSTEM ".files.f: must be an object, and is \"x\"" },
    { SYSTEM ".whatever", "[[[1]]]", NULL },
};

static json_t *member (json_t *in, const char *name)
{
    return json_is_array (in) ? json_array_get (in, (size_t)atoi (name)) : json_object_get (in, name);
}

/* Set the field at path 'field' to 'value', whose reference is taken over; NULL removes the field. */
static void put (json_t *o, const char *field, json_t *value)
{
    char name[64];
    const char *dot;

    for (; (dot = strchr (field, '.')); field = dot + 1) {
        snprintf (name, sizeof (name), "%.*s", (int)(dot - field), field);
        if (!(o = member (o, name)))
            bail_out (field);
    }
    if (!value)
        json_object_del (o, field);
    else if (json_is_array (o))
        json_array_set_new (o, (size_t)atoi (field), value);
    else
        json_object_set_new (o, field, value);
}

static int check_json (const json_t *o)
{
    char *text = json_dumps (o, JSON_COMPACT);
    int rc = check (text, strlen (text));

    free (text);
    return rc;
}

static void test_rule (const struct rule *rule)
{
    json_t *o = json_loads (base, 0, NULL);

    put (o, rule->field, rule->value ? json_loads (rule->value, JSON_DECODE_ANY, NULL) : NULL);
    int rc = check_json (o);
    if (!rule->sentence)
        ok (rc == 0, "a jobspec with this field is accepted: %s %s", rule->field,
            rule->value ? rule->value : "is removed");
    else if (!ok (is_refusal (rc) && strcmp (error.text, rule->sentence) == 0,
                  "a jobspec that breaks a rule is refused: %s", rule->sentence))
        diag ("%s", error.text);
    json_decref (o);
}

static void test_rules (void)
{
    ok (check (base, sizeof (base) - 1) == 0, "the jobspec that the tests of rules change is accepted %s", error.text);
    for (size_t i = 0; i < sizeof (rules) / sizeof (rules[0]); i++)
        test_rule (&rules[i]);
}

/* --- not JSON ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *sentence;
} texts[] = {
    { "", "jobspec: line 1, column 0: must be JSON: " },
    { "resources:", "jobspec: line 1, column 9: must be JSON: " },
    { "[]", "jobspec: must be an object, and is an array of 0" },
    { "{} {}", "jobspec: line 1, column 4: must be JSON: " },
    { "{\"version\":1,\n\"version\":1}", "jobspec: line 2, column 9: must be JSON: duplicate object key" },
    { "{\"attributes\":{\"system\":{\"a\":1,\"a\":2}}}",
      "jobspec: line 1, column 34: must be JSON: duplicate object key" },
    { "{\"a\":01}", "jobspec: line 1, column " },
    { "{\"a\":9223372036854775808}", "jobspec: line 1, column 24: must be JSON: too big integer" },
    { "{\"version\":1e0}", "jobspec: version: must be 1, and is 1e0" },
    { "{\"version\":1.00000000000000000000000000001}",
      "jobspec: version: must be 1, and is 1.0000000000000000000000000000..." },
    { "{\"a\":1e999}", "jobspec: line 1, column 10: must be JSON: real number overflow" },
    { "{\"a\":NaN}", "jobspec: line 1, column 8: must be JSON: invalid token" },
    { "{\"a\":\"caf\xe9\"}", "jobspec: line 1, column 9: must be UTF-8: " },
    { "{\"a\":\"\xed\xa0\x80\"}", "jobspec: line 1, column 6: must be UTF-8: " },
    { "{\"a\":\"\xc0\xaf\"}", "jobspec: line 1, column 6: must be UTF-8: " },
    { "{\"a\":\"\\ud800\"}", "jobspec: line 1, column " },
    { "{\"a\":\"\\u0000\"}", "jobspec: line 1, column " },
    { "{\"a\":\"x\ny\"}", "jobspec: line " },
    { "\xef\xbb\xbf{}", "jobspec: line 1, column 1: must be JSON: " },
    { "{\"a\":\x1b}", "jobspec: line 1, column 6: must be JSON: " },
    { "]]]]", "jobspec: line 1, column 1: must be JSON: " },
    { "]][", "jobspec: line 1, column 1: must be JSON: " },
    { "{\"a\":\"\\", "jobspec: line 1, column " },
};

static void test_texts (void)
{
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        if (!ok (is_refusal (check (texts[i].text, strlen (texts[i].text)))
                     && strncmp (error.text, texts[i].sentence, strlen (texts[i].sentence)) == 0,
                 "a text that is no jobspec is refused: text %zu: %s", i, texts[i].sentence))
            diag ("%s", error.text);
    ok (is_refusal (check ("{}\0", 3)), "a jobspec with a NUL behind it is refused: %s", error.text);
    ok (jobspec_check (&reader, "[]", 2, NULL) < 0 && errno == EINVAL,
        "the caller may pass no error object when a rule refuses the jobspec");
    errno = ENOMEM;
    ok (jobspec_check (&reader, "{", 1, NULL) < 0 && errno == EINVAL,
        "the caller may pass no error object when the text is not JSON");
}

static void test_cut (void)
{
    bool good = true;

    for (size_t size = 0; size < sizeof (base) - 1; size++) {
        char *exact = malloc (size + !size);
        memcpy (exact, base, size);
        good &= is_refusal (check (exact, size));
        free (exact);
    }
    ok (good, "a jobspec that is truncated at any byte is refused");
}

/* --- each value replaced by others ---------------------------------------------------------------------------- */

struct walk {
    json_t *root;
    size_t taken, refused, strange;
};

static bool names (const char *path)
{
    const char *said = error.text + 9;
    size_t n = strlen (path);

    /* The message may name the value itself, a value inside of it, a value that contains it, or the task that refers to
     * a label or a count.
     */
    return strncmp (said, path, n) == 0 || strncmp (said, path, strcspn (said, ":")) == 0
           || strncmp (said, "tasks[0].", 9) == 0;
}

static void judge (struct walk *w, const char *path)
{
    int rc = check_json (w->root);

    w->taken += rc == 0;
    w->refused += rc < 0;
    if (rc < 0 && (!is_refusal (rc) || !names (path))) {
        w->strange++;
        diag ("%s: %s", path, error.text);
    }
}

static void replace_all (struct walk *w, json_t *in, const char *path);

static void replace_one (struct walk *w, json_t *in, const char *key, size_t index, const char *path)
{
    static const char *const others[] = { "null", "true", "-1", "0",        "3",     "9223372036854775807", "1.5",
                                          "\"\"", "[]",   "{}", "[[[{}]]]", "\"é\"", "{\"a\":{\"a\":[1]}}" };
    json_t *was = json_incref (key ? json_object_get (in, key) : json_array_get (in, index));

    for (size_t i = 0; i < sizeof (others) / sizeof (others[0]); i++) {
        json_t *other = json_loads (others[i], JSON_DECODE_ANY, NULL);
        if (key ? json_object_set_new (in, key, other) : json_array_set_new (in, index, other))
            bail_out ("out of memory");
        judge (w, path);
    }
    if (key ? json_object_set (in, key, was) : json_array_set (in, index, was))
        bail_out ("out of memory");
    replace_all (w, was, path);
    json_decref (was);
}

static void replace_all (struct walk *w, json_t *in, const char *path)
{
    char inner[256];
    const char *key;
    json_t *value;

    json_object_foreach (in, key, value) {
        snprintf (inner, sizeof (inner), "%s%s%s", path, *path ? "." : "", key);
        replace_one (w, in, key, 0, inner);
    }
    for (size_t i = 0; i < json_array_size (in); i++) {
        snprintf (inner, sizeof (inner), "%s[%zu]", path, i);
        replace_one (w, in, NULL, i, inner);
    }
}

static void test_replaced (void)
{
    struct walk w = { .root = json_loads (base, 0, NULL) };

    replace_all (&w, w.root, "");
    ok (w.strange == 0 && w.taken > 0 && w.refused > 0,
        "if any value of a jobspec is replaced, the jobspec is accepted or refused with an error that names the "
        "value: %zu accepted, %zu refused",
        w.taken, w.refused);
    ok (check_json (w.root) == 0, "after all replacements the jobspec is unchanged");
    json_decref (w.root);
}

/* --- limits --------------------------------------------------------------------------------------------------- */

/* A valid jobspec with a system attribute 'name' that consists of 'n' times 'open', 'middle', and 'n' times 'close'.
 * The caller frees it.
 */
static char *nested (const char *name, size_t n, const char *open, const char *middle, const char *close)
{
    char *text = malloc (sizeof (base) + 64 + n * (strlen (open) + strlen (close)) + strlen (middle));
    const char *at = strstr (base, "\"duration\"");
    char *p = text + sprintf (text, "%.*s\"%s\":", (int)(at - base), base, name);

    for (size_t i = 0; i < n; i++)
        p += sprintf (p, "%s", open);
    p += sprintf (p, "%s", middle);
    for (size_t i = 0; i < n; i++)
        p += sprintf (p, "%s", close);
    sprintf (p, ",%s", at);
    return text;
}

static int check_nested (const char *name, size_t n, const char *open, const char *middle, const char *close)
{
    char *text = nested (name, n, open, middle, close);
    int rc = check (text, strlen (text));

    free (text);
    return rc;
}

/* Three objects enclose the value: the jobspec, attributes, system. */
static void *check_deep (void *arg)
{
    bool *good = arg;

    *good = check_nested ("x", JOBSPEC_DEPTH_MAX - 3, "[", "", "]") == 0;
    return NULL;
}

/* Replaces the constraints of the base by nested ones. */
static int check_constraints (size_t n, const char *middle)
{
    json_t *o = json_loads (base, 0, NULL);
    char *text = nested ("x", n, "{\"and\":[", middle, "]}");
    json_t *deep = json_loads (text, 0, NULL);

    put (o, SYSTEM ".constraints",
         json_incref (json_object_get (json_object_get (json_object_get (deep, "attributes"), "system"), "x")));
    int rc = check_json (o);
    json_decref (deep);
    json_decref (o);
    free (text);
    return rc;
}

static void *check_deep_constraints (void *arg)
{
    bool *good = arg;

    *good = check_constraints ((JOBSPEC_DEPTH_MAX - 3) / 2, "") == 0
            && is_refusal (check_constraints ((JOBSPEC_DEPTH_MAX - 3) / 2, "5"));
    return NULL;
}

static bool on_small_stack (void *(*f) (void *))
{
    pthread_attr_t attr;
    pthread_t thread;
    bool good = false;

    pthread_attr_init (&attr);
    if (pthread_attr_setstacksize (&attr, 512 * 1024) != 0 || pthread_create (&thread, &attr, f, &good) != 0)
        bail_out ("cannot start a thread");
    pthread_join (thread, NULL);
    pthread_attr_destroy (&attr);
    return good;
}

static void test_depth (void)
{
    char brackets[2 * JOBSPEC_DEPTH_MAX + 1] = "";

    memset (brackets, '[', sizeof (brackets) - 1);
    ok (on_small_stack (check_deep),
        "a jobspec with 256 levels of nested arrays and objects is accepted, on a stack of 512 KiB");
    ok (on_small_stack (check_deep_constraints),
        "constraints of a jobspec may be nested as deep, and are refused with a shortened path: %s", error.text);
    ok (is_refusal (check_nested ("x", JOBSPEC_DEPTH_MAX - 2, "[", "", "]"))
            && strstr (error.text, "more levels of nested arrays and objects than 256"),
        "a jobspec with 257 levels is refused: %s", error.text);
    ok (is_refusal (check_nested ("x", 5000000, "[", "", "]")), "a jobspec with five million levels is refused");
    ok (check_nested ("x", 1, "\"\\\"", brackets, "\\\\\"") == 0, "brackets in strings do not count as levels");
    ok (check_nested ("x", 1, "[[]", ",[[]],{\"a\":[]}", "]") == 0, "arrays that were closed do not count as levels");
}

static void test_values (void)
{
    size_t around = 0;

    for (const char *p = base; *p; p++)
        around += *p == ',' || *p == '[' || *p == '{';
    char *many = malloc (JOBSPEC_VALUES_MAX * 2 + 8);
    memset (many, '\0', JOBSPEC_VALUES_MAX * 2 + 8);
    for (size_t i = 0; i + around + 2 < JOBSPEC_VALUES_MAX; i++)
        strcpy (many + 2 * i, "1,");
    strcat (many, "1");
    ok (check_nested ("x", 1, "[", many, "]") == 0, "a jobspec with 100000 values is accepted: %s", error.text);
    strcat (many, ",1");
    ok (is_refusal (check_nested ("x", 1, "[", many, "]")) && strstr (error.text, "more values than 100000"),
        "a jobspec with 100001 values is refused: %s", error.text);
    free (many);
}

static void test_long_names (void)
{
    json_t *o = json_loads (base, 0, NULL);
    char *name = malloc (100001);

    memset (name, 'k', 100000);
    name[100000] = '\0';
    put (o, name, json_integer (1));
    json_t *environment = json_object_get (json_object_get (json_object_get (o, "attributes"), "system"),
                                           "environment");
    json_object_set_new (environment, name, json_integer (1));
    ok (is_refusal (check_json (o)) && strstr (error.text, ": must be a string or null, and is 1"),
        "the error for a field with a long key still has the rule: %s", error.text);
    json_object_del (environment, name);
    put (o, "tasks.0.slot", json_string (name));
    ok (is_refusal (check_json (o)) && strlen (error.text) < 200,
        "the error for a field with a long value has a part of the value: %s", error.text);
    json_decref (o);
    free (name);
}

/* --- memory --------------------------------------------------------------------------------------------------- */

static void test_memory (void)
{
    int n = 0, rc = -1;
    bool good = true;

    for (; rc < 0 && n < 10000; n++) {
        jv_reader_fini (&reader);
        countdown = n;
        rc = check (base, sizeof (base) - 1);
        good &= rc == 0 || (errno == ENOMEM && strcmp (error.text, "jobspec: out of memory") == 0);
        countdown = -1;
    }
    ok (good && rc == 0 && n > 2, "if any of %d allocations fails, the check of a jobspec fails with ENOMEM", n - 1);
}

int main (int argc, char *argv[])
{
    test_stock ();
    test_rules ();
    test_texts ();
    test_cut ();
    test_replaced ();
    test_depth ();
    test_values ();
    test_long_names ();
    test_memory ();
    jv_reader_fini (&reader);
    return done_testing ();
}
