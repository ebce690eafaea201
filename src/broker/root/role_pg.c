/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* role_pg.c - the role of rank 0 in PostgreSQL: carries out what role.c decides
 *
 * Each step is one statement. A claim and a beat return whether a commit is on a second server (the same condition as
 * in libpg/fenced.c). A claim changes nothing if it would not be. A beat is carried out nevertheless, so that a leader
 * whose second copy is lost keeps the role; but it does not confirm a claim.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "broker/base/uuid_key.h"
#include "broker/root/peers.h"
#include "broker/root/role_pg.h"
#include "broker/root/store_log.h"
#include "libpg/pg.h"
#include "libpg/pgstate.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"

#define ATTEMPTS 3   /* statements, one after the other, that a leader can try in root.takeover */
#define LEAVE_MS 500 /* how long the end waits for a statement */
#define TIMEOUT_MIN_MS 250

/* A statement and its result. The worker's thread owns it while the statement runs. */
struct statement {
    struct pg *pg;
    bool knows_state; /* the tables are those of this version */
    bool trust;
    char attributes[ROOT_ATTRS_SIZE];
    uint64_t uid_drift;
    enum role_act act;
    struct role_row row; /* in: what the statement names; out: what was read */
    char owner[ROLE_OWNER_SIZE];
    char host[ROLE_HOST_SIZE];
    const char *word;             /* ROLE_ACT_RELEASE */
    char theirs[ROOT_ATTRS_SIZE]; /* out of ROLE_ACT_READ: attributes of the leader */
    bool other_drift;             /* out of ROLE_ACT_READ: uid.drift of the instance is another one */
    bool one;                     /* out: a row was changed */
    bool synced;                  /* out: a commit is on a second server */
    int64_t standbys;             /* out of ROLE_ACT_BEAT: candidates that stand by */
};

struct role_pg {
    struct role_pg_conf conf;
    struct role role;
    struct root_conf root;
    struct statement *statement;
    struct worker *worker;
    struct peers *peers;
    idt_watcher_t *done;  /* a statement has ended */
    idt_watcher_t *found; /* the peers were looked at */
    idt_watcher_t *alarm;
    bool horizon_past;
    role_pg_f ask;
    void *ask_arg;
    idt_error_t why; /* the newest failure of the store; "": it answered */
    struct store_log log;
    bool unsynced; /* the newest statement that changes something would not have been on a second server */
    uint64_t unsynced_term, unsynced_beat; /* what the role was then */
    int refused;                           /* errno if 'why' is final */
    char told[ROOT_ATTRS_SIZE];            /* attributes of a leader whose difference was logged; "": none */
    int64_t standbys; /* candidates that stand by, as the newest beat counted them; -1: not known yet */
};

/* --- the statements, in the thread ----------------------------------------------------------------- */

#define WORDS                                    \
    {                                            \
        "nobody", "leads", "released", "stopped" \
    }

static int word_of (const char *s, enum role_word *word)
{
    static const char *const words[] = WORDS;

    for (size_t i = 0; i < sizeof (words) / sizeof (words[0]); i++)
        if (strcmp (words[i], s) == 0) {
            *word = (enum role_word)i;
            return 0;
        }
    return -1;
}

/* Two uids that were made with different drifts may be written alike. So the first root decides for all. */
static int check_drift (struct statement *s, int64_t drift, idt_error_t *errp)
{
    s->other_drift = drift != 0 && drift != (int64_t)s->uid_drift;
    if (!s->other_drift)
        return 0;
    return errsetf (errp, EINVAL,
                    "uid.drift=%d on this host, but the uids of this instance have uid.drift=%d, and must keep it: set "
                    "that value on all hosts of cluster.root",
                    (int)s->uid_drift, (int)drift);
}

#define READ                                             \
    "SELECT term, beat, state, owner, host, attributes," \
    " (SELECT uid_drift FROM idtree.instance) FROM idtree.role"

