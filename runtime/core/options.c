// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* environ */
#include "runtime/core/options.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "runtime/core/log.h"
#include "runtime/core/parse.h"
#include "runtime/core/text.h"
#include "runtime/net/net.h"
#include "runtime/team/coll.h"

enum kind { KIND_size, KIND_uint, KIND_int, KIND_bool, KIND_string, KIND_list, KIND_enum, KIND_time };

struct option {
	const char *name, *def, *min, *max, *unit, *text;
	enum kind kind;
	size_t offset;
};

static const struct option options[] = {
#define GDRI_OPTION(NAME, field, kind, def, min, max, unit, text)                                  \
	{#NAME, def, min, max, unit, text, KIND_##kind, offsetof(struct gdri_options, field)},
#include "runtime/core/options.def"
#undef GDRI_OPTION
};
#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static const char *const kind_names[] = {"size",   "number", "number", "boolean",
					 "string", "list",   "word",   "time"};

/* The value of every numeric kind as one signed number: their ranges fit. */
static bool parse_number(enum kind kind, const char *s, int64_t *out)
{
	uint64_t v;
	bool ok;

	switch (kind) {
	case KIND_int:
		return gdri_parse_i64(s, out);
	case KIND_size:
		ok = gdri_parse_size(s, &v);
		break;
	case KIND_time:
		ok = gdri_parse_time(s, &v);
		break;
	default:
		ok = gdri_parse_u64(s, &v);
		break;
	}
	if (!ok || v > (uint64_t)INT64_MAX)
		return false;
	*out = (int64_t)v;
	return true;
}

static bool set_number(const struct option *o, void *field, const char *value)
{
	int64_t v, min, max;

	if (!parse_number(o->kind, value, &v) || !parse_number(o->kind, o->min, &min) ||
	    !parse_number(o->kind, o->max, &max) || v < min || v > max)
		return false;
	if (o->kind == KIND_size)
		*(uint64_t *)field = (uint64_t)v;
	else if (o->kind == KIND_uint)
		*(unsigned int *)field = (unsigned int)v;
	else
		*(int *)field = (int)v;
	return true;
}

static bool set_string(char *field, const char *value)
{
	size_t n = strlen(value), i;

	if (n >= GDRI_OPTION_TEXT_MAX)
		return false;
	for (i = 0; i < n; i++) {
		if (value[i] < ' ' || value[i] > '~')
			return false;
	}
	memcpy(field, value, n + 1);
	return true;
}

static bool set_value(const struct option *o, struct gdri_options *opt, const char *value)
{
	void *field = (char *)opt + o->offset;

	switch (o->kind) {
	case KIND_bool:
		return gdri_parse_bool(value, field);
	case KIND_string:
		return set_string(field, value);
	case KIND_list:
		return gdri_parse_list(value, o->min, field);
	case KIND_enum:
		return gdri_parse_word(value, strlen(value), o->min, field);
	default:
		return set_number(o, field, value);
	}
}

static void option_accepted(const struct option *o, char *buf, size_t room)
{
	switch (o->kind) {
	case KIND_bool:
		snprintf(buf, room, "one of 0, 1, n, y, no, yes, off, on, false, true");
		break;
	case KIND_string:
		snprintf(buf, room, "fewer than %d printable characters", GDRI_OPTION_TEXT_MAX);
		break;
	case KIND_list:
		snprintf(buf, room, "a comma-separated list of %s, each at most once", o->min);
		break;
	case KIND_enum:
		snprintf(buf, room, "one of %s", o->min);
		break;
	default:
		snprintf(buf, room, "a whole %s from %s to %s%s", kind_names[o->kind], o->min, o->max,
			 o->kind == KIND_size	? " (bytes, or with suffix k, m, g, t)"
			 : o->kind == KIND_time ? " with its unit: ms, s, m, h, d"
						: "");
		break;
	}
}

/* Why the value was refused. A number alone has two readings, which are a factor of 1000 apart. */
static void option_why_refused(const struct option *o, const char *value, char *buf, size_t room)
{
	uint64_t v;
	int n = 0;

	if (o->kind == KIND_time && gdri_parse_u64(value, &v))
		n = snprintf(buf, room, "a unit: write %.20ss or %.20sms; ", value, value);
	option_accepted(o, buf + n, room - (size_t)n);
}

static const struct option *find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (strlen(options[i].name) == len && !memcmp(options[i].name, name, len))
			return &options[i];
	}
	return NULL;
}

int gdri_option_set(struct gdri_options *opt, const char *name, const char *value, char *why,
		    size_t room)
{
	const struct option *o = find_option(name, strlen(name));

	if (!o) {
		snprintf(why, room, "no option of this name");
		return -GDR_EOPTION;
	}
	if (!set_value(o, opt, value)) {
		option_why_refused(o, value, why, room);
		return -GDR_EOPTION;
	}
	return 0;
}

