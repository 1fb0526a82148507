/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints which libibverbs and libmlx5 this PE has mapped, one path a line. */
#include "tests/multi/multi.h"

int main(void)
{
	char line[4096], *path, last[4096] = "";
	FILE *maps;

	multi_begin();
	maps = fopen("/proc/self/maps", "r");
	CHECK(maps);
	while (fgets(line, sizeof(line), maps)) {
		path = strchr(line, '/');
		if (!path || (!strstr(path, "/libibverbs") && !strstr(path, "/libmlx5")) ||
		    !strcmp(path, last))
			continue;
		strcpy(last, path);
		printf("MAPPED %s", path);
	}
	fclose(maps);
	return multi_end("libraries");
}
