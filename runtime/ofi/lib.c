// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* dlvsym, O_PATH */
#include "runtime/ofi/lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/core/text.h"

#define OFI_FILE "libfabric.so.1"
#define OFI_API	 FI_VERSION(1, 14)
/* Of fi_endpoint.h, which has them from 1.18 and 1.22 on. */
#define OFI_CUDA_API 10	    /* FI_OPT_CUDA_API_PERMITTED */
#define OFI_MESSAGE_SIZE 12 /* FI_OPT_MAX_MSG_SIZE */
/* Where its ports have a range tcp draws one at which nobody listens, and listens there later: others may be first. */
#define OFI_PORT_TRIES 64
#define OFI_CQ	 8192 /* completions that may wait to be read; the provider refuses what is beyond */

/* What is to be known of a provider beside what it says of itself. No row: it is taken as it comes. */
static const struct quirk {
	const char *name;
	bool by_name; /* never chosen by itself */
	const char *ports; /* listens for TCP: its options for the ports, before _LOW_RANGE and _HIGH_RANGE */
	bool lands; /* see gdri_ofi_fabric; what it receives it tells of by a call of the kernel */
	bool stays; /* on one node */
} quirks[] = {
	{.name = "tcp;ofi_rxm", .ports = "FI_TCP_PORT", .lands = true},
	{.name = "tcp", .ports = "FI_TCP_PORT"}, /* from 1.18 on: receives as it writes */
	{.name = "shm", .by_name = true, .stays = true},
	{.name = "net", .by_name = true, .ports = "FI_NET_PORT"}, /* tcp of messages, in development */
	{.name = "net;ofi_rxm", .by_name = true, .ports = "FI_NET_PORT"},
	{.name = "udp;ofi_rxd", .by_name = true}, /* slow, and tcp is there where it is */
	{.name = "UDP;ofi_rxd", .by_name = true},
	{.name = "sockets", .by_name = true}, /* superseded by tcp */
	{.name = "ofi_mrail", .by_name = true},
};

/* NULL: no row. */
static const struct quirk *quirk_of(const struct fi_info *info)
{
	size_t i;

	for (i = 0; i < sizeof(quirks) / sizeof(quirks[0]); i++)
		if (!strcmp(quirks[i].name, info->fabric_attr->prov_name))
			return &quirks[i];
	return NULL;
}

const char *gdri_ofi_ports(const struct fi_info *info)
{
	const struct quirk *q = quirk_of(info);

	return q ? q->ports : NULL;
}

