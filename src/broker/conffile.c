/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conffile.c - attributes from a file, read at the start and again while brokers run */
#include "config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "broker/boot/cluster.h"
#include "broker/conffile.h"
#include "libutil/errprintf.h"

#define LINE_MAX_SIZE (ATTR_NAME_MAX + ATTR_VALUE_MAX + 256) /* bytes, including the final NUL */

struct conf_reader {
    struct attrs *attrs;
    const char *path;
    FILE *f;
    unsigned line;             /* number of the last line read */
    char table[ATTR_NAME_MAX]; /* name of the current table, with a dot; "": no table */
    char *text;                /* current line; LINE_MAX_SIZE bytes */
    char *at;                  /* current position in the line */
    char *value;               /* current value; ATTR_VALUE_MAX + 1 bytes */
    size_t len;                /* bytes of 'value' */
    idt_error_t why;
};

static int fault (struct conf_reader *r, const char *text)
{
    return errsetf (&r->why, EINVAL, "%s", text);
}

/* --- lines --------------------------------------------------------------------------------------- */

/* Read a line, without its newline. Returns 1, or 0 at the end of the file, or -1. */
static int read_line (struct conf_reader *r)
{
    size_t len = 0;
    int c;

    r->line++;
    while ((c = getc (r->f)) != EOF && c != '\n') {
        if (c == '\0')
            return errsetf (&r->why, EINVAL, "byte %zu is NUL: not a file of attributes", len + 1);
        if (len + 1 == LINE_MAX_SIZE)
            return errsetf (&r->why, EINVAL, "a line has at most %d bytes", LINE_MAX_SIZE - 1);
        r->text[len++] = (char)c;
    }
    r->text[len] = '\0';
    r->at = r->text;
    return ferror (r->f) ? errprintf (&r->why, "%s", strerror (errno)) : c != EOF || len > 0;
}

static void skip_blanks (struct conf_reader *r)
{
    while (isspace ((unsigned char)*r->at))
        r->at++;
}

/* Whether the rest of the line is empty or a comment. */
static bool is_over (struct conf_reader *r)
{
    skip_blanks (r);
    return *r->at == '\0' || *r->at == '#';
}

/* Cut off blanks at the end of 's'. */
static void trim_end (char *s)
{
    char *end = s + strlen (s);

    while (end > s && isspace ((unsigned char)end[-1]))
        *--end = '\0';
}

/* --- values -------------------------------------------------------------------------------------- */

static int put (struct conf_reader *r, char c)
{
    assert (r->len <= ATTR_VALUE_MAX);
    if (r->len == ATTR_VALUE_MAX)
        return errsetf (&r->why, EINVAL, "a value has at most %d bytes", ATTR_VALUE_MAX);
    r->value[r->len++] = c;
    return 0;
}

static int take_string (struct conf_reader *r)
{
    char quote = *r->at++;

    for (; *r->at != quote; r->at++) {
        if (*r->at == '\0')
            return fault (r, "a closing quote is missing");
        if (quote == '"' && *r->at == '\\' && *++r->at != '"' && *r->at != '\\')
            return fault (r, "\\ in a string must be followed by \\ or a quote; '...' has no escapes");
        if (put (r, *r->at) < 0)
            return -1;
    }
    r->at++;
    return 0;
}

/* Read a word of a list that has no quotes, such as a number. */
static int take_word (struct conf_reader *r)
{
    size_t n = strcspn (r->at, " \t\r,[]{}\"'#=");

    if (n == 0)
        return fault (r, "a list has strings and numbers, with commas between them and ] at its end");
    while (n-- > 0)
        if (put (r, *r->at++) < 0)
            return -1;
    return 0;
}

/* Skip blanks, comments and ends of lines in a list. Returns 0, or -1 at the end of the file. */
static int seek (struct conf_reader *r)
{
    while (is_over (r)) {
        int rc = read_line (r);

        if (rc <= 0)
            return rc < 0 ? -1 : fault (r, "the file ends in a list: ] is missing");
    }
    return 0;
}

static int take_list (struct conf_reader *r)
{
    bool comma = true;

    r->at++;
    while (seek (r) == 0 && *r->at != ']') {
        if (!comma)
            return fault (r, "a list lacks a comma, or the ] at its end");
        if ((r->len > 0 && put (r, ',') < 0) || (*r->at == '"' || *r->at == '\'' ? take_string (r) : take_word (r)) < 0
            || seek (r) < 0)
            return -1;
        comma = *r->at == ',';
        r->at += comma;
    }
    if (r->why.text[0])
        return -1;
    r->at++;
    return 0;
}

/* Read a value without quotes: the rest of the line up to a comment. */
static int take_bare (struct conf_reader *r)
{
    const char *from = r->at;

    for (char *p = r->at; *p; p++)
        if (*p == '#' && (p == from || isspace ((unsigned char)p[-1])))
            *p-- = '\0';
    trim_end (r->at);
    while (*r->at)
        if (put (r, *r->at++) < 0)
            return -1;
    return 0;
}