static int run_read (struct statement *s, idt_error_t *errp)
{
    struct pg_rows rows = { NULL, 0 };
    struct role_row *row = &s->row;
    int rc = pg_run (s->pg, READ, NULL, &rows, NULL, errp);

    if (rc == 0 && (rows.count != 1 || word_of (pg_bytes (&rows, 0, 2, NULL), &row->word) < 0))
        rc = errsetf (errp, STATE_REFUSED, "the table idtree.role does not have one valid row");
    if (rc == 0) {
        row->term = (uint64_t)pg_int (&rows, 0, 0);
        row->beat = (uint64_t)pg_int (&rows, 0, 1);
        snprintf (row->owner, sizeof (row->owner), "%s", pg_bytes (&rows, 0, 3, NULL));
        snprintf (row->host, sizeof (row->host), "%s", pg_bytes (&rows, 0, 4, NULL));
        snprintf (s->theirs, sizeof (s->theirs), "%s", pg_bytes (&rows, 0, 5, NULL));
        rc = check_drift (s, pg_int (&rows, 0, 6), errp);
    }
    pg_rows_free (&rows);
    return rc;
}

#define SYNCED                                            \
    "(current_setting('synchronous_standby_names') <> ''" \
    " AND current_setting('synchronous_commit') IN ('on', 'remote_apply'))"

/* Run a statement that returns how many rows it changed, and whether a commit is on a second server. */
static int run_change (struct statement *s, const char *sql, const struct pg_params *p, idt_error_t *errp)
{
    struct pg_rows rows = { NULL, 0 };
    int rc = pg_run (s->pg, sql, p, &rows, NULL, errp);

    if (rc == 0) {
        s->one = pg_int (&rows, 0, 0) == 1;
        s->synced = s->trust || pg_int (&rows, 0, 1) != 0;
        s->standbys = s->act == ROLE_ACT_BEAT ? pg_int (&rows, 0, 2) : -1;
    }
    pg_rows_free (&rows);
    return rc;
}

static int run_claim (struct statement *s, idt_error_t *errp)
{
    struct pg_params p = { .count = 0 };

    pg_put_int (&p, (int64_t)s->row.term);
    pg_put_int (&p, (int64_t)s->row.beat);
    pg_put_text (&p, s->owner);
    pg_put_text (&p, s->host);
    pg_put_text (&p, s->attributes);
    pg_put_int (&p, s->trust);
    pg_put_int (&p, (int64_t)s->uid_drift);
    return run_change (s,
                       "WITH own AS (UPDATE idtree.role SET term = term + 1, beat = 0, state = 'leads', owner = $3,"
                       " host = $4, attributes = $5 WHERE term = $1 AND beat = $2 AND ($6 = 1 OR " SYNCED ")"
                       " AND EXISTS (SELECT FROM idtree.instance WHERE coalesce (uid_drift, $7) = $7) RETURNING 1),"
                       " kept AS (UPDATE idtree.instance SET uid_drift = $7 FROM own WHERE uid_drift IS NULL)"
                       " SELECT (SELECT count(*) FROM own), " SYNCED,
                       &p, errp);
}

static int run_beat (struct statement *s, idt_error_t *errp)
{
    struct pg_params p = { .count = 0 };

    pg_put_int (&p, (int64_t)s->row.term);
    pg_put_text (&p, s->owner);
    return run_change (s,
                       "WITH own AS (UPDATE idtree.role SET beat = beat + 1 WHERE term = $1 AND owner = $2 RETURNING 1)"
                       " SELECT (SELECT count(*) FROM own), " SYNCED ", " ROLE_PG_STANDBYS,
                       &p, errp);
}

static int run_release (struct statement *s, idt_error_t *errp)
{
    struct pg_params p = { .count = 0 };

    pg_put_int (&p, (int64_t)s->row.term);
    pg_put_text (&p, s->owner);
    pg_put_text (&p, s->word);
    return run_change (s,
                       "WITH own AS (UPDATE idtree.role SET state = $3 WHERE term = $1 AND owner = $2 RETURNING 1)"
                       " SELECT (SELECT count(*) FROM own), " SYNCED,
                       &p, errp);
}

static int run_statement (void *arg, idt_error_t *errp)
{
    struct statement *s = arg;
    struct pgstate state;

    if (!s->knows_state && pgstate_read (s->pg, &state, errp) < 0)
        return -1;
    s->knows_state = true;
    switch (s->act) {
    case ROLE_ACT_READ:
        return run_read (s, errp);
    case ROLE_ACT_CLAIM:
        return run_claim (s, errp);
    case ROLE_ACT_BEAT:
        return run_beat (s, errp);
    case ROLE_ACT_RELEASE:
        return run_release (s, errp);
    default:
        return errsetf (errp, EINVAL, "no statement");
    }
}

static void free_statement (void *arg)
{
    struct statement *s = arg;

    pg_close (s->pg);
    free (s);
}

