/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* out.c - safe output of commands: formats, JSON, flushing */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/out.h"
#include "libutil/errprintf.h"
#include "libutil/text.h"

#define SPEC_MAX 32    /* bytes that hold a conversion such as "%-08.3lld" */
#define NUMBER_MAX 512 /* bytes that hold a formatted number with its padding */

/* --- text --------------------------------------------------------------------------------------- */

static size_t letters (const char *s, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

int out_pad (const char *s, int columns)
{
    size_t len = strlen (s);

    return columns + (int)(len - letters (s, len));
}

static size_t print_escaped (FILE *f, unsigned char c)
{
    char text[8];
    int n = c == '\n' ? snprintf (text, sizeof (text), "\\n") : snprintf (text, sizeof (text), "\\x%02x", c);

    if (f)
        fputs (text, f);
    return (size_t)n;
}

/* Print 'len' bytes with control characters escaped.  Returns the number of columns that they need.  If 'f' is NULL
 * only count.
 */
static size_t print_safe (FILE *f, const char *s, size_t len)
{
    size_t columns = 0;

    for (size_t at = 0; at < len; at++) {
        size_t n = utf8_span_printable (s + at, len - at);

        if (f && n > 0)
            fwrite (s + at, 1, n, f);
        columns += letters (s + at, n);
        if ((at += n) < len)
            columns += print_escaped (f, (unsigned char)s[at]);
    }
    return columns;
}

/* --- formats ------------------------------------------------------------------------------------ */

struct out_spec {
    const char *flags; /* borrowed from the format */
    int nflags;
    int width;
    int precision; /* negative: no precision */
    char size;     /* 'l', 'L' (ll), 'j', 'z', or '\0' */
    char type;
};

static int read_number (const char **p, va_list *ap)
{
    int n = 0;

    if (**p == '*') {
        ++*p;
        return va_arg (*ap, int);
    }
    for (; **p >= '0' && **p <= '9'; ++*p)
        n = n * 10 + (**p - '0');
    return n;
}

/* Parse the conversion behind a %. */
static struct out_spec read_spec (const char **p, va_list *ap)
{
    struct out_spec s = { .flags = *p, .precision = -1 };

    s.nflags = (int)strspn (*p, "-+ #0");
    *p += s.nflags;
    s.width = read_number (p, ap);
    if (**p == '.') {
        ++*p;
        s.precision = read_number (p, ap);
    }
    while (**p == 'h')
        ++*p;
    if (strchr ("ljz", **p) && **p) {
        s.size = *(*p)++;
        if (s.size == 'l' && **p == 'l') {
            s.size = 'L';
            ++*p;
        }
    }
    s.type = *(*p)++;
    return s;
}

static bool is_left (const struct out_spec *s)
{
    return s->width < 0 || memchr (s->flags, '-', (size_t)s->nflags);
}

static void put_text (FILE *f, const struct out_spec *s, const char *text)
{
    if (!text)
        text = "(null)";
    size_t len = s->precision < 0 ? strlen (text) : strnlen (text, (size_t)s->precision);
    int blanks = abs (s->width) - (int)print_safe (NULL, text, len);

    if (blanks > 0 && !is_left (s))
        fprintf (f, "%*s", blanks, "");
    print_safe (f, text, len);
    if (blanks > 0 && is_left (s))
        fprintf (f, "%*s", blanks, "");
}

static intmax_t take_signed (char size, va_list *ap)
{
    return size == 'l'   ? va_arg (*ap, long)
           : size == 'L' ? va_arg (*ap, long long)
           : size == 'j' ? va_arg (*ap, intmax_t)
           : size == 'z' ? (intmax_t)va_arg (*ap, ssize_t)
                         : va_arg (*ap, int);
}

static uintmax_t take_unsigned (char size, va_list *ap)
{
    return size == 'l'   ? va_arg (*ap, unsigned long)
           : size == 'L' ? va_arg (*ap, unsigned long long)
           : size == 'j' ? va_arg (*ap, uintmax_t)
           : size == 'z' ? va_arg (*ap, size_t)
                         : va_arg (*ap, unsigned);
}

/* Write the conversion of one number for snprintf () into 'buf'. */
static void write_spec (const struct out_spec *s, const char *size, char buf[SPEC_MAX])
{
    int n = snprintf (buf, SPEC_MAX, "%%%.*s%d", s->nflags, s->flags, s->width);

    if (s->width == 0) /* snprintf () would read a width of 0 as the flag 0 */
        n--;
    if (s->precision >= 0)
        n += snprintf (buf + n, SPEC_MAX - (size_t)n, ".%d", s->precision);
    snprintf (buf + n, SPEC_MAX - (size_t)n, "%s%c", size, s->type);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_number (FILE *f, const struct out_spec *s, va_list *ap)
{
    bool is_real = strchr ("fge", s->type) != NULL;
    char spec[SPEC_MAX], text[NUMBER_MAX];

    write_spec (s, is_real ? "" : "j", spec);
    if (is_real)
        snprintf (text, sizeof (text), spec, va_arg (*ap, double));
    else if (s->type == 'd' || s->type == 'i')
        snprintf (text, sizeof (text), spec, take_signed (s->size, ap));
    else
        snprintf (text, sizeof (text), spec, take_unsigned (s->size, ap));
    fputs (text, f);
}
#pragma GCC diagnostic pop

static void put (FILE *f, const struct out_spec *s, va_list *ap)
{
    char letter[2] = { '\0', '\0' };

    if (s->type == 's')
        put_text (f, s, va_arg (*ap, const char *));
    else if (s->type == 'c') {
        letter[0] = (char)va_arg (*ap, int);
        put_text (f, s, letter);
    }
    else if (s->type == '%')
        fputc ('%', f);
    else
        put_number (f, s, ap);
}

static void put_all (FILE *f, const char *fmt, va_list ap)
{
    va_list args;

    va_copy (args, ap);
    while (*fmt) {
        size_t n = strcspn (fmt, "%");

        fwrite (fmt, 1, n, f);
        fmt += n;
        if (*fmt) {
            fmt++;
            struct out_spec s = read_spec (&fmt, &args);
            put (f, &s, &args);
        }
    }
    va_end (args);
}

/* Format the whole sentence before it is written.  Stderr is unbuffered, so output of other processes could otherwise
 * split the sentence.
 */
static bool put_at_once (FILE *f, const char *fmt, va_list ap)
{
    char *text = NULL;
    size_t size = 0;
    FILE *whole = open_memstream (&text, &size);

    if (!whole)
        return false;
    put_all (whole, fmt, ap);
    if (fclose (whole) == 0)
        fwrite (text, 1, size, f);
    free (text);
    return true;
}

void out_vprint (FILE *f, const char *fmt, va_list ap)
{
    int saved_errno = errno;

    if (f != stderr || !put_at_once (f, fmt, ap))
        put_all (f, fmt, ap);
    errno = saved_errno;
}

void out_print (const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    out_vprint (stdout, fmt, ap);
    va_end (ap);
}

void out_error (const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    out_vprint (stderr, fmt, ap);
    va_end (ap);
}

void out_own (const char *text)
{
    fputs (text, stdout);
}

static bool is_open_to_write (FILE *f)
{
    int flags = fcntl (fileno (f), F_GETFL);

    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

int out_flush (FILE *f, idt_error_t *errp)
{
    bool failed = ferror (f);

    if (fflush (f) == EOF)
        return errprintf (errp, "%s", strerror (errno));
    if (failed && !is_open_to_write (f))
        return errsetf (errp, EBADF, "%s", strerror (EBADF));
    return failed ? errsetf (errp, EIO, "not all output was written: is the disk full?") : 0;
}

/* --- JSON --------------------------------------------------------------------------------------- */

/* jansson escapes U+0000 to U+001F.  This function escapes the other control characters, which can be only inside
 * strings.
 */
static void put_json (const char *s, size_t size, FILE *f)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)s[i], next = i + 1 < size ? (unsigned char)s[i + 1] : 0;

        if (c == 0x7f)
            fputs ("\\u007f", f);
        else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
            fprintf (f, "\\u%04x", next);
            i++;
        }
        else
            putc (c, f);
    }
}

