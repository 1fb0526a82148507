/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca [OPTION...] COMMAND [ARGUMENT...]: runs a command with libsofthca.so
 * preloaded. All it does is set the environment; `mpirun softhca PROGRAM` and
 * `softhca mpirun PROGRAM` both work on one host.
 *
 * Sanitizer runtimes have to come first in the link order: where the command,
 * or libsofthca.so itself, is linked with libasan or libtsan, that library is
 * preloaded before ours. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/faults/faults.h"
#include "softhca/tools/options.h"

static const char usage[] =
	"usage: softhca [OPTION...] COMMAND [ARGUMENT...]\n"
	"Runs COMMAND on an mlx5 RDMA device that exists in user space only.\n"
	"(--option=value or --option value)\n\n"
	"  --link=eth|ib   link layer of the port (SOFTHCA_LINK)\n"
	"  --devices=N     show N devices (SOFTHCA_DEVICES)\n"
	"  --device=SPEC   which device, and what it has or lacks (SOFTHCA_DEVICE)\n"
	"  --stats[=FILE]  counters at exit, on stderr or appended to FILE (SOFTHCA_STATS)\n"
	"  --faults=SPEC   produce faults (SOFTHCA_FAULTS)\n"
	"  --strict        report WQEs and doorbells that hardware would punish (SOFTHCA_STRICT)\n"
	"  --error-exitcode=N  exit status after such reports (SOFTHCA_ERROR_EXITCODE)\n"
	"  --nodes=N       make N hosts of this one, by gethostname() (SOFTHCA_NODES)\n"
	"  --no-shm        UDP between processes of one host, too (SOFTHCA_SHM=0)\n"
	"  --debug=LEVEL   messages on stderr (SOFTHCA_DEBUG)\n"
	"  --selftest      tries the device in place of a COMMAND, says what this machine allows\n"
	"  --help          this text\n"
	"  --version       version\n\n"
	"Environment:\n";

static int launcher_fail(const char *what, const char *why)
{
	fprintf(stderr, "softhca: %s: %s\n", what, why);
	return 127;
}

static void print_help(void)
{
	fputs(usage, stdout);
#define HELP(field, name, type, def, help) printf("  %-24s%s (default \"%s\")\n", name, help, def);
	HCA_OPTIONS(HELP)
#undef HELP
	hca_device_help();
}

/* ---- which sanitizer a file is linked with ---- */

struct elf_file {
	const uint8_t *data;
	size_t size;
};

static const void *launcher_at(const struct elf_file *f, uint64_t offset, uint64_t len)
{
	if (offset > f->size || len > f->size - offset)
		return NULL;
	return f->data + offset;
}

static const Elf64_Phdr *launcher_segment(const struct elf_file *f, const Elf64_Ehdr *eh, unsigned i)
{
	return launcher_at(f, eh->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
}

/* File offset of a virtual address. */
static uint64_t offset_of(const struct elf_file *f, const Elf64_Ehdr *eh, uint64_t addr)
{
	for (unsigned i = 0; i < eh->e_phnum; i++) {
		const Elf64_Phdr *ph = launcher_segment(f, eh, i);

		if (ph && ph->p_type == PT_LOAD && addr >= ph->p_vaddr &&
		    addr - ph->p_vaddr < ph->p_filesz)
			return addr - ph->p_vaddr + ph->p_offset;
	}
	return UINT64_MAX;
}

/* NUL-terminated string inside the file. */
static const char *string_at(const struct elf_file *f, uint64_t offset)
{
	const char *s = launcher_at(f, offset, 1);

	return s && memchr(s, '\0', f->size - offset) ? s : NULL;
}

static const char *search_dynamic(const struct elf_file *f, const Elf64_Ehdr *eh,
				  const Elf64_Phdr *ph)
{
	uint64_t n = ph->p_filesz / sizeof(Elf64_Dyn), strtab = UINT64_MAX;
	const Elf64_Dyn *d = launcher_at(f, ph->p_offset, n * sizeof(*d));

	if (!d)
		return NULL;
	for (uint64_t i = 0; i < n && d[i].d_tag != DT_NULL; i++)
		if (d[i].d_tag == DT_STRTAB)
			strtab = offset_of(f, eh, d[i].d_un.d_ptr);
	if (strtab >= f->size)
		return NULL;
	for (uint64_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
		const char *name;

		if (d[i].d_tag != DT_NEEDED || d[i].d_un.d_val >= f->size)
			continue;
		name = string_at(f, strtab + d[i].d_un.d_val);
		if (name && (!strncmp(name, "libasan.so", 10) || !strncmp(name, "libtsan.so", 10)))
			return name;
	}
	return NULL;
}

/* "libasan.so.8" or the like, allocated; NULL if none or no ELF file. */
static char *sanitizer_of(const char *path)
{
	struct elf_file f = {0};
	const Elf64_Ehdr *eh;
	char *found = NULL;
	struct stat st;
	void *map;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(*eh))
		goto out;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		goto out;
	f.data = map;
	f.size = (size_t)st.st_size;
	eh = map;
	if (!memcmp(eh->e_ident, ELFMAG, SELFMAG) && eh->e_ident[EI_CLASS] == ELFCLASS64) {
		for (unsigned i = 0; i < eh->e_phnum && !found; i++) {
			const Elf64_Phdr *ph = launcher_segment(&f, eh, i);
			const char *name = NULL;

			if (ph && ph->p_type == PT_DYNAMIC)
				name = search_dynamic(&f, eh, ph);
			if (name)
				found = strdup(name);
		}
	}
	munmap(map, (size_t)st.st_size);
out:
	if (fd >= 0)
		close(fd);
	return found;
}

