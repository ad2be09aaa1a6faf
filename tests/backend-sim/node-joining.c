/* SPDX-License-Identifier: Apache-2.0
 *
 * How processes meet: one node of a name, whoever comes first; shapes that do not agree; names,
 * reports, ending a node; and that nothing stays behind.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend-sim/node/records.h"
#include "harness/test.h"
#include "node-actors.h"

#define RACERS 12

/* Lines of /proc/net/unix with the node's name: members that can be found, and the start-up lock.
 */
static unsigned sockets_of(const char *node)
{
	FILE *list = fopen("/proc/net/unix", "re");
	char line[512], part[80];
	unsigned count = 0;

	snprintf(part, sizeof(part), "/%s/", node);
	while (fgets(line, sizeof(line), list))
		count += strstr(line, "@npusim/") && strstr(line, part);
	fclose(list);
	return count;
}

/* Waits until there are so many: the connection of a newcomer has the member's name, too, and who
 * lists all nodes of this machine has the start-up lock of each for a moment. */
static bool sockets_become(const char *node, unsigned count)
{
	for (unsigned i = 0; i < 5000; i++) {
		if (sockets_of(node) == count)
			return true;
		usleep(1000);
	}
	return false;
}

static unsigned count_files(const char *path, const char *part, uid_t owner)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	struct stat status;
	unsigned count = 0;

	while (folder && (entry = readdir(folder)))
		count += strstr(entry->d_name, part) != NULL &&
			 fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			 status.st_uid == owner;
	if (folder)
		closedir(folder);
	return count;
}

TEST(node_joining, newcomers_at_once_meet_in_one_node)
{
	struct order node = small_node("race", 64);

	for (unsigned round = 0; round < 10; round++) {
		struct actor actors[RACERS];

		for (unsigned i = 0; i < RACERS; i++)
			actors[i] = actor_start();
		for (unsigned i = 0; i < RACERS; i++)
			actor_tell(&actors[i], do_join, &node);
		for (unsigned i = 0; i < RACERS; i++) {
			struct reply reply = actor_hear(&actors[i]);

			EXPECT_STREQ(reply.text, "");
		}
		for (unsigned i = 0; i < RACERS; i++)
			EXPECT_EQ(ACT(&actors[i], do_create, .frames = 1).value, 0);
		EXPECT_EQ(ACT(&actors[round], do_usage, .memory = 0).usage.free_frames,
			  28u - RACERS);
		EXPECT_TRUE(sockets_become(node.node, RACERS));
		for (unsigned i = 0; i < RACERS; i++)
			EXPECT_TRUE(actor_end(&actors[i]));
		EXPECT_TRUE(sockets_become(node.node, 0));
	}
}

TEST(node_joining, newcomers_meet_while_others_die)
{
	struct order node = small_node("churn", 64);
	struct actor actors[4];

	for (unsigned i = 0; i < 4; i++)
		actors[i] = actor_start();
	for (unsigned round = 0; round < 60; round++) {
		struct actor *actor = &actors[round % 4];

		actor_tell(actor, do_join, &node);
		usleep((round * 37) % 900);
		actor_kill(actor);
		*actor = actor_start();
	}
	for (unsigned i = 0; i < 4; i++)
		EXPECT_STREQ(actor_do(&actors[i], do_join, node).text, "");
	EXPECT_EQ(ACT(&actors[0], do_create, .frames = 28).value, 0);
	EXPECT_EQ(ACT(&actors[1], do_usage).usage.free_frames, 0u);
	EXPECT_EQ(ACT(&actors[1], do_audit).value, 0);
	for (unsigned i = 0; i < 4; i++)
		EXPECT_TRUE(actor_end(&actors[i]));
}

static void do_shape(const struct order *order, struct reply *reply)
{
	(void)order;
	snprintf(reply->text, sizeof(reply->text), "%s %u %llu %llu %llu",
		 actor_self.config.soc_name, actor_self.config.devices,
		 (unsigned long long)actor_self.config.hbm_bytes,
		 (unsigned long long)actor_self.config.usable_frames,
		 (unsigned long long)actor_self.config.host_bytes);
}

