/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* header.c - read the header of a request: its framing (RFC 9112), and its Accept fields (RFC 9110, 12.5.1) */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http/server/header.h"
#include "libutil/errprintf.h"

#define CRLF 2         /* bytes */
#define VERSION_SIZE 8 /* HTTP/1.1 */
#define BLANKS " \t"
#define EXACT 2           /* a type that equals the range's type is as specific as EXACT */
#define MOST_PARAMETERS 8 /* most parameters of a range that count for how specific it is */

/* Versions after 0.9.77 can refuse malformed headers. */
bool framing_parser_is_strict (const char *version)
{
    unsigned a = 0, b = 0, c = 0, d = 0;

    if (sscanf (version, "%u.%u.%u.%u", &a, &b, &c, &d) < 3)
        return false;
    return a > 0 || b > 9 || (b == 9 && (c > 77 || (c == 77 && d > 0)));
}

void framing_spoil (struct framing *f, const char *why)
{
    if (!f->wrong)
        f->wrong = why;
}

/* --- characters --------------------------------------------------------- */

static bool is_alnum (char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* The characters of methods and field names (RFC 9110, 5.6.2). */
static bool is_token (const char *s, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!s[i] || (!is_alnum (s[i]) && !strchr ("!#$%&'*+-.^_`|~", s[i])))
            return false;
    return size > 0;
}

/* Other parsers would end a line or a text at a control character. Bytes from 0x80 on are letters here. */
static bool is_control (char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* The characters of the value of a field (RFC 9110, 5.5). */
static bool is_value (const char *s, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (is_control (s[i]) && s[i] != '\t')
            return false;
    return true;
}

/* RFC 3986, 3.2.2: a name or an address, and a port. */
static bool is_host (const char *s, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!s[i] || (!is_alnum (s[i]) && !strchr ("-._~!$&'()*+,;=:[]", s[i])))
            return false;
    return true;
}

static bool is_text (const char *text, const char *s, size_t size)
{
    return strlen (text) == size && strncasecmp (text, s, size) == 0;
}

/* Return the size without blanks and tabs at the end. Blanks and tabs around a value are not part of the value (RFC
 * 9112, 5.1), but some parsers keep those at its end.
 */
static size_t trim (const char *s, size_t size)
{
    while (size > 0 && (s[size - 1] == ' ' || s[size - 1] == '\t'))
        size--;
    return size;
}

/* --- the request line --------------------------------------------------------- */

static size_t scheme_size (const char *target, size_t size)
{
    static const char *const schemes[] = { "http://", "https://" };

    for (size_t i = 0; i < sizeof (schemes) / sizeof (schemes[0]); i++) {
        size_t len = strlen (schemes[i]);

        if (size >= len && strncasecmp (target, schemes[i], len) == 0)
            return len;
    }
    return 0;
}

/* A client that uses this server as a proxy sends the whole address as the target. The address then determines the host
 * (RFC 9112, 3.2.2).
 */
void framing_target (struct framing *f, const char *target, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (is_control (target[i]) || target[i] == ' ')
            framing_spoil (f, "its target has a blank or a control character");
    size_t skip = scheme_size (target, size);
    if (skip == 0)
        return;
    f->absolute = true;
    f->host = target + skip;
    f->host_size = 0;
    while (skip + f->host_size < size && !strchr ("/?#", f->host[f->host_size]))
        f->host_size++;
    if (f->host_size == 0 || !is_host (f->host, f->host_size))
        framing_spoil (f, "its target has no host, or a wrong one");
}

void framing_line (struct framing *f, const char *method, const char *target, size_t target_size, const char *version,
                   bool in_place)
{
    size_t len = strlen (method);

    if (!is_token (method, len))
        framing_spoil (f, "its method is not a token");
    f->old = strcmp (version, "HTTP/1.0") == 0;
    f->at = NULL;
    if (!in_place)
        return;
    if (target != method + len + 1 || version != target + target_size + 1 || strlen (version) != VERSION_SIZE)
        framing_spoil (f, "its first line is not METHOD TARGET HTTP/1.1 with one blank between");
    f->at = version + VERSION_SIZE + CRLF;
}

/* --- fields --------------------------------------------------------- */

static bool read_length (const char *value, size_t size, uint64_t *length)
{
    uint64_t n = 0;

    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9' || n > (UINT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (uint64_t)(value[i] - '0');
    }
    *length = n;
    return size > 0;
}

static void take_host (struct framing *f, const char *value, size_t size)
{
    f->hosts++;
    if (!is_host (value, size))
        framing_spoil (f, "its Host is not a name or an address with an optional port");
    if (f->absolute)
        return;
    f->host = value;
    f->host_size = size;
}

