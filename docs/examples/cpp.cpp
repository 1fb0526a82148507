/* SPDX-License-Identifier: BSD-3-Clause */
/* A point goes to the next PE, by its type; every PE counts at PE 0. */
#include <gdr/gdr.hpp>
#include <cstdio>

struct point { float x, y, z; };
struct args { point *mine; long *count; uint64_t *arrived; int *status; };

GDR_KERNEL(pass_on, struct args, a)
{
	int me = gdr_my_pe(), n = gdr_n_pes();
	point p = {(float)me, 2, 3};

	int ret = gdr::put_signal(a.mine, &p, 1, a.arrived, 1, GDR_SIGNAL_SET, (me + 1) % n);
	if (!ret)
		ret = gdr_signal_wait_until_from(a.arrived, GDR_CMP_EQ, 1, (me + n - 1) % n);
	if (!ret)
		ret = gdr::atomic_add(a.count, 1, 0);
	*a.status = ret ? ret : gdr_quiet();
}

int main()
{
	gdr::job job;
	if (!job)
		return 1;
	gdr::object<point> mine(1);
	gdr::object<long> count(1);
	gdr::object<uint64_t> arrived(1);
	gdr::object<int> status(1);
	if (!mine || !count || !arrived || !status)
		return 1;
	struct args a = {mine.get(), count.get(), arrived.get(), status.get()};

	gdr_launch(pass_on, 1, 1, 0, nullptr, &a);
	gdr_stream_sync(nullptr);
	gdr_barrier_all();

	point p;
	long n;
	int bad;
	gdr_memcpy(&p, mine.get(), sizeof(p));
	gdr_memcpy(&n, count.get(), sizeof(n));
	gdr_memcpy(&bad, status.get(), sizeof(bad));
	int before = (job.my_pe() + job.n_pes() - 1) % job.n_pes();
	bool wrong = bad || p.x != (float)before || p.z != 3 || n != (job.my_pe() ? 0 : job.n_pes());
	std::printf("PE %d: %s\n", job.my_pe(), wrong ? "wrong" : "right");
	return wrong;
}