TEST(node_joining, the_first_one_gives_the_shape)
{
	struct order first = small_node("shape", 64), second = small_node("shape", 128);
	struct actor a = actor_start(), b = actor_start();
	struct reply reply, shape;
	char who[64];

	ASSERT_STREQ(actor_do(&a, do_join, first).text, "");
	shape = ACT(&a, do_shape);
	EXPECT_STREQ(shape.text, "Ascend910B1 2 67108864 28 134217728");
	second.config.explicit_shape = true;
	second.config.devices = 4;
	reply = actor_do(&b, do_join, second);
	EXPECT_EQ(reply.value, 1);
	EXPECT_CONTAINS(reply.text, first.node);
	EXPECT_CONTAINS(reply.text,
			"runs with 2 devices of Ascend910B1, 67108864 (64 MiB) of HBM each");
	EXPECT_CONTAINS(reply.text, "4 devices of Ascend910B1, 134217728 (128 MiB) each, 134217728 "
				    "(128 MiB) of host memory, are asked for");
	EXPECT_CONTAINS(reply.text, "npusim node --reset");
	snprintf(who, sizeof(who), "(process %d, ", a.pid);
	EXPECT_CONTAINS(reply.text, who);
	second.config.explicit_shape = false;
	EXPECT_STREQ(actor_do(&b, do_join, second).text, "");
	EXPECT_STREQ(ACT(&b, do_shape).text, shape.text);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_STREQ(ACT(&b, do_leave).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, second).text, ""); /* the old node is gone */
	EXPECT_STREQ(ACT(&b, do_shape).text, "Ascend910B1 4 134217728 60 134217728");
	EXPECT_TRUE(actor_end(&b));
}

struct bad_config {
	const char *label, *name;
	unsigned devices;
	uint64_t hbm_bytes, host_bytes;
	const char *says;
};
static const struct bad_config bad_configs[] = {
	{ "empty name", "", 1, 64 << 20, 64 << 20, "1 to 63 characters" },
	{ "slash", "a/b", 1, 64 << 20, 64 << 20, "\"a/b\"" },
	{ "umlaut", "n\xc3\xb6", 1, 64 << 20, 64 << 20, "letters, digits" },
	{ "long name", "0123456789012345678901234567890123456789012345678901234567890123", 1,
	  64 << 20, 64 << 20, "1 to 63 characters" },
	{ "no device", "bad", 0, 64 << 20, 64 << 20, "0 devices" },
	{ "17 devices", "bad", 17, 64 << 20, 64 << 20, "17 devices" },
	{ "odd HBM", "bad", 1, (64 << 20) + 4096, 64 << 20, "multiples of 2 MiB" },
	{ "small HBM", "bad", 1, 8 << 20, 64 << 20, "from 16777216 (16 MiB)" },
	{ "large HBM", "bad", 1, UINT64_C(16) << 40, 64 << 20, "to 2199023255552 (2 TiB)" },
	{ "no host", "bad", 1, 64 << 20, 0, "host memory" },
};
TEST_EACH(node_joining, refuses, bad_configs, label)
{
	const struct bad_config *bad = param;
	struct node_config config = { .name = bad->name,
				      .soc_name = "Ascend910B1",
				      .devices = bad->devices,
				      .hbm_bytes = bad->hbm_bytes,
				      .host_bytes = bad->host_bytes };
	char *error = NULL;
	struct node *node;

	ASSERT_FALSE(node_join(&config, &node, &error));
	EXPECT_CONTAINS(error, bad->says);
	free(error);
}

static void list(const struct order *order, struct reply *reply)
{
	struct node_info *nodes;
	unsigned count;
	char *error;

	if (!node_list(NULL, &nodes, &count, &error)) {
		snprintf(reply->text, sizeof(reply->text), "%s", error);
		reply->value = -1;
		free(error);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(nodes[i].name, order->node))
			continue;
		reply->value = nodes[i].member_count;
		reply->usage = nodes[i].usage[0][0];
		snprintf(reply->text, sizeof(reply->text), "%s", nodes[i].refused);
		for (unsigned m = 0; m < nodes[i].member_count; m++) {
			const struct node_member_info *member = &nodes[i].members[m];
			size_t at = strlen(reply->text);

			snprintf(reply->text + at, sizeof(reply->text) - at,
				 "%d: %llu+%llu frames, %u blocks, %u exported, %u imported, "
				 "%llu kept of %d%s; ",
				 member->pid, (unsigned long long)member->frames[0],
				 (unsigned long long)member->frames[1], member->blocks,
				 member->exported, member->imported,
				 (unsigned long long)member->kept_frames, member->kept_pid,
				 member->start_time == process_start_time(member->pid)
					 ? ""
					 : ", no process");
		}
	}
	node_list_free(nodes, count);
}

