/* SPDX-License-Identifier: BSD-3-Clause */
/* How the functions of a typed family come to be: from rows, written once for all types.
 *
 *	#define GDRI_X_ROWS(pre, T, E, z, s, scope)
 *		GDRI_FN(int, GDRI_NAME(pre, put, z, s), (T *dst, ..., int pe),
 *			(GDRI_PUT, scope), check, expression)
 *
 * defines gdr_<pre>put<z><s>: pre is "int_" or nothing, z the bits of a sized form, s the scope's
 * suffix, E the bytes of an element. GDRI_FN returns a status; GDRI_FN_VALUE sets `out` of the type
 * that it returns, which is 0 when the arguments are refused. `check` belongs to the checked build:
 * 0, or a status for the call at `at`.
 *
 * C: functions for each type. CUDA: members of a class template, which the compiler reads once and
 * not for each type; names.h, generated from the same rows (tools/gen_names), calls them.
 * In the checked build names.h adds file and line. */
#ifndef GDRI_DEFINE_H
#define GDRI_DEFINE_H

#include <gdr/impl/scope.h>
#include <gdr/types.h>

#ifdef GDR_CHECKED
#include <gdr/impl/check.h>
#endif

#define GDRI_OPEN(...) __VA_ARGS__

#ifdef GDRI_PRINT_NAMES /* tools/gen_names */

#define GDRI_NAME(pre, op, z, rest) gdr_##pre##op##z##rest | op##rest
#define GDRI_PLAIN(name) gdr_##name |
#define GDRI_FN(ret, name, params, site, check, result) GDRI_PRINTED | name | params;
#define GDRI_FN_VALUE(ret, name, params, site, check, statement) GDRI_PRINTED | name | params;
#define GDRI_OF(family, T, E) GDRI_PRINTED_OF | family | T | E;
#define GDRI_SINGLE GDRI_PRINTED_OF | | | ;

#else

#define GDRI_OF(family, T, E)
#define GDRI_SINGLE

#ifdef __CUDACC__
#define GDRI_NAME(pre, op, z, rest) op##rest
#define GDRI_MEMBER static __device__ __forceinline__
#elif defined(GDR_CHECKED)
#define GDRI_NAME(pre, op, z, rest) gdri_at_gdr_##pre##op##z##rest
#define GDRI_MEMBER GDR_DEVICE
#else
#define GDRI_NAME(pre, op, z, rest) gdr_##pre##op##z##rest
#define GDRI_MEMBER GDR_DEVICE
#endif

/* A function that is not of a typed family, and no member under CUDA either. */
#ifdef GDR_CHECKED
#define GDRI_PLAIN(name) gdri_at_gdr_##name
#else
#define GDRI_PLAIN(name) gdr_##name
#endif

#ifdef GDR_CHECKED
#define GDRI_FN(ret, name, params, site, check, result)                                            \
	GDRI_MEMBER ret name(const char *file, uint32_t line, GDRI_OPEN params)                    \
	{                                                                                          \
		struct gdri_site at = {file, line, GDRI_OPEN site};                                \
		int bad = check;                                                                   \
                                                                                                   \
		(void)at;                                                                          \
		return bad ? bad : (result);                                                       \
	}
#define GDRI_FN_VALUE(ret, name, params, site, check, statement)                                   \
	GDRI_MEMBER ret name(const char *file, uint32_t line, GDRI_OPEN params)                    \
	{                                                                                          \
		struct gdri_site at = {file, line, GDRI_OPEN site};                                \
		int bad = check;                                                                   \
		ret out;                                                                           \
                                                                                                   \
		(void)at;                                                                          \
		gdri_zero(&out, sizeof(out));                                                      \
		if (bad)                                                                           \
			gdri_latch_refusal(bad);                                                   \
		else                                                                               \
			statement;                                                                 \
		return out;                                                                        \
	}
#else
#define GDRI_FN(ret, name, params, site, check, result)                                            \
	GDRI_MEMBER ret name params                                                                \
	{                                                                                          \
		return result;                                                                     \
	}
#define GDRI_FN_VALUE(ret, name, params, site, check, statement)                                   \
	GDRI_MEMBER ret name params                                                                \
	{                                                                                          \
		ret out;                                                                           \
                                                                                                   \
		statement;                                                                         \
		return out;                                                                        \
	}
#endif
#endif

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

/* A value's bytes as the low ones of 64 bits, and back. */
GDR_DEVICE uint64_t gdri_bits(const void *p, size_t size)
{
	uint64_t bits = 0;

	memcpy(&bits, p, size < 8 ? size : 8);
	return bits;
}

GDR_DEVICE void gdri_unbits(void *p, uint64_t bits, size_t size)
{
	memcpy(p, &bits, size < 8 ? size : 8);
}

GDR_DEVICE void gdri_zero(void *p, size_t size)
{
	memset(p, 0, size);
}

#endif
