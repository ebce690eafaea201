/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* costs_test.c - files of times: valid ones are read, invalid ones are refused */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/tap.h"
#include "sim/scale/scale.h"

#define REST                                                                                                   \
    "\"receive_us\":1,\"heartbeat_us\":1,\"lease_us\":1,\"want_us\":1,\"report_us\":1,\"hello_us\":1,"         \
    "\"tick_us\":1,\"wake_us\":1,\"io_us\":1,\"client_us\":1,\"local_us\":1,\"latency_us\":1,\"jitter_us\":0," \
    "\"store_ms\":1,\"lost_ms\":1,\"inside_us\":1,\"inside_heartbeat_us\":[1,2],\"inside_report_us\":[1,1],"   \
    "\"inside_local_us\":[1,1],\"inside_client_us\":[1,1],\"start_us\":1,\"boot_ms\":7"
#define GROWING "\"brokers\":[1000,4000],\"cold_us\":[4,8],"
#define ALL GROWING REST

static int read_text (struct costs *c, const char *text, idt_error_t *errp)
{
    char path[] = "/tmp/costs-XXXXXX";
    int fd = mkstemp (path), rc = -1;

    if (fd >= 0 && write (fd, text, strlen (text)) == (ssize_t)strlen (text))
        rc = costs_read (c, path, errp);
    if (fd >= 0)
        close (fd);
    unlink (path);
    return rc;
}

static void refuses (const char *text, const char *why)
{
    idt_error_t err = { "" };
    struct costs c;

    ok (read_text (&c, text, &err) < 0 && strstr (err.text, why), "a malformed file of costs is refused: %s", err.text);
}

/* With each doubling of the brokers a time changes by the same amount. Below the smaller of the two measured numbers it
 * is constant.
 */
static void test_growth (void)
{
    struct costs c;
    idt_error_t err = { "" };

    ok (read_text (&c, "{\"request_us\":1,\"send_us\":2,\"bytes_per_us\":9," ALL "}", &err) == 0
            && c.brokers.few == 1000 && c.brokers.many == 4000 && c.cold_us.few == 4 && c.cold_us.many == 8
            && c.inside_heartbeat_us.many == 2 && c.boot_ms == 7,
        "a time that grows with the number of brokers has two numbers %s", err.text);
    ok (costs_with (&c, c.cold_us, 1000) == 4 && costs_with (&c, c.cold_us, 4000) == 8,
        "for the measured numbers of brokers a growing time is the measured one");
    ok (costs_with (&c, c.cold_us, 2000) == 6,
        "between the measured numbers of brokers a growing time changes by the same amount with each doubling");
    ok (costs_with (&c, c.cold_us, 16000) == 12,
        "above the measured numbers of brokers a growing time changes by the same amount with each doubling");
    ok (costs_with (&c, c.cold_us, 10) == 4, "below the smaller measured number of brokers a growing time is constant");
    ok (costs_with (&c, (struct cost_grows){ 4, 1 }, 1 << 20) == 0, "a time is never negative");
}

int main (void)
{
    struct costs c;
    idt_error_t err = { "" };

    ok (costs_read (&c, SCALE_COSTS, &err) == 0, "the file of measured times can be read %s", err.text);
    ok (read_text (&c, "{\"about\":\"x\",\"request_us\":1.5,\"send_us\":2,\"bytes_per_us\":9," ALL "}", &err) == 0
            && c.request_us == 1.5 && c.send_us == 2 && c.bytes_per_us == 9 && c.lost_ms == 1,
        "each number of a file of costs is read into its member %s", err.text);
    ok (costs_read (&c, "/nowhere/costs.json", &err) < 0 && strstr (err.text, "/nowhere/costs.json"),
        "a missing file of costs is refused with its path: %s", err.text);
    refuses ("{", "expected");
    refuses ("[]", "not a JSON object");
    refuses ("{\"request_us\":1,\"bytes_per_us\":9," ALL "}", "'send_us' is missing");
    refuses ("{\"request_us\":-1,\"send_us\":2,\"bytes_per_us\":9," ALL "}", "'request_us' must be a number");
    refuses ("{\"request_us\":\"1\",\"send_us\":2,\"bytes_per_us\":9," ALL "}", "'request_us' must be a number");
    refuses ("{\"request_us\":1,\"send_us\":2,\"bytes_per_us\":9,\"speed\":1," ALL "}", "'speed'");
    refuses ("{\"request_us\":1,\"send_us\":2,\"bytes_per_us\":0," ALL "}", "'bytes_per_us'");
    refuses ("{\"request_us\":1,\"send_us\":2,\"bytes_per_us\":9,\"brokers\":[4,4],\"cold_us\":[4,8]," REST "}",
             "'brokers'");
    refuses ("{\"request_us\":1,\"send_us\":2,\"bytes_per_us\":9,\"brokers\":[0,4],\"cold_us\":[4,8]," REST "}",
             "'brokers'");
    refuses ("{\"request_us\":1,\"send_us\":2,\"bytes_per_us\":9,\"brokers\":[2,4],\"cold_us\":4," REST "}",
             "'cold_us' must be two numbers");
    refuses ("{\"request_us\":1,\"send_us\":2,\"bytes_per_us\":9,\"brokers\":[2,4],\"cold_us\":[4,8,9]," REST "}",
             "'cold_us' must be two numbers");
    refuses ("{\"request_us\":1,\"send_us\":2,\"bytes_per_us\":9,\"brokers\":[2,4],\"cold_us\":[4,-1]," REST "}",
             "'cold_us' must be two numbers");
    test_growth ();
    return done_testing ();
}
