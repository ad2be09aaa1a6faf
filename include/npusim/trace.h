/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes traces: traces/FORMAT.md, version 1. Library libnpusim-trace, pkg-config
 * npusim-trace. A line of the file is a struct npu_trace_record, in both directions; what the lines
 * of a file mean together is for the caller to know.
 *
 * Errors: where a function takes `char **out_error`, it may be NULL; what is put there is one line
 * of text that names the file, the line or the field, and is the caller's to free(). Sizes are
 * bytes.
 */
#ifndef NPUSIM_TRACE_H
#define NPUSIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_TRACE_API __attribute__((visibility("default")))

#define NPU_TRACE_VERSION   1
#define NPU_TRACE_LINE_MAX  65536 /* bytes of a line, its end included */
#define NPU_TRACE_HOST      (-1)  /* as a device: memory of the host */
#define NPU_TRACE_NAME_HOST '-'   /* as the kind of a name: "host", what belongs to no device */

/* FORMAT.md has what each is called in a file, and what it needs. Later versions append. */
enum npu_trace_verb {
	/* calls of the API */
	NPU_TRACE_DEVICE_SET,
	NPU_TRACE_DEVICE_RESET,
	NPU_TRACE_RESERVE,
	NPU_TRACE_UNRESERVE,
	NPU_TRACE_CREATE,
	NPU_TRACE_RELEASE,
	NPU_TRACE_RETAIN,
	NPU_TRACE_MAP,
	NPU_TRACE_UNMAP,
	NPU_TRACE_ACCESS,
	NPU_TRACE_EXPORT,
	NPU_TRACE_IMPORT,
	NPU_TRACE_MALLOC,
	NPU_TRACE_MFREE,
	NPU_TRACE_COPY,
	NPU_TRACE_FILL,
	NPU_TRACE_CALL, /* any other; record.op names it */
	/* events of an allocator above */
	NPU_TRACE_SEGMENT_ALLOC,
	NPU_TRACE_SEGMENT_FREE,
	NPU_TRACE_SEGMENT_MAP,
	NPU_TRACE_SEGMENT_UNMAP,
	NPU_TRACE_ALLOC,
	NPU_TRACE_FREE, /* completed: the block is gone */
	NPU_TRACE_FREE_REQUESTED,
	NPU_TRACE_OOM,
	NPU_TRACE_NOTE, /* any other; record.op names it */
	NPU_TRACE_VERB_COUNT
};

/* What of a record its line has, as bits of record.has. */
enum npu_trace_has {
	NPU_TRACE_HAS_HOST_NS = 1 << 0,   /* @N */
	NPU_TRACE_HAS_SIMULATED = 1 << 1, /* ~N */
	NPU_TRACE_HAS_THREAD = 1 << 2,    /* :P.T: process and thread */
	NPU_TRACE_HAS_NAME = 1 << 3,
	NPU_TRACE_HAS_SIZE = 1 << 4,
	NPU_TRACE_HAS_DEVICE = 1 << 5, /* device= or id= */
	NPU_TRACE_HAS_PAGE = 1 << 6,
	NPU_TRACE_HAS_HANDLE = 1 << 7,
	NPU_TRACE_HAS_SHARE = 1 << 8,
	NPU_TRACE_HAS_AT = 1 << 9,    /* at=, dst= */
	NPU_TRACE_HAS_FROM = 1 << 10, /* src= */
	NPU_TRACE_HAS_ALIGN = 1 << 11,
	NPU_TRACE_HAS_HINT = 1 << 12,
	NPU_TRACE_HAS_FLAGS = 1 << 13,
	NPU_TRACE_HAS_ROUNDED = 1 << 14,
	NPU_TRACE_HAS_VA = 1 << 15,
	NPU_TRACE_HAS_KEY = 1 << 16,
	NPU_TRACE_HAS_STREAM = 1 << 17,
	NPU_TRACE_HAS_FREE = 1 << 18, /* free= */
	NPU_TRACE_HAS_TYPE = 1 << 19,
	NPU_TRACE_HAS_NO_ACCESS = 1 << 20, /* access=none: mapped, and open to nobody yet */
	NPU_TRACE_HAS_OP = 1 << 21,
	NPU_TRACE_HAS_SITE = 1 << 22,
	NPU_TRACE_HAS_START = 1 << 23, /* start=1: it was there when the history began */
	NPU_TRACE_HAS_SMALL = 1 << 24, /* pool=small */
	NPU_TRACE_HAS_TOOK = 1 << 25   /* +N */
};

/* A thing that a trace names. kind: 'r', 'h', 's', 'a' or 'b'; NPU_TRACE_NAME_HOST; 0: none. */
struct npu_trace_name {
	uint64_t offset; /* into a reservation or an allocation */
	uint32_t number;
	char kind;
};

/* A line. A field whose bit in `has` is not set is 0 when it is read; it is not written, unless the
 * verb needs it. Start from one that is all 0. */
struct npu_trace_record {
	uint64_t line;    /* number in the file, when read; the writer does not look at it */
	uint32_t has;     /* enum npu_trace_has */
	uint32_t verb;    /* enum npu_trace_verb */
	uint64_t host_ns; /* since the trace began */
	uint64_t simulated_ps;
	uint32_t process, thread;     /* from 1 */
	int64_t device;               /* NPU_TRACE_HOST, or its number */
	int32_t code;                 /* aclError that the call answered */
	uint32_t page_lg2;            /* 12, 21 or 30; as read, 21 where there is none */
	struct npu_trace_name name;   /* what the line is about */
	struct npu_trace_name handle; /* handle= */
	struct npu_trace_name share;  /* share= */
	struct npu_trace_name at;     /* at=; dst= of COPY and FILL */
	struct npu_trace_name from;   /* src= of COPY */
	uint64_t size, align, hint, flags, rounded;
	uint64_t va;         /* the address that the program got */
	uint64_t key;        /* EXPORT, IMPORT: equal in all processes for one share */
	uint64_t stream;     /* of an allocator's event */
	uint64_t free_bytes; /* OOM: what was free */
	uint64_t type;       /* CALL: which of several things it did */
	const char *op;      /* CALL, NOTE: its name; as read, valid until the next record */
	const char *site;    /* where in the program: as op */
	uint64_t took_ns;    /* host time from the call's beginning to its end */
	uint64_t reserved[3];
};

