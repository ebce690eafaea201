/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobspec.c - checks a jobspec of version 1, rule by rule
 *
 * A table lists the keys of an object, each with the function that checks its value. check_only () refuses keys that
 * are not in the table, check_known () accepts them. If a required key is missing, its check is called with NULL, so
 * that each rule has only one message. The place in the text is a chain of struct spec_place on the stack; it is
 * written as a path only for a refusal.
 *
 * Any client can send a jobspec. Limits on its depth and its number of values bound the stack and the memory that a
 * check uses.
 *
 * Flux's ingest accepts more than RFC 25 allows. The guide lists what is accepted there but refused here, and why.
 * Where RFC 25 differs from Flux, the checks decide as follows:
 * - tasks[0].count.total may exceed the number of slots, because use case 2.1 of RFC 25 has more tasks than slots.
 * - The count of a gpu may be 0, because Flux accepts 0, and programs write it.
 * - A slot may have "exclusive", because the schema of RFC 25 has this key, although the text of RFC 25 does not.
 * - cwd may be relative, because flux submit --cwd sends its argument unchanged.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/text.h"
#include "modules/ingest/job/jobspec.h"

#define COUNT_MAX 2147483647 /* the largest count: readers store it in an int */
#define PATH_SIZE 100        /* bytes of a path in a message; longer paths are cut */
#define NAME_SIZE 41         /* bytes of a key in a path, with its NUL */
#define SHOWN_SIZE 31        /* bytes of a string in a message, with its NUL */
#define LABELS_MAX 4         /* labels of a node, a slot, a core and a gpu */

#define COUNT_RULE "an integer from 1 to 2147483647"

/* The place of a value: in an object under 'name' (a key of the rules) or 'key' (a key of the text), or in an array at
 * 'index'.
 */
struct spec_place {
    const struct spec_place *in;
    const char *name;
    const struct jv *key;
    size_t index;
};

/* Parts of the jobspec that later rules refer to. */
struct spec {
    const struct jv *labels[LABELS_MAX];
    size_t nlabels;
    const struct jv *slot; /* label of the slot; NULL: not seen yet */
    int64_t nodes;         /* count of the node; 0: no node */
    idt_error_t *errp;
};

typedef int (*job_check_f) (struct spec *s, const struct spec_place *at, const struct jv *value);

struct rule {
    const char *key; /* NULL ends a table */
    bool required;
    job_check_f check;
};

/* --- refusals --------------------------------------------------------------------------------------------- */

/* Append the path of 'at' to 'buf'. Returns its length, which may be larger than 'size'. */
static size_t write_path (const struct spec_place *at, char *buf, size_t size)
{
    size_t n = at->in ? write_path (at->in, buf, size) : 0;
    char key[NAME_SIZE];

    if (!at->in || n >= size)
        return n;
    if (!at->name && !at->key)
        return n + (size_t)snprintf (buf + n, size - n, "[%zu]", at->index);
    if (at->key)
        jv_copy (at->key, key, sizeof (key));
    return n + (size_t)snprintf (buf + n, size - n, "%s%s", n > 0 ? "." : "", at->key ? key : at->name);
}

static const char *path_of (const struct spec_place *at, char buf[PATH_SIZE + 5])
{
    buf[0] = '\0';
    if (write_path (at, buf, PATH_SIZE) >= PATH_SIZE)
        strcpy (buf + PATH_SIZE - 1, "...");
    else if (buf[0])
        strcat (buf, ": ");
    return buf;
}

/* Show a real number as the jobspec has it. 1.0 is not an integer, but would look like one if it was formatted again.
 */
static const char *describe_real (const struct jv *value, char *buf, size_t size)
{
    bool all = value->size < SHOWN_SIZE;

    snprintf (buf, size, "is %.*s%s", all ? (int)value->size : SHOWN_SIZE - 1, value->text, all ? "" : "...");
    return buf;
}

static const char *describe_string (const struct jv *value, char *buf, size_t size)
{
    char shown[SHOWN_SIZE];
    bool all = jv_copy (value, shown, sizeof (shown)) < sizeof (shown);

    snprintf (buf, size, "is \"%s%s\"", shown, all ? "" : "...");
    return buf;
}

