#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5031-manual.t - the manual and the broker have the same attributes
test_description='idtree-broker(1) describes the existing attributes, with their defaults'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 2

manual=$IDTREE_SRCDIR/doc/man/idtree-broker.1
# Each attribute as NAME or NAME (DEFAULT), one a line, from the lines that follow .TP.
awk '/^\.SH/ { on = /ATTRIBUTES/ } /^\.SS Set by the broker/ { on = 0 }
    tag && on { gsub (/^\.BR? |"/, ""); gsub (/, |,$/, " "); gsub (/ +\(/, "("); gsub (/ +/, "\n"); print }
    { tag = /^\.TP/ }' "$manual" >described
awk '/^\.S[HS]/ { on = 0 } on { gsub (/[,.]( |$)/, "\n"); print } /^\.SS Set by the broker/ { on = 1 }' "$manual" |
    sed '/^$/d' >told
idtree module load -r 0 job-ingest && idtree module load -r 1 job-ingest || exit 1
idtree lsattr -v >here
idtree lsattr -v -r 1 >there

test_expect_success 'attributes can be read from the manual' '
    grep "^tbon.topo(kary:32)$" described && grep "^statedir$" described && grep "^broker.uuid$" told
'
test_expect_success 'each attribute of a broker is described in the manual, or listed there as set by the broker' '
    sed "s/(.*//" described | cat - told | sort >known &&
    cat here there | cut -d" " -f1 | sort -u | comm -23 - known >unknown && test_must_be_empty unknown
'
test_expect_success 'each attribute that the manual lists as set by the broker exists' '
    cat here there | cut -d" " -f1 | sort -u >all && sort told | comm -23 - all >missing && test_must_be_empty missing
'
test_expect_success 'each default in the manual is the default of the broker' '
    sed -n "s/(\(.*\))/ \1/p" described >defaults && test "$(wc -l <defaults)" -gt 20 &&
    while read -r name value; do
        test "$(idtree getattr "$name")" = "$value" || { echo "$name is not $value"; return 1; }
    done <defaults
'
test_expect_success 'each attribute that the manual describes without a default is accepted by the broker' '
    for name in $(grep -v "(" described); do
        idtree broker -o "$name=" true 2>err </dev/null
        test_must_fail grep "unknown attribute" err || return 1
    done
'
test_done
