/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history.c - clients, a total order, and a model for comparison: see history.h
 *
 * A step is two bytes: which client does what, and how much. When the bytes are used up, all announced ranges are
 * ordered and delivered. Then all clients must agree, and all ids are checked again.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "uuid.h"

#define CLIENTS 4
#define SESSIONS 12 /* number of sessions: first the sessions of all clients, then the ghost sessions */
#define GHOSTS 2
#define IDS_MAX 500     /* ids of a session */
#define FINALS_MAX 2500 /* final ids of the document */
#define ORDER_MAX 400
#define PENDING_MAX 16
#define NEVER (ORDER_MAX + 1)

/* The model's data of a final id: its session and generation count, and the two places in the order at which the id was
 * reserved and finalized.
 */
struct history_final {
    int session;
    int64_t gen;
    int reserved_at;
    int finalized_at;
};

struct history_entry {
    char *range; /* JSON text, NULL for a ghost session */
    int session;
    int64_t count;
};

struct history_client {
    struct idcomp *c;
    int session;
    int heard;                  /* number of entries of the order that the client has finalized */
    int unheard;                /* number of its own entries of the order that it has not finalized yet */
    char *pending[PENDING_MAX]; /* ranges that the client has taken and that are not ordered yet */
    int npending;
};

struct history_world {
    u128 base[SESSIONS];
    char name[SESSIONS][IDCOMP_UUID_TEXT_MAX];
    int64_t form[SESSIONS][IDS_MAX + 1]; /* session space id of each generation count, as the session handed it out */
    int64_t made[SESSIONS];              /* number of ids that a session handed out */
    int nsessions;                       /* number of clients so far, without ghosts */
    struct history_client client[CLIENTS];
    struct history_entry order[ORDER_MAX];
    int norder;
    struct history_final final[FINALS_MAX];
    int final_of[SESSIONS][FINALS_MAX + 1]; /* the final id of each generation count, plus 1 */
    int64_t nfinals;
    int64_t reserved[SESSIONS];  /* number of generation counts that have final ids */
    int64_t finalized[SESSIONS]; /* number of generation counts whose final ids are finalized */
    const char *wrong;
};

static bool check (struct history_world *w, bool good, const char *sentence)
{
    if (!good && !w->wrong)
        w->wrong = sentence;
    return good;
}

static struct idcomp_uuid uuid_of (const struct history_world *w, int session, int64_t gen)
{
    return uuidnum_to_uuid (w->base[session] + gen - 1);
}

/* Whether an id decompresses to the UUID of a generation count. */
static bool stands_for (const struct history_world *w, const struct history_client *cl, int64_t id, int session,
                        int64_t gen)
{
    struct idcomp_uuid uuid, want = uuid_of (w, session, gen);

    return idcomp_decompress (cl->c, id, &uuid) == 0 && memcmp (&uuid, &want, sizeof (uuid)) == 0;
}

/* --- the model: the effects of the order --- */

static void reserve (struct history_world *w, int session, int64_t n)
{
    for (; n > 0; n--) {
        int64_t gen = ++w->reserved[session];
        w->final[w->nfinals] = (struct history_final){ session, gen, w->norder, NEVER };
        w->final_of[session][gen] = ++w->nfinals;
    }
}

/* Finalize one id. If a new cluster is needed, it gets the 'left' ids that are left in the range, and 'size' reserved
 * ids.
 */
static void finalize_one (struct history_world *w, int session, int64_t left, int64_t size)
{
    if (w->finalized[session] == w->reserved[session])
        reserve (w, session, left + size);
    w->final[w->final_of[session][++w->finalized[session]] - 1].finalized_at = w->norder;
}

static void model_order (struct history_world *w, const struct history_entry *e, int64_t size)
{
    for (int64_t left = e->count; left > 0; left--)
        finalize_one (w, e->session, left, size);
    w->order[w->norder++] = *e;
}

