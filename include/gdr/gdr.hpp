/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr for C++17: operations by the type of their arguments, and owners of what the host makes. docs/cpp.md.
 *
 * Each function is the one of C with the same arguments, gdr_put or gdr_int_atomic_add, whose contract stands in
 * gdr/device.h and gdr/coll.h; what has no type (gdr_quiet, signals) keeps its name of C. Nothing throws: what can
 * fail has a status. */
#ifndef GDR_HPP
#define GDR_HPP

#include <gdr.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "gdr/gdr.hpp takes C++17: -std=c++17"
#endif

#ifdef GDR_CHECKED /* calls tell where they stand: not here, but where these functions are called */
#define GDRI_CPP_SITE , const char *file = __builtin_FILE(), uint32_t line = __builtin_LINE()
#undef GDRI_HERE
#define GDRI_HERE file, line,
#else
#define GDRI_CPP_SITE
#endif

namespace gdr {

/* What no argument says: dst alone has the type. */
template <typename T> struct gdri_same {
	using type = T;
};
template <typename T> using gdri_same_t = typename gdri_same<T>::type;

/* What n elements take. The checked build sees bytes: too many elements stay too many there. */
template <typename T> GDR_BOTH size_t gdri_bytes(size_t n)
{
#ifdef GDR_CHECKED
	if (n > SIZE_MAX / sizeof(T))
		return SIZE_MAX;
#endif
	return n * sizeof(T);
}

/* ---- memory: of any type that can be copied byte by byte ---- */

#define GDRI_CPP_MEMORY(member, s)                                                                 \
	template <typename T>                                                                      \
	member int put##s(T *dst, const gdri_same_t<T> *src, size_t n, int pe GDRI_CPP_SITE)       \
	{                                                                                          \
		static_assert(__is_trivially_copyable(T), "its bytes are copied");                 \
		return gdr_put##s(dst, src, gdri_bytes<T>(n), pe);                                 \
	}                                                                                          \
	template <typename T>                                                                      \
	member int get##s(T *dst, const gdri_same_t<T> *src, size_t n, int pe GDRI_CPP_SITE)       \
	{                                                                                          \
		static_assert(__is_trivially_copyable(T), "its bytes are copied");                 \
		return gdr_get##s(dst, src, gdri_bytes<T>(n), pe);                                 \
	}
#define GDRI_CPP_PUT_SIGNAL(member, s)                                                             \
	template <typename T>                                                                      \
	member int put_signal##s(T *dst, const gdri_same_t<T> *src, size_t n, uint64_t *sig,       \
				 uint64_t value, int op, int pe GDRI_CPP_SITE)                     \
	{                                                                                          \
		static_assert(__is_trivially_copyable(T), "its bytes are copied");                 \
		return gdr_put_signal##s(dst, src, gdri_bytes<T>(n), sig, value, op, pe);          \
	}
#define GDRI_CPP_SCOPE(member, s)                                                                  \
	GDRI_CPP_MEMORY(member, s)                                                                 \
	GDRI_CPP_PUT_SIGNAL(member, s)
GDRI_CPP_SCOPE(GDR_BOTH, )
GDRI_CPP_SCOPE(GDR_BOTH, _nbi)
GDRI_CPP_SCOPE(GDR_DEVICE, _warp)
GDRI_CPP_SCOPE(GDR_DEVICE, _nbi_warp)
GDRI_CPP_SCOPE(GDR_DEVICE, _block)
GDRI_CPP_SCOPE(GDR_DEVICE, _nbi_block)

/* ---- words: a function for each type of the language, of which the names of C have several ---- */

#define GDRI_CPP_WORD(name, T)                                                                     \
	GDR_BOTH int p(T *dst, T value, int pe GDRI_CPP_SITE)                                      \
	{                                                                                          \
		return gdr_##name##_p(dst, value, pe);                                             \
	}                                                                                          \
	GDR_BOTH T g(const T *src, int pe GDRI_CPP_SITE)                                           \
	{                                                                                          \
		return gdr_##name##_g(src, pe);                                                    \
	}
GDRI_CPP_TYPES(GDRI_CPP_WORD)

