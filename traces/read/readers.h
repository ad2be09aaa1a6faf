/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of files, one per format, and what they share. Each recognises its format by the
 * first bytes, takes over the input, even on failure, and names the line of any damage. What a
 * reader leaves out is counted by its name among the events of its device.
 */
#ifndef NPUSIM_TRACES_READERS_H
#define NPUSIM_TRACES_READERS_H

#include "format/input.h"
#include "trace.h"

/* Memory snapshots of PyTorch and torch_npu. */
gboolean snapshot_recognise(const guint8 *bytes, gsize count);
struct trace *snapshot_read(struct input *input, GError **error);
/* traces/FORMAT.md */
gboolean npusim_recognise(const guint8 *bytes, gsize count);
struct trace *npusim_read(struct input *input, GError **error);
/* msMemScope (msLeaks), CSV: rows in any order, both dialects of attributes. */
gboolean memscope_recognise(const guint8 *bytes, gsize count);
struct trace *memscope_read(struct input *input, GError **error);
/* The same as a SQLite database. */
gboolean memscope_db_recognise(const guint8 *bytes, gsize count);
struct trace *memscope_db_read(struct input *input, GError **error);
/* MindSpore's memory_block.csv, whatever columns its version has. */
gboolean mindspore_recognise(const guint8 *bytes, gsize count);
struct trace *mindspore_read(struct input *input, GError **error);
/* STAlloc's mem_log_dev*.txt. */
gboolean stalloc_recognise(const guint8 *bytes, gsize count);
struct trace *stalloc_read(struct input *input, GError **error);
/* [memory] events of PyTorch's profiler, in JSON for Chrome. */
gboolean timeline_recognise(const guint8 *bytes, gsize count);
struct trace *timeline_read(struct input *input, GError **error);
/* operator_memory.csv and memory_record.csv of Ascend's profilers. */
gboolean profiler_recognise(const guint8 *bytes, gsize count);
struct trace *profiler_read(struct input *input, GError **error);

/* Addresses and sizes from here on are taken for damage. */
#define READERS_ADDRESS_END (G_GUINT64_CONSTANT(1) << 56)

/* Whether a file begins as JSON does. */
gboolean readers_is_json(const guint8 *bytes, gsize count);
/* Whether a file is JSON and no trace, as results of npusim replay --json are. FALSE and error: it
 * cannot be read. */
gboolean readers_file_is_result(const char *path, gboolean *out, GError **error);
gboolean readers_begin_with(const guint8 *bytes, gsize count, const char *text);
/* FALSE and error: "line N: ...". */
/* A number of `length` characters, below READERS_ADDRESS_END; FALSE and error, which calls it
 * `name`. */
gboolean readers_number(guint64 line, const char *name, const char *text, gsize length,
			guint64 *out, GError **error);
gboolean readers_bad(guint64 line, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);

#endif