/* --- results ---------------------------------------------------------------------------------------- */

static uint64_t now_us (void)
{
    return clock_us (CLOCK_BOOTTIME);
}

/* Log a reason when it begins, and when the store works again (store_log.h). */
static void note_why (struct role_pg *p, int errnum, const char *why)
{
    char text[sizeof (p->why.text) + 128], more[64] = "";
    uint64_t left_out;

    snprintf (p->why.text, sizeof (p->why.text), "%s", why);
    if (!store_log_take (&p->log, now_us (), errnum, &left_out))
        return;
    if (left_out > 0)
        snprintf (more, sizeof (more), " (it changed %" PRIu64 " times more)", left_out);
    snprintf (text, sizeof (text), "root.store: %s%s", errnum ? p->why.text : "it works again", more);
    p->conf.say (p->conf.arg, errnum ? LOG_WARNING : LOG_NOTICE, text);
}

/* Log once that the attributes of the leader, or of the one before, are others. */
static void note_difference (struct role_pg *p, const struct statement *s)
{
    char list[512], text[sizeof (list) + ROLE_HOST_SIZE + 256];

    if (!root_attrs_differ (s->attributes, s->theirs))
        p->told[0] = '\0';
    else if (strcmp (p->told, s->theirs) != 0) {
        memcpy (p->told, s->theirs, sizeof (p->told));
        root_attrs_list (s->attributes, s->theirs, list, sizeof (list));
        snprintf (text, sizeof (text),
                  "attributes are others on %s, the newest root: %s: the configuration should be the same on all hosts "
                  "of cluster.root",
                  s->row.host, list[0] ? list : "those with long values");
        p->conf.say (p->conf.arg, LOG_WARNING, text);
    }
}

static void note_lead (struct role_pg *p)
{
    char text[64];

    snprintf (text, sizeof (text), "leads in term %" PRIu64, p->role.row.term);
    p->conf.say (p->conf.arg, LOG_NOTICE, text);
}

#define UNSYNCED                                                                                                    \
    "a commit would not be on a second server (synchronous_standby_names is empty, or synchronous_commit is off): " \
    "set up a synchronous standby server, or root.store-sync=trust if the database sees to that itself"

/* Reading does not find out whether a commit would be on a second server. But while no other candidate changes the role
 * after a claim that failed for this, it still would not.
 */
static void note_synced (struct role_pg *p, const struct statement *s)
{
    const struct role_row *row = &s->row;

    if (s->act != ROLE_ACT_READ) {
        p->unsynced = !s->synced;
        p->unsynced_term = row->term;
        p->unsynced_beat = row->beat;
    }
    else if (row->term != p->unsynced_term || row->beat != p->unsynced_beat)
        p->unsynced = false;
    note_why (p, p->unsynced ? ENOTSUP : 0, p->unsynced ? UNSYNCED : "");
}

static void take_result (struct role_pg *p)
{
    struct statement *s = p->statement;
    bool led = p->role.state == ROLE_LEAD;

    note_synced (p, s);
    if (s->act == ROLE_ACT_READ)
        note_difference (p, s);
    if (s->act == ROLE_ACT_BEAT)
        p->standbys = s->standbys;
    if (s->act == ROLE_ACT_READ)
        role_read (&p->role, now_us (), &s->row);
    else if (s->act == ROLE_ACT_CLAIM)
        role_claimed (&p->role, now_us (), s->one);
    else if (s->act == ROLE_ACT_RELEASE)
        role_released (&p->role, now_us ());
    else if (!led && s->one && !s->synced) /* it does not confirm a claim */
        role_failed (&p->role, now_us ());
    else
        role_beaten (&p->role, now_us (), s->one);
    if (!led && p->role.state == ROLE_LEAD)
        note_lead (p);
}

/* A store that has no state, or one of another version, or other uids, does not change by waiting. But a leader keeps
 * its role.
 */
static bool is_final (const struct role_pg *p, int errnum)
{
    const struct statement *s = p->statement;

    return p->role.state != ROLE_LEAD
           && (errnum == STATE_REFUSED || (errnum == EINVAL && s->act == ROLE_ACT_READ && s->other_drift));
}

static void take_failure (struct role_pg *p, int errnum, const idt_error_t *why)
{
    if (is_final (p, errnum)) {
        p->why = *why;
        p->refused = errnum;
        return;
    }
    if (errnum != ECANCELED)
        note_why (p, errnum, why->text);
    role_failed (&p->role, now_us ());
}

