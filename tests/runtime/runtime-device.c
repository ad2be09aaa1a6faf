/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices and contexts of runtime/core over a fake driver: counts, ids, which context is current in
 * which thread, stale handles, a fork.
 */
#include "harness/test.h"

#include "rig.h"

#include <string.h>

SETUP(device)
{
	rig_open(4);
}

TEARDOWN(device)
{
	rig_close();
}

SETUP(context)
{
	rig_open(4);
}

TEARDOWN(context)
{
	rig_close();
}

TEST(device, opened_once_closed_with_the_last_reset)
{
	EXPECT_EQ(core_device_set(1), 0);
	EXPECT_EQ(core_device_set(1), 0);
	EXPECT_EQ(fake_opened(rig, 1), 1);
	EXPECT_EQ(core_device_reset(1, false), 0);
	EXPECT_TRUE(fake_is_open(rig, 1));
	EXPECT_NOT_NULL(core_context_peek());
	EXPECT_EQ(core_device_reset(1, false), 0);
	EXPECT_FALSE(fake_is_open(rig, 1));
	EXPECT_NULL(core_context_peek());
	EXPECT_EQ(core_device_reset(1, false), 507007);
	EXPECT_CONTAINS(npu_message(), "call: deviceId=1 is not set");
}

TEST(device, reset_by_force_ends_all_counts)
{
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(core_device_set(0), 0);
	EXPECT_EQ(core_device_reset(0, true), 0);
	EXPECT_FALSE(fake_is_open(rig, 0));
	EXPECT_EQ(core_device_reset(0, true), 507007);
}

TEST(device, bad_ids_name_the_valid_ones)
{
	EXPECT_EQ(core_device_set(4), 107001);
	EXPECT_STREQ(npu_message(), "call: deviceId=4: device 4 does not exist: valid are 0 to 3");
	EXPECT_EQ(core_device_set(-1), 107001);
	EXPECT_EQ(core_last_error(false), 107001);
	EXPECT_EQ(core_last_error(true), 107001);
	EXPECT_EQ(core_last_error(true), 0);
}

TEST(device, open_that_fails_can_be_tried_again)
{
	halDevOpenIn in;
	halDevOpenOut out;

	npu_call(rig, halDeviceOpen, 2, &in, &out); /* the fake opens once only */
	EXPECT_EQ(core_device_set(2), 507033);
	EXPECT_CONTAINS(npu_message(), "call: device 2 cannot be opened: the driver answers 2");
	EXPECT_NULL(core_context_peek());
	npu_call(rig, halDeviceClose, 2, NULL);
	EXPECT_EQ(core_device_set(2), 0);
}

/* ---- ASCEND_RT_VISIBLE_DEVICES ---- */

static const struct visible_case {
	const char *label, *value;
	int count_code;
	uint32_t count;
	const char *text;
} visible_cases[] = {
	{ "two", "2,3", 0, 2, "0 -> 2, 1 -> 3" },
	{ "all", "0,1,2,3", 0, 4, "0 -> 0, 1 -> 1, 2 -> 2, 3 -> 3" },
	{ "cut_at_a_missing_device", "0,1,9,3", 0, 2, "0 -> 0, 1 -> 1" },
	{ "cut_at_text", "1,x,2", 0, 1, "0 -> 1" },
	{ "cut_at_a_blank", "1, 2", 0, 1, "0 -> 1" },
	{ "trailing_comma", "3,", 0, 1, "0 -> 3" },
	{ "too_many", "0,1,2,3,0", 0, 4, "0 -> 0, 1 -> 1, 2 -> 2, 3 -> 3" },
	{ "not_ascending", "3,2", 207004, 0, "" },
	{ "twice", "1,1", 207004, 0, "" },
	{ "empty", "", 207004, 0, "" },
	{ "none_valid", "7", 207004, 0, "" },
};

TEST_EACH(device, visible, visible_cases, label)
{
	const struct visible_case *c = param;
	uint32_t user = 99, logic = 99;

	setenv("ASCEND_RT_VISIBLE_DEVICES", c->value, 1);
	EXPECT_EQ(core_device_count(&user, &logic), c->count_code);
	EXPECT_EQ(user, c->count_code == 0 ? c->count : 99);
	EXPECT_STREQ(core_visible_text(), c->text);
	EXPECT_EQ(core_device_set((int32_t)c->count), 107001);
}