/* ---- finding files ---- */

/* Where execvp() will find the command; false if nowhere. */
static bool launcher_resolve(const char *command, char *out)
{
	const char *path = getenv("PATH");
	const char *end;

	if (strchr(command, '/')) {
		snprintf(out, PATH_MAX, "%s", command);
		return access(out, X_OK) == 0;
	}
	for (path = path ? path : "/usr/bin:/bin"; *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		if (snprintf(out, PATH_MAX, "%.*s/%s", (int)(end - path),
			     end == path ? "." : path, command) < PATH_MAX &&
		    access(out, X_OK) == 0)
			return true;
	}
	return false;
}

/* Beside the launcher in a build tree, in the library directory once installed. */
static bool find_ours(const char *name, char *out)
{
	static const char *const places[] = {"", SOFTHCA_LIBDIR_FROM_BIN "/"};
	char self[PATH_MAX], candidate[2 * PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s%s%s", self, places[i], name);
		if (access(candidate, R_OK) == 0 && realpath(candidate, out))
			return true;
	}
	return false;
}

static bool launcher_knows_itself(void)
{
	char first;

	return readlink("/proc/self/exe", &first, 1) == 1;
}

/* The sysfs tree for so many devices; leaves its name. */
static bool find_tree(char name[32])
{
	const char *devices = getenv("SOFTHCA_DEVICES");
	char found[PATH_MAX];

	if (devices && atoi(devices) > 1)
		snprintf(name, 32, "sysfs-%d", atoi(devices));
	else
		snprintf(name, 32, "sysfs");
	return find_ours(name, found);
}

/* ---- main ---- */

static int set_preload(const char *library, const char *command)
{
	const char *old = getenv("LD_PRELOAD");
	char *sanitizer = sanitizer_of(command);
	char *value;

	if (!sanitizer)
		sanitizer = sanitizer_of(library);
	/* Nested calls add nothing. */
	if (old && strstr(old, library)) {
		free(sanitizer);
		return 0;
	}
	if (asprintf(&value, "%s%s%s%s%s", sanitizer ? sanitizer : "", sanitizer ? ":" : "",
		     library, old && *old ? ":" : "", old ? old : "") < 0)
		return ENOMEM;
	free(sanitizer);
	if (setenv("LD_PRELOAD", value, 1))
		return errno;
	free(value);
	return 0;
}

/* An option that only sets a variable: --option=value, or --option value where the value is not left out. The
 * number of words used; 0: none of them, -1: it lacks its value, or has one and takes none. */
static int option_variable(char *const *words)
{
	static const struct {
		const char *option, *variable, *alone;
		bool takes_none;
	} table[] = {
		{"--link", "SOFTHCA_LINK", NULL, false},
		{"--devices", "SOFTHCA_DEVICES", NULL, false},
		{"--device", "SOFTHCA_DEVICE", NULL, false},
		{"--stats", "SOFTHCA_STATS", "1", false},
		{"--faults", "SOFTHCA_FAULTS", NULL, false},
		{"--strict", "SOFTHCA_STRICT", "2", false},
		{"--error-exitcode", "SOFTHCA_ERROR_EXITCODE", NULL, false},
		{"--nodes", "SOFTHCA_NODES", NULL, false},
		{"--debug", "SOFTHCA_DEBUG", NULL, false},
		{"--no-shm", "SOFTHCA_SHM", "0", true},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t n = strlen(table[i].option);
		const char *value = words[0] + n + 1;
		int used = 1;

		if (strncmp(words[0], table[i].option, n) || (words[0][n] && words[0][n] != '='))
			continue;
		if (!words[0][n]) {
			value = table[i].alone ? table[i].alone : words[1];
			used = table[i].alone ? 1 : 2;
		}
		if (!value || !*value || (table[i].takes_none && words[0][n]))
			return -1;
		return setenv(table[i].variable, value, 1) ? -1 : used;
	}
	return 0;
}

