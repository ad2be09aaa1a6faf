/* SPDX-License-Identifier: Apache-2.0
 *
 * The one seam of npusim: struct npu_driver, the functions of libascend_hal.so, one member each,
 * with the object as first argument. The runtime above calls nothing else; a backend below
 * (backend-hw: the real driver; backend-sim: the model) fills it in; a layer (faults, trace) is a
 * driver over a lower driver, and they stack.
 *
 * What each function must do is said in driver-ops.h. The list is append-only and versioned: a
 * driver that was built against a shorter list works with a longer runtime, since `size` tells
 * where it ends and the rest answers DRV_ERROR_NOT_SUPPORT.
 */
#ifndef NPUSIM_DRIVER_H
#define NPUSIM_DRIVER_H

#include "hal.h"
#include "npusim.h"
#include "place.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A line of the report of npusimLeaks. */
typedef void (*npu_line_fn)(void *arg, const char *text);
typedef bool (*npu_ask_fn)(void);

struct npu_driver;

/* Whose rules of virtual memory count in this process. Set before the first device is opened, or
 * never.
 *
 * NPU_DIALECT_WINDOW: the Ascend driver's; reservations lie in one window of addresses, the SVM
 * window.
 *
 * NPU_DIALECT_CUDA: reservations lie anywhere in the process's address space, of any size and
 * alignment from 2 MiB on (halMemAddressReserve's alignment counts, its addr is a hint, its flag is
 * not looked at); memory of several devices may be mapped in one, and imported memory beside other;
 * halMemMapNoAccess is there; halMemSetAccess takes exactly one mapping, and MEM_ACCESS_TYPE_NONE
 * and _READ, too; each import makes a handle of its own, also in the process that exported;
 * MEM_HANDLE_TYPE_POSIX is there for export and import V2: the first int of the 128 bytes is an
 * open file descriptor; struct drv_mem_prop.reserve is kept with the handle and answered again, and
 * the properties of a released handle are still answered. Devices need no peer access to be given a
 * mapping. Where NPUSIM_SOC is not set, the SoC is the H100. */
enum npu_dialect { NPU_DIALECT_WINDOW = 0, NPU_DIALECT_CUDA = 1 };

enum npu_head_kind {
	NPU_HEAD_NONE,  /* nothing is queued */
	NPU_HEAD_RUNS,  /* an engine has it, or its turn is now */
	NPU_HEAD_EVENT, /* it waits: for an event, a notify, a value, for room for its completion */
	NPU_HEAD_NOTIFY,
	NPU_HEAD_VALUE,
	NPU_HEAD_REPORT,
	NPU_HEAD_STOPPED /* a command has stopped the stream: nothing of it runs any more */
};
/* What the task at the head of a stream's queue does. */
struct npu_head {
	enum npu_head_kind kind;
	uint32_t task;              /* its id */
	uint32_t device, id;        /* EVENT, NOTIFY */
	uint64_t va, wanted, found; /* VALUE */
	uint32_t compare;           /* VALUE: an ACL_STREAM_WAIT_VALUE_* */
};

/* What the runtime knows and the driver cannot see: see npusimOrder. */
enum npu_order {
	NPU_ORDER_STREAM, /* the program knows that entries 1 to `value` of stream `id` are done,
			     counted since its queue was made */
	NPU_ORDER_EVENT,  /* ... that the record of event `id` has happened */
	NPU_ORDER_RELAY,  /* event `id` is recorded by the host when event (uint32_t)value of device
			     value >> 32 has happened */
	NPU_ORDER_OWN,    /* the memory at address `value` is the runtime's, not the program's */
	NPU_ORDER_ASKED,  /* of the allocation at `value` the program asked for `id` bytes less than
			     the driver was asked for */
	NPU_ORDER_KIND,   /* the calling thread's next copy, to address `value`, has the
			     aclrtMemcpyKind `id` */
	NPU_ORDER_OTHER_ID /* a call of the calling thread fails: it was given `id`, the driver's
			      number of the device that the program calls `value` */
};

/* What the runtime does by itself in a call of the program: see npusimSpend. */
enum npu_work {
	NPU_WORK_EVENT, /* makes one, asks one, or asks a stream */
	NPU_WORK_EVENT_DESTROY,
	NPU_WORK_EVENT_RECORD,
	NPU_WORK_EVENT_WAIT, /* of a stream */
	NPU_WORK_EVENT_SYNC, /* of the host */
	NPU_WORK_STREAM_SYNC,
	NPU_WORK_DEVICE_SYNC,
	NPU_WORK_HOST_WAKE /* after a wait for what had not happened yet */
};