/* --- what each conversion by a client must return --- */

static void check_uuid (struct history_world *w, const struct history_client *cl, int session, int64_t gen,
                        int64_t want)
{
    struct idcomp_uuid uuid = uuid_of (w, session, gen);
    int64_t id = -12345;
    int rc = idcomp_recompress (cl->c, &uuid, &id);

    if (want == INT64_MIN)
        check (w, rc < 0 && errno == IDCOMP_ENOT_COMPRESSED, "a UUID without an id is refused");
    else
        check (w, rc == 0 && id == want, "a UUID recompresses to its session space id");
}

/* Check an id that this client handed out: it must never change. */
static void check_own (struct history_world *w, const struct history_client *cl, int64_t gen)
{
    int64_t form = w->form[cl->session][gen];
    int64_t final = w->final_of[cl->session][gen] - 1;
    int64_t op = -1;
    int64_t back = 0;

    if (final >= 0 && w->final[final].reserved_at >= cl->heard)
        final = -1;
    check (w, stands_for (w, cl, form, cl->session, gen),
           "an id that was handed out decompresses to the UUID of its generation count");
    check_uuid (w, cl, cl->session, gen, form);
    check (w, idcomp_to_op (cl->c, form, &op) == 0 && op == (final >= 0 ? final : form),
           "op space has the final id as soon as it is reserved");
    check (w, idcomp_to_session (cl->c, op, w->name[cl->session], &back) == 0 && back == form,
           "an id converted to op space and back is unchanged");
}

/* Check a final id of the client's own session that the client has not finalized. */
static void check_local_reserve (struct history_world *w, const struct history_client *cl, int64_t id)
{
    const struct history_final *f = &w->final[id];
    struct idcomp_uuid uuid;
    bool made = f->gen <= w->made[f->session];
    int64_t form = made ? w->form[f->session][f->gen] : INT64_MIN;
    int64_t got = 0;
    int rc;

    if (made && form < 0)
        check (w, idcomp_decompress (cl->c, id, &uuid) < 0 && errno == IDCOMP_EHAS_LOCAL_FORM,
               "a reserved final id with a local form is refused with its own error");
    else
        check (w, stands_for (w, cl, id, f->session, f->gen), "a reserved final id of the local session decompresses");
    check_uuid (w, cl, f->session, f->gen, form);
    rc = idcomp_to_session (cl->c, id, NULL, &got);
    if (made)
        check (w, rc == 0 && got == form, "a reserved final id converts to its session space form");
    else
        check (w, rc < 0 && errno == IDCOMP_EUNKNOWN_OP_ID, "an id that was not made is unknown in op space");
}

static void check_finalized (struct history_world *w, const struct history_client *cl, int64_t id)
{
    const struct history_final *f = &w->final[id];
    bool own = f->session == cl->session;
    int64_t form = own ? w->form[f->session][f->gen] : id;
    int64_t got = 0;

    check (w, stands_for (w, cl, id, f->session, f->gen), "a final id decompresses to the same UUID everywhere");
    check_uuid (w, cl, f->session, f->gen, form);
    check (w, idcomp_to_session (cl->c, id, NULL, &got) == 0 && got == form,
           "a final id converts to the form that the local session uses");
    if (!own)
        check (w, idcomp_to_session (cl->c, -f->gen, w->name[f->session], &got) == 0 && got == id,
               "a local id of another session converts to its final id");
}

/* Check a final id that is reserved for another session. */
static void check_remote_reserve (struct history_world *w, const struct history_client *cl, int64_t id)
{
    const struct history_final *f = &w->final[id];
    struct idcomp_uuid uuid;
    int64_t got = 0;

    check_uuid (w, cl, f->session, f->gen, INT64_MIN);
    check (w, idcomp_decompress (cl->c, id, &uuid) < 0 && errno == IDCOMP_EUNKNOWN_ID,
           "a final id that another session has not announced is unknown");
    check (w, idcomp_to_session (cl->c, -f->gen, w->name[f->session], &got) < 0 && errno == IDCOMP_EUNKNOWN_OP_ID,
           "a local id of another session is unknown until it is finalized");
}