#define GDRI_CPP_FETCH(name, T, op, params, ...)                                                   \
	GDR_BOTH T atomic_##op(params, int pe GDRI_CPP_SITE)                                       \
	{                                                                                          \
		return gdr_##name##_atomic_##op(__VA_ARGS__, pe);                                  \
	}                                                                                          \
	GDR_BOTH int atomic_##op##_nbi(T *fetch, params, int pe GDRI_CPP_SITE)                     \
	{                                                                                          \
		return gdr_##name##_atomic_##op##_nbi(fetch, __VA_ARGS__, pe);                     \
	}
#define GDRI_CPP_COMMA ,
#define GDRI_CPP_AMO_OP(op, kind, reduction, name, T)                                              \
	GDR_BOTH int atomic_##op(T *dst, T value, int pe GDRI_CPP_SITE)                            \
	{                                                                                          \
		return gdr_##name##_atomic_##op(dst, value, pe);                                   \
	}                                                                                          \
	GDRI_CPP_FETCH(name, T, fetch_##op, T *dst GDRI_CPP_COMMA T value, dst, value)
#define GDRI_CPP_AMO_NUMBER(name, T)                                                               \
	GDR_BOTH int atomic_set(T *dst, T value, int pe GDRI_CPP_SITE)                             \
	{                                                                                          \
		return gdr_##name##_atomic_set(dst, value, pe);                                    \
	}                                                                                          \
	GDR_BOTH int atomic_inc(T *dst, int pe GDRI_CPP_SITE)                                      \
	{                                                                                          \
		return gdr_##name##_atomic_inc(dst, pe);                                           \
	}                                                                                          \
	GDRI_CPP_FETCH(name, T, fetch, const T *src, src)                                          \
	GDRI_CPP_FETCH(name, T, fetch_inc, T *dst, dst)                                            \
	GDRI_CPP_FETCH(name, T, swap, T *dst GDRI_CPP_COMMA T value, dst, value)                   \
	GDRI_CPP_FETCH(name, T, compare_swap, T *dst GDRI_CPP_COMMA T cond GDRI_CPP_COMMA T value, \
		       dst, cond, value)                                                           \
	GDRI_AMO_NUMBER_OPS(GDRI_CPP_AMO_OP, name, T)
#define GDRI_CPP_AMO(name, T)                                                                      \
	GDRI_CPP_AMO_NUMBER(name, T)                                                               \
	GDRI_AMO_BIT_OPS(GDRI_CPP_AMO_OP, name, T)
GDR_LANGUAGE_TYPES(GDRI_CPP_AMO)
GDR_FLOAT_TYPES(GDRI_CPP_AMO_NUMBER)

#define GDRI_CPP_WAIT(name, T)                                                                     \
	GDR_BOTH int wait_until(const T *ptr, int cmp, T value GDRI_CPP_SITE)                      \
	{                                                                                          \
		return gdr_##name##_wait_until(ptr, cmp, value);                                   \
	}                                                                                          \
	GDR_DEVICE int wait_until_for(const T *ptr, int cmp, T value, uint64_t limit_ns GDRI_CPP_SITE) \
	{                                                                                          \
		return gdr_##name##_wait_until_for(ptr, cmp, value, limit_ns);                     \
	}                                                                                          \
	GDR_DEVICE int test(const T *ptr, int cmp, T value GDRI_CPP_SITE)                          \
	{                                                                                          \
		return gdr_##name##_test(ptr, cmp, value);                                         \
	}
GDRI_CPP_WAIT_TYPES(GDRI_CPP_WAIT)

/* ---- collectives (gdr/coll.h): of any type where elements are moved, of numbers where they are reckoned with ---- */

#ifdef __CUDACC__ /* of host threads alone */
#define GDRI_CPP_HOST static inline __attribute__((unused))
#else
#define GDRI_CPP_HOST GDR_DEVICE
#endif
#define GDRI_CPP_TEAM_CALL(member, call, s)                                                        \
	member int call##s(gdr_team_t team GDRI_CPP_SITE)                                          \
	{                                                                                          \
		return gdr_##call##s(team);                                                        \
	}
#define GDRI_CPP_TEAM_CALL_ON_STREAM(call)                                                         \
	GDRI_CPP_HOST int call##_on_stream(gdr_team_t team, gdr_stream_t stream GDRI_CPP_SITE)     \
	{                                                                                          \
		return gdr_##call##_on_stream(team, stream);                                       \
	}
#define GDRI_CPP_GATHER(member, call, s, more, arg)                                                \
	template <typename T>                                                                      \
	member int call##s(gdr_team_t team, T *dest, const gdri_same_t<T> *source, size_t n GDRI_OPEN more GDRI_CPP_SITE) \
	{                                                                                          \
		static_assert(__is_trivially_copyable(T), "its bytes are copied");                 \
		return gdr_##call##mem##s(team, dest, source, gdri_bytes<T>(n) GDRI_OPEN arg);     \
	}
/* Steps count elements, of which C has those of 1 to 16 bytes. */
#define GDRI_CPP_STEPS(member, s, more, arg)                                                       \
	template <typename T>                                                                      \
	member int alltoalls##s(gdr_team_t team, T *dest, const gdri_same_t<T> *source, ptrdiff_t dst, \
				ptrdiff_t sst, size_t n GDRI_OPEN more GDRI_CPP_SITE)              \
	{                                                                                          \
		static_assert(__is_trivially_copyable(T), "its bytes are copied");                 \
		static_assert(sizeof(T) <= 16 && !(sizeof(T) & (sizeof(T) - 1)), "1, 2, 4, 8 or 16 bytes"); \
		if constexpr (sizeof(T) == 1)                                                      \
			return gdr_alltoalls8##s(team, dest, source, dst, sst, n GDRI_OPEN arg);   \
		else if constexpr (sizeof(T) == 2)                                                 \
			return gdr_alltoalls16##s(team, dest, source, dst, sst, n GDRI_OPEN arg);  \
		else if constexpr (sizeof(T) == 4)                                                 \
			return gdr_alltoalls32##s(team, dest, source, dst, sst, n GDRI_OPEN arg);  \
		else if constexpr (sizeof(T) == 8)                                                 \
			return gdr_alltoalls64##s(team, dest, source, dst, sst, n GDRI_OPEN arg);  \
		else                                                                               \
			return gdr_alltoalls128##s(team, dest, source, dst, sst, n GDRI_OPEN arg); \
	}
