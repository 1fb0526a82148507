/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and checks the SOFTHCA_* variables (options.h has the table). */
#include "softhca/tools/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/tools/log.h"

extern char **environ;

static struct hca_options options;

static bool parse_LINK(const char *text, enum hca_link *out)
{
	if (strcmp(text, "eth") && strcmp(text, "ib"))
		return false;
	*out = strcmp(text, "ib") ? HCA_LINK_ETH : HCA_LINK_IB;
	return true;
}

static bool parse_BOOL(const char *text, bool *out)
{
	*out = !strcmp(text, "1");
	return *out || !strcmp(text, "0");
}

static bool parse_UINT(const char *text, uint32_t *out)
{
	char *end;
	unsigned long long v;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool parse_range(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	uint32_t v;

	if (!parse_UINT(text, &v) || v < min || v > max)
		return false;
	*out = v;
	return true;
}

static bool parse_MTU(const char *text, uint32_t *out)
{
	*out = 0;
	return !*text || (parse_range(text, 256, 4096, out) && !(*out & (*out - 1)));
}

static bool parse_DEVICES(const char *text, uint32_t *out)
{
	return parse_range(text, 1, HCA_MAX_DEVICES, out);
}

static bool parse_NODES(const char *text, uint32_t *out)
{
	return parse_range(text, 1, 65536, out);
}

static bool parse_LEVEL(const char *text, uint32_t *out)
{
	return parse_range(text, 0, 2, out);
}

static bool parse_EXIT(const char *text, uint32_t *out)
{
	return parse_range(text, 0, 255, out);
}

static bool parse_DEVICE(const char *text, struct hca_device *out)
{
	char err[200];

	return hca_device_parse(text, out, err, sizeof(err));
}

static bool parse_STR(const char *text, const char **out)
{
	/* A copy: programs may change their environment later. */
	*out = *text ? strdup(text) : NULL;
	return true;
}

static bool parse_ADDR(const char *text, const char **out)
{
	struct in6_addr a;

	if (*text && inet_pton(AF_INET, text, &a) != 1 && inet_pton(AF_INET6, text, &a) != 1)
		return false;
	return parse_STR(text, out);
}

static bool option_is_known(const char *entry)
{
#define MATCH(field, name, type, def, help)                                                        \
	if (!strncmp(entry, name "=", sizeof(name)))                                               \
		return true;
	HCA_OPTIONS(MATCH)
#undef MATCH
	return false;
}

/* An empty variable counts as unset, as in `SOFTHCA_X= command`. */
static const char *value_of(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static void options_read_all(void)
{
	const char *text;

#define READ(field, name, type, def, help)                                                         \
	text = value_of(name);                                                                     \
	if (!text || !parse_##type(text, &options.field)) {                                        \
		if (text)                                                                          \
			hca_warn("%s=%s cannot be used, taking the default \"%s\" (%s)", name,     \
				 text, def, help);                                                 \
		parse_##type(def, &options.field);                                                 \
	}
	HCA_OPTIONS(READ)
#undef READ
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "SOFTHCA_", 8) && !option_is_known(*e))
			hca_warn("%.*s is not a variable of softhca and has no effect; `softhca --help` lists them",
				 (int)strcspn(*e, "="), *e);
}

int hca_options_check(char *err, size_t n)
{
	static struct hca_options scratch; /* keeps the copies that the parser makes */
	const char *text;

#define CHECK(field, name, type, def, help)                                                        \
	text = value_of(name);                                                                     \
	if (text && !parse_##type(text, &scratch.field)) {                                         \
		snprintf(err, n, "%s=%s cannot be used: %s", name, text, help);                    \
		return -EINVAL;                                                                    \
	}
	HCA_OPTIONS(CHECK)
#undef CHECK
	return 0;
}

const struct hca_options *hca_options(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, options_read_all);
	return &options;
}
