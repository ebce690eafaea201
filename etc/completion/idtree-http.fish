# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# Completion of idtree-http for fish: its options, as --help has them, and file names.

function __idtree_http_options
    set -l before (commandline -opc)

    string match -q -- '-*' (commandline -ct)
    and $before[1] --help 2>/dev/null | string match -ra -- '--[a-z-]+'
end

complete -c idtree-http -a '(__idtree_http_options)'