#define GDRI_CPP_GATHERS(member, s, more, arg)                                                     \
	GDRI_CPP_GATHER(member, collect, s, more, arg)                                             \
	GDRI_CPP_GATHER(member, fcollect, s, more, arg)                                            \
	GDRI_CPP_GATHER(member, alltoall, s, more, arg)                                            \
	GDRI_CPP_STEPS(member, s, more, arg)
#define GDRI_CPP_COLL(member, s)                                                                   \
	GDRI_CPP_TEAM_CALL(member, barrier, s)                                                     \
	GDRI_CPP_TEAM_CALL(member, team_sync, s)                                                   \
	GDRI_CPP_GATHER(member, broadcast, s, (, int root), (, root))                              \
	GDRI_CPP_GATHERS(member, s, (), ())
GDRI_CPP_COLL(GDR_BOTH, )
GDRI_CPP_COLL(GDR_DEVICE, _warp)
GDRI_CPP_COLL(GDR_DEVICE, _block)

#define GDRI_CPP_REDUCE_IN(member, name, T, call, s)                                               \
	member int call##s(gdr_team_t team, T *dest, const T *source, size_t n GDRI_CPP_SITE)      \
	{                                                                                          \
		return gdr_##name##_##call##s(team, dest, source, n);                              \
	}
#ifdef __CUDACC_RTC__ /* which compiles device code alone */
#define GDRI_CPP_REDUCE_ON_STREAM(name, T, call)
#else
#define GDRI_CPP_REDUCE_ON_STREAM(name, T, call)                                                   \
	GDRI_CPP_HOST int call##_on_stream(gdr_team_t team, T *dest, const T *source, size_t n,    \
					   gdr_stream_t stream GDRI_CPP_SITE)                      \
	{                                                                                          \
		return gdr_##name##_##call##_on_stream(team, dest, source, n, stream);             \
	}
