. ./lib.sh
says="knows of leases until .*, and brokers hold some until 20"
: >made && for r in 0 1 2; do generates $r; done && make_ids 0 1 2 &&
swap other right && wait_until "the store is wrong" store_says "wrong: .*/state $says" && make_ids 1 2 &&
idtree overlay status >status && cat status && grep "^store wrong: .*/state $says" status &&
grep "^0 .* fenced, store wrong" status && test $(grep -c " active " status) = 2 &&
idtree dmesg | grep "statedir is wrong: .*/state $says.*: no more leases are given; .* with the statedir that it had" &&
! idtree id new 2>err && cat err && grep "rank 0 gives no leases: brokers hold some of another statedir" err &&
swap right wrong && generates 0 && store_says good && make_ids 0 1 2