/* "reserve", "segment_map", ...: the word in a file. NULL for what is no verb. Any thread. */
NPU_TRACE_API const char *npu_trace_verb_name(enum npu_trace_verb verb);

/* The record's line, with its '\n' and a NUL behind that, into out[room]. Its length without the
 * NUL, or -EINVAL and an error if the record lacks what its verb needs or holds what cannot be
 * written, -E2BIG if `room` or NPU_TRACE_LINE_MAX is too small for it. Any thread. */
NPU_TRACE_API int npu_trace_line(const struct npu_trace_record *record, char *out, size_t room,
				 char **out_error);

/* ---- reading: an object belongs to one thread at a time; it holds one piece of the file ---- */

struct npu_trace_reader;

/* Opens a trace, plain or gzip, at its first event. NULL and error: it cannot be read, is no trace,
 * or of a version that is not known. */
NPU_TRACE_API struct npu_trace_reader *npu_trace_reader_open(const char *path, char **out_error);
/* The same over a file descriptor, which is taken over, on failure too; `name` stands for the path
 * in errors. What cannot be read twice (a pipe) is read into memory at once. */
NPU_TRACE_API struct npu_trace_reader *npu_trace_reader_open_fd(int fd, const char *name,
								char **out_error);
/* The same over memory, which must stay while the reader lives. */
NPU_TRACE_API struct npu_trace_reader *
npu_trace_reader_open_bytes(const void *bytes, size_t count, const char *name, char **out_error);
/* NULL is nothing. */
NPU_TRACE_API void npu_trace_reader_close(struct npu_trace_reader *reader);

/* The next event: 1; 0 at the end, and where a file breaks off; -1 if a line is not valid or the
 * file cannot be read, after which npu_trace_reader_error() says why, and only rewind and close
 * are of use. */
NPU_TRACE_API int npu_trace_reader_next(struct npu_trace_reader *reader,
					struct npu_trace_record *out);
/* "FILE: line 7: ...", "" where nothing failed. Valid until the next call. */
NPU_TRACE_API const char *npu_trace_reader_error(const struct npu_trace_reader *reader);
/* Back to the first event. 0, or -1 as above. */
NPU_TRACE_API int npu_trace_reader_rewind(struct npu_trace_reader *reader);

/* What the info lines that were read so far say, in the order of the file. `process` is the one
 * that the line is about, 0 if it does not say. False where there are not so many. The texts live
 * until the reader is rewound or closed. */
NPU_TRACE_API bool npu_trace_reader_info(const struct npu_trace_reader *reader, size_t index,
					 uint32_t *process, const char **key, const char **value);
/* The first value of a key, or NULL. */
NPU_TRACE_API const char *npu_trace_reader_info_of(const struct npu_trace_reader *reader,
						   const char *key);
/* Lines so far whose verb this library does not know; they are passed over. */
NPU_TRACE_API uint64_t npu_trace_reader_skipped(const struct npu_trace_reader *reader);
/* True at the end of a file that breaks off inside a line, which was left out. */
NPU_TRACE_API bool npu_trace_reader_truncated(const struct npu_trace_reader *reader);

/* ---- writing: any number of threads may use one writer ---- */

struct npu_trace_writer;

enum npu_trace_writer_flags {
	/* Lines are gathered and written in larger pieces, for converters. Without it a line is in
	 * the file when its call returns, whole, with one write(2), and stays when the process is
	 * killed. A name that ends in .gz is always gathered, and compressed. */
	NPU_TRACE_WRITER_BUFFERED = 1 << 0,
	/* Adds to a trace that is there, beside others that write to it, and writes no head. The
	 * file is plain; EINVAL with BUFFERED or .gz. */
	NPU_TRACE_WRITER_APPEND = 1 << 1
};

/* Makes the file, or empties it, and writes its first line. NULL and error. */
NPU_TRACE_API struct npu_trace_writer *npu_trace_writer_open(const char *path, unsigned flags,
							     char **out_error);
/* Nanoseconds since the writer was opened, for record.host_ns. */
NPU_TRACE_API uint64_t npu_trace_writer_now_ns(const struct npu_trace_writer *writer);
/* `info key=value`. Any bytes may be in the value; in the key, letters, digits, '_' and '-'. 0, or
 * a negative errno and error. */
NPU_TRACE_API int npu_trace_writer_info(struct npu_trace_writer *writer, const char *key,
					const char *value, char **out_error);
/* One line. 0; -EINVAL or -E2BIG as npu_trace_line(), with nothing written; or the negative errno
 * of the file, which every later call answers too. */
NPU_TRACE_API int npu_trace_writer_put(struct npu_trace_writer *writer,
				       const struct npu_trace_record *record, char **out_error);
/* Writes what was gathered, and frees the writer. 0, or a negative errno and error: the file is not
 * whole. NULL is nothing. No other thread may be using it. */
NPU_TRACE_API int npu_trace_writer_close(struct npu_trace_writer *writer, char **out_error);

#ifdef __cplusplus
}
#endif

#endif