#endif
#define GDRI_CPP_REDUCE(name, T, call)                                                             \
	GDRI_CPP_REDUCE_IN(GDR_BOTH, name, T, call, )                                              \
	GDRI_CPP_REDUCE_IN(GDR_DEVICE, name, T, call, _warp)                                       \
	GDRI_CPP_REDUCE_IN(GDR_DEVICE, name, T, call, _block)                                      \
	GDRI_CPP_REDUCE_ON_STREAM(name, T, call)
/* Of half and bfloat16 there are no scans. */
#define GDRI_CPP_REDUCES(name, T)                                                                  \
	GDRI_CPP_REDUCE(name, T, sum_reduce)                                                       \
	GDRI_CPP_REDUCE(name, T, prod_reduce)                                                      \
	GDRI_CPP_REDUCE(name, T, min_reduce)                                                       \
	GDRI_CPP_REDUCE(name, T, max_reduce)                                                       \
	GDRI_CPP_REDUCE(name, T, sum_reducescatter)                                                \
	GDRI_CPP_REDUCE(name, T, prod_reducescatter)                                               \
	GDRI_CPP_REDUCE(name, T, min_reducescatter)                                                \
	GDRI_CPP_REDUCE(name, T, max_reducescatter)
#define GDRI_CPP_REDUCE_NUMBER(name, T)                                                            \
	GDRI_CPP_REDUCES(name, T)                                                                  \
	GDRI_CPP_REDUCE(name, T, sum_inscan)                                                       \
	GDRI_CPP_REDUCE(name, T, sum_exscan)
#define GDRI_CPP_REDUCE_BITS(name, T)                                                              \
	GDRI_CPP_REDUCE(name, T, and_reduce)                                                       \
	GDRI_CPP_REDUCE(name, T, or_reduce)                                                        \
	GDRI_CPP_REDUCE(name, T, xor_reduce)                                                       \
	GDRI_CPP_REDUCE(name, T, and_reducescatter)                                                \
	GDRI_CPP_REDUCE(name, T, or_reducescatter)                                                 \
	GDRI_CPP_REDUCE(name, T, xor_reducescatter)
GDRI_CPP_TYPES(GDRI_CPP_REDUCE_NUMBER)
GDRI_CPP_INTEGERS(GDRI_CPP_REDUCE_BITS)
#if !defined(__CUDACC__) || (defined(__CUDA_FP16_TYPES_EXIST__) && defined(__CUDA_BF16_TYPES_EXIST__))
GDR_HALF_TYPES(GDRI_CPP_REDUCES) /* under CUDA where cuda_fp16.h and cuda_bf16.h stand in front */
#endif

#ifndef __CUDACC_RTC__
GDRI_CPP_TEAM_CALL_ON_STREAM(barrier)
GDRI_CPP_TEAM_CALL_ON_STREAM(team_sync)
GDRI_CPP_GATHER(GDRI_CPP_HOST, broadcast, _on_stream, (, int root, gdr_stream_t stream),
		(, root, stream))
GDRI_CPP_GATHERS(GDRI_CPP_HOST, _on_stream, (, gdr_stream_t stream), (, stream))
#endif

#ifndef __CUDACC_RTC__ /* which compiles device code alone */

/* ---- owners: one each, which moves, and ends what it has when it goes ---- */

template <typename Id, int (*end)(Id), Id none> class gdri_owner {
public:
	gdri_owner() = default;
	gdri_owner(gdri_owner &&from) noexcept
	    : id_(from.id_), status_(from.status_), with_(from.with_), serial_(from.serial_)
	{
		from.id_ = none;
	}
	gdri_owner &operator=(gdri_owner &&from) noexcept
	{
		if (this != &from) {
			reset();
			id_ = from.id_;
			status_ = from.status_;
			with_ = from.with_;
			serial_ = from.serial_;
			from.id_ = none;
		}
		return *this;
	}
	~gdri_owner()
	{
		reset();
	}
	/* Why there is none; 0 too where the call succeeds with none: a PE outside a new team. */
	int status() const
	{
		return status_;
	}
	explicit operator bool() const
	{
		return id_ != none;
	}
	/* Ends it now: the status of that. 0 too where gdr_finalize has ended it with all else, or gdr_team_destroy a
	 * context. */
	int reset()
	{
		Id id = id_;

		id_ = none;
		return id == none || gdri_ctx_serial(with_) != serial_ ? 0 : end(id);
	}

protected:
	Id id_ = none;
	int status_ = 0;
	/* The context that it is there as long as: the job's, or itself. A later one's could have the same name. */
	gdr_ctx_t with_ = GDR_CTX_DEFAULT;
	uint64_t serial_ = gdri_ctx_serial(GDR_CTX_DEFAULT);
};