/* See npusimWritten: bit n of `bits` is set where somebody wrote one of bytes 8n to 8n + 7 of a
 * device's memory. All processes of the node that keep it share it. */
struct npu_written {
	uint64_t *bits; /* NULL: not known: no memory of a device, or others have it who do not tell
			 */
	uint64_t at;    /* where in the memory the address is */
	uint64_t bytes; /* how many from there on follow each other; never 0 */
};

/* See npusimWrites. */
struct npu_write {
	uint32_t mark; /* below 64; 0: nobody else has the memory, or too much is on its way */
	int32_t pid;
	int64_t since_ns; /* how long that process has been writing */
};

/* What the model knows of one device, beyond the HAL. */
struct npu_stats {
	uint32_t size; /* set by the caller: sizeof(struct npu_stats); append-only */
	uint32_t device;
	uint64_t now_ps;           /* simulated time of the process */
	uint64_t hbm_bytes;        /* of the device */
	uint64_t usable_bytes;     /* what programs can get */
	uint64_t used_bytes;       /* held by all processes of the node */
	uint64_t own_bytes;        /* held by this process */
	uint64_t page_table_bytes; /* this process's page table of the device */
	uint64_t page_table_peak_bytes;
	uint64_t mapped_bytes; /* this process's live mappings on the device */
	uint64_t leaves_4k, leaves_2m, leaves_1g;
	uint64_t largest_free_bytes; /* longest run of free frames */
	uint64_t free_giants;        /* 1 GiB pages that could be had now */
	uint64_t call_count[16]; /* calls by enum sim_call's order: reserve, address free, create,
				    release, map, ... */
	uint64_t call_ps[16];    /* simulated time in them; what npusimSpend takes is in neither */
	uint64_t tlb_l1_entries, tlb_l2_entries; /* capacities; reach = entries x page size */
	uint64_t tlb_requests, tlb_hits, tlb_misses, walks, walk_ps;
	uint64_t hbm_read_bytes, hbm_write_bytes, row_hits, row_misses;
	uint64_t own_peak_bytes; /* the most that own_bytes has been */
};

#define NPU_DRIVER_ABI 1u

/* What driver-ops.h's (type, name) pairs become: "type name, type name", "name, name", and members
 * "type name; type name". */
#define NPU_PARAMS(...)            __VA_OPT__(NPU_EACH_1(NPU_PARAM_, (, ), __VA_ARGS__))
#define NPU_ARGS(...)              __VA_OPT__(NPU_EACH_1(NPU_ARG_, (, ), __VA_ARGS__))
#define NPU_FIELDS(...)            __VA_OPT__(NPU_EACH_1(NPU_PARAM_, (;), __VA_ARGS__);)
#define NPU_PARAM_(type, name)     type name
#define NPU_ARG_(type, name)       name
#define NPU_UNPACK_(...)           __VA_ARGS__
#define NPU_EACH_1(of, by, a, ...) of a __VA_OPT__(NPU_UNPACK_ by NPU_EACH_2(of, by, __VA_ARGS__))
#define NPU_EACH_2(of, by, a, ...) of a __VA_OPT__(NPU_UNPACK_ by NPU_EACH_3(of, by, __VA_ARGS__))
#define NPU_EACH_3(of, by, a, ...) of a __VA_OPT__(NPU_UNPACK_ by NPU_EACH_4(of, by, __VA_ARGS__))
#define NPU_EACH_4(of, by, a, ...) of a __VA_OPT__(NPU_UNPACK_ by NPU_EACH_5(of, by, __VA_ARGS__))
#define NPU_EACH_5(of, by, a)      of a
/* A parameter list as the driver declares it, and as a member of struct npu_driver has it. */
#define NPU_PLAIN(...)      (NPU_PLAIN_##__VA_OPT__(SOME)(__VA_ARGS__))
#define NPU_PLAIN_()        void
#define NPU_PLAIN_SOME(...) NPU_PARAMS(__VA_ARGS__)
#define NPU_WITH_SELF(...)  (struct npu_driver * self __VA_OPT__(, ) NPU_PARAMS(__VA_ARGS__))
/* The arguments of a call of another driver's member, inside of a function NPU_WITH_SELF. */
#define NPU_TO(drv, ...)        (drv __VA_OPT__(, ) NPU_ARGS(__VA_ARGS__))
#define NPU_CALL_SELF(drv, ...) (drv __VA_OPT__(, ) __VA_ARGS__)