static void take_coding (struct framing *f, const char *value, size_t size)
{
    f->ends++;
    f->chunked = is_text ("chunked", value, size);
    f->unknown = !f->chunked;
}

static void take_length (struct framing *f, const char *value, size_t size)
{
    f->ends++;
    if (!read_length (value, size, &f->length))
        framing_spoil (f, "its Content-Length is not a number of 64 bits");
}

/* Refuse a field that is repeated, because one parser may use the first value and another parser the last one. */
static void take_once (struct framing *f, unsigned bit)
{
    if (f->seen & bit)
        framing_spoil (f, "it has more than one Origin or Authorization");
    f->seen |= bit;
}

static void check_place (struct framing *f, const char *name, size_t name_size, const char *value, size_t value_size)
{
    if (f->at && (name != f->at || value < name + name_size + 1))
        framing_spoil (f, "a line of its header ends without CRLF, is folded, or has a NUL");
    if (f->at)
        f->at = value + value_size + CRLF;
}

void framing_field (struct framing *f, const char *name, size_t name_size, const char *value, size_t value_size)
{
    check_place (f, name, name_size, value, value_size);
    if (!is_token (name, name_size))
        framing_spoil (f, "the name of a field has a blank, or another character that is not allowed in a token");
    if (!is_value (value, value_size))
        framing_spoil (f, "the value of a field has a control character");
    value_size = trim (value, value_size);
    if (is_text ("Host", name, name_size))
        take_host (f, value, value_size);
    else if (is_text ("Transfer-Encoding", name, name_size))
        take_coding (f, value, value_size);
    else if (is_text ("Content-Length", name, name_size))
        take_length (f, value, value_size);
    else if (is_text ("Origin", name, name_size))
        take_once (f, 1);
    else if (is_text ("Authorization", name, name_size))
        take_once (f, 2);
}

/* --- all of it --------------------------------------------------------- */

static unsigned fail (idt_error_t *errp, unsigned status, const char *why)
{
    errprintf (errp, "the request breaks RFC 9112: %s", why);
    return status;
}

static unsigned fail_body (idt_error_t *errp, uint64_t length)
{
    if (length > FRAMING_MAX_BODY)
        errprintf (errp,
                   "a request has no body here, and none of more than %d bytes is read: parameters belong into the URL",
                   FRAMING_MAX_BODY);
    else
        errprintf (errp, FRAMING_NO_BODY);
    return length > FRAMING_MAX_BODY ? 413 : 400;
}

