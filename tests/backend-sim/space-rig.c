/* SPDX-License-Identifier: Apache-2.0
 *
 * The rig of the tests of address space, handles, mappings and allocations.
 */
#include "space-rig.h"

#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct npu_backend npusim_backend_1;

struct npu_driver *drv;

void space_open_closed(const char *contract, const char *soc)
{
	char *error = NULL;

	setenv("NPUSIM_DEVICES", "2", 1);
	setenv("NPUSIM_HBM", "4G", 1);
	setenv("NPUSIM_CONTRACT", contract, 1);
	setenv("NPUSIM_LOG", "error", 0);
	if (soc != NULL)
		setenv("NPUSIM_SOC", soc, 1);
	else
		unsetenv("NPUSIM_SOC");
	drv = npusim_backend_1.open(&error);
	if (drv == NULL)
		FAIL("%s", error);
}

void space_open(const char *contract, const char *soc)
{
	halDevOpenIn in = { { 0 } };
	halDevOpenOut out;

	ASSERT_NO_FATAL(space_open_closed(contract, soc));
	for (unsigned d = 0; d < SPACE_DEVICES; d++)
		EXPECT_CODE(DRV_ERROR_NONE, halDeviceOpen, d, &in, &out);
}

void space_close(void)
{
	if (drv != NULL)
		drv->close(drv);
	drv = NULL;
}

uint64_t space_reserve(uint64_t bytes, uint64_t hint)
{
	void *va = NULL;

	EXPECT_CODE(DRV_ERROR_NONE, halMemAddressReserve, &va, bytes, 0, at(hint), 1);
	return (uintptr_t)va;
}

struct drv_mem_prop space_prop(unsigned device)
{
	return (struct drv_mem_prop){ .side = MEM_DEV_SIDE,
				      .devid = device,
				      .module_id = APP_MODULE_ID,
				      .pg_type = MEM_HUGE_PAGE_TYPE,
				      .mem_type = MEM_HBM_TYPE };
}

drv_mem_handle_t *space_create(unsigned device, uint64_t bytes)
{
	struct drv_mem_prop prop = space_prop(device);
	drv_mem_handle_t *handle = NULL;

	EXPECT_CODE(DRV_ERROR_NONE, halMemCreate, &handle, bytes, &prop, 0);
	return handle;
}

drv_mem_handle_t *space_create_host(uint64_t bytes)
{
	struct drv_mem_prop prop = { .side = MEM_HOST_SIDE,
				     .module_id = APP_MODULE_ID,
				     .pg_type = MEM_HUGE_PAGE_TYPE,
				     .mem_type = MEM_DDR_TYPE };
	drv_mem_handle_t *handle = NULL;

	EXPECT_CODE(DRV_ERROR_NONE, halMemCreate, &handle, bytes, &prop, 0);
	return handle;
}

void space_map(uint64_t va, uint64_t bytes, drv_mem_handle_t *handle)
{
	EXPECT_CODE(DRV_ERROR_NONE, halMemMap, at(va), bytes, 0, handle, 0);
}

uint64_t space_alloc(uint64_t bytes, uint64_t flag)
{
	void *va = NULL;

	EXPECT_CODE(DRV_ERROR_NONE, halMemAlloc, &va, bytes, flag);
	return (uintptr_t)va;
}

uint64_t space_free_frames(unsigned device)
{
	struct node_usage usage;

	node_usage(bsim_of(drv)->node, device, &usage);
	return usage.free_frames;
}

struct npu_place space_place(uint64_t va)
{
	struct bsim *bs = bsim_of(drv);
	struct npu_place place;

	bsim_lock(bs);
	place = place_at(bs, va);
	bsim_unlock(bs);
	return place;
}

bool space_has_default_window(void)
{
	const struct window *w = bsim_of(drv)->window;

	return w->base == WINDOW_DEFAULT_BASE && w->bytes == WINDOW_DEFAULT_BYTES;
}

static void run_other(struct space_other *other, void (*body)(struct space_other *self))
{
	char done;

	space_open("docs", NULL);
	body(other);
	if (write(other->to, other, sizeof(*other)) != (ssize_t)sizeof(*other) ||
	    read(other->from, &done, 1) < 0)
		_exit(1);
	space_close();
	_exit(harness_has_failed());
}

void space_other_start(struct space_other *other, void (*body)(struct space_other *self))
{
	int there[2], back[2];

	ASSERT_EQ(pipe(there), 0);
	ASSERT_EQ(pipe(back), 0);
	other->pid = fork();
	ASSERT_GE(other->pid, 0);
	other->to = other->pid == 0 ? back[1] : there[1];
	other->from = other->pid == 0 ? there[0] : back[0];
	close(other->pid == 0 ? there[1] : there[0]);
	close(other->pid == 0 ? back[0] : back[1]);
	if (other->pid == 0)
		run_other(other, body);
}

void space_other_value(struct space_other *other)
{
	struct space_other sent;

	ASSERT_EQ(read(other->from, &sent, sizeof(sent)), (ssize_t)sizeof(sent));
	other->value = sent.value;
	memcpy(other->text, sent.text, sizeof(sent.text));
}

void space_other_end(struct space_other *other)
{
	int status = 0;

	close(other->to);
	EXPECT_EQ(waitpid(other->pid, &status, 0), other->pid);
	EXPECT_EQ(status, 0);
	close(other->from);
}
