# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# Completion of idtree for fish.  The program completes the words, from its table of commands; file names are completed
# if it has no completion.

function __idtree_offers
    set -l before (commandline -opc)
    set -l word (commandline -ct)

    $before[1] complete $before[2..-1] "$word" 2>/dev/null
end

function __idtree_offers_nothing
    test (count (__idtree_offers)) -eq 0
end

complete -c idtree -f -a '(__idtree_offers)'
complete -c idtree -n __idtree_offers_nothing -F
