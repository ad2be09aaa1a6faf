/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a file, plain or gzip, piece by piece or as a whole. It is independent of the
 * format.
 */
#ifndef NPUSIM_TRACES_INPUT_H
#define NPUSIM_TRACES_INPUT_H

#include "failure.h"

struct input;

/* Opens a file; one that begins as gzip does is inflated while it is read. What cannot be read
 * twice (a pipe) is taken into memory at once. NULL and error, which names the file, otherwise. */
struct input *input_open(const char *path, GError **error);
/* The same over a file descriptor, which is taken over, on failure too. `name` stands for the path
 * in messages. */
struct input *input_open_fd(int fd, const char *name, GError **error);
/* The same over bytes; `name` stands for a path in messages. `bytes` are borrowed. */
struct input *input_open_bytes(const guint8 *bytes, gsize count, const char *name, GError **error);
/* Keeps what can be read only once, standard input ("-") or a pipe, so that the path may be opened
 * as often as wanted; to be called for each path that was given, before it is opened. One that is
 * given twice is the same twice; what can be read twice, or is not there, is left alone. Not beside
 * threads that open inputs. FALSE and error. */
gboolean input_keep(const char *path, GError **error);
void input_close(struct input *input);

/* Reads up to `room` bytes: less only at the end. -1 and error if the file cannot be read, or the
 * gzip stream is damaged or ends early (with the offset in the file). */
gssize input_take(struct input *input, guint8 *into, gsize room, GError **error);
/* Back to the first byte. */
gboolean input_rewind(struct input *input, GError **error);
const char *input_name(const struct input *input);

/* All the bytes, from the first. NULL and error as above, and where it is more than 4 GiB. */
GBytes *input_whole(struct input *input, GError **error);

#endif
