/* SPDX-License-Identifier: Apache-2.0
 *
 * Call sites: stacks kept once, the line that stands for a stack, and who held how much.
 */
#include <string.h>

#include "harness/test.h"
#include "track/memory.h"

struct frame {
	const char *name, *file;
	gsize name_length, file_length;
	gint64 line;
};
#define FRAME(function, path, number)                                          \
	{                                                                      \
		function, path, sizeof(function) - 1, sizeof(path) - 1, number \
	}

static guint32 add_frames(struct sites *s, const struct frame *f, guint count)
{
	g_autoptr(GString) text = g_string_new(NULL);

	for (guint i = 0; i < count; i++)
		site_frame_add(text, f[i].name, f[i].name_length, f[i].file, f[i].file_length,
			       f[i].line);
	return sites_add(s, text->str);
}

static const char *label_of(const struct sites *s, guint32 site)
{
	return sites_label_text(s, sites_label(s, site));
}

TEST(sites, alike_stacks_are_one)
{
	const struct frame a[] = { FRAME("f", "a.py", 1), FRAME("g", "a.py", 2) };
	struct sites *s = sites_new();
	guint before = sites_count(s);
	guint32 one = add_frames(s, a, 2);

	EXPECT_EQ(add_frames(s, a, 2), one);
	EXPECT_NE(add_frames(s, a, 1), one);
	EXPECT_EQ(sites_count(s), before + 2);
	EXPECT_EQ(sites_depth(s, one), 2u);
	EXPECT_STREQ(sites_frame(s, one, 0), "f (a.py:1)");
	EXPECT_STREQ(sites_frame(s, one, 1), "g (a.py:2)");
	EXPECT_EQ(add_frames(s, a, 0), (guint32)SITE_NONE);
	EXPECT_EQ(sites_depth(s, SITE_BEFORE), 0u);
	sites_free(s);
}

#define SITE "/x/lib/python3.11/site-packages/"

/* Frames that stand for no stack with any other of the program or a package: of allocators,
 * torch, CPython, libc and libstdc++, as unwinders name them. */
static const struct frame plumbing[] = {
	FRAME("torch::unwind::unwind()", "??", 0),
	FRAME("c10::cuda::CUDACachingAllocator::Native::malloc(long)",
	      "/c10/CUDACachingAllocator.cpp", 9),
	FRAME("std::enable_if<true>::type at::native::empty(long)", "/x/aten/src/ATen/Empty.cpp",
	      3),
	FRAME("THPVariable_linear", "/build/torch/csrc/python_nn.cpp", 1),
	FRAME("cfunction_call", "/usr/local/src/conda/python-3.12.3/Objects/methodobject.c", 537),
	FRAME("run_mod", "./build-static/../Python/pythonrun.c", 1),
	FRAME("pymain_run", "/usr/bin/python3.11", 0),
	FRAME("execute_native_thread_routine", "../../libstdc++-v3/src/c++11/thread.cc", 82),
	FRAME("start_thread", "./nptl/pthread_create.c", 442),
	FRAME("clone", "../sysdeps/unix/sysv/linux/x86_64/clone.S", 100),
	FRAME("__libc_start_main", "libc.so.6", 0),
	FRAME("<module>", "<frozen runpy>", 1),
	FRAME("run", "/usr/lib/python3.11/threading.py", 975),
};
static const struct frame torch = FRAME("linear", SITE "torch/nn/functional.py", 7);
static const struct frame native = FRAME("step(at::Tensor)", "/src/ext/step.cpp", 41);
static const struct frame package = FRAME("decoder", SITE "transformers/llama.py", 5);
static const struct frame own = FRAME("main", "/src/train.py", 2);

TEST(sites, one_rule_names_the_line_that_stands_for_a_stack)
{
	const struct frame *const order[] = { &torch, &native, &package, &own };
	struct frame frames[2 * G_N_ELEMENTS(plumbing) + 4];
	struct sites *s = sites_new();
	gsize count = G_N_ELEMENTS(plumbing);

	memcpy(frames, plumbing, sizeof plumbing);
	/* each is further out than those before, and better */
	for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
		frames[count++] = *order[i];
		NOTE("%s", order[i]->name);
		EXPECT_TRUE(g_str_has_prefix(label_of(s, add_frames(s, frames, count)),
					     order[i]->name));
		memcpy(frames + count, plumbing, sizeof plumbing);
		EXPECT_TRUE(g_str_has_prefix(
			label_of(s, add_frames(s, frames, count + G_N_ELEMENTS(plumbing))),
			order[i]->name));
	}
	/* nothing else: the innermost that has a file */
	EXPECT_TRUE(g_str_has_prefix(label_of(s, add_frames(s, plumbing, 2)), "c10::cuda::"));
	EXPECT_EQ(add_frames(s, &(struct frame)FRAME("??", "??", 0), 1), (guint32)SITE_NONE);
	sites_free(s);
}

static const struct {
	const char *name, *text;
	const char *stands; /* how the line begins; NULL: the second of the stack does */
} lines[] = {
	{ "a_cell_of_a_notebook", "<module> (<ipython-input-3-ab>:1)", "<module>" },
	{ "a_string", "<module> (<string>:8)", "<module>" },
	{ "the_scope_of_msmemscope", "/src/b.py(4): g", "/src/b.py" },
	{ "torch_of_msmemscope", SITE "torch/a.py(3): f", NULL },
	{ "a_checkout_of_torch", "f (/opt/pytorch/torch/nn/a.py:3)", NULL },
	{ "a_folder_named_torch", "f (/src/me/torch/train.py:3)", "f" },
	{ "an_unnamed_namespace", "(anonymous namespace)::f(at::Tensor) (/src/a.cpp:1)",
	  "(anonymous" },
	{ "another_unnamed_one", "(anonymous namespace)::at::f(int) (/src/a.cpp:1)", NULL },
	{ "an_object", "step (/opt/libmine.so+0x12)", "step" },
	{ "torch_s_object", "step (/opt/libtorch_cpu.so+0x12)", NULL },
	{ "no_file", "step", NULL },
};

