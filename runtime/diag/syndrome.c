// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/diag/errors.h"

#include <gdr/impl/arch/abi.h>
#include <gdr/status.h>

#define OPERATION_NAMES(operation, number, name, call, nvshmem) \
	[GDRI_##operation] = {name, call, nvshmem, nvshmem " (" call ")"},
static const struct {
	const char *op, *call, *nvshmem, *both; /* "": there is no function */
} ops[] = {GDRI_OPERATIONS(OPERATION_NAMES)};
#define N_NAMED (sizeof(ops) / sizeof(ops[0]))

const char *gdri_op_name(unsigned int op)
{
	return op < N_NAMED && ops[op].op ? ops[op].op : "unknown operation";
}

const char *gdri_call_name(unsigned int op)
{
	if (op >= N_NAMED || !ops[op].op || !*ops[op].call)
		return gdri_op_name(op);
	return gdri_place_is_nvshmem() && *ops[op].nvshmem ? ops[op].both : ops[op].call;
}

void gdri_call_names(unsigned int op, const char **call, const char **nvshmem)
{
	bool has = op < N_NAMED && ops[op].op && *ops[op].call;

	*call = has ? ops[op].call : gdri_op_name(op);
	*nvshmem = has && gdri_place_is_nvshmem() ? ops[op].nvshmem : "";
}

struct words {
	int code;
	const char *text;
};

static const char *syndrome_find(const struct words *w, int code)
{
	for (; w->text; w++) {
		if (w->code == code)
			return w->text;
	}
	return "";
}

const char *gdri_opcode_name(unsigned int opcode)
{
	static const struct words names[] = {
		{GDRI_OP_NOP, "NOP"},
		{GDRI_OP_WRITE, "RDMA_WRITE"},
		{GDRI_OP_READ, "RDMA_READ"},
		{GDRI_OP_ATOMIC_CS, "ATOMIC_CS"},
		{GDRI_OP_ATOMIC_FA, "ATOMIC_FA"},
		{GDRI_OP_MASKED_CS, "ATOMIC_MASKED_CS"},
		{GDRI_OP_MASKED_FA, "ATOMIC_MASKED_FA"},
		{GDRI_OP_DUMP, "DUMP"},
		{0, NULL},
	};
	const char *name = syndrome_find(names, (int)opcode);

	return *name ? name : "unknown";
}

const char *gdri_status_advice(int status)
{
	static const struct words advice[] = {
		{GDR_EINVAL, "correct the call"},
		{GDR_ETIMEOUT, "look at that PE, or raise "},
		{GDR_EPEERLOST, "look at that PE and its node"},
		{GDR_EPEERFAILED, "look at that PE's log"},
		{GDR_ELOCALLEN, "compare GDR_MTU and the ports' MTU"},
		{GDR_ELOCALQP, "the NIC refused the work request"},
		{GDR_ELOCALPROT, "gdr_buffer_register the local buffer, or use the heap"},
		{GDR_EFLUSHED, "look for the first error of this queue"},
		{GDR_ELOCALACCESS, "the local memory does not allow it"},
		{GDR_EREMOTEINV, "the peer's NIC does not allow this operation"},
		{GDR_EREMOTEACCESS, "check the symmetric address and length"},
		{GDR_EREMOTEOP, "look at the peer's log"},
		{GDR_ERETRY, "is the peer alive and the link up? else raise "},
		{0, NULL},
	};

	return syndrome_find(advice, status < 0 ? -status : status);
}

/* Firmware's own codes are not in the public manual; these are the ones that drivers
 * and users report together with the standard syndrome they come with. */
const char *gdri_vendor_words(unsigned int vendor_syndrome)
{
	static const struct words vendor[] = {
		{0x51, "the local key, range or access was refused"},
		{0x52, "the local key, range or access was refused"},
		{0x81, "no acknowledgement after all retries"},
		{0x88, "the responder refused the key, range or access"},
		{0x89, "the responder failed while it executed"},
		{0x8a, "the responder refused the request"},
		{0xf9, "queue left in error state"},
		{0, NULL},
	};

	return syndrome_find(vendor, (int)vendor_syndrome);
}
