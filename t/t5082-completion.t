#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5082-completion.t - completion offers what the instance has, in bash, zsh and fish
test_description='completion of arguments in bash, zsh and fish'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 3

# The words that complete offers, on one line, are the expected ones.
offers() { # expected, word...
    offers_want=$1 && shift
    offers_got=$(echo $(idtree complete "$@" 2>err)) && test_must_be_empty err && test "$offers_got" = "$offers_want" ||
        { echo "$*: $offers_got"; return 1; }
}
offers_some() { # pattern, word...
    some=$1 && shift && idtree complete "$@" >out 2>err && test_must_be_empty err && grep -x -e "$some" out
}

test_expect_success 'completion offers verbs, attributes, modules and services' '
    offers "kill" startctl k && offers "status stop" startctl st && offers "0 1 2" startctl kill "" && offers "0 1 2" startctl kill 1 "" &&
    offers "hostname" getattr hostn && idtree lsattr >want && idtree complete setattr "" | sort >out && test_cmp want out &&
    offers "" setattr log-stderr-level "" && offers "fluid" module stats flu && offers "fluid" module remove -r 1 flu &&
    offers_some job-ingest module load "" && offers_some flax ping "" && offers_some 2 ping ""
'
test_expect_success 'completion offers documents' '
    idtree doc new plan.a && idtree doc new plan.b && idtree doc new other &&
    for c in open close ids show rename delete export import; do
        test "$(echo $(idtree complete doc $c plan. | sort))" = "plan.a plan.b" || { echo $c; return 1; }
    done &&
    offers "other" doc open --rank 1 o && offers "other" doc open --rank=1 o && offers "" doc rename plan.a o && offers "" doc new o
'
test_expect_success 'completion offers the arguments of an option, after the option or after =' '
    offers "words" id new --to w && offers "words" id new -t w && offers "--to=words" id new --to=w && offers "--to=text --to=hex" id new -s sno --to= && offers "words" id new -F w && offers "--format=words" id new --format=w && offers "--format" id new --for &&
    offers "--to=hex" id new --scheme=flax --to=h && offers "--scheme=sno" id new --scheme=s && offers "" id new --to=nosuch && offers "" id new --nosuch=w &&
    offers "" id new --json=w && offers "2" id new --rank 2 && offers "all 0 1 2" module stats --rank "" && offers "warning" logger -s w &&
    offers "--wait=full" overlay status --wait=f && offers "hold" job submit --urgency h &&
    offers "kary:" start --topology k && offers "never" overlay status --color n && offers "TERM" startctl --signal T &&
    offers "request response" trace --type re && offers "fluid" trace --peer flu && offers_some parent trace --peer "" && offers_some 2 trace --peer "" &&
    idtree complete trace -r 1 --peer "" >out && grep -x 0 out && ! grep -x 1 out && ! grep -x 2 out
'
test_expect_success 'for completion an option before an operand does not count as an operand, and after -- no option is offered' '
    offers "other" doc open --timeout 3 --uri "$IDTREE_URI" o && offers "" doc show other "" && offers "" doc show -- --u && offers_some "--uri" doc show --u &&
    offers "" start -s 2 sh "" && offers "" broker --
'
test_expect_success 'completion asks the instance of --uri, not the instance of the environment' '
    IDTREE_URI=local:///nosuch/socket offers "other" doc show --uri "$IDTREE_URI" o && IDTREE_URI=local:///nosuch/socket offers "" doc show o &&
    IDTREE_URI=local:///nosuch/socket offers "words" id new --to w
'
test_expect_success 'completion ends without offering words when the broker is suspended' '
    idtree startctl stop 1 && offers "" getattr --uri "${IDTREE_URI%0}1" "" && offers "" getattr --rank 1 "" && idtree startctl cont 1
'

# Type keys, with TAB, into a real bash, and compare the line that it would run.
cat >keys.py <<'EOT'
import fcntl, os, pty, select, struct, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(PS1="$ ", TERM="dumb", INPUTRC="/dev/null")
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 1000, 0, 0)) # paths are long, and a line that is cut reads otherwise
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
def until(what):
    seen, end = b"", time.monotonic() + 100
    while what not in seen:
        if not select.select([fd], [], [], end - time.monotonic())[0]:
            sys.exit("bash says %r" % seen)
        seen += os.read(fd, 4096)
    return seen
os.write(fd, b"bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; . %s; echo lo''aded\n" % sys.argv[1].encode())
until(b"loaded\r\n")
for line, want in zip(sys.argv[2::2], sys.argv[3::2]):
    os.write(fd, b"echo @; " + line.encode() + b"\t")
    until(b" " + want.encode())
    os.write(fd, b"\x15")
    print("%s -> %s" % (line, want))
