/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the emulated device in /sys and /dev. sysfs_tree.cmake writes the
 * tree with the same names. The PCI domain is one that firmware does not use
 * (segments are small numbers, VMD starts at 0x10000), so that the device
 * never hides a real one. */
#ifndef SOFTHCA_SYSFS_H
#define SOFTHCA_SYSFS_H

/* These end in the number of the device: one function of the card for each. */
#define SYSFS_DEVICE_FILE "/dev/infiniband/uverbs"
#define SYSFS_IBDEV	  "mlx5_"
#define SYSFS_PCI_BDF	  "50fc:01:00."
#define SYSFS_PCI_ROOT	  "pci50fc:00"
#define SYSFS_MAJOR	  231
#define SYSFS_MINOR	  192 /* of device 0 */

#endif
