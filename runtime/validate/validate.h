/* SPDX-License-Identifier: Apache-2.0
 *
 * The validation layer: a driver over a lower driver that finds errors of the program which the
 * device answers with silence. npusim-validate.so, which is loaded where NPUSIM_VALIDATE asks for
 * it. Answers stay the lower driver's, but where `strict` refuses a call.
 *
 *   rules.h    the rules, in words
 *   order.c    what happens before what, and accesses of queued work
 *   objects.c  what the program holds and held, and what grows between marks
 *   queue.c    entries of queues and copies: who touches what, when; what they do with bytes
 *   written.h  which bytes somebody wrote
 *   host.c     memory of the host that queued copies use, and what the program does to it
 *   memory.c   what each call makes, gives back and shares; what is held back, under strict
 *   why.c      calls that failed, and what they failed by
 *   report.c   reports, and which are known
 *   form.c     reports for programs to read
 *   validate.c the layer: hooks, settings, end
 */
#ifndef NPUSIM_VALIDATE_VALIDATE_H
#define NPUSIM_VALIDATE_VALIDATE_H

#include <pthread.h>

#include "driver/layer.h"
#include "validate/objects.h"
#include "validate/order.h"
#include "validate/report.h"

#define VALIDATE_DEVICES 64u

/* What a call does to the object that it names. */
enum deed {
	DEED_NONE,
	DEED_MAKES,
	DEED_TAKES,  /* makes it of what another process shares */
	DEED_ENDS,   /* by its kind and key alone */
	DEED_SHARES, /* ... others may take it */
	DEED_OPENS   /* gives access to it */
};

struct validate {
	struct layer layer;
	pthread_mutex_t lock; /* of all that follows */
	/* The call that the lock is held for, */
	npu_stack stack;         /* 0: not taken yet: stack_of() */
	struct layer_call *call; /* and, in the hooks, validate_call() */
	struct object named;     /* what it is about; its outputs, if it has succeeded */
	enum deed deed;
	struct order *order;
	uint64_t settled; /* the host's version to which accesses are settled */
	struct objects *objects;
	bool strict;
	bool told;       /* a runtime tells of the program's waits: completions alone say nothing */
	bool kernels;    /* queues have had entries that may write anywhere */
	bool shares_any; /* others have memory of this process, or this one of others */
	bool cuda;       /* whose memory it is does not matter: access is by mapping */
	GPtrArray *failed; /* calls, of why.c */
	GPtrArray *shares; /* of memory.c */
	GPtrArray *held;   /* reservations, of memory.c */
	bool open[VALIDATE_DEVICES];
	bool peers[VALIDATE_DEVICES][VALIDATE_DEVICES]; /* by device: those that it may reach */
};

/* Calls the driver below: BELOW(v, halMemAddressFree, ptr). */
#define BELOW(v, op, ...) (v)->layer.below.op((v)->layer.driver.lower, __VA_ARGS__)

/* What the model knows of an address; false: it is no model. */
static inline bool validate_place(const struct validate *v, uint64_t va, struct npu_place *out)
{
	return BELOW(v, npusimPlace, va, out) == DRV_ERROR_NONE;
}

static inline uint64_t key_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* The call's stack, which is taken where somebody wants it: it costs more than all the rest. */
static inline npu_stack stack_of(struct validate *v)
{
	if (v->stack == 0)
		v->stack = npu_stack_here();
	return v->stack;
}

/* The API's name of the call of a stack, and of the call that the lock is held for. */
static inline const char *call_of(npu_stack stack)
{
	return npu_stack_call(stack) ?: "a call";
}
static inline const char *caller(struct validate *v)
{
	return call_of(stack_of(v));
}

static inline bool is_deed(const struct validate *v, enum deed deed, enum object_kind kind)
{
	return v->deed == deed && v->named.kind == kind;
}

/* "0x1000, 2 MiB (4 KiB into the allocation at 0x0, 16 MiB)"; sixteen texts a thread in turn. */
const char *validate_range(struct validate *v, uint64_t begin, uint64_t end);