int out_json (const json_t *o, size_t flags)
{
    char *text = json_dumps (o, flags);

    if (!text) {
        errno = ENOMEM;
        return -1;
    }
    put_json (text, strlen (text), stdout);
    free (text);
    return 0;
}

/* --- members, for people ------------------------------------------------------------------------ */

#define LABEL_MAX 96

static bool is_scalar (const json_t *value)
{
    return !json_is_object (value) && !json_is_array (value);
}

/* Whether 'value' is an array with objects, which is printed as a table. */
static bool is_table (const json_t *value)
{
    return json_is_array (value) && json_is_object (json_array_get (value, 0));
}

/* A scalar as text, or a list of scalars joined with commas.  The caller frees it with free (). */
static char *text_new (const json_t *value, size_t flags)
{
    char *text = NULL;
    size_t size, i;
    json_t *one;

    if (json_is_string (value))
        return strdup (json_string_value (value));
    if (!value || json_is_null (value)
        || (!is_scalar (value) && json_array_size (value) + json_object_size (value) == 0))
        return strdup ("-");
    if (!json_is_array (value) || !is_scalar (json_array_get (value, 0)))
        return json_dumps (value, JSON_ENCODE_ANY | flags);
    FILE *f = open_memstream (&text, &size);
    json_array_foreach ((json_t *)value, i, one) {
        char *s = text_new (one, flags);

        if (f)
            fprintf (f, "%s%s", i > 0 ? ", " : "", s ? s : "?");
        free (s);
    }
    if (f)
        fclose (f);
    return text;
}

