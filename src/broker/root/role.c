/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* role.c - whether this process may be rank 0: the decisions (rules in role.h) */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "broker/root/role.h"

static uint64_t poll_us (const struct role *r)
{
    return r->config.takeover_us / ROLE_POLLS;
}

static void go (struct role *r, enum role_state state, uint64_t look_us)
{
    r->state = state;
    r->look_us = look_us;
}

static void finish (struct role *r, enum role_ending ending)
{
    r->state = ROLE_END;
    r->ending = ending;
    r->pending = r->asks_peers = false;
}

static void answered (struct role *r, uint64_t now_us)
{
    r->pending = false;
    r->answered_us = now_us;
    r->asked_us = 0;
}

void role_init (struct role *r, uint64_t now_us, const struct role_config *config)
{
    *r = (struct role){ .config = *config };
    go (r, ROLE_WAIT, now_us);
}

/* --- what to do next ------------------------------------------------------------------------------ */

static enum role_act statement (const struct role *r)
{
    switch (r->state) {
    case ROLE_WAIT:
        return ROLE_ACT_READ;
    case ROLE_CLAIM:
        if (r->confirms)
            return ROLE_ACT_BEAT;
        return r->unsure ? ROLE_ACT_READ : ROLE_ACT_CLAIM;
    case ROLE_LEAD:
        return r->wanted ? ROLE_ACT_RELEASE : ROLE_ACT_BEAT;
    case ROLE_END:
        break;
    }
    return ROLE_ACT_NONE;
}

/* When this root, which has no answer from the store, has to look for another root. Time in which nothing was asked,
 * because the process was stopped, does not count.
 */
static uint64_t peers_due (const struct role *r)
{
    uint64_t silent_us = r->asked_us + r->config.takeover_us;

    if (r->state != ROLE_LEAD || r->wanted || r->asks_peers || r->asked_us == 0)
        return UINT64_MAX;
    return silent_us > r->peer_us ? silent_us : r->peer_us;
}

enum role_act role_next (struct role *r, uint64_t now_us)
{
    if (r->state == ROLE_END)
        return ROLE_ACT_NONE;
    if (!r->pending && now_us >= r->look_us) {
        enum role_act act = statement (r);

        r->pending = true;
        r->sent_us = now_us;
        r->asked_us = r->asked_us > 0 ? r->asked_us : now_us;
        r->unsure |= act == ROLE_ACT_CLAIM;
        return act;
    }
    if (now_us < peers_due (r))
        return ROLE_ACT_NONE;
    r->asks_peers = true;
    return ROLE_ACT_PEERS;
}

uint64_t role_due (const struct role *r)
{
    uint64_t look_us = r->pending ? UINT64_MAX : r->look_us, peers_us = peers_due (r);

    if (r->state == ROLE_END)
        return UINT64_MAX;
    return look_us < peers_us ? look_us : peers_us;
}

/* --- WAIT and CLAIM ------------------------------------------------------------------------------- */

static bool is_same (const struct role_row *a, const struct role_row *b)
{
    return a->term == b->term && a->beat == b->beat && a->word == b->word && strcmp (a->owner, b->owner) == 0;
}

/* Whether the instance was stopped while this candidate waited. If it was stopped before, this is its next start. */
static bool was_stopped (const struct role *r, const struct role_row *row)
{
    return row->word == ROLE_STOPPED && r->seen && (r->row.word != ROLE_STOPPED || r->row.term != row->term);
}

/* Count the time during which the row has not changed (rule 2). */
static void count (struct role *r, uint64_t now_us, const struct role_row *row)
{
    uint64_t passed_us = now_us - r->read_us, most_us = 2 * poll_us (r);

    if (!r->seen || !is_same (&r->row, row))
        r->still_us = 0;
    else
        r->still_us += passed_us < most_us ? passed_us : most_us;
    r->read_us = now_us;
    r->row = *row;
    r->seen = true;
}