static void check_final (struct history_world *w, const struct history_client *cl, int64_t id)
{
    const struct history_final *f = &w->final[id];
    struct idcomp_uuid uuid;

    if (f->reserved_at >= cl->heard)
        check (w, idcomp_decompress (cl->c, id, &uuid) < 0 && errno == IDCOMP_EUNKNOWN_ID,
               "a final id that was not reserved is unknown");
    else if (f->finalized_at < cl->heard)
        check_finalized (w, cl, id);
    else if (f->session == cl->session)
        check_local_reserve (w, cl, id);
    else
        check_remote_reserve (w, cl, id);
}

/* Check each 'stride'th id, beginning with id 'first'. */
static void check_client (struct history_world *w, const struct history_client *cl, int first, int stride)
{
    for (int64_t gen = 1 + first; gen <= w->made[cl->session]; gen += stride)
        check_own (w, cl, gen);
    for (int64_t id = first; id < w->nfinals; id += stride)
        check_final (w, cl, id);
}

/* --- steps --- */

static void new_client (struct history_world *w, struct history_client *cl)
{
    cl->session = w->nsessions++;
    cl->c = idcomp_create (w->name[cl->session], IDCOMP_STRICT);
    cl->heard = 0;
}

static void make_ids (struct history_world *w, struct history_client *cl, int64_t n)
{
    int64_t *made = &w->made[cl->session];
    struct idcomp_run runs[2];

    if (*made + n > IDS_MAX)
        return;
    if (n % 3 == 0) { /* one by one, not as runs */
        for (; n > 0; n--, ++*made)
            check (w, idcomp_generate (cl->c, &w->form[cl->session][*made + 1]) == 0, "an id is made");
        return;
    }
    int nruns = idcomp_generate_runs (cl->c, n, runs);
    check (w, nruns > 0, "ids are made");
    for (int r = 0; r < nruns; r++)
        for (int64_t k = 0; k < runs[r].count; k++)
            w->form[cl->session][++*made] = runs[r].first < 0 ? runs[r].first - k : runs[r].first + k;
}

static void queue_range (struct history_world *w, struct history_client *cl, struct idcomp_range *range)
{
    size_t size = idcomp_range_format_size (range);

    if (range->has_ids) {
        char *text = malloc (size);
        idcomp_range_format (range, text, size);
        cl->pending[cl->npending++] = text;
    }
    idcomp_range_fini (range);
}

static void take (struct history_world *w, struct history_client *cl)
{
    struct idcomp_range range;

    if (cl->npending < PENDING_MAX && check (w, idcomp_take (cl->c, &range) == 0, "a range is taken"))
        queue_range (w, cl, &range);
}

/* Add the oldest announced range of a client to the order, unless the model's arrays are full. */
static void order_range (struct history_world *w, struct history_client *cl)
{
    struct idcomp_range range;

    if (cl->npending == 0 || w->norder == ORDER_MAX)
        return;
    if (!check (w, idcomp_range_parse (cl->pending[0], strlen (cl->pending[0]), &range, NULL) == 0,
                "a range can be written and read as JSON"))
        return;
    if (w->nfinals + range.count + range.cluster_size <= FINALS_MAX) {
        struct history_entry e = { cl->pending[0], cl->session, range.count };
        model_order (w, &e, range.cluster_size);
        cl->unheard++;
        memmove (cl->pending, cl->pending + 1, --cl->npending * sizeof (cl->pending[0]));
    }
    idcomp_range_fini (&range);
}

static void order_ghost (struct history_world *w, int which, int64_t count)
{
    struct history_entry e = { NULL, SESSIONS - 1 - which % GHOSTS, count };

    if (w->norder < ORDER_MAX && w->nfinals + count <= FINALS_MAX)
        model_order (w, &e, 0);
}

