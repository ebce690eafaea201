/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker_group_test.c - the brokers of a process, and a launcher that sends orders and records the reports
 *
 * The process under test runs in a thread. Its modules are in t/modules. The module sharing starts only when a certain
 * file exists, and a broker is not up before all its modules have started.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "broker/boot/boot.h"
#include "broker/broker_group.h"
#include "broker/launcher_orders.h"
#include "libpmi/pmi_server.h"
#include "libpmi/pmi_wire.h"
#include "test/tap.h"

#define RANKS 7 /* the tree: 0; its children 1 and 2; their children 3, 4 and 5, 6 */

struct run {
    int fd; /* the launcher's end of the connection */
    struct pmi_server *pmi;
    bool takes_orders;
    bool gone;             /* the process has closed its end */
    char state[RANKS][16]; /* the last report of a rank: up or down */
    bool stopped[RANKS];
    int told[RANKS];        /* number of reports of a rank */
    char heard[RANKS][128]; /* all states that were reported for a rank */
    struct boot_conf boot;
    struct attrs *attrs;
    struct process *process;
    pthread_t thread;
    int exit_code;
    char dir[64];
    char go[96]; /* the file for which the module sharing waits */
};

/* --- the launcher ------------------------------------------------------------------------------------------ */

static void send_cb (void *arg, int rank, const char *line)
{
    struct run *run = arg;

    if (send (run->fd, line, strlen (line), MSG_NOSIGNAL) != (ssize_t)strlen (line))
        run->gone = true;
}

static int secret_cb (void *arg, int rank, char *buf, size_t size)
{
    snprintf (buf, size, "%040d", 7);
    return 0;
}

static void finalized_cb (void *arg, int rank)
{
}

static int line_cb (void *arg, int process, const char *line)
{
    struct run *run = arg;
    char state[16];
    int rank;

    if (pmi_is (line, "idtree_ready"))
        run->takes_orders = true;
    else if (!pmi_is (line, "idtree_rank") || pmi_word_int (line, "rank", &rank) < 0 || rank >= RANKS
             || pmi_word (line, "state", state, sizeof (state)) < 0)
        return -1;
    else {
        size_t len = strlen (run->heard[rank]);

        run->stopped[rank] = strcmp (state, "stopped") == 0;
        if (strcmp (state, "up") == 0 || strcmp (state, "down") == 0)
            strcpy (run->state[rank], state);
        snprintf (run->heard[rank] + len, sizeof (run->heard[rank]) - len, "%s ", state);
        run->told[rank]++;
    }
    return 0;
}

static const struct pmi_server_ops pmi_ops = {
    .send = send_cb, .make_secret = secret_cb, .finalized = finalized_cb, .line = line_cb
};

static void launcher_init (struct run *run)
{
    int fds[2];
    char text[32];

    memset (run, 0, sizeof (*run));
    snprintf (text, sizeof (text), "%d,1", RANKS);
    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0
        || !(run->pmi = pmi_server_create (1, "idtree-test", &pmi_ops, run))
        || pmi_server_set (run->pmi, "idtree.instance", text) < 0)
        bail_out ("cannot make a launcher");
    run->fd = fds[0];
    run->boot = (struct boot_conf){ .method = &boot_pmi, .pmi_fd = fds[1], .size = 1, .topology = "kary:2" };
}

static void launcher_fini (struct run *run)
{
    close (run->fd);
    pmi_server_destroy (run->pmi);
}

/* Read what the process sends, for at most 10 ms. */
static void listen_once (struct run *run)
{
    struct pollfd p = { .fd = run->fd, .events = POLLIN };
    char buf[4096];
    ssize_t n;
    idt_error_t err;

    if (poll (&p, 1, 10) <= 0 || run->gone)
        return;
    if ((n = read (run->fd, buf, sizeof (buf))) <= 0)
        run->gone = true;
    else if (pmi_server_input (run->pmi, 0, buf, n, &err) < 0)
        bail_out (err.text);
}

static void order (struct run *run, int rank, const char *order)
{
    char line[96];

    snprintf (line, sizeof (line), "cmd=idtree_order rank=%d order=%s signal=15\n", rank, order);
    send_cb (run, 0, line);
}