os.close(fd)
EOT
if command -v bash >/dev/null && command -v python3 >/dev/null; then test_set_prereq PTY; fi
test_expect_success 'idtree completion prints the installed scripts, and names the shells for which it has one' '
    etc=$IDTREE_SRCDIR/etc/completion && idtree completion bash >scripts.bash && cat "$etc/idtree" "$etc/idtree-http" | cmp - scripts.bash &&
    idtree completion zsh >scripts.zsh && cat "$etc/_idtree" "$etc/_idtree-http" | cmp - scripts.zsh &&
    idtree completion fish >scripts.fish && cat "$etc/idtree.fish" "$etc/idtree-http.fish" | cmp - scripts.fish &&
    test_expect_code 2 idtree completion ksh >out 2>err && test_must_be_empty out && grep "ksh.*bash, zsh or fish" err &&
    test_expect_code 2 idtree completion 2>err && grep "bash|zsh|fish" err && offers "bash zsh fish" completion "" && offers fish completion f
'
test_expect_success PTY 'bash completes the word at the cursor of a command of idtree' '
    timeout "$WAIT_S" python3 keys.py scripts.bash "idtree ev" "idtree event " "idtree id new --to=wo" "idtree id new --to=words " \
        "idtree id new --to wo" "idtree id new --to words " "idtree start --topology=kar" "idtree start --topology=kary:" \
        "idtree doc show plan." "idtree doc show plan." "idtree doc show oth" "idtree doc show other " "echo x | idtree getattr hostn" "idtree getattr hostname "
'

# Type the same keys into a real zsh, where one more key prints the current line.
cat >keys-zsh.py <<'EOT'
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(PS1="$ ", TERM="dumb", COLUMNS="1000")
    os.execvp("zsh", ["zsh", "-f", "-i"])
def until(what):
    seen, end = b"", time.monotonic() + 100
    while what not in seen:
        if not select.select([fd], [], [], end - time.monotonic())[0]:
            sys.exit("zsh says %r" % seen)
        seen += os.read(fd, 4096)
os.write(fd, b"unsetopt beep; %s; show() { print -r -- \"<$BUFFER>\" }; zle -N show; bindkey '^X' show; print lo''aded\n" % sys.argv[1].encode())
until(b"loaded\r\n")
for line, want in zip(sys.argv[2::2], sys.argv[3::2]):
    os.write(fd, line.encode() + b"\t\x18")
    until(b"<" + want.encode() + b">")
    os.write(fd, b"\x15")
    print("%s -> %s" % (line, want))
os.close(fd)
EOT
: >a-file-of-mine
if command -v zsh >/dev/null && command -v python3 >/dev/null; then test_set_prereq ZSH; fi
compinit="autoload -Uz compinit; compinit -D -u"
zsh_installed="fpath=($IDTREE_SRCDIR/etc/completion \$fpath); $compinit" zsh_printed="$compinit; eval \"\$(idtree completion zsh)\""
test_expect_success ZSH 'zsh completes the word at the cursor of a command of idtree, with the installed file and with the printed script' '
    for how in "$zsh_installed" "$zsh_printed"; do
        timeout "$WAIT_S" python3 keys-zsh.py "$how" "idtree ev" "idtree event " "idtree id new --to=wo" "idtree id new --to=words " \
            "idtree id new --format wo" "idtree id new --format words " "idtree start --topology=kar" "idtree start --topology=kary:" \
            "idtree doc show plan." "idtree doc show plan." "idtree doc show oth" "idtree doc show other " "echo x | idtree getattr hostn" "echo x | idtree getattr hostname " \
            "idtree doc import new a-file" "idtree doc import new a-file-of-mine " || return 1
    done
'
# The words that a real fish offers, without their descriptions.
fish_offers() { HOME=$PWD fish --no-config -c "idtree completion fish | source; complete -C \"\$argv\"" "$1" | cut -f 1 | sort | tr "\n" " "; }
if command -v fish >/dev/null; then test_set_prereq FISH; fi
test_expect_success FISH 'fish offers the words of a command of idtree' '
    while IFS="|" read -r line want; do
        got=$(fish_offers "$line") && test "$got" = "$want " || { echo "$line: $got"; return 1; }
    done <<END
idtree ev|event
idtree id new --to=wo|--to=words
idtree id new --to wo|words
idtree start --topology=kar|--topology=kary:
idtree doc show plan.|plan.a plan.b
echo x ; idtree getattr hostn|hostname
idtree startctl kill |0 1 2
idtree doc import new a-file|a-file-of-mine
END
'
http=$IDTREE_BUILDDIR/src/http/idtree-http
if test -x "$http"; then test_set_prereq HTTP; fi
test_expect_success PTY,HTTP 'bash completes options of idtree-http' '
    timeout "$WAIT_S" python3 keys.py scripts.bash "$http --tok" "$http --token-file " "$http --tls-ce" "$http --tls-cert " "$http --tls-cert a-file" "$http --tls-cert a-file-of-mine "
'
test_expect_success ZSH,HTTP 'zsh completes options of idtree-http' '
    for how in "$zsh_installed" "$zsh_printed"; do
        timeout "$WAIT_S" python3 keys-zsh.py "$how" "$http --tok" "$http --token-file " "$http --tls-ce" "$http --tls-cert " \
            "$http --tls-cert a-file" "$http --tls-cert a-file-of-mine " || return 1
    done
'
test_expect_success FISH,HTTP 'fish offers options of idtree-http' '
    test "$(fish_offers "$http --tls-c")" = "--tls-cert --tls-client-ca " && test "$(fish_offers "$http --tls-cert a-file")" = "a-file-of-mine "
'
test_done
