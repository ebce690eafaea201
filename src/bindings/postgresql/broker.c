/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.c - get ids and other data of a broker by message, from a backend
 *
 * Some functions of the server's program have the same names as functions in libidtree's libraries (json_object), and
 * the linker would use the functions of the program. So libidtree is loaded when it is first needed, such that its own
 * symbols are found first (RTLD_DEEPBIND), and is called through a table. If the broker shares its page, a session does
 * not need the library.
 *
 * Calls wait in slices. Between two slices they check whether the query was cancelled. In that case an error is thrown,
 * and the pending request stays in 'session', where the next call finds it.
 */
#include "extension.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <idtree/generate.h>

#include "miscadmin.h"

#define FILE_NAME "libidtree.so.1"
#define SLICE_MS 100      /* largest part of a wait for an answer */
#define OPEN_FIRST_MS 250 /* limit of the first attempt to connect; doubled for each further attempt */
#define OPEN_MOST_MS 1000
#define PAUSE_MS 20 /* pause between two attempts */

static struct {
    idt_t *h;
    idt_future_t *f; /* the pending request */
    uint32 ahead;    /* number of ids that 'f' requested in advance; 0: 'f' is another request */
    int64 asked_ms;  /* when ids were last requested */
    uint32 most;     /* largest number of ids in a request; 0: no limit */
    bool known;      /* 'instance' is valid */
    char instance[40];
} session;

/* --- the library ------------------------------------------------------------------------------- */

struct library {
    __typeof__ (&idt_open_ex) open_ex;
    __typeof__ (&idt_close) close;
    __typeof__ (&idt_lost_error) lost_error;
    __typeof__ (&idt_rpc) rpc;
    __typeof__ (&idt_rpc_get_unpack) rpc_get_unpack;
    __typeof__ (&idt_future_wait) future_wait;
    __typeof__ (&idt_future_is_ready) future_is_ready;
    __typeof__ (&idt_future_errnum) future_errnum;
    __typeof__ (&idt_future_error) future_error;
    __typeof__ (&idt_future_destroy) future_destroy;
    __typeof__ (&idt_fluid_generate_async) fluid_generate_async;
    __typeof__ (&idt_fluid_generate_get) fluid_generate_get;
};

static const struct row {
    const char *name;
    size_t at; /* offset in struct library */
} rows[] = {
#define ROW(name)                                     \
    {                                                 \
        "idt_" #name, offsetof (struct library, name) \
    }
    ROW (open_ex),        ROW (close),          ROW (lost_error),           ROW (rpc),
    ROW (rpc_get_unpack), ROW (future_wait),    ROW (future_is_ready),      ROW (future_errnum),
    ROW (future_error),   ROW (future_destroy), ROW (fluid_generate_async), ROW (fluid_generate_get),
};

/* Return the library, or NULL with the reason in '*error' (borrowed until the next call). */
static const struct library *library_load (const char **error)
{
    static struct library library;
    static void *loaded;
    struct library found;
    void *file;

    if (loaded)
        return &library;
    if (!(file = dlopen (FILE_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND))) {
        *error = dlerror ();
        return NULL;
    }
    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        void *symbol = dlsym (file, rows[i].name);
        if (!symbol) {
            *error = dlerror (); /* the library must stay loaded, because it contains this text */
            return NULL;
        }
        memcpy ((char *)&found + rows[i].at, &symbol, sizeof (symbol));
    }
    library = found;
    loaded = file;
    return &library;
}

/* --- failing ------------------------------------------------------------------------------------- */

/* When a call stops waiting, and whether it fails then. */
struct wait {
    int64 end_ms;
    enum need need;
};

static struct wait wait_for (enum need need)
{
    return (struct wait){ now_ms () + (need == NEED_NOT ? SLICE_MS : settings.timeout_ms), need };
}

/* Throw an error, unless the call may fail: then return false. */
static bool fail (const struct wait *w, int errnum, const char *sentence)
{
    if (w->need != NEED_NOT)
        complain (errnum, sentence);
    return false;
}