/* The width of a column in bytes: the length of its title or of its longest value. */
static int column_width (const json_t *rows, const char *key, size_t flags)
{
    size_t width = strlen (key), i;
    json_t *row;

    json_array_foreach ((json_t *)rows, i, row) {
        char *s = text_new (json_object_get (row, key), flags);

        if (s && strlen (s) > width)
            width = strlen (s);
        free (s);
    }
    return (int)width;
}

/* Print one line of a table.  'row' NULL: print the titles. */
static void print_row (const json_t *rows, const json_t *keys, const json_t *row, size_t flags)
{
    const char *key, *between = "  ";
    json_t *value;

    json_object_foreach ((json_t *)keys, key, value) {
        int width = column_width (rows, key, flags);
        char *s = row ? text_new (json_object_get (row, key), flags) : strdup (key);

        out_print ("%s%*s", between, json_is_number (value) ? width : -width, s ? s : "?");
        free (s);
    }
    out_print ("\n");
}

static void print_table (const char *label, const json_t *rows, size_t flags)
{
    json_t *keys = json_object (), *row;
    size_t i;

    json_array_foreach ((json_t *)rows, i, row)
        json_object_update_missing (keys, row);
    out_print ("\n%s:\n", label);
    print_row (rows, keys, NULL, flags);
    json_array_foreach ((json_t *)rows, i, row)
        print_row (rows, keys, row, flags);
    json_decref (keys);
}

static bool is_nested (const json_t *value)
{
    return json_is_object (value) && json_object_size (value) > 0;
}

/* The number of columns that the longest label of an object needs. */
static int label_columns (const json_t *o, size_t prefix_len)
{
    const char *key;
    json_t *value;
    int most = 0;

    json_object_foreach ((json_t *)o, key, value) {
        size_t len = prefix_len + strlen (key);
        int columns = is_nested (value) ? label_columns (value, len + 1) : is_table (value) ? 0 : (int)len + 2;

        most = columns > most ? columns : most;
    }
    return most;
}

/* Print the scalars and lists of an object, or with 'tables' only its tables.  The caller prints the tables last. */
static void print_members (const json_t *o, const char *prefix, int columns, size_t flags, bool tables)
{
    char label[LABEL_MAX];
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)o, key, value) {
        snprintf (label, sizeof (label), "%s%s%s", prefix, key, is_nested (value) ? " " : "");
        if (is_nested (value))
            print_members (value, label, columns, flags, tables);
        else if (is_table (value) && tables)
            print_table (label, value, flags);
        else if (!is_table (value) && !tables) {
            char *s = text_new (value, flags);

            out_print ("%-*s %s\n", columns - 1, label, s ? s : "?");
            free (s);
        }
    }
}

void out_print_members (const json_t *o, const char *prefix, int columns, size_t flags)
{
    if (columns == 0)
        columns = label_columns (o, strlen (prefix));
    print_members (o, prefix, columns, flags, false);
    print_members (o, prefix, columns, flags, true);
}
