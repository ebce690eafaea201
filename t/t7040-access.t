#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7040-access.t - the owner, root, a member of the group, a guest and a stranger try every service and every command
#
# The users are real: the test runs as root, and each user is a uid that no account has.
test_description='users may do exactly what the table in doc/design/access.md allows, at each rank'
. "$(dirname "$0")/idtree-sharness.sh"
if test "$(id -u)" != 0; then
    skip_all='only root can be other users'
    test_done
fi
test_needs python3 setpriv
python=$(PATH=/usr/bin:/bin:$PATH command -v python3) # one that is not in the folder of an account
OWNER=64001 MEMBER=64002 GUEST=64003 GROUP=64010
owner() { setpriv --reuid $OWNER --regid $OWNER --groups $GROUP "$@"; }
member() { setpriv --reuid $MEMBER --regid $MEMBER --groups 64011,$GROUP "$@"; }
guest() { setpriv --reuid $GUEST --regid $GUEST --clear-groups "$@"; }
if ! guest test -r "$IDTREE_SRCDIR/t/access_client.py" -a -x "$IDTREE_BUILDDIR/src/cmd/idtree"; then
    skip_all='other users cannot reach this tree'
    test_done
fi
export OWNER MEMBER GUEST GROUP
unset IDTREE_URI FLUX_URI

# The owner's folder for sockets and for the output of the instance. It is in /tmp because the path of a socket must be
# short.
own=$(mktemp -d /tmp/idtree-access-XXXXXX) && chown $OWNER "$own" && chmod 755 "$own" && cleanup "rm -rf '$own'"

# An instance of the owner that runs until let_go.
start() { # name, option...
    name=$1
    shift
    rm -f "$own/end" && mkfifo -m 666 "$own/end" &&
        test_launch setpriv --reuid $OWNER --regid $OWNER --groups $GROUP idtree start --dir "$own/$name" \
            -o log-stderr-level=0 "$@" -- sh -c "idtree getattr size >'$own/$name.up' && read -r line <'$own/end'" \
            </dev/null >"$name.out" 2>&1 &&
        wait_until "the instance $name is up" test -s "$own/$name.up"
}
let_go() { echo >"$own/end" && test_all_gone; }
use() { # name, rank
    FLUX_URI=local://$own/$1/local-$2 IDTREE_URI=local://$own/$1/local-$2
    export FLUX_URI IDTREE_URI
}
try() { $python "$IDTREE_SRCDIR/t/access_client.py" "$@"; }
as_owner() { owner $python "$IDTREE_SRCDIR/t/access_client.py" owner "$@"; }
as_member() { member $python "$IDTREE_SRCDIR/t/access_client.py" group "$@"; }
as_guest() { guest $python "$IDTREE_SRCDIR/t/access_client.py" guest "$@"; }
as_stranger() { # member, guest, or nothing for root; mode, rank...
    who=$1 && shift && $who $python "$IDTREE_SRCDIR/t/access_client.py" stranger "$@"
}
# Open all file permissions, so that only the broker's own check of the connecting user is left.
open_doors() { chmod 711 "$own/$1" && chmod 666 "$own/$1"/local-*; }

everybody='-o access.allow-guest-user=on -o access.allow-root-owner=on -o access.group=64010'
modules='-o broker.modules=fluid,flake,compressor,job-ingest -o ingest.allow-guests=on'

test_expect_success 'an instance that accepts guests, root and a group starts' '
    start open -s 7 --topology kary:2 -o access.guest-rate=1000 -o access.guest-block=500 $everybody $modules && use open 5
'
test_expect_success 'each command, request and service has a row in the table of access.md' 'as_owner complete 0 5'
test_expect_success 'the owner publishes events in the background' 'mkfifo tick && { as_owner ticker 0 <tick & } && ticker=$! && exec 6>tick'
for who in guest member owner; do
    test_expect_success "$who: every request to rank 0 and over two hops is accepted or refused as the table says" "as_$who requests 0 5"
    test_expect_success "$who: every event is received or not as the table says" "as_$who events 0 5"
    test_expect_success "$who: every command succeeds or is refused as the table says" "as_$who commands 0 5"
done
test_expect_success 'root counts as the owner if access.allow-root-owner is on, also over hops' '
    try owner requests 0 5 && try owner events 0 5 && try owner commands 5
