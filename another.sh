. ./lib.sh
ended() { idtree startctl status | grep "^ *0 .*exited with status 3"; }
: >made && for r in 0 1 2; do generates $r; done && make_ids 0 1 2 &&
test "$(idtree getattr instance.uuid)" = "$(idtree getattr --uri "${IDTREE_URI%0}2" instance.uuid)" &&
swap other right && wait_until "rank 0 ends" ended && make_ids 1 2 && put right wrong && generates 0 && make_ids 0 1 2