static void wait_state (struct run *run, int rank, const char *state)
{
    wait_until (run->gone || strcmp (run->state[rank], state) == 0) listen_once (run);
}

static void obeyed (struct run *run, int rank, const char *what, const char *state)
{
    order (run, rank, what);
    wait_state (run, rank, state);
}

static void stop (struct run *run, int rank)
{
    order (run, rank, "stop");
    wait_until (run->gone || run->stopped[rank]) listen_once (run);
}

static bool is (const struct run *run, int rank, const char *state)
{
    return !run->gone && strcmp (run->state[rank], state) == 0;
}

/* --- the process ------------------------------------------------------------------------------------------- */

static void *run_main (void *arg)
{
    struct run *run = arg;
    char path[4096];
    const char *build = getenv ("IDTREE_BUILDDIR");
    struct broker_group_conf conf = {
        .process = run->process, .attrs = run->attrs, .boot = run->boot, .tmpdir = "/tmp", .module_path = path
    };
    struct broker_group *group;
    idt_error_t err;

    snprintf (path, sizeof (path), "%s/t/modules/.libs", build ? build : BUILDDIR);
    if (!(group = broker_group_create (&conf)) || broker_group_start (group, &err) < 0)
        bail_out (err.text);
    process_run (run->process);
    run->exit_code = broker_group_exit_code (group);
    broker_group_destroy (group);
    process_destroy (run->process);
    attrs_destroy (run->attrs);
    return NULL;
}

static void run_start (struct run *run, const char *modules)
{
    idt_error_t err;

    launcher_init (run);
    snprintf (run->dir, sizeof (run->dir), "/tmp/crew_test.XXXXXX");
    if (!mkdtemp (run->dir) || !(run->attrs = attrs_create ()) || !(run->process = process_create (&err)))
        bail_out ("cannot make a process");
    snprintf (run->go, sizeof (run->go), "%s/go", run->dir);
    attr_give (run->attrs, "rundir", run->dir, NULL);
    attr_give (run->attrs, "broker.modules", modules, NULL);
    attr_give (run->attrs, "tbon.topo", "kary:2", NULL);
    attr_give (run->attrs, "tbon.timeout", "1", NULL);
    attr_give (run->attrs, "log-stderr-level", "3", NULL);
    if (modules[0])
        attr_give (run->attrs, "sharing.start-at", run->go, NULL);
    if (pthread_create (&run->thread, NULL, run_main, run) != 0)
        bail_out ("cannot make a thread");
    wait_until (run->takes_orders) listen_once (run);
}

static void go (struct run *run)
{
    close (open (run->go, O_CREAT | O_WRONLY, 0600));
}

/* Wait until the process has ended. */
static void run_end (struct run *run)
{
    pthread_join (run->thread, NULL);
    launcher_fini (run);
    unlink (run->go);
    ok (rmdir (run->dir) == 0, "the process of a broker group leaves nothing in its folder");
}

/* End the instance with an order to rank 0. Then end the ranks that did not receive the stop, because they had no
 * parent at that moment.
 */
static void end_all (struct run *run)
{
    obeyed (run, 0, "end", "down");
    for (int i = 1; i < RANKS && !run->gone; i++)
        if (!is (run, i, "down"))
            order (run, i, "end");
    wait_until (run->gone) listen_once (run);
}

/* --- orders ------------------------------------------------------------------------------------------------ */

static void no_order (void *arg, uint32_t rank, enum order order, int signum)
{
}

static void *boot_main (void *arg)
{
    struct run *run = arg;
    idt_error_t err;
    struct boot *boot = boot_create (&run->boot, &err);

    if (!boot)
        bail_out (err.text);
    __atomic_store_n (&run->takes_orders, true, __ATOMIC_SEQ_CST);
    return boot;
}

