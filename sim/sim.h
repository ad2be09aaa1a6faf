/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of the SystemC model: what the driver model (backend-sim) may ask of it. Plain C.
 * It owns simulated time, the MMUs and TLBs, the timing of the memories, the engines and the links
 * of every device of one simulated server as one process sees it. It is independent of the ACL, of
 * processes and of handles.
 *
 * One simulation per process. Not thread-safe: the caller holds one lock of its own around every
 * call. Calls that run the model or have bytes to move let go of it meanwhile (struct sim_lock). No
 * call throws; no call reads the environment.
 */
#ifndef NPUSIM_SIM_H
#define NPUSIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, and *error a message to be g_free()d, if it cannot be (a second simulation at a time, a
 * configuration out of range, a SystemC kernel that the program has used otherwise). The model is
 * built and elaborated at the first job with timing, once in a process: it fixes how many devices a
 * later simulation may have at most. */
struct sim *sim_open(const struct sim_config *config, char **error);
/* Ends it: jobs that are not done are dropped without their done call. The kernel itself stays
 * until the process ends, and a later sim_open() uses it again; time goes on. May be NULL. */
void sim_close(struct sim *sim);

/* The host's simulated time: where the calling program is. */
uint64_t sim_host_ps(const struct sim *sim);
/* The program spends `ps` in a driver call; does not enter the model. Returns the new host time. */
uint64_t sim_spend(struct sim *sim, uint64_t ps);

/* Hands a job over. It begins at max(start_ps, the engine's free time), start_ps raised as said
 * there. With timing off it is done on return. */
void sim_submit(struct sim *sim, struct sim_job *job);
/* Runs the model up to the host's time, so that all that is complete by then has taken effect.
 * Cheap where nothing is due. */
void sim_catch_up(struct sim *sim);
/* Runs the model event by event until ready(arg), until the host's time + timeout_ps (SIM_NEVER:
 * no limit), or until nothing is pending; the host's time becomes the model's where that is later
 * (the whole timeout at a time-out). SIM_WAIT_IDLE leaves the host's time at the last event: what
 * is waited for needs another thread's call. */
enum sim_wait_result { SIM_WAIT_READY, SIM_WAIT_TIMEOUT, SIM_WAIT_IDLE };
enum sim_wait_result sim_wait(struct sim *sim, bool (*ready)(void *arg), void *arg,
			      uint64_t timeout_ps);
/* Runs all that is pending, and moves the host's time to the end of it: for a program that polls
 * memory without calling. */
void sim_drain(struct sim *sim);
/* True if jobs are pending. */
bool sim_busy(const struct sim *sim);
/* Submits a job and waits for it: the host's time becomes its finish time. Returns job->status. */
enum sim_status sim_execute(struct sim *sim, struct sim_job *job);

/* The root of the page table that translates for `space` (a device or SIM_NODE_HOST); 0: none. */
void sim_set_root(struct sim *sim, int space, uint64_t root_pa);
/* Descriptors in [va, va + bytes) of `space` were removed or changed: no engine translates by an
 * old one afterwards. What a job has translated before it still moves, at its end: sim_uses().
 * Costs no time itself (the driver call's constant has it); cheap where no TLB has part of it. */
void sim_invalidate(struct sim *sim, int space, uint64_t va, uint64_t bytes);
/* True if a job that is not done has translated addresses to any of these bytes of a memory: they
 * must stay as they are. Cheap where no job is under way. */
bool sim_uses(const struct sim *sim, const unsigned char *at, uint64_t bytes);

void sim_get_counters(const struct sim *sim, unsigned device, struct sim_counters *out);

#ifdef __cplusplus
}
#endif

#endif