static void hear_ghost (struct history_world *w, struct history_client *cl, const struct history_entry *e)
{
    struct idcomp_range range;
    struct idcomp_run runs[2];
    int64_t id;

    check (w, idcomp_ghost_begin (cl->c, w->name[e->session]) == 0, "a ghost session begins");
    check (w, idcomp_ghost_begin (cl->c, w->name[e->session]) < 0 && errno == IDCOMP_EGHOST_NESTED,
           "ghost sessions cannot be nested");
    check (w, idcomp_take (cl->c, &range) < 0 && errno == IDCOMP_EGHOST_ACTIVE, "no range is taken in a ghost session");
    if (e->count > 3)
        check (w,
               idcomp_generate_runs (cl->c, e->count - 3, runs) == 1 && runs[0].first >= 0
                   && runs[0].count == e->count - 3,
               "ids of a ghost session are one run");
    for (int64_t i = 0; i < e->count && i < 3; i++)
        check (w, idcomp_generate (cl->c, &id) == 0 && id >= 0, "ids of a ghost session are final");
    idcomp_ghost_end (cl->c);
}

static void hear_range (struct history_world *w, struct history_client *cl, const struct history_entry *e)
{
    struct idcomp_range range;

    if (!check (w, idcomp_range_parse (e->range, strlen (e->range), &range, NULL) == 0, "a range can be read"))
        return;
    check (w, idcomp_expected (cl->c, range.session) == range.first,
           "the next range of a session begins at the expected count");
    check (w, idcomp_finalize (cl->c, &range) == 0, "a range is finalized in order");
    check (w, idcomp_finalize (cl->c, &range) < 0 && errno == IDCOMP_ERANGE_ORDER, "a range cannot be finalized twice");
    idcomp_range_fini (&range);
}

static void hear (struct history_world *w, struct history_client *cl, int n)
{
    for (; n > 0 && cl->heard < w->norder; n--) {
        const struct history_entry *e = &w->order[cl->heard];
        if (e->range)
            hear_range (w, cl, e);
        else
            hear_ghost (w, cl, e);
        cl->unheard -= e->session == cl->session;
        cl->heard++;
    }
}

static void drop_pending (struct history_client *cl)
{
    while (cl->npending > 0)
        free (cl->pending[--cl->npending]);
}

/* The ranges that the client announced and that are not ordered are lost. The client announces their ids again, as one
 * range.
 */
static void lose (struct history_world *w, struct history_client *cl)
{
    struct idcomp_range range;

    while (cl->unheard > 0)
        hear (w, cl, 1);
    drop_pending (cl);
    if (check (w, idcomp_take_unfinalized (cl->c, &range) == 0, "lost ranges are taken again"))
        queue_range (w, cl, &range);
}

static struct idcomp *reload (struct history_world *w, struct idcomp *c, enum idcomp_state state, const char *session)
{
    size_t size = idcomp_save_size (c, state);
    unsigned char *data = malloc (size);
    unsigned char *again = malloc (size);
    struct idcomp *loaded = NULL;

    if (check (w, idcomp_save (c, state, data, size) == (ssize_t)size, "a compressor is stored"))
        loaded = idcomp_load (data, size, session, IDCOMP_STRICT);
    if (check (w, loaded && idcomp_equal (c, loaded, state), "a stored compressor is loaded"))
        check (w, idcomp_save (loaded, state, again, size) == (ssize_t)size && memcmp (data, again, size) == 0,
               "a loaded compressor is stored as the same bytes");
    free (data);
    free (again);
    return loaded;
}

static void stash (struct history_world *w, struct history_client *cl)
{
    struct idcomp *c = reload (w, cl->c, IDCOMP_WITH_LOCAL, NULL);

    if (c) {
        idcomp_destroy (cl->c);
        cl->c = c;
    }
}

