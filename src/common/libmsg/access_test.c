/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* access_test.c - the table of access: sorted, equal to the one in the document, and applied to senders of each role */
#include <stdlib.h>
#include <string.h>

#include "libmsg/access.h"
#include "test/tap.h"

#define DOCUMENT SRCDIR "/doc/design/access.md"

static const struct idt_cred owner = { 100, IDT_ROLE_OWNER }, member = { 101, IDT_ROLE_USER | IDT_ROLE_GROUP },
                             guest = { 102, IDT_ROLE_USER }, nobody = { 103, IDT_ROLE_NONE };

/* The document's line for a row. */
static void describe (const char *topic, uint32_t roles, char *buf, size_t size)
{
    bool has_dot = strchr (topic, '.');

    if (roles & IDT_ROLE_BROKER)
        snprintf (buf, size, "| `%s%s` | %s | - | - |\n", has_dot ? "" : "NAME.", topic,
                  roles & IDT_ROLE_LOCAL ? "modules" : "brokers");
    else
        snprintf (buf, size, "| `%s%s` | yes | %s | %s |\n", has_dot ? "" : "NAME.", topic,
                  roles & IDT_ROLE_GROUP ? "yes" : "-", roles & IDT_ROLE_USER ? "yes" : "-");
}

static char *read_document (void)
{
    FILE *f = fopen (DOCUMENT, "r");
    char *text = calloc (1, 100000);

    if (!f || !text || fread (text, 1, 99999, f) == 0)
        diag ("cannot read %s", DOCUMENT);
    if (f)
        fclose (f);
    return text;
}

/* The number of rows under "Requests" in the document. */
static size_t count_lines (const char *text)
{
    const char *from = strstr (text, "\n## Requests\n"), *to = from ? strstr (from + 1, "\n## ") : NULL;
    size_t n = 0;

    for (; to && (from = strstr (from, "\n| `")) && from < to; from++)
        n++;
    return n;
}

static void test_table (void)
{
    char line[200], *text = read_document ();
    const char *topic, *before = "";
    uint32_t roles;
    size_t n = 0;

    for (; (topic = access_topic (n, &roles)); n++, before = topic) {
        describe (topic, roles, line, sizeof (line));
        if (strcmp (before, topic) >= 0 || access_roles (topic) != roles || !strstr (text, line))
            ok (false, "the table of topics is sorted at %s, and %s has the line: %s", topic, DOCUMENT, line);
    }
    ok (n > 0 && count_lines (text) == n, "the document of access has exactly the rows of the table (%zu)", n);
    ok (access_roles ("no.such") == ACCESS_OWNER && access_roles ("") == ACCESS_OWNER,
        "a request of a topic that the table does not have is for the owner only");
    free (text);
}

static void test_publish (void)
{
    ok (access_may_publish (owner, "x") && access_may_publish (member, "x") && access_may_publish (member, "x.y"),
        "the owner and group members may publish events");
    ok (!access_may_publish (guest, "x") && !access_may_publish (nobody, "x"),
        "guests and users without a role may not publish events");
    ok (access_may_publish (owner, "fluid.stats-clear") && !access_may_publish (member, "fluid.stats-clear")
            && !access_may_publish (member, "compressor.ranges.d") && !access_may_publish (member, "event.lost")
            && !access_may_publish (member, "mine.stats-clear"),
        "only the owner may publish events on which services act");
    ok (access_may_publish (member, "fluids.x") && access_may_publish (member, "fluid"),
        "a topic that begins like the name of a service is not an event of that service");
}

int main (void)
{
    test_table ();
    test_publish ();
    return done_testing ();
}
