/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobspec.c - jobspecs of version 1, rule by rule
 *
 * A table has the keys of an object, each with what checks its value; who forbids other keys says check_only ().  What
 * is required and missing is checked as NULL, so each rule has one sentence.  Where in the text we are is a chain of
 * places on the stack, which is made a path only for a refusal.
 *
 * Texts come from anybody.  Their depth and number of values are bounded before they are parsed, and with them stack
 * and memory.
 *
 * Where RFC 25 says less or more than Flux does:
 * - tasks[0].count.total may exceed the slots: RFC 25's own use case 2.1 has more tasks than slots.
 * - gpu's count may be 0: Flux takes it, and programs write it.
 * - a slot may have "exclusive": the schema of RFC 25 has it, its text does not.
 * - cwd may be relative: flux submit --cwd sends what it is told.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <jansson.h>

#include "libutil/errprintf.h"
#include "libutil/ranges.h"
#include "modules/ingest/job/jobspec.h"

#define COUNT_MAX 2147483647 /* what readers keep in an int */
#define PATH_SIZE 100        /* bytes of a path in a sentence; longer ones are cut */
#define LABELS_MAX 4         /* of a node, a slot, a core and a gpu */

#define COUNT_RULE "an integer from 1 to 2147483647"

/* Where a value is: in an object under 'key', or in an array at 'index'. */
struct place {
    const struct place *in;
    const char *key;
    size_t index;
};

/* What was seen of a jobspec that later rules refer to. */
struct spec {
    const char *labels[LABELS_MAX];
    size_t nlabels;
    const char *slot; /* its label */
    json_int_t nodes; /* 0: no node is named */
    idt_error_t *errp;
};

typedef int (*check_f) (struct spec *s, const struct place *at, json_t *value);

struct rule {
    const char *key; /* NULL ends a table */
    bool required;
    check_f check;
};

/* --- refusals --------------------------------------------------------------------------------------------- */

/* Append the path to 'at' to 'buf'; returns its length, which may be more than there is room for. */
static size_t write_path (const struct place *at, char *buf, size_t size)
{
    size_t n = at->in ? write_path (at->in, buf, size) : 0;

    if (!at->in || n >= size)
        return n;
    if (!at->key)
        return n + (size_t)snprintf (buf + n, size - n, "[%zu]", at->index);
    return n + (size_t)snprintf (buf + n, size - n, "%s%.40s", n > 0 ? "." : "", at->key);
}

static const char *path_of (const struct place *at, char buf[PATH_SIZE + 5])
{
    buf[0] = '\0';
    if (write_path (at, buf, PATH_SIZE) >= PATH_SIZE)
        strcpy (buf + PATH_SIZE - 1, "...");
    else if (buf[0])
        strcat (buf, ": ");
    return buf;
}

/* What a value is, for a person. */
static const char *describe (const json_t *value, char *buf, size_t size)
{
    switch (value ? (int)json_typeof (value) : -1) {
    case JSON_OBJECT:
        return "is an object";
    case JSON_ARRAY:
        snprintf (buf, size, "is an array of %zu", json_array_size (value));
        return buf;
    case JSON_STRING:
        snprintf (buf, size, "is \"%.30s%s\"", json_string_value (value), json_string_length (value) > 30 ? "..." : "");
        return buf;
    case JSON_INTEGER:
        snprintf (buf, size, "is %" JSON_INTEGER_FORMAT, json_integer_value (value));
        return buf;
    case JSON_REAL:
        snprintf (buf, size, "is %.17g", json_real_value (value));
        return buf;
    case -1:
        return "is missing";
    default:
        return json_is_null (value) ? "is null" : json_is_true (value) ? "is true" : "is false";
    }
}

static int refuse (const struct spec *s, const struct place *at, const json_t *value, const char *must)
{
    char path[PATH_SIZE + 5], is[64];

    return errsetf_clean (s->errp, EINVAL, "jobspec: %smust be %s, and %s", path_of (at, path), must,
                          describe (value, is, sizeof (is)));
}

