/* SPDX-License-Identifier: BSD-3-Clause */
/* The acquires, releases and fences of the device code that is compiled here: their names, which was reached, and the
 * one that is taken out. */
#ifndef WEAK_SITES_HPP
#define WEAK_SITES_HPP

extern struct weak_site __start_weak_sites[], __stop_weak_sites[];
static const struct weak_site *weak_out; /* the one that is taken out */

#define WEAK_SITES 1024
/* Of the process that ran it. */
struct weak_told {
	rl::test_result_e result;
	unsigned long runs;
	unsigned char reached[WEAK_SITES];
};
static struct weak_told *weak_told;

rl::memory_order weak_order(struct weak_site *site, rl::memory_order order)
{
	weak_told->reached[site - __start_weak_sites] = 1;
	return site == weak_out ? rl::mo_relaxed : order;
}

void weak_fence(struct weak_site *site, rl::memory_order order)
{
	if (weak_order(site, order) != rl::mo_relaxed)
		rl::atomic_thread_fence(order, $);
}

/* What stands behind the last -> or . outside brackets: "rsvd" of "&qp->rsvd", "tail" of "&qp->cq[i].tail". */
static std::string weak_field(const char *word)
{
	std::string w(word);
	size_t at, end;

	while (!w.empty() && (w.back() == ')' || w.back() == ']')) /* used[i >> 6], (...) */
		w.erase(w.back() == ')' ? w.size() - 1 : w.rfind('['));
	at = w.find_last_of(">.&*( ");
	for (end = at + 1; end < w.size() && (isalnum((unsigned char)w[end]) || w[end] == '_'); end++)
		;
	return w.substr(at + 1, end - at - 1);
}

/* function:kind[:word], and where there are several in the order of lines #2, #3.. */
static std::string weak_plain_name(const struct weak_site *s)
{
	std::string name = std::string(s->func) + ":" + s->kind;

	return *s->word ? name + ":" + weak_field(s->word) : name;
}

static std::string weak_name(const struct weak_site *s)
{
	std::string name = weak_plain_name(s);
	const struct weak_site *o;
	int rank = 1;

	for (o = __start_weak_sites; o < __stop_weak_sites; o++)
		rank += o->line < s->line && weak_plain_name(o) == name;
	return rank == 1 ? name : name + "#" + std::to_string(rank);
}

#endif
