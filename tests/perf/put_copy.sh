# SPDX-License-Identifier: BSD-3-Clause
# A put of the host device into mapped memory beside the C library's copy, by length and place of the source.

echo "size,source,put_ns,memcpy_ns" >"$out/put_copy.csv"
printf '%6s %7s %8s %8s %6s\n' size source put memcpy ratio
# shellcheck disable=SC2086
GDR_TRANSPORTS=p2p timeout -k 5 "${LIMIT:-120}" $first "$bin/tests/perf/put_copy" ${SIZES:-} 2>>"$out/gdr.log" |
	while read -r size source put bare; do
		printf '%6s %7s %8s %8s %6s\n' "$size" "$source" "$put" "$bare" "$(awk "BEGIN { printf \"%.2f\", $put / $bare }")"
		echo "$size,$source,$put,$bare" >>"$out/put_copy.csv"
		result "put_copy_${size}_$source $put ns memcpy $bare"
	done
