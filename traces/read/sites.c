/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the call sites of a trace in two tables, the texts of frames and the stacks of their
 * numbers, each stored once.
 */
#include "sites.h"

#include <string.h>

/* What a frame is: of a stack's frames of the least kind the innermost stands for all. */
enum frame_kind {
	FRAME_ASKED,   /* of the pattern that was asked for */
	FRAME_PROGRAM, /* the program's own Python */
	FRAME_PYTHON,  /* Python of an installed package that is not torch */
	FRAME_NATIVE,  /* C and C++ outside torch, CPython, libc, libstdc++ and the allocator */
	FRAME_TORCH,   /* Python of torch */
	FRAME_FILED,   /* any other with a file */
	FRAME_BARE
};

struct stack {
	guint32 label; /* number of a text */
	guint32 depth;
	guint32 site;
	guint32 frames[]; /* numbers of texts */
};
struct sites {
	struct texts texts;
	GByteArray *kinds; /* enum frame_kind of each text */
	GPtrArray *stacks; /* struct stack *, by site */
	GHashTable *stack_index;
	GArray *adding; /* guint32: the frames of the stack that is being added */
	gsize frames;   /* of all stacks */
};

static GRegex *asked_rule;

gboolean sites_set_rule(const char *pattern, GError **error)
{
	g_clear_pointer(&asked_rule, g_regex_unref);
	asked_rule = pattern ? g_regex_new(pattern, G_REGEX_OPTIMIZE, 0, error) : NULL;
	return pattern == NULL || asked_rule != NULL;
}

static guint stack_hash(gconstpointer key)
{
	const struct stack *s = key;
	guint hash = s->label;

	for (guint i = 0; i < s->depth; i++)
		hash = hash * 31 + s->frames[i];
	return hash;
}

static gboolean stack_equal(gconstpointer a, gconstpointer b)
{
	const struct stack *x = a, *y = b;

	return x->label == y->label && x->depth == y->depth &&
	       memcmp(x->frames, y->frames, x->depth * sizeof x->frames[0]) == 0;
}

guint32 texts_add(struct texts *t, char *text)
{
	gpointer number;

	if (g_hash_table_lookup_extended(t->index, text, NULL, &number)) {
		g_free(text);
		return GPOINTER_TO_UINT(number);
	}
	g_ptr_array_add(t->list, text);
	g_hash_table_insert(t->index, text, GUINT_TO_POINTER(t->list->len - 1));
	return t->list->len - 1;
}

void texts_init(struct texts *t)
{
	t->list = g_ptr_array_new_with_free_func(g_free);
	t->index = g_hash_table_new(g_str_hash, g_str_equal);
}

void texts_clear(struct texts *t)
{
	g_hash_table_unref(t->index);
	g_ptr_array_unref(t->list);
}

/* A stack of `count` frames, which are numbers of texts. */
static guint32 keep_stack(struct sites *s, guint32 label, const guint32 *frames, guint count)
{
	g_autofree struct stack *stack = g_malloc0(sizeof *stack + count * sizeof *frames);

	stack->label = label;
	stack->depth = count;
	if (count > 0)
		memcpy(stack->frames, frames, count * sizeof *frames);
	const struct stack *known = g_hash_table_lookup(s->stack_index, stack);
	if (known)
		return known->site;
	stack->site = s->stacks->len;
	s->frames += count;
	g_hash_table_add(s->stack_index, stack);
	g_ptr_array_add(s->stacks, stack);
	return ((struct stack *)g_steal_pointer(&stack))->site;
}

struct sites *sites_new(void)
{
	static const char *const words[] = { [SITE_NONE] = "(no call site in the file)",
					     [SITE_BEFORE] = "(before the file begins)" };
	static const guint8 bare = FRAME_BARE;
	struct sites *s = g_new0(struct sites, 1);

