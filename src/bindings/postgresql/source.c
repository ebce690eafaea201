/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* source.c - choose the source of a session's ids
 *
 * Each id is above the previous id of the session, also if they come from different sources. All ids are from the same
 * instance, because two instances may make the same ids.
 */
#include "extension.h"

#include <errno.h>

#include <idtree/page.h>

#include "access/parallel.h"
#include "access/xact.h"

#define PAGE_WAIT_MS 100
#define AGAIN_MS 1000
#define BLOCK_MOST 4096
#define BLOCK_SOON_MS 100 /* if a block is used up faster, the next one is larger, or is requested early */
#define BLOCK_AGE_MS 1000 /* largest age of an id in a block */

static struct {
    fluid_t last;
    idt_page_t *page; /* NULL: no page */
    int64 page_again_ms;

    fluid_t block[BLOCK_MOST]; /* block[at] ... block[n - 1] are left */
    uint32 at, n;
    int64 asked_ms;
    int64 wanted_ms; /* since when this block is used */
    bool bulk;       /* blocks are used although there is a page */
    int64 bulk_again_ms;

    bool served;       /* the session got ids from a broker, so it waits if that broker is lost */
    bool known;        /* 'instance' is valid, and never changes */
    char instance[40]; /* the instance of all ids of this session; "": it has no UUID */
    bool has_epoch;
    int64 epoch_ms;
} source;

/* In a parallel worker, accept only ids of the instance that the leader of the query knows. */
static void follow_leader (void)
{
    const char *uuid = settings_leader ();

    if (!uuid)
        complain (ENOLINK, "a parallel worker can't determine the instance of its session: its leader has no ids yet");
    strlcpy (source.instance, uuid, sizeof (source.instance));
}

static void drop_page (void)
{
    idt_page_close (source.page);
    source.page = NULL;
    source.page_again_ms = 0;
}

static void start_over (void)
{
    settings_need ();
    drop_page ();
    source.at = source.n = 0;
    source.bulk = false;
    source.served = source.has_epoch = false;
    session_leave ();
    if (IsParallelWorker ())
        follow_leader ();
    settings.moved = false;
}

/* --- whose ids -------------------------------------------------------------------------------- */

/* Return the reason why ids of the instance 'uuid' are refused, or NULL if they are accepted. */
static const char *object (const char *uuid)
{
    const char *wanted = settings.instance ? settings.instance : "";

    if (*wanted && pg_strcasecmp (uuid, wanted) != 0)
        return psprintf ("%s: the instance of the broker there is %s, but idtree.instance is %s", settings_place (),
                         *uuid ? uuid : "without a UUID", wanted);
    if (*source.instance && strcmp (uuid, source.instance) != 0)
        return psprintf ("%s: the instance of the broker there is %s, but this session has ids of %s",
                         settings_place (), *uuid ? uuid : "without a UUID", source.instance);
    return NULL;
}

static void welcome (const char *uuid)
{
    const char *objection = object (uuid);

    if (objection)
        complain (ESTALE, objection);
    strlcpy (source.instance, uuid, sizeof (source.instance));
    source.served = source.known = true;
    settings_tell_workers (uuid);
}

/* --- the page ---------------------------------------------------------------------------------- */

static bool page_next (fluid_t *id)
{
    return source.page && idt_page_generate (source.page, source.last, 1, id) == 1;
}

/* Open a page, but try this at most once in AGAIN_MS. The old page stays open until a new one is open, because the
 * broker of the old page may continue.
 */
static bool page_renew (void)
{
    int64 now = now_ms ();
    idt_page_t *page;

    if (now < source.page_again_ms)
        return false;
    source.page_again_ms = now + AGAIN_MS;
    if (!(page = idt_page_open (settings_uri (), PAGE_WAIT_MS)))
        return false;
    const char *objection = object (idt_page_instance (page));
    if (objection) {
        idt_page_close (page);
        complain (ESTALE, objection);
    }
    welcome (idt_page_instance (page));
    idt_page_close (source.page);
    source.page = page;
    source.epoch_ms = idt_page_epoch (page);
    source.has_epoch = true;
    return true;
}

/* --- the block ---------------------------------------------------------------------------------- */