/* Describe a value for a message. */
static const char *describe (const struct jv *value, char *buf, size_t size)
{
    switch (value ? (int)value->type : -1) {
    case JV_OBJECT:
        return "is an object";
    case JV_ARRAY:
        snprintf (buf, size, "is an array of %zu", jv_count (value));
        return buf;
    case JV_STRING:
        return describe_string (value, buf, size);
    case JV_INTEGER:
        snprintf (buf, size, "is %" PRId64, jv_integer (value));
        return buf;
    case JV_REAL:
        return describe_real (value, buf, size);
    case -1:
        return "is missing";
    default:
        return jv_is (value, JV_NULL) ? "is null" : jv_is (value, JV_TRUE) ? "is true" : "is false";
    }
}

static int refuse (const struct spec *s, const struct spec_place *at, const struct jv *value, const char *must)
{
    char path[PATH_SIZE + 5], is[64];

    return errsetf (s->errp, EINVAL, "jobspec: %smust be %s, and %s", path_of (at, path), must,
                    describe (value, is, sizeof (is)));
}

/* --- tables ----------------------------------------------------------------------------------------------- */

/* Check the members of 'object' that 'rules' name, and set '*known' to the number of these that are present. */
static int check_members (struct spec *s, const struct spec_place *at, const struct jv *object,
                          const struct rule *rules, size_t *known)
{
    for (*known = 0; rules->key; rules++) {
        const struct spec_place place = { .in = at, .name = rules->key };
        const struct jv *value = jv_member (object, rules->key);

        if ((value || rules->required) && rules->check (s, &place, value) < 0)
            return -1;
        *known += value != NULL;
    }
    return 0;
}

/* Check the known members; accept other keys. */
static int check_known (struct spec *s, const struct spec_place *at, const struct jv *object, const struct rule *rules)
{
    size_t known;

    if (!jv_is (object, JV_OBJECT))
        return refuse (s, at, object, "an object");
    return check_members (s, at, object, rules, &known);
}

static bool has_rule (const struct rule *rules, const struct jv *key)
{
    while (rules->key && !jv_equals (key, rules->key))
        rules++;
    return rules->key != NULL;
}

static int refuse_other (struct spec *s, const struct spec_place *at, const struct jv *object, const struct rule *rules)
{
    char path[PATH_SIZE + 5], keys[100] = "";
    const struct jv *other;

    jv_foreach (object, other) {
        if (!has_rule (rules, other))
            break;
    }
    for (size_t n = 0; rules->key; rules++)
        n += (size_t)snprintf (keys + n, sizeof (keys) - n, "%s%s", n > 0 ? ", " : "", rules->key);
    const struct spec_place place = { .in = at, .key = other };
    return errsetf (s->errp, EINVAL, "jobspec: %sunknown key; allowed here are %s", path_of (&place, path), keys);
}

/* Check the known members; refuse other keys. */
static int check_only (struct spec *s, const struct spec_place *at, const struct jv *object, const struct rule *rules)
{
    size_t known;

    if (!jv_is (object, JV_OBJECT))
        return refuse (s, at, object, "an object");
    if (check_members (s, at, object, rules, &known) < 0)
        return -1;
    return known == jv_count (object) ? 0 : refuse_other (s, at, object, rules);
}

static size_t elements (const struct jv *array)
{
    return jv_is (array, JV_ARRAY) ? jv_count (array) : 0;
}

static int check_elements (struct spec *s, const struct spec_place *at, const struct jv *array, job_check_f check)
{
    if (!jv_is (array, JV_ARRAY))
        return refuse (s, at, array, "an array");
    const struct jv *element;
    struct spec_place place = { .in = at };
    jv_foreach (array, element) {
        if (check (s, &place, element) < 0)
            return -1;
        place.index++;
    }
    return 0;
}

static int check_values (struct spec *s, const struct spec_place *at, const struct jv *object, job_check_f check)
{
    const struct jv *key;

    if (!jv_is (object, JV_OBJECT))
        return refuse (s, at, object, "an object");
    jv_foreach (object, key) {
        const struct spec_place place = { .in = at, .key = key };

        if (check (s, &place, jv_value (key)) < 0)
            return -1;
    }
    return 0;
}

