/* SPDX-License-Identifier: BSD-3-Clause */
/* The device as files: every function that readers of /sys use gives the same
 * answer, paths look like a PCI device's, and other files are left alone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common.h"

#define IBDEV "/sys/class/infiniband/mlx5_0"

static void slurp_fd(int fd, char *out, size_t size)
{
	ssize_t n = read(fd, out, size - 1);

	assert_true(n > 0);
	out[n] = '\0';
	close(fd);
}

static void test_same_by_every_way(void **state)
{
	static const char *const files[] = {"node_guid", "sys_image_guid", "ports/1/gids/0",
					    "ports/1/gid_attrs/types/0", "ports/1/link_layer",
					    "ports/1/state", "device/vendor", "board_id"};

	(void)state;
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[PATH_MAX], a[256], b[256], c[256];
		int dir = open(IBDEV, O_RDONLY | O_DIRECTORY);
		struct stat st;
		FILE *f;

		snprintf(path, sizeof(path), IBDEV "/%s", files[i]);
		slurp_fd(open(path, O_RDONLY), a, sizeof(a));
		slurp_fd(openat(dir, files[i], O_RDONLY), b, sizeof(b));
		assert_string_equal(a, b);
		f = fopen(path, "r");
		assert_non_null(f);
		assert_non_null(fgets(c, sizeof(c), f));
		fclose(f);
		assert_string_equal(a, c);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(access(path, R_OK), 0);
		close(dir);
	}
}

static void test_pci_path(void **state)
{
	char real[PATH_MAX], path[PATH_MAX + 32], text[64];
	const char *bdf;
	unsigned domain, bus, dev, fn;

	(void)state;
	assert_non_null(realpath(IBDEV "/device", real));
	assert_int_equal(strncmp(real, "/sys/devices/pci", 16), 0);
	bdf = strrchr(real, '/') + 1;
	assert_int_equal(sscanf(bdf, "%x:%x:%x.%x", &domain, &bus, &dev, &fn), 4);
	snprintf(path, sizeof(path), "%s/numa_node", real);
	slurp_fd(open(path, O_RDONLY), text, sizeof(text));
	assert_string_equal(text, "-1\n");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/device", bdf);
	slurp_fd(open(path, O_RDONLY), text, sizeof(text));
	assert_string_equal(text, "0x1021\n");
}

static void test_device_file(void **state)
{
	const char *path = "/dev/infiniband/uverbs0";
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(major(st.st_rdev), 231);
	assert_int_equal(minor(st.st_rdev), 192);
	assert_int_equal(access(path, R_OK | W_OK), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(close(fd), 0);
	assert_int_equal(open("/dev/infiniband/uverbs1", O_RDWR), -1);
}

static void test_directories(void **state)
{
	DIR *dir = opendir("/sys/class/infiniband_verbs");
	struct dirent *e;
	bool found = false;

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir)))
		found |= !strcmp(e->d_name, "uverbs0");
	closedir(dir);
	assert_true(found);
	assert_null(opendir("/sys/class/infiniband_mad"));
}

static void test_others_untouched(void **state)
{
	char name[] = "/tmp/gdr-sysfs-test-XXXXXX", text[16];
	struct stat st;
	int fd = mkstemp(name), s;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "hello\n", 6), 6);
	close(fd);
	fd = open(name, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	slurp_fd(fd, text, sizeof(text));
	assert_string_equal(text, "hello\n");
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	close(fd);
	unlink(name);
	assert_int_equal(access("/sys/class/net/lo", F_OK), 0);
	/* Netlink other than RDMA still works; RDMA does not. */
	s = socket(AF_NETLINK, SOCK_RAW, 0);
	assert_true(s >= 0);
	close(s);
	assert_int_equal(socket(AF_NETLINK, SOCK_RAW, 20), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_by_every_way), cmocka_unit_test(test_pci_path),
		cmocka_unit_test(test_device_file),	  cmocka_unit_test(test_directories),
		cmocka_unit_test(test_others_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
