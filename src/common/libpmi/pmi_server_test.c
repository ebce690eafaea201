/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_server_test.c - the server side of PMI-1: bizcards, secrets, barriers, restarted ranks */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libpmi/pmi_server.h"
#include "libpmi/pmi_wire.h"
#include "test/tap.h"

#define SIZE 3

/* The lines that were sent to each rank since the last check, and the callbacks that were made. */
struct world {
    char out[SIZE][4096];
    int made;
    int finalized;
    char line[64]; /* the last line that is not PMI */
    struct pmi_server *s;
};

static void send_cb (void *arg, int rank, const char *line)
{
    struct world *w = arg;

    strcat (w->out[rank], line);
}

static int make_secret_cb (void *arg, int rank, char *buf, size_t size)
{
    struct world *w = arg;

    snprintf (buf, size, "public,secret-%d-%d", rank, w->made++);
    return 0;
}

static void finalized_cb (void *arg, int rank)
{
    ((struct world *)arg)->finalized |= 1 << rank;
}

static int line_cb (void *arg, int rank, const char *line)
{
    struct world *w = arg;

    if (strncmp (line, "cmd=mine", 8) != 0)
        return -1;
    snprintf (w->line, sizeof (w->line), "%d:%s", rank, line);
    return 0;
}

static const struct pmi_server_ops ops = {
    .send = send_cb,
    .make_secret = make_secret_cb,
    .finalized = finalized_cb,
    .line = line_cb,
};

static void begin (struct world *w)
{
    memset (w, 0, sizeof (*w));
    if (!(w->s = pmi_server_create (SIZE, "kvs", &ops, w)))
        bail_out ("pmi_server_create failed");
}

/* Pass in 'line' as 'rank'; returns whether the answer is 'expect'. */
static bool says (struct world *w, int rank, const char *line, const char *expect)
{
    idt_error_t error;

    w->out[rank][0] = '\0';
    if (pmi_server_input (w->s, rank, line, strlen (line), &error) < 0)
        diag ("%s", error.text);
    if (strcmp (w->out[rank], expect)) {
        diag ("%s -> %s", line, w->out[rank]);
        return false;
    }
    return true;
}

