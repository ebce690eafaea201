/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_launcher.c - arbitrary data for the launcher's control socket, from clients over real sockets
 *
 * The first byte says whether the client waits for the answer. Afterwards another client must be served normally.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/launch/control.h"
#include "fuzz.h"

static json_t *status_cb (void *arg)
{
    return json_pack ("{s:[]}", "brokers");
}

static enum control_result begin_cb (void *arg, const struct control_request *req, idt_error_t *errp)
{
    must (req->verb && strlen (req->verb) < CONTROL_LINE_MAX);
    snprintf (errp->text, sizeof (errp->text), "no verb %.99s", req->verb);
    return strcmp (req->verb, "kill") == 0 || strcmp (req->verb, "stop") == 0 ? CONTROL_WAIT : CONTROL_FAILED;
}

static enum control_result check_cb (void *arg, const struct control_request *req, idt_error_t *errp)
{
    return strcmp (req->verb, "stop") == 0 ? CONTROL_WAIT : CONTROL_DONE;
}

static const struct control_ops ops = { status_cb, begin_cb, check_cb };

struct rig {
    idt_reactor_t *r;
    struct control *ctl;
    struct sockaddr_un addr;
};

static void setup (struct rig *rig)
{
    char dir[] = "/tmp/fuzz_launcher-XXXXXX";

    must (mkdtemp (dir) && (rig->r = idt_reactor_create ()));
    must ((rig->ctl = control_create (rig->r, dir, &ops, NULL, NULL)) != NULL);
    rig->addr.sun_family = AF_UNIX;
    snprintf (rig->addr.sun_path, sizeof (rig->addr.sun_path), "%s/%s", dir, CONTROL_SOCKET);
}

/* End the control object, then remove its socket file and folder. */
static void forget_dir (struct rig *rig)
{
    char dir[sizeof (rig->addr.sun_path)];

    snprintf (dir, sizeof (dir), "%.*s", (int)(strlen (rig->addr.sun_path) - strlen (CONTROL_SOCKET) - 1),
              rig->addr.sun_path);
    control_destroy (rig->ctl);
    idt_reactor_destroy (rig->r);
    unlink (rig->addr.sun_path);
    rmdir (dir);
}

static void turns (struct rig *rig, int n)
{
    for (int i = 0; i < n; i++)
        must (idt_reactor_run (rig->r, IDT_REACTOR_NOWAIT) == 0);
}

static int say (struct rig *rig, const void *data, size_t size)
{
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must (fd >= 0 && connect (fd, (struct sockaddr *)&rig->addr, sizeof (rig->addr)) == 0);
    (void)!send (fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return fd;
}

/* Check that the answer is one object on one line. */
static void check_answer (int fd)
{
    char buf[2 * CONTROL_LINE_MAX];
    ssize_t n = recv (fd, buf, sizeof (buf), MSG_DONTWAIT);

    if (n <= 0)
        return;
    must (buf[n - 1] == '\n');
    json_t *o = json_loadb (buf, n - 1, 0, NULL);
    must (json_is_object (o));
    json_decref (o);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct rig rig = { 0 };
    char buf[64];

    if (size == 0 || size > 4096)
        return 0;
    setup (&rig);
    int fd = say (&rig, data + 1, size - 1);
    turns (&rig, 3);
    control_notify (rig.ctl);
    if (data[0] & 1)
        check_answer (fd);
    else
        close (fd);
    turns (&rig, 2);
    int good = say (&rig, "{\"verb\":\"status\"}\n", 18);
    turns (&rig, 3);
    must (recv (good, buf, sizeof (buf), MSG_DONTWAIT) == 15 && memcmp (buf, "{\"brokers\":[]}\n", 15) == 0);
    close (good);
    if (data[0] & 1)
        close (fd);
    forget_dir (&rig);
    return 0;
}
