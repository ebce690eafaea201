/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reconnect.c - a list of broker URIs, and in which order and when they are tried */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "libidtree/reconnect.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define SEPARATORS " \t\n,"

/* --- the list ------------------------------------------------------------------------------- */

/* Whether 's' begins with SCHEME:// */
static bool begins_uri (const char *s)
{
    size_t len = strspn (s, "abcdefghijklmnopqrstuvwxyz+");

    return len > 0 && strncmp (s + len, "://", 3) == 0;
}

/* Returns the length of the first URI, and sets '*next' to the beginning of the second URI, or to the end of the text.
 */
static size_t first_length (const char *s, const char **next)
{
    size_t len = 0;

    while (s[len]) {
        size_t gap = strspn (s + len, SEPARATORS);
        const char *behind = s + len + gap;

        if (gap > 0 && (*behind == '\0' || begins_uri (behind))) {
            *next = behind;
            return len;
        }
        len += gap > 0 ? gap : 1;
    }
    *next = s + len;
    return len;
}

static int read_uri (struct uri *u)
{
    static const char scheme[] = "local://", query[] = "?rank=";
    const char *path = u->text + sizeof (scheme) - 1, *end;
    uint64_t rank = 0;

    if (strncmp (u->text, scheme, sizeof (scheme) - 1) != 0)
        return errset (EINVAL);
    end = strstr (strrchr (u->text, '/'), query); /* "?rank=" in a folder's name is part of the path */
    if (end && parse_number (end + sizeof (query) - 1, 0, UINT32_MAX, &rank) < 0)
        return errset (EINVAL);
    size_t len = end ? (size_t)(end - path) : strlen (path);
    if (len == 0 || len >= sizeof (u->socket.sun_path))
        return errset (EINVAL);
    u->socket.sun_family = AF_UNIX;
    u->has_rank = end != NULL;
    u->rank = (uint32_t)rank;
    memcpy (u->socket.sun_path, path, len);
    return 0;
}

static int add (struct uris *u, const char *text, size_t len, idt_error_t *errp)
{
    if (u->count == URIS_MAX)
        return errsetf (errp, EINVAL, "more than %d URIs in one list", URIS_MAX);
    struct uri *uri = &u->uri[u->count];
    if (!(uri->text = strndup (text, len)))
        return errprintf (errp, "%s", strerror (errno));
    u->count++;
    if (read_uri (uri) == 0)
        return 0;
    return errprintf (errp, "%s: not local://PATH or local://PATH?rank=RANK, with a PATH of at most %zu bytes",
                      uri->text, sizeof (uri->socket.sun_path) - 1);
}

int uris_parse (struct uris *u, const char *text, idt_error_t *errp)
{
    const char *next;

    memset (u, 0, sizeof (*u));
    text += strspn (text, SEPARATORS);
    do {
        size_t len = first_length (text, &next);
        if (add (u, text, len, errp) < 0) {
            uris_fini (u);
            return -1;
        }
        text = next;
    } while (*text);
    return 0;
}

void uris_fini (struct uris *u)
{
    int saved_errno = errno;

    for (size_t i = 0; i < u->count; i++)
        free (u->uri[i].text);
    u->count = 0;
    errno = saved_errno;
}

/* --- the attempts --------------------------------------------------------------------------- */

void reconnect_init (struct reconnect *r, size_t count, uint32_t seed)
{
    assert (count > 0);
    *r = (struct reconnect){ .count = count, .dice = seed };
}

/* A number from 0.5 to 1, from a linear congruential generator. Clients need different numbers; the numbers may be
 * predictable.
 */
static double chance (struct reconnect *r)
{
    r->dice = r->dice * UINT32_C (1664525) + UINT32_C (1013904223);
    return 0.5 + r->dice * (0.5 / UINT32_MAX);
}

/* Begin a new round, after a pause that is twice as long as the previous pause, within the limits. */
static void pause_until (struct reconnect *r, double now_ms)
{
    double twice_ms = 2 * r->pause_ms;

    r->pause_ms = twice_ms < RECONNECT_PAUSE_MIN_MS   ? RECONNECT_PAUSE_MIN_MS
                  : twice_ms > RECONNECT_PAUSE_MAX_MS ? RECONNECT_PAUSE_MAX_MS
                                                      : twice_ms;
    r->at_ms = now_ms + r->pause_ms * chance (r);
}

void reconnect_begin (struct reconnect *r, double now_ms)
{
    r->next = r->refused = 0;
    r->begun_ms = r->at_ms = now_ms;
    if (now_ms - r->up_ms >= RECONNECT_PAUSE_MAX_MS)
        r->pause_ms = 0;
    else if (r->up_ms > 0)
        pause_until (r, now_ms);
}

double reconnect_at (const struct reconnect *r)
{
    return r->at_ms;
}

double reconnect_end (const struct reconnect *r, double now_ms)
{
    double last_ms = r->begun_ms + RECONNECT_PATIENCE_MS;

    return now_ms + RECONNECT_TRY_MS < last_ms ? now_ms + RECONNECT_TRY_MS : last_ms;
}

double reconnect_share (double left_ms, size_t behind)
{
    double share_ms = left_ms / (double)(behind + 1);

    return behind == 0 || share_ms < RECONNECT_TRY_MS ? share_ms : RECONNECT_TRY_MS;
}

static bool stays_so (int errnum)
{
    return errnum == ESTALE || errnum == EPERM || errnum == EACCES;
}

bool reconnect_failed (struct reconnect *r, double now_ms, int errnum)
{
    assert (r->next < r->count && r->refused <= r->next);
    r->refused += stays_so (errnum);
    r->next++;
    if (now_ms - r->begun_ms >= RECONNECT_PATIENCE_MS)
        return false;
    if (r->next < r->count)
        return true;
    if (r->refused == r->count)
        return false;
    r->next = r->refused = 0;
    pause_until (r, now_ms);
    return r->at_ms - r->begun_ms < RECONNECT_PATIENCE_MS;
}

void reconnect_succeeded (struct reconnect *r, double now_ms)
{
    r->up_ms = now_ms;
}