/* --- simple values ---------------------------------------------------------------------------------------- */

static int check_string (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return jv_is (value, JV_STRING) ? 0 : refuse (s, at, value, "a string");
}

static int check_boolean (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return jv_is (value, JV_TRUE) || jv_is (value, JV_FALSE) ? 0 : refuse (s, at, value, "true or false");
}

static int check_object (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return jv_is (value, JV_OBJECT) ? 0 : refuse (s, at, value, "an object");
}

static int check_seconds (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return (jv_is (value, JV_INTEGER) || jv_is (value, JV_REAL)) && jv_number (value) >= 0
               ? 0
               : refuse (s, at, value, "a number of seconds, 0 or more");
}

static bool is_count (const struct jv *value, int64_t min)
{
    return jv_is (value, JV_INTEGER) && jv_integer (value) >= min && jv_integer (value) <= COUNT_MAX;
}

static int check_count (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return is_count (value, 1) ? 0 : refuse (s, at, value, COUNT_RULE);
}

/* --- resources: a slot, or a node with a slot; in the slot a core and optionally a gpu ------------------------ */

/* "each label in the current jobspec must be unique" (RFC 14) */
static int check_label (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    if (!jv_is (value, JV_STRING))
        return refuse (s, at, value, "a string");
    for (size_t i = 0; i < s->nlabels; i++)
        if (jv_same (s->labels[i], value))
            return refuse (s, at, value, "unique among the labels of the resources");
    if (s->nlabels < LABELS_MAX)
        s->labels[s->nlabels++] = value;
    return 0;
}

static int check_slot_label (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    s->slot = value;
    return check_label (s, at, value);
}

static int check_nodes (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    s->nodes = jv_integer (value);
    return check_count (s, at, value);
}

static int check_gpus (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return is_count (value, 0) ? 0 : refuse (s, at, value, "an integer from 0 to 2147483647");
}

static bool is_type (const struct jv *vertex, const char *type)
{
    return jv_equals (jv_member (vertex, "type"), type);
}

/* Refuse 'vertex': its type is not allowed here. */
static int refuse_type (struct spec *s, const struct spec_place *at, const struct jv *vertex, const char *must)
{
    const struct spec_place place = { .in = at, .name = "type" };

    if (!jv_is (vertex, JV_OBJECT))
        return refuse (s, at, vertex, "an object");
    return refuse (s, &place, jv_member (vertex, "type"), must);
}

static const struct rule core_rules[] = {
    { "type", true, check_string },
    { "count", true, check_count },
    { "unit", false, check_string },
    { "label", false, check_label },
    { NULL },
};

static const struct rule gpu_rules[] = {
    { "type", true, check_string },
    { "count", true, check_gpus },
    { "unit", false, check_string },
    { "label", false, check_label },
    { NULL },
};

static int check_in_slot (struct spec *s, const struct spec_place *at, const struct jv *vertex)
{
    if (is_type (vertex, "core"))
        return check_only (s, at, vertex, core_rules);
    if (is_type (vertex, "gpu"))
        return check_only (s, at, vertex, gpu_rules);
    return refuse_type (s, at, vertex, "core or gpu");
}

static int check_slot_with (struct spec *s, const struct spec_place *at, const struct jv *with)
{
    size_t cores = 0, n = elements (with);
    const struct jv *vertex;

    if (n != 1 && n != 2)
        return refuse (s, at, with, "an array of a core, or a core and a gpu");
    if (check_elements (s, at, with, check_in_slot) < 0)
        return -1;
    jv_foreach (with, vertex)
        cores += is_type (vertex, "core");
    if (cores != 1) {
        char path[PATH_SIZE + 5];
        return errsetf (s->errp, EINVAL,
                        "jobspec: %smust be an array of a core, or a core and a gpu, and has %zu cores",
                        path_of (at, path), cores);
    }
    return 0;
}

static const struct rule slot_rules[] = {
    { "type", true, check_string },
    { "count", true, check_count },
    { "label", true, check_slot_label },
    { "with", true, check_slot_with },
    { "unit", false, check_string },
    { "exclusive", false, check_boolean },
    { NULL },
};