/* Whether to try again: the error may be temporary, and time is left. */
static bool may_pass (const struct wait *w, int errnum)
{
    if (w->need == NEED_NOT || now_ms () >= w->end_ms)
        return false;
    switch (errnum) {
    case EAGAIN:
    case ETIMEDOUT:
    case ECONNRESET:
        return true;
    case ENOENT:
    case ECONNREFUSED:
    case EHOSTDOWN:
    case EPIPE:
    case EHOSTUNREACH: /* the broker, or an ancestor of it, is stopping */
    case ENOSYS:       /* the module that makes ids is stopping or not loaded yet */
        return w->need == NEED_WAIT;
    default:
        return false;
    }
}

static void drop_future (const struct library *lib)
{
    lib->future_destroy (session.f);
    session.f = NULL;
    session.ahead = 0;
}

void session_leave (void)
{
    const char *why;
    const struct library *lib = session.h ? library_load (&why) : NULL;

    if (!lib)
        return;
    drop_future (lib);
    lib->close (session.h);
    session.h = NULL;
    session.most = 0;
    session.known = false;
}

/* --- waiting ----------------------------------------------------------------------------------- */

/* Wait until session.f has an answer. Returns 0, or -1 with errno set. */
static int await (const struct library *lib, const struct wait *w)
{
    if (!session.f)
        return -1;
    for (;;) {
        CHECK_FOR_INTERRUPTS ();
        if (lib->future_wait (session.f, SLICE_MS) == 0 || lib->future_is_ready (session.f))
            break;
        if ((errno != ETIMEDOUT && errno != EINTR) || now_ms () >= w->end_ms)
            return -1;
    }
    errno = lib->future_errnum (session.f);
    return errno == 0 ? 0 : -1;
}

/* Put the address before an error text, unless the text begins with it, as texts about connecting do. */
static char *name_place (const char *text)
{
    const char *place = settings_place ();

    return strncmp (text, place, strlen (place)) == 0 ? pstrdup (text) : psprintf ("%s: %s", place, text);
}

static char *explain (const struct library *lib, int errnum)
{
    const char *lost = lib->lost_error (session.h);

    if (session.f && lib->future_is_ready (session.f))
        return name_place (lib->future_error (session.f));
    if (errnum == ETIMEDOUT && !lost)
        return psprintf ("%s: the broker did not answer within %d ms", settings_place (), settings.timeout_ms);
    return name_place (lost ? lost : strerror (errnum));
}

/* An attempt has failed. If another one is possible, pause and return true; else fail. */
static bool try_again (const struct library *lib, int errnum, const struct wait *w)
{
    char *sentence = explain (lib, errnum);
    bool again = may_pass (w, errnum);

    drop_future (lib);
    if (!again)
        return fail (w, errnum, sentence);
    pfree (sentence);
    pause_ms (PAUSE_MS);
    return true;
}

/* --- connection --------------------------------------------------------------------------------- */

static bool connect_to (const struct library *lib, const struct wait *w)
{
    int64 slice_ms = OPEN_FIRST_MS;
    idt_error_t error = { "" };

    for (;;) {
        CHECK_FOR_INTERRUPTS ();
        int64 left_ms = Max (w->end_ms - now_ms (), 1);
        const struct idt_open_options options = { .flags = IDT_O_RECONNECT | IDT_O_NOSHM,
                                                  .timeout_ms = (double)Min (slice_ms, left_ms) };
        session.h = lib->open_ex (settings_uri (), &options, &error);
        if (session.h)
            return true;
        int errnum = errno;
        if (!may_pass (w, errnum))
            return fail (w, errnum, error.text);
        slice_ms = Min (slice_ms * 2, OPEN_MOST_MS);
        pause_ms (PAUSE_MS);
    }
}

/* Get the value of an attribute of the broker. Returns 0, or -1 with errno set. */
static int ask_attr (const struct library *lib, const char *request, const struct wait *w, const char **value)
{
    session.f = lib->rpc (session.h, "attr.get", request, IDT_NODEID_ANY, 0);
    return await (lib, w) < 0 ? -1 : lib->rpc_get_unpack (session.f, "{s:s}", "value", value);
}

