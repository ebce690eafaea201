/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* logline_test.c - lines of the brokers' log for people */
#include <errno.h>
#include <string.h>

#include "libutil/text.h"
#include "test/tap.h"

static bool formats (const char *line, const char *expect)
{
    char buf[128];

    if (logline_format (line, buf, sizeof (buf)) == 0 && !strcmp (buf, expect))
        return true;
    diag ("%s", buf);
    return false;
}

int main (void)
{
    char buf[16];

    ok (formats ("<40>1 2026-11-21T03:27:19.234509Z 0 logger 19699 - - hello you",
                 "2026-11-21T03:27:19.234509Z logger.notice[0]: hello you"),
        "a log line is shown as time, name, level, rank, text");
    ok (formats ("<56>1 - 7 x - - -  a  b ", "- x.debug[7]:  a  b "), "blanks in the text of a log line are kept");
    ok (formats ("<0>1 - - x - - -", "- x.emerg[-]: "), "the text of a log line may be missing");
    ok (logline_format ("<64>1 - 0 x - - - y", buf, sizeof (buf)) < 0 && errno == EINVAL
            && logline_format ("<40>2 - 0 x - - - y", buf, sizeof (buf)) < 0
            && logline_format ("<40>1 - 0 x", buf, sizeof (buf)) < 0 && logline_format ("", buf, sizeof (buf)) < 0,
        "a line that is not a log line fails with EINVAL");
    ok (logline_format ("<40>1 - 0 x - - - a long text", buf, sizeof (buf)) == 0 && strlen (buf) == 15,
        "a log line that is too long is cut");
    ok (logline_level_parse ("err") == 3 && logline_level_parse ("error") == -1 && !logline_level (8)
            && !logline_level (-1),
        "log levels have the names of syslog");
    return done_testing ();
}