/* ---- queue.c: after the call, which succeeded, under the lock ---- */

void validate_queue_call(struct validate *v);
/* Calls fn for each copy or fill (src 0) that the call asks for at once. */
typedef void (*validate_copy_fn)(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes);
void validate_each_copy(struct validate *v, validate_copy_fn fn);
void validate_told(struct validate *v, uint32_t dev, enum npu_order what, uint32_t id,
		   uint64_t value);
/* Reports queued work that uses the object, which is at `begin`, if the host does not know that it
 * is done. Whether there is such work. */
bool validate_pending(struct validate *v, const struct object *object, uint64_t begin);

/* bytes 0: the block is given back. */
void validate_bytes_block(struct validate *v, uint64_t va, uint64_t bytes);
/* Memory goes, and the blocks in it do. */
void validate_bytes_forget(struct validate *v, uint64_t begin, uint64_t end);
/* Whoever may write the memory at the addresses is not seen. */
void validate_bytes_give_up(struct validate *v, uint64_t begin, uint64_t end);
/* Memory is there: nobody has written it. */
void validate_bytes_new(struct validate *v, const struct object *object);

/* ---- host.c: under the lock ---- */

/* A queued read or write of the host's memory: completes *access, which is not yet added. */
void validate_host_access(struct validate *v, struct access *access);
/* The entries of v->call are about to be sent: fills what they will write; under strict it gives
 * the call other entries, which use second mappings. And when they are sent, or were not taken. */
struct validate_sent {
	GArray *saved;    /* what was there, to be put back */
	uint8_t *entries; /* the program's; NULL: these were sent */
};
struct validate_sent validate_host_send(struct validate *v);
void validate_host_sent(struct validate *v, const struct validate_sent *sent);
/* The host knows that the access, which has a hash, is done. */
void validate_host_done(struct validate *v, const struct access *access);

/* Under strict alone. */
/* Page-locked memory is made: object->inside is where the model has it, 0: there alone. */
void validate_closed_new(struct validate *v, struct object *object);
void validate_closed_end(struct validate *v, const struct object *object);
/* Closes the memory of a queued read or write, which is not yet added. */
void validate_closed_access(struct validate *v, struct access *access);
/* Opens all, and closes what is still used. */
void validate_closed_renew(struct validate *v);
/* Opens what a call is about to copy at once; a validate_copy_fn. */
void validate_closed_open(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes);
/* Opens all, and watches no more. */
void validate_closed_stop(struct validate *v);

/* ---- memory.c: under the lock ---- */

/* Sets v->call, v->deed and v->named. `done`: it has succeeded, and its outputs are there. */
void validate_call(struct validate *v, struct layer_call *call, bool done);
/* True: the call is answered with call->code. */
bool validate_memory_before(struct validate *v);
/* The call succeeded. */
void validate_memory_after(struct validate *v);
/* Tries a reservation that failed again, without the addresses that are held back. */
void validate_memory_again(struct validate *v, struct layer_call *call);
/* Gives all of those back; whether there was any. */
bool validate_memory_let_go(struct validate *v);
/* Reports what this process shared and gave back, and others hold. */
void validate_kept_look(struct validate *v);

/* ---- why.c: under the lock ---- */

/* After a call: why it failed; what follows from earlier failures no more, where it succeeded. */
void validate_why(struct validate *v);
/* A copy or fill (src 0) was refused before it was made. */
void validate_why_copy(struct validate *v, uint64_t dst, uint64_t src, uint64_t bytes);
/* An entry of the stream failed: which of its accesses are not possible. */
void validate_why_stream(struct validate *v, const struct order_stream *stream);
/* The call gives back what another is to give back. */
void validate_why_wrong(struct validate *v, const struct object *object);
/* The call is given `key`, an address or handle of what was given back. */
void validate_why_ended(struct validate *v, enum validate_rule rule, const struct object *old,
			uint64_t key);

#endif
