/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of tiles, in C++17: a tile is a part of a matrix that is contiguous in one direction, and the members of
 * a team each have one. NVSHMEM's work on multicast memory, as the names of the algorithms say. These load and store
 * the members' memory in turn, over queues value by value. Included by nvshmemx.h. */
#ifndef GDR_COMPAT_NVSHMEMX_TILE_H
#define GDR_COMPAT_NVSHMEMX_TILE_H

#if defined(__cplusplus) && __cplusplus >= 201703L && !defined(__CUDACC_RTC__)
#include <type_traits>
#include <utility>

#ifdef __CUDACC__
#define GDRC_MEMBER __host__ __device__ constexpr
#else
#define GDRC_MEMBER constexpr
#endif

template <int v> struct ConstInt : std::integral_constant<int, v> {
	GDRC_MEMBER operator int() const /* that of std is the host's alone */
	{
		return v;
	}
};

namespace gdrc_tile {

/* A number for each direction, for `auto [rows, cols] = shape`, too. There it is a cuda::std::tuple, whose header alone
 * takes nvcc as long as all of this one. */
template <class... T> struct numbers {
};
template <class First, class... Rest> struct numbers<First, Rest...> : numbers<Rest...> {
	GDRC_MEMBER numbers() : first_()
	{
	}
	GDRC_MEMBER numbers(const First &first, const Rest &...rest) : numbers<Rest...>(rest...), first_(first)
	{
	}
	template <size_t k> GDRC_MEMBER auto get() const
	{
		if constexpr (k == 0)
			return first_;
		else
			return static_cast<const numbers<Rest...> &>(*this).template get<k - 1>();
	}

      private:
	First first_;
};

template <size_t k, class... T> GDRC_MEMBER auto get(const numbers<T...> &of)
{
	return of.template get<k>();
}

} // namespace gdrc_tile

template <class... T>
struct std::tuple_size<gdrc_tile::numbers<T...>> : std::integral_constant<std::size_t, sizeof...(T)> {
};
template <std::size_t k, class... T> struct std::tuple_element<k, gdrc_tile::numbers<T...>> {
	using type = decltype(gdrc_tile::numbers<T...>().template get<k>());
};

namespace nvshmemx {

template <class... T> using shape = gdrc_tile::numbers<T...>;
template <class... T> using stride = gdrc_tile::numbers<T...>;

template <class... T> GDRC_MEMBER shape<T...> make_shape(const T &...lengths)
{
	return shape<T...>(lengths...);
}

template <class... T> GDRC_MEMBER stride<T...> make_stride(const T &...steps)
{
	return stride<T...>(steps...);
}

/* Elements in each direction, and from one to the next. */
template <class Shape, class Stride> struct Layout {
	GDRC_MEMBER Layout(const Shape &lengths = {}, const Stride &steps = {}) : lengths_(lengths), steps_(steps)
	{
	}
	GDRC_MEMBER Shape shape() const
	{
		return lengths_;
	}
	GDRC_MEMBER Stride stride() const
	{
		return steps_;
	}

      private:
	Shape lengths_;
	Stride steps_;
};

template <class Shape, class Stride>
GDRC_MEMBER Layout<Shape, Stride> make_layout(const Shape &lengths, const Stride &steps)
{
	return Layout<Shape, Stride>(lengths, steps);
}

template <class T, class L> struct Tensor {
	using value_type = T;
	using layout_type = L;

	GDRC_MEMBER Tensor(T *data, L layout) : data_(data), layout_(layout)
	{
	}
	GDRC_MEMBER T *data() const
	{
		return data_;
	}
	GDRC_MEMBER L layout() const
	{
		return layout_;
	}
	GDRC_MEMBER auto shape() const
	{
		return layout_.shape();
	}
	GDRC_MEMBER auto stride() const
	{
		return layout_.stride();
	}

      private:
	T *data_;
	L layout_;
};

/* PULL: members load from the others, and nobody says when they have. PUSH: the wait is a barrier of the team. */
enum tile_coll_algo_t {
	NVLS_ONE_SHOT_PUSH_NBI,
	NVLS_ONE_SHOT_PULL_NBI,
	NVLS_TWO_SHOT_PUSH_NBI,
	NVLS_TWO_SHOT_PULL_NBI,
};

} // namespace nvshmemx

