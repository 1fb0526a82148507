/* SPDX-License-Identifier: BSD-3-Clause */
/* What the libc interposers share: the real functions, the list of files that
 * are ours, and the sysfs tree. */
#ifndef SOFTHCA_SHIM_H
#define SOFTHCA_SHIM_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#define SHIM_EXPORT __attribute__((visibility("default")))

/* Functions of libc behind ours (shim_real.c), found at first use. Code of
 * softhca that opens files of its own calls these. */
int real_open(const char *path, int flags, mode_t mode);
int real_openat(int dirfd, const char *path, int flags, mode_t mode);
int real_close(int fd);
int real_ioctl(int fd, unsigned long request, void *arg);
int real_fstat(int fd, struct stat *st);
int real_stat(const char *path, struct stat *st);
int real_lstat(const char *path, struct stat *st);
void *real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int real_madvise(void *addr, size_t len, int advice);
int real_access(const char *path, int mode);
long real_sysconf(int name);
int real_socket(int domain, int type, int protocol);
FILE *real_fopen(const char *path, const char *mode);
DIR *real_opendir(const char *path);
char *real_realpath(const char *path, char *resolved);

/* Files that are ours, by inode (shim_files.c). Lock-free to look up: these
 * run in every close() and fstat() of the program, also in signal handlers. */
enum shim_kind { SHIM_NONE, SHIM_DEVICE, SHIM_CHANNEL, SHIM_INHERITED };

int shim_file_add(enum shim_kind kind, unsigned device, dev_t dev, ino_t ino);
/* Which device a device file is. */
unsigned shim_file_device(dev_t dev, ino_t ino);
void shim_file_remove(dev_t dev, ino_t ino);
/* SHIM_INHERITED in a child of fork or vfork, for files of the parent. */
enum shim_kind shim_file_kind(dev_t dev, ino_t ino);
bool shim_files_any(void);
bool shim_is_forked_child(void);
/* Has this process, or the one it was forked from, ever opened the device? */
bool shim_device_opened(void);

/* Paths (shim_path.c). */
/* The number of the device whose file it is, -1 if none. */
int path_device(const char *path);
bool path_is_gpu(const char *path); /* a device file of a GPU's driver */
/* A path below our tree for one that sysfs would serve; the path itself if it
 * is none of ours. buf has PATH_MAX bytes. */
const char *path_rewrite(const char *path, char *buf);
/* Undoes it: what realpath() answers. In place; room for 4 more bytes is not needed. */
void path_restore(char *path);
/* Root of the tree, NULL if it is not there. */
const char *path_sysfs_root(void);
void device_stat(unsigned device, struct stat *st);
/* A file by which programs find out whether NICs reach memory of GPUs: here they do. */
bool path_is_peermem(const char *path);

/* Files whose content is made on open (sysfs.c): fd, or -1 if path (below the
 * tree) is not one. */
int sysfs_open_dynamic(const char *path);
/* sysfs_open_dynamic for a name relative to a directory fd. */
int sysfs_open_dynamic_at(int dirfd, const char *name);

/* Says once that SOFTHCA_NODES does nothing here (shim_host.c). */
void shim_host_check(void);

/* The mappings of this process, as /proc/self/maps has them. */

struct maps_line {
	uint64_t start, end;
	const char *perms; /* four characters: "rw-s" */
	uint64_t offset;   /* in the file */
	dev_t dev;
	ino_t ino;	  /* 0: no file */
	const char *path; /* "" when there is none */
};

/* Calls fn for one after the other, in ascending order, until it returns false. False: there
 * is no /proc. Allocates nothing. */
bool maps_each(bool (*fn)(void *arg, const struct maps_line *m), void *arg);

#endif