/* --- tables ----------------------------------------------------------------------------------------------- */

/* Check the members of 'object' that 'rules' name.  '*known' is how many there are. */
static int check_members (struct spec *s, const struct place *at, json_t *object, const struct rule *rules,
                          size_t *known)
{
    for (*known = 0; rules->key; rules++) {
        const struct place place = { .in = at, .key = rules->key };
        json_t *value = json_object_get (object, rules->key);

        if ((value || rules->required) && rules->check (s, &place, value) < 0)
            return -1;
        *known += value != NULL;
    }
    return 0;
}

/* Others are taken. */
static int check_known (struct spec *s, const struct place *at, json_t *object, const struct rule *rules)
{
    size_t known;

    if (!json_is_object (object))
        return refuse (s, at, object, "an object");
    return check_members (s, at, object, rules, &known);
}

static bool has_rule (const struct rule *rules, const char *key)
{
    while (rules->key && strcmp (rules->key, key) != 0)
        rules++;
    return rules->key != NULL;
}

static int refuse_other (struct spec *s, const struct place *at, json_t *object, const struct rule *rules)
{
    char path[PATH_SIZE + 5], keys[100] = "";
    const char *other;
    json_t *value;

    json_object_foreach (object, other, value) {
        if (!has_rule (rules, other))
            break;
    }
    for (size_t n = 0; rules->key; rules++)
        n += (size_t)snprintf (keys + n, sizeof (keys) - n, "%s%s", n > 0 ? ", " : "", rules->key);
    const struct place place = { .in = at, .key = other };
    return errsetf_clean (s->errp, EINVAL, "jobspec: %sis not known here, where there may be %s",
                          path_of (&place, path), keys);
}

/* Others are refused. */
static int check_only (struct spec *s, const struct place *at, json_t *object, const struct rule *rules)
{
    size_t known;

    if (!json_is_object (object))
        return refuse (s, at, object, "an object");
    if (check_members (s, at, object, rules, &known) < 0)
        return -1;
    return known == json_object_size (object) ? 0 : refuse_other (s, at, object, rules);
}

static int check_elements (struct spec *s, const struct place *at, json_t *array, check_f check)
{
    if (!json_is_array (array))
        return refuse (s, at, array, "an array");
    for (size_t i = 0; i < json_array_size (array); i++) {
        const struct place place = { .in = at, .index = i };

        if (check (s, &place, json_array_get (array, i)) < 0)
            return -1;
    }
    return 0;
}

static int check_values (struct spec *s, const struct place *at, json_t *object, check_f check)
{
    const char *key;
    json_t *value;

    if (!json_is_object (object))
        return refuse (s, at, object, "an object");
    json_object_foreach (object, key, value) {
        const struct place place = { .in = at, .key = key };

        if (check (s, &place, value) < 0)
            return -1;
    }
    return 0;
}

/* --- simple values ---------------------------------------------------------------------------------------- */

static int check_string (struct spec *s, const struct place *at, json_t *value)
{
    return json_is_string (value) ? 0 : refuse (s, at, value, "a string");
}

static int check_boolean (struct spec *s, const struct place *at, json_t *value)
{
    return json_is_boolean (value) ? 0 : refuse (s, at, value, "true or false");
}

static int check_object (struct spec *s, const struct place *at, json_t *value)
{
    return json_is_object (value) ? 0 : refuse (s, at, value, "an object");
}

static int check_seconds (struct spec *s, const struct place *at, json_t *value)
{
    return json_is_number (value) && json_number_value (value) >= 0
               ? 0
               : refuse (s, at, value, "a number of seconds, 0 or more");
}

static bool is_count (const json_t *value, json_int_t min)
{
    return json_is_integer (value) && json_integer_value (value) >= min && json_integer_value (value) <= COUNT_MAX;
}

static int check_count (struct spec *s, const struct place *at, json_t *value)
{
    return is_count (value, 1) ? 0 : refuse (s, at, value, COUNT_RULE);
}

