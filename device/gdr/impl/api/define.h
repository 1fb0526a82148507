/* SPDX-License-Identifier: BSD-3-Clause */
/* How the functions of a typed family come to be: from rows, written once for all types.
 *
 *	#define GDRI_<FAMILY>_ROWS(pre, T, E, z, s, scope)
 *		GDRI_FN(int, GDRI_NAME(pre, put, z, s), (T *dst, ..., int pe),
 *			(GDRI_PUT, scope), check, expression)
 *
 * defines gdr_<pre>put<z><s>: pre is "int_" or nothing, z the bits of a sized form, s the scope's
 * suffix, E the bytes of an element. GDRI_FN returns a status; GDRI_FN_VALUE sets `out` of the type
 * that it returns, which is 0 when the arguments are refused, GDRI_FN_INDEX one that is then no index.
 * `check` belongs to the checked build: 0, or a status for the call at `at`.
 *
 * GDRI_FN_BOTH(scope, ...), GDRI_FN_VALUE_BOTH: also for host threads under CUDA, who do `host`.
 * GDRI_FN_CTX, GDRI_FN_VALUE_CTX: these, and gdr_ctx_<pre>put<z><s>, for kernels, whose first
 * parameter is a context; with GDRI_NAMES in place of GDRI_NAME. What kernels do speaks of `pe, q`: the
 * PE's number in the world, and which queue (gdri_qp_to).
 *
 * C: functions for each type. CUDA: members of a class template, which the compiler reads once and
 * not for each type; names.h, generated from the same rows (tools/gen_names), calls them.
 * In the checked build names.h adds file and line. */
#ifndef GDRI_DEFINE_H
#define GDRI_DEFINE_H

#include <gdr/impl/request/submit.h>
#include <gdr/impl/path/ctx.h>
#include <gdr/impl/arch/scope.h>
#include <gdr/types.h>
#if GDRI_LINKED
#include <gdr/impl/api/linked.h>
#endif

#ifdef GDR_CHECKED
#include <gdr/impl/api/check.h>
#endif

#ifdef __CUDACC__
#define GDRI_MEMBER static __device__ __forceinline__
#else
#define GDRI_MEMBER GDR_DEVICE
#endif

/* A call of one thread is for host threads too under CUDA, whose arguments the library checks; `host` is
 * what they do. Those of warps and blocks are not. */
#define GDRI_MEMBER_GDRI_THREAD GDR_BOTH
#define GDRI_MEMBER_GDRI_WARP GDRI_MEMBER
#define GDRI_MEMBER_GDRI_BLOCK GDRI_MEMBER
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__) && GDRI_HAS_HOST
#define GDRI_PICK_GDRI_THREAD(device, host) host
#else
#define GDRI_PICK_GDRI_THREAD(device, host) device
#endif
/* What host threads have no form of: in place of the scope. */
#define GDRI_MEMBER_GDRI_KERNEL GDRI_MEMBER
#define GDRI_PICK_GDRI_KERNEL(device, host) device
#define GDRI_PICK_GDRI_WARP(device, host) device
#define GDRI_PICK_GDRI_BLOCK(device, host) device

#ifdef GDRI_PRINT_NAMES /* tools/gen_names */

#define GDRI_NAME(pre, op, z, rest) gdr_##pre##op##z##rest | op##rest
#define GDRI_CTX_NAME(pre, op, z, rest) gdr_ctx_##pre##op##z##rest | ctx_##op##rest
#define GDRI_PLAIN(name) gdr_##name |
#define GDRI_FN_OF(member, ret, name, params, ...) GDRI_PRINTED | name | params;
#define GDRI_FN_VALUE_OF(member, ret, name, params, ...) GDRI_PRINTED | name | params;
#define GDRI_HOST_FN(ret, name, params, result) GDRI_PRINTED | name | params;
#define GDRI_HOST_FN_VALUE(ret, name, params, statement) GDRI_PRINTED | name | params;
#define GDRI_OF(family, T, E) GDRI_PRINTED_OF | family | T | E;
#define GDRI_SINGLE GDRI_PRINTED_OF | | | ;

#else

#define GDRI_OF(family, T, E)
#define GDRI_SINGLE

#ifdef __CUDACC__
#define GDRI_NAME(pre, op, z, rest) op##rest
#define GDRI_CTX_NAME(pre, op, z, rest) ctx_##op##rest
#elif defined(GDR_CHECKED)
#define GDRI_NAME(pre, op, z, rest) gdri_at_gdr_##pre##op##z##rest
#define GDRI_CTX_NAME(pre, op, z, rest) gdri_at_gdr_ctx_##pre##op##z##rest
#else
#define GDRI_NAME(pre, op, z, rest) gdr_##pre##op##z##rest
#define GDRI_CTX_NAME(pre, op, z, rest) gdr_ctx_##pre##op##z##rest
#endif