static int check_in_node (struct spec *s, const struct spec_place *at, const struct jv *vertex)
{
    if (is_type (vertex, "slot"))
        return check_only (s, at, vertex, slot_rules);
    return refuse_type (s, at, vertex, "slot");
}

static int check_node_with (struct spec *s, const struct spec_place *at, const struct jv *with)
{
    if (elements (with) != 1)
        return refuse (s, at, with, "an array of one slot");
    return check_elements (s, at, with, check_in_node);
}

static const struct rule node_rules[] = {
    { "type", true, check_string },
    { "count", true, check_nodes },
    { "with", true, check_node_with },
    { "label", false, check_label },
    { "unit", false, check_string },
    { "exclusive", false, check_boolean },
    { NULL },
};

static int check_resource (struct spec *s, const struct spec_place *at, const struct jv *vertex)
{
    if (is_type (vertex, "node"))
        return check_only (s, at, vertex, node_rules);
    if (is_type (vertex, "slot"))
        return check_only (s, at, vertex, slot_rules);
    return refuse_type (s, at, vertex, "node or slot");
}

static int check_resources (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    if (elements (value) != 1)
        return refuse (s, at, value, "an array of one node or slot");
    return check_elements (s, at, value, check_resource);
}

/* --- tasks ------------------------------------------------------------------------------------------------ */

static int check_command (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    if (elements (value) == 0)
        return refuse (s, at, value, "an array of at least one string");
    return check_elements (s, at, value, check_string);
}

static int check_task_slot (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    char label[SHOWN_SIZE], must[64];

    if (jv_same (value, s->slot))
        return 0;
    jv_copy (s->slot, label, sizeof (label));
    snprintf (must, sizeof (must), "the label of the slot (\"%s\")", label);
    return refuse (s, at, value, must);
}

static int check_per_slot (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return jv_is (value, JV_INTEGER) && jv_integer (value) == 1 ? 0 : refuse (s, at, value, "1");
}

static int check_total (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    char must[64];

    if (!is_count (value, 1))
        return refuse (s, at, value, COUNT_RULE);
    if (jv_integer (value) >= s->nodes)
        return 0;
    snprintf (must, sizeof (must), "at least the number of nodes (%" PRId64 ")", s->nodes);
    return refuse (s, at, value, must);
}

static const struct rule task_count_rules[] = {
    { "per_slot", false, check_per_slot },
    { "total", false, check_total },
    { NULL },
};

static int check_task_count (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    char path[PATH_SIZE + 5];

    if (check_only (s, at, value, task_count_rules) < 0)
        return -1;
    if (jv_count (value) != 1)
        return errsetf (s->errp, EINVAL, "jobspec: %smust have exactly one of per_slot and total, and has %s",
                        path_of (at, path), jv_count (value) > 0 ? "both" : "none");
    return 0;
}

/* "attributes" and "distribution" are from RFC 14; Flux accepts them. */
static const struct rule task_rules[] = {
    { "command", true, check_command },    { "slot", true, check_task_slot },       { "count", true, check_task_count },
    { "attributes", false, check_object }, { "distribution", false, check_string }, { NULL },
};

static int check_task (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_only (s, at, value, task_rules);
}

static int check_tasks (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    if (elements (value) != 1)
        return refuse (s, at, value, "an array of one task");
    return check_elements (s, at, value, check_task);
}

/* --- attributes ------------------------------------------------------------------------------------------- */

/* null unsets the variable (RFC 14). */
static int check_variable (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return jv_is (value, JV_STRING) || jv_is (value, JV_NULL) ? 0 : refuse (s, at, value, "a string or null");
}

static int check_environment (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_values (s, at, value, check_variable);
}

static int check_strings (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_values (s, at, value, check_string);
}

static const struct rule dependency_rules[] = {
    { "scheme", true, check_string },
    { "value", true, check_string },
    { NULL },
};

static int check_dependency (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_known (s, at, value, dependency_rules);
}

static int check_dependencies (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_elements (s, at, value, check_dependency);
}

static int check_ranks (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    char *ranks = jv_strdup (value, NULL);
    uint32_t last;

    if (!ranks && errno == ENOMEM)
        return errsetf (s->errp, ENOMEM, "jobspec: out of memory");
    bool good = ranks && ranges_last (ranks, &last) >= 0;
    free (ranks);
    return good ? 0 : refuse (s, at, value, "a set of ranks, such as \"0-3,7\"");
}