/* gdr_init, and gdr_finalize at its end. Owners that outlive that end nothing more. It stays where it is made. */
class job {
public:
	job() : status_(gdr_init())
	{
	}
	explicit job(const struct gdr_init_attr &attr) : status_(gdr_init_attr(&attr))
	{
	}
	job(const job &) = delete;
	job &operator=(const job &) = delete;
	~job()
	{
		finalize();
	}
	int status() const
	{
		return status_;
	}
	explicit operator bool() const
	{
		return status_ == 0;
	}
	/* Now, for its status. 0 too where gdr_finalize was called: a job that was begun behind that is not its own. */
	int finalize()
	{
		int ret = 0;

		if (!status_ && gdri_ctx_serial(GDR_CTX_DEFAULT) == serial_)
			ret = gdr_finalize();
		status_ = -GDR_ESTATE;
		return ret;
	}
	int my_pe() const
	{
		return gdr_host_my_pe();
	}
	int n_pes() const
	{
		return gdr_host_n_pes();
	}

private:
	int status_;
	uint64_t serial_ = gdri_ctx_serial(GDR_CTX_DEFAULT);
};

/* n elements of T in the heap of each PE, zeroed. Collective, as its end: all PEs make and end theirs in the same order. */
template <typename T> class object : public gdri_owner<void *, gdr_free, nullptr> {
	static_assert(__is_trivially_copyable(T), "its bytes are copied");

public:
	object() = default;
	explicit object(size_t n) : n_(n)
	{
		this->id_ = gdri_calloc(alignof(T), n, sizeof(T));
		this->status_ = this->id_ || !n ? 0 : gdr_host_status();
		if (!this->id_ && n && !this->status_)
			this->status_ = -GDR_ENOMEM;
	}
	T *get() const
	{
		return static_cast<T *>(this->id_);
	}
	size_t size() const
	{
		return this->id_ ? n_ : 0;
	}

private:
	size_t n_ = 0;
};

/* A team that was made; collective over its parent, or its members, as its end is. */
class team : public gdri_owner<gdr_team_t, gdr_team_destroy, GDR_TEAM_INVALID> {
public:
	team() = default;
	static team split_strided(gdr_team_t parent, int start, int stride, int size)
	{
		team t;

		t.status_ = gdr_team_split_strided(parent, start, stride, size, nullptr, 0, &t.id_);
		return t;
	}
	static team create(gdr_team_t parent, const int *pes, int n)
	{
		team t;

		t.status_ = gdr_team_create(parent, pes, n, nullptr, 0, &t.id_);
		return t;
	}
	static team join(uint64_t id, int n, int me)
	{
		team t;

		t.status_ = gdr_team_join(id, n, me, nullptr, 0, &t.id_);
		return t;
	}
	gdr_team_t id() const
	{
		return id_;
	}
	int my_pe() const
	{
		return gdr_host_team_my_pe(id_);
	}
	int n_pes() const
	{
		return gdr_host_team_n_pes(id_);
	}
};

/* A context of this PE: local. */
class context : public gdri_owner<gdr_ctx_t, gdr_ctx_destroy, GDR_CTX_INVALID> {
public:
	context() = default;
	explicit context(long options, gdr_team_t of = GDR_TEAM_WORLD)
	{
		status_ = gdr_team_create_ctx(of, options, &id_);
		with_ = id_;
		serial_ = gdri_ctx_serial(id_);
	}
	gdr_ctx_t id() const
	{
		return id_;
	}
};
#endif

} // namespace gdr

#ifdef GDR_CHECKED
#undef GDRI_HERE
#define GDRI_HERE __FILE__, __LINE__,
#endif

#endif