	texts_init(&s->texts);
	s->kinds = g_byte_array_new();
	s->stacks = g_ptr_array_new_with_free_func(g_free);
	s->stack_index = g_hash_table_new(stack_hash, stack_equal);
	s->adding = g_array_new(FALSE, FALSE, sizeof(guint32));
	for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
		keep_stack(s, texts_add(&s->texts, g_strdup(words[i])), NULL, 0);
		g_byte_array_append(s->kinds, &bare, 1);
	}
	return s;
}

void sites_free(struct sites *s)
{
	if (s == NULL)
		return;
	g_hash_table_unref(s->stack_index);
	g_ptr_array_unref(s->stacks);
	g_array_unref(s->adding);
	g_byte_array_unref(s->kinds);
	texts_clear(&s->texts);
	g_free(s);
}

/* ---- what a frame is ---- */

/* Of texts "name (file:line)", or "file(line): name", as msMemScope writes Python's; the first that
 * matches. Names of C++ have results in front and arguments behind, whose types say nothing. */
static const struct {
	enum frame_kind kind;
	const char *pattern;
} rules[] = {
	{ FRAME_BARE, "^[^(]*$| \\((\\?[^()]*|<(?!string|stdin|ipython)[^()]*)?\\)$" },
	{ FRAME_TORCH, "(-packages/|/pytorch/|^)(torch|torch_npu|functorch)/.*\\.py\\b" },
	{ FRAME_PYTHON, "-packages/.*\\.py\\b" },
	{ FRAME_FILED, "/lib(64)?/python3.*\\.py\\b" },
	{ FRAME_PROGRAM, "\\.py\\b| \\(<[^()]*\\)$" },
	{ FRAME_FILED, "^(\\(anonymous namespace\\)::)?([^(]*[ *&])?"
		       "(c10|c10_npu|torch|torch_npu|at|at_npu|std|caffe2|pybind11|__gnu_cxx)::" },
	{ FRAME_FILED, "^(_?Py|THP|__libc|(_start|start_thread|clone3?) )" },
	{ FRAME_FILED,
	  " \\(.*(CachingAllocator|torch(_npu)?/csrc/|aten/src/|/c10/|libtorch|libc10)" },
	{ FRAME_FILED, " \\(.*(bin/python3|libpython3|(Objects|Python|Modules)/.*\\.[ch]\\b)" },
	{ FRAME_FILED, " \\(.*(libstdc\\+\\+|libc[.-]|libpthread|libgcc_s|ld-linux|glibc|"
		       "nptl/|sysdeps/|csu/)" },
	{ FRAME_NATIVE, "" },
};

static enum frame_kind kind_of(const char *text)
{
	static GRegex *compiled[G_N_ELEMENTS(rules)];
	guint r = 0;

	if (asked_rule && g_regex_match(asked_rule, text, 0, NULL))
		return FRAME_ASKED;
	for (;; r++) {
		if (compiled[r] == NULL)
			compiled[r] = g_regex_new(rules[r].pattern, G_REGEX_OPTIMIZE, 0, NULL);
		if (g_regex_match(compiled[r], text, 0, NULL))
			return rules[r].kind;
	}
}

/* ---- frames ---- */

/* Bytes of a text in a line of a trace. */
static gsize encoded_length(const char *text)
{
	gsize bytes = strlen("%0A");

	for (; *text; text++)
		bytes += *text == ' ' || *text == '%' || g_ascii_iscntrl(*text) ? 3 : 1;
	return bytes;
}

