/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for what a completion with error carries. */
#ifndef GDRI_SYNDROME_H
#define GDRI_SYNDROME_H

const char *gdri_op_name(unsigned int op); /* enum gdri_op */
const char *gdri_call_name(unsigned int op); /* the function, where there is one */
/* Of a WQE, as the PRM names it; "unknown". */
const char *gdri_opcode_name(unsigned int opcode);
/* What to do about a status code; "" when there is nothing to say. */
const char *gdri_status_advice(int status);
/* Vendor syndrome in words, "" for those without a published meaning. */
const char *gdri_vendor_words(unsigned int vendor_syndrome);

#endif
