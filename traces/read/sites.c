/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the call sites of a trace in two tables, the texts of frames and the stacks of their
 * numbers, each stored once.
 */
#include "sites.h"

#include <string.h>

struct stack {
	guint32 label; /* number of a text */
	guint32 depth;
	guint32 frames[SITE_FRAMES]; /* numbers of texts */
	guint32 site;
};
struct sites {
	struct texts texts;
	GPtrArray *stacks; /* struct stack *, by site */
	GHashTable *stack_index;
};

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

static guint32 add_stack(struct sites *s, const struct stack *stack)
{
	const struct stack *known = g_hash_table_lookup(s->stack_index, stack);

	if (known)
		return known->site;
	struct stack *kept = g_memdup2(stack, sizeof *stack);
	kept->site = s->stacks->len;
	g_ptr_array_add(s->stacks, kept);
	g_hash_table_add(s->stack_index, kept);
	return kept->site;
}

struct sites *sites_new(void)
{
	struct sites *s = g_new0(struct sites, 1);
	struct stack none = { 0 }, before = { 0 };

	texts_init(&s->texts);
	s->stacks = g_ptr_array_new_with_free_func(g_free);
	s->stack_index = g_hash_table_new(stack_hash, stack_equal);
	none.label = texts_add(&s->texts, g_strdup("(no call site in the file)"));
	before.label = texts_add(&s->texts, g_strdup("(before the file begins)"));
	add_stack(s, &none);
	add_stack(s, &before);
	return s;
}

void sites_free(struct sites *s)
{
	if (s == NULL)
		return;
	g_hash_table_unref(s->stack_index);
	g_ptr_array_unref(s->stacks);
	texts_clear(&s->texts);
	g_free(s);
}

/* ---- frames ---- */

static gboolean has(const char *text, gsize length, const char *part)
{
	return text && g_strstr_len(text, (gssize)length, part) != NULL;
}

static gboolean has_file(const struct site_frame *f)
{
	return f->file_length > 0 && f->file[0] != '?' && f->file[0] != '<';
}

static gboolean is_of_program(const struct site_frame *f)
{
	static const char *const packages[] = { "site-packages/", "dist-packages/" };
	static const char *const spaces[] = { "c10::",     "torch::",    "at::", "at_npu::",
					      "c10_npu::", "pybind11::", "std::" };

	if (!has_file(f))
		return FALSE;
	for (guint i = 0; i < G_N_ELEMENTS(packages); i++) {
		if (has(f->file, f->file_length, packages[i]))
			return FALSE;
	}
	for (guint i = 0; i < G_N_ELEMENTS(spaces); i++) {
		if (has(f->name, f->name_length, spaces[i]))
			return FALSE;
	}
	return TRUE;
}

static char *frame_text(const struct site_frame *f)
{
	gsize cut = f->file_length > SITE_TEXT_MAX ? f->file_length - SITE_TEXT_MAX : 0;
	int name_length = (int)MIN(f->name_length, SITE_TEXT_MAX);
	int file_length = (int)(f->file_length - cut);
	const char *name = f->name ? f->name : "", *file = f->file ? f->file + cut : "";
	g_autofree char *text =
		f->line > 0 ? g_strdup_printf("%.*s (%.*s:%" G_GINT64_FORMAT ")", name_length, name,
					      file_length, file, f->line)
			    : g_strdup_printf("%.*s (%.*s)", name_length, name, file_length, file);

	return g_utf8_make_valid(text, -1);
}

static gsize label_frame(const struct site_frame *frames, gsize count)
{
	for (gsize i = 0; i < count; i++) {
		if (is_of_program(&frames[i]))
			return i;
	}
	for (gsize i = 0; i < count; i++) {
		if (has_file(&frames[i]))
			return i;
	}
	return 0;
}

guint32 sites_add(struct sites *s, const struct site_frame *frames, gsize count)
{
	struct stack stack = { .depth = (guint32)MIN(count, SITE_FRAMES) };

	if (count == 0 || s->stacks->len >= SITES_MAX)
		return SITE_NONE;
	for (guint i = 0; i < stack.depth; i++)
		stack.frames[i] = texts_add(&s->texts, frame_text(&frames[i]));
	stack.label = texts_add(&s->texts, frame_text(&frames[label_frame(frames, count)]));
	return add_stack(s, &stack);
}

static gboolean is_frame(const char *line)
{
	while (*line && !g_ascii_isalpha(*line))
		line++;
	return *line != '\0';
}

guint32 sites_add_lines(struct sites *s, const char *text)
{
	struct stack stack = { 0 };
	gboolean found = FALSE;

	if (s->stacks->len >= SITES_MAX || !is_frame(text))
		return SITE_NONE;
	g_auto(GStrv) lines = g_strsplit(text, "\n", SITE_FRAMES_READ);
	for (guint i = 0; lines[i]; i++) {
		gboolean stands = !found && !strstr(lines[i], "site-packages/") &&
				  !strstr(lines[i], "dist-packages/");
		if (!is_frame(lines[i]) || (stack.depth == SITE_FRAMES && !stands))
			continue;
		g_autofree char *part = g_strndup(g_strstrip(lines[i]), 2 * SITE_TEXT_MAX);
		guint32 number = texts_add(&s->texts, g_utf8_make_valid(part, -1));
		if (stands || stack.depth == 0)
			stack.label = number;
		found |= stands;
		if (stack.depth < SITE_FRAMES)
			stack.frames[stack.depth++] = number;
	}
	return add_stack(s, &stack);
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

const char *sites_frame(const struct sites *s, guint32 site, guint index)
{
	return g_ptr_array_index(s->texts.list, stack_of(s, site)->frames[index]);
}
