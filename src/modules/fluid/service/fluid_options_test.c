/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid_options_test.c - the clock with which rank 0 starts, for hosts and databases whose clocks are wrong */
#include <errno.h>
#include <string.h>

#include "modules/fluid/service/fluid_options.h"
#include "test/tap.h"

#define EPOCH INT64_C (1767225600000)
#define NOW (EPOCH + 86400000)
#define HOUR INT64_C (3600000)

/* The content of a database whose clock is 'off_ms' ahead of that of this host. */
static struct horizon_store_content database (int64_t off_ms)
{
    return (struct horizon_store_content){
        .record = { .horizon_ms = 86400000 }, .epoch_ms = EPOCH, .has_clock = true, .clock_us = off_ms * 1000
    };
}

static const struct fluid_options options = { .max_jump_ms = 400 * 24 * HOUR };

/* Whether rank 0 starts. */
static bool starts (const struct horizon_store_content *content, int64_t own_ms, idt_error_t *err)
{
    int64_t wall_ms = fluid_options_wall_us (content, own_ms * 1000) / 1000, epoch_ms;

    *err = (idt_error_t){ "" };
    return fluid_options_epoch (&options, content, wall_ms, &epoch_ms, err) == 0 && epoch_ms == EPOCH;
}

static void test_wall (void)
{
    struct horizon_store_content behind = database (-HOUR), ahead = database (HOUR), folder = { .epoch_ms = EPOCH };

    ok (fluid_options_wall_us (&behind, NOW * 1000) == (NOW - HOUR) * 1000,
        "a host whose clock is ahead of the database starts with the clock of the database");
    ok (fluid_options_wall_us (&ahead, NOW * 1000) == NOW * 1000, "a host whose clock is behind starts with its own");
    ok (fluid_options_wall_us (&folder, NOW * 1000) == NOW * 1000, "a folder has no clock");
}

static void test_epoch (void)
{
    struct horizon_store_content right = database (0), year = database (370 * 24 * HOUR), content = right;
    idt_error_t err;

    ok (starts (&right, NOW, &err), "rank 0 starts with a right clock");
    ok (starts (&year, NOW - 370 * 24 * HOUR, &err), "a candidate whose clock is before the epoch starts: %s",
        err.text);
    ok (starts (&right, EPOCH - HOUR, &err), "so it does if the clock of the database is, too: %s", err.text);
    content = database (-2 * HOUR * 24);
    ok (starts (&content, NOW, &err), "and if only that of the database is: %s", err.text);
    content = right;
    content.is_new = true;
    content.epoch_ms = 0;
    struct fluid_options o = options;
    o.has_epoch = true;
    o.epoch_ms = EPOCH;
    int64_t epoch_ms;
    ok (fluid_options_epoch (&o, &content, EPOCH - HOUR, &epoch_ms, &err) < 0 && errno == EINVAL,
        "a new instance has no horizon to begin at, and is refused: %s", err.text);
    content = (struct horizon_store_content){ .record = right.record, .epoch_ms = EPOCH };
    ok (!starts (&content, EPOCH - HOUR, &err) && errno == ERANGE && strstr (err.text, "the epoch is"),
        "a rank 0 whose state is in a folder is refused: %s", err.text);
    ok (!starts (&right, NOW + 500 * 24 * HOUR, &err) && errno == ERANGE && strstr (err.text, "fluid.max-jump"),
        "two clocks that are far ahead of the horizon are refused: %s", err.text);
}

int main (void)
{
    test_wall ();
    test_epoch ();
    return done_testing ();
}