/* The one that a third of the letters at most turns into, and no more than three: farther names are no help. */
static const char *option_nearest(const char *name, size_t len)
{
	unsigned int best = len / 3 < 3 ? (unsigned int)len / 3 + 1 : 4, d;
	const char *found = NULL;
	char buf[64];

	if (len >= sizeof(buf))
		return NULL;
	memcpy(buf, name, len);
	buf[len] = 0;
	for (size_t i = 0; i < N_OPTIONS; i++) {
		d = gdri_edit_distance(buf, options[i].name);
		if (d < best) {
			best = d;
			found = options[i].name;
		}
	}
	return found;
}

static void option_warn_unknown(const char *name, size_t len)
{
	const char *near = option_nearest(name, len);

	if (near)
		gdri_warn("GDR_%.*s is not an option; did you mean GDR_%s?", (int)(len < 64 ? len : 64),
			  name, near);
	else
		gdri_warn("GDR_%.*s is not an option; gdr_info -e lists them",
			  (int)(len < 64 ? len : 64), name);
}

/* One variable of the environment, behind its GDR_. */
static int take_variable(struct gdri_options *opt, const char *var, bool warn)
{
	size_t len = strcspn(var, "=");
	const struct option *o = find_option(var, len);
	char why[240];

	if (!o) {
		if (warn)
			option_warn_unknown(var, len);
		return 0;
	}
	if (!var[len] || set_value(o, opt, var + len + 1))
		return 0;
	option_why_refused(o, var + len + 1, why, sizeof(why));
	return gdri_fail(-GDR_EOPTION, "GDR_%s=%.100s is not accepted; it takes %s", o->name, var + len + 1, why);
}

static void set_defaults(struct gdri_options *opt)
{
	memset(opt, 0, sizeof(*opt));
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (!set_value(&options[i], opt, options[i].def))
			gdri_error("default %s of GDR_%s is out of its own range", options[i].def,
				   options[i].name);
	}
}

int gdri_options_read(struct gdri_options *opt, char *const *env)
{
	static bool warned; /* set once; a second warning by a racing init does no harm */
	bool warn = !__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED);
	int ret = 0;

	set_defaults(opt);
	for (env = env ? env : environ; env && *env; env++) {
		if (!strncmp(*env, "GDR_", 4) && take_variable(opt, *env + 4, warn))
			ret = -GDR_EOPTION;
	}
	return ret;
}

/* "1.5G", "2e9", "64m": as NVSHMEM reads it. 0: none, or not a size. */
static uint64_t options_symmetric_size(void)
{
	static const char units[] = "kmgt";
	const char *text = getenv("NVSHMEM_SYMMETRIC_SIZE"), *unit;
	char *end;
	double n;

	if (!text || !*text)
		return 0;
	n = strtod(text, &end);
	unit = *end ? strchr(units, *end | 32) : NULL;
	if (unit)
		n *= (double)((uint64_t)1024 << 10 * (unit - units));
	if (n > 0 && n <= (double)(4ull << 40) && (unit ? !end[1] || (end[1] | 32) == 'b' : !*end))
		return (uint64_t)n;
	gdri_warn("NVSHMEM_SYMMETRIC_SIZE=%.60s is not a size (1.5G, 512M, bytes): not used", text);
	return 0;
}

void gdri_options_nvshmem_heap(struct gdri_options *opt, bool on_gpu)
{
	const uint64_t least = 2ull << 30, most = 128ull << 30, own = 64ull << 20;
	const char *set = getenv("GDR_HEAP_SIZE");
	uint64_t size;

	if (set && *set)
		return;
	size = options_symmetric_size();
	if (size)
		opt->heap_size = size + own;
	if (!on_gpu)
		return;
	if (!size || opt->heap_size < least)
		opt->heap_size = least;
	if (!opt->heap_max)
		opt->heap_max = opt->heap_size > most ? opt->heap_size : most;
}

const char *gdri_options_libfabric(const char *name)
{
	const char *set = getenv(name);

	return set && *set ? set : NULL;
}

double gdri_patience(const struct gdri_options *opt, unsigned int n)
{
	return 4.096e-6 * (double)(1ull << n) * (opt->retry_count + 1);
}

unsigned int gdri_ack_timeout(const struct gdri_options *opt)
{
	unsigned int n = 20; /* as much as other runtimes have */

	if (opt->ack_timeout)
		return opt->ack_timeout;
	while (n > 1 && gdri_patience(opt, n) >= 1e-3 * (double)opt->timeout_ms)
		n--;
	return n;
}

static int options_power(const char *name, uint64_t value)
{
	uint64_t below = 1;

	if (!(value & (value - 1)))
		return 0;
	while (2 * below < value)
		below *= 2;
	return gdri_fail(-GDR_EOPTION, "GDR_%s=%llu is not a power of two: %llu and %llu are", name,
			 (unsigned long long)value, (unsigned long long)below, (unsigned long long)(2 * below));
}

