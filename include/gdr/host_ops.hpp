/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr/host_ops.h for C++17, by the type of the arguments: gdr::host_put, gdr::host_atomic_add, gdr::host_sum_reduce
 * are gdr_host_T_put, gdr_host_T_atomic_add, gdr_host_T_sum_reduce, whose contract stands there. docs/cpp.md.
 *
 * What moves data takes any type that can be copied byte by byte; what reckons with it is overloaded, so that dst alone
 * says the type. As gdr/host_ops.h it brings no device code. */
#ifndef GDR_HOST_OPS_HPP
#define GDR_HOST_OPS_HPP

#include <gdr/host_ops.h>

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "gdr/host_ops.hpp takes C++17: -std=c++17"
#endif

#if GDRI_HAS_HOST

/* The rows of gdr/host_ops.h once more: their names begin with host instead of with a type. */
#undef GDRI_HOST_OP
#undef GDRI_HOST_OP_VALUE
#undef GDRI_HOST_FROM
#define GDRI_HOST_FROM(T) const typename gdri_host_element<T>::type *
#define GDRI_HOST_OP(ret, name, params, result)                                                    \
	GDRI_CPP_HOST_OF(ret) name params                                                          \
	{                                                                                          \
		return result;                                                                     \
	}
#define GDRI_HOST_OP_VALUE(ret, name, params, statement)                                           \
	GDRI_CPP_HOST_OF(ret) name params                                                          \
	{                                                                                          \
		ret out;                                                                           \
                                                                                                   \
		statement;                                                                         \
		return out;                                                                        \
	}

namespace gdr {

template <typename T> struct gdri_host_element {
	static_assert(__is_trivially_copyable(T), "its bytes are copied");
	using type = T;
	static constexpr uint32_t bytes = sizeof(T);
};

#define GDRI_CPP_HOST_OF(ret) template <typename T> ret
GDRI_HOST_MOVE(host_, T, gdri_host_element<T>::bytes, )
GDRI_HOST_COLL(host_, T, gdri_host_element<T>::bytes, )
#undef GDRI_CPP_HOST_OF

#define GDRI_CPP_HOST_OF(ret) inline ret
#define GDRI_CPP_HOST_NUMBER(name, T)                                                              \
	GDRI_HOST_VALUE(host, T)                                                                   \
	GDRI_HOST_REDUCE(host, T)
#define GDRI_CPP_HOST_WAIT(name, T)                                                                \
	GDRI_HOST_WAIT(host, T)                                                                    \
	GDRI_HOST_WAIT_SETS(host, T)
GDRI_CPP_TYPES(GDRI_CPP_HOST_NUMBER)
#define GDRI_CPP_HOST_BITS(name, T) GDRI_HOST_REDUCE_BITS(host, T)
GDRI_CPP_INTEGERS(GDRI_CPP_HOST_BITS)
#define GDRI_CPP_HOST_HALF(name, T) GDRI_HOST_REDUCE_CODES(host, T, GDRI_CODE_##name)
GDRI_HOST_HALF_TYPES(GDRI_CPP_HOST_HALF)
#define GDRI_CPP_HOST_AMO_INTEGER(name, T) GDRI_HOST_AMO_INTEGER(host, T)
GDR_LANGUAGE_TYPES(GDRI_CPP_HOST_AMO_INTEGER)
#define GDRI_CPP_HOST_AMO_NUMBER(name, T) GDRI_HOST_AMO_NUMBER(host, T)
GDR_FLOAT_TYPES(GDRI_CPP_HOST_AMO_NUMBER)
GDRI_CPP_WAIT_TYPES(GDRI_CPP_HOST_WAIT)
#undef GDRI_CPP_HOST_OF

} // namespace gdr
#endif

#endif
