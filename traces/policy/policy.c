/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the names of policies and their options into numbers that are in range.
 */
#include "policy.h"

#include <stdio.h>

#define DIVISIONS_MOST (1u << 20)

const char *const policy_names[] = {
	[POLICY_AS_RECORDED] = "as-recorded",
	[POLICY_NATIVE] = "native",
	[POLICY_CACHING] = "caching",
	[POLICY_EXPANDABLE] = "expandable",
	NULL,
};

void policy_options_init(struct policy_options *options)
{
	*options = (struct policy_options){
		.max_split = G_MAXUINT64,
		.non_split_rounding = 20 * MIB,
		.large_segment = 20 * MIB,
		.align = POLICY_ALIGN_DEFAULT,
		.memory_fraction = 1.0,
		.empty_at = g_array_new(FALSE, FALSE, sizeof(guint64)),
		.given = g_ptr_array_new_with_free_func(g_free),
	};
}

void policy_options_clear(struct policy_options *options)
{
	g_array_unref(options->empty_at);
	g_ptr_array_unref(options->given);
}

struct key;
#define SETTER(name)                                                                     \
	gboolean name(struct policy_options *o, const struct key *key, const char *text, \
		      GError **error)
typedef SETTER(setter);
struct key {
	const char *name;
	setter *set;
	gsize offset;              /* in the options, for a setter of several keys */
	guint64 least, most, unit; /* set_whole */
	gboolean even;             /* the same: of MiB, whole pages */
	gboolean one_too;          /* set_share: 1 is right as well */
	const char *words[2];      /* set_choice: 0 or 1 */
	const char *known;
};

static SETTER(set_whole)
{
	guint64 value;

	if (!g_ascii_string_to_unsigned(text, 10, key->least, key->most, &value, NULL))
		return refuse_option(error,
				     "%s=%s: a whole number from " U64 " to " U64 " is wanted",
				     key->name, text, key->least, key->most);
	if (key->even && value % 2 != 0)
		return refuse_option(error, "%s=%s: a multiple of the page, 2 MiB, is wanted",
				     key->name, text);
	G_STRUCT_MEMBER(guint64, o, key->offset) = value * key->unit;
	return TRUE;
}

static SETTER(set_share)
{
	char *end;
	double value = g_ascii_strtod(text, &end);

	if (end == text || *end || !(value > 0) || value > 1 || (value == 1 && !key->one_too))
		return refuse_option(error, "%s=%s: a number above 0 and %s 1 is wanted", key->name,
				     text, key->one_too ? "up to" : "below");
	G_STRUCT_MEMBER(double, o, key->offset) = value;
	return TRUE;
}

static SETTER(set_choice)
{
	for (int i = 0; i < 2; i++) {
		if (g_ascii_strcasecmp(text, key->words[i]) != 0)
			continue;
		G_STRUCT_MEMBER(int, o, key->offset) = i;
		return TRUE;
	}
	return refuse_option(error, "%s=%s: known are %s", key->name, text, key->known);
}

static SETTER(set_expandable)
{
	if (!set_choice(o, key, text, error))
		return FALSE;
	if (o->kind != POLICY_CACHING && o->expandable != (o->kind == POLICY_EXPANDABLE))
		return refuse_option(error, "%s=%s does not go with --policy %s", key->name, text,
				     policy_names[o->kind]);
	if (o->expandable)
		o->kind = POLICY_EXPANDABLE;
	return TRUE;
}

