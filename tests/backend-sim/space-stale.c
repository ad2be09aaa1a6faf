/* SPDX-License-Identifier: Apache-2.0
 *
 * Translations of what is unmapped or freed: an engine that has used one does not use it again.
 * Each case runs twice; the second time the call's invalidation is lost in the model, and the stale
 * translation must show, or the case would prove nothing.
 */
#include "space-rig.h"

#include "sim/sim.h"

#define NORMAL (MEM_DEV_VAL << MEM_VIRT_BIT | MEM_TYPE_HBM)
#define HUGE   (NORMAL | MEM_PAGE_HUGE)
#define GIANT  (NORMAL | MEM_PAGE_GIANT)

enum how { MAPPED, ACCESS_OF_PEER, ALLOCATED };

struct stale_case {
	const char *title;
	enum how how;
	uint64_t bytes;
	uint64_t pages; /* MAPPED: type; ALLOCATED: flags, device 0 */
};
static const struct stale_case cases[] = {
	{ "mapped_huge", MAPPED, 2 * MIB, MEM_HUGE_PAGE_TYPE },
	{ "mapped_giant", MAPPED, 1 * GIB, MEM_GIANT_PAGE_TYPE },
	{ "mapped_for_a_peer", ACCESS_OF_PEER, 2 * MIB, MEM_HUGE_PAGE_TYPE },
	{ "allocated_normal", ALLOCATED, 4 * KIB, NORMAL },
	{ "allocated_huge", ALLOCATED, 600 * MIB, HUGE },
	{ "allocated_giant", ALLOCATED, 1 * GIB, GIANT },
};

/* What a core of the device meets at va. */
static enum sim_status touch(unsigned device, uint64_t va)
{
	struct sim_job job = { .kind = SIM_JOB_READ,
			       .engine = SIM_ENGINE_CORE,
			       .device = device,
			       .src = { (int)device, va },
			       .bytes = 64 };
	struct bsim *bs = bsim_of(drv);
	enum sim_status status;

	bsim_lock(bs);
	status = sim_execute(bs->sim, &job);
	bsim_unlock(bs);
	return status;
}

static bool lose_next_invalidation;

/* The linker takes the one for sim_invalidate(), and that for the other (--wrap). */
void __wrap_sim_invalidate(struct sim *sim, int space, uint64_t va, uint64_t bytes);
void __real_sim_invalidate(struct sim *sim, int space, uint64_t va, uint64_t bytes);

void __wrap_sim_invalidate(struct sim *sim, int space, uint64_t va, uint64_t bytes)
{
	if (!lose_next_invalidation)
		__real_sim_invalidate(sim, space, va, bytes);
	lose_next_invalidation = false;
}

static uint64_t make(const struct stale_case *c, drv_mem_handle_t **out_handle)
{
	struct drv_mem_prop prop = space_prop(0);
	struct drv_mem_access_desc desc = { .type = MEM_ACCESS_TYPE_READWRITE,
					    .location = { .id = 1, .side = MEM_DEV_SIDE } };
	uint64_t va;

	*out_handle = NULL;
	if (c->how == ALLOCATED)
		return space_alloc(c->bytes, c->pages);
	prop.pg_type = (uint32_t)c->pages;
	va = space_reserve(c->bytes, 0);
	EXPECT_CODE(DRV_ERROR_NONE, halMemCreate, out_handle, c->bytes, &prop, 0);
	space_map(va, c->bytes, *out_handle);
	if (c->how == ACCESS_OF_PEER) {
		EXPECT_CODE(DRV_ERROR_NONE, halDeviceEnableP2P, 1, 0, 0);
		EXPECT_CODE(DRV_ERROR_NONE, halMemSetAccess, at(va), c->bytes, &desc, 1);
	}
	return va;
}

/* Makes it, uses it, and undoes it. Returns what an engine meets there then. */
static enum sim_status undone(const struct stale_case *c, bool lose)
{
	unsigned device = c->how == ACCESS_OF_PEER;
	drv_mem_handle_t *handle;
	enum sim_status status;
	uint64_t va;

	space_open("docs", NULL);
	va = make(c, &handle);
	EXPECT_EQ(touch(device, va), SIM_OK);
	if (lose)
		lose_next_invalidation = true;
	if (c->how == ALLOCATED)
		EXPECT_CODE(DRV_ERROR_NONE, halMemFree, at(va));
	else
		EXPECT_CODE(DRV_ERROR_NONE, halMemUnmap, at(va));
	status = touch(device, va);
	if (handle)
		EXPECT_CODE(DRV_ERROR_NONE, halMemRelease, handle);
	space_close();
	return status;
}

TEST_EACH(stale, no_engine_uses_what_is_gone, cases, title)
{
	EXPECT_EQ(undone(param, false), SIM_FAULT_TRANSLATION);
}

TEST_EACH(stale, lost_invalidation_is_noticed, cases, title)
{
	EXPECT_EQ(undone(param, true), SIM_OK);
}
