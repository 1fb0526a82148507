# SPDX-License-Identifier: BSD-3-Clause
# Run by CPack on what it is about to pack. Policy: manual pages are compressed.
execute_process(COMMAND find ${CPACK_TEMPORARY_DIRECTORY} -path "*/man/man?/*" -type f -exec gzip -9n {} +
	COMMAND_ERROR_IS_FATAL ANY)
