/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes profiles: folded stacks, speedscope's JSON, and pprof's profile.proto.
 */
#include "show.h"

#include "format/out-file.h"

struct profile {
	const struct sites *sites;
	GArray *sums; /* struct site_sum, by site */
	gboolean growth;
};
#define SUM(p, site) (&g_array_index((p)->sums, struct site_sum, site))

static void put_folded(const struct profile *p, GString *out)
{
	for (guint32 s = 0; s < p->sums->len; s++) {
		guint depth = SUM(p, s)->bytes ? MAX(sites_depth(p->sites, s), 1) : 0;
		for (guint i = depth; i > 0; i--) {
			guint32 frame = sites_frame_number(p->sites, s, i - 1);
			g_autofree char *text = g_strdup(sites_label_text(p->sites, frame));
			g_string_append_printf(out, "%s%c", g_strdelimit(text, ";", ','),
					       i > 1 ? ';' : ' ');
		}
		if (depth > 0)
			g_string_append_printf(out, "%" G_GINT64_FORMAT "\n", SUM(p, s)->bytes);
	}
}

/* Up to the inside of its last list, which is empty. */
static void put_open(GString *out, GVariant *object)
{
	out_json_variant(out, object);
	g_string_truncate(out, (gsize)(strrchr(out->str, '[') + 1 - out->str));
}

/* Of speedscope: a weight has no sign, so what shrank is a profile of its own. */
static void put_samples(const struct profile *p, GString *out, int sign, const char *name)
{
	GVariantBuilder list;
	gint64 total = 0;

	g_variant_builder_init(&list, G_VARIANT_TYPE("ax"));
	for (guint32 s = 0; s < p->sums->len; s++) {
		gint64 weight = MAX(sign * SUM(p, s)->bytes, 0);
		if (weight > 0)
			g_variant_builder_add(&list, "x", weight);
		total += weight;
	}
	out_json_next(out);
	put_open(out, g_variant_new_parsed("{'type':<'sampled'>,'name':<%s>,'unit':<'bytes'>,"
					   "'startValue':<0>,'endValue':<%x>,'weights':<%*>,"
					   "'samples':<@au []>}",
					   name, total, g_variant_builder_end(&list)));
	for (guint32 s = 0; s < p->sums->len; s++) {
		if (sign * SUM(p, s)->bytes <= 0)
			continue;
		g_variant_builder_init(&list, G_VARIANT_TYPE("au"));
		for (guint i = MAX(sites_depth(p->sites, s), 1); i > 0; i--)
			g_variant_builder_add(&list, "u", sites_frame_number(p->sites, s, i - 1));
		out_json_next(out);
		out_json_variant(out, g_variant_builder_end(&list));
	}
	g_string_append(out, "]}");
}

static void put_speedscope(const struct profile *p, GString *out)
{
	put_open(out, g_variant_new_parsed(
			      "{'$schema':<'https://www.speedscope.app/file-format-schema.json'>,"
			      "'exporter':<'npusim'>,'shared':<{'frames':@au []}>}"));
	for (guint i = 0; i < sites_labels(p->sites); i++) {
		out_json_next(out);
		out_json_variant(
			out, g_variant_new_parsed("{'name':%s}", sites_label_text(p->sites, i)));
	}
	g_string_append(out, "]},\"profiles\":[");
	put_samples(p, out, 1, p->growth ? "what grew" : "what was live");
	if (p->growth)
		put_samples(p, out, -1, "what shrank");
	g_string_append(out, "]}\n");
}

/* Of pprof: messages of profile.proto, by the numbers of their fields. */
static void put_varint(GString *out, guint64 value)
{
	for (; value >= 0x80; value >>= 7)
		g_string_append_c(out, (char)(value | 0x80));
	g_string_append_c(out, (char)value);
}

static void put_number(GString *out, guint field, guint64 value)
{
	put_varint(out, field << 3);
	put_varint(out, value);
}

static void put_text(GString *out, guint field, const char *text, gsize length)
{
	put_varint(out, field << 3 | 2);
	put_varint(out, length);
	g_string_append_len(out, text, (gssize)length);
}

/* Ends a message, which is empty then. */
static void put_message(GString *out, guint field, GString *message)
{
	put_text(out, field, message->str, message->len);
	g_string_truncate(message, 0);
}