/* --- resources: slot or node > slot, in the slot a core, perhaps a gpu -------------------------------------- */

/* "each label in the current jobspec must be unique" (RFC 14) */
static int check_label (struct spec *s, const struct place *at, json_t *value)
{
    const char *label = json_string_value (value);

    if (!label)
        return refuse (s, at, value, "a string");
    for (size_t i = 0; i < s->nlabels; i++)
        if (strcmp (s->labels[i], label) == 0)
            return refuse (s, at, value, "no other resource's label");
    if (s->nlabels < LABELS_MAX)
        s->labels[s->nlabels++] = label;
    return 0;
}

static int check_slot_label (struct spec *s, const struct place *at, json_t *value)
{
    s->slot = json_string_value (value);
    return check_label (s, at, value);
}

static int check_nodes (struct spec *s, const struct place *at, json_t *value)
{
    s->nodes = json_integer_value (value);
    return check_count (s, at, value);
}

static int check_gpus (struct spec *s, const struct place *at, json_t *value)
{
    return is_count (value, 0) ? 0 : refuse (s, at, value, "an integer from 0 to 2147483647");
}

static bool is_type (const json_t *vertex, const char *type)
{
    const char *is = json_string_value (json_object_get (vertex, "type"));

    return is && strcmp (is, type) == 0;
}

