/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobload.c - submits jobs, consumes them, and checks the records
 *
 * The exit status is 0 if there is no violation, 1 after violations, and 2 after a fatal error.
 */
#include "config.h"

#include <getopt.h>
#include <signal.h>

#include "jobs.h"
#include "judge.h"
#include "libutil/duration.h"
#include "must.h"

#define WINDOW_MAX 100000
#define SIZE_MAX_BYTES (1u << 20)

static const char usage[] =
    "Usage: jobload submit -f RECORD [-n COUNT] [-w WINDOW] [-s BYTES] [-k] [-m] URI...\n       jobload consume -f "
    "RECORD [-w WINDOW] [-a] URI\n       jobload crowd DIR SEED URI-PREFIX RANK...\n       jobload check "
    "RECORD...\nsubmit    COUNT jobs to each URI, or until standard input ends; WINDOW (64) are pending\n          "
    "-k  with keys: jobs with an unknown fate are submitted again   -m  some are long, some must be "
    "refused\nconsume   until standard input ends and all stored jobs are acknowledged\n          -a  continue after "
    "the acknowledged jobs, not after those in RECORD\ncrowd     two submitters of each rank and a consumer, killed "
    "now and then, until standard input ends; checks\ncheck     checks the records of submitters and consumers\n";

static int refuse (void)
{
    fputs (usage, stderr);
    return EXIT_DIED;
}

struct options {
    struct submit_options submit;
    struct consume_options consume;
};

static uint64_t number (const char *text, uint64_t max)
{
    uint64_t n = 0;

    if (parse_number (text, 1, max, &n) < 0)
        exit (refuse ());
    return n;
}

static void take_options (struct options *o, int argc, char **argv)
{
    int c;

    *o = (struct options){ .submit = { .window = 64 } };
    while ((c = getopt (argc, argv, "f:n:w:s:kma")) != -1)
        switch (c) {
        case 'f':
            o->submit.record = o->consume.record = optarg;
            break;
        case 'n':
            o->submit.count = number (optarg, UINT32_MAX);
            break;
        case 'w':
            o->submit.window = o->consume.window = (uint32_t)number (optarg, WINDOW_MAX);
            break;
        case 's':
            o->submit.size = number (optarg, SIZE_MAX_BYTES);
            break;
        case 'k':
            o->submit.keys = true;
            break;
        case 'm':
            o->submit.mixed = true;
            break;
        case 'a':
            o->consume.acked = true;
            break;
        default:
            exit (refuse ());
        }
}

static int submit (int argc, char **argv)
{
    struct options o;

    take_options (&o, argc, argv);
    o.submit.uris = (const char **)argv + optind;
    return o.submit.record && optind < argc ? submitter_main (&o.submit) : refuse ();
}

static int consume (int argc, char **argv)
{
    struct options o;

    take_options (&o, argc, argv);
    o.consume.uri = argv[optind];
    return o.consume.record && optind == argc - 1 ? consumer_main (&o.consume) : refuse ();
}

static int crowd (const char *program, int argc, char **argv)
{
    struct crowd_options o = { .program = program, .dir = argv[1], .nranks = argc - 4, .ranks = argv + 4 };

    if (argc < 5 || parse_number (argv[2], 0, UINT64_MAX / 2, &o.seed) < 0)
        return refuse ();
    o.uri_prefix = argv[3];
    return crowd_main (&o);
}

static int check (int argc, char **argv)
{
    struct judge *j = judge_create ();

    if (argc < 2)
        return refuse ();
    for (int i = 1; i < argc; i++)
        if (judge_file (j, argv[i]) < 0)
            die (argv[i]);
    unsigned long wrong = judge_tell (j, stdout);
    judge_destroy (j);
    return wrong ? 1 : 0;
}

int main (int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    signal (SIGPIPE, SIG_IGN);
    if (!strcmp (verb, "submit"))
        return submit (argc - 1, argv + 1);
    if (!strcmp (verb, "consume"))
        return consume (argc - 1, argv + 1);
    if (!strcmp (verb, "crowd"))
        return crowd (argv[0], argc - 1, argv + 1);
    if (!strcmp (verb, "check"))
        return check (argc - 1, argv + 1);
    return refuse ();
}