/* A rank changes several times before the launcher reads a report. */
static void test_news (void)
{
    struct run run;
    idt_reactor_t *r = idt_reactor_create ();
    struct launcher_orders *o;
    struct boot *boot;
    void *result;

    launcher_init (&run);
    if (pthread_create (&run.thread, NULL, boot_main, &run) != 0)
        bail_out ("cannot make a thread");
    wait_until (__atomic_load_n (&run.takes_orders, __ATOMIC_SEQ_CST)) listen_once (&run);
    pthread_join (run.thread, &result);
    boot = result;
    if (!(o = launcher_orders_create (r, boot, no_order, NULL, NULL)))
        bail_out ("cannot make launcher_orders");
    launcher_orders_tell (o, 1, RANK_UP, 0);
    launcher_orders_tell (o, 1, RANK_STOPPED, 0);
    launcher_orders_tell (o, 2, RANK_UP, 0);
    launcher_orders_tell (o, 2, RANK_STOPPED, 0);
    launcher_orders_tell (o, 2, RANK_GOING, 0);
    launcher_orders_tell (o, 2, RANK_STOPPED, 0);
    launcher_orders_tell (o, 3, RANK_UP, 0);
    launcher_orders_tell (o, 3, RANK_STOPPED, 0);
    launcher_orders_tell (o, 3, RANK_DOWN, 9);
    launcher_orders_tell (o, 4, RANK_UP, 0);
    wait_until (run.told[4] > 0)
    {
        idt_reactor_run (r, IDT_REACTOR_NOWAIT);
        listen_once (&run);
    }
    ok (strcmp (run.heard[1], "up stopped ") == 0, "a rank that came up and was stopped is reported as both: %s",
        run.heard[1]);
    ok (strcmp (run.heard[2], "up going stopped ") == 0,
        "a rank that was stopped, continued and was stopped again "
        "is reported as both: %s",
        run.heard[2]);
    ok (strcmp (run.heard[3], "down ") == 0, "a rank that came up and has ended is reported only as down: %s",
        run.heard[3]);
    ok (run.told[0] == 0 && run.told[5] == 0, "ranks whose status has not changed are not reported");
    launcher_orders_destroy (o);
    boot_destroy (boot);
    idt_reactor_destroy (r);
    launcher_fini (&run);
}

/* --- clients ----------------------------------------------------------------------------------------------- */

static idt_future_t *ask (idt_t *h, const char *topic, int rank, const char *key, const char *value)
{
    idt_future_t *f = idt_rpc_pack (h, topic, rank, 0, "{s:s}", key, value);

    if (!f)
        bail_out ("cannot send a request");
    return f;
}

static bool answered (idt_future_t *f)
{
    bool good = idt_rpc_get (f, NULL) == 0;

    idt_future_destroy (f);
    return good;
}

/* --- brokers ----------------------------------------------------------------------------------------------- */

static void test_up (void)
{
    struct run run;
    int up = 0;

    run_start (&run, "");
    for (int i = 0; i < RANKS; i++)
        wait_state (&run, i, "up");
    for (int i = 0; i < RANKS; i++)
        up += run.told[i] == 1;
    ok (up == RANKS, "each rank is reported once as up");
    end_all (&run);
    run_end (&run);
    ok (run.exit_code == 0, "when rank 0 ends, all brokers of the group end, and then their process");
}

/* When no rank is up yet, the children of rank 1 wait for rank 1. Then rank 1 is stopped. */
static void test_stopped_early (void)
{
    struct run run;

    run_start (&run, "sharing");
    stop (&run, 1);
    stop (&run, 5);
    go (&run);
    wait_state (&run, 3, "up");
    wait_state (&run, 4, "up");
    wait_state (&run, 6, "up");
    ok (is (&run, 3, "up") && run.stopped[1] && run.told[1] == 1,
        "ranks whose parent is stopped before it is up come up without that parent");
    ok (run.stopped[5] && run.told[5] == 1, "a rank that is stopped while it waits does not come up");
    obeyed (&run, 1, "cont", "up");
    obeyed (&run, 5, "cont", "up");
    ok (is (&run, 1, "up") && is (&run, 5, "up"), "stopped ranks come up after SIGCONT");
    end_all (&run);
    run_end (&run);
}

