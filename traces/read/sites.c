/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the call sites of a trace in two tables, the texts of frames and the stacks of their
 * numbers, each stored once.
 */
#include "trace.h"

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

struct sites {
	struct texts texts;
	GByteArray *kinds; /* enum frame_kind of each text */
	GPtrArray *stacks; /* GBytes * by site: guint32, texts of its label and of its frames */
	GTree *index;      /* of the stacks */
	GArray *adding;    /* guint32: the stack that is being added */
	gsize frames;      /* of all stacks */
};

static GRegex *asked_rule;

gboolean sites_set_rule(const char *pattern, GError **error)
{
	g_clear_pointer(&asked_rule, g_regex_unref);
	asked_rule = pattern ? g_regex_new(pattern, G_REGEX_OPTIMIZE, 0, error) : NULL;
	return pattern == NULL || asked_rule != NULL;
}

guint32 texts_add(struct texts *t, char *text)
{
	gpointer number;

	if (g_tree_lookup_extended(t->index, text, NULL, &number)) {
		g_free(text);
		return GPOINTER_TO_UINT(number);
	}
	g_ptr_array_add(t->list, text);
	g_tree_insert(t->index, text, GUINT_TO_POINTER(t->list->len - 1));
	return t->list->len - 1;
}

void texts_init(struct texts *t)
{
	t->list = g_ptr_array_new_with_free_func(g_free);
	t->index = g_tree_new((GCompareFunc)strcmp);
}

void texts_clear(struct texts *t)
{
	g_tree_unref(t->index);
	g_ptr_array_unref(t->list);
}

/* The site of the first `count` numbers of `adding`. */
static guint32 keep_stack(struct sites *s, guint count)
{
	g_autoptr(GBytes) stack = g_bytes_new(s->adding->data, count * sizeof(guint32));
	gpointer known;

	if (g_tree_lookup_extended(s->index, stack, NULL, &known))
		return GPOINTER_TO_UINT(known);
	s->frames += count - 1;
	g_tree_insert(s->index, stack, GUINT_TO_POINTER(s->stacks->len));
	g_ptr_array_add(s->stacks, g_steal_pointer(&stack));
	return s->stacks->len - 1;
}

struct sites *sites_new(void)
{
	static const char *const words[] = { [SITE_NONE] = "(no call site in the file)",
					     [SITE_BEFORE] = "(before the file begins)" };
	static const guint8 bare = FRAME_BARE;
	struct sites *s = g_new0(struct sites, 1);

	texts_init(&s->texts);
	s->kinds = g_byte_array_new();
	s->stacks = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
	s->index = g_tree_new(g_bytes_compare);
	s->adding = g_array_new(FALSE, TRUE, sizeof(guint32));
	g_array_set_size(s->adding, 1);
	for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
		g_array_index(s->adding, guint32, 0) = texts_add(&s->texts, g_strdup(words[i]));
		keep_stack(s, 1);
		g_byte_array_append(s->kinds, &bare, 1);
	}
	return s;
}

void sites_free(struct sites *s)
{
	if (s == NULL)
		return;
	g_tree_unref(s->index);
	g_ptr_array_unref(s->stacks);
	g_array_unref(s->adding);
	g_byte_array_unref(s->kinds);
	texts_clear(&s->texts);
	g_free(s);
}

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

/* Bytes of a text in a line of a trace. */
static gsize encoded_length(const char *text)
{
	gsize bytes = strlen("%0A");

	for (; *text; text++)
		bytes += *text == ' ' || *text == '%' || g_ascii_iscntrl(*text) ? 3 : 1;
	return bytes;
}

/* Takes the text of the stack's next frame. What has no letter tells nothing. */
static void take_frame(struct sites *s, const char *raw, gsize length)
{
	char *text = g_strstrip(g_utf8_make_valid(raw, (gssize)length));
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

void site_frame_add(GString *text, const char *name, gsize name_length, const char *file,
		    gsize file_length, gint64 number)
{
	gsize cut = file_length > SITE_TEXT_MAX ? file_length - SITE_TEXT_MAX : 0, at = text->len;

	if (name)
		g_string_append_len(text, name,
				    (gssize)strnlen(name, MIN(name_length, SITE_TEXT_MAX)));
	g_string_append(text, " (");
	if (file)
		g_string_append_len(text, file + cut,
				    (gssize)strnlen(file + cut, file_length - cut));
	if (number > 0)
		g_string_append_printf(text, ":%" G_GINT64_FORMAT, number);
	g_strdelimit(text->str + at, "\n", ' ');
	g_string_append(text, ")\n");
}

guint32 sites_add(struct sites *s, const char *text)
{
	guint best = 1, count = 1;
	gsize bytes = 0;

	g_array_set_size(s->adding, 1);
	for (guint i = 0; i < SITE_FRAMES_READ && *text; i++) {
		gsize length = strcspn(text, "\n");
		take_frame(s, text, length);
		text += length + (text[length] == '\n');
	}
	guint32 *numbers = &g_array_index(s->adding, guint32, 0);
	if (s->adding->len == 1 || s->stacks->len >= SITES_MAX || s->frames >= SITES_FRAMES_MAX)
		return SITE_NONE;
	for (guint i = 2; i < s->adding->len; i++)
		if (s->kinds->data[numbers[i]] < s->kinds->data[numbers[best]])
			best = i;
	/* all frames that a trace's line has room for, and behind those the one that stands for
	 * the stack, if it is none of them: what a conversion writes is read as the same stack */
	while (count < s->adding->len &&
	       (bytes += encoded_length(sites_label_text(s, numbers[count]))) <= SITE_BYTES_MAX)
		count++;
	numbers[0] = numbers[best];
	if (best >= count)
		numbers[count++] = numbers[0];
	return keep_stack(s, count);
}

static const guint32 *stack_of(const struct sites *s, guint32 site, guint *out_frames)
{
	gsize bytes;
	const guint32 *numbers = g_bytes_get_data(
		g_ptr_array_index(s->stacks, site < s->stacks->len ? site : SITE_NONE), &bytes);

	*out_frames = (guint)(bytes / sizeof *numbers) - 1;
	return numbers;
}

guint sites_count(const struct sites *s)
{
	return s->stacks->len;
}

guint32 sites_label(const struct sites *s, guint32 site)
{
	guint frames;

	return stack_of(s, site, &frames)[0];
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
	guint frames;

	stack_of(s, site, &frames);
	return frames;
}

guint32 sites_frame_number(const struct sites *s, guint32 site, guint index)
{
	guint frames;
	const guint32 *numbers = stack_of(s, site, &frames);

	return frames ? numbers[index + 1] : numbers[0];
}

const char *sites_frame(const struct sites *s, guint32 site, guint index)
{
	return sites_label_text(s, sites_frame_number(s, site, index));
}