/* 'vertex' is none of those that may be here. */
static int refuse_type (struct spec *s, const struct place *at, json_t *vertex, const char *must)
{
    const struct place place = { .in = at, .key = "type" };

    if (!json_is_object (vertex))
        return refuse (s, at, vertex, "an object");
    return refuse (s, &place, json_object_get (vertex, "type"), must);
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

static int check_in_slot (struct spec *s, const struct place *at, json_t *vertex)
{
    if (is_type (vertex, "core"))
        return check_only (s, at, vertex, core_rules);
    if (is_type (vertex, "gpu"))
        return check_only (s, at, vertex, gpu_rules);
    return refuse_type (s, at, vertex, "core or gpu");
}

static int check_slot_with (struct spec *s, const struct place *at, json_t *with)
{
    size_t cores = 0, n = json_array_size (with);

    if (n != 1 && n != 2)
        return refuse (s, at, with, "an array of a core, or a core and a gpu");
    if (check_elements (s, at, with, check_in_slot) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        cores += is_type (json_array_get (with, i), "core");
    if (cores != 1) {
        char path[PATH_SIZE + 5];
        return errsetf_clean (s->errp, EINVAL,
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

static int check_in_node (struct spec *s, const struct place *at, json_t *vertex)
{
    if (is_type (vertex, "slot"))
        return check_only (s, at, vertex, slot_rules);
    return refuse_type (s, at, vertex, "slot");
}

static int check_node_with (struct spec *s, const struct place *at, json_t *with)
{
    if (json_array_size (with) != 1)
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

static int check_resource (struct spec *s, const struct place *at, json_t *vertex)
{
    if (is_type (vertex, "node"))
        return check_only (s, at, vertex, node_rules);
    if (is_type (vertex, "slot"))
        return check_only (s, at, vertex, slot_rules);
    return refuse_type (s, at, vertex, "node or slot");
}

static int check_resources (struct spec *s, const struct place *at, json_t *value)
{
    if (json_array_size (value) != 1)
        return refuse (s, at, value, "an array of one node or slot");
    return check_elements (s, at, value, check_resource);
}

/* --- tasks ------------------------------------------------------------------------------------------------ */

static int check_command (struct spec *s, const struct place *at, json_t *value)
{
    if (json_array_size (value) == 0)
        return refuse (s, at, value, "an array of at least one string");
    return check_elements (s, at, value, check_string);
}

static int check_task_slot (struct spec *s, const struct place *at, json_t *value)
{
    const char *slot = json_string_value (value);
    char must[64];

    if (slot && strcmp (slot, s->slot) == 0)
        return 0;
    snprintf (must, sizeof (must), "the label of the slot (\"%.30s\")", s->slot);
    return refuse (s, at, value, must);
}

static int check_per_slot (struct spec *s, const struct place *at, json_t *value)
{
    return json_is_integer (value) && json_integer_value (value) == 1 ? 0 : refuse (s, at, value, "1");
}

static int check_total (struct spec *s, const struct place *at, json_t *value)
{
    char must[64];

    if (!is_count (value, 1))
        return refuse (s, at, value, COUNT_RULE);
    if (json_integer_value (value) >= s->nodes)
        return 0;
    snprintf (must, sizeof (must), "at least the number of nodes (%" JSON_INTEGER_FORMAT ")", s->nodes);
    return refuse (s, at, value, must);
}

static const struct rule task_count_rules[] = {
    { "per_slot", false, check_per_slot },
    { "total", false, check_total },
    { NULL },
};

static int check_task_count (struct spec *s, const struct place *at, json_t *value)
{
    char path[PATH_SIZE + 5];

    if (check_only (s, at, value, task_count_rules) < 0)
        return -1;
    if (json_object_size (value) != 1)
        return errsetf (s->errp, EINVAL, "jobspec: %smust have one of per_slot and total, and has %s",
                        path_of (at, path), json_object_size (value) > 0 ? "both" : "none");
    return 0;
}

/* The last two are RFC 14's: Flux takes them. */
static const struct rule task_rules[] = {
    { "command", true, check_command },    { "slot", true, check_task_slot },       { "count", true, check_task_count },
    { "attributes", false, check_object }, { "distribution", false, check_string }, { NULL },
};

static int check_task (struct spec *s, const struct place *at, json_t *value)
{
    return check_only (s, at, value, task_rules);
}

static int check_tasks (struct spec *s, const struct place *at, json_t *value)
{
    if (json_array_size (value) != 1)
        return refuse (s, at, value, "an array of one task");
    return check_elements (s, at, value, check_task);
}

/* --- attributes ------------------------------------------------------------------------------------------- */

/* null: the variable is unset (RFC 14) */
static int check_variable (struct spec *s, const struct place *at, json_t *value)
{
    return json_is_string (value) || json_is_null (value) ? 0 : refuse (s, at, value, "a string or null");
}

static int check_environment (struct spec *s, const struct place *at, json_t *value)
{
    return check_values (s, at, value, check_variable);
}

static int check_strings (struct spec *s, const struct place *at, json_t *value)
{
    return check_values (s, at, value, check_string);
}

static const struct rule dependency_rules[] = {
    { "scheme", true, check_string },
    { "value", true, check_string },
    { NULL },
};

static int check_dependency (struct spec *s, const struct place *at, json_t *value)
{
    return check_known (s, at, value, dependency_rules);
}

static int check_dependencies (struct spec *s, const struct place *at, json_t *value)
{
    return check_elements (s, at, value, check_dependency);
}

static int check_ranks (struct spec *s, const struct place *at, json_t *value)
{
    const char *ranks = json_string_value (value);
    uint32_t last;

    return ranks && ranges_last (ranks, &last) >= 0 ? 0 : refuse (s, at, value, "a set of ranks, as \"0-3,7\"");
}

static int check_any (struct spec *s, const struct place *at, json_t *value)
{
    return 0;
}

static int check_constraint (struct spec *s, const struct place *at, json_t *value);

/* What the values of an operator are.  RFC 31 is made to be extended: of others only the form is known. */
static check_f operand_of (const char *operator)
{
    static const struct {
        const char *name;
        check_f check;
    } operators[] = {
        { "properties", check_string }, { "hostlist", check_string }, { "ranks", check_ranks },
        { "and", check_constraint },    { "or", check_constraint },   { "not", check_constraint },
    };

    for (size_t i = 0; i < sizeof (operators) / sizeof (operators[0]); i++)
        if (strcmp (operators[i].name, operator) == 0)
            return operators[i].check;
    return check_any;
}

static int check_operator (struct spec *s, const struct place *at, json_t *value)
{
    return check_elements (s, at, value, operand_of (at->key));
}

/* As deep as the text: JOBSPEC_DEPTH_MAX bounds it. */
static int check_constraint (struct spec *s, const struct place *at, json_t *value)
{
    return check_values (s, at, value, check_operator);
}

static const struct rule shell_rules[] = {
    { "options", false, check_object },
    { NULL },
};

static int check_shell (struct spec *s, const struct place *at, json_t *value)
{
    return check_known (s, at, value, shell_rules);
}

/* An archive of RFC 37, as an object. */
static int check_files (struct spec *s, const struct place *at, json_t *value)
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

static int check_system (struct spec *s, const struct place *at, json_t *value)
{
    return check_known (s, at, value, system_rules);
}

static const struct rule attributes_rules[] = {
    { "system", true, check_system },
    { "user", false, check_object },
    { NULL },
};

static int check_attributes (struct spec *s, const struct place *at, json_t *value)
{
    return check_only (s, at, value, attributes_rules);
}

/* --- the whole -------------------------------------------------------------------------------------------- */

static int check_version (struct spec *s, const struct place *at, json_t *value)
{
    return json_is_integer (value) && json_integer_value (value) == 1 ? 0 : refuse (s, at, value, "1");
}

/* Tasks refer to resources. */
static const struct rule jobspec_rules[] = {
    { "version", true, check_version },
    { "resources", true, check_resources },
    { "tasks", true, check_tasks },
    { "attributes", true, check_attributes },
    { NULL },
};

/* The character behind the string that begins at 'p'; 'end' where it has no end. */
static const char *skip_string (const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p < end ? p + 1 : end;
}

static int refuse_at (const char *text, const char *p, const char *why, int limit, idt_error_t *errp)
{
    size_t line = 1, column = 1;

    for (; text < p; text++, column++)
        if (*text == '\n') {
            line++;
            column = 0;
        }
    return errsetf (errp, EINVAL, "jobspec: line %zu, column %zu: %s %d", line, column, why, limit);
}

/* Depth and number of values, before anything is allocated for them.  What is wrong in other ways the parser finds, and
 * before it has gone deeper than is counted here.
 */
static int check_bounds (const char *text, size_t size, idt_error_t *errp)
{
    const char *p = text, *end = text + size;
    size_t depth = 0, values = 0;

    while (p < end) {
        const char c = *p;

        if (c == '"') {
            p = skip_string (p, end);
            continue;
        }
        if (c == '[' || c == '{') {
            if (++depth > JOBSPEC_DEPTH_MAX)
                return refuse_at (text, p, "more arrays and objects in each other than", JOBSPEC_DEPTH_MAX, errp);
            values++;
        }
        else if (c == ',')
            values++;
        else if ((c == ']' || c == '}') && depth > 0)
            depth--;
        if (values > JOBSPEC_VALUES_MAX)
            return refuse_at (text, p, "more values than", JOBSPEC_VALUES_MAX, errp);
        p++;
    }
    return 0;
}

static int refuse_json (const json_error_t *e, int errnum, idt_error_t *errp)
{
    /* The parser calls an allocation that failed an invalid token, or nothing. */
    if (errnum == ENOMEM)
        return errsetf (errp, ENOMEM, "jobspec: out of memory");
    return errsetf_clean (errp, EINVAL, "jobspec: line %d, column %d: must be %s: %.120s", e->line, e->column,
                          json_error_code (e) == json_error_invalid_utf8 ? "UTF-8" : "JSON", e->text);
}

int jobspec_check (const char *text, size_t size, idt_error_t *errp)
{
    const struct place root = { .in = NULL };
    struct spec s = { .errp = errp };
    json_error_t e;

    if (check_bounds (text, size, errp) < 0)
        return -1;
    errno = 0;
    json_t *o = json_loadb (text, size, JSON_REJECT_DUPLICATES, &e);
    if (!o)
        return refuse_json (&e, errno, errp);
    int rc = check_known (&s, &root, o, jobspec_rules);
    int saved_errno = errno;
    json_decref (o);
    errno = saved_errno;
    return rc;
}
