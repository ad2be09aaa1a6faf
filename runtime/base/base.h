/* SPDX-License-Identifier: Apache-2.0
 *
 * What every part of npusim may use: the environment variables, the log, the messages of failed
 * calls. It is a static library, hidden, linked into each shared one, and independent of drivers
 * and models.
 */
#ifndef NPUSIM_BASE_H
#define NPUSIM_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- environment (env.c): one table of all variables ---- */

enum npu_var {
#define NPU_VAR(var, values, initial, reader, syntax, help) NPU_VAR_##var,
#include "base/var-list.h"
	NPU_VAR_COUNT
};
struct npu_var_info {
	const char *name;    /* NPUSIM_BACKEND ... */
	const char *values;  /* for people: "hw, sim, auto" */
	const char *initial; /* default, as it would be written; "" for none */
	const char *reader;  /* which part reads it */
	const char *help;    /* one line */
};
const struct npu_var_info *npu_var_info(enum npu_var var);
/* The value: what the environment says, else the default. *from_env tells which (may be NULL). In a
 * set-uid or set-gid program the environment is not read. Never NULL. Any thread; the text lives as
 * long as the environment's. */
const char *npu_var_get(enum npu_var var, bool *from_env);
/* False, and *error (free()) with the variable, the value and the known values, if a value is not
 * valid. Checks the syntax of every variable at once. */
bool npu_var_check_all(char **error);
/* Warns of NPUSIM_* names that do not exist, with the nearest known one: once, and in a child of
 * fork() not again. For who opens the driver at the bottom, which a process has one of. */
void npu_var_warn_unknown(void);
/* The name among `names` (`count` of them) that is nearest to `word`, upper and lower case being
 * the same: by an edit distance of up to a third of the word's length. One that begins with the
 * word, which is more than half of it, is at most that far, and 3. Of a name GROUP.KEY the key
 * alone is compared with a word that has no dot. The first of several, or NULL. */
const char *npu_nearest(const char *word, const char *const *names, size_t count);
/* "; is docs meant?", with `mark` before the name that is nearest; "" where none is near, or the
 * word is a file's name (it has a slash, or ends in .ini). As npu_text(). */
const char *npu_meant(const char *word, const char *const *names, size_t count, const char *mark);
/* Sizes: "64G", "512M", "2097152"; powers of 1024. False if it is none. */
bool npu_parse_size(const char *text, uint64_t *out_bytes);
/* NPUSIM_WINDOW: an address, or ADDRESS+SIZE; without a size *bytes stays. */
bool npu_parse_window(const char *text, uint64_t *base, uint64_t *bytes);

/* ---- log (log.c) ---- */

enum npu_log_level { NPU_LOG_ERROR, NPU_LOG_WARN, NPU_LOG_INFO, NPU_LOG_DEBUG };
/* One line "npusim[pid] level: text" to stderr or NPUSIM_LOG_FILE, written with one write(2). */
void npu_log(enum npu_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool npu_log_enabled(enum npu_log_level level);
/* What begins the colour of a level on the file @fd: "" unless it is a terminal, or if NO_COLOR is
 * set; NPU_COLOUR_END ends it. */
const char *npu_colour(enum npu_log_level level, int fd);
#define NPU_COLOUR_END(begin) ((begin)[0] ? "\033[0m" : "")
/* Writes a report, whole lines that say why the program is about to fail, or is wrong: to stderr,
 * to the file of the log where that is another one, and to NPUSIM_REPORT_FILE, since a test runner
 * may have captured stderr; not to the latter where stderr is still the file that
 * NPUSIM_REPORT_STDERR names: whoever prints the report file wrote there already. Async-signal-safe
 * once npu_log_enabled() was called, which reads the variables; keeps errno. */
void npu_report_write(const char *text, size_t bytes);

/* ---- calls of the program that failed (log.c) ---- */

struct npu_failure {
	const char *call;
	int code;
	const char *name; /* the code's, or NULL */
	const char *text; /* the reason; NULL: the thread's message, if it is new */
	const void *site; /* the return address in the program */
	bool expected;    /* what allocators try: out of memory, not supported */
};
/* Unless NPUSIM_FAILURES is off: writes the first failure of each site and code at warn, all
 * others, and those that are expected, at info. At the process's end one line has how many there
 * were, of how many kinds, and the first; a child of fork() counts anew. No lock; any thread. Faces
 * call it where a call returns. */
void npu_failure_note(const struct npu_failure *failure);

/* ---- the thread's message (message.c) ---- */

/* Sets the calling thread's message: the cause of the failure that is about to be returned. Who
 * knows the cause first sets it; who passes it on adds in front with npu_message_prefix(). */
void npu_message_set(const char *format, ...) __attribute__((format(printf, 1, 2)));
void npu_message_prefix(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Words that messages use in place of others, from now on: of a face whose functions have other
 * names than the ACL's. A row with NULL ends them. */
struct npu_word {
	const char *from, *to;
};
void npu_message_words(const struct npu_word *words);
/* In a text of `room` bytes: each that fits, and that no letter follows. */
void npu_words_replace(char *text, size_t room, const struct npu_word *words);
/* CUDA's names of the ACL's functions. */
extern const struct npu_word npu_cuda_words[];
void npu_message_clear(void);
/* "" where there is none. Valid until the thread's next message. */
const char *npu_message(void);
/* The log has it already, as an error. */
void npu_message_logged(void);
/* The message if it was set since this was last asked, else NULL. */
const char *npu_message_next(bool *out_logged);
/* Adds to *text, which its owner free()s and which may be NULL; without memory it stays. */
void npu_text_add(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text for the message that is being made: lives until this thread has made 2 KiB of others. Cut
 * at NPU_TEXT_MAX bytes. */
#define NPU_TEXT_MAX 512
const char *npu_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A size or address the way messages print it: "2097152 (2 MiB)", "2097153 (about 2.00 MiB)"; and a
 * size or a difference of two the way all that is shown to people does: "1.76 GiB", "-512 B", by
 * the largest unit that it fills. As npu_text(). */
const char *npu_size_text(uint64_t bytes);
const char *npu_size_words(double bytes);
/* "1 mapping", "2 mappings", "2 processes". As npu_text(). */
const char *npu_counted(uint64_t count, const char *noun);

#ifdef __cplusplus
}
#endif

#endif