/* Learn the instance behind a new connection. This is needed only once for a connection, because a handle that
 * reconnects refuses another instance itself. After a temporary error this closes the connection and returns true. If
 * another attempt is useless, it returns false or throws an error.
 */
static bool learn_instance (const struct library *lib, const struct wait *w)
{
    const char *uuid = "";

    if (ask_attr (lib, "{\"name\":\"instance.uuid\"}", w, &uuid) < 0 && errno != ENOENT) {
        int errnum = errno;
        char *sentence = explain (lib, errnum);
        session_leave ();
        if (!may_pass (w, errnum))
            return fail (w, errnum, sentence);
        pfree (sentence);
        pause_ms (PAUSE_MS);
        return true;
    }
    strlcpy (session.instance, uuid, sizeof (session.instance));
    session.known = true;
    drop_future (lib);
    return true;
}

/* Return the library, with a connection whose instance is known, or NULL. */
static const struct library *enter (const struct wait *w)
{
    const char *why = NULL;
    const struct library *lib = library_load (&why);

    if (!lib) {
        fail (w, ELIBACC,
              psprintf ("%s: no page of ids is shared, and libidtree can't be loaded: %s", settings_place (), why));
        return NULL;
    }
    drop_future (lib);
    if (session.h && !session.known)
        session_leave (); /* the query that made this connection was cancelled */
    while (!session.h)
        if (!connect_to (lib, w) || !learn_instance (lib, w))
            return NULL;
    return lib;
}

const char *broker_instance (void)
{
    return session.instance;
}

/* --- what is asked for --------------------------------------------------------------------------- */

static void ask_ids (const struct library *lib, uint32 n)
{
    session.f = lib->fluid_generate_async (session.h, n);
    session.asked_ms = now_ms ();
}

void broker_ask_ahead (uint32 n)
{
    const char *why;
    const struct library *lib = session.known ? library_load (&why) : NULL;

    if (!lib)
        return;
    drop_future (lib);
    ask_ids (lib, n);
    session.ahead = session.f ? n : 0;
}

uint32 broker_ids (uint32 n, fluid_t *ids, int64 *asked_ms, enum need need)
{
    struct wait w = wait_for (need);
    const char *why;

    if (session.most > 0)
        n = Min (n, session.most);
    const struct library *lib = session.ahead == n ? library_load (&why) : enter (&w);

    while (lib) {
        if (session.ahead != n)
            ask_ids (lib, n);
        session.ahead = 0;
        *asked_ms = session.asked_ms;
        if (await (lib, &w) == 0 && lib->fluid_generate_get (session.f, n, ids) == 0)
            break;
        if (errno == EPERM && n > 1)
            session.most = n /= 2; /* the request may be larger than access.guest-block allows */
        else if (!try_again (lib, errno, &w))
            return 0;
        drop_future (lib);
    }
    if (!lib)
        return 0;
    drop_future (lib);
    return n;
}

bool broker_is_there (void)
{
    struct wait w = wait_for (NEED_NOT);

    return enter (&w) && session.known;
}

int broker_lanes (void)
{
    struct wait w = wait_for (NEED_NOT);
    const struct library *lib = enter (&w);
    const char *text = "0";

    if (!lib)
        return 0;
    int lanes = ask_attr (lib, "{\"name\":\"fluid.lanes\"}", &w, &text) == 0 ? atoi (text) : 0;
    drop_future (lib);
    return lanes;
}

char *broker_epoch (enum need need)
{
    struct wait w = wait_for (need);
    const struct library *lib = enter (&w);
    const char *text = NULL;

    Assert (lib);
    for (;;) {
        session.f = lib->rpc (session.h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
        if (await (lib, &w) == 0 && lib->rpc_get_unpack (session.f, "{s:s}", "epoch", &text) == 0)
            break;
        (void)try_again (lib, errno == EPROTO ? EAGAIN : errno, &w); /* the broker does not know the value yet */
    }
    char *copy = pstrdup (text);
    drop_future (lib);
    return copy;
}