namespace gdrc_tile {

/* A warp group has no number among the scopes, and a barrier alone. */
constexpr int WARPGROUP = -1;

template <int scope> GDR_DEVICE uint32_t rank()
{
	return scope == WARPGROUP ? gdr_thread_id() % 128 : gdri_scope_rank(scope);
}

template <int scope> GDR_DEVICE uint32_t size()
{
	return scope == WARPGROUP ? 128 : gdri_scope_size(scope);
}

template <int scope> GDR_DEVICE int barrier(nvshmem_team_t team)
{
	if constexpr (scope == GDRI_BLOCK)
		return gdr_barrier_block(team);
	else if constexpr (scope == GDRI_WARP)
		return gdr_barrier_warp(team);
	else if constexpr (scope == GDRI_THREAD)
		return gdr_barrier(team);
#ifdef __CUDACC__
	else
		return nvshmemx_barrier_warpgroup(team);
#endif
}

template <int scope> GDR_DEVICE int sync(nvshmem_team_t team)
{
	if constexpr (scope == GDRI_BLOCK)
		return gdr_team_sync_block(team);
	else if constexpr (scope == GDRI_WARP)
		return gdr_team_sync_warp(team);
	else if constexpr (scope == GDRI_THREAD)
		return gdr_team_sync(team);
	else
		return barrier<scope>(team);
}

template <int k, class Numbers> GDR_DEVICE long long nth(const Numbers &of)
{
	return (long long)of.template get<k>();
}

/* What a thread moves at once: 16 bytes, or one element. */
template <class T, int n> struct alignas(sizeof(T) * n) piece {
	T v[n];
};

template <class T, class Bits> GDR_DEVICE T as(Bits bits)
{
	T value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

template <class T> GDR_DEVICE T fetch(const T *from, int pe)
{
	static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "elements of 2, 4 or 8 bytes");
	if constexpr (sizeof(T) == 2)
		return as<T>(gdr_uint16_g((const uint16_t *)from, pe));
	else if constexpr (sizeof(T) == 4)
		return as<T>(gdr_uint32_g((const uint32_t *)from, pe));
	else
		return as<T>(gdr_uint64_g((const uint64_t *)from, pe));
}

/* Over queues. Out of line, so that kernels for mapped memory keep their registers. */
template <class T, int n> GDRI_NOINLINE piece<T, n> load_far(const piece<T, n> *from, int pe)
{
	piece<T, n> p;

	GDRI_NOT_UNROLLED
	for (int k = 0; k < n; k++)
		p.v[k] = fetch(&from->v[k], pe);
	return p;
}

template <class T, int n> GDR_DEVICE piece<T, n> load(const piece<T, n> *from, int pe)
{
	const piece<T, n> *there = (const piece<T, n> *)gdrc_ptr(from, pe);

	return gdri_likely(there != 0) ? *there : load_far(from, pe);
}

/* 16 bytes stand in the queue's entry itself: p need not be registered. */
template <class T, int n> GDR_DEVICE int store(piece<T, n> *to, const piece<T, n> &p, int pe)
{
	piece<T, n> *there = (piece<T, n> *)gdrc_ptr(to, pe);

	if (gdri_unlikely(!there))
		return gdr_put(to, &p, sizeof(p), pe);
	*there = p;
	return 0;
}

template <int op, class W> GDR_DEVICE W combine(W x, W y)
{
	if constexpr (op == GDRI_SUM)
		return x + y;
	else if constexpr (op == GDRI_MIN)
		return y < x ? y : x;
	else
		return x < y ? y : x;
}

/* Numbers of 16 bits are reckoned with as floats, and rounded once. By functions: there are programs that compile without
 * their conversions (__CUDA_NO_HALF_CONVERSIONS__). */
template <class T> GDR_DEVICE T widen(T v)
{
	return v;
}

template <class T, class Wide> GDR_DEVICE void narrow(T &to, Wide v)
{
	to = (T)v;
}

#ifdef __CUDACC__
GDR_DEVICE float widen(__half v)
{
	return __half2float(v);
}

GDR_DEVICE float widen(__nv_bfloat16 v)
{
	return __bfloat162float(v);
}

GDR_DEVICE void narrow(__half &to, float v)
{
	to = __float2half_rn(v);
}

GDR_DEVICE void narrow(__nv_bfloat16 &to, float v)
{
	to = __float2bfloat16_rn(v);
}
#endif

/* Of all members, in their order, so that each who reduces has the same. */
template <int op, class T, int n> GDR_DEVICE piece<T, n> fold(nvshmem_team_t team, const piece<T, n> *from)
{
	using wide = decltype(widen(T()));
	int members = gdr_team_n_pes(team);
	piece<T, n> p = load(from, gdr_team_translate_pe(team, 0, GDR_TEAM_WORLD));
	wide sum[n];

	for (int k = 0; k < n; k++)
		sum[k] = widen(p.v[k]);
	for (int i = 1; i < members; i++) {
		p = load(from, gdr_team_translate_pe(team, i, GDR_TEAM_WORLD));
		for (int k = 0; k < n; k++)
			sum[k] = combine<op, wide>(sum[k], widen(p.v[k]));
	}
	for (int k = 0; k < n; k++)
		narrow(p.v[k], sum[k]);
	return p;
}

template <class T, int n> GDR_DEVICE int store_all(nvshmem_team_t team, piece<T, n> *to, const piece<T, n> &p)
{
	int ret = 0;

	for (int i = 0; i < gdr_team_n_pes(team); i++) {
		int failed = store(to, p, gdr_team_translate_pe(team, i, GDR_TEAM_WORLD));

		ret = ret ? ret : failed;
	}
	return ret;
}

/* Elements in direction k that lie before the boundary: all, where none is given. Programs that cut a tile into parts
 * ask for parts behind its end, too, of a length below 0. */
template <int k, class Tile, class Coord>
GDR_DEVICE long long inside(const Tile &tile, const Coord &start, const Coord &boundary)
{
	long long length = nth<k>(tile.shape());

	if constexpr (!std::is_empty<Coord>::value) {
		long long left = nth<k>(boundary) - nth<k>(start);

		length = length < left ? length : left;
	}
	return length > 0 ? length : 0;
}

/* A tile as rows, which run in the direction in which it is contiguous. */
struct rows {
	long long n, length;
	long long from, to; /* steps from one row to the next, of the source and of the destination */
	long long from_step, to_step; /* within a row */
};

/* The pieces of n elements of this thread: move(source, destination). */
template <int scope, int n, class T, class Move>
GDR_DEVICE int each(const struct rows &r, T *src, T *dst, Move move)
{
	long long per = r.length / n, all = per * r.n;
	int ret = 0;

	for (long long i = rank<scope>(); i < all; i += size<scope>()) {
		long long row = i / per, at = i % per * n;
		int failed = move((piece<T, n> *)(src + row * r.from + at * r.from_step),
				  (piece<T, n> *)(dst + row * r.to + at * r.to_step));

		ret = ret ? ret : failed;
	}
	return ret;
}

template <int scope, class Src, class Dst, class Coord, class Move>
GDR_DEVICE int walk(Src src, Dst dst, typename Dst::value_type *to, Coord start, Coord boundary, Move move)
{
	using T = typename Src::value_type;
	constexpr int n = 16 / sizeof(T);
	struct rows r = {inside<0>(src, start, boundary), inside<1>(src, start, boundary),
			 nth<0>(src.stride()), nth<0>(dst.stride()),
			 nth<1>(src.stride()), nth<1>(dst.stride())};

	static_assert(std::is_same<T, typename Dst::value_type>::value, "elements of two types");
	if (r.from_step != 1)
		r = {r.length, r.n, r.from_step, r.to_step, r.from, r.to};
	if (r.from_step == 1 && r.to_step == 1 && !(r.length % n || r.from % n || r.to % n) &&
	    !(((uintptr_t)src.data() | (uintptr_t)to) % 16))
		return each<scope, n, T>(r, src.data(), to, move);
	return each<scope, 1, T>(r, src.data(), to, move);
}

/* Behind the sync the others' tiles are there, and the caller's own is shown to them. */
template <int scope, int op, bool to_all, class Src, class Dst, class Coord>
GDR_DEVICE int reduce(nvshmem_team_t team, Src src, Dst dst, Coord start, Coord boundary, bool mine)
{
	int ret = sync<scope>(team);

	if (ret || !mine)
		return ret;
	return walk<scope>(src, dst, dst.data(), start, boundary, [team](auto *from, auto *to) {
		auto p = fold<op>(team, from);

		if constexpr (to_all)
			return store_all(team, to, p);
		*to = p;
		return 0;
	});
}

/* A member's tile lies behind those of the members before it: in rows of the destination as long as they are, and then in
 * the next ones. */
template <int scope, class Src, class Dst, class Coord>
GDR_DEVICE int gather(nvshmem_team_t team, Src src, Dst dst, Coord start, Coord boundary)
{
	bool turned = nth<1>(src.stride()) != 1;
	long long tile[2] = {nth<0>(src.shape()), nth<1>(src.shape())};
	long long room[2] = {nth<0>(dst.shape()), nth<1>(dst.shape())};
	long long step[2] = {nth<0>(dst.stride()), nth<1>(dst.stride())};
	long long before = gdr_team_my_pe(team) * tile[!turned];

	return walk<scope>(src, dst,
			   dst.data() + before % room[!turned] * step[!turned] +
				   before / room[!turned] * tile[turned] * step[turned],
			   start, boundary, [team](auto *from, auto *to) { return store_all(team, to, *from); });
}

/* Behind PULL each thread has stored into memory of its own GPU, and the others of the scope see it. */
template <int scope, nvshmemx::tile_coll_algo_t algo> GDR_DEVICE int wait(nvshmem_team_t team)
{
	if constexpr (algo == nvshmemx::NVLS_ONE_SHOT_PUSH_NBI || algo == nvshmemx::NVLS_TWO_SHOT_PUSH_NBI)
		return barrier<scope>(team);
	gdri_fence_gpu(); /* pairs with that of who loads it behind a flag of the program's */
#ifdef __CUDACC__
	if constexpr (scope == WARPGROUP)
		asm volatile("barrier.sync %0, 128;" ::"r"(8 + gdr_thread_id() / 128) : "memory");
	else
#endif
		gdri_scope_sync(scope);
	return 0;
}

} // namespace gdrc_tile

