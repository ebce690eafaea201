#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5011-stop.t - brokers start and stop in order
test_description='brokers start and stop without printing messages'
. "$(dirname "$0")/idtree-sharness.sh"

for size in 1 2 13; do
    test_expect_success "an instance of $size brokers starts and stops, and stderr stays empty" '
        idtree start -s '$size' --topology kary:3 true 2>err; test $? = 0 && { cat err; test ! -s err; }
    '
done
test_expect_success 'idtree shutdown stops the brokers, and stderr stays empty' '
    idtree start -s 4 --topology kary:2 idtree shutdown 2>err && { cat err; test ! -s err; }
'
test_expect_success 'a signal to the launcher stops the brokers, and no broker is reported' '
    test_expect_code 143 idtree start -s 4 sh -c "kill -TERM \$PPID; exec sleep 1000" 2>err &&
    ! grep -E "broker [0-9]+ .*(exited|killed)" err
'
test_expect_success 'an instance with a suspended broker stops, and stderr stays empty' '
    cat >halt <<-\EOF &&
	kill -STOP "$(idtree startctl status | awk "NR == 3 { print \$2 }")"
	EOF
    idtree start -s 3 sh ./halt 2>err && { cat err; test ! -s err; }
'
test_expect_success 'an attribute that is invalid on all brokers is reported once' '
    test_expect_code 2 idtree start -s 8 --topology kary:-1 true 2>err && cat err &&
    test "$(grep -c "^idtree-broker:" err)" = 1 && test "$(grep -c "broker 0 .* before the instance was up" err)" = 1
'
test_done