bool gdri_ofi_stays(const struct fi_info *info)
{
	const struct quirk *q = quirk_of(info);
	const struct sockaddr_in *in4 = info->src_addr;
	const struct sockaddr_in6 *in6 = info->src_addr;

	if (q && q->stays)
		return true;
	if (info->src_addr && info->addr_format == FI_SOCKADDR_IN)
		return ntohl(in4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return info->src_addr && info->addr_format == FI_SOCKADDR_IN6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* A thread of the provider's own would move bytes while others look. */
static bool quirk_lands(const struct fi_info *info)
{
	const struct quirk *q = quirk_of(info);

	return q && q->lands && info->domain_attr->data_progress == FI_PROGRESS_MANUAL;
}

/* ---- signals ---- */

/* Libraries that come along with libfabric take signals for themselves (Debian's libinfinipath: SIGINT, SIGTERM,
 * SIGSEGV and more): the program's own handlers do not run then, and a crash ends by exit(), without a core, or never,
 * where libfabric holds a lock that its destructor wants. What a signal does is the program's to say, so it is after a
 * load what it was before. What opening an endpoint adds stays: provider shm removes its files from /dev/shm, and gives
 * the signal to the handler that was there. */
struct signals {
	struct sigaction was[NSIG];
};

static void signals_keep(struct signals *s)
{
	int i;

	memset(s, 0, sizeof(*s)); /* some have none: the C library's own */
	for (i = 1; i < NSIG; i++)
		sigaction(i, NULL, &s->was[i]);
}

static void signals_put_back(const struct signals *s)
{
	struct sigaction now;
	int i;

	for (i = 1; i < NSIG; i++)
		if (!sigaction(i, NULL, &now) &&
		    (now.sa_sigaction != s->was[i].sa_sigaction || now.sa_flags != s->was[i].sa_flags))
			sigaction(i, &s->was[i], NULL);
}

/* ---- the library ---- */

/* One that comes while others' handlers are there waits. What loads for long, getinfo, leaves them be: a call of
 * libfabric's that does not return can be ended. */
static void *lib_load(bool stays)
{
	struct signals before;
	sigset_t all, old;
	void *handle;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	signals_keep(&before);
	handle = dlopen(OFI_FILE, RTLD_NOW | RTLD_LOCAL);
	if (handle && !stays)
		dlclose(handle);
	signals_put_back(&before);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return handle;
}

/* Loads providers, the first time. */
static int lib_getinfo(struct gdri_ofi_lib *lib, const struct fi_info *hints, struct fi_info **all)
{
	struct signals before;
	int rc;

	signals_keep(&before);
	rc = lib->getinfo(OFI_API, NULL, NULL, 0, hints, all);
	signals_put_back(&before);
	return rc;
}

/* The symbol as its headers of 1.14 and later declare it; releases after 1.17 keep it beside newer ones. */
static void *lib_symbol(struct gdri_ofi_lib *lib, const char *name, const char *version)
{
	void *p = dlvsym(lib->handle, name, version);

	p = p ? p : dlsym(lib->handle, name);
	if (!p)
		gdri_error("ofi: libfabric.so.1 has no %s: version 1.14 or later is needed", name);
	return p;
}

bool gdri_ofi_lib_is_there(void)
{
	return lib_load(false);
}

/* Where addresses end, some of libfabric's providers stall, some end the process (docs/ofi.md): it is said before. */
#define OFI_ADDRESSES ((size_t)512 << 20)
static void warn_of_addresses(void)
{
	struct rlimit most;
	void *p;

	if (getrlimit(RLIMIT_AS, &most) || most.rlim_cur == RLIM_INFINITY)
		return;
	p = mmap(NULL, OFI_ADDRESSES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		gdri_warn("ofi: libfabric may need more addresses than are left, %zu MiB: %s", OFI_ADDRESSES >> 20,
			  gdri_errno_text(ENOMEM));
	else
		munmap(p, OFI_ADDRESSES);
}

int gdri_ofi_lib_open(struct gdri_ofi_lib *lib)
{
	warn_of_addresses();
	lib->handle = lib_load(true);
	if (!lib->handle)
		return gdri_fail(
			-GDR_ENOTSUP,
			"ofi: %s: install libfabric (Debian: libfabric1), or take ofi out of "
			"GDR_TRANSPORTS",
			dlerror());
#define TAKE(field, version)                                      \
	do {                                                      \
		void *p = lib_symbol(lib, "fi_" #field, version); \
		if (!p)                                           \
			return -GDR_ENOTSUP;                      \
		memcpy(&lib->field, &p, sizeof(p));               \
	} while (0)
	TAKE(getinfo, "FABRIC_1.3");
	TAKE(freeinfo, "FABRIC_1.3");
	TAKE(dupinfo, "FABRIC_1.3");
	TAKE(fabric, "FABRIC_1.1");
	TAKE(strerror, "FABRIC_1.0");
	TAKE(version, "FABRIC_1.0");
#undef TAKE
	return 0;
}

/* ---- the choice ---- */

/* "tcp" names "tcp;ofi_rxm", too. */
static bool choose_is_named(const char *provider, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(provider, name, n) && (!provider[n] || provider[n] == ';');
}

/* By hand: layered providers do not look at names in the hints. */
static bool choose_may(const struct fi_info *info, const struct gdri_options *opt)
{
	const struct quirk *q = quirk_of(info);

	if (*opt->ofi_domain && strcmp(opt->ofi_domain, info->domain_attr->name) != 0)
		return false;
	if (*opt->ofi_provider)
		return choose_is_named(info->fabric_attr->prov_name, opt->ofi_provider);
	return !q || !q->by_name;
}

static struct fi_info *choose_hints(struct gdri_ofi_lib *lib, bool delivers)
{
	struct fi_info *h = lib->dupinfo(NULL);

	if (!h)
		return NULL;
	h->caps = FI_MSG | FI_SEND | FI_RECV | FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
		  FI_REMOTE_WRITE;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->ep_attr->type = FI_EP_RDM;
	h->tx_attr->op_flags = delivers ? FI_DELIVERY_COMPLETE : 0;
	h->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_RAW;
	h->domain_attr->threading = FI_THREAD_SAFE; /* threads of the program register memory */
	h->domain_attr->av_type = FI_AV_TABLE;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	return h;
}

/* Whether one in front of i has its provider, and its domain, if that counts. */
static bool choose_was(const struct fi_info *all, const struct fi_info *i, bool domain)
{
	for (; all != i; all = all->next)
		if (!strcmp(all->fabric_attr->prov_name, i->fabric_attr->prov_name) &&
		    (!domain || !strcmp(all->domain_attr->name, i->domain_attr->name)))
			return true;
	return false;
}

/* "tcp;ofi_rxm (eth0, lo), shm (shm)" */
static void choose_list(const struct fi_info *all, char *buf, size_t room)
{
	struct text t = {buf, room, 0};
	const struct fi_info *i, *j;

	for (i = all; i; i = i->next) {
		if (choose_was(all, i, false))
			continue;
		text_add(&t, "%s%s (%s", i == all ? "" : ", ", i->fabric_attr->prov_name,
			 i->domain_attr->name);
		for (j = i->next; j; j = j->next)
			if (!strcmp(j->fabric_attr->prov_name, i->fabric_attr->prov_name) &&
			    !choose_was(all, j, true))
				text_add(&t, ", %s", j->domain_attr->name);
		text_add(&t, ")");
	}
}

/* What the machine lacks, behind an error of libfabric's, which may be of any name; "": nothing that is known. */
struct lack {
	char text[240];
};

/* A provider closes what it has opened before its error is seen here, so some more are asked for. */
#define LACK_DESCRIPTORS 8
static struct lack lack_descriptors(void)
{
	struct lack lack = {""};
	int fds[LACK_DESCRIPTORS], n = 0;

	while (n < LACK_DESCRIPTORS && (fds[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		n++;
	if (n < LACK_DESCRIPTORS && errno == EMFILE)
		snprintf(lack.text, sizeof(lack.text), " (few descriptors are left: %s)", gdri_errno_text(EMFILE));
	while (n > 0)
		close(fds[--n]);
	return lack;
}

static struct lack lack_of(const char *provider)
{
	struct lack lack = lack_descriptors();
	struct text t = {lack.text, sizeof(lack.text), 0};
	struct statvfs fs;

	if (*lack.text || strcmp(provider, "shm") != 0)
		return lack;
	if (statvfs("/dev/shm", &fs))
		text_add(&t, " (shm takes its memory from /dev/shm, which cannot be used: %s)", strerror(errno));
	else if (fs.f_flag & ST_RDONLY)
		text_add(&t, " (shm takes its memory from /dev/shm, which is read-only)");
	else
		text_add(&t, " (shm takes its memory from /dev/shm, which has %llu KiB left: make it larger, in "
			     "containers by --shm-size, or remove what ended jobs left there)",
			 (unsigned long long)fs.f_bavail * fs.f_frsize / 1024);
	return lack;
}

/* all: what libfabric found; NULL: nothing, which it calls why. */
static int choose_fails(const struct gdri_options *opt, const struct fi_info *all, const char *why)
{
	const char *provider = opt->ofi_provider, *domain = opt->ofi_domain;
	const char *hides = gdri_options_libfabric("FI_PROVIDER");
	struct lack lack = lack_of(provider);
	char list[600] = "";

	choose_list(all, list, sizeof(list));
	return gdri_fail(-GDR_ENOTSUP,
			 "ofi: no provider%s%s%s%s of libfabric has reliable datagrams with RMA here%s%s%s%s%s: "
			 "%s%s",
			 *provider ? " " : "", provider, *domain ? " at " : "", domain,
			 *provider || *domain || !all ? "" : " and is taken without being named",
			 hides ? " (FI_PROVIDER=" : "", hides ? hides : "",
			 hides ? ", an option of libfabric, hides others)" : "", lack.text,
			 all ? "GDR_OFI_PROVIDER (GDR_OFI_DOMAIN) may be " : why,
			 all ? list : "; fi_info -t FI_EP_RDM lists those there are");
}

/* Family 0: its addresses are of another kind. */
static struct gdri_inet choose_address(const struct fi_info *info)
{
	bool ip = info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6;

	return gdri_inet_of(ip ? info->src_addr : NULL);
}

static bool choose_has(const struct fi_info *info, const struct gdri_inet *from)
{
	const struct gdri_inet own = choose_address(info);

	return from && gdri_inet_is(from, &own);
}

/* Of the first one's provider that which has the address, if any; else the first. Both as opt wants it. */
static const struct fi_info *choose_from(const struct fi_info *first, const struct gdri_options *opt,
					 const struct gdri_inet *from)
{
	const struct fi_info *i;

	for (i = first; i; i = i->next)
		if (!strcmp(i->fabric_attr->prov_name, first->fabric_attr->prov_name) && choose_may(i, opt) &&
		    choose_has(i, from))
			return i;
	return first;
}

/* What there is, and in out which of it is taken, if any. 0 or a negative number of libfabric's. */
static int choose_of(struct gdri_ofi_lib *lib, const struct gdri_options *opt, const struct gdri_inet *from,
		     bool delivers, struct fi_info **all, struct fi_info **out)
{
	struct fi_info *hints = choose_hints(lib, delivers), *i = NULL;
	int rc = hints ? lib_getinfo(lib, hints, all) : -FI_ENOMEM;

	if (hints)
		lib->freeinfo(hints);
	if (rc)
		*all = NULL;
	for (i = *all; i; i = i->next)
		if (choose_may(i, opt))
			break;
	*out = i ? lib->dupinfo(choose_from(i, opt, from)) : NULL;
	return rc;
}

/* The one that was chosen, as it is with memory of GPUs; NULL: it has no such form. */
static struct fi_info *choose_hmem(struct gdri_ofi_lib *lib, const struct fi_info *chosen, bool delivers)
{
	struct fi_info *hints = choose_hints(lib, delivers), *all = NULL, *i, *out = NULL;
	struct gdri_inet own = choose_address(chosen);

	if (!hints)
		return NULL;
	hints->caps |= FI_HMEM;
	hints->domain_attr->mr_mode |= FI_MR_HMEM;
	if (lib_getinfo(lib, hints, &all))
		all = NULL;
	for (i = all; i && !out; i = i->next)
		if (!strcmp(i->fabric_attr->prov_name, chosen->fabric_attr->prov_name) &&
		    !strcmp(i->domain_attr->name, chosen->domain_attr->name) &&
		    (!own.family || choose_has(i, &own)))
			out = lib->dupinfo(i);
	lib->freeinfo(hints);
	if (all)
		lib->freeinfo(all);
	return out;
}

int gdri_ofi_choose(struct gdri_ofi_lib *lib, const struct gdri_options *opt, const struct gdri_inet *from,
		    struct fi_info **out, bool *delivers)
{
	struct fi_info *all = NULL;
	int rc = choose_of(lib, opt, from, true, &all, out);

	*delivers = *out != NULL;
	if (!*out) {
		if (all)
			lib->freeinfo(all);
		rc = choose_of(lib, opt, from, false, &all, out);
	}
	rc = *out ? 0 : choose_fails(opt, all, lib->strerror(-rc));
	if (all)
		lib->freeinfo(all);
	return rc;
}

/* ---- the endpoint ---- */

/* 0 or a negative number of libfabric's, and the call that it is of. */
static int fabric_start(struct gdri_ofi_fabric *f, bool hmem, const char **call)
{
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE, .size = OFI_CQ};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	bool calls_cuda = false;
	int rc;

#define STEP(name, ...) (rc = rc ? rc : (*call = #name, name(__VA_ARGS__)))
	*call = "fi_fabric";
	rc = f->lib.fabric(f->info->fabric_attr, &f->fabric, NULL);
	STEP(fi_domain, f->fabric, f->info, &f->domain, NULL);
	STEP(fi_cq_open, f->domain, &cq, &f->cq, NULL);
	STEP(fi_av_open, f->domain, &av, &f->av, NULL);
	STEP(fi_endpoint, f->domain, f->info, &f->ep, NULL);
	STEP(fi_ep_bind, f->ep, &f->av->fid, 0);
	STEP(fi_ep_bind, f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV);
	/* Such a call waits for kernels, which wait for other PEs. All that have FI_HMEM know the option, and refuse it
	 * where they need such calls (fi_endpoint(3)). */
	if (hmem)
		STEP(fi_setopt, &f->ep->fid, FI_OPT_ENDPOINT, OFI_CUDA_API, &calls_cuda, sizeof(calls_cuda));
	STEP(fi_enable, f->ep);
#undef STEP
	return rc;
}

/* Most bytes of a message: where the provider says nothing of it, those of anything. */
static size_t fabric_message(const struct gdri_ofi_fabric *f)
{
	size_t most, len = sizeof(most);

	if (!fi_getopt(&f->ep->fid, FI_OPT_ENDPOINT, OFI_MESSAGE_SIZE, &most, &len) && len == sizeof(most))
		return most;
	return f->info->ep_attr->max_msg_size;
}

static void fabric_end(struct gdri_ofi_fabric *f)
{
#define CLOSE(field)                              \
	do {                                      \
		if (f->field)                     \
			fi_close(&f->field->fid); \
		f->field = NULL;                  \
	} while (0)
	CLOSE(ep);
	CLOSE(cq);
	CLOSE(av);
	CLOSE(domain);
	CLOSE(fabric);
#undef CLOSE
}

void gdri_ofi_fabric_close(struct gdri_ofi_fabric *f)
{
	fabric_end(f);
	if (f->info)
		f->lib.freeinfo(f->info);
	f->info = NULL; /* the library stays open: threads of its own may be ending */
}

/* As f->info says. */
static int fabric_begin(struct gdri_ofi_fabric *f, bool hmem, const char **call)
{
	uint64_t mode = (uint64_t)f->info->domain_attr->mr_mode;
	int rc, left = OFI_PORT_TRIES;

	f->mr_local = mode & FI_MR_LOCAL;
	f->mr_virt = mode & FI_MR_VIRT_ADDR;
	f->mr_keys = mode & FI_MR_PROV_KEY;
	f->mr_bound = mode & FI_MR_ENDPOINT;
	f->mr_raw = mode & FI_MR_RAW;
	f->lands = quirk_lands(f->info);
	gdri_ofi_keys_open(&f->keys, f->info->domain_attr->mr_key_size);
	do {
		fabric_end(f);
		rc = fabric_start(f, hmem, call);
	} while (rc == -FI_EADDRINUSE && --left);
	if (!rc)
		f->message = fabric_message(f);
	return rc;
}

/* With memory of GPUs, if the provider moves that by itself. */
static bool fabric_begin_hmem(struct gdri_ofi_fabric *f)
{
	struct fi_info *plain = f->info;
	const char *call;

	f->info = choose_hmem(&f->lib, plain, f->delivers);
	f->reaches_gpus = f->info && !fabric_begin(f, true, &call);
	if (f->reaches_gpus) {
		f->lib.freeinfo(plain);
	} else {
		gdri_ofi_fabric_close(f);
		f->info = plain;
	}
	return f->reaches_gpus;
}

static struct lack lack_ports(const struct fi_info *info, int rc)
{
	const char *ports = gdri_ofi_ports(info);
	struct lack lack = {""};

	if (ports && (rc == -FI_EADDRINUSE || rc == -FI_EADDRNOTAVAIL))
		snprintf(lack.text, sizeof(lack.text),
			 " (if %s_LOW_RANGE and %s_HIGH_RANGE are set: a node needs a port for each thread of each PE)",
			 ports, ports);
	return lack;
}

static int fabric_opens(struct gdri_ofi_fabric *f, bool hmem)
{
	const char *call, *provider;
	int rc = fabric_begin(f, hmem, &call);

	if (!rc)
		return 0;
	provider = f->info->fabric_attr->prov_name;
	return gdri_fail(-GDR_ESYSTEM, "ofi: %s at %s: %s: %s%s%s", provider, f->info->domain_attr->name, call,
			 f->lib.strerror(-rc), lack_of(provider).text, lack_ports(f->info, rc).text);
}

int gdri_ofi_fabric_open(struct gdri_ofi_fabric *f, const struct gdri_options *opt, const struct gdri_inet *from,
			 bool gpus)
{
	int ret = gdri_ofi_lib_open(&f->lib);

	ret = ret ? ret : gdri_ofi_choose(&f->lib, opt, from, &f->info, &f->delivers);
	if (ret || (gpus && fabric_begin_hmem(f)))
		return ret;
	return fabric_opens(f, false);
}

int gdri_ofi_fabric_again(struct gdri_ofi_fabric *f, const struct gdri_ofi_fabric *first)
{
	f->lib = first->lib;
	f->delivers = first->delivers;
	f->reaches_gpus = first->reaches_gpus;
	f->info = f->lib.dupinfo(first->info);
	return f->info ? fabric_opens(f, f->reaches_gpus) : gdri_fail(-GDR_ENOMEM, "ofi: out of memory");
}