namespace nvshmemx {

/* flag is for what is to come, there too. By NVLS_TWO_SHOT_PUSH_NBI the root reduces for all. */
#define GDRC_TILE_REDUCE(suffix, scope, name, op)                                                                        \
	template <class Src, class Dst, class Coord, tile_coll_algo_t algo>                                              \
	GDR_DEVICE int tile_##name##_reduce##suffix(nvshmem_team_t team, Src src, Dst dst, Coord start, Coord boundary,  \
						    int root, uint64_t)                                                  \
	{                                                                                                                \
		return gdrc_tile::reduce<scope, op, false>(team, src, dst, start, boundary, root == gdr_team_my_pe(team)); \
	}                                                                                                                \
	template <class Src, class Dst, class Coord, tile_coll_algo_t algo>                                              \
	GDR_DEVICE int tile_##name##_allreduce##suffix(nvshmem_team_t team, Src src, Dst dst, Coord start,               \
						       Coord boundary, int root, uint64_t)                               \
	{                                                                                                                \
		constexpr bool two = algo == NVLS_TWO_SHOT_PUSH_NBI;                                                     \
                                                                                                                         \
		return gdrc_tile::reduce<scope, op, two>(team, src, dst, start, boundary,                                \
							 !two || root == gdr_team_my_pe(team));                          \
	}                                                                                                                \
	template <class Src, class Dst, class Coord, tile_coll_algo_t algo>                                              \
	GDR_DEVICE int tile_##name##_allreduce##suffix(nvshmem_team_t team, Src src, Dst dst, Coord start,               \
						       Coord boundary, uint64_t)                                         \
	{                                                                                                                \
		static_assert(algo == NVLS_ONE_SHOT_PULL_NBI, "NVLS_TWO_SHOT_PUSH_NBI takes a root");                    \
		return gdrc_tile::reduce<scope, op, false>(team, src, dst, start, boundary, true);                       \
	}