/* When a rank is stopped or killed, other ranks of the process are still reached at its socket. */
static void test_socket (void)
{
    struct run run;
    char uri[128];
    idt_error_t err;

    run_start (&run, "");
    for (int i = 0; i < RANKS; i++)
        wait_state (&run, i, "up");
    snprintf (uri, sizeof (uri), "local://%s/local-0?rank=3", run.dir);
    stop (&run, 0);
    for (int i = 0; i < 2; i++) {
        idt_t *h = idt_open (uri, &err);

        ok (h && answered (ask (h, "attr.get", 3, "name", "rank")),
            "the socket of a rank that is %s still serves another rank", i == 0 ? "stopped" : "killed");
        idt_close (h);
        if (i == 0)
            obeyed (&run, 0, "kill", "down");
    }
    obeyed (&run, 0, "run", "up");
    end_all (&run);
    run_end (&run);
}

/* A killed rank is run again when all other ranks have ended. */
static void test_last (void)
{
    struct run run;

    run_start (&run, "");
    for (int i = 0; i < RANKS; i++)
        wait_state (&run, i, "up");
    obeyed (&run, 0, "kill", "down");
    for (int i = RANKS - 1; i > 0; i--)
        obeyed (&run, i, "end", "down");
    ok (!run.gone, "a process whose other ranks have ended waits for a killed rank");
    obeyed (&run, 0, "run", "up");
    ok (is (&run, 0, "up"), "a killed rank is run again in a process without other brokers");
    end_all (&run);
    run_end (&run);
}

/* --- the thread that modules share ------------------------------------------------------------------------- */

static int count_lines (const char *path, const char *text)
{
    FILE *f = fopen (path, "r");
    char line[512];
    int n = 0;

    while (f && fgets (line, sizeof (line), f))
        n += strstr (line, text) != NULL;
    if (f)
        fclose (f);
    return n;
}

/* Let rank 0's module block the shared thread until the file 'path' exists. Send rank 1's module a request, which waits
 * behind this.
 */
static void keep_thread (idt_t *h, const char *path, idt_future_t *f[2])
{
    f[0] = ask (h, "sharing.work", 0, "path", path);
    f[1] = ask (h, "sharing.attr", 1, "name", "rank");
    if (!answered (ask (h, "attr.get", 0, "name", "rank")) || !answered (ask (h, "attr.get", 1, "name", "rank")))
        bail_out ("no broker answers");
}

/* Kill rank 1 while rank 0's module blocks the shared thread, for longer than the broker waits for the end of a module.
 */
static void left_behind (struct run *run, const char *log)
{
    char path[96];
    idt_future_t *f[2];
    idt_error_t err;

    snprintf (path, sizeof (path), "local://%s/local-0", run->dir);
    idt_t *h = idt_open (path, &err);
    if (!h)
        bail_out (err.text);
    snprintf (path, sizeof (path), "%s/enough", run->dir);
    keep_thread (h, path, f);
    obeyed (run, 1, "kill", "down");
    ok (count_lines (log, "sharing does not end: it is left behind") == 1,
        "a module that does not end in time is left behind");
    ok (!answered (f[1]), "a request to a module that is left behind is answered with an error");
    close (open (path, O_CREAT | O_WRONLY, 0600));
    ok (answered (f[0]), "the thread of a module left behind continues when the module no longer blocks");
    obeyed (run, 1, "run", "up");
    ok (answered (ask (h, "sharing.attr", 1, "name", "rank")),
        "a rank that lost a module has the module again after a reload");
    obeyed (run, 1, "kill", "down");
    ok (count_lines (log, "left behind") == 1,
        "a reloaded module ends in time, and the one that was left behind has ended, too");
    unlink (path);
    idt_close (h);
}

static void test_left_behind (void)
{
    struct run run;
    char log[] = "/tmp/crew_test.XXXXXX";
    int err = dup (STDERR_FILENO), fd = mkostemp (log, O_APPEND);

    if (fd < 0 || dup2 (fd, STDERR_FILENO) < 0)
        bail_out ("cannot make a log");
    run_start (&run, "sharing");
    go (&run);
    for (int i = 0; i < RANKS; i++)
        wait_state (&run, i, "up");
    left_behind (&run, log);
    order (&run, 1, "run");
    wait_state (&run, 1, "up");
    end_all (&run);
    run_end (&run);
    dup2 (err, STDERR_FILENO);
    close (err);
    close (fd);
    unlink (log);
}

int main (void)
{
    test_news ();
    test_up ();
    test_stopped_early ();
    test_socket ();
    test_last ();
    test_left_behind ();
    return done_testing ();
}
