/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of address space, handles, mappings and allocations: a driver of two small devices,
 * and short names for the calls that they make over and over.
 */
#ifndef NPUSIM_TESTS_SPACE_RIG_H
#define NPUSIM_TESTS_SPACE_RIG_H

#include "harness/test.h"

#include "memory/memory.h"
#include "npusim/driver.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define TIB (GIB * 1024)

#define SPACE_DEVICES 2u

extern struct npu_driver *drv;

/* A driver under the contract ("docs" or "driver"), on the SoC (NULL: the default); both devices
 * are open. */
void space_open(const char *contract, const char *soc);
/* The same, with no device open. */
void space_open_closed(const char *contract, const char *soc);
void space_close(void);

#define CALL(...) npu_call(drv, __VA_ARGS__)
/* The last failure's message. */
#define MESSAGE() CALL(npusimLastMessage)
/* A call that must answer `code`. */
#define EXPECT_CODE(code, ...)                                          \
	do {                                                            \
		drvError_t code_ = CALL(__VA_ARGS__);                   \
		if (!EXPECT_EQ(code_, code) && code_ != DRV_ERROR_NONE) \
			ADD_FAILURE("it said: %s", MESSAGE());          \
	} while (0)

/* Each is a failure of the test where the call fails, and answers 0 or NULL then. */
uint64_t space_reserve(uint64_t bytes, uint64_t hint);
drv_mem_handle_t *space_create(unsigned device, uint64_t bytes);
drv_mem_handle_t *space_create_host(uint64_t bytes);
void space_map(uint64_t va, uint64_t bytes, drv_mem_handle_t *handle);
uint64_t space_alloc(uint64_t bytes, uint64_t flag);
/* Free frames of a device. */
uint64_t space_free_frames(unsigned device);
/* The place of an address, as copies ask for it. */
struct npu_place space_place(uint64_t va);
/* A property of device memory with 2 MiB pages. */
struct drv_mem_prop space_prop(unsigned device);
static inline void *at(uint64_t va)
{
	return (void *)(uintptr_t)va;
}
/* Another process of the same node, forked before a driver is open here: it opens its own, calls
 * body(), sends one value, and lives until space_other_end(), when its driver is closed. */
struct space_other {
	int pid, from, to;
	uint64_t value;
	char text[80];
};
void space_other_start(struct space_other *other, void (*body)(struct space_other *self));
/* Waits for the value (and text) that body() left. */
void space_other_value(struct space_other *other);
void space_other_end(struct space_other *other);
/* True where the window lies where the driver has it. */
bool space_has_default_window(void);

#endif
