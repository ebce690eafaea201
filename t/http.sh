# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# http.sh - run a private idtree-http, $http, for a test; source it after idtree-sharness.sh

# Start an idtree-http that runs until stop_http, or until the test ends. Sets $url to its URL.
start_http() { # option...
    rm -f url && { "${http:?}" "$@" >url 2>http.err </dev/null & } && http_pid=$! &&
        wait_until "idtree-http listens" test -s url && url=$(cat url)
}
stop_http() { kill "$http_pid" && wait "$http_pid"; }
cleanup 'kill "$http_pid" 2>/dev/null || :'