static void test_conversation (void)
{
    struct world w;

    begin (&w);
    ok (says (&w, 0, "cmd=init pmi_version=1 pmi_subversion=1\n",
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"),
        "the server answers init with its version");
    ok (says (&w, 0, "cmd=get_maxes\n", "cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=1024 rc=0\n"),
        "the server answers get_maxes with its limits");
    ok (says (&w, 0, "cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=kvs rc=0\n"),
        "the server answers get_my_kvsname with the name of the key-value space");
    ok (says (&w, 0, "cmd=get_appnum\ncmd=get_universe_size\n",
              "cmd=appnum appnum=0 rc=0\ncmd=universe_size size=3 rc=0\n"),
        "two requests that arrive in one piece get two answers");
    ok (says (&w, 0, "cmd=get kvsname=kvs key=PMI_process_mapping\n",
              "cmd=get_result rc=0 msg=success value=(vector,(0,1,3))\n"),
        "the server reports all ranks as on one node");
    ok (says (&w, 0, "cmd=fin", "") && says (&w, 0, "alize\n", "cmd=finalize_ack rc=0\n") && w.finalized == 1,
        "a finalize that arrives in two pieces is reported to the launcher");
    pmi_server_destroy (w.s);
}

static void test_bizcards (void)
{
    struct world w;

    begin (&w);
    ok (says (&w, 1, "cmd=put kvsname=kvs key=a value=x=1 y\n", "cmd=put_result rc=0 msg=success\n")
            && says (&w, 2, "cmd=get kvsname=kvs key=a\n", "cmd=get_result rc=0 msg=success value=x=1 y\n"),
        "a rank gets the value that another rank put, including blanks");
    ok (says (&w, 1, "cmd=put kvsname=kvs key=a value=2\n", "cmd=put_result rc=0 msg=success\n")
            && says (&w, 2, "cmd=get kvsname=kvs key=a\n", "cmd=get_result rc=0 msg=success value=2\n"),
        "a rank may put another value of its own bizcard");
    ok (says (&w, 2, "cmd=put kvsname=kvs key=a value=3\n", "cmd=put_result rc=-1 msg=key_of_another_rank\n")
            && says (&w, 2, "cmd=put kvsname=kvs key=PMI_process_mapping value=3\n",
                     "cmd=put_result rc=-1 msg=key_of_another_rank\n"),
        "a rank cannot put a value of the bizcard of another rank or of the server");
    ok (says (&w, 0, "cmd=get kvsname=kvs key=nosuch\n", "cmd=get_result rc=-1 msg=no_such_key value=unknown\n"),
        "a get of a key that no rank put fails");
    ok (says (&w, 0, "cmd=get kvsname=other key=a\n", "cmd=get_result rc=-1 msg=no_such_key value=unknown\n")
            && says (&w, 0, "cmd=put kvsname=other key=b value=1\n", "cmd=put_result rc=-1 msg=wrong_kvsname\n"),
        "a request for another key-value space fails");
    ok (says (&w, 0, "cmd=put kvsname=kvs key=b\n", "cmd=put_result rc=-1 msg=bad_value\n")
            && says (&w, 0, "cmd=put kvsname=kvs value=b\n", "cmd=put_result rc=-1 msg=bad_key\n")
            && says (&w, 0, "cmd=put\n", "cmd=put_result rc=-1 msg=wrong_kvsname\n"),
        "a put without one of its words is refused");
    pmi_server_destroy (w.s);
}

static void test_limit (void)
{
    struct world w;
    int good = 0;

    begin (&w);
    for (int i = 0; i < PMI_SERVER_KEYS_PER_RANK; i++) {
        char line[128];

        snprintf (line, sizeof (line), "cmd=put kvsname=kvs key=k%d value=v\n", i);
        good += says (&w, 0, line, "cmd=put_result rc=0 msg=success\n");
    }
    ok (good == PMI_SERVER_KEYS_PER_RANK
            && says (&w, 0, "cmd=put kvsname=kvs key=more value=v\n", "cmd=put_result rc=-1 msg=too_many_keys\n"),
        "a rank may put at most %d keys", PMI_SERVER_KEYS_PER_RANK);
    ok (says (&w, 0, "cmd=put kvsname=kvs key=k0 value=w\n", "cmd=put_result rc=0 msg=success\n")
            && says (&w, 1, "cmd=put kvsname=kvs key=more value=v\n", "cmd=put_result rc=0 msg=success\n"),
        "a rank at its limit of keys may still replace them, and each rank has its own limit");
    pmi_server_destroy (w.s);
}

static void test_secret (void)
{
    struct world w;
    const char *ask = "cmd=get kvsname=kvs key=idtree.secret\n";

    begin (&w);
    ok (w.made == 0, "the server makes no secret before the first request for one");
    ok (says (&w, 1, ask, "cmd=get_result rc=0 msg=success value=public,secret-1-0\n")
            && says (&w, 2, ask, "cmd=get_result rc=0 msg=success value=public,secret-2-1\n"),
        "each rank gets a secret of its own");
    pmi_server_reset (w.s, 1);
    ok (says (&w, 1, ask, "cmd=get_result rc=0 msg=success value=public,secret-1-0\n") && w.made == 2,
        "a restarted rank gets the same secret");
    ok (says (&w, 0, "cmd=put kvsname=kvs key=idtree.secret value=x\n", "cmd=put_result rc=-1 msg=reserved_key\n"),
        "a rank cannot put a secret");
    pmi_server_destroy (w.s);
}

static void test_barrier (void)
{
    struct world w;
    const char *in = "cmd=barrier_in\n", *out = "cmd=barrier_out rc=0\n";

    begin (&w);
    ok (says (&w, 0, in, "") && says (&w, 1, in, ""), "ranks wait in a barrier until the last one enters");
    ok (says (&w, 1, in, ""), "a rank that enters a barrier again while it waits is not counted again");
    w.out[0][0] = w.out[1][0] = '\0';
    ok (says (&w, 2, in, out) && !strcmp (w.out[0], out) && !strcmp (w.out[1], out),
        "when the last rank enters a barrier, each rank gets one answer");
    pmi_server_reset (w.s, 1);
    ok (says (&w, 1, in, out), "a restarted rank immediately passes a barrier that all others have passed");
    ok (says (&w, 1, in, ""), "a restarted rank waits at the next barrier");
    pmi_server_reset (w.s, 1);
    ok (says (&w, 0, in, "") && says (&w, 2, in, ""), "a rank that died in a barrier is not counted");
    ok (says (&w, 1, in, out), "a rank that was restarted passes the barrier that the others passed before");
    w.out[0][0] = '\0';
    ok (says (&w, 1, in, out) && !strcmp (w.out[0], out), "a rank that was restarted completes the next barrier");
    pmi_server_destroy (w.s);
}

/* Lines other than PMI between a launcher and its own processes. */
static void test_own (void)
{
    struct world w;
    char line[64];
    int puts = 0;

    begin (&w);
    ok (pmi_server_set (w.s, "mine", "1,2") == 0
            && says (&w, 1, "cmd=get kvsname=kvs key=mine\n", "cmd=get_result rc=0 msg=success value=1,2\n"),
        "all ranks can get a key that the server put");
    ok (says (&w, 1, "cmd=put kvsname=kvs key=mine value=x\n", "cmd=put_result rc=-1 msg=key_of_another_rank\n"),
        "a rank cannot put a key that the server put");
    ok (says (&w, 2, "cmd=mine rank=7\n", "") && !strcmp (w.line, "2:cmd=mine rank=7"),
        "a line that is not PMI is passed to the launcher's callback");
    pmi_server_set_keys (w.s, 100);
    for (; puts < 200; puts++) {
        snprintf (line, sizeof (line), "cmd=put kvsname=kvs key=k%d value=x\n", puts);
        if (!says (&w, 0, line, "cmd=put_result rc=0 msg=success\n"))
            break;
    }
    ok (puts == 100, "the limit of keys of a rank can be set");
    pmi_server_destroy (w.s);
}

static void test_nonsense (void)
{
    struct world w;
    idt_error_t error;
    char big[PMI_LINE_MAX + 2];

    begin (&w);
    memset (big, 'x', sizeof (big));
    ok (pmi_server_input (w.s, 0, "cmd=dance\n", 10, &error) < 0 && errno == EPROTO && strstr (error.text, "dance"),
        "an unknown command ends the connection with an error that names it");
    ok (pmi_server_input (w.s, 0, "\n", 1, NULL) < 0 && errno == EPROTO, "an empty line ends the connection");
    ok (pmi_server_input (w.s, 1, big, sizeof (big), NULL) < 0 && errno == EPROTO,
        "a line over the limit ends the connection");
    pmi_server_reset (w.s, 1);
    ok (says (&w, 1, "cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=kvs rc=0\n"),
        "a restarted rank begins with an empty line buffer");
    ok (!pmi_server_create (0, "kvs", &ops, &w) && errno == EINVAL && !pmi_server_create (1, "a b", &ops, &w)
            && errno == EINVAL,
        "EINVAL: a server without ranks, or with a blank in its name");
    pmi_server_destroy (w.s);
    pmi_server_destroy (NULL);
}

int main (void)
{
    test_conversation ();
    test_bizcards ();
    test_limit ();
    test_secret ();
    test_barrier ();
    test_own ();
    test_nonsense ();
    return done_testing ();
}
