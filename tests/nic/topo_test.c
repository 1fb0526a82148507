// SPDX-License-Identifier: BSD-3-Clause
/* Choice of the NIC over sysfs trees that the test builds in a temporary
 * directory, modelled on published machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/path/topo.h"

#define MAX_NICS 16

struct tree {
	char root[64];
	int n_nics;
	struct gdri_topo_place nics[MAX_NICS];
};

static void make_dirs(const char *path)
{
	char part[600];
	size_t i;

	snprintf(part, sizeof(part), "%s", path);
	for (i = 1; part[i]; i++) {
		if (part[i] != '/')
			continue;
		part[i] = '\0';
		mkdir(part, 0755);
		part[i] = '/';
	}
	mkdir(part, 0755);
}

/* A PCI device at `path` ("pci0000:15/.../0000:18:00.0") with its link in /sys/bus/pci/devices. */
static void add_device(struct tree *t, const char *path, int numa)
{
	char dir[600], file[700], link[700], target[700];
	FILE *f;

	snprintf(dir, sizeof(dir), "%s/sys/devices/%s", t->root, path);
	make_dirs(dir);
	snprintf(file, sizeof(file), "%s/numa_node", dir);
	f = fopen(file, "w");
	assert_non_null(f);
	fprintf(f, "%d\n", numa);
	fclose(f);
	snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s", t->root, strrchr(path, '/') + 1);
	snprintf(target, sizeof(target), "../../../devices/%s", path);
	if (symlink(target, link) != 0)
		assert_int_equal(access(link, F_OK), 0);
}

/* An RDMA device name for a PCI device; appended to the list that the choice is made from. */
static void add_nic(struct tree *t, const char *name, const char *path, int numa)
{
	char dir[600], link[700], target[700];

	add_device(t, path, numa);
	snprintf(dir, sizeof(dir), "%s/sys/class/infiniband/%s", t->root, name);
	make_dirs(dir);
	snprintf(link, sizeof(link), "%s/device", dir);
	snprintf(target, sizeof(target), "../../../devices/%s", path);
	assert_int_equal(symlink(target, link), 0);
	snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", name);
	assert_true(t->n_nics < MAX_NICS);
	gdri_topo_locate(t->root, link, &t->nics[t->n_nics]);
	assert_string_equal(t->nics[t->n_nics].path, path);
	assert_int_equal(t->nics[t->n_nics].numa, numa);
	t->n_nics++;
}

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));
	char dir[128];

	snprintf(t->root, sizeof(t->root), "/tmp/gdr-topo-XXXXXX");
	if (!t || !mkdtemp(t->root))
		return -1;
	snprintf(dir, sizeof(dir), "%s/sys/bus/pci/devices", t->root);
	make_dirs(dir);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct tree *t = *state;
	char cmd[128];
	int ret;

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", t->root);
	ret = system(cmd);
	free(t);
	return ret;
}

static int choose(const struct tree *t, const char *gpu, unsigned turn, enum gdri_topo_distance *d)
{
	struct gdri_topo_place place;
	char link[128];

	if (!gpu)
		return gdri_topo_choose(NULL, t->nics, t->n_nics, turn, d);
	snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", gpu);
	gdri_topo_locate(t->root, link, &place);
	assert_string_not_equal(place.path, "");
	return gdri_topo_choose(&place, t->nics, t->n_nics, turn, d);
}

/* NVIDIA DGX H100 User Guide, "Network Modules", table of ConnectX devices: which GPU each of the
 * eight belongs to, with the default interface names, whose numbers are the PCI bus (ibp24s0: bus
 * 0x18). GPU i and its NIC are below one PCIe switch, four such on each of two sockets; the numbers
 * of the bridges are made up. */
static void test_dgx_h100(void **state)
{
	static const unsigned nic_bus[8] = {24, 64, 79, 94, 154, 192, 206, 220};
	struct tree *t = *state;
	enum gdri_topo_distance d;
	char path[200], name[16];
	unsigned i, b;

	for (i = 0; i < 8; i++) {
		b = nic_bus[i];
		snprintf(path, sizeof(path),
			 "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/"
			 "0000:%02x:00.0/0000:%02x:00.0",
			 b - 3, b - 3, b - 2, b - 1, b);
		snprintf(name, sizeof(name), "mlx5_%u", i);
		add_nic(t, name, path, i / 4);
		snprintf(path, sizeof(path),
			 "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/"
			 "0000:%02x:02.0/0000:%02x:00.0",
			 b - 3, b - 3, b - 2, b - 1, b + 3);
		add_device(t, path, i / 4);
	}
	for (i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "0000:%02x:00.0", nic_bus[i] + 3);
		assert_int_equal(choose(t, path, 0, &d), i);
		assert_int_equal(d, GDRI_TOPO_PIX);
		/* the turn does not take a PE away from the only near one */
		assert_int_equal(choose(t, path, 5, &d), i);
	}
	assert_int_equal(gdri_topo_between(&t->nics[0], &t->nics[3]), GDRI_TOPO_NODE);
	assert_int_equal(gdri_topo_between(&t->nics[0], &t->nics[4]), GDRI_TOPO_SYS);
}