'
test_expect_success 'the events that were published in the background got no error' 'exec 6>&- && wait $ticker'
test_expect_success 'a request carries the identity of its sender, also over two hops' '
    guest idtree ping -c 1 0 && guest $python "$IDTREE_SRCDIR/t/access_client.py" guest identity 5 &&
    member $python "$IDTREE_SRCDIR/t/access_client.py" group identity 5 &&
    owner $python "$IDTREE_SRCDIR/t/access_client.py" owner identity 5 && try owner identity 5
'
test_expect_success 'a guest cannot claim another identity' '
    guest $python "$IDTREE_SRCDIR/t/access_client.py" guest liar 0 5 &&
    member $python "$IDTREE_SRCDIR/t/access_client.py" group liar 0 5
'
test_expect_success 'jobs: a user submits only jobs of its own, at most at the usual urgency, with its own keys, and sees only what it may' '
    owner $python "$IDTREE_SRCDIR/t/access_client.py" owner jobs 0 5 >job &&
    member $python "$IDTREE_SRCDIR/t/access_client.py" group jobs 0 5 $(cat job) &&
    guest $python "$IDTREE_SRCDIR/t/access_client.py" guest jobs 0 5 $(cat job)
'
test_expect_success 'documents: the creator may rename and delete a document at any rank, and the owner may rename and delete all' '
    owner idtree doc new d$OWNER && as_member documents 0 5 && owner idtree doc delete d$OWNER &&
    member idtree doc new d$MEMBER && owner idtree doc rename d$MEMBER mine && owner idtree doc delete mine &&
    as_guest requests 5
'
test_expect_success 'ids: a request of a guest above its quota or rate limit is refused with a message' '
    guest $python "$IDTREE_SRCDIR/t/access_client.py" guest ration 5 &&
    member idtree id new -n 20000 >ids && test $(wc -l <ids) = 20000
'
test_expect_success 'files of the instance belong to the owner' '
    test "$(stat -c %a "$own/open")" = 711 && test "$(stat -c %a:%g "$own/open/local-0")" = 666:$GROUP &&
    test "$(stat -c %a "$own"/open/tbon-* "$own"/open/*.sqlite | sort -u)" = 600 &&
    for who in member guest; do
        test_expect_code 1 $who idtree state show "$own/open" 2>err && cat err && grep "open/instance: " err || return 1
    done
'
test_expect_success 'the owner ends the instance, and no process is left' 'owner idtree shutdown; rc=$?; let_go && test $rc = 0'

test_expect_success 'an instance for a group accepts its members' '
    start group -s 1 -o access.group=$GROUP && use group 0 && test "$(stat -c %a:%g "$own/group/local-0")" = 660:$GROUP &&
    member idtree id new && owner idtree id new
'
test_expect_success 'root without access is refused although file permissions do not stop it, and the log has its uid' '
    as_stranger "" requests 0 && as_stranger "" asking 0 &&
    owner idtree dmesg | grep "a client of user 0 is refused: this user may not connect"
'
test_expect_success 'stranger: every command is refused, and so are requests to a broker if file permissions do not stop them' '
    as_stranger guest commands 0 && open_doors group && as_stranger guest asking 0
'
test_expect_success 'stranger: every command tries exactly once to connect' 'as_stranger guest attempts'
test_expect_success 'stranger: every request is refused' 'as_stranger guest requests 0'
test_expect_success 'the instance that accepts a group ends' let_go
test_expect_success 'an instance that accepts only its owner refuses all others, even if ranks share a process' '
    start closed -s 3 --per-process 3 && use closed 0 &&
    test "$(stat -c %a "$own/closed" "$own/closed/local-0" | tr "\n" " ")" = "700 600 " &&
    as_stranger member asking 0 && open_doors closed &&
    for who in member guest ""; do
        as_stranger "$who" requests 0 || return 1
    done && owner idtree id new
'
test_expect_success 'the instance that accepts only its owner ends' let_go
test_expect_success 'an access.group that does not exist, or to which the owner does not belong, is refused with a message' '
    test_expect_code 2 owner idtree start -s 1 -o access.group=64999 true 2>err && cat err &&
    grep "cannot be given to group 64999 (access.group): user $OWNER is no member of it (under systemd: SupplementaryGroups)" err &&
    test_expect_code 2 owner idtree start -s 1 -o access.group=no-such-group true 2>err && cat err &&
    grep "access.group=no-such-group: there is no such group on this host" err
'
test_done