enum {                               /* caps: what no vendor's driver has */
       NPU_CAP_MODEL = 1u << 0,      /* simulated: time, statistics and messages are there */
       NPU_CAP_VALUE_WAIT = 1u << 1, /* struct stars_value_wait_sqe */
};

struct npu_driver {
	uint32_t abi;     /* NPU_DRIVER_ABI */
	uint32_t size;    /* sizeof(struct npu_driver) of whoever filled it in */
	const char *name; /* "sim", "hw", "fault", ... */
	uint32_t caps;
	struct npu_driver *lower;               /* of a layer; NULL at the bottom */
	void (*close)(struct npu_driver *self); /* ends one use of this object, not `lower` */
#define NPU_OP(result, missing, op, ...) result(*op) NPU_WITH_SELF(__VA_ARGS__);
#include "driver-ops.h"
};

/* Calls op of drv: npu_call(drv, halMemMap, va, size, 0, handle, 0). The runtime calls through
 * nothing else. */
#define npu_call(drv, op, ...) ((drv)->op NPU_CALL_SELF(drv __VA_OPT__(, ) __VA_ARGS__))

/* What a backend module exports, under the name NPU_BACKEND_SYMBOL; the ABI number stands in the
 * name, so that a stale module fails to load and not to work. */
struct npu_backend {
	uint32_t abi, size;
	const char *name;
	/* The top of a stack of drivers, for npu_driver_close(), or NULL and *error (free()) says
	 * what is wrong, with file and every missing symbol. The layers that the environment asks
	 * for (NPUSIM_FAULT, NPUSIM_TRACE) are put on by the module that holds the driver at the
	 * bottom, and by nobody above it: backend-sim over the model, backend-hw over a vendor's
	 * library. So each call passes them once, whichever library of npusim it enters by, and
	 * all that a process has open share them. */
	struct npu_driver *(*open)(char **error);
	/* For `npusim info`: version, file, SoC, as "key=value" lines; free(). */
	char *(*describe)(void);
};
#define NPU_BACKEND_SYMBOL "npusim_backend_1"

/* The data symbol by which npusim's own libascend_hal.so is told from a vendor's, and what its two
 * sides, that library and backend-hw, agree on beyond the HAL's functions. */
#define NPUSIM_HAL_ABI 1u

struct npusim_hal {
	uint32_t abi;  /* NPUSIM_HAL_ABI */
	uint32_t size; /* sizeof(struct npusim_hal) of the library */
	/* Opens the model, which the first call of any function does as well. False, and *error
	 * (free()) says why it cannot be used. *out_caps: NPU_CAP_* of driver.h. Each success is
	 * ended by one close(); the model ends with the last one. */
	bool (*open)(uint32_t *out_caps, char **error);
	void (*close)(void);
	/* "key=value" lines of the model, for `npusim info`; free(). NULL if there is none. */
	char *(*describe)(void);
};

#define NPUSIM_HAL_SYMBOL "npusim_hal_is_ours"

/* ---- runtime/driver ---- */

/* A driver of full length: members that are NULL answer "not supported", and where the table is
 * shorter than ours (drv->size) a driver over it is made, whose `lower` it is. NULL: no memory. */
struct npu_driver *npu_driver_complete(struct npu_driver *drv);
/* Opens the backend that `name` says ("hw", "sim", "auto"; NULL: NPUSIM_BACKEND, else auto). NULL
 * and *error (free()) otherwise. */
struct npu_driver *npu_driver_open(const char *name, char **error);
/* Whether all that the environment sets is valid, for a program that is to be started with it:
 * variables, layers, and what the backend that would be opened says of its own. Opens no device,
 * joins no node. False, and *error (free()): the variable, its value, what would be right. */
bool npu_settings_check(char **error);
/* "key=value" lines: the drivers from the top, and what the backend that was opened last says of
 * itself. free(); NULL: no memory. */
char *npu_driver_text(const struct npu_driver *top);
/* Closes the whole stack. NULL is allowed. */
void npu_driver_close(struct npu_driver *drv);

#ifdef __cplusplus
}
#endif

#endif
