/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid_options.c - the fluid.* attributes. An invalid value is refused with a sentence that states the valid ones. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "libmodule/module.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "modules/fluid/service/fluid_options.h"

#define HOUR_MS UINT64_C (3600000)
#define RECOVER "fluid.recover-horizon"

static int get_epoch (idt_t *h, struct fluid_options *o, idt_error_t *errp)
{
    const char *s = idt_attr_get (h, "fluid.epoch");

    if (!s)
        return 0;
    if (parse_date (s, &o->epoch_ms) < 0)
        return module_option_bad ("fluid.epoch", s, "a date such as " DATE_EXAMPLE, errp);
    o->has_epoch = true;
    return 0;
}

/* Make the incarnation from the broker's UUID. The last group of the incarnation is random, because the module may be
 * loaded several times in one broker.
 */
static int name_incarnation (struct fluid_options *o, const char *uuid)
{
    uint64_t n;

    if (getrandom (&n, sizeof (n), 0) != sizeof (n))
        return -1;
    snprintf (o->node.incarnation, sizeof (o->node.incarnation), "%.23s-%012llx", uuid, (unsigned long long)(n >> 16));
    return 0;
}

static int get_place (idt_t *h, struct fluid_options *o, idt_error_t *errp)
{
    const char *uuid = idt_attr_get (h, "broker.uuid");

    if (idt_get_rank (h, &o->node.rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if (!uuid || strlen (uuid) != IDT_MSG_UUID_LEN)
        return errsetf (errp, EINVAL, "the attribute broker.uuid is missing or is not a UUID");
    if (name_incarnation (o, uuid) < 0)
        return errprintf (errp, "cannot get random numbers: %s", strerror (errno));
    return o->node.rank != 0 ? 0 : module_option_place (h, "its horizon", &o->place, errp);
}

static int get_share (idt_t *h, uint32_t *share, idt_error_t *errp)
{
    const char *s = idt_attr_define (h, "fluid.share", "auto");
    uint64_t n = 0;

    if (!s)
        return errprintf (errp, "out of memory");
    if (module_option_is_off (s) || strcmp (s, "auto") == 0)
        *share = strcmp (s, "auto") == 0 ? NODE_SHARE_AUTO : NODE_SHARE_OFF;
    else if (parse_number (s, BOX_MIN_SIZE, BOX_MAX_PART, &n) == 0 && box_is_part_size (n))
        *share = (uint32_t)n;
    else
        return module_option_bad ("fluid.share", s, "auto, off, or a multiple of 16 from 16 to 1008", errp);
    return 0;
}

/* Read fluid.lanes, and check that max-generators suffices for so many generators of each rank. */
static int get_lanes (idt_t *h, struct node_config *c, idt_error_t *errp)
{
    if (module_option_number (h, "fluid.lanes", "1", 1, FLUID_GENERATOR_MAX + 1, &c->lanes, errp) < 0)
        return -1;
    if (idt_get_size (h, &c->size) < 0)
        return c->lanes == 1 ? 0 : errprintf (errp, "the attribute size is missing");
    if (c->lanes > 1 && (uint64_t)c->lanes * c->size > c->max_generators)
        return errsetf (errp, EINVAL,
                        "fluid.lanes=%u: %u ranks with so many generators each need %ju, but there are "
                        "%u (fluid.max-generators)",
                        (unsigned)c->lanes, (unsigned)c->size, (uintmax_t)c->lanes * c->size,
                        (unsigned)c->max_generators);
    return 0;
}

/* Check the syntax. Whether the date is after the epoch is checked later, when the epoch is known. */
static int check_recover (const char *s, idt_error_t *errp)
{
    int64_t unix_ms;
    fluid_t id;

    if (!s || parse_date (s, &unix_ms) == 0 || fluid_parse (s, strlen (s), &id, NULL) == 0)
        return 0;
    return module_option_bad (RECOVER, s, "a date such as " DATE_EXAMPLE ", or an id", errp);
}

int fluid_options_read (idt_t *h, struct fluid_options *o, idt_error_t *errp)
{
    struct node_config *c = &o->node;

    *o = (struct fluid_options){ .recover = idt_attr_get (h, RECOVER) };
    if (get_place (h, o, errp) < 0 || check_recover (o->recover, errp) < 0 || get_share (h, &c->share, errp) < 0
        || module_option_number (h, "fluid.share-keep", "128", 0, FLUID_PER_MS, &c->share_keep, errp) < 0
        || module_option_number (h, "fluid.max-generators", "16368", 1, FLUID_GENERATOR_MAX + 1, &c->max_generators,
                                 errp)
               < 0
        || get_lanes (h, c, errp) < 0
        || module_option_number (h, "fluid.max-waiting", "8192", 1, 1000000, &c->max_waiting, errp) < 0
        || module_option_duration (h, "fluid.lease", "60s", 100, HOUR_MS, "100ms to 1h, such as 60s", &c->lease_ms,
                                   errp)
               < 0
        || module_option_duration (h, "fluid.max-backlog", "2s", 0, HOUR_MS, "0 to 1h, such as 2s", &c->max_backlog_ms,
                                   errp)
               < 0
        || module_option_duration (h, "fluid.forward-timeout", module_option_root_timeout (h), 10, HOUR_MS,
                                   "10ms to 1h, such as 5s", &c->forward_timeout_ms, errp)
               < 0
        || module_option_duration (h, "fluid.max-jump", "400d", 0, 40 * 8766 * HOUR_MS,
                                   "a time such as 400d, or 0 for no limit", &o->max_jump_ms, errp)
               < 0)
        return -1;
    return get_epoch (h, o, errp);
}

int64_t fluid_options_wall_us (const struct horizon_store_content *content, int64_t own_us)
{
    return content->has_clock && content->clock_us < 0 ? own_us + content->clock_us : own_us;
}

/* A rank 0 in a place with a clock is one of several candidates. If it refused because of its clock, it would claim the
 * role again and again. So it begins at the stored horizon.
 */
static int check_wall (const struct fluid_options *o, const struct horizon_store_content *content, int64_t wall_ms,
                       int64_t epoch_ms, idt_error_t *errp)
{
    char wall[DATE_SIZE], other[DATE_SIZE];
    int64_t newest_ms = epoch_ms + (int64_t)content->record.horizon_ms;

    if (o->max_jump_ms == 0)
        return 0;
    errno = content->is_new ? EINVAL : ERANGE; /* ERANGE: the clock is wrong and may be set later */
    if (wall_ms < epoch_ms && (content->is_new || !content->has_clock))
        return errprintf (errp, "the clock says %s, the epoch is %s: set the clock, or start with fluid.max-jump=0",
                          format_date (wall_ms, wall), format_date (epoch_ms, other));
    if (!content->is_new && wall_ms > newest_ms && (uint64_t)(wall_ms - newest_ms) > o->max_jump_ms)
        return errprintf (errp,
                          "the clock says %s, the newest ids are of %s at most: set the clock, or start with a "
                          "fluid.max-jump that allows for it (0: any)",
                          format_date (wall_ms, wall), format_date (newest_ms, other));
    return 0;
}

int fluid_options_epoch (const struct fluid_options *o, const struct horizon_store_content *content, int64_t wall_ms,
                         int64_t *epoch_ms, idt_error_t *errp)
{
    char kept[DATE_SIZE], asked[DATE_SIZE];
    int64_t ms = o->has_epoch ? o->epoch_ms : wall_ms;

    if (!content->is_new && o->has_epoch && content->epoch_ms != o->epoch_ms)
        return errsetf (errp, EINVAL,
                        "fluid.epoch=%s, but this instance's epoch is %s, and must remain: leave the option out",
                        format_date (o->epoch_ms, asked), format_date (content->epoch_ms, kept));
    if (!content->is_new)
        ms = content->epoch_ms;
    if (check_wall (o, content, wall_ms, ms, errp) < 0)
        return -1;
    *epoch_ms = ms;
    return 0;
}

/* --- recovery ----------------------------------------------------------------------------------- */

/* Parse a date, or an id in any form. '*horizon_ms' gets the date, or the millisecond after the id's, as a time since
 * the epoch.
 */
static int parse_horizon (const char *s, int64_t epoch_ms, uint64_t *horizon_ms, idt_error_t *errp)
{
    int64_t unix_ms;
    fluid_t id;

    if (parse_date (s, &unix_ms) == 0 && unix_ms >= epoch_ms)
        *horizon_ms = (uint64_t)(unix_ms - epoch_ms);
    else if (fluid_parse (s, strlen (s), &id, NULL) == 0)
        *horizon_ms = fluid_split (id).timestamp_ms + 1;
    else
        return module_option_bad (RECOVER, s, "a date after the epoch, such as " DATE_EXAMPLE ", or an id", errp);
    return 0;
}

/* Refuse a horizon far ahead of the clock, because a mistyped year would put the instance years ahead permanently. */
static int check_ahead (const struct fluid_options *o, int64_t wall_ms, int64_t horizon_ms, idt_error_t *errp)
{
    char wall[DATE_SIZE], horizon[DATE_SIZE];

    if (o->max_jump_ms == 0 || horizon_ms <= wall_ms || (uint64_t)(horizon_ms - wall_ms) <= o->max_jump_ms)
        return 0;
    return errsetf (errp, EINVAL,
                    RECOVER "=%s is %s, the clock says %s: give another, or start with a fluid.max-jump that allows "
                            "for it (0: any)",
                    o->recover, format_date (horizon_ms, horizon), format_date (wall_ms, wall));
}

int fluid_options_record (const struct fluid_options *o, const struct horizon_store_content *content, int64_t wall_ms,
                          int64_t epoch_ms, struct lease_record *record, idt_error_t *errp)
{
    uint64_t horizon_ms = 0;

    *record = content->record;
    if (!o->recover)
        return 0;
    if (content->is_new && !o->has_epoch)
        return errsetf (errp, EINVAL, RECOVER "=%s: the instance's epoch is lost: give it with fluid.epoch",
                        o->recover);
    if (parse_horizon (o->recover, epoch_ms, &horizon_ms, errp) < 0
        || check_ahead (o, wall_ms, epoch_ms + (int64_t)horizon_ms, errp) < 0)
        return -1;
    if (record->horizon_ms >= horizon_ms)
        return 0;
    record->horizon_ms = horizon_ms;
    if (content->is_new) /* the length of leases in the lost file is unknown: assume the present one */
        record->settle_ms = 2 * o->node.lease_ms;
    return 0;
}