TEST(device, ids_go_both_ways)
{
	uint32_t logic = 0;
	int32_t user = 0;

	setenv("ASCEND_RT_VISIBLE_DEVICES", "1,3", 1);
	EXPECT_TRUE(core_user_to_logic(1, &logic));
	EXPECT_EQ(logic, 3);
	EXPECT_EQ(core_logic_to_user(1, &user), 0);
	EXPECT_EQ(user, 0);
	EXPECT_EQ(core_logic_to_user(0, &user), 107001);
	EXPECT_CONTAINS(npu_message(), "hidden from this program by ASCEND_RT_VISIBLE_DEVICES=1,3");
	EXPECT_EQ(core_logic_to_user(9, &user), 107001);
	EXPECT_EQ(core_device_set(1), 0);
	EXPECT_TRUE(fake_is_open(rig, 3));
	EXPECT_EQ(core_context_peek()->user_device, 1);
	EXPECT_EQ(core_context_peek()->device, 3);
	EXPECT_EQ(core_device_set(3), 107001);
	EXPECT_CONTAINS(npu_message(), "user id -> driver's logic id: 0 -> 1, 1 -> 3");
}

/* ---- contexts ---- */

TEST(context, none_at_first)
{
	EXPECT_NULL(core_context_peek());
	EXPECT_EQ(core_context_none(), 107002);
	EXPECT_CONTAINS(npu_message(), "call: no current context: call aclrtSetDevice");
	EXPECT_EQ(core_last_error(false), 107002);
}

TEST(context, created_is_current_and_keeps_the_device_open)
{
	void *context = NULL;

	EXPECT_EQ(core_context_create(2, &context), 0);
	ASSERT_NOT_NULL(core_context_peek());
	EXPECT_EQ(core_context_handle(core_context_peek()), context);
	EXPECT_EQ(core_context_peek()->device, 2);
	EXPECT_EQ(core_device_set(2), 0);
	EXPECT_EQ(core_device_reset(2, false), 0);
	EXPECT_TRUE(fake_is_open(rig, 2));
	EXPECT_EQ(core_context_select(context), 0);
	EXPECT_EQ(core_context_destroy(context), 0);
	EXPECT_FALSE(fake_is_open(rig, 2));
	EXPECT_NULL(core_context_peek());
	EXPECT_EQ(core_context_destroy(context), 107002);
	EXPECT_EQ(core_context_select(context), 107002);
}

TEST(context, primary_is_not_the_programs_to_destroy)
{
	EXPECT_EQ(core_device_set(0), 0);
	EXPECT_EQ(core_context_destroy(core_context_handle(core_context_peek())), 107002);
	EXPECT_CONTAINS(npu_message(), "is the primary context of device 0");
	EXPECT_NOT_NULL(core_context_peek());
}

TEST(context, made_up_handles_have_a_code)
{
	static const uintptr_t values[] = {
		1, 0x1000, 0x7fffffffffff, UINTPTR_MAX, (uintptr_t)1 << 44, (uintptr_t)1 << 44 | 16
	};
	int on_the_stack;

	EXPECT_EQ(core_device_set(0), 0);
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		EXPECT_EQ(core_context_select((void *)values[i]), 107002);
	EXPECT_EQ(core_context_select(&on_the_stack), 107002);
	EXPECT_EQ(core_context_select(NULL), 107002);
}

TEST(context, stale_handle_is_not_the_next_context)
{
	void *old = NULL, *young = NULL;

	EXPECT_EQ(core_context_create(0, &old), 0);
	EXPECT_EQ(core_context_destroy(old), 0);
	EXPECT_EQ(core_context_create(0, &young), 0);
	EXPECT_NE(old, young);
	EXPECT_EQ(core_context_select(old), 107002);
	EXPECT_EQ(core_context_select(young), 0);
	EXPECT_EQ(core_context_destroy(young), 0);
}