#define GDRC_TILE(suffix, scope)                                                                                         \
	GDRC_TILE_REDUCE(suffix, scope, sum, GDRI_SUM)                                                                   \
	GDRC_TILE_REDUCE(suffix, scope, min, GDRI_MIN)                                                                   \
	GDRC_TILE_REDUCE(suffix, scope, max, GDRI_MAX)                                                                   \
	template <class Src, class Dst, class Coord, tile_coll_algo_t algo>                                              \
	GDR_DEVICE int tile_allgather##suffix(nvshmem_team_t team, Src src, Dst dst, Coord start, Coord boundary,        \
					      uint64_t)                                                                  \
	{                                                                                                                \
		static_assert(algo == NVLS_ONE_SHOT_PUSH_NBI, "gathers by NVLS_ONE_SHOT_PUSH_NBI alone");                \
		return gdrc_tile::gather<scope>(team, src, dst, start, boundary);                                        \
	}                                                                                                                \
	template <tile_coll_algo_t algo> GDR_DEVICE int tile_collective_wait##suffix(nvshmem_team_t team, uint64_t)      \
	{                                                                                                                \
		return gdrc_tile::wait<scope, algo>(team);                                                               \
	}
GDRC_TILE(, GDRI_THREAD)
GDRC_TILE(_warp, GDRI_WARP)
#ifdef __CUDACC__
GDRC_TILE(_warpgroup, gdrc_tile::WARPGROUP)
#endif
GDRC_TILE(_block, GDRI_BLOCK)

} // namespace nvshmemx
#endif

#endif
