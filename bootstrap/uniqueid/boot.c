// SPDX-License-Identifier: BSD-3-Clause
/* The bootstrap of processes that nobody launched together, but that have a unique id, their number and
 * how many they are: each connects to the hub in the process that made the id. */
#include <errno.h>
#include <string.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/uniqueid/join.h"
#include "bootstrap/uniqueid/net.h"
#include "runtime/core/log.h"

struct by_id {
	struct gdri_uid_meeting meeting; /* first: connect casts */
	struct gdri_uid id;
};

static int uid_connect_error(const struct gdri_uid *id, bool again, int err)
{
	char text[64];

	gdri_uid_address_text(id, text, sizeof(text));
	if (err == ECONNREFUSED && again)
		return gdri_fail(-GDR_EPEERLOST,
				 "bootstrap: the process that made the unique id (at %s) has ended before all PEs had "
				 "come",
				 text);
	if (err == ECONNREFUSED)
		gdri_error("bootstrap: nobody answers at %s, the address in the unique id: the process "
			   "that made it has ended or its job is over (an id serves one job), or the "
			   "address is another machine's (GDR_UID_INTERFACE chooses it)", text);
	else
		gdri_error("bootstrap: cannot connect to %s, the address in the unique id: %s; check "
			   "that the machine of the process that made it can be reached there "
			   "(GDR_UID_INTERFACE chooses the interface), and firewalls", text,
			   gdri_errno_text(err));
	return err == ETIMEDOUT ? -GDR_ETIMEOUT : -GDR_EBOOTSTRAP;
}

static int uid_connect(struct gdri_uid_meeting *m, bool again, const struct timespec *deadline)
{
	const struct gdri_uid *id = &((struct by_id *)m)->id;
	int fd = gdri_uid_connect(id, deadline);

	return fd >= 0 ? fd : uid_connect_error(id, again, -fd);
}

bool gdri_boot_uniqueid_detect(const struct gdri_boot_how *how, const struct gdri_launcher *launcher)
{
	(void)launcher;
	return how->uniqueid;
}

int gdri_boot_uniqueid_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how,
		       const struct gdri_launcher *launcher, int timeout_ms)
{
	const int pe = how->pe, n_pes = how->n_pes;
	struct by_id by = {.meeting = {
		.name = "uniqueid",
		.number = "a number",
		.size = "number of PEs",
		.hub = "the process that made the unique id",
		.stranger = "the process at the address in the unique id does not know this id: it serves another job",
		.connect = uid_connect,
	}};
	const char *fault = gdri_uid_parse(how->uniqueid, &by.id);

	(void)launcher;
	if (fault)
		return gdri_fail(-GDR_EINVAL,
				 "bootstrap: cannot use the unique id: %s; all PEs take the bytes that "
				 "gdr_get_uniqueid gave to one of them",
				 fault);
	if (n_pes < 1 || n_pes > GDRI_BOOT_MAX_PES || pe < 0 || pe >= n_pes)
		return gdri_fail(-GDR_EINVAL, "bootstrap: PE %d of %d: a job has 1 to %d PEs, numbered from 0", pe,
				 n_pes, GDRI_BOOT_MAX_PES);
	memcpy(by.meeting.token, by.id.token, GDRI_UID_TOKEN);
	return gdri_uid_join(out, &by.meeting, pe, n_pes, timeout_ms);
}