static void put_pprof(const struct profile *p, GString *out)
{
	static const char *const types[] = { "", "inuse_objects", "count", "inuse_space", "bytes" };
	g_autoptr(GString) message = g_string_new(NULL), line = g_string_new(NULL);

	for (guint i = 0; i < G_N_ELEMENTS(types); i++)
		put_text(out, 6, types[i], strlen(types[i]));
	for (guint i = 1; i < G_N_ELEMENTS(types); i += 2) {
		put_number(message, 1, i);
		put_number(message, 2, i + 1);
		put_message(out, 1, message);
	}
	/* a frame, "name (file:line)", is a function and a location of its number + 1, and two
	 * strings */
	for (guint i = 0; i < sites_labels(p->sites); i++) {
		const char *text = sites_label_text(p->sites, i), *end = text + strlen(text);
		const char *file = g_strrstr(text, " (");
		const char *colon = file ? strrchr(file, ':') : NULL;
		guint string = G_N_ELEMENTS(types) + 2 * i;
		put_text(out, 6, text, (gsize)((file ? file : end) - text));
		put_text(out, 6, file ? file + 2 : end,
			 file ? strcspn(file + 2, colon ? ":" : ")") : 0);
		put_number(message, 1, i + 1);
		put_number(message, 2, string);
		put_number(message, 4, string + 1);
		put_message(out, 5, message);
		put_number(line, 1, i + 1);
		put_number(line, 2, colon ? g_ascii_strtoull(colon + 1, NULL, 10) : 0);
		put_number(message, 1, i + 1);
		put_message(message, 4, line);
		put_message(out, 4, message);
	}
	for (guint32 s = 0; s < p->sums->len; s++) {
		if (SUM(p, s)->bytes == 0 && SUM(p, s)->blocks == 0)
			continue;
		for (guint i = 0; i < MAX(sites_depth(p->sites, s), 1); i++)
			put_number(message, 1, sites_frame_number(p->sites, s, i) + 1);
		put_number(message, 2, (guint64)SUM(p, s)->blocks);
		put_number(message, 2, (guint64)SUM(p, s)->bytes);
		put_message(out, 2, message);
	}
}

static const struct {
	const char *ending;
	void (*put)(const struct profile *p, GString *out);
} formats[] = {
	{ ".folded", put_folded },
	{ ".speedscope.json", put_speedscope },
	{ ".pb.gz", put_pprof },
};

static guint format_of(const char *path)
{
	guint f = 0;

	while (f < G_N_ELEMENTS(formats) && !g_str_has_suffix(path, formats[f].ending))
		f++;
	return f;
}

gboolean profile_check(const char *path, GError **error)
{
	return format_of(path) < G_N_ELEMENTS(formats) ||
	       refuse_option(error,
			     "--profile %s: the ending says what it becomes: .folded (folded "
			     "stacks), .speedscope.json or .pb.gz (for pprof)",
			     path);
}

/* Adds the devices that have reached `other` too, as the rest has nothing to be compared with.
 * FALSE: there is none. */
static gboolean add(const struct profile *p, const struct replay *replay, int moment, int other,
		    int sign)
{
	gboolean reached = FALSE;

	for (guint d = 0; d < replay->devices->len; d++) {
		const struct replay_device *device = g_ptr_array_index(replay->devices, d);
		const struct memory *memory = &device->memory;
		if (!memory->moments[moment].reached || !memory->moments[other].reached)
			continue;
		reached = TRUE;
		holders_add(p->sums, memory, &memory->moments[moment], sign);
	}
	return reached;
}

gboolean profile_write(const char *path, const struct replay *replay, int at, int since,
		       GError **error)
{
	g_autoptr(GString) out = g_string_new(NULL);
	struct profile p = { .sites = replay->trace->sites, .growth = since >= 0 };

	if (p.sites == NULL)
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "the file has no call stacks, which a profile is made of");
	g_autoptr(GArray) sums = g_array_new(FALSE, TRUE, sizeof(struct site_sum));
	p.sums = g_array_set_size(sums, sites_count(p.sites));
	if (!add(&p, replay, at, p.growth ? since : at, 1) ||
	    (p.growth && !add(&p, replay, since, at, -1)))
		return refuse(error, TRACE_ERROR, TRACE_ERROR_UNKNOWN,
			      "the history has no such moment as %s: no profile is written",
			      p.growth ? "--at or --since" : "--at");
	formats[format_of(path)].put(&p, out);
	return out_file_write(path, out->str, out->len, error);
}