static bool block_next (fluid_t *id)
{
    if (source.at < source.n && now_ms () - source.asked_ms > BLOCK_AGE_MS)
        source.at = source.n;
    while (source.at < source.n)
        if ((*id = source.block[source.at++]) > source.last)
            return true;
    return false;
}

static bool used_soon (void)
{
    return source.n > 0 && now_ms () - source.wanted_ms < BLOCK_SOON_MS;
}

/* Get the next block. If blocks are used up fast and cannot grow, request the block after it in advance. */
static bool block_renew (enum need need)
{
    int64 now = now_ms ();
    uint32 had = used_soon () ? source.n : 0;
    uint32 want = had > 0 ? Min (had * 2, BLOCK_MOST) : 1, got;

    source.at = source.n = 0;
    if ((got = broker_ids (want, source.block, &source.asked_ms, need)) == 0)
        return false;
    welcome (broker_instance ());
    source.n = got;
    source.wanted_ms = now;
    if (source.asked_ms >= now && now_ms () - now > BLOCK_AGE_MS) {
        source.n = 1; /* the block came late: its first id is for the waiting call, and the others are too old */
        source.asked_ms = now_ms ();
    }
    if (had == got) /* blocks do not grow any further */
        broker_ask_ahead (got);
    return true;
}

/* The sequence numbers of this millisecond are used up, so the next id of the page would have to wait. Begin to use
 * blocks if the broker has more generators.
 */
static void begin_bulk (void)
{
    if (now_ms () < source.bulk_again_ms)
        return;
    source.bulk = broker_lanes () > 1 && block_renew (NEED_NOT);
    if (!source.bulk)
        source.bulk_again_ms = now_ms () + AGAIN_MS;
}

/* Get an id of a block. Stop using blocks when they are no longer used up fast, or do not arrive. */
static bool bulk_next (fluid_t *id)
{
    while (source.bulk) {
        if (block_next (id))
            return true;
        source.bulk = used_soon ();
        if (source.bulk && !block_renew (NEED_NOT)) {
            source.bulk = false;
            source.bulk_again_ms = now_ms () + AGAIN_MS;
        }
    }
    return false;
}

/* --- all of them ---------------------------------------------------------------------------------- */

static enum need need (void)
{
    return source.served ? NEED_WAIT : NEED;
}

/* Get an id when the page has none; 'errnum' says why. */
static fluid_t next_otherwise (int errnum)
{
    fluid_t id;

    if (settings.moved)
        start_over ();
    else if (source.page && errnum == ESTALE)
        drop_page ();
    if (page_renew () && page_next (&id))
        return id;
    int64 end_ms = now_ms () + settings.timeout_ms;
    while (!block_next (&id)) {
        if (now_ms () >= end_ms)
            complain (ESTALE,
                      psprintf ("%s: the ids from there are below earlier ids of this session", settings_place ()));
        (void)block_renew (need ());
    }
    return id;
}

fluid_t source_next (void)
{
    fluid_t id;

    if (unlikely (source.bulk) && !settings.moved && bulk_next (&id))
        return source.last = id;
    if (unlikely (settings.moved) || !page_next (&id))
        return source.last = next_otherwise (errno);
    if (unlikely (fluid_split (id).sequence == IDT_PAGE_PER_MS - 1))
        begin_bulk ();
    return source.last = id;
}

void source_prepare (void)
{
    if (IsInParallelMode ())
        return;
    settings_need ();
    if (source.known) {
        settings_tell_workers (source.instance);
        return;
    }
    if (settings.moved)
        start_over ();
    if (!page_renew () && broker_is_there ())
        welcome (broker_instance ());
    source.page_again_ms = 0;
}

int64 source_epoch_ms (void)
{
    settings_need ();
    if (settings.epoch && *settings.epoch)
        return settings.epoch_ms;
    if (settings.moved)
        start_over ();
    if (!source.has_epoch && !page_renew ()) {
        char *text = broker_epoch (need ());
        welcome (broker_instance ());
        if (!date_read (text, &source.epoch_ms))
            complain (EPROTO,
                      psprintf ("%s: the epoch of the broker there is not a date: %s", settings_place (), text));
        source.has_epoch = true;
        pfree (text);
    }
    return source.epoch_ms;
}
