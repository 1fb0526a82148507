# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the launcher scripts of this directory: what they share. POSIX sh.
# The script sets `me`, its name for messages.
# shellcheck shell=sh disable=SC2154,SC2034

# Prints why nothing was run; 77 is the exit status of a skipped test.
skip() {
	echo "SKIP: $me: $*" >&2
	exit 77
}

fail() {
	echo "$me: $*" >&2
	exit 1
}

# need COMMAND PACKAGE
need() {
	command -v "$1" >/dev/null 2>&1 || skip "no $1 here: apt-get install $2"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "must run as root: $*"
}

# Limits are those of a quiet machine; on a crowded one enclose sets the factor.
slow=${TEST_SLOW:-1}

# Time limit of a whole launch in seconds; 0: none.
limit=$((${LIMIT:-120} * slow))

# Runs COMMAND in the background and waits, so that a trap is run at once when
# a signal comes. The command is the leader of a process group ($job), which
# the trap may end. timeout(1) makes that group itself.
run_bounded() {
	timeout -k $((5 * slow)) "$limit" "$@" <&0 &
	job=$!
	wait "$job"
	status=$?
	# 129 and above may be a signal of ours that ended the wait early.
	[ "$status" = 124 ] && echo "$me: did not end within $limit s" >&2
	job=
	return "$status"
}

# Ends the job of run_bounded, if one is running: first asks, then insists.
end_job() {
	[ -n "${job:-}" ] || return 0
	kill -TERM "$job" 2>/dev/null || :
	await_end $((50 * slow)) "$job" || kill -KILL -- "-$job" "$job" 2>/dev/null || :
	job=
}

# await_end TENTHS PID...: 0 when all have ended within that time.
await_end() {
	_left=$1
	shift
	for _p in "$@"; do
		while is_alive "$_p"; do
			[ "$_left" -gt 0 ] || return 1
			_left=$((_left - 1))
			sleep 0.1
		done
	done
}

# A zombie has ended.
is_alive() {
	[ -r "/proc/$1/stat" ] || return 1
	_state=$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null) || return 1
	[ -n "$_state" ] && [ "$_state" != Z ]
}

# make_dir STEM: $dir becomes a private directory that marks this run: every
# process that descends from it has the name in its environment. Runs nest.
make_dir() {
	dir=$(mktemp -d "${TMPDIR:-/tmp}/$1.XXXXXX") || fail "mktemp failed"
	export LAUNCH_RUN="${LAUNCH_RUN:-}:$dir"
}

stray_pids() {
	grep -lzsF -e "$dir" /proc/[0-9]*/environ | sed 's|/proc/\([0-9]*\)/.*|\1|'
}

# What a launcher that was killed leaves: daemons, and processes that are
# stopped or have lost their parent. Nobody's but this run's.
end_strays() {
	_strays=$(stray_pids)
	[ -n "$_strays" ] || return 0
	# shellcheck disable=SC2086 # a list
	kill -KILL $_strays 2>/dev/null || :
	# shellcheck disable=SC2086
	await_end $((30 * slow)) $_strays || echo "$me: still there: $_strays" >&2
}

# Calls clean_up once, at the end and at signals, and keeps the exit status.
# Signals exit with 128 + their number.
trap_all() {
	trap '_rc=$?; trap - EXIT; trap "" INT TERM HUP; clean_up; exit $_rc' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}
