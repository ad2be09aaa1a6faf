/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of events. Each is an object of its own, with a fresh id in the driver: a wait for a
 * record waits for that one, however often its event is recorded again in the meantime. Driver ids
 * are also here; the events that programs see are in event.c.
 */
#ifndef NPUSIM_CORE_RECORD_H
#define NPUSIM_CORE_RECORD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "core/core.h"

/* Ids of events in the driver. */
drvError_t core_event_id_take(uint32_t device, uint32_t *out_id);
void core_event_id_give(uint32_t device, uint32_t id);
/* The host records it. */
void core_event_id_record(uint32_t device, uint32_t id);

struct record {
	atomic_uint users;          /* the event, the entry that records, each entry that waits */
	uint32_t device, id;        /* the driver's */
	_Atomic(void *) stream;     /* handle; NULL before it is to be sent */
	_Atomic uint64_t timestamp; /* ns */
	atomic_bool done;
	atomic_bool aborted;  /* it will not happen: its stream was aborted */
	pthread_mutex_t lock; /* of relays */
	SLIST_HEAD(, relay) relays;
	struct record *instead_of; /* on another device, waited for before this one was made; kept
				      until this one goes */
};

/* One user, the caller. NULL: *error is an aclError, message set. */
struct record *core_record_make(uint32_t device, const char *call, int *error);
/* One user more, one less. NULL is allowed. */
struct record *core_record_use(struct record *record);
void core_record_unuse(struct record *record);
/* A core_done_fn of the entry that records; takes over a user. */
void core_record_done(void *record, const struct stars_logic_cqe *cqe);

/* A stream of another device waits: that device has an id of its own, which the host records when
 * the record happens, or now if it has. */
int core_record_add_relay(struct record *record, uint32_t device, uint32_t id, const char *call);
/* Takes a relay back that nobody will wait for, and gives its id back. */
void core_record_drop_relay(struct record *record, uint32_t device, uint32_t id);
bool core_record_has_relays(struct record *record);

#endif
