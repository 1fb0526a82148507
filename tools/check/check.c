// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* dup2 under C11 */
#include "tools/check/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/nic/impl.h"

int check_hush(void)
{
	int old = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	fflush(stderr);
	if (null >= 0) {
		dup2(null, STDERR_FILENO);
		close(null);
	}
	gdri_log_clear_error();
	return old;
}

void check_unhush(int old)
{
	if (old < 0)
		return;
	dup2(old, STDERR_FILENO);
	close(old);
}

int check_machine(bool json)
{
	struct checks c = {0};

	if (gdri_options_read(&c.opt, NULL) || gdri_options_check(&c.opt))
		return 1;
	report_begin(&c.report, json);
	check_host(&c);
	check_gpu(&c);
	check_libfabric(&c);
	check_nic_open(&c);
	if (c.nic) {
		check_nic_place(&c);
		check_nic_network(&c);
		check_nic_memory(&c);
		check_nic_queues(&c);
	}
	report_end(&c.report, c.cuda, c.nic);
	if (c.nic)
		gdri_nic_close(&c.nic->net);
	gdri_cuda_close(c.cuda);
	return c.report.bad ? 1 : 0;
}
