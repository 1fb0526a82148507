# SPDX-License-Identifier: BSD-3-Clause
# Sourced: what the scripts share that run commands under another root directory.
# shellcheck shell=bash

# Runs the sourcing script once more, as the first process of a PID namespace, with mounts of its own: all that
# it starts and mounts ends with it, whatever ends it.
in_namespaces() { # script arguments...
	[ -z "${GDR_IN_NAMESPACES:-}" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "SKIP: only root can mount another root directory"
		exit 77
	fi
	GDR_IN_NAMESPACES=1 exec unshare --mount --pid --fork --kill-child --mount-proc bash "$@"
}

# Runs a command with the directory as root. pivot_root: below a plain chroot / is no mount, and mount(8), unshare
# and `ip netns` fail there.
new_root() { # directory command...
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount bash -c '
		set -e
		cd "$1"
		mount --bind . .
		cd "$1" # the mount, not what it covers
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --rbind /dev dev
		mount -t tmpfs -o mode=1777 shm dev/shm
		mkdir .old
		pivot_root . .old
		umount -l /.old
		rmdir /.old
		cd /
		shift
		exec env -i "$@"' new_root "$1" HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${@:2}"
}
