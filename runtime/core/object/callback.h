/* SPDX-License-Identifier: Apache-2.0
 *
 * Host functions of a stream as objects: their order, the stream's own thread, and the subscribed
 * threads.
 */
#ifndef NPUSIM_CORE_CALLBACK_H
#define NPUSIM_CORE_CALLBACK_H

#include "core/object/stream.h"

/* Queues a call of fn(arg) on the stream, whose lock is held (it is released while there is no
 * room): by the stream's subscriber, else by its own thread. `block`: the stream waits for its
 * return. aclError. */
int core_callback_launch_locked(struct core_stream *stream, void (*fn)(void *), void *arg,
				bool block, const char *call);

/* The thread subscribes to one stream more; NULL: no memory. */
struct subscriber *core_subscriber_join(uint64_t thread);
/* To one less. */
void core_subscriber_leave(struct subscriber *subscriber);
uint64_t core_subscriber_thread(const struct subscriber *subscriber);
/* Runs the next callback of the calling thread, waiting for it timeout_ms of the host's time, -1:
 * no limit. 0, CORE_REPORT_TIMEOUT or CORE_THREAD_SUBSCRIBE. */
int core_subscriber_process(int32_t timeout_ms);

/* The stream's own thread looks after one more entry (lock held), and one less. It exists from the
 * first on. */
int core_attention_begin_locked(struct core_stream *stream, const char *call);
void core_attention_end_locked(struct core_stream *stream);
/* The stream ends: its thread is stopped, its subscription is gone. No lock is held. */
void core_callback_end(struct core_stream *stream);
/* True in the stream's own thread, where one must not wait for it. */
bool core_is_pump_of(const struct core_stream *stream);

#endif