static void *other_thread(void *arg)
{
	EXPECT_NULL(core_context_peek());
	EXPECT_EQ(core_device_set(3), 0);
	EXPECT_EQ(core_context_peek()->device, 3);
	EXPECT_EQ(core_context_select(arg), 0);
	EXPECT_EQ(core_context_peek()->device, 1);
	return NULL;
}

TEST(context, each_thread_has_its_own)
{
	pthread_t thread;

	EXPECT_EQ(core_device_set(1), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, other_thread,
				 core_context_handle(core_context_peek())),
		  0);
	pthread_join(thread, NULL);
	EXPECT_EQ(core_context_peek()->device, 1);
}

static void *reset_and_set_again(void *arg)
{
	(void)arg;
	EXPECT_EQ(core_device_reset(0, false), 0);
	EXPECT_EQ(core_device_set(0), 0);
	return NULL;
}

/* As in CANN: a thread that set a device follows its primary context, whichever that is. */
TEST(context, thread_follows_the_devices_primary)
{
	pthread_t thread;
	void *before;

	EXPECT_EQ(core_device_set(0), 0);
	before = core_context_handle(core_context_peek());
	ASSERT_EQ(pthread_create(&thread, NULL, reset_and_set_again, NULL), 0);
	pthread_join(thread, NULL);
	ASSERT_NOT_NULL(core_context_peek());
	EXPECT_NE(core_context_handle(core_context_peek()), before);
	EXPECT_EQ(core_context_select(before), 107002);
}

/* ---- fork ---- */

static void in_the_child(void *arg)
{
	void *handle = NULL;

	EXPECT_NULL(core_driver());
	EXPECT_CONTAINS(npu_message(), "forked after its parent had opened a device");
	EXPECT_NULL(core_context_peek());
	EXPECT_EQ(core_context_none(), 107002);
	EXPECT_CONTAINS(npu_message(), "forked");
	EXPECT_NE(core_device_set(0), 0);
	EXPECT_NE(core_stream_create(0, 0, &handle), 0);
	EXPECT_NE(core_context_select(arg), 0);
	EXPECT_NE(core_device_reset(0, true), 0);
}

TEST(device, fork_after_opening_is_told)
{
	EXPECT_EQ(core_device_set(0), 0);
	EXPECT_EXIT(0, in_the_child, core_context_handle(core_context_peek()));
	EXPECT_NOT_NULL(core_context_peek());
}

static void works_in_the_child(void *arg)
{
	(void)arg;
	EXPECT_EQ(core_device_set(1), 0);
	EXPECT_EQ(core_device_reset(1, false), 0);
}

TEST(device, fork_before_opening_works)
{
	uint32_t user, logic;

	EXPECT_EQ(core_device_count(&user, &logic), 0);
	EXPECT_EXIT(0, works_in_the_child, NULL);
	EXPECT_EQ(core_device_set(1), 0);
}

/* ---- threads ---- */

static void *set_and_reset(void *arg)
{
	int32_t device = (int32_t)(intptr_t)arg % 4;

	for (int i = 0; i < 200; i++) {
		EXPECT_EQ(core_device_set(device), 0);
		EXPECT_NOT_NULL(core_context_peek());
		EXPECT_EQ(core_device_reset(device, false), 0);
	}
	return NULL;
}

TEST(device, many_threads_set_and_reset)
{
	pthread_t thread[8];

	for (intptr_t i = 0; i < 8; i++)
		ASSERT_EQ(pthread_create(&thread[i], NULL, set_and_reset, (void *)i), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < 4; i++)
		EXPECT_FALSE(fake_is_open(rig, i));
}

static atomic_bool enough;

/* What it makes belongs to contexts that end meanwhile; codes are as the moment has them. */
static void *make_things(void *arg)
{
	(void)arg;
	while (!atomic_load(&enough)) {
		void *event = NULL, *stream = NULL;

		if (core_device_set(0) != 0)
			continue;
		if (core_event_create(CORE_EVENT_FLAGS, CORE_EVENT_SYNC, &event) == 0)
			core_event_record(event, NULL);
		if (core_stream_create(0, 0, &stream) == 0 && event != NULL)
			core_event_wait(event, stream, 0);
		if (stream != NULL)
			core_stream_destroy(stream, true);
		if (event != NULL)
			core_event_destroy(event);
	}
	return NULL;
}

