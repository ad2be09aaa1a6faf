/* SPDX-License-Identifier: Apache-2.0
 *
 * Call sites: the places in a program that requested memory, as stacks of frames. Texts and stacks
 * are stored once, however often a file names them. It reads no file.
 */
#ifndef NPUSIM_TRACES_SITES_H
#define NPUSIM_TRACES_SITES_H

#include <glib.h>

#define SITE_NONE   0 /* the file has no call site for it */
#define SITE_BEFORE 1 /* it was there before the file's first event, and no one says from where */
#define SITE_FRAMES 8 /* that are kept of a stack, from the innermost on */
#define SITES_MAX   (1u << 18) /* further ones are SITE_NONE */
/* Frames that are looked at for the one that names the site. */
#define SITE_FRAMES_READ 1024
#define SITE_TEXT_MAX    200 /* bytes that are kept of a name or a path: the last ones of a path */

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
/* The site of a stack, innermost frame first; SITE_NONE for no frames. */
guint32 sites_add(struct sites *sites, const struct site_frame *frames, gsize count);
/* A site that a file has as text: a frame a line, innermost first, as many as are kept. The first
 * line of no installed package stands for it. SITE_NONE where no line has a letter. */
guint32 sites_add_lines(struct sites *sites, const char *text);
/* Sites so far, SITE_NONE and SITE_BEFORE among them. */
guint sites_count(const struct sites *sites);

/* The line that stands for the site, "function (file:line)": the innermost frame that is no part
 * of an installed package, of a framework's C++ or of Python itself; where there is none, the
 * innermost that has a file. Sites of one line have one label: labels are numbered. */
guint32 sites_label(const struct sites *sites, guint32 site);
const char *sites_label_text(const struct sites *sites, guint32 label);
guint sites_labels(const struct sites *sites);
/* Frames of the site as text, innermost first. */
guint sites_depth(const struct sites *sites, guint32 site);
const char *sites_frame(const struct sites *sites, guint32 site, guint index);

#endif
