# SPDX-License-Identifier: Apache-2.0
# npusim's words for bash, as the command lists them.

_npusim() {
	local npusim=${COMP_WORDS[0]} verb=${COMP_WORDS[1]} word=$2 at words
	local IFS=$'\n'

	COMPREPLY=()
	if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $verb == help ]]; }; then
		words=$("$npusim" --list-options 2>/dev/null | cut -f1)
		COMPREPLY=($(compgen -W "$words"$'\nhelp\n--help\n--version' -- "$word"))
		return
	fi
	for ((at = 2; at < COMP_CWORD; at++)); do
		[[ ${COMP_WORDS[at]} == -- ]] || continue
		if declare -F _command_offset >/dev/null; then
			_command_offset $((at + 1))
		else
			COMPREPLY=($(compgen -c -f -- "$word"))
		fi
		return
	done
	[[ $word == -* ]] || return
	words=$("$npusim" "$verb" --list-options 2>/dev/null | cut -f1)
	COMPREPLY=($(compgen -W "$words"$'\n--help' -- "$word"))
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	return 0
}
complete -o default -F _npusim npusim
