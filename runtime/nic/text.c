// SPDX-License-Identifier: BSD-3-Clause
/* What to say when the kernel or the firmware refuses: the object, errno, the
 * mailbox's status and syndrome, and what to check. Each logs one line and
 * returns the code for the caller to pass on. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

/* Status byte of a mailbox: PRM, "Command interface, status codes". */
static const struct {
	unsigned status;
	const char *text, *check;
} statuses[] = {
	{0x01, "internal error", "look for the device in the kernel log (dmesg)"},
	{0x02, "command unknown to the firmware", "update the firmware"},
	{0x03, "bad parameter", "compare firmware and library versions, then report it"},
	{0x04, "bad system state", "is the device being reset? (dmesg)"},
	{0x05, "bad resource", "report it"},
	{0x06, "resource busy", "report it"},
	{0x08, "limit exceeded", "other programs use up the device; lower GDR_QPS_PER_PE"},
	{0x09, "bad resource state", "report it"},
	{0x0a, "bad index", "check GDR_GID_INDEX and GDR_PKEY"},
	{0x0f, "out of resources", "other programs use up the device; lower GDR_QPS_PER_PE"},
	{0x10, "bad queue pair state", "report it"},
	{0x30, "bad management packet", "report it"},
	{0x40, "size exceeds what is outstanding", "report it"},
	{0x50, "bad input length", "compare firmware and library versions, then report it"},
	{0x51, "bad output length", "compare firmware and library versions, then report it"},
};

static int code_of(int err)
{
	switch (err) {
	case ENOMEM:
		return -GDR_ENOMEM;
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
		return -GDR_ENOTSUP;
	default:
		return -GDR_ESYSTEM;
	}
}

int gdri_nic_failed(const char *device, const char *what, int err, const char *check)
{
	gdri_error("%s: %s failed: %s (errno %d); %s", device, what, gdri_errno_text(err), err, check);
	return code_of(err);
}

static void memlock_text(char *buf, size_t room)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r) || r.rlim_cur == RLIM_INFINITY)
		snprintf(buf, room,
			 "RLIMIT_MEMLOCK is unlimited, so it is memory itself: see free "
			 "memory and the cgroup's limit");
	else
		snprintf(buf, room,
			 "RLIMIT_MEMLOCK is %llu KiB: raise it (ulimit -l unlimited; "
			 "LimitMEMLOCK=infinity for daemons such as slurmd)",
			 (unsigned long long)r.rlim_cur / 1024);
}

int gdri_nic_memory_failed(const char *device, const char *what, size_t bytes, int err)
{
	char hint[320] = "check the address range and the access rights of its pages";

	if (err == ENOMEM || err == EAGAIN || err == EPERM)
		memlock_text(hint, sizeof(hint));
	gdri_error("%s: %s of %zu bytes failed: %s (errno %d); %s", device, what, bytes,
		   strerror(err), err, hint);
	return err == EAGAIN || err == EPERM ? -GDR_ENOMEM : code_of(err);
}

int gdri_nic_command_failed(const char *device, const char *what, int err, const void *out)
{
	unsigned status = (unsigned)gdri_prm_get(out, PRM_OUT_STATUS);
	unsigned syndrome = (unsigned)gdri_prm_get(out, PRM_OUT_SYNDROME);
	const char *text = "unknown", *check = "see the vendor's description of the syndrome";

	if (!status) /* refused before it reached the firmware */
		return gdri_nic_failed(device, what, err, "see the kernel log (dmesg)");
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].status == status) {
			text = statuses[i].text;
			check = statuses[i].check;
		}
	}
	gdri_error("%s: %s refused by the firmware: status 0x%02x (%s), syndrome 0x%08x, errno %d; "
		   "%s",
		   device, what, status, text, syndrome, err, check);
	return status == 0x08 || status == 0x0f ? -GDR_ENOMEM : -GDR_ESYSTEM;
}
