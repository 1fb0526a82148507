/* SPDX-License-Identifier: BSD-3-Clause */
/* Status codes of host and device functions: 0, or one of these negated.
 * The numbers are append-only and never reused. */
#ifndef GDR_STATUS_H
#define GDR_STATUS_H

/*      name            number  text */
#define GDR_STATUS_LIST(X)                                                                         \
	/* the caller's doing */                                                                   \
	X(EINVAL, 1, "invalid argument")                                                           \
	X(ESTATE, 2, "library not initialised, already finalised, or initialised twice")           \
	X(EMISMATCH, 3, "PEs disagree on a collective call's arguments")                           \
	X(EOPTION, 4, "invalid value of a GDR_ option")                                            \
	X(ENOTSUP, 5, "not supported by this device or build")                                     \
	/* resources and system */                                                                 \
	X(ENOMEM, 10, "out of symmetric heap, system memory, teams or buffers")                    \
	X(ESYSTEM, 11, "a system call or library failed")                                          \
	X(ENODEV, 12, "no usable RDMA device")                                                     \
	X(EBOOTSTRAP, 13, "the launcher's process management failed")                              \
	X(EVERSION, 14, "PEs or device code of different versions")                                \
	X(ELINK, 15, "link check between two PEs failed")                                          \
	X(EAGAIN, 16, "no room in the queue now")                                                  \
	X(ENOQUEUE, 17, "no queues left for a context")                                            \
	/* waiting */                                                                              \
	X(ETIMEOUT, 20, "time limit expired")                                                      \
	X(EPEERLOST, 21, "a peer is lost")                                                         \
	X(EABORTED, 22, "aborted on request")                                                      \
	X(EPEERFAILED, 23, "an operation of another PE failed")                                    \
	/* completions with error: one code for each mlx5 CQE syndrome */                          \
	X(ELOCALLEN, 30, "local length error (syndrome 0x01)")                                     \
	X(ELOCALQP, 31, "local queue operation error (syndrome 0x02)")                             \
	X(ELOCALPROT, 32, "local protection error (syndrome 0x04)")                                \
	X(EFLUSHED, 33, "flushed after an earlier error (syndrome 0x05)")                          \
	X(EBIND, 34, "memory window bind error (syndrome 0x06)")                                   \
	X(EBADRESP, 35, "bad response (syndrome 0x10)")                                            \
	X(ELOCALACCESS, 36, "local access error (syndrome 0x11)")                                  \
	X(EREMOTEINV, 37, "remote invalid request (syndrome 0x12)")                                \
	X(EREMOTEACCESS, 38, "remote access error (syndrome 0x13)")                                \
	X(EREMOTEOP, 39, "remote operation error (syndrome 0x14)")                                 \
	X(ERETRY, 40, "transport retry count exceeded (syndrome 0x15)")                            \
	X(ERNR, 41, "receiver-not-ready retry count exceeded (syndrome 0x16)")                     \
	X(EREMOTEABORT, 42, "aborted by the remote side (syndrome 0x22)")                          \
	X(ECQE, 43, "completion with an unknown syndrome")

enum gdr_status {
	GDR_OK = 0,
#define GDRI_STATUS_ENUM(name, number, text) GDR_##name = number,
	GDR_STATUS_LIST(GDRI_STATUS_ENUM)
#undef GDRI_STATUS_ENUM
};

#endif
