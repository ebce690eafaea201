/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* worker.c - a thread for blocking work */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "libutil/worker.h"

enum task { TASK_NONE, TASK_WORK, TASK_DONE, TASK_FAILED, TASK_END };

struct worker {
    worker_f work;
    void *arg;
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t ended;
    /* the members below are protected by 'lock' */
    bool has_ended;
    void (*over) (void *arg); /* set when worker_leave () stopped waiting */
    void *object;             /* the shared object with the code of this thread, never unloaded */
    enum task task;
    int errnum;
    idt_error_t why;
};

static void do_work (struct worker *w)
{
    idt_error_t why = { "" };

    pthread_mutex_unlock (&w->lock);
    int errnum = w->work (w->arg, &why) < 0 ? (errno ? errno : EIO) : 0;
    pthread_mutex_lock (&w->lock);
    w->why = why;
    w->errnum = errnum;
    if (w->task == TASK_WORK) { /* otherwise the task is TASK_END */
        w->task = errnum ? TASK_FAILED : TASK_DONE;
        eventfd_write (w->fd, 1);
    }
}

static void worker_free (struct worker *w)
{
    int saved = errno;

    if (w->fd >= 0)
        close (w->fd);
    pthread_cond_destroy (&w->ended);
    pthread_cond_destroy (&w->wake);
    pthread_mutex_destroy (&w->lock);
    free (w);
    errno = saved;
}

static void *thread_main (void *arg)
{
    struct worker *w = arg;

    pthread_mutex_lock (&w->lock);
    while (w->task != TASK_END) {
        if (w->task == TASK_WORK)
            do_work (w);
        else
            pthread_cond_wait (&w->wake, &w->lock);
    }
    w->has_ended = true;
    pthread_cond_signal (&w->ended);
    void (*over) (void *arg) = w->over;
    pthread_mutex_unlock (&w->lock);
    if (over) { /* the owner has left: the thread frees the worker */
        over (w->arg);
        worker_free (w);
    }
    return NULL;
}

static void set_task (struct worker *w, enum task task)
{
    pthread_mutex_lock (&w->lock);
    assert (task == TASK_END || w->task == TASK_NONE);
    w->task = task;
    pthread_cond_signal (&w->wake);
    pthread_mutex_unlock (&w->lock);
}

/* Start the thread with all signals blocked, so that other threads of the process handle them. */
static int start_thread (struct worker *w)
{
    sigset_t all, saved;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &saved);
    int rc = pthread_create (&w->thread, NULL, thread_main, w);
    pthread_sigmask (SIG_SETMASK, &saved, NULL);
    errno = rc;
    return rc == 0 ? 0 : -1;
}

struct worker *worker_create (worker_f work, void *arg)
{
    struct worker *w = calloc (1, sizeof (*w));
    pthread_condattr_t monotonic;

    if (!w)
        return NULL;
    w->work = work;
    w->arg = arg;
    pthread_mutex_init (&w->lock, NULL);
    pthread_cond_init (&w->wake, NULL);
    pthread_condattr_init (&monotonic);
    pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init (&w->ended, &monotonic);
    pthread_condattr_destroy (&monotonic);
    if ((w->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 || start_thread (w) < 0) {
        worker_free (w);
        return NULL;
    }
    return w;
}

void worker_destroy (struct worker *w)
{
    if (!w)
        return;
    set_task (w, TASK_END);
    pthread_join (w->thread, NULL);
    worker_free (w);
}

static struct timespec in_ms (unsigned ms)
{
    struct timespec at;

    clock_gettime (CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000 + (at.tv_nsec + ms % 1000 * 1000000L) / 1000000000L;
    at.tv_nsec = (at.tv_nsec + ms % 1000 * 1000000L) % 1000000000L;
    return at;
}

/* Make sure that the shared object that contains this code is never unloaded. It may be a module. */
static void stay_loaded (struct worker *w)
{
    static const char ours;
    Dl_info self;

    if (dladdr (&ours, &self) && self.dli_fname)
        w->object = dlopen (self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

bool worker_leave (struct worker *w, unsigned ms, void (*over) (void *arg))
{
    struct timespec until = in_ms (ms);
    int rc = 0;

    if (!w)
        return true;
    set_task (w, TASK_END);
    pthread_mutex_lock (&w->lock);
    while (!w->has_ended && rc == 0)
        rc = pthread_cond_timedwait (&w->ended, &w->lock, &until);
    bool has_ended = w->has_ended;
    if (!has_ended) {
        stay_loaded (w);
        w->over = over;
        pthread_detach (w->thread);
    }
    pthread_mutex_unlock (&w->lock);
    if (has_ended)
        worker_destroy (w);
    return has_ended;
}

void worker_begin (struct worker *w)
{
    set_task (w, TASK_WORK);
}

int worker_fd (const struct worker *w)
{
    return w->fd;
}

int worker_result (struct worker *w, idt_error_t *errp)
{
    eventfd_t count;
    int rc = 0;

    eventfd_read (w->fd, &count); /* does not block: the descriptor is non-blocking */
    pthread_mutex_lock (&w->lock);
    if (w->task == TASK_DONE || w->task == TASK_FAILED) {
        rc = w->task == TASK_DONE ? 1 : -1;
        if (rc < 0 && errp)
            *errp = w->why;
        errno = w->errnum;
        w->task = TASK_NONE;
    }
    pthread_mutex_unlock (&w->lock);
    return rc;
}
