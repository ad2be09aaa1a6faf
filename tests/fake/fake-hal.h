/* SPDX-License-Identifier: Apache-2.0
 *
 * A small libascend_hal.so for tests, right but for one defect, which a -D names. Memory of its
 * devices is memory of the process; queues are executed as they are written.
 *
 * - FAKE_DEVICES=n: how many devices there are (2)
 * - FAKE_API=0x082418: what halGetAPIVersion answers
 * - FAKE_OLD: a driver from before halDeviceOpen, without functions of later releases
 * - FAKE_NO_MAP: halMemMap and halMemUnmap are missing
 * - FAKE_EMPTY: all functions are missing
 * - FAKE_IMPOSTOR: carries npusim's own symbol, of an ABI that there is not
 * - FAKE_FAIL="halMemMap": that function ("*": any) fails, with the code FAKE_CODE=n, at its call
 *   FAKE_AT=n alone (1), or from FAKE_FROM=n on
 * - FAKE_SLEEP_MS=n: does not fail, but takes that long
 * - FAKE_CRASH: does not fail, but dies of SIGSEGV
 * - FAKE_DEVICE=n: halDeviceOpen does so for that device alone
 * - FAKE_STUCK: queues take entries, and never come to them
 * - FAKE_BUSY: half of the memory of device 1 is not free
 *
 * Beside the HAL's, each variant exports the two functions below.
 */
#ifndef NPUSIM_TESTS_FAKE_HAL_H
#define NPUSIM_TESTS_FAKE_HAL_H

/* Objects that were made and not ended: reservations, handles, mappings, allocations, ids, queues,
 * open devices. */
int fake_hal_live(void);
/* Opening and closing of devices in their order, such as "drvMemDeviceOpen(0) drvDeviceOpen(0)". */
const char *fake_hal_story(void);

#endif
