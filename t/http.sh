# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# http.sh - an idtree-http of the test's own, $http; source it after idtree-sharness.sh

# One that lives until stop_http, or the end of the test; its URL goes to $url.
start_http() { # option...
    rm -f url && { "${http:?}" "$@" >url 2>http.err </dev/null & } && http_pid=$! &&
        wait_until "idtree-http listens" test -s url && url=$(cat url)
}
stop_http() { kill "$http_pid" && wait "$http_pid"; }
cleanup 'kill "$http_pid" 2>/dev/null || :'