/* Takes the text of the stack's next frame. What has no letter tells nothing. */
static void take_frame(struct sites *s, char *taken)
{
	g_autofree char *raw = taken;
	char *text = g_strstrip(g_strdelimit(g_utf8_make_valid(raw, -1), "\n", ' '));
	const char *letter = text;

	if (strlen(text) > SITE_FRAME_MAX)
		*g_utf8_find_prev_char(text, text + SITE_FRAME_MAX + 1) = '\0';
	g_strchomp(text);
	while (*letter && !g_ascii_isalpha(*letter))
		letter++;
	if (*letter == '\0') {
		g_free(text);
		return;
	}
	guint32 number = texts_add(&s->texts, text);
	if (number == s->kinds->len) {
		guint8 kind = (guint8)kind_of(sites_label_text(s, number));
		g_byte_array_append(s->kinds, &kind, 1);
	}
	g_array_append_val(s->adding, number);
}

/* All frames as far as a trace's line has room for them, and behind those the one that stands for
 * the stack, if it is none of them: what a conversion writes is read as the same stack. */
static guint32 end_stack(struct sites *s)
{
	const guint32 *frames = (const guint32 *)(void *)s->adding->data;
	guint best = 0, count = 0;
	gsize bytes = 0;

	if (s->adding->len == 0 || s->stacks->len >= SITES_MAX || s->frames >= SITES_FRAMES_MAX)
		return SITE_NONE;
	for (guint i = 1; i < s->adding->len; i++)
		if (s->kinds->data[frames[i]] < s->kinds->data[frames[best]])
			best = i;
	while (count < s->adding->len &&
	       (bytes += encoded_length(sites_label_text(s, frames[count]))) <= SITE_BYTES_MAX)
		count++;
	guint32 label = frames[best];
	if (best >= count)
		g_array_index(s->adding, guint32, count++) = label;
	return keep_stack(s, label, (const guint32 *)(void *)s->adding->data, count);
}

static char *frame_text(const struct site_frame *f)
{
	gsize cut = f->file_length > SITE_TEXT_MAX ? f->file_length - SITE_TEXT_MAX : 0;
	int name_length = (int)MIN(f->name_length, SITE_TEXT_MAX);
	int file_length = (int)(f->file_length - cut);
	const char *name = f->name ? f->name : "", *file = f->file ? f->file + cut : "";

	return f->line > 0 ? g_strdup_printf("%.*s (%.*s:%" G_GINT64_FORMAT ")", name_length, name,
					     file_length, file, f->line)
			   : g_strdup_printf("%.*s (%.*s)", name_length, name, file_length, file);
}

guint32 sites_add(struct sites *s, const struct site_frame *frames, gsize count)
{
	g_array_set_size(s->adding, 0);
	for (gsize i = 0; i < MIN(count, SITE_FRAMES_READ); i++)
		take_frame(s, frame_text(&frames[i]));
	return end_stack(s);
}

guint32 sites_add_lines(struct sites *s, const char *text)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", SITE_FRAMES_READ + 1);

	g_array_set_size(s->adding, 0);
	for (guint i = 0; lines[i] && i < SITE_FRAMES_READ; i++)
		take_frame(s, g_steal_pointer(&lines[i]));
	return end_stack(s);
}

/* ---- answers ---- */

static const struct stack *stack_of(const struct sites *s, guint32 site)
{
	return g_ptr_array_index(s->stacks, site < s->stacks->len ? site : SITE_NONE);
}

guint sites_count(const struct sites *s)
{
	return s->stacks->len;
}

guint32 sites_label(const struct sites *s, guint32 site)
{
	return stack_of(s, site)->label;
}

const char *sites_label_text(const struct sites *s, guint32 label)
{
	return g_ptr_array_index(s->texts.list, label);
}

guint sites_labels(const struct sites *s)
{
	return s->texts.list->len;
}

guint sites_depth(const struct sites *s, guint32 site)
{
	return stack_of(s, site)->depth;
}

guint32 sites_frame_number(const struct sites *s, guint32 site, guint index)
{
	const struct stack *stack = stack_of(s, site);

	return stack->depth ? stack->frames[index] : stack->label;
}

const char *sites_frame(const struct sites *s, guint32 site, guint index)
{
	return sites_label_text(s, sites_frame_number(s, site, index));
}
