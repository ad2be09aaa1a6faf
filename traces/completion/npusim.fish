# SPDX-License-Identifier: Apache-2.0
# npusim's words for fish, as the command lists them.

function __npusim_options
	set -l words (commandline -opc)
	contains -- -- $words; or $words[1] $words[2] --list-options 2>/dev/null
end
function __npusim_verbs
	set -l words (commandline -opc)
	$words[1] --list-options 2>/dev/null
end
function __npusim_wants_verb
	set -l words (commandline -opc)
	test (count $words) -eq 1; or test "$words[2..]" = help
end
complete -c npusim -f -n __npusim_wants_verb -a '(__npusim_verbs)'
complete -c npusim -n 'not __npusim_wants_verb' -a '(__npusim_options)'