/* No user of any other test, or run: what others have beside this one is not its own. */
static uid_t another(void)
{
	return 60000 + (uid_t)getpid() % 5000;
}

static void become_another(const struct order *order, struct reply *reply)
{
	uid_t user = (uid_t)order->value;

	reply->value = setresgid(user, user, user) | setresuid(user, user, user);
	prctl(PR_SET_DUMPABLE, 1); /* as after exec */
}

TEST(node_joining, users_do_not_meet)
{
	struct order node = small_node("users", 64);
	struct actor mine, theirs[2];

	if (geteuid() != 0)
		SKIP("needs root, to become another user");
	mine = actor_start();
	EXPECT_STREQ(actor_do(&mine, do_join, node).text, "");
	EXPECT_EQ(ACT(&mine, do_create, .frames = 20).value, 0);
	for (unsigned i = 0; i < 2; i++) {
		theirs[i] = actor_start();
		EXPECT_EQ(ACT(&theirs[i], become_another, .value = another()).value, 0);
		EXPECT_EQ(actor_do(&theirs[i], list, node).value, i);
		EXPECT_STREQ(actor_do(&theirs[i], do_join, node).text, "");
	}
	EXPECT_EQ(ACT(&theirs[0], do_create, .frames = 15).value, 0);
	EXPECT_EQ(ACT(&theirs[1], do_usage).usage.free_frames, 13u);
	EXPECT_EQ(ACT(&mine, do_usage).usage.free_frames, 8u);
	EXPECT_TRUE(actor_end(&mine));
	for (unsigned i = 0; i < 2; i++)
		EXPECT_TRUE(actor_end(&theirs[i]));
}

TEST(node_joining, longest_name_works)
{
	struct order node = small_node("long", 64);
	struct actor a = actor_start(), b = actor_start();

	memset(node.node, 'x', NODE_NAME_MAX);
	node.node[NODE_NAME_MAX] = '\0';
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_EQ(ACT(&a, do_create, .frames = 5).value, 0);
	EXPECT_EQ(ACT(&b, do_usage).usage.free_frames, 23u);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
}

/* Files are its own by their owner, or where it cannot become another user by the node's name. */
TEST(node_joining, nothing_stays_behind)
{
	struct order node = small_node("behind", 64);
	bool root = geteuid() == 0;
	uid_t user = root ? another() : geteuid();
	const char *part = root ? "" : node.node;
	struct actor a = actor_start(), b = actor_start(), c = actor_start();

	for (unsigned i = 0; root && i < 3; i++)
		EXPECT_EQ(ACT(i == 0   ? &a
			      : i == 1 ? &b
				       : &c,
			      become_another, .value = user)
				  .value,
			  0);
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_TRUE(sockets_become(node.node, 2));
	EXPECT_EQ(ACT(&a, do_create, .frames = 20).value, 0);
	EXPECT_EQ(ACT(&a, do_write, .value = 1).value, 0);
	actor_kill(&a);
	actor_kill(&b);
	EXPECT_TRUE(sockets_become(node.node, 0));
	EXPECT_EQ(count_files("/dev/shm", part, user), 0u);
	EXPECT_EQ(count_files("/tmp", part, user), 0u);
	EXPECT_STREQ(actor_do(&c, do_join, node).text, "");
	EXPECT_EQ(ACT(&c, do_usage).usage.free_frames, 28u);
	EXPECT_TRUE(actor_end(&c));
}

static void count_own_files(const struct order *order, struct reply *reply)
{
	(void)order;
	reply->value = count_files("/proc/self/fd", "", geteuid());
}

TEST(node_joining, leaving_closes_all_descriptors)
{
	struct order node = small_node("fds", 64);
	struct actor a = actor_start();
	int64_t before = ACT(&a, count_own_files).value;

	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_GT(ACT(&a, count_own_files).value, before);
	ACT(&a, do_leave);
	EXPECT_EQ(ACT(&a, count_own_files).value, before);
	EXPECT_TRUE(actor_end(&a));
}

