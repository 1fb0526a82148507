// SPDX-License-Identifier: BSD-3-Clause
#include <gdr/host.h>

const char *gdr_strerror(int status)
{
	static const struct {
		int number;
		const char *text;
	} texts[] = {
		{GDR_OK, "success"},
#define TEXT(name, number, text) {number, text},
		GDR_STATUS_LIST(TEXT)
#undef TEXT
	};
	unsigned int want = status < 0 ? 0u - (unsigned int)status : (unsigned int)status;

	for (unsigned int i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if ((unsigned int)texts[i].number == want)
			return texts[i].text;
	}
	return "unknown status code";
}