/* The client leaves permanently. A new client takes its place and loads the summary of a neighbour. */
static void replace (struct history_world *w, struct history_client *cl, const struct history_client *neighbour)
{
    if (w->nsessions == SESSIONS - GHOSTS || cl == neighbour)
        return;
    struct idcomp *c = reload (w, neighbour->c, IDCOMP_WITHOUT_LOCAL, w->name[w->nsessions]);
    if (!c)
        return;
    drop_pending (cl);
    idcomp_destroy (cl->c);
    *cl = (struct history_client){ .c = c, .session = w->nsessions++, .heard = neighbour->heard };
}

/* Do one step. The low 2 bits of 'what' choose the client, the other bits choose the action; 'much' is the amount of
 * the action.
 */
static void step (struct history_world *w, unsigned int what, int much)
{
    struct history_client *cl = &w->client[what % CLIENTS];

    switch (what / CLIENTS % 16) {
    case 0:
    case 1:
    case 2:
        make_ids (w, cl, much % 32 + 1);
        break;
    case 3:
    case 4:
        take (w, cl);
        break;
    case 5:
    case 6:
        order_range (w, cl);
        break;
    case 7:
    case 8:
        hear (w, cl, much % 8 + 1);
        break;
    case 9:
        hear (w, cl, ORDER_MAX);
        break;
    case 10:
        check (w, idcomp_set_cluster_size (cl->c, much % 16 + 1) == 0, "a cluster size is set");
        break;
    case 11:
        lose (w, cl);
        break;
    case 12:
        stash (w, cl);
        idcomp_set_cluster_size (cl->c, much % 16 + 1);
        break;
    case 13:
        replace (w, cl, &w->client[much % CLIENTS]);
        idcomp_set_cluster_size (cl->c, much % 16 + 1);
        break;
    case 14:
        order_ghost (w, much & 1, much / 2 % 8);
        break;
    default:
        check_client (w, cl, much % 16, 16);
        break;
    }
}

/* --- the whole history --- */

static void start (struct history_world *w)
{
    for (int i = 0; i < SESSIONS; i++) { /* the bases are far apart, and not in the order of the sessions */
        w->base[i] = ((u128)(i * 7 % SESSIONS + 1) << 100) - 20;
        struct idcomp_uuid uuid = uuidnum_to_uuid (w->base[i]);
        idcomp_uuid_format (&uuid, w->name[i], sizeof (w->name[i]));
    }
    for (int i = 0; i < CLIENTS; i++) {
        new_client (w, &w->client[i]);
        idcomp_set_cluster_size (w->client[i].c, 2 * i + 1);
    }
}

static void settle (struct history_world *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        take (w, &w->client[i]);
        for (int n = w->client[i].npending; n > 0; n--)
            order_range (w, &w->client[i]);
    }
    for (int i = 0; i < CLIENTS && !w->wrong; i++) {
        hear (w, &w->client[i], ORDER_MAX);
        check_client (w, &w->client[i], 0, 1);
        check (w, idcomp_equal (w->client[0].c, w->client[i].c, IDCOMP_WITHOUT_LOCAL),
               "all clients agree on the final space");
        check (w, idcomp_stats (w->client[i].c).allocated_finals == w->nfinals,
               "the number of final ids in use equals the model's");
    }
}

static void finish (struct history_world *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        drop_pending (&w->client[i]);
        idcomp_destroy (w->client[i].c);
    }
    for (int i = 0; i < w->norder; i++)
        free (w->order[i].range);
    free (w);
}

const char *history_run (const unsigned char *data, size_t size)
{
    struct history_world *w = calloc (1, sizeof (*w));

    if (!w)
        return "out of memory for the model";
    start (w);
    for (size_t i = 0; i + 1 < size && !w->wrong; i += 2)
        step (w, data[i], data[i + 1]);
    if (!w->wrong)
        settle (w);
    const char *wrong = w->wrong;
    finish (w);
    return wrong;
}
