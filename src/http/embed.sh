#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# embed.sh [PATH TYPE FILE]... - print resource.c: each FILE as it is served at PATH
set -e
cat <<'END'
/* Written by embed.sh. */
#include <string.h>

#include "http/server/server.h"

END
n=0
rows=
while [ $# -ge 3 ]; do
    echo "static const unsigned char bytes_${n}[] = {"
    od -An -v -tu1 "$3" | sed 's/[0-9][0-9]*/&,/g'
    echo '};'
    sum=$(cksum <"$3" | tr ' ' '-')
    rows="$rows    { \"$1\", \"$2\", \"\\\\\"$sum\\\\\"\", bytes_$n, sizeof (bytes_$n) },\\n"
    n=$((n + 1))
    shift 3
done
echo
echo 'static const struct resource resources[] = {'
printf '%b' "$rows"
cat <<'END'
};

const struct resource *resource_find (const char *path)
{
    for (size_t i = 0; i < sizeof (resources) / sizeof (resources[0]); i++)
        if (strcmp (path, resources[i].path) == 0)
            return &resources[i];
    return NULL;
}
END