TEST(node_joining, largest_memories)
{
	struct order node = small_node("large", 64);
	struct actor a;

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer leaves no room for 10 TiB");
#endif
	a = actor_start();
	node.config.devices = 1;
	node.config.hbm_bytes = UINT64_C(1) << 41;
	node.config.host_bytes = UINT64_C(1) << 43;
	ASSERT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_EQ(ACT(&a, do_usage).usage.total_frames, (UINT64_C(1) << 20) - 4);
	EXPECT_EQ(ACT(&a, do_create, .frames = (1 << 20) - 4).value, 0);
	EXPECT_EQ(ACT(&a, do_read).value, 0);
	EXPECT_TRUE(actor_end(&a));
}

/* ---- what the surroundings do ---- */

static void limit(const struct order *order, struct reply *reply)
{
	struct rlimit rlimit = { .rlim_cur = order->value, .rlim_max = order->value };

	reply->value = setrlimit((int)order->block, &rlimit);
}

struct limit_case {
	const char *label;
	int what;
	uint64_t value;
	const char *says;
};
static const struct limit_case limit_cases[] = {
	{ "file size", RLIMIT_FSIZE, 1 << 20, "ulimit -f" },
	{ "descriptors", RLIMIT_NOFILE, 8, "Too many open files" },
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	{ "address space", RLIMIT_AS, 64 << 20, "ulimit -v, valgrind)? NPUSIM_DEVICES=1 " },
#endif
};
TEST_EACH(node_joining, says_what_limit_is_in_the_way, limit_cases, label)
{
	const struct limit_case *c = param;
	struct order node = small_node("limits", 64);
	struct actor a = actor_start();
	struct reply reply;

	node.config.devices = 8;
	EXPECT_EQ(ACT(&a, limit, .block = (unsigned)c->what, .value = c->value).value, 0);
	reply = actor_do(&a, do_join, node);
	EXPECT_EQ(reply.value, 1);
	EXPECT_CONTAINS(reply.text, c->says);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(sockets_become(node.node, 0));
}

static void close_all_but_the_channel(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	for (int fd = 3; fd < 256; fd++) {
		int type;
		socklen_t size = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0)
			continue; /* the channel, and the socket by which it is found */
		close(fd);
		if (open("/dev/null", O_RDWR) < 0)
			abort();
	}
}

TEST(node_joining, a_program_that_closes_our_descriptors_harms_itself_only)
{
	struct order node = small_node("closed", 64);
	struct actor a = actor_start(), b = actor_start(), c = actor_start();
	struct reply reply;

	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	ACT(&a, close_all_but_the_channel);
	EXPECT_EQ(ACT(&a, do_create, .frames = 3).value, 0);
	EXPECT_EQ(ACT(&a, do_write, .value = 8).value, 0);
	EXPECT_EQ(ACT(&a, do_read).value, 8);
	EXPECT_GT(ACT(&a, do_pages).value, 0); /* opened again, through the other one */
	reply = actor_do(&c, do_join, node);
	EXPECT_STREQ(reply.text, "");
	EXPECT_EQ(ACT(&c, do_usage).usage.free_frames, 25u);
	ACT(&a, do_drop);
	EXPECT_EQ(ACT(&c, do_usage).usage.free_frames, 28u);
	EXPECT_TRUE(actor_end(&a));
	EXPECT_TRUE(actor_end(&b));
	EXPECT_TRUE(actor_end(&c));
}

static void spoil_version(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	actor_self.node->control->head.version = 99;
}

TEST(node_joining, another_version_is_refused)
{
	struct order node = small_node("version", 64);
	struct actor a = actor_start(), b = actor_start();
	struct reply reply;
	char *error;

	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	ACT(&a, spoil_version);
	reply = actor_do(&b, do_join, node);
	EXPECT_EQ(reply.value, 1);
	EXPECT_CONTAINS(reply.text, "another version");
	reply = actor_do(&b, list, node); /* it can be seen, and ended */
	EXPECT_EQ(reply.value, 1);
	EXPECT_EQ(reply.usage.total_frames, 0u);
	EXPECT_CONTAINS(reply.text, "another version");
	EXPECT_TRUE(node_reset(node.node, &error));
	EXPECT_TRUE(WIFSIGNALED(actor_wait(&a)));
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_TRUE(actor_end(&b));
}