/* --- what to do next --------------------------------------------------------------------------------- */

static void begin_statement (struct role_pg *p, enum role_act act)
{
    struct statement *s = p->statement;

    s->act = act;
    s->row = p->role.row;
    s->word = p->role.wanted == ROLE_END_STOPPED ? "stopped" : "released";
    worker_begin (p->worker);
}

static void begin_peers (struct role_pg *p)
{
    if (p->ask)
        p->ask (p->ask_arg);
    if (p->peers)
        peers_begin (p->peers);
    else
        role_peers (&p->role, now_us (), false, p->horizon_past);
}

/* Do all that is due, set the alarm, and report changes. */
static void turn (struct role_pg *p)
{
    enum role_act act = ROLE_ACT_NONE;
    uint64_t due_us;

    while (!p->refused && (act = role_next (&p->role, now_us ())) != ROLE_ACT_NONE) {
        if (act == ROLE_ACT_PEERS)
            begin_peers (p);
        else
            begin_statement (p, act);
    }
    due_us = p->refused ? UINT64_MAX : role_due (&p->role);
    if (due_us == UINT64_MAX)
        idt_watcher_stop (p->alarm);
    else {
        uint64_t wait_us = due_us - now_us ();

        idt_timer_watcher_reset (p->alarm, (int64_t)wait_us > 0 ? (double)wait_us / 1E3 : 0., 0.);
        idt_watcher_start (p->alarm);
    }
    if (p->conf.changed)
        p->conf.changed (p->conf.arg);
}

static void done_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct role_pg *p = arg;
    idt_error_t why = { "" };
    int rc = worker_result (p->worker, &why);

    if (rc == 0)
        return;
    if (rc > 0)
        take_result (p);
    else
        take_failure (p, errno, &why);
    turn (p);
}

static void found_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct role_pg *p = arg;
    bool one_serves;

    if (!peers_result (p->peers, &one_serves))
        return;
    role_peers (&p->role, now_us (), one_serves, p->horizon_past);
    turn (p);
}

static void alarm_cb (idt_watcher_t *w, int revents, void *arg)
{
    turn (arg);
}

/* --- for the owner ------------------------------------------------------------------------------------ */

const struct role *role_pg_role (const struct role_pg *p)
{
    return &p->role;
}

const char *role_pg_refusal (const struct role_pg *p)
{
    errno = p->refused;
    return p->refused ? p->why.text : NULL;
}

void role_pg_end (struct role_pg *p, enum role_ending how)
{
    role_end (&p->role, now_us (), how);
    turn (p);
}

void role_pg_ask_horizon (struct role_pg *p, role_pg_f ask, void *arg)
{
    p->ask = ask;
    p->ask_arg = arg;
    p->horizon_past = false;
}

void role_pg_tell_horizon (struct role_pg *p, bool past)
{
    p->horizon_past = past;
}

uint64_t role_pg_silent_ms (const struct role_pg *p)
{
    return (now_us () - p->role.answered_us) / 1000;
}

const char *role_pg_host (const struct role_pg *p)
{
    return p->conf.host;
}

uint32_t role_pg_candidates (const struct role_pg *p)
{
    return p->conf.peers ? p->conf.peers->count + 1 : 1;
}

uint64_t role_pg_takeovers (const struct role_pg *p)
{
    return p->role.row.term > 0 ? p->role.row.term - 1 : 0;
}

int64_t role_pg_standbys (const struct role_pg *p)
{
    return p->standbys;
}

const char *role_pg_why (const struct role_pg *p)
{
    return p->why.text;
}

static const char *text_of_end (const struct role *r)
{
    switch (r->ending) {
    case ROLE_END_LOST:
        return "another host has become rank 0";
    case ROLE_END_CUT:
        return "the store does not answer, and another host is rank 0, or the time that this one may grant is over";
    case ROLE_END_GIVEN:
        return "the role of rank 0 was given back";
    case ROLE_END_STOPPED:
        return "the instance was shut down";
    case ROLE_END_NONE:
        break;
    }
    return "";
}

