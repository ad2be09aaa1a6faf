/* SPDX-License-Identifier: Apache-2.0
 *
 * Call sites: the places in a program that requested memory, as stacks of frames. Texts and stacks
 * are stored once, however often a file names them. It reads no file.
 */
#ifndef NPUSIM_TRACES_SITES_H
#define NPUSIM_TRACES_SITES_H

#include <glib.h>

#define SITE_NONE        0 /* the file has no call site for it */
#define SITE_BEFORE      1 /* it was there before the first event, and no one says from where */
#define SITES_MAX        (1u << 18) /* further ones are SITE_NONE, and those behind */
#define SITES_FRAMES_MAX (1u << 24) /* frames of all */
#define SITE_FRAMES_READ 1024       /* of a stack, from the innermost on */
#define SITE_TEXT_MAX    200 /* bytes that are kept of a name or a path: the last ones of a path */
#define SITE_FRAME_MAX   512 /* and of a frame, which has at most 1.5 KiB in a line of a trace */
#define SITE_BYTES_MAX   (60u << 10) /* of a stack in such a line */

struct site_frame {
	const char *name, *file; /* not terminated; may be NULL where the length is 0 */
	gsize name_length, file_length;
	gint64 line; /* 0: not known */
};
/* Texts, each with a number, from 0 in the order in which they come. */
struct texts {
	GPtrArray *list; /* char * */
	GHashTable *index;
};
void texts_init(struct texts *texts);
void texts_clear(struct texts *texts);
/* The number of a text, which is taken over. */
guint32 texts_add(struct texts *texts, char *text);

struct sites;
struct sites *sites_new(void);
void sites_free(struct sites *sites);
/* The site of a stack, innermost frame first; SITE_NONE for no frames. Those without a letter in
 * them are left out. */
guint32 sites_add(struct sites *sites, const struct site_frame *frames, gsize count);
/* The same of a text that has a frame a line: "name (file:line)", "file(line): name". */
guint32 sites_add_lines(struct sites *sites, const char *text);
/* Sites so far, SITE_NONE and SITE_BEFORE among them. */
guint sites_count(const struct sites *sites);

/* From now on the innermost frame in which the regular expression `pattern` is found stands for a
 * stack that has one, before the rule below; NULL: there is none. FALSE and error: it is no such
 * expression. */
gboolean sites_set_rule(const char *pattern, GError **error);
/* The line that stands for the site, "function (file:line)": the innermost frame that is the
 * program's own Python; else Python of a package other than torch; else C or C++ outside torch,
 * CPython, libc, libstdc++ and the allocator; else torch's Python; else the innermost that has a
 * file. Sites of one line have one label: labels are numbered. */
guint32 sites_label(const struct sites *sites, guint32 site);
const char *sites_label_text(const struct sites *sites, guint32 label);
guint sites_labels(const struct sites *sites);
/* Frames of the site as text, innermost first. */
guint sites_depth(const struct sites *sites, guint32 site);
const char *sites_frame(const struct sites *sites, guint32 site, guint index);
/* A frame's text as a label is numbered; of a site without frames its label. */
guint32 sites_frame_number(const struct sites *sites, guint32 site, guint index);

#endif
