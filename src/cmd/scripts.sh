#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# scripts.sh [NAME FILE...]... - print completion_scripts.c: for each NAME the concatenated text of its FILEs
#
# A word that contains a / is a FILE, any other word is a NAME.
set -e
cat <<'END'
/* Written by scripts.sh. */
#include <stddef.h>

#include "cmd/base/cmd.h"

END
names=
for word; do
    case $word in
    */*) od -An -v -tu1 "$word" | sed 's/[0-9][0-9]*/&,/g' ;;
    *)
        test -z "$names" || echo '0 };'
        echo "static const char text_${word}[] = {"
        names="$names $word"
        ;;
    esac
done
echo '0 };'
echo
echo 'const char *const completion_scripts[] = {'
for word in $names; do
    echo "    \"$word\", text_$word,"
done
echo '    NULL,'
echo '};'