const char *role_pg_text (const struct role_pg *p, char text[ROLE_PG_TEXT])
{
    const struct role *r = &p->role;

    if (r->state == ROLE_END)
        snprintf (text, ROLE_PG_TEXT, "%s", text_of_end (r));
    else if (r->state == ROLE_LEAD)
        snprintf (text, ROLE_PG_TEXT, "leads in term %" PRIu64, r->row.term);
    else if (p->why.text[0])
        snprintf (text, ROLE_PG_TEXT, "stands by; %.400s", p->why.text);
    else if (r->seen && r->row.word == ROLE_LEADS)
        snprintf (text, ROLE_PG_TEXT, "stands by; %s leads", r->row.host);
    else
        snprintf (text, ROLE_PG_TEXT, "stands by");
    return text;
}

json_t *role_pg_report_new (const struct role_pg *p)
{
    const struct role *r = &p->role;

    return json_pack ("{s:I s:s s:i s:i s:o* s:I s:I s:I s:s}", "term", (json_int_t)r->row.term, "host", p->conf.host,
                      "candidate", (int)p->conf.candidate, "candidates", (int)role_pg_candidates (p), "standbys",
                      p->standbys < 0 ? NULL : json_integer (p->standbys), "takeovers",
                      (json_int_t)role_pg_takeovers (p), "takeover_ms", (json_int_t)p->root.takeover_ms, "answered_ms",
                      (json_int_t)role_pg_silent_ms (p), "why", p->why.text);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static int make_statement (struct role_pg *p, idt_error_t *errp)
{
    uint64_t timeout_ms = p->root.takeover_ms / ATTEMPTS;
    struct pg_config config = {
        .conninfo = p->root.store,
        .application = "idtree role",
        .timeout_ms = timeout_ms > TIMEOUT_MIN_MS ? timeout_ms : TIMEOUT_MIN_MS,
    };
    struct statement *s = calloc (1, sizeof (*s));

    if (!s)
        return errsetf (errp, ENOMEM, "out of memory");
    p->statement = s;
    s->trust = p->root.trust;
    s->uid_drift = p->root.uid_drift;
    memcpy (s->attributes, p->conf.attributes, sizeof (s->attributes));
    memcpy (s->owner, p->role.config.owner, sizeof (s->owner));
    memcpy (s->host, p->role.config.host, sizeof (s->host));
    return (s->pg = pg_open (&config, errp)) ? 0 : -1;
}

static int make (struct role_pg *p, idt_error_t *errp)
{
    struct role_config config = { .takeover_us = p->root.takeover_ms * 1000, .candidate = p->conf.candidate };

    if (uuid_make (config.owner) < 0)
        return errprintf (errp, "cannot read random bytes: %s", strerror (errno));
    snprintf (config.host, sizeof (config.host), "%s", p->conf.host);
    role_init (&p->role, now_us (), &config);
    if (make_statement (p, errp) < 0)
        return -1;
    if (!(p->worker = worker_create (run_statement, p->statement))
        || (p->conf.peers && p->conf.peers->count > 0 && !(p->peers = peers_create (p->conf.peers)))
        || !(p->alarm = idt_timer_watcher_create (p->conf.reactor, 0., 0., alarm_cb, p))
        || !(p->done = idt_fd_watcher_create (p->conf.reactor, worker_fd (p->worker), IDT_POLLIN, done_cb, p))
        || (p->peers
            && !(p->found = idt_fd_watcher_create (p->conf.reactor, peers_fd (p->peers), IDT_POLLIN, found_cb, p))))
        return errprintf (errp, "cannot wait for the role of rank 0: %s", strerror (errno));
    idt_watcher_start (p->done);
    if (p->found)
        idt_watcher_start (p->found);
    idt_watcher_start (p->alarm);
    return 0;
}

struct role_pg *role_pg_create (const struct role_pg_conf *conf, idt_error_t *errp)
{
    struct role_pg *p = calloc (1, sizeof (*p));

    if (!p)
        return errsetf_null (errp, ENOMEM, "out of memory");
    p->conf = *conf;
    p->root = *conf->root;
    p->standbys = -1;
    if (make (p, errp) == 0)
        return p;
    role_pg_destroy (p);
    return NULL;
}

void role_pg_destroy (struct role_pg *p)
{
    int saved_errno = errno;

    if (!p)
        return;
    idt_watcher_destroy (p->done);
    idt_watcher_destroy (p->found);
    idt_watcher_destroy (p->alarm);
    if (p->statement && p->statement->pg)
        pg_stop (p->statement->pg);
    if (p->statement && (!p->worker || worker_leave (p->worker, LEAVE_MS, free_statement)))
        free_statement (p->statement);
    peers_destroy (p->peers);
    free (p);
    errno = saved_errno;
}
