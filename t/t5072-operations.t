#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5072-operations.t - the manual for operators has all messages and right numbers, and is installed
test_description='idtree-operations(7) and the guides agree with the programs'
. "$(dirname "$0")/idtree-sharness.sh"

page=$IDTREE_SRCDIR/doc/man/idtree-operations.7
if command -v python3 >/dev/null; then test_set_prereq PYTHON; fi
if command -v man >/dev/null && ! man -l /dev/null 2>&1 | grep -q minimized; then test_set_prereq MAN; fi

test_expect_success PYTHON 'each error message that names an option has its cause in a manual' '
    (cd "$IDTREE_SRCDIR" && scripts/messages) >missing; cat missing && test_must_be_empty missing &&
    (cd "$IDTREE_SRCDIR" && scripts/messages --all) >all && test "$(wc -l <all)" -gt 60 && grep "fluid.recover-horizon=" all
'
test_expect_success PYTHON 'the check of error messages finds a message that is in no manual' '
    mkdir -p tree/doc tree/src && cp -r "$IDTREE_SRCDIR/doc/man" tree/doc &&
    printf "void f (void)\n{\n    cmd_die (cmd, \"the moon is full: see fluid.lease\");\n}\n" >tree/src/f.c &&
    (cd tree && test_expect_code 1 "$IDTREE_SRCDIR/scripts/messages") >missing && grep "^src/f.c: the moon is full" missing
'
test_expect_success 'the time limits in the manual are those of ids' '
    grep "2^53.*6 days" "$page" && grep "2^63.*17.4 years" "$page" && grep "EOVERFLOW.*34.8 years" "$page" &&
    idtree id show -e 2026-01-01 --json 9007199254740992 9223372036854775808 18446744073692774400 >out && cat out &&
    grep "2026-01-07T" out && grep "2043-06" out && grep "2060-11" out
'
test_expect_success 'the commands that the manual uses exist' '
    grep -E "^(\.BR? |idtree |runuser )" "$page" | grep -o "idtree [a-z][a-z]*\( [a-z][a-z]*\)\?" | grep -v " or\| \(was\|are\)" | sort -u >used &&
    cat used && grep "idtree state backup" used && while read -r _ word more; do
        if idtree help "$word" | grep -q "^usage: idtree $word COMMAND"; then idtree help "$word" "$more"; else idtree help "$word"; fi ||
            return 1
    done <used
'
test_expect_success 'the procedure in the manual replaces a lost disk of rank 0, and no id is issued twice' '
    idtree init --statedir "$PWD/state" --name site --epoch 2026-01-01 >made && cat made && uuid=$(grep -o "[0-9a-f-]\{36\}" made) &&
    idtree broker -o statedir="$PWD/state" idtree id new -n 3 --to dec >before && rm -r state &&
    test_expect_code 3 idtree broker -o statedir="$PWD/state" true && mkdir -m 700 state &&
    test_expect_code 3 idtree broker -o statedir="$PWD/state" true &&
    idtree init --statedir "$PWD/state" --name site --uuid "$uuid" --epoch 2026-01-01 &&
    test_expect_code 3 idtree broker -o statedir="$PWD/state" true &&
    idtree broker -o statedir="$PWD/state" -o fluid.recover-horizon="$(date -u -d "1 minute" +%FT%TZ)" true &&
    idtree broker -o statedir="$PWD/state" sh -c "idtree id new --to dec; idtree getattr instance.uuid" >after && cat after &&
    grep "$uuid" after && test "$(sed -n 1p after)" -gt "$(sed -n \$p before)"
'
if test "$(id -u)" = 0; then test_set_prereq ROOT; fi
# The folder belongs to the user of the service, and the operator who follows the manual is root.
test_expect_success ROOT 'the procedure in the manual makes a backup as root whose files belong to the user of the service' '
    sed -n "/^.SH BACKUP/,/^.SH THE DISK/p" "$page" | sed -n "/^\.EX/,/^\.EE/p" | sed "/^\./d; s/\\\\-/-/g" >block.sh && cat block.sh && grep "state check" block.sh &&
    idtree init --statedir "$PWD/served" >made && idtree broker -o statedir="$PWD/served" idtree doc new d && chown -R 1:1 served &&
    mkdir bin && printf "#!/bin/sh\necho \$* >>units\n" >bin/systemctl && chmod +x bin/systemctl &&
    sed "s|/var/lib/idtree|served|; s|/backup|backups|" block.sh >ours.sh && PATH=$PWD/bin:$PATH sh -ex ours.sh && cat units && grep "start idtree" units &&
    ls -l served backups && test -e backups/idtree-*/compressor.sqlite && test -z "$(find served ! -user 1)"
'
test_expect_success 'guides and manuals are installed' '
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$IDTREE_BUILDDIR" install-dist_guideDATA install-dist_figureDATA install-man7 DESTDIR="$PWD/root" >log 2>&1 &&
    find root -name scaling.md -o -name latency.svg -o -name "idtree-operations.7*" >found && cat found &&
    test "$(wc -l <found)" = 3 && grep "/doc/idtree/guide/scaling/latency.svg" found
'
test_expect_success MAN 'the manual page is formatted without a warning' '
    MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 "$page" 2>warnings >/dev/null; cat warnings && test_must_be_empty warnings
'
test_done