TEST_EACH(sites, frames_are_told_by_their_text, lines, name)
{
	const __typeof__(lines[0]) *c = param;
	struct sites *s = sites_new();
	g_autofree char *text = g_strconcat(c->text, "\nouter (/src/outer.c:1)", NULL);
	const char *label = label_of(s, sites_add(s, text));

	EXPECT_TRUE(g_str_has_prefix(label, c->stands ? c->stands : "outer ("));
	sites_free(s);
}

TEST(sites, a_pattern_comes_before_the_rule)
{
	const struct frame frames[] = { plumbing[1], torch, own };
	GError *error = NULL;
	struct sites *s = sites_new();

	ASSERT_TRUE(sites_set_rule("nn/functional|/nowhere", &error));
	EXPECT_TRUE(g_str_has_prefix(label_of(s, add_frames(s, frames, 3)), "linear "));
	EXPECT_TRUE(g_str_has_prefix(label_of(s, add_frames(s, &own, 1)), "main "));
	EXPECT_FALSE(sites_set_rule("(", &error));
	g_clear_error(&error);
	EXPECT_TRUE(sites_set_rule(NULL, NULL));
	sites_free(s);
}

/* What a conversion writes of a stack is read as the same stack. */
TEST(sites, stacks_are_whole_as_far_as_a_line_has_room)
{
	g_autofree char *name = g_strnfill(300, ' ');
	struct frame deep[400];
	struct sites *s = sites_new();
	g_autoptr(GString) text = g_string_new(NULL);

	memset(name, 'n', 2);
	name[299] = 'n';
	for (int i = 0; i < 400; i++)
		deep[i] = (struct frame){ name, torch.file, 299, torch.file_length, i + 1 };
	deep[399] = own;
	guint32 site = add_frames(s, deep, 60);
	EXPECT_EQ(sites_depth(s, site), 60u);
	site = add_frames(s, deep, 400);
	guint depth = sites_depth(s, site);
	EXPECT_TRUE(depth > 60 && depth < 400);
	EXPECT_STREQ(label_of(s, site), "main (/src/train.py:2)");
	EXPECT_STREQ(sites_frame(s, site, depth - 1), "main (/src/train.py:2)");
	for (guint i = 0; i < depth; i++)
		g_string_append_printf(text, "%s\n", sites_frame(s, site, i));
	EXPECT_EQ(sites_add(s, text->str), site);
	sites_free(s);
}

TEST(sites, long_names_and_bytes_that_are_no_text_are_cut)
{
	g_autofree char *name = g_strnfill(100000, 'n');
	g_autofree char *path = g_strnfill(100000, 'p');
	path[99999] = '\xff';
	const struct frame f = { name, path, 100000, 100000, 1 };
	struct sites *s = sites_new();
	const char *text = label_of(s, add_frames(s, &f, 1));

	EXPECT_TRUE(strlen(text) <= SITE_FRAME_MAX);
	EXPECT_EQ(sites_add(s, text), sites_count(s) - 1);
	EXPECT_TRUE(g_utf8_validate(text, -1, NULL));
	sites_free(s);
}

TEST(sites, lines_of_text_are_frames)
{
	struct sites *s = sites_new();
	guint32 site = sites_add(s, "/x/site-packages/torch/a.py(3): f\n"
				    "  /src/b.py(4): g  \n\n#1\n/y/c.py(5): h");

	EXPECT_EQ(sites_depth(s, site), 3u);
	EXPECT_STREQ(label_of(s, site), "/src/b.py(4): g");
	EXPECT_EQ(sites_add(s, ""), (guint32)SITE_NONE);
	EXPECT_EQ(sites_add(s, "\n 12 \n"), (guint32)SITE_NONE);
	sites_free(s);
}

static void add_block(struct memory *l, guint64 key, guint64 bytes, guint32 site)
{
	const struct allocation b = {
		.key = key, .address = key, .size = bytes + 9, .asked = bytes, .site = site
	};

	memory_add(l, ALLOCATION_BLOCK, &b);
}

TEST(holders, are_sums_by_line_the_largest_first)
{
	const struct frame a[] = { FRAME("lib", "/x/site-packages/l.py", 1),
				   FRAME("f", "a.py", 1) };
	const struct frame b[] = { FRAME("other", "/x/site-packages/l.py", 2),
				   FRAME("f", "a.py", 1) };
	const struct frame c[] = { FRAME("g", "c.py", 1) };
	struct sites *s = sites_new();
	struct memory l;

	memory_init(&l, 0);
	memory_add_moment(&l, MOMENT_PEAK, 0);
	guint32 first = add_frames(s, a, 2), second = add_frames(s, b, 2),
		third = add_frames(s, c, 1);
	add_block(&l, 1, 10, first);
	add_block(&l, 2, 30, second);
	add_block(&l, 3, 35, third);
	add_block(&l, 4, 1, SITE_BEFORE);
	memory_mark(&l, &l.moments[0], 1);
	add_block(&l, 5, 1000, third);
	memory_remove(&l, ALLOCATION_BLOCK, 2);
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
	memory_clear(&l);
	sites_free(s);
}