static int check_any (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return 0;
}

static int check_constraint (struct spec *s, const struct spec_place *at, const struct jv *value);

/* The check for the operands of a constraint operator. RFC 31 allows new operators, so the operands of an unknown
 * operator may be any array.
 */
static job_check_f operand_of (const struct jv *operator)
{
    static const struct {
        const char *name;
        job_check_f check;
    } operators[] = {
        { "properties", check_string }, { "hostlist", check_string }, { "ranks", check_ranks },
        { "and", check_constraint },    { "or", check_constraint },   { "not", check_constraint },
    };

    for (size_t i = 0; i < sizeof (operators) / sizeof (operators[0]); i++)
        if (jv_equals (operator, operators[i].name))
            return operators[i].check;
    return check_any;
}

static int check_operator (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_elements (s, at, value, operand_of (at->key));
}

/* Recurses as deep as the constraint is nested. JOBSPEC_DEPTH_MAX limits this depth. */
static int check_constraint (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_values (s, at, value, check_operator);
}

static const struct rule shell_rules[] = {
    { "options", false, check_object },
    { NULL },
};

static int check_shell (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_known (s, at, value, shell_rules);
}

/* RFC 37: a file archive in the form of an object. */
static int check_files (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_values (s, at, value, check_object);
}

static const struct rule system_rules[] = {
    { "duration", true, check_seconds },
    { "preemptible-after", false, check_seconds },
    { "environment", false, check_environment },
    { "cwd", false, check_string },
    { "queue", false, check_string },
    { "bank", false, check_string },
    { "project", false, check_string },
    { "dependencies", false, check_dependencies },
    { "constraints", false, check_constraint },
    { "job", false, check_strings },
    { "shell", false, check_shell },
    { "files", false, check_files },
    { NULL },
};

static int check_system (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_known (s, at, value, system_rules);
}

static const struct rule attributes_rules[] = {
    { "system", true, check_system },
    { "user", false, check_object },
    { NULL },
};

static int check_attributes (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return check_only (s, at, value, attributes_rules);
}

/* --- the whole -------------------------------------------------------------------------------------------- */

static int check_version (struct spec *s, const struct spec_place *at, const struct jv *value)
{
    return jv_is (value, JV_INTEGER) && jv_integer (value) == 1 ? 0 : refuse (s, at, value, "1");
}

/* The order matters, because the checks of tasks use what the checks of resources have stored in struct spec. */
static const struct rule jobspec_rules[] = {
    { "version", true, check_version },
    { "resources", true, check_resources },
    { "tasks", true, check_tasks },
    { "attributes", true, check_attributes },
    { NULL },
};

static int refuse_json (const struct jv_error *e, idt_error_t *errp)
{
    if (e->fault == JV_DEPTH || e->fault == JV_VALUES)
        return errsetf (errp, EINVAL, "jobspec: line %zu, column %zu: more %s than %d", e->line, e->column,
                        e->fault == JV_DEPTH ? "levels of nested arrays and objects" : "values",
                        e->fault == JV_DEPTH ? JOBSPEC_DEPTH_MAX : JOBSPEC_VALUES_MAX);
    return errsetf (errp, EINVAL, "jobspec: line %zu, column %zu: must be %s: %s", e->line, e->column,
                    e->fault == JV_UTF8 ? "UTF-8" : "JSON", e->text);
}

int jobspec_check (struct jv_reader *r, const char *text, size_t size, idt_error_t *errp)
{
    const struct spec_place root = { .in = NULL };
    struct spec s = { .errp = errp };
    struct jv_error e;
    const struct jv *o = jv_read (r, text, size, JOBSPEC_DEPTH_MAX, JOBSPEC_VALUES_MAX, &e);

    if (o)
        return check_known (&s, &root, o, jobspec_rules);
    if (errno == EINVAL)
        return refuse_json (&e, errp);
    return errsetf (errp, errno, "jobspec: %s", errno == ENOMEM ? "out of memory" : "has 4 GiB or more");
}