static bool may_claim (const struct role *r)
{
    return r->row.word != ROLE_LEADS
           || r->still_us >= r->config.takeover_us + (uint64_t)r->config.candidate * ROLE_STAGGER_US;
}

void role_read (struct role *r, uint64_t now_us, const struct role_row *row)
{
    if (r->state == ROLE_END)
        return;
    assert (r->state != ROLE_LEAD);
    answered (r, now_us);
    r->unsure = false;
    r->confirms = row->word == ROLE_LEADS && strcmp (row->owner, r->config.owner) == 0;
    if (was_stopped (r, row)) {
        finish (r, ROLE_END_STOPPED);
        return;
    }
    count (r, now_us, row);
    if (r->confirms || may_claim (r))
        go (r, ROLE_CLAIM, now_us);
    else
        go (r, ROLE_WAIT, now_us + poll_us (r));
}

static void lead (struct role *r, uint64_t now_us)
{
    r->unsure = r->confirms = false;
    go (r, ROLE_LEAD, now_us + r->config.takeover_us / ROLE_BEATS);
}

static void wait_again (struct role *r, uint64_t now_us)
{
    r->unsure = r->confirms = false;
    go (r, ROLE_WAIT, now_us + poll_us (r));
}

void role_claimed (struct role *r, uint64_t now_us, bool one)
{
    if (r->state == ROLE_END)
        return;
    assert (r->state == ROLE_CLAIM);
    answered (r, now_us);
    if (!one) {
        wait_again (r, now_us);
        return;
    }
    r->row.term++;
    r->row.beat = 0;
    r->row.word = ROLE_LEADS;
    memcpy (r->row.owner, r->config.owner, sizeof (r->row.owner));
    memcpy (r->row.host, r->config.host, sizeof (r->row.host));
    lead (r, now_us);
}

/* --- LEAD ----------------------------------------------------------------------------------------- */

void role_beaten (struct role *r, uint64_t now_us, bool one)
{
    uint64_t next_us = r->sent_us + r->config.takeover_us / ROLE_BEATS;

    if (r->state == ROLE_END)
        return;
    answered (r, now_us);
    r->row.beat += one;
    if (r->state == ROLE_CLAIM && one)
        lead (r, now_us);
    else if (r->state == ROLE_CLAIM)
        wait_again (r, now_us);
    else if (!one)
        finish (r, ROLE_END_LOST);
    else if (!r->wanted)
        r->look_us = next_us > now_us ? next_us : now_us;
}

void role_peers (struct role *r, uint64_t now_us, bool one_serves, bool horizon_past)
{
    r->asks_peers = false;
    r->peer_us = now_us + ROLE_PEERS_US;
    if (r->state != ROLE_LEAD || r->wanted || r->asked_us == 0 || now_us - r->asked_us < r->config.takeover_us)
        return;
    if (one_serves || horizon_past)
        finish (r, ROLE_END_CUT);
}

/* --- the end -------------------------------------------------------------------------------------- */

void role_end (struct role *r, uint64_t now_us, enum role_ending how)
{
    assert (how != ROLE_END_NONE);
    if (r->state == ROLE_END)
        return;
    if (r->state != ROLE_LEAD) {
        finish (r, how);
        return;
    }
    if (!r->wanted)
        r->give_up_us = now_us + r->config.takeover_us;
    r->wanted = how;
    r->look_us = now_us;
}

void role_released (struct role *r, uint64_t now_us)
{
    if (r->state == ROLE_END)
        return;
    answered (r, now_us);
    finish (r, r->wanted);
}

void role_failed (struct role *r, uint64_t now_us)
{
    if (r->state == ROLE_END)
        return;
    r->pending = false;
    if (r->state == ROLE_LEAD && r->wanted && now_us >= r->give_up_us)
        finish (r, r->wanted);
    else
        r->look_us = now_us + poll_us (r);
}