static gboolean is_power(guint64 n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

/* "256:1": for sizes from 256 MiB on; ">": beyond the last. The first is for smaller ones too. */
static gboolean set_division_pair(struct policy_options *o, const char *pair, int *last)
{
	guint size = 1u << (POLICY_DIVISIONS - 1), n;
	char more;
	gboolean rest = sscanf(pair, " > : %7u %c", &n, &more) == 1;

	if (strchr(pair, '-') || (!rest && sscanf(pair, "%7u : %7u %c", &size, &n, &more) != 2) ||
	    size >> POLICY_DIVISIONS || !is_power(size) || n > DIVISIONS_MOST ||
	    (n != 0 && !is_power(n)))
		return FALSE;
	int at = (int)g_bit_storage(size) - 1;
	if (at <= *last)
		return FALSE;
	for (int i = *last < 0 || rest ? *last + 1 : at; i <= at; i++)
		o->divisions[i] = n;
	*last = at;
	return TRUE;
}

static SETTER(set_divisions)
{
	guint64 n;
	int last = -1;
	gsize length = strlen(text);

	if (g_ascii_string_to_unsigned(text, 10, 0, DIVISIONS_MOST, &n, NULL) &&
	    (n == 0 || is_power(n))) {
		for (int i = 0; i < POLICY_DIVISIONS; i++)
			o->divisions[i] = n;
		return TRUE;
	}
	gboolean ok = length > 2 && text[0] == '[' && text[length - 1] == ']';
	g_autofree char *inner = ok ? g_strndup(text + 1, length - 2) : g_strdup("");
	g_auto(GStrv) pairs = g_strsplit(inner, ",", -1);
	for (guint i = 0; ok && pairs[i]; i++)
		ok = set_division_pair(o, pairs[i], &last);
	return ok || refuse_option(error,
				   "%s=%s: a power of two is wanted, or a list such as "
				   "[256:1,512:2,1024:4,>:8] of rising powers of two",
				   key->name, text);
}

static SETTER(set_empty_at)
{
	g_auto(GStrv) words = g_strsplit(text, ",", -1);
	guint64 before = 0, at;

	g_array_set_size(o->empty_at, 0);
	for (guint i = 0; words[i]; i++) {
		if (!g_ascii_string_to_unsigned(words[i], 10, before, G_MAXINT64, &at, NULL))
			return refuse_option(
				error,
				"%s=%s: rising whole numbers with commas between them are wanted",
				key->name, text);
		g_array_append_val(o->empty_at, at);
		before = at;
	}
	o->empty = POLICY_EMPTY_AT;
	return TRUE;
}

#define OF(member) .offset = G_STRUCT_OFFSET(struct policy_options, member)
#define WHOLE(member, from, to, by) \
	.set = set_whole, OF(member), .least = from, .most = to, .unit = by
#define CHOICE(setter, member, first, second, text) \
	.set = setter, OF(member), .words = { first, second }, .known = text
static const struct key keys[] = {
	{ "base_addr_aligned_kb", WHOLE(align, 0, 16, KIB) },
	{ "dialect",
	  CHOICE(set_choice, cuda, "npu", "cuda", "npu (torch_npu) and cuda (PyTorch's own)") },
	{ "empty_cache", CHOICE(set_choice, empty, "recorded", "never", "recorded and never") },
	{ "empty_cache_at", .set = set_empty_at },
	{ "expandable_segments",
	  CHOICE(set_expandable, expandable, "False", "True", "True and False") },
	{ "garbage_collection_threshold", .set = set_share, OF(gc_threshold) },
	{ "large_segment_size_mb", WHOLE(large_segment, 20, 512, MIB), .even = TRUE },
	{ "max_non_split_rounding_mb", WHOLE(non_split_rounding, 20, 1u << 20, MIB) },
	{ "max_split_size_mb", WHOLE(max_split, 21, 1u << 20, MIB) },
	{ "page_size", CHOICE(set_choice, page_1g, "2m", "1g", "2m and 1g") },
	{ "per_process_memory_fraction", .set = set_share, OF(memory_fraction), .one_too = TRUE },
	{ "roundup_power2_divisions", .set = set_divisions },
};

gboolean policy_options_set(struct policy_options *options, const char *setting, GError **error)
{
	const char *equals = strchr(setting, '=');

	if (equals == NULL)
		return refuse_option(error, "--set %s: KEY=VALUE is wanted", setting);
	g_autofree char *name = g_strndup(setting, (gsize)(equals - setting));
	g_autoptr(GString) known = g_string_new(NULL);
	for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
		g_string_append_printf(known, "%s%s", i ? ", " : "", keys[i].name);
		if (strcmp(name, keys[i].name) != 0)
			continue;
		if (!keys[i].set(options, &keys[i], equals + 1, error)) {
			g_prefix_error(error, "--set ");
			return FALSE;
		}
		g_ptr_array_add(options->given, g_strdup(setting));
		return TRUE;
	}
	return refuse_option(error, "--set %s: there is no key %s; known are %s", setting, name,
			     known->str);
}

gboolean policy_options_check(const struct policy_options *o, GError **error)
{
	gboolean caches = o->kind == POLICY_CACHING || o->kind == POLICY_EXPANDABLE;

	if (o->given->len > 0 && !caches)
		return refuse_option(
			error, "--set %s: policy %s has no options; caching and expandable have",
			(const char *)g_ptr_array_index(o->given, 0), policy_names[o->kind]);
	if (o->page_1g && o->kind == POLICY_AS_RECORDED)
		return refuse_option(
			error, "--page 1g needs a --policy: as-recorded has the file's pages");
	if (o->kind == POLICY_EXPANDABLE && !o->cuda &&
	    (o->max_split != G_MAXUINT64 || o->gc_threshold > 0))
		return refuse_option(error, "max_split_size_mb and garbage_collection_threshold do "
					    "not go with expandable segments in torch_npu");
	return TRUE;
}