TEST(device, ends_while_others_make_things_on_it)
{
	pthread_t thread[3];

	atomic_store(&enough, false);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(pthread_create(&thread[i], NULL, make_things, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		core_device_reset(0, true);
		EXPECT_EQ(core_device_set(0), 0);
	}
	atomic_store(&enough, true);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(core_device_reset(0, true), 0);
	EXPECT_EQ(core_stream_live(0), 0);
	EXPECT_EQ(core_event_live(0), 0);
}

/* ---- a context that ends while something of it is made ---- */

static drvError_t (*real_id_alloc)(struct npu_driver *self, uint32_t dev,
				   struct halResourceIdInputInfo *in,
				   struct halResourceIdOutputInfo *out);
static bool set_again;

static void *end_the_context(void *arg)
{
	(void)arg;
	EXPECT_EQ(core_device_reset(0, true), 0);
	if (set_again)
		EXPECT_EQ(core_device_set(0), 0);
	return NULL;
}

static drvError_t id_alloc_meanwhile(struct npu_driver *self, uint32_t dev,
				     struct halResourceIdInputInfo *in,
				     struct halResourceIdOutputInfo *out)
{
	pthread_t thread;

	self->halResourceIdAlloc = real_id_alloc;
	EXPECT_EQ(pthread_create(&thread, NULL, end_the_context, NULL), 0);
	pthread_join(thread, NULL);
	return real_id_alloc(self, dev, in, out);
}

static void make_while_it_ends(bool event, bool again)
{
	void *made = NULL;
	int code;

	ASSERT_EQ(core_device_keep(0), 0);
	ASSERT_EQ(core_device_set(0), 0);
	set_again = again;
	real_id_alloc = rig->halResourceIdAlloc;
	rig->halResourceIdAlloc = id_alloc_meanwhile;
	code = event ? core_event_create(CORE_EVENT_FLAGS, CORE_EVENT_SYNC, &made)
		     : core_stream_create(0, 0, &made);
	EXPECT_EQ(code, ACL_ERROR_RT_CONTEXT_NULL);
	EXPECT_CONTAINS(npu_message(), "ended while");
	EXPECT_NULL(made);
	EXPECT_EQ(core_stream_live(0), 0);
	EXPECT_EQ(core_event_live(0), 0);
	EXPECT_EQ(fake_live_ids(rig), 0);
	EXPECT_EQ(fake_live_queues(rig), 0);
}

TEST(device, ends_while_a_stream_of_it_is_made)
{
	make_while_it_ends(false, false);
}

TEST(device, ends_and_is_set_again_while_a_stream_of_it_is_made)
{
	make_while_it_ends(false, true);
}

TEST(device, ends_while_an_event_of_it_is_made)
{
	make_while_it_ends(true, false);
}

TEST(device, ends_and_is_set_again_while_an_event_of_it_is_made)
{
	make_while_it_ends(true, true);
}

/* ---- handles ---- */

struct thing {
	struct core_slot slot;
};

TEST(device, a_stale_handle_does_not_hide_the_slots_next_user)
{
	static struct core_pool pool = CORE_POOL(7, "thing", "nothing", struct thing, NULL);
	struct thing *thing = core_pool_take(&pool);
	void *first, *second;

	ASSERT_NOT_NULL(thing);
	first = core_pool_publish(&pool, thing);
	EXPECT_TRUE(core_pool_hide(thing, first));
	EXPECT_FALSE(core_pool_hide(thing, first));
	EXPECT_FALSE(core_pool_hide(thing, NULL));
	core_pool_give(&pool, thing);
	ASSERT_EQ(core_pool_take(&pool), (void *)thing);
	second = core_pool_publish(&pool, thing);
	EXPECT_FALSE(core_pool_hide(thing, first));
	EXPECT_EQ(core_pool_find(&pool, second), (void *)thing);
	EXPECT_TRUE(core_pool_hide(thing, second));
	core_pool_give(&pool, thing);
}
