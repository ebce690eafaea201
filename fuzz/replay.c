/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* replay.c - run a fuzz target on the files of its corpus, without a fuzzer
 *
 * usage: fuzz_NAME.t [FOLDER]      default: $IDTREE_SRCDIR/fuzz/corpus/NAME
 *
 * It is linked with one target, which defines LLVMFuzzerTestOneInput (), and compiled with FUZZ_NAME. Each file is used
 * as a whole. If it is small, it is also used cut after each of its bytes. The input is always in a block of its exact
 * size, so that a sanitizer detects a read beyond the end.
 */
#include <dirent.h>
#include <string.h>

#include "test/tap.h"

#define CUT_MAX 1024           /* bytes; files up to this size are also used cut */
#define FILE_MAX (1024 * 1024) /* bytes; larger files are refused */

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size);

static void feed (const unsigned char *data, size_t size)
{
    unsigned char *copy = malloc (size > 0 ? size : 1);

    if (!copy)
        bail_out ("out of memory");
    memcpy (copy, data, size);
    LLVMFuzzerTestOneInput (size > 0 ? copy : copy + 1, size);
    free (copy);
}

/* Read a whole file into 'data', which has FILE_MAX bytes. Returns the size, or -1. */
static long slurp (const char *path, unsigned char *data)
{
    FILE *f = fopen (path, "rb");

    if (!f)
        return -1;
    size_t size = fread (data, 1, FILE_MAX, f);
    bool whole = !ferror (f) && fgetc (f) == EOF;
    fclose (f);
    return whole ? (long)size : -1;
}

static void replay (const char *folder, const char *name, unsigned char *data)
{
    char path[4096];

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    long size = slurp (path, data);
    for (long cut = 0; size <= CUT_MAX && cut < size; cut++)
        feed (data, cut);
    if (size >= 0)
        feed (data, size);
    ok (size >= 0, "%s: the target reads the input %s without a crash", FUZZ_NAME, name);
}

static int visible (const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main (int argc, char **argv)
{
    const char *src = getenv ("IDTREE_SRCDIR");
    unsigned char *data = malloc (FILE_MAX);
    struct dirent **entries;
    char folder[2048];

    if (argc > 1)
        snprintf (folder, sizeof (folder), "%s", argv[1]);
    else
        snprintf (folder, sizeof (folder), "%s/fuzz/corpus/%s", src ? src : ".", FUZZ_NAME);

    int n = scandir (folder, &entries, visible, alphasort);
    if (n < 0 || !data)
        bail_out ("the corpus cannot be read");
    for (int i = 0; i < n; i++) {
        replay (folder, entries[i]->d_name, data);
        free (entries[i]);
    }
    free (entries);
    free (data);
    ok (n > 0, "%s: the corpus has files", FUZZ_NAME);
    return done_testing ();
}