static int take_value (struct conf_reader *r)
{
    int rc;

    r->len = 0;
    skip_blanks (r);
    if (*r->at == '{')
        return fault (r, "tables in { } are not supported: begin a table with [NAME]");
    if (*r->at == '"' || *r->at == '\'')
        rc = take_string (r);
    else
        rc = *r->at == '[' ? take_list (r) : take_bare (r);
    if (rc == 0 && !is_over (r))
        rc = fault (r, "only a comment may follow a value");
    r->value[r->len] = '\0';
    return rc;
}

/* --- lines with a meaning ------------------------------------------------------------------------ */

static int take_table (struct conf_reader *r)
{
    char *end = strchr (r->at, ']');
    size_t n;

    if (r->at[1] == '[')
        return fault (r, "lists of tables ([[NAME]]) are not supported");
    if (!end)
        return fault (r, "must read [TABLE]: ] is missing");
    n = end - r->at - 1;
    if (n == 0 || n + 2 > sizeof (r->table) || strcspn (r->at + 1, " \t\"'=#") < n)
        return fault (r, "the name of a table may have letters, digits, - and dots");
    snprintf (r->table, sizeof (r->table), "%.*s.", (int)n, r->at + 1);
    r->at = end + 1;
    return is_over (r) ? 0 : fault (r, "only a comment may follow [TABLE]");
}

/* Refuse a key that this file has already set. Otherwise the second of two lists of hosts would replace the first
 * without a message.
 */
static int check_new (struct conf_reader *r, const char *name)
{
    const char *origin = attr_origin (r->attrs, name);
    size_t n = strlen (r->path);

    if (!origin || strncmp (origin, r->path, n) != 0 || origin[n] != ':')
        return 0;
    return errsetf (&r->why, EINVAL, "%s is already set in line %s", name, origin + n + 1);
}

static int take_attribute (struct conf_reader *r, const char *name, const char *origin)
{
    unsigned line = r->line;

    if (check_new (r, name) < 0 || take_value (r) < 0)
        return -1;
    if (attr_give_at (r->attrs, name, r->value, origin, &r->why) == 0)
        return 0;
    r->line = line; /* the line of the key: the list after it may have several lines */
    return -1;
}

static int take_key (struct conf_reader *r)
{
    char *equal = strchr (r->at, '='), *name = NULL, *origin = NULL, *key = r->at;
    int rc;

    if (!equal)
        return fault (r, "must read ATTR = VALUE");
    *equal = '\0';
    trim_end (key);
    r->at = equal + 1;
    if (asprintf (&name, "%s%s", *key ? r->table : "", key) < 0 || asprintf (&origin, "%s:%u", r->path, r->line) < 0)
        rc = errsetf (&r->why, ENOMEM, "out of memory");
    else
        rc = take_attribute (r, name, origin);
    free (name);
    free (origin);
    return rc;
}

static int take_lines (struct conf_reader *r)
{
    int rc;

    while ((rc = read_line (r)) > 0)
        if (!is_over (r) && (*r->at == '[' ? take_table (r) : take_key (r)) < 0)
            return -1;
    return rc;
}

int conffile_load (struct attrs *attrs, const char *path, idt_error_t *errp)
{
    struct conf_reader r = { .attrs = attrs, .path = path, .f = fopen (path, "re") };
    int rc, saved;

    if (!r.f)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    r.text = malloc (LINE_MAX_SIZE);
    r.value = malloc (ATTR_VALUE_MAX + 1);
    rc = r.text && r.value ? take_lines (&r) : errsetf (&r.why, ENOMEM, "out of memory");
    saved = errno;
    free (r.text);
    free (r.value);
    fclose (r.f);
    errno = saved;
    return rc < 0 ? errprintf (errp, "%s:%u: %s", path, r.line, r.why.text) : 0;
}

/* --- reading again ------------------------------------------------------------------------------------- */

/* One set of attributes is to replace another one. */
struct change {
    struct attrs *now;
    struct attrs *fresh;
    conffile_known_f known; /* NULL: not checked */
    void *arg;
    struct log *log;
    struct conffile_report *report;
    int rc;
    idt_error_t *errp;
};

static void give_again (const char *name, const char *value, void *arg)
{
    struct change *c = arg;

    if (c->rc == 0 && !attr_origin (c->now, name))
        c->rc = attr_give (c->fresh, name, value, c->errp);
}

struct attrs *conffile_read_again (struct attrs *given, const char **files, size_t nfiles, idt_error_t *errp)
{
    struct change c = { .now = given, .errp = errp };

