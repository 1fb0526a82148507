// SPDX-License-Identifier: BSD-3-Clause
#include "tools/check/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <gdr/host.h>

static const struct check {
	const char *name;
	enum check_need need;
	const char *title, *looked_at, *right, *fix;
} checks[] = {
#define HOST CHECK_HOST
#define GPU  CHECK_GPU_THERE
#define NIC  CHECK_NIC_THERE
#define BOTH CHECK_BOTH
#define CHECK(id, name, need, title, looked_at, right, fix) \
	{name, need, title, looked_at, right, fix},
#include "tools/check/checks.def"
#undef CHECK
};

static const char *const marks[] = {"ok", "note", "FAIL", "-"};
static const char *const verdicts[] = {"ok", "note", "fail", "unseen"};

static void json_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			printf("\\u%04x", (unsigned)(unsigned char)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void json_field(const char *name, const char *text, const char *behind)
{
	printf("\"%s\": ", name);
	json_text(text);
	fputs(behind, stdout);
}

static void check_print(const struct check *c, enum verdict v, const char *value)
{
	printf("%-5s %-22s %s", marks[v], c->title, value);
	if (v == NOTE || v == BAD)
		printf("; right: %s; fix: %s", c->right, c->fix);
	putchar('\n');
}

static void check_json(const struct check *c, enum verdict v, const char *value, bool first)
{
	fputs(first ? "\n    {" : ",\n    {", stdout);
	json_field("name", c->name, ", ");
	json_field("title", c->title, ", ");
	json_field("verdict", verdicts[v], ",\n     ");
	json_field("looked_at", c->looked_at, ",\n     ");
	json_field("value", value, ",\n     ");
	json_field("right", c->right, ",\n     ");
	json_field("fix", c->fix, "}");
}

void report_begin(struct report *r, bool json)
{
	memset(r, 0, sizeof(*r));
	r->json = json;
	if (!json)
		return;
	printf("{\n  \"schema\": \"gdr-check-1\",\n  \"version\": \"%s\",\n  \"abi\": %d,\n  "
	       "\"checks\": [",
	       GDR_VERSION_STRING, GDR_ABI_VERSION);
}

void report_say(struct report *r, enum check_id id, enum verdict v, const char *fmt, ...)
{
	char value[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	if (r->json)
		check_json(&checks[id], v, value, r->n == 0);
	else
		check_print(&checks[id], v, value);
	r->said[id] = true;
	r->n++;
	r->bad += v == BAD;
}

static const char *report_missing(const struct check *c, bool gpu, bool nic)
{
	bool no_gpu = !gpu && (c->need == GPU || c->need == BOTH);
	bool no_nic = !nic && (c->need == NIC || c->need == BOTH);

	if (no_gpu)
		return no_nic ? "neither GPU nor NIC can be used" : "no GPU can be used";
	return no_nic ? "no NIC can be used" : "not looked at: what stands before it failed";
}

void report_end(struct report *r, bool gpu, bool nic)
{
	for (int i = 0; r->json && i < CHECK_IDS; i++)
		if (!r->said[i])
			report_say(r, (enum check_id)i, NONE, "%s",
				   report_missing(&checks[i], gpu, nic));
	if (r->json)
		printf("\n  ],\n  \"verdict\": \"%s\"\n}\n", r->bad ? "fail" : "ok");
	else
		printf("%s\n",
		       r->bad ? "something is in the way: see FAIL" : "nothing is in the way");
}
