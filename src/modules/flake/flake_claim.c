/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_claim.c - requests time and claims a name; at rank 0 grants names */
#include <errno.h>

#include "libutil/errprintf.h"
#include "modules/flake/private.h"

#define CLAIMS_US 2000000               /* a rank whose claim fails repeats it within this time */
#define CLAIMS_TICK_US 20000            /* how often rank 0 checks its sublease meanwhile */
#define FOREVER_MS (UINT64_C (1) << 40) /* the end of the instance's time */

static bool needs_time (const struct flake *f, enum series_kind kind)
{
    return !scheme_queue_is_empty (&f->few[kind]) || !scheme_queue_is_empty (&f->many[kind]);
}

void flake_ask_for_time (struct flake *f, uint64_t now_us)
{
    bool claims = now_us < f->claims_until_us;

    if (!claims && !needs_time (f, SERIES_SNO) && !needs_time (f, SERIES_UID))
        return;
    if (claims)
        flake_wake (f, now_us + CLAIMS_TICK_US);
    if (loan_is_due (&f->loan, now_us)) {
        if (f->ops->borrow (f->arg) == 0)
            loan_asked (&f->loan);
        else
            loan_refused (&f->loan, now_us, LOAN_FENCED);
    }
    if (loan_state (&f->loan, now_us) != LOAN_HELD)
        flake_wake (f, loan_due (&f->loan));
}

void flake_ask_for_claim (struct flake *f, uint64_t now_us)
{
    const struct claim claim = { f->config.fingerprint, f->config.rank, f->config.node };

    if (naming_is_due (&f->naming, now_us, flake_now_ms (f, now_us))) {
        naming_asked (&f->naming);
        f->stats.claims++;
        if (f->ops->claim (f->arg, &claim) < 0)
            naming_failed (&f->naming, now_us);
    }
    if (naming_due (&f->naming) > now_us)
        flake_wake (f, naming_due (&f->naming));
}

void flake_lent (struct flake *f, uint64_t now_us, const struct loan_answer *loan)
{
    f->stats.loans++;
    loan_lent (&f->loan, now_us, loan);
    flake_tick (f, now_us);
}

void flake_not_lent (struct flake *f, uint64_t now_us, bool never)
{
    loan_refused (&f->loan, now_us, never ? LOAN_NEVER : LOAN_FENCED);
    flake_tick (f, now_us);
}

void flake_claimed (struct flake *f, uint64_t now_us, const struct grant *grant)
{
    naming_granted (&f->naming, now_us, grant);
    flake_tick (f, now_us);
}

void flake_claim_failed (struct flake *f, uint64_t now_us)
{
    naming_failed (&f->naming, now_us);
    flake_tick (f, now_us);
}

static int claim_given (struct flake *f, uint64_t now_us, const struct claim *claim, struct span *range,
                        idt_error_t *errp)
{
    int rc = -1, saved = EAGAIN;

    /* The claim is repeated later, so keep the sublease renewed until then. */
    f->claims_until_us = now_us + CLAIMS_US;
    if (!f->stopped && loan_state (&f->loan, now_us) == LOAN_HELD) {
        rc = registry_claim (&f->registry, flake_now_ms (f, now_us), &f->loan.held, claim, range, errp);
        saved = errno;
    }
    flake_tick (f, now_us);
    if (rc == 0 || saved != EAGAIN)
        f->claims_until_us = 0;
    errno = saved;
    return rc;
}

int flake_claim_request (struct flake *f, uint64_t now_us, const struct claim *claim, struct grant *grant,
                         idt_error_t *errp)
{
    struct grant own = { naming_own (claim->rank), { 0, FOREVER_MS }, f->config.drift }, given = own;

    errno = ENOTSUP;
    if (f->config.rank != 0)
        return -1;
    given.fingerprint = claim->fingerprint;
    if (claim->fingerprint != own.fingerprint) {
        errno = EINVAL;
        if (naming_is_own (claim->fingerprint))
            return errprintf (errp, "fingerprint 0x%08x belongs to the number of another rank", claim->fingerprint);
        if (claim_given (f, now_us, claim, &given.range, errp) < 0) {
            if (errno != EEXIST && errno != ENOSPC)
                return -1;
            given = own;
        }
    }
    *grant = given;
    return 0;
}
