/* SPDX-License-Identifier: BSD-3-Clause */
/* Profiles and capabilities of the emulated device (profile.h). */
#include "softhca/tools/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parts: rdma-core providers/mlx5/mlx5.c, hca_table. Firmware: the first number of a release names the chip. caps: in
 * what the profile differs from device_caps.def. */
static const struct profile {
	const char *name;
	uint32_t part, firmware; /* major release */
	const char *caps;
} profiles[] = {
	{"cx7", 0x1021, 28, ""},
	{"cx5", 0x1017, 16, ""},
	{"cx6dx", 0x101d, 22, ""},
	{"cx8", 0x1023, 40, ""},
	{"bf3", 0xa2dc, 32, ""},
};

#define WORDS(list)	      list, 0, 0
#define NUMBER(lowest, most) NULL, lowest, most
#define BITS(lowest, most)   "no", lowest, most
static const struct cap {
	const char *name, *words;
	uint32_t lowest, most, def;
	size_t field;
	const char *help;
} caps[] = {
#define CAP(field, name, values, def, help) {name, values, def, offsetof(struct hca_device, field), help},
#include "softhca/tools/device_caps.def"
#undef CAP
};

#define N_CAPS	   (sizeof(caps) / sizeof(caps[0]))
#define N_PROFILES (sizeof(profiles) / sizeof(profiles[0]))

static uint32_t *device_field(struct hca_device *d, const struct cap *c)
{
	return (uint32_t *)(void *)((char *)d + c->field);
}

/* The place of a word of n bytes in a list; -1: it is none of them. */
static int word_place(const char *list, const char *word, size_t n)
{
	for (int i = 0; *list; i++) {
		size_t len = strcspn(list, " ");

		if (len == n && !strncmp(list, word, n))
			return i;
		list += len + (list[len] == ' ');
	}
	return -1;
}

static bool cap_value(const struct cap *c, const char *text, size_t n, uint32_t *out)
{
	unsigned long v;
	char *end;
	int place;

	if (c->words) {
		place = n ? word_place(c->words, text, n) : word_place(c->words, "yes", 3);
		*out = (uint32_t)place;
		if (place >= 0 || !c->most)
			return place >= 0;
	}
	if (!n || *text < '0' || *text > '9')
		return false;
	v = strtoul(text, &end, c->words ? 16 : 10);
	*out = (uint32_t)v;
	return end == text + n && v >= c->lowest && v <= c->most;
}

static void say_cap(const struct cap *c, char *err, size_t n)
{
	if (c->words && c->most)
		snprintf(err, n, "%s is %s or a number from %#x to %#x", c->name, c->words, c->lowest, c->most);
	else if (c->words)
		snprintf(err, n, "%s is one of: %s", c->name, c->words);
	else
		snprintf(err, n, "%s is a number from %u to %u", c->name, c->lowest, c->most);
}

/* One NAME or NAME=VALUE of n bytes. */
static bool set_cap(struct hca_device *d, const char *text, size_t n, char *err, size_t room)
{
	const char *eq = memchr(text, '=', n);
	size_t name = eq ? (size_t)(eq - text) : n;

	for (const struct cap *c = caps; c < caps + N_CAPS; c++) {
		if (strlen(c->name) != name || strncmp(c->name, text, name))
			continue;
		if (cap_value(c, eq ? eq + 1 : text, eq ? n - name - 1 : 0, device_field(d, c)))
			return true;
		say_cap(c, err, room);
		return false;
	}
	snprintf(err, room, "\"%.*s\" is no capability: softhca --help lists them", (int)n, text);
	return false;
}

static bool set_caps(struct hca_device *d, const char *text, char *err, size_t room)
{
	while (*text) {
		size_t n = strcspn(text, ",");

		if (!set_cap(d, text, n, err, room))
			return false;
		text += n + (text[n] == ',');
	}
	return true;
}

bool hca_device_parse(const char *text, struct hca_device *out, char *err, size_t n)
{
	size_t first = strcspn(text, ",");
	const struct profile *p = profiles, *named = NULL;

	for (; p < profiles + N_PROFILES; p++)
		if (strlen(p->name) == first && !strncmp(p->name, text, first))
			named = p;
	p = named ? named : profiles;
	*out = (struct hca_device){.part = p->part, .firmware = (uint64_t)p->firmware << 32 | 39 << 16 | 1002};
	for (const struct cap *c = caps; c < caps + N_CAPS; c++)
		*device_field(out, c) = c->def;
	if (!set_caps(out, p->caps, err, n))
		return false;
	if (!set_caps(out, named ? text + first + (text[first] == ',') : text, err, n))
		return false;
	out->order_force &= out->ooo; /* else there is nothing to refuse */
	return true;
}

void hca_device_help(void)
{
	printf("\nSOFTHCA_DEVICE=[PROFILE][,NAME[=VALUE]...]; profiles:");
	for (size_t i = 0; i < N_PROFILES; i++)
		printf(" %s", profiles[i].name);
	printf("; names:\n");
	for (const struct cap *c = caps; c < caps + N_CAPS; c++) {
		if (c->words && c->most)
			printf("  %-24s %s or %#x to %#x, else %#x: %s\n", c->name, c->words, c->lowest,
			       c->most, c->def, c->help);
		else if (c->words)
			printf("  %-24s %s: %s\n", c->name, c->words, c->help);
		else
			printf("  %-24s %u to %u, else %u: %s\n", c->name, c->lowest, c->most, c->def, c->help);
	}
}