unsigned framing_end (struct framing *f, const char *end, idt_error_t *errp)
{
    if (f->at && end != f->at + CRLF)
        framing_spoil (f, "a line of its header ends without CRLF, is folded, or has a NUL");
    if (f->wrong)
        return fail (errp, 400, f->wrong);
    if (f->ends > 1)
        return fail (errp, 400, "it has more than one Content-Length or Transfer-Encoding");
    if (f->hosts > 1 || (f->hosts == 0 && !f->old))
        return fail (errp, 400, "it has no Host, or more than one");
    if ((f->chunked || f->unknown) && f->old)
        return fail (errp, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (f->unknown)
        return fail (errp, 501, "its Transfer-Encoding is not chunked");
    return f->length > 0 ? fail_body (errp, f->length) : 0;
}

/* --- Accept -----
 *
 *     Accept      = [ range *( "," range ) ]
 *     range       = ( "*" "/" "*" | type "/" "*" | type "/" subtype ) *( ";" name "=" value ) [ ";" "q" "=" weight ]
 *     weight      = ( "0" [ "." 0*3DIGIT ] ) | ( "1" [ "." 0*3"0" ] )
 *
 * If a range and an offered type have the same parameter with different values, the range does not match the type. A
 * parameter of the range that the type does not have is ignored, because it may have been defined later.
 */

struct slice {
    const char *s;
    size_t len;
};

static bool slice_is (struct slice a, struct slice b)
{
    return a.len == b.len && strncasecmp (a.s, b.s, a.len) == 0;
}

static bool slice_is_text (struct slice a, const char *text)
{
    return slice_is (a, (struct slice){ text, strlen (text) });
}

static struct slice trim_blanks (struct slice a)
{
    while (a.len > 0 && strchr (BLANKS, a.s[0])) {
        a.s++;
        a.len--;
    }
    while (a.len > 0 && strchr (BLANKS, a.s[a.len - 1]))
        a.len--;
    return a;
}

/* Return the text before the next 'c' outside of quotes, or the whole text if it has no such 'c'. '*rest' becomes the
 * text behind that 'c'; its 's' is NULL if there was no 'c'.
 */
static struct slice split (struct slice *rest, char c)
{
    struct slice part = *rest;
    bool quoted = false;

    for (size_t i = 0; i < rest->len; i++) {
        if (quoted && rest->s[i] == '\\')
            i++;
        else if (rest->s[i] == '"')
            quoted = !quoted;
        else if (rest->s[i] == c && !quoted) {
            part.len = i;
            *rest = (struct slice){ rest->s + i + 1, rest->len - i - 1 };
            return trim_blanks (part);
        }
    }
    *rest = (struct slice){ NULL, 0 };
    return trim_blanks (part);
}

static struct slice unquote (struct slice value)
{
    if (value.len >= 2 && value.s[0] == '"' && value.s[value.len - 1] == '"')
        return (struct slice){ value.s + 1, value.len - 2 };
    return value;
}

/* Return a weight in thousandths, or -1 if it is malformed. */
static int read_weight (struct slice s)
{
    int q = 0, unit = 1000;

    if (s.len == 0 || s.len > 5 || (s.s[0] != '0' && s.s[0] != '1') || (s.len > 1 && s.s[1] != '.'))
        return -1;
    for (size_t i = 0; i < s.len; i += i == 0 ? 2 : 1) {
        if (s.s[i] < '0' || s.s[i] > '9')
            return -1;
        q += (s.s[i] - '0') * unit;
        unit /= 10;
    }
    return q <= 1000 ? q : -1;
}

/* --- one range --------------------------------------------------------- */

/* Return how specific the type of the range is: 0, 1 or EXACT. Returns -1 if the offered type is another one. */
static int match_name (struct slice range, struct slice type)
{
    struct slice of = { type.s, strcspn (type.s, "/") + 1 };

    if (slice_is_text (range, "*/*"))
        return 0;
    if (slice_is (range, type))
        return EXACT;
    return range.len == of.len + 1 && range.s[range.len - 1] == '*' && strncasecmp (range.s, of.s, of.len) == 0 ? 1
                                                                                                                : -1;
}

/* Whether the type has a parameter of this name with another value. */
static bool differs (struct slice parameters, struct slice name, struct slice value)
{
    while (parameters.s) {
        struct slice own = split (&parameters, ';');

        if (slice_is (split (&own, '='), name))
            return !slice_is (trim_blanks (own), unquote (value));
    }
    return false;
}

/* Return how specific the range is. '*q' becomes its weight, 1000 by default. Returns -1 if the range does not match or
 * breaks the grammar.
 */
static int match (struct slice range, const char *offered, int *q)
{
    struct slice parameters = { offered, strlen (offered) }, type = split (&parameters, ';');
    int specific = match_name (split (&range, ';'), type), count = 0;

    *q = 1000;
    while (specific >= 0 && range.s) {
        struct slice value = split (&range, ';'), name = split (&value, '=');

        if (!value.s && name.len > 0)
            return -1;
        value = trim_blanks (value);
        /* behind the weight are only extensions */
        if (slice_is_text (name, "q"))
            return (*q = read_weight (value)) < 0 ? -1 : specific * MOST_PARAMETERS + count;
        if (differs (parameters, name, value))
            return -1;
        count += name.len > 0 && count < MOST_PARAMETERS - 1;
    }
    return specific < 0 ? -1 : specific * MOST_PARAMETERS + count;
}

void accept_init (struct accept *a, const char *const *types, size_t n)
{
    *a = (struct accept){ .types = types, .n = n < ACCEPT_TYPES ? n : ACCEPT_TYPES };
    for (size_t i = 0; i < ACCEPT_TYPES; i++)
        a->weights[i].specific = -1;
}

static void weigh (struct accept *a, size_t i, struct slice range)
{
    struct accept_weight *w = &a->weights[i];
    int q, specific = match (range, a->types[i], &q);

    if (specific > w->specific || (specific >= 0 && specific == w->specific && q > w->q))
        *w = (struct accept_weight){ specific, q };
}

void accept_read (struct accept *a, const char *value)
{
    struct slice rest = { value, strlen (value) };

    a->fields++;
    while (rest.s) {
        struct slice range = split (&rest, ',');

        for (size_t i = 0; i < a->n && range.len > 0; i++)
            weigh (a, i, range);
    }
}

size_t accept_choose (const struct accept *a)
{
    size_t best = 0;

    for (size_t i = 1; i < a->n && a->fields > 0; i++) {
        const struct accept_weight *w = &a->weights[i], *b = &a->weights[best];
        int than = b->specific < 0 ? 0 : b->q;

        if (w->specific < 0 || w->q == 0)
            continue;
        if (w->q > than || (w->q == than && w->specific / MOST_PARAMETERS > b->specific / MOST_PARAMETERS))
            best = i;
    }
    return best;
}