int gdri_options_check(const struct gdri_options *opt)
{
	static const unsigned int mtus[] = {0, 256, 512, 1024, 2048, 4096};
	cpu_set_t cpus;
	char why[512];

	if (options_power("QP_DEPTH", opt->qp_depth) || options_power("COLL_SLOT", opt->coll_slot))
		return -GDR_EOPTION;
	if (opt->heap_chunk % ((uint64_t)2 << 20))
		return gdri_fail(-GDR_EOPTION, "GDR_HEAP_CHUNK=%llu is not a multiple of 2m",
				 (unsigned long long)opt->heap_chunk);
	if (opt->heap_max && opt->heap_max < opt->heap_size)
		return gdri_fail(-GDR_EOPTION, "GDR_HEAP_MAX=%llu is less than the heap's size, GDR_HEAP_SIZE=%llu",
				 (unsigned long long)opt->heap_max, (unsigned long long)opt->heap_size);
	if (gdri_coll_check(opt->coll, why, sizeof(why)))
		return gdri_fail(-GDR_EOPTION, "GDR_COLL=\"%s\" is not accepted: %s", opt->coll, why);
	if (strcmp(opt->proxy_cpus, "auto") && strcmp(opt->proxy_cpus, "any") &&
	    !gdri_parse_cpus(opt->proxy_cpus, &cpus))
		return gdri_fail(-GDR_EOPTION,
				 "GDR_PROXY_CPUS=\"%s\" is not accepted; it takes auto, any, or numbers of CPUs below "
				 "%d that rise (4-7,12)",
				 opt->proxy_cpus, 8 * (int)sizeof(cpus));
	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		if (opt->mtu == mtus[i])
			return 0;
	}
	return gdri_fail(-GDR_EOPTION, "GDR_MTU=%u is not one of 0, 256, 512, 1024, 2048, 4096", opt->mtu);
}

static void add_words(struct text *t, const char *words, uint64_t set)
{
	const char *comma = "";

	for (unsigned int i = 0; *words; i++) {
		size_t n = strcspn(words, "|");

		if (set & (1ull << i)) {
			text_add(t, "%s%.*s", comma, (int)n, words);
			comma = ",";
		}
		words += n + (words[n] == '|');
	}
}

static void add_value(struct text *t, const struct option *o, const void *field)
{
	switch (o->kind) {
	case KIND_size:
		text_add(t, "%" PRIu64, *(const uint64_t *)field);
		break;
	case KIND_uint:
		text_add(t, "%u", *(const unsigned int *)field);
		break;
	case KIND_int:
		text_add(t, "%d", *(const int *)field);
		break;
	case KIND_time:
		text_add(t, "%dms", *(const int *)field);
		break;
	case KIND_bool:
		text_add(t, "%d", *(const bool *)field);
		break;
	case KIND_string:
		text_add(t, "%s", (const char *)field);
		break;
	case KIND_list:
		add_words(t, o->min, *(const unsigned int *)field);
		break;
	case KIND_enum:
		add_words(t, o->min, 1ull << *(const unsigned int *)field);
		break;
	}
}

void gdri_option_text(const char *name, const void *field, char *buf, size_t room)
{
	const struct option *o = find_option(name, strlen(name));
	struct text t = {buf, room, 0};

	*buf = 0;
	if (o)
		add_value(&t, o, field);
}

void gdri_options_print(FILE *f, const struct gdri_options *opt)
{
	char value[GDRI_OPTION_TEXT_MAX];

	for (size_t i = 0; i < N_OPTIONS; i++) {
		gdri_option_text(options[i].name, (const char *)opt + options[i].offset, value, sizeof(value));
		fprintf(f, "GDR_%s=%s\n", options[i].name, value);
	}
}

static void markdown_values(FILE *f, const struct option *o)
{
	const char *p;

	switch (o->kind) {
	case KIND_list:
	case KIND_enum:
		for (p = o->min; *p; p++)
			fputs(*p == '|' ? ", " : (const char[]){*p, 0}, f);
		break;
	case KIND_string:
		fputs("text", f);
		break;
	case KIND_bool:
		fputs("yes, no", f);
		break;
	default:
		fprintf(f, "%s to %s%s%s", o->min, o->max, *o->unit ? " " : "", o->unit);
		break;
	}
}

void gdri_options_markdown(FILE *f)
{
	fputs("# Options\n\n"
	      "Written by `tools/gen_options` from `runtime/core/options.def`; do not edit.\n\n"
	      "Environment variables, read once by `gdr_init` and then frozen. A value that is not "
	      "wholly\nunderstood, or out of range, makes `gdr_init` fail on all PEs and name the "
	      "variable; an unknown `GDR_` variable\nis warned about once. Set to nothing (`GDR_NIC=`) is not "
	      "unset: an option whose default is empty has\nits default then, all others refuse it. Sizes take the "
	      "suffixes k, m, g, t (powers of 1024), times a unit: ms, s, m, h, d.\nLists are "
	      "comma-separated. `gdr_info -e` prints the values in force.\n\n"
	      "| variable | default | values | meaning |\n|---|---|---|---|\n",
	      f);
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option *o = &options[i];

		fprintf(f, "| `GDR_%s` | %s%s%s | ", o->name, *o->def ? "`" : "", *o->def ? o->def : "empty",
			*o->def ? "`" : "");
		markdown_values(f, o);
		fprintf(f, " | %s |\n", o->text);
	}
}
