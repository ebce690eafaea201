#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2071-ingest-requests.t - valid and invalid submissions, byte for byte
test_description='job-ingest.submit accepts each valid form of a request, and refuses others with a message'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 2 --topology kary:1 -o broker.modules=fluid,job-ingest -o log-stderr-level=3 \
    -o ingest.require-signature=off

spec='{"version":1,"resources":[{"type":"slot","count":1,"label":"a","with":[{"type":"core","count":1}]}],"tasks":[{"command":["x"],"slot":"a","count":{"per_slot":1}}],"attributes":{"system":{"duration":0}}}'
base64() { command base64 | tr -d '\n'; }
header=$(printf 'version\0i1\0userid\0i%s\0mechanism\0snone\0' "$(id -u)" | base64)
payload=$(printf %s "$spec" | base64)
q="'"
submit() { "$IDTREE_BUILDDIR/t/ask" 1 job-ingest.submit "$1" </dev/null; }
takes() { # request
    submit "$1" >out && id=$(sed -n 's/^{"id":\([0-9]*\),.*/\1/p' out) && test -n "$id" || { cat out; return 1; }
}
refuses() { # errno and sentence, request
    if submit "$2" >out 2>err; then cat out; return 1; fi
    test "$(cat err)" = "$1" || { cat err; return 1; }
}

test_expect_success 'the J of a submission is accepted with and without escapes' '
    takes "{\"J\":\"$header.$payload.none\",\"urgency\":16,\"flags\":0}" &&
    takes " { \"flags\" : 0 , \"\\u004a\" : \"$header\\u002e$payload.non\\u0065\" , \"other\" : [ { } ] } " &&
    idtree job show --json "$id" | grep "\"urgency\":16,"
'
test_expect_success 'a long submission is accepted in each form, and is checked in a thread' '
    printf %s "$spec" | sed "s/\"x\"/\"$(printf %050000d 0)\"/" >long.json && long=$(base64 <long.json) &&
    takes "{\"J\":\"$header.$long.none\"}" && idtree job show --json "$id" | grep "\"command\":\[\"0000" >/dev/null &&
    takes "{\"J\":\"$header\\u002e$long.none\"}" && idtree job show --json "$id" | grep "\"command\":\[\"0000" >/dev/null &&
    takes "{\"jobspec\":$(cat long.json)}" &&
    refuses "EINVAL: J: signature: must be none" "{\"J\":\"$header.$long.no\\u006ee!\"}"
'
test_expect_success 'a jobspec is accepted as a text and as an object' '
    takes "{\"jobspec\":\"$(printf %s "$spec" | sed "s/[\"]/\\\\&/g")\"}" && idtree job show --json "$id" >a &&
    takes "{\"jobspec\": $(printf %s "$spec" | sed "s/,/ ,\n/g"),\"urgency\":16}" && idtree job show --json "$id" >b &&
    sed "s/.*\"jobspec\"//" a >spec.a && sed "s/.*\"jobspec\"//" b >spec.b && grep command spec.a && cmp spec.a spec.b &&
    test "$(wc -l <b)" = 1
'
test_expect_success 'the key and the nonce of a submission may have escapes' '
    takes "{\"J\":\"$header.$payload.none\",\"key\":\"caf\\u00e9\"}" && first=$id &&
    takes "{\"J\":\"$header.$payload.none\",\"key\":\"café\"}" && test "$id" = "$first" &&
    takes "{\"J\":\"$header.$payload.none\",\"nonce\":\"\\u0031\"}" && first=$id &&
    takes "{\"J\":\"$header.$payload.\\u006eone\",\"nonce\":\"1\"}" && test "$id" = "$first" &&
    takes "{\"J\":\"$header.$payload.none\",\"nonce\":\"2\"}" && test "$id" != "$first"
'
test_expect_success 'a nonce that ends like the beginning of a job is read as a nonce' '
    text=$(printf %s "$spec" | sed "s/[\"]/\\\\&/g") &&
    takes "{\"jobspec\":\" $text\",\"nonce\":\"1\"}" && first=$id &&
    takes "{\"jobspec\":\"$text\",\"nonce\":\"1 \"}" && test "$id" != "$first" &&
    takes "{\"jobspec\":\"$text\",\"nonce\":\"12345678901234567\"}" && first=$id &&
    takes "{\"jobspec\":\"$text\",\"nonce\":\"12345678901234567\"}" && test "$id" = "$first"
'
test_expect_success 'a submission whose payload is not a JSON object is refused' '
    refuses "EPROTO: payload is not a JSON object" "[]" && refuses "EPROTO: payload is not a JSON object" "5" &&
    refuses "EPROTO: unexpected token near end of file" "" && refuses "EPROTO: invalid token near ${q}nul$q" "{\"J\":nul}" &&
    refuses "EPROTO: duplicate object key near $q\"J\"$q" "{\"J\":\"a\",\"J\":\"b\"}" &&
    refuses "EPROTO: unable to decode byte 0xff near $q\"$q" "$(printf "{\"J\":\"\\377\"}")" &&
    refuses "EPROTO: too deep near $q[$q" "{\"J\":$(printf %2000s "" | tr " " "[")"
'
test_expect_success 'a submission with a missing or invalid field is refused with the name of the field' '
    refuses "EPROTO: J: is missing" "{}" && refuses "EINVAL: J: must be a string" "{\"J\":null}" &&
    refuses "EINVAL: J: must be HEADER.PAYLOAD.SIGNATURE, three parts separated by two periods" "{\"J\":\"\"}" &&
    for urgency in 32 -1 1.0 \"1\" null 9223372036854775807; do
        refuses "EINVAL: urgency: must be an integer from 0 to 31" "{\"J\":\"\",\"urgency\":$urgency}" || return 1
    done &&
    for flags in 2147483648 -1 1e0 []; do
        refuses "EINVAL: flags: must be an integer from 0 to 2147483647" "{\"J\":\"\",\"flags\":$flags}" || return 1
    done &&
    for name in "\"\"" 5 "\"$(printf %065d 0)\"" "\"$(printf %063d 0)é\"" null; do
        refuses "EINVAL: key: must be a string of 1 to 64 bytes" "{\"J\":\"\",\"key\":$name}" &&
            refuses "EINVAL: nonce: must be a string of 1 to 64 bytes" "{\"J\":\"\",\"nonce\":$name}" || return 1
    done &&
    takes "{\"J\":\"$header.$payload.none\",\"key\":\"$(printf %062d 0)\\u00e9\"}" &&
    refuses "EINVAL: key and nonce: only one of them is allowed" "{\"J\":\"\",\"key\":\"a\",\"nonce\":\"b\"}"
'
test_expect_success 'an invalid jobspec is refused as an invalid jobspec, whatever the type of its value' '
    refuses "EINVAL: jobspec: must be an object, or a string that has one" "{\"jobspec\":null}" &&
    refuses "EINVAL: jobspec: must be an object, or a string that has one" "{\"jobspec\":5}" &&
    refuses "EINVAL: jobspec: line 1, column 261: more levels of nested arrays and objects than 256" \
        "{\"jobspec\":{\"a\":$(printf %258s "" | tr " " "[")$(printf %258s "" | tr " " "]")}}" &&
    refuses "EINVAL: jobspec: version: must be 1, and is missing" "{\"jobspec\":\"{\\u007d\"}"
'
test_done
