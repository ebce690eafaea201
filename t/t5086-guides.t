#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5086-guides.t - the command blocks of README and the guides, run as they are written
#
# A block is the text between ```sh and ```, or lines that are indented by four blanks. The table below names each block
# by its file and the beginning of its first line, and says how the block is run, or why it cannot be run here. A block
# without a row in the table fails.
test_description='the command blocks of README and the guides work as they are printed'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs bash curl unshare ip
unshare -n true 2>/dev/null || {
    skip_all='no namespace for networks can be made: guides use a fixed port'
    test_done
}
test -x "$IDTREE_BUILDDIR/src/http/idtree-http" || {
    skip_all='idtree-http is not built'
    test_done
}
if test -z "$IDTREE_TEST_INSIDE"; then
    # In a network namespace of this test port 8061 is free.
    cd "$test_cwd" || exit 1
    test -n "$GUIDES_NET" || exec env GUIDES_NET=1 unshare -n /bin/sh -c 'ip link set lo up && exec /bin/sh "$@"' sh "$test_self" "$@"
fi
test_under_idtree 8 --topology kary:2 -o fluid.max-generators=4 -o broker.modules=fluid,job-ingest

# How a block is run: run, in an instance of its own (alone), or "-" and the reason why it is not run.
cat >table <<'END'
README.md|$ git clone|- needs a network, and installs packages: t5080 runs scripts/quickstart
README.md|$ idtree start|run
README.md|job=$(idtree|run
README.md|curl -X POST|run with http
c-programs.md|#include <idtree/page.h>|- C, cut by empty lines: t7071
c-programs.md|int main|- C
c-programs.md|    if (!page|- C
http.md|idtree start|- a shell for a person, who begins here
http.md|systemctl|- wants systemd as process 1
http.md|curl -X POST http://localhost:8061/v1/ids |run with http
http.md|{"type"|- an answer
http.md|curl http://localhost:8061/readyz|run with http
http.md|openssl req|- serves for ever: t5065 does it with files and a port of its own
http.md|(umask 077|- serves for ever: t5065
http.md|install -o|- wants the packaged user and systemd
job-ingest.md|idtree init|alone
job-ingest.md|$ idtree id range|run
job-ingest.md|SELECT|- SQL with parameters
job-ingest.md|idtree job submit|run
live-page.md|idtree-http|run
live-page.md|idtree startctl|run
monitoring.md|idtree metrics|run
monitoring.md|systemctl|- wants systemd as process 1
monitoring.md|# prometheus.yml|- a file of Prometheus
monitoring.md|ExecStart|- a line of a unit
packages.md|scripts/packages|- installs packages: scripts/check-upgrade does so in a clean root
packages.md|apt-get install ./idtree|- wants packages and systemd: scripts/check-upgrade
packages.md|rpmbuild|- builds packages: scripts/check-packaging does so
packages.md|make check-upgrade|- builds packages, for minutes
packages.md|autopkgtest|- wants packages and a root: debian/tests, by scripts/check-upgrade
performance.md|make bench|- measures, for minutes
postgresql.md|apt-get|- wants packages and systemd
postgresql.md|make -C|- wants an installed libidtree: t6040 builds so against the build tree
python.md|python3 -m venv venv|- pip wants a network: t6030 has the module of the build
python.md|python3 -m venv --system|- makes a venv of the system: t6030
python.md|ids = c.fill|- Python
python.md|with idtree|- Python
shell.md|idtree start|- a shell for a person, who begins here
shell.md|id=$(idtree|- t5085
shell.md|coproc|- t5085
shell.md|printf|- t5085
shell.md|idtree info|- t5085
shell.md|idtree getattr|- keys of a person: t5082
shell.md|$ idtree top|- a terminal, until q: t5084
shell.md|idtree top|- t5085
trace.md|idtree start|- a shell for a person, who begins here
trace.md|$ idtree id new|run
trace.md|TRACEPARENT|run
trace.md|with idtree|- Python
trace.md|idtree trace|- until Ctrl-C: t5100
END

# Write each block to a file FILE-LINE, and its first line to a line of "index".
extract() {
    rm -rf blocks && mkdir blocks && : >index
    for guide in "$IDTREE_SRCDIR"/README.md "$IDTREE_SRCDIR"/doc/guide/*.md; do
        awk -v name="$(basename "$guide")" '
            function add(line) { if (file == "") { file = "blocks/" name "-" FNR; print name "|" line "|" file >>"index" } print line >file }
            function finish() { if (file != "") close(file); file = "" }
            /^```/ { finish(); sh = !fence && $0 == "```sh"; fence = !fence; next }
            fence { if (sh) add($0); next }
            /^    ./ { add(substr($0, 5)); next }
            { finish() }' "$guide" || return 1
    done
}
# The rows that match the first line of a block.
rows() { awk -F '|' -v name="$1" -v line="$2" '$1 == name && index(line, $2) == 1' table; }
# The commands of a block. If its first line has a prompt, the lines without a prompt are output.
commands() { if head -n 1 "$1" | grep -q '^\$ '; then sed -n 's/^\$ //p' "$1"; else cat "$1"; fi; }
# Programs that run until they are interrupted, or show a window, are replaced by ones that end.
curl=$(command -v curl) && export curl # before the one below is found
mkdir bin && cat >bin/curl <<'END'
#!/bin/sh
case " $* " in *" -N "*) "$curl" -sSf "$@" 2>/dev/null | head -n 1 ;; *) exec "$curl" -sSf "$@" ;; esac
END
cat >bin/xdg-open <<'END'
#!/bin/sh
. "$IDTREE_SRCDIR/t/wait.sh"
wait_until "the page is served" "$curl" -sSf "$1" | grep -i "<!doctype html"
END
cat >bin/promtool <<'END'
#!/bin/sh
exec grep -c "^idtree_" 
END
chmod +x bin/*
# The programs of the build are in PATH as README says.
eval "PATH=$(sed -n 's/^ *\$ export PATH=//p' "$IDTREE_SRCDIR/README.md" | sed "s|\$PWD/build|$IDTREE_BUILDDIR|g")"
PATH=$PWD/bin:$PATH
export PATH
# Run a block as it is written in a new folder, and then end the jobs that it started in the background.
paste() { # file
    rm -rf place && mkdir place && commands "$1" >place.sh && echo "== $1" &&
        (cd place && bash -e -o pipefail -c '. ../place.sh; status=$?; for job in $(jobs -p); do kill "$job"; done; wait; exit $status') >out 2>&1
    status=$?
    ! grep -q "startctl kill 1" "$1" || { idtree startctl run 1 && wait_served 1; } || return 1
    cat out && return $status
}
# Run a block in an instance of its own, with another folder for /var/lib. The last command of the block starts the
# instance, and gets a command to run in it.
alone() { # file
    var=$(mktemp -d "${TMPDIR:-/tmp}/idtree-guides.XXXXXX") && cleanup "rm -rf $var" && sed "s|/var/lib|$var|" "$1" | sed "\$s|\$| -- idtree job stats|" >alone.sh && env -u IDTREE_URI bash -e alone.sh
}

test_expect_success 'each command block of README and the guides has exactly one row in the table of this test' '
    extract && test "$(wc -l <index)" -gt 40 &&
    while IFS="|" read -r name rest; do
        line=${rest%|*} && test "$(rows "$name" "$line" | wc -l)" = 1 || echo "no row, or several, for $name: $line"
    done <index >wrong &&
    while IFS="|" read -r name line how; do
        grep -qF "$name|$line" index || echo "no block for the row $name: $line"
    done <table >>wrong && cat wrong && test ! -s wrong
'
while IFS='|' read -r name rest; do
    line=${rest%|*} block=${rest##*|} how=$(rows "$name" "${rest%|*}" | cut -d '|' -f 3)
    case $how in
    run) test_expect_success "$name: $(echo "$line" | tr -d "'\"\`")" 'paste "$block"' ;;
    'run with http') test_expect_success "$name: $(echo "$line" | tr -d "'\"\`")" '
        { idtree-http >http.log 2>&1 & } && http=$! && wait_until "it serves" "$curl" -sSf http://localhost:8061/readyz &&
        paste "$block" && kill $http && { wait $http || :; }' ;;
    alone) test_expect_success "$name: $(echo "$line" | tr -d "'\"\`")" 'alone "$block"' ;;
    esac
done <index
test_done