/* ---- npusim node ---- */

struct part {
	void *at;
	size_t bytes;
};
#define PART(place)                                            \
	(struct part)                                          \
	{                                                      \
		.at = (void *)&(place), .bytes = sizeof(place) \
	}
#define PARTS_MAX 64

/* What may be spoiled: each word of the segment that says where something is, or how much, those of
 * the block 0 of an actor and its share among them; and the tables whole. */
static unsigned parts_of(const struct node *node, struct part *out)
{
	struct control *c = node->control;
	struct member *member = &c->members[node->slot];
	const struct memory *m = node->memory[0];
	uint32_t frame = actor_self.blocks[0]->extents[0].frame;
	struct block_record *block = &m->blocks[frame];
	struct share_record *share = &node->shares[block->share - 1];
	const struct part parts[] = {
		{ c, node->control_bytes },
		PART(c->lost),
		PART(c->lock),
		PART(c->lock_owner),
		PART(c->frames_wanted),
		PART(c->member_limit),
		PART(c->share_limit),
		PART(c->share_next),
		PART(c->share_count),
		PART(c->fd_kept),
		PART(c->unvouched),
		PART(c->told),
		PART(c->alive),
		PART(c->members),
		PART(*member),
		PART(member->state),
		PART(member->generation),
		PART(member->left),
		PART(member->visitor),
		PART(member->unvouched),
		PART(member->pid),
		PART(member->service),
		PART(member->fd),
		PART(member->server),
		PART(member->start_time),
		PART(member->command),
		PART(member->frame_cache),
		PART(*m->state),
		PART(m->state->hint),
		{ m->used, sizeof(*m->used) },
		{ m->live, sizeof(*m->live) },
		{ m->giant_used, sizeof(*m->giant_used) },
		{ m->extents, m->frames * sizeof(*m->extents) },
		{ m->blocks, m->frames * sizeof(*m->blocks) },
		PART(m->extents[frame].count),
		PART(m->extents[frame].next),
		PART(*block),
		PART(block->holders),
		PART(block->generation),
		PART(block->frames),
		PART(block->extent_count),
		PART(block->share),
		PART(block->closing),
		PART(block->fd),
		PART(block->named),
		PART(*share),
		PART(share->exporter),
		PART(share->exporter_generation),
		PART(share->block),
	};
	const unsigned count = sizeof(parts) / sizeof(parts[0]);

	memcpy(out, parts, sizeof(parts));
	return count;
}

/* Part `frame` is of that byte; of the random ones of a seed behind the last. How many parts. */
static void spoil_part(const struct order *order, struct reply *reply)
{
	g_autoptr(GRand) random = g_rand_new_with_seed((guint32)order->value);
	struct part parts[PARTS_MAX];
	const struct part *part = &parts[order->frame];

	reply->value = parts_of(actor_self.node, parts);
	if (!order->frames)
		return;
	for (size_t i = 0; i < part->bytes; i++)
		__atomic_store_n((unsigned char *)part->at + i,
				 order->value <= UINT8_MAX ? (unsigned char)order->value
							   : (unsigned char)g_rand_int(random),
				 __ATOMIC_RELAXED);
}

/* Who looks gets an answer. How many parts there are. */
static unsigned look_at_spoiled(unsigned part, uint64_t byte)
{
	struct order node = small_node("spoiled", 64);
	struct actor a = actor_start(), b = actor_start(), c = actor_start();
	struct reply reply;
	uint32_t share;
	unsigned parts;

	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&c, do_join, node).text, "");
	EXPECT_EQ(ACT(&a, do_create, .frames = 5).value, 0);
	share = (uint32_t)ACT(&a, do_export).usage.total_frames;
	EXPECT_EQ(ACT(&a, do_open, .share = share).value, 0);
	EXPECT_EQ(ACT(&c, do_import, .share = share).value, 0);
	parts = (unsigned)ACT(&a, spoil_part, .frame = part, .frames = 1, .value = byte).value;
	NOTE("part %u, byte %llu", part, (unsigned long long)byte);
	reply = actor_do(&b, list, node);
	EXPECT_NE(reply.value, ACTOR_DIED);
	EXPECT_NE(reply.value, ACTOR_SILENT);
	if (part == 0 && byte != 0)
		EXPECT_CONTAINS(reply.text, "is damaged; end it with `npusim node --reset test-");
	actor_kill(&a);
	actor_kill(&b);
	actor_kill(&c);
	return parts;
}