/* A function that is not of a typed family, and no member under CUDA either. */
#ifdef GDR_CHECKED
#define GDRI_PLAIN(name) gdri_at_gdr_##name
#else
#define GDRI_PLAIN(name) gdr_##name
#endif

/* Functions of host threads, whose arguments the library checks. */
#if defined(__CUDACC__)
#define GDRI_HOST_MEMBER static inline __attribute__((unused))
#else
#define GDRI_HOST_MEMBER GDR_DEVICE
#endif
#ifdef GDR_CHECKED
#define GDRI_SITE(...) (const char *file, uint32_t line, __VA_ARGS__)
#define GDRI_SITE_UNUSED (void)file, (void)line
#else
#define GDRI_SITE(...) (__VA_ARGS__)
#define GDRI_SITE_UNUSED (void)0
#endif
#define GDRI_HOST_FN(ret, name, params, result)                                                    \
	GDRI_HOST_MEMBER ret name GDRI_SITE params                                                 \
	{                                                                                          \
		GDRI_SITE_UNUSED;                                                                  \
		return result;                                                                     \
	}
#define GDRI_HOST_FN_VALUE(ret, name, params, statement)                                           \
	GDRI_HOST_MEMBER ret name GDRI_SITE params                                                 \
	{                                                                                          \
		ret out;                                                                           \
                                                                                                   \
		GDRI_SITE_UNUSED;                                                                  \
		statement;                                                                         \
		return out;                                                                        \
	}

/* Without the library a call says so by the name that the program knows, and is refused. What asks again behind it
 * costs nothing. Kernels of GPUs do not run then. */
