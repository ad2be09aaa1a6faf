/* SPDX-License-Identifier: Apache-2.0
 *
 * Call sites: stacks kept once, the line that stands for a stack, and who held how much.
 */
#include <string.h>

#include "harness/test.h"
#include "track/holders.h"
#include "read/sites.h"

#define FRAME(function, path, number)                                          \
	{                                                                      \
		function, path, sizeof(function) - 1, sizeof(path) - 1, number \
	}

static const char *label_of(const struct sites *s, guint32 site)
{
	return sites_label_text(s, sites_label(s, site));
}

TEST(sites, alike_stacks_are_one)
{
	const struct site_frame a[] = { FRAME("f", "a.py", 1), FRAME("g", "a.py", 2) };
	struct sites *s = sites_new();
	guint before = sites_count(s);
	guint32 one = sites_add(s, a, 2);

	EXPECT_EQ(sites_add(s, a, 2), one);
	EXPECT_NE(sites_add(s, a, 1), one);
	EXPECT_EQ(sites_count(s), before + 2);
	EXPECT_EQ(sites_depth(s, one), 2u);
	EXPECT_STREQ(sites_frame(s, one, 0), "f (a.py:1)");
	EXPECT_STREQ(sites_frame(s, one, 1), "g (a.py:2)");
	EXPECT_EQ(sites_add(s, a, 0), (guint32)SITE_NONE);
	EXPECT_EQ(sites_depth(s, SITE_BEFORE), 0u);
	sites_free(s);
}

TEST(sites, the_innermost_line_of_the_program_stands_for_a_stack)
{
	static const struct site_frame torch[] = {
		FRAME("c10::Allocator::malloc()", "/build/c10/alloc.cpp", 9),
		FRAME("linear", "/x/lib/python3.11/site-packages/torch/nn/functional.py", 7),
		FRAME("<module>", "<frozen runpy>", 1),
		FRAME("forward", "/src/model.py", 33),
		FRAME("main", "/src/train.py", 2),
	};
	static const struct site_frame packages[] = {
		FRAME("??", "??", 0),
		FRAME("step", "/x/dist-packages/torch/optim.py", 5),
	};
	struct sites *s = sites_new();

	EXPECT_STREQ(label_of(s, sites_add(s, torch, 5)), "forward (/src/model.py:33)");
	EXPECT_STREQ(label_of(s, sites_add(s, packages, 2)),
		     "step (/x/dist-packages/torch/optim.py:5)");
	EXPECT_STREQ(label_of(s, sites_add(s, packages, 1)), "?? (?\?)");
	/* beyond what is kept of the stack, too */
	struct site_frame deep[20];
	for (int i = 0; i < 20; i++)
		deep[i] = i == 15 ? torch[4] : torch[1];
	guint32 site = sites_add(s, deep, 20);
	EXPECT_STREQ(label_of(s, site), "main (/src/train.py:2)");
	EXPECT_EQ(sites_depth(s, site), (guint)SITE_FRAMES);
	sites_free(s);
}

TEST(sites, long_names_and_bytes_that_are_no_text_are_cut)
{
	g_autofree char *name = g_strnfill(100000, 'n');
	g_autofree char *path = g_strnfill(100000, 'p');
	path[99999] = '\xff';
	const struct site_frame f = { name, path, 100000, 100000, 1 };
	struct sites *s = sites_new();
	const char *text = label_of(s, sites_add(s, &f, 1));

	EXPECT_TRUE(strlen(text) < 3 * SITE_TEXT_MAX);
	EXPECT_TRUE(g_utf8_validate(text, -1, NULL));
	sites_free(s);
}

TEST(sites, lines_of_text_are_frames)
{
	struct sites *s = sites_new();
	guint32 site = sites_add_lines(s, "/x/site-packages/torch/a.py(3): f\n"
					  "  /src/b.py(4): g  \n\n#1\n/y/c.py(5): h");

	EXPECT_EQ(sites_depth(s, site), 3u);
	EXPECT_STREQ(label_of(s, site), "/src/b.py(4): g");
	EXPECT_EQ(sites_add_lines(s, ""), (guint32)SITE_NONE);
	EXPECT_EQ(sites_add_lines(s, "\n 12 \n"), (guint32)SITE_NONE);
	sites_free(s);
}

static void add_block(struct allocation_table *l, guint64 key, guint64 bytes, guint32 site)
{
	const struct allocation b = {
		.key = key, .address = key, .size = bytes + 9, .asked = bytes, .site = site
	};

	allocation_table_add(l, ALLOCATION_BLOCK, &b);
}

TEST(holders, are_sums_by_line_the_largest_first)
{
	const struct site_frame a[] = { FRAME("lib", "/x/site-packages/l.py", 1),
					FRAME("f", "a.py", 1) };
	const struct site_frame b[] = { FRAME("other", "/x/site-packages/l.py", 2),
					FRAME("f", "a.py", 1) };
	const struct site_frame c[] = { FRAME("g", "c.py", 1) };
	struct sites *s = sites_new();
	struct allocation_table l;

	allocation_table_init(&l);
	allocation_table_add_moment(&l, MOMENT_PEAK, 0);
	guint32 first = sites_add(s, a, 2), second = sites_add(s, b, 2), third = sites_add(s, c, 1);
	add_block(&l, 1, 10, first);
	add_block(&l, 2, 30, second);
	add_block(&l, 3, 35, third);
	add_block(&l, 4, 1, SITE_BEFORE);
	allocation_table_mark(&l, &l.moments[0], 1, &(struct memory_sums){ 0 });
	add_block(&l, 5, 1000, third);
	allocation_table_remove(&l, ALLOCATION_BLOCK, 2);
	g_autoptr(GArray) holders = holders_of(&l, &l.moments[0], s);
	ASSERT_EQ(holders->len, 3u);
	const struct holder *h = (const struct holder *)(void *)holders->data;
	EXPECT_STREQ(sites_label_text(s, h[0].label), "f (a.py:1)");
	EXPECT_EQ(h[0].bytes, 40u);
	EXPECT_EQ(h[0].blocks, 2u);
	EXPECT_EQ(h[0].site, second);
	EXPECT_EQ(h[1].bytes, 35u);
	EXPECT_STREQ(sites_label_text(s, h[2].label), "(before the file begins)");
	g_autoptr(GArray) none = holders_of(&l, &l.moments[0], NULL);
	EXPECT_EQ(none->len, 0u);
	allocation_table_clear(&l);
	sites_free(s);
}