TEST(node_joining, a_segment_that_is_spoiled_anywhere_can_be_looked_at)
{
	static const uint64_t bytes[] = { 0, 1, 0x7f, 0x80, 0xff, 256, 257 };

	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		for (unsigned part = 0, parts = 1; part < parts; part++)
			parts = look_at_spoiled(part, bytes[i]);
}

TEST(node_joining, list_shows_who_holds_what)
{
	struct order node = small_node("list", 64);
	struct actor a = actor_start(), b = actor_start(), looker = actor_start();
	char line[128];
	struct reply reply;
	uint32_t share;

	EXPECT_EQ(actor_do(&looker, list, node).value, 0);
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	EXPECT_EQ(ACT(&a, do_create, .frames = 3).value, 0);
	EXPECT_EQ(ACT(&a, do_create, .frames = 2, .memory = 1, .block = 1).value, 0);
	EXPECT_EQ(ACT(&a, do_table, .block = 2).value, 0);
	reply = ACT(&a, do_export);
	EXPECT_EQ(reply.value, 0);
	share = (uint32_t)reply.usage.total_frames;
	EXPECT_EQ(ACT(&a, do_open, .share = share).value, 0);
	EXPECT_EQ(ACT(&b, do_import, .share = share).value, 0);
	reply = actor_do(&looker, list, node);
	EXPECT_EQ(reply.value, 2);
	EXPECT_EQ(reply.usage.free_frames, 25u);
	EXPECT_EQ(reply.usage.total_frames, 28u);
	snprintf(line, sizeof(line),
		 "%d: 3+2 frames, 2 blocks, 1 exported, 0 imported, 0 kept of 0; ", a.pid);
	EXPECT_CONTAINS(reply.text, line);
	snprintf(line, sizeof(line),
		 "%d: 3+0 frames, 1 blocks, 0 exported, 1 imported, 0 kept of 0; ", b.pid);
	EXPECT_CONTAINS(reply.text, line);
	snprintf(line, sizeof(line),
		 "%d: 3+0 frames, 1 blocks, 0 exported, 1 imported, 3 kept of %d; ", b.pid, a.pid);
	EXPECT_EQ(ACT(&a, do_drop).value, 0);
	EXPECT_CONTAINS(actor_do(&looker, list, node).text, line);
	actor_kill(&a);
	EXPECT_CONTAINS(actor_do(&looker, list, node).text, line);
	EXPECT_EQ(ACT(&b, do_drop).value, 0);
	reply = actor_do(&looker, list, node); /* nobody but the looker has called since */
	EXPECT_EQ(reply.value, 1);
	EXPECT_EQ(reply.usage.free_frames, 28u);
	EXPECT_EQ(actor_do(&b, list, node).value, 1); /* a member may look too */
	EXPECT_EQ(ACT(&b, do_audit).value, 0);
	EXPECT_TRUE(actor_end(&b));
	EXPECT_EQ(actor_do(&looker, list, node).value, 0);
	EXPECT_TRUE(actor_end(&looker));
}

static void ignore_term(const struct order *order, struct reply *reply)
{
	(void)order;
	(void)reply;
	signal(SIGTERM, SIG_IGN);
}

TEST(node_joining, reset_ends_the_processes)
{
	struct order node = small_node("reset", 64);
	struct actor a = actor_start(), b = actor_start();
	char *error;
	int status;

	EXPECT_FALSE(node_reset(node.node, &error));
	EXPECT_CONTAINS(error, "no process of this user");
	free(error);
	EXPECT_STREQ(actor_do(&a, do_join, node).text, "");
	EXPECT_STREQ(actor_do(&b, do_join, node).text, "");
	ACT(&b, ignore_term);
	EXPECT_TRUE(node_reset(node.node, &error));
	status = actor_wait(&a);
	EXPECT_EQ(WTERMSIG(status), SIGTERM);
	status = actor_wait(&b);
	EXPECT_EQ(WTERMSIG(status), SIGKILL);
	EXPECT_TRUE(sockets_become(node.node, 0));
}
