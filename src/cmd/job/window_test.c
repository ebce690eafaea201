/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* window_test.c - many submissions, of which some are in flight at a time */
#include "cmd/job/window.h"
#include "test/tap.h"

#define NEVER UINT64_MAX

/* Send all submissions that may be sent now.  Returns how many; '*number' is the last one. */
static unsigned send_all (struct job_window *w, uint64_t now_ms, uint64_t *number)
{
    unsigned n = 0;

    while (window_next (w, now_ms, number))
        n++;
    return n;
}

/* Take all submissions that can be taken.  Returns how many; '*number' is the last one. */
static unsigned take_all (struct job_window *w, uint64_t *number)
{
    enum window_fate fate;
    unsigned n = 0;

    while (window_take (w, number, &fate))
        n++;
    return n;
}

static void test_order (void)
{
    struct job_window *w = window_create (5, 3, 1000);
    enum window_fate fate;
    uint64_t number = 99;

    ok (!window_ended (w) && send_all (w, 0, &number) == 3 && number == 2,
        "a window sends as many submissions as it has slots");
    ok (window_due (w) == NEVER, "a window with a full number of submissions in flight has no pause");
    window_answered (w, 1, 1, WINDOW_STORED);
    ok (!window_take (w, &number, &fate),
        "the second submission cannot be taken before the first, even if it was stored first");
    ok (!window_next (w, 1, &number), "a stored submission that cannot be taken yet keeps its slot");
    window_answered (w, 2, 0, WINDOW_STORED);
    ok (window_take (w, &number, &fate) && number == 0 && fate == WINDOW_STORED,
        "the first submission is taken when it is stored");
    ok (window_take (w, &number, &fate) && number == 1, "the second submission is taken after the first");
    ok (send_all (w, 3, &number) == 2 && number == 4, "submissions that were taken make slots free for further ones");
    for (number = 2; number < 5; number++)
        window_answered (w, 4, number, WINDOW_STORED);
    ok (window_ended (w) && take_all (w, &number) == 3 && number == 4 && window_stored (w) == 5,
        "a window ends when all submissions are stored");
    window_destroy (w);
}

static void test_full (void)
{
    struct job_window *w = window_create (100, 8, 1000);
    uint64_t number, now_ms = 50;

    send_all (w, now_ms, &number);
    for (number = 1; number < 8; number++)
        window_answered (w, now_ms, number, WINDOW_FULL);
    ok (!window_next (w, now_ms, &number) && window_due (w) == now_ms + WINDOW_PAUSE_MS,
        "if the broker refuses a submission because it is full, a pause begins");
    now_ms += WINDOW_PAUSE_MS;
    ok (window_next (w, now_ms, &number) && number == 1, "after a pause the first refused submission is sent again");
    ok (send_all (w, now_ms, &number) == 2 && number == 3, "after a refusal half as many submissions are in flight");
    for (number = 1; number < 4; number++)
        window_answered (w, now_ms, number, WINDOW_FULL);
    ok (window_due (w) == now_ms + 2 * WINDOW_PAUSE_MS, "each further pause is twice as long");
    window_answered (w, now_ms, 0, WINDOW_STORED);
    now_ms = window_due (w);
    ok (take_all (w, &number) == 1 && window_next (w, now_ms, &number) && number == 1,
        "refused submissions are sent before new ones");
    window_answered (w, now_ms, 1, WINDOW_FULL);
    ok (window_due (w) == now_ms + WINDOW_PAUSE_MS, "a stored submission makes the next pause short again");
    window_destroy (w);
}

static void test_patience (void)
{
    struct job_window *w = window_create (1, 8, 30000);
    enum window_fate fate = WINDOW_FULL;
    uint64_t number, now_ms = 7, longest_ms = 0;
    unsigned sent = 0;

    while (!window_ended (w) && sent < 1000) {
        if (window_next (w, now_ms, &number)) {
            sent++;
            fate = window_answered (w, now_ms, number, WINDOW_FULL);
        }
        else {
            longest_ms = window_due (w) - now_ms > longest_ms ? window_due (w) - now_ms : longest_ms;
            now_ms = window_due (w);
        }
    }
    ok (window_ended (w) && fate == WINDOW_FAILED && window_failed (w) == 1,
        "when the patience is over, a broker that is full makes the submission fail");
    ok (now_ms >= 30007 && now_ms < 30007 + WINDOW_PAUSE_MAX_MS,
        "a submission to a full broker does not fail before the patience is over");
    ok (longest_ms == WINDOW_PAUSE_MAX_MS && sent < 50, "pauses grow up to WINDOW_PAUSE_MAX_MS");
    ok (window_take (w, &number, &fate) && fate == WINDOW_FAILED, "a submission that failed is taken with this result");
    window_destroy (w);
}

static void test_failure (void)
{
    struct job_window *w = window_create (100, 8, 1000);
    enum window_fate fate;
    uint64_t number;

    send_all (w, 0, &number);
    window_answered (w, 0, 1, WINDOW_FULL);
    window_answered (w, 0, 2, WINDOW_FAILED);
    ok (!window_next (w, 10000, &number) && window_due (w) == NEVER,
        "after a failed submission nothing further is sent");
    ok (!window_ended (w), "after a failed submission the window waits for the submissions in flight");
    for (number = 0; number < 8; number++)
        if (number != 1 && number != 2)
            window_answered (w, 1, number, number == 5 ? WINDOW_FULL : WINDOW_STORED);
    ok (window_ended (w) && window_stored (w) == 5 && window_failed (w) == 1,
        "after a failed submission the window ends when all submissions in flight were answered");
    ok (window_take (w, &number, &fate) && number == 0 && fate == WINDOW_STORED,
        "submissions that were stored are taken even after a failed one");
    ok (window_take (w, &number, &fate) && number == 2 && fate == WINDOW_FAILED, "submissions that failed are taken");
    ok (take_all (w, &number) == 4 && number == 7,
        "after a failed submission the submissions that would have been sent again are not taken");
    window_destroy (w);
}

/* Submit to a broker that has space for 'room' submissions at a time, and stores one each millisecond. */
static void test_all_come (uint32_t room, uint64_t total)
{
    struct job_window *w = window_create (total, 64, 1000);
    uint64_t queue[64], number, last = 0, now_ms = 0;
    unsigned waiting = 0, taken = 0, order = 0;
    enum window_fate fate;

    for (; !window_ended (w) && now_ms < 100 * total; now_ms++) {
        while (window_next (w, now_ms, &number)) {
            if (waiting < room)
                queue[waiting++] = number;
            else
                window_answered (w, now_ms, number, WINDOW_FULL);
        }
        if (waiting > 0) {
            window_answered (w, now_ms, queue[0], WINDOW_STORED);
            waiting--;
            for (unsigned i = 0; i < waiting; i++)
                queue[i] = queue[i + 1];
        }
        while (window_take (w, &number, &fate)) {
            order += taken > 0 && number != last + 1;
            last = number;
            taken++;
        }
    }
    ok (window_ended (w) && taken == total && order == 0 && window_stored (w) == total,
        "a broker with space for %u submissions stores all %u, and they are taken in order", room, (unsigned)total);
    ok (now_ms < 20 * total, "submissions to a broker with little space spend little time in pauses");
    window_destroy (w);
}

int main (void)
{
    test_order ();
    test_full ();
    test_patience ();
    test_failure ();
    for (uint32_t room = 1; room <= 64; room *= 4)
        test_all_come (room, 500);
    return done_testing ();
}