static const char *option_wrong(const char *word, int used)
{
	if (!used)
		return "no such option; softhca --help lists them";
	return strncmp(word, "--no-", 5) ? "its value is missing" : "takes no value";
}

/* A file that counters can be appended to, or a folder to make it in: a process that ends says too late that there is
 * none, and one that opens no device says nothing. 0, or an error of errno. */
static int launcher_check_stats(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct stat s;

	if (!*path || !strcmp(path, "0") || !strcmp(path, "1"))
		return 0;
	if (!stat(path, &s))
		return S_ISDIR(s.st_mode) ? EISDIR : access(path, W_OK) ? errno : 0;
	if (!slash)
		return access(".", W_OK) ? errno : 0;
	if ((size_t)(slash - path) + 2 > sizeof(folder))
		return ENAMETOOLONG;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path) + 1, path);
	return access(folder, W_OK) ? errno : 0;
}

/* What cannot be used is refused here, once, and not by each process. */
static int launcher_check_options(void)
{
	const char *stats = getenv("SOFTHCA_STATS");
	int rc = stats ? launcher_check_stats(stats) : 0;
	const char *faults = getenv("SOFTHCA_FAULTS"), *text = getenv("SOFTHCA_DEVICE");
	struct hca_device device;
	char err[400];

	if (rc) {
		fprintf(stderr, "softhca: SOFTHCA_STATS=%s: %s\n", stats, strerror(rc));
		return 2;
	}
	if (text && !hca_device_parse(text, &device, err, sizeof(err))) {
		fprintf(stderr, "softhca: SOFTHCA_DEVICE=%s: %s\n", text, err);
		return 2;
	}
	if (!hca_options_check(err, sizeof(err)) &&
	    (!faults || !faults_check(faults, err, sizeof(err))))
		return 0;
	fprintf(stderr, "softhca: %s\n", err);
	return 2;
}

/* Without libmlx5 a program sees no device and says no more than that. */
static void look_for_driver(void)
{
	void *driver = dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (driver)
		dlclose(driver);
	else
		fprintf(stderr,
			"softhca: libibverbs has no driver for mlx5 devices, and programs may see none: %s. "
			"Install it (Debian: package ibverbs-providers)\n",
			dlerror());
}

int main(int argc, char **argv)
{
	char library[PATH_MAX], command[PATH_MAX], tree[32];
	static char *selftest[] = {"softhca_selftest", NULL};
	bool self = false;
	int i = 1, rc;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (!strcmp(argv[i], "--help")) {
			print_help();
			return 0;
		}
		if (!strcmp(argv[i], "--version")) {
			puts("softhca " SOFTHCA_VERSION);
			return 0;
		}
		if (!strcmp(argv[i], "--selftest")) {
			self = true;
			continue;
		}
		rc = option_variable(argv + i);
		if (rc <= 0) {
			launcher_fail(argv[i], option_wrong(argv[i], rc));
			return 2;
		}
		i += rc - 1;
	}
	if (self) {
		argv = selftest;
		i = 0;
	}
	if (launcher_check_options())
		return 2;
	if (!self && i >= argc) {
		launcher_fail("no command", "softhca --help shows how to call");
		return 2;
	}
	if (!find_ours("libsofthca.so", library) && !launcher_knows_itself())
		return launcher_fail("libsofthca.so", "looked for beside this program, and /proc/self/exe, which names "
				     "its folder, cannot be read: mount /proc");
	if (!find_ours("libsofthca.so", library))
		return launcher_fail("libsofthca.so", "neither beside this program nor in its library directory");
	if (strpbrk(library, " :")) /* ld.so has no way to quote them */
		return launcher_fail(library, "LD_PRELOAD cannot hold a space or a colon: build softhca, or install "
				     "it, in a folder whose path has none");
	if (!find_tree(tree))
		return launcher_fail(tree, "this description of the device is not beside libsofthca.so: build "
				  "or install it anew");
	if (self ? !find_ours(argv[i], command) : !launcher_resolve(argv[i], command))
		return launcher_fail(argv[i], "command not found or not executable");
	look_for_driver();
	rc = set_preload(library, command);
	if (rc)
		return launcher_fail("LD_PRELOAD", strerror(rc));
	execv(command, argv + i);
	return launcher_fail(argv[i], strerror(errno));
}