    if (nfiles == 0) {
        errsetf (errp, ENOENT, "the broker was started without --config: there is no file to read again");
        return NULL;
    }
    if (!(c.fresh = attrs_create ())) {
        errsetf (errp, ENOMEM, "out of memory");
        return NULL;
    }
    for (size_t i = 0; c.rc == 0 && i < nfiles; i++)
        c.rc = conffile_load (c.fresh, files[i], errp);
    if (c.rc == 0)
        attr_foreach (given, give_again, &c);
    if (c.rc == 0)
        return c.fresh;
    attrs_destroy (c.fresh);
    return NULL;
}

/* --- checking ------------------------------------------------------------------------------------ */

static void check_one (const char *name, const char *value, void *arg)
{
    struct change *c = arg;
    const char *origin = attr_origin (c->fresh, name);
    int flags = 0;
    idt_error_t why;

    if (c->rc == 0 && c->known && c->known (name, origin, c->arg, c->errp) < 0)
        c->rc = -1;
    attr_look (c->now, name, &flags);
    if (c->rc == 0 && (flags & ATTR_SETTABLE) && attr_check (c->now, name, value, &why) < 0)
        c->rc = errsetf (c->errp, EINVAL, "%s%s%s", origin ? origin : "", origin ? ": " : "", why.text);
}

/* Whether other modules will be loaded when the broker is started again. These may define other attributes. */
static bool has_other_modules (struct attrs *now, struct attrs *fresh)
{
    const char *new = attr_get (fresh, "broker.modules", NULL), *old = attr_get (now, "broker.modules", NULL);

    return new && (!old || strcmp (new, old) != 0);
}

int conffile_check (struct attrs *now, struct attrs *fresh, conffile_known_f known, void *arg, idt_error_t *errp)
{
    struct change c = { .now = now, .fresh = fresh, .arg = arg, .errp = errp };

    c.known = has_other_modules (now, fresh) ? NULL : known;
    attr_foreach (fresh, check_one, &c);
    return c.rc;
}

/* --- taking over --------------------------------------------------------------------------------- */

/* Whether the attribute has addresses of other hosts, which boot_reload () has already taken over. */
static bool is_boots (const char *name)
{
    return strcmp (name, "cluster.hosts") == 0 || strcmp (name, "cluster.address") == 0
           || strcmp (name, "cluster.root") == 0;
}

/* Try to set an attribute to its new value. Returns whether the attribute has changed. */
static bool take (struct change *c, const char *name, const char *value, int flags)
{
    idt_error_t err = { "" };

    if (is_boots (name))
        return attr_update (c->now, name, value, NULL) == 0;
    if (strcmp (name, "cluster.quorum") == 0) {
        if (attr_set (c->now, "broker.quorum", value, &err) == 0 && attr_update (c->now, name, value, &err) == 0)
            return true;
    }
    else if (!(flags & ATTR_SETTABLE))
        return false;
    else if (attr_set (c->now, name, value, &err) == 0)
        return true;
    log_printf (c->log, LOG_ERR, "broker", "%s", err.text); /* only without memory */
    return false;
}

static void tell (struct change *c, const char *name, bool changed)
{
    json_array_append_new (changed ? c->report->changed : c->report->later, json_string (name));
}

static void take_over (const char *name, const char *value, void *arg)
{
    struct change *c = arg;
    int flags = 0;
    const char *old = attr_look (c->now, name, &flags);
    bool changed;

    if (old && strcmp (old, value) == 0)
        return;
    if ((changed = take (c, name, value, flags)))
        attr_set_origin (c->now, name, attr_origin (c->fresh, name), NULL);
    tell (c, name, changed);
    log_printf (c->log, LOG_NOTICE, "broker", changed ? "%s is now %s" : "%s=%s waits for a restart", name, value);
}

/* If an attribute came from a file, and is no longer in any file, set it to its default. */
static void take_back (const char *name, const char *value, void *arg)
{
    struct change *c = arg;
    const char *fallback = is_boots (name) ? CLUSTER_ADDRESS : attr_fallback (c->now, name);
    int flags = 0;
    bool changed;

    if (!attr_origin (c->now, name) || attr_get (c->fresh, name, NULL) || (fallback && strcmp (value, fallback) == 0))
        return;
    attr_get (c->now, name, &flags);
    if ((changed = fallback && take (c, name, fallback, flags)))
        attr_set_origin (c->now, name, NULL, NULL);
    tell (c, name, changed);
    log_printf (c->log, LOG_NOTICE, "broker", "%s is no longer in any file: %s%s", name,
                changed ? "it has its default again: " : "this takes effect at the next restart",
                changed ? fallback : "");
}

void conffile_take_over (struct attrs *now, struct attrs *fresh, struct log *log, struct conffile_report *report)
{
    struct change c = { .now = now, .fresh = fresh, .log = log, .report = report };

    attr_foreach (fresh, take_over, &c);
    attr_foreach (now, take_back, &c);
}