/* DGX A100, nvidia-smi topo -m as published in rapidsai/ucx-py #749: two GPUs and two ConnectX-6 are
 * PXB to each other and SYS to all others; by the PCI tree in NVIDIA/nccl #1505 the GPUs are switch
 * levels below the NICs. The bus numbers here are made up. */
static void test_dgx_a100(void **state)
{
	struct tree *t = *state;
	enum gdri_topo_distance d;
	char path[200], name[16];
	unsigned pair, i;

	for (pair = 0; pair < 4; pair++) {
		for (i = 0; i < 2; i++) {
			snprintf(path, sizeof(path),
				 "pci0000:%x0/0000:%x0:01.1/0000:%x1:00.0/"
				 "0000:%x2:0%u.0/0000:%x%x:00.0",
				 pair + 1, pair + 1, pair + 1, pair + 1, i, pair + 1, i + 3);
			snprintf(name, sizeof(name), "mlx5_%u", 2 * pair + i);
			add_nic(t, name, path, (int)pair);
			snprintf(path, sizeof(path),
				 "pci0000:%x0/0000:%x0:01.1/0000:%x1:00.0/"
				 "0000:%x2:04.0/0000:%x6:00.0/0000:%x7:0%u.0/0000:%x%x:00.0",
				 pair + 1, pair + 1, pair + 1, pair + 1, pair + 1, pair + 1, i,
				 pair + 1, i + 8);
			add_device(t, path, (int)pair);
		}
	}
	for (pair = 0; pair < 4; pair++) {
		for (i = 0; i < 2; i++) { /* PE 2 * pair + i drives that GPU */
			snprintf(path, sizeof(path), "0000:%x%x:00.0", pair + 1, i + 8);
			assert_int_equal(choose(t, path, 2 * pair + i, &d), 2 * pair + i);
			assert_int_equal(d, GDRI_TOPO_PXB);
		}
	}
	assert_int_equal(gdri_topo_between(&t->nics[0], &t->nics[2]), GDRI_TOPO_SYS);
}

/* Two sockets, V100s on both, one ConnectX-5: lspci -t as published in NVIDIA/nccl #246 shows the NIC
 * (58:00.0) and two GPUs (5c:00.0, 60:00.0) at one inner switch below host bridge 53. The other GPUs
 * of the test are made up: below the outer switch, at other host bridges, on the other socket. */
#define OUTER "pci0000:53/0000:53:00.0/0000:54:00.0/"
#define INNER OUTER "0000:55:04.0/0000:56:00.0/"
static void test_two_sockets_one_nic(void **state)
{
	static const struct {
		const char *path, *gpu;
		int numa;
		enum gdri_topo_distance d;
	} gpus[] = {
		{INNER "0000:57:08.0/0000:5c:00.0", "0000:5c:00.0", 0, GDRI_TOPO_PIX},
		{INNER "0000:57:0c.0/0000:60:00.0", "0000:60:00.0", 0, GDRI_TOPO_PIX},
		{OUTER "0000:55:08.0/0000:6c:00.0", "0000:6c:00.0", 0, GDRI_TOPO_PXB},
		{"pci0000:53/0000:53:02.0/0000:7c:00.0", "0000:7c:00.0", 0, GDRI_TOPO_PHB},
		{"pci0000:17/0000:17:00.0/0000:18:00.0", "0000:18:00.0", 0, GDRI_TOPO_NODE},
		{"pci0000:ae/0000:ae:00.0/0000:af:00.0", "0000:af:00.0", 1, GDRI_TOPO_SYS},
	};
	struct tree *t = *state;
	enum gdri_topo_distance d;
	unsigned i;

	add_nic(t, "mlx5_0", INNER "0000:57:04.0/0000:58:00.0", 0);
	for (i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++) {
		add_device(t, gpus[i].path, gpus[i].numa);
		assert_int_equal(choose(t, gpus[i].gpu, i, &d), 0);
		assert_int_equal(d, gpus[i].d);
	}
}