#ifdef __CUDACC__
#define GDRI_NEED_LIBRARY(name)
#define GDRI_NEED_LIBRARY_VALUE(name, bad, refuse)
#else
#define GDRI_NEED_LIBRARY(name) GDRI_NEED_LIBRARY_OF(name)
#define GDRI_NEED_LIBRARY_OF(name)                                                                 \
	if (gdri_unlikely(!gdri_dev()))                                                            \
		return gdri_hd_no_library(#name);
#define GDRI_NEED_LIBRARY_VALUE(name, bad, refuse) GDRI_NEED_LIBRARY_VALUE_OF(name, bad, refuse)
#define GDRI_NEED_LIBRARY_VALUE_OF(name, bad, refuse)                                              \
	if (gdri_unlikely(!gdri_dev())) {                                                          \
		bad = gdri_hd_no_library(#name);                                                   \
                                                                                                   \
		gdri_zero(&out, sizeof(out));                                                      \
		refuse;                                                                            \
		return out;                                                                        \
	}
#endif

/* begin: what stands before all; first: a status, before that of the check. */
#ifdef GDR_CHECKED
#define GDRI_CTX_BEGIN uint32_t q = 0;
#define GDRI_CTX_FIRST gdri_ctx_enter(&at, ctx, &pe, &q)
#define GDRI_FN_OF(member, ret, name, params, begin, first, site, check, result)                   \
	member ret name(const char *file, uint32_t line, GDRI_OPEN params)                         \
	{                                                                                          \
		struct gdri_site at = {file, line, GDRI_OPEN site};                                \
		begin int bad = first;                                                             \
                                                                                                   \
		(void)at;                                                                          \
		GDRI_NEED_LIBRARY(name)                                                            \
		if (!bad)                                                                          \
			bad = check;                                                               \
		return bad ? bad : (result);                                                       \
	}
#define GDRI_FN_VALUE_OF(member, ret, name, params, begin, first, site, check, refuse, statement)  \
	member ret name(const char *file, uint32_t line, GDRI_OPEN params)                         \
	{                                                                                          \
		struct gdri_site at = {file, line, GDRI_OPEN site};                                \
		begin int bad = first;                                                             \
		ret out;                                                                           \
                                                                                                   \
		(void)at;                                                                          \
		GDRI_NEED_LIBRARY_VALUE(name, bad, refuse)                                         \
		gdri_zero(&out, sizeof(out));                                                      \
		if (!bad)                                                                          \
			bad = check;                                                               \
		if (bad)                                                                           \
			refuse;                                                                    \
		else                                                                               \
			statement;                                                                 \
		return out;                                                                        \
	}
#else
#define GDRI_CTX_BEGIN                                                                             \
	uint32_t q;                                                                                \
                                                                                                   \
	pe = gdri_ctx_pe(ctx, pe, &q);
#define GDRI_CTX_FIRST
#ifndef __CUDACC__
#define gdri_latch_refusal(status) ((void)(status)) /* there is nowhere to: see GDRI_NEED_LIBRARY_VALUE */
#endif
#define GDRI_FN_OF(member, ret, name, params, begin, first, site, check, result)                   \
	member ret name params                                                                     \
	{                                                                                          \
		begin GDRI_NEED_LIBRARY(name)                                                      \
		return result;                                                                     \
	}
#define GDRI_FN_VALUE_OF(member, ret, name, params, begin, first, site, check, refuse, statement)  \
	member ret name params                                                                     \
	{                                                                                          \
		ret out;                                                                           \
		begin GDRI_NEED_LIBRARY_VALUE(name, const int bad, refuse)                         \
		statement;                                                                         \
		return out;                                                                        \
	}
#endif
#define GDRI_NO_CTX const uint32_t q = 0;
#endif

#define GDRI_FN(ret, name, params, site, check, result)                                            \
	GDRI_FN_OF(GDRI_MEMBER, ret, name, params, , 0, site, check, result)
#define GDRI_FN_VALUE(ret, name, params, site, check, statement)                                   \
	GDRI_FN_VALUE_OF(GDRI_MEMBER, ret, name, params, , 0, site, check,                         \
			 gdri_latch_refusal(bad), statement)
#define GDRI_FN_INDEX(ret, name, params, site, check, statement)                                   \
	GDRI_FN_VALUE_OF(GDRI_MEMBER, ret, name, params, , 0, site, check,                         \
			 (out = GDRI_NONE_HOLDS, gdri_latch_refusal(bad)), statement)
#define GDRI_FN_BOTH(scope, ret, name, params, site, check, result, host)                          \
	GDRI_FN_OF(GDRI_MEMBER_##scope, ret, name, params, , 0, site, GDRI_PICK_##scope(check, 0), \
		   GDRI_PICK_##scope(result, host))
#define GDRI_FN_VALUE_BOTH(ret, name, params, site, check, statement, host)                        \
	GDRI_VALUE_BOTH_OF(GDRI_THREAD, ret, name, params, , site, check, statement, host)
#define GDRI_VALUE_BOTH_OF(scope, ret, name, params, begin, site, check, statement, host)          \
	GDRI_FN_VALUE_OF(GDRI_MEMBER_##scope, ret, name, params, GDRI_PICK_##scope(begin, ), 0,    \
			 site, GDRI_PICK_##scope(check, 0),                                        \
			 GDRI_PICK_##scope(gdri_latch_refusal(bad), (void)bad),                    \
			 GDRI_PICK_##scope(statement, host))

#define GDRI_NAMES(pre, op, z, rest) GDRI_NAME(pre, op, z, rest), GDRI_CTX_NAME(pre, op, z, rest)
#define GDRI_PLAINS(name) GDRI_PLAIN(name), GDRI_PLAIN(ctx_##name)
#define GDRI_FN_CTX(...) GDRI_FN_CTX_OF(__VA_ARGS__) /* names become two arguments */
#define GDRI_FN_CTX_OF(scope, ret, name, ctx_name, params, site, check, result, host)              \
	GDRI_FN_OF(GDRI_MEMBER_##scope, ret, name, params, GDRI_PICK_##scope(GDRI_NO_CTX, ), 0,    \
		   site, GDRI_PICK_##scope(check, 0), GDRI_PICK_##scope(result, host))             \
	GDRI_FN_OF(GDRI_MEMBER, ret, ctx_name, (gdr_ctx_t ctx, GDRI_OPEN params), GDRI_CTX_BEGIN,  \
		   GDRI_CTX_FIRST, (GDRI_SITE_CTX site), check, result)
#define GDRI_FN_VALUE_CTX(...) GDRI_FN_VALUE_CTX_OF(__VA_ARGS__)
#define GDRI_FN_VALUE_CTX_OF(ret, name, ctx_name, params, site, check, statement, host)            \
	GDRI_VALUE_BOTH_OF(GDRI_THREAD, ret, name, params, GDRI_NO_CTX, site, check, statement,    \
			   host)                                                                   \
	GDRI_FN_VALUE_OF(GDRI_MEMBER, ret, ctx_name, (gdr_ctx_t ctx, GDRI_OPEN params),            \
			 GDRI_CTX_BEGIN, GDRI_CTX_FIRST, (GDRI_SITE_CTX site), check,              \
			 gdri_latch_refusal(bad), statement)

/* In three scopes. */
#define GDRI_SCOPES(rows, pre, T, E, z)                                                            \
	rows(pre, T, E, z, , GDRI_THREAD)                                                          \
	rows(pre, T, E, z, _warp, GDRI_WARP)                                                       \
	rows(pre, T, E, z, _block, GDRI_BLOCK)

/* The class template of a family: all(pre, T, E, z) are its rows. */
#if defined(__CUDACC__) && !defined(GDRI_PRINT_NAMES)
#define GDRI_TEMPLATE(family, all)                                                                 \
	template <typename T, unsigned E> struct family {                                          \
		all(, T, E, )                                                                      \
	};
#else
#define GDRI_TEMPLATE(family, all)
#endif

GDRI_INLINE void gdri_zero(void *p, size_t size)
{
	memset(p, 0, size);
}

#endif