/* A NIC with two ports is two functions of one PCI device. nvidia-smi topo -m as published in
 * NVIDIA/nccl-tests #320: mlx5_0 and mlx5_1 are PIX to each other, PHB to one GPU and NODE to two
 * others; bus numbers are made up. Equally near, they are taken in turn; another NIC across the
 * socket (not of that machine) is never taken. */
static void test_multi_port(void **state)
{
	struct tree *t = *state;
	enum gdri_topo_distance d;
	unsigned turn;

	add_nic(t, "mlx5_2", "pci0000:80/0000:80:00.0/0000:81:00.0", 1);
	add_nic(t, "mlx5_0", "pci0000:3a/0000:3a:00.0/0000:3b:00.0", 0);
	add_nic(t, "mlx5_1", "pci0000:3a/0000:3a:00.0/0000:3b:00.1", 0);
	add_device(t, "pci0000:3a/0000:3a:02.0/0000:3c:00.0", 0);
	add_device(t, "pci0000:17/0000:17:00.0/0000:18:00.0", 0);
	assert_int_equal(gdri_topo_between(&t->nics[1], &t->nics[2]), GDRI_TOPO_PIX);
	for (turn = 0; turn < 8; turn++) {
		assert_int_equal(choose(t, "0000:3c:00.0", turn, &d), 1 + turn % 2);
		assert_int_equal(d, GDRI_TOPO_PHB);
		assert_int_equal(choose(t, "0000:18:00.0", turn, &d), 1 + turn % 2);
		assert_int_equal(d, GDRI_TOPO_NODE);
		/* without a GPU nothing is near: all are taken in turn */
		assert_int_equal(choose(t, NULL, turn, &d), turn % 3);
		assert_int_equal(d, GDRI_TOPO_UNKNOWN);
	}
}

/* No RDMA device in the tree, and a device (softhca, a virtual one) without a PCI path. */
static void test_no_nic(void **state)
{
	struct tree *t = *state;
	struct gdri_topo_place nic, gpu;
	enum gdri_topo_distance d;

	gdri_topo_locate(t->root, "/sys/class/infiniband/mlx5_0/device", &nic);
	assert_string_equal(nic.path, "");
	assert_int_equal(nic.numa, -1);
	add_device(t, "pci0000:17/0000:17:00.0/0000:18:00.0", 0);
	gdri_topo_locate(t->root, "/sys/bus/pci/devices/0000:18:00.0", &gpu);
	assert_int_equal(gdri_topo_between(&gpu, &nic), GDRI_TOPO_UNKNOWN);
	assert_int_equal(gdri_topo_choose(&gpu, &nic, 1, 3, &d), 0);
	assert_int_equal(d, GDRI_TOPO_UNKNOWN);
}

/* Names that begin alike are not the same component; firmware without NUMA nodes says -1; each host
 * bridge of an Arm server is a PCI domain of its own. */
static void test_edges(void **state)
{
	static const struct {
		const char *a, *b;
		int numa_a, numa_b;
		enum gdri_topo_distance d;
	} cases[] = {
		{"pci0000:1/0000:10:00.0", "pci0000:17/0000:18:00.0", 0, 0, GDRI_TOPO_NODE},
		{"pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:00/0000:00:01.1/0000:02:00.0", 0,
		 0, GDRI_TOPO_PHB},
		{"pci0000:00/0000:00:01.0", "pci0000:00/0000:00:01.0", 0, 0, GDRI_TOPO_PIX},
		{"pci0000:00/0000:00:01.0/0000:01:00.0", "pci0001:00/0001:00:01.0/0001:01:00.0", -1,
		 -1, GDRI_TOPO_NODE},
		{"pci0000:00/0000:00:01.0/0000:01:00.0", "pci0001:00/0001:00:01.0/0001:01:00.0", 0,
		 -1, GDRI_TOPO_SYS},
		{"pci0002:00/0002:00:00.0/0002:01:00.0", "pci0006:00/0006:00:00.0/0006:01:00.0", 0,
		 0, GDRI_TOPO_NODE},
	};
	struct gdri_topo_place a, b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(a.path, sizeof(a.path), "%s", cases[i].a);
		snprintf(b.path, sizeof(b.path), "%s", cases[i].b);
		a.numa = cases[i].numa_a;
		b.numa = cases[i].numa_b;
		assert_int_equal(gdri_topo_between(&a, &b), cases[i].d);
		assert_int_equal(gdri_topo_between(&b, &a), cases[i].d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_dgx_h100, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dgx_a100, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_sockets_one_nic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_multi_port, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_nic, setup, teardown),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
