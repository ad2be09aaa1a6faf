/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of NPUSIM_VALIDATE: one entry each. Reports, `npusim explain` and VALIDATION.md are
 * made from this list; ids are stable.
 *
 *   VALIDATE_RULE(enumerator, "id", "what it finds", "why hardware would hurt", "what is right")
 */
#ifndef VALIDATE_RULE
#define VALIDATE_RULE(rule, id, finds, why, right)
#endif
VALIDATE_RULE(RACE, "race",
	      "two accesses to one range, at least one of them a write, that nothing orders",
	      "Streams, engines and the host run side by side on the device. Which access comes "
	      "first changes from run to run, so the bytes do as well; it often shows under load "
	      "only.",
	      "Record an event behind the first access (aclrtRecordEvent) and let the second's "
	      "stream wait for it (aclrtStreamWaitEvent), use one stream for both, or synchronize "
	      "the first stream before the host goes on.")
VALIDATE_RULE(PENDING_UNMAP, "pending-unmap",
	      "memory unmapped or unregistered while queued work still uses it",
	      "The copy reads or writes through a translation that is gone: an MMU fault that ends "
	      "the stream, or, where the address is mapped again in time, the next owner's bytes.",
	      "Synchronize the stream (aclrtSynchronizeStream) or an event behind the work before "
	      "aclrtUnmapMem or aclrtHostUnregister.")
VALIDATE_RULE(PENDING_FREE, "pending-free", "memory freed while queued work still uses it",
	      "The driver gives the pages to the next allocation at once. The work then lands in "
	      "memory of another owner, with code 0.",
	      "Synchronize the stream before aclrtFree and aclrtFreeHost, or call "
	      "aclrtFreeWithDevSync or aclrtFreeHostWithDevSync, which wait.")
VALIDATE_RULE(STALE_ADDRESS, "stale-address", "use of an address after its memory was given back",
	      "The address may belong to nobody, or to somebody else by now.",
	      "Keep the memory until its last use is done, or clear the pointer when it is freed.")
VALIDATE_RULE(STALE_HANDLE, "stale-handle", "use of a handle after its last reference was released",
	      "The driver may have given the number to another handle.",
	      "Call aclrtFreePhysical after the last use, or take a reference of your own by "
	      "aclrtMemRetainAllocationHandle.")
VALIDATE_RULE(DOUBLE_FREE, "double-free", "memory that was given back is given back again",
	      "Between the two calls the address may have become somebody else's, who then loses "
	      "it.",
	      "Give memory back once; set the pointer to NULL where it is freed.")
VALIDATE_RULE(
	WRONG_FREE, "wrong-free", "memory given back by the call for another kind",
	"The driver refuses, or does half: the memory stays held.",
	"aclrtMalloc goes with aclrtFree, aclrtMallocHost with aclrtFreeHost, aclrtMapMem with "
	"aclrtUnmapMem, aclrtReserveMemAddress with aclrtReleaseMemAddress, aclrtMallocPhysical "
	"with aclrtFreePhysical, aclrtHostRegister with aclrtHostUnregister.")
VALIDATE_RULE(ACCESS, "access",
	      "a copy that fails because nobody gave its device access to the memory",
	      "The engine's request is refused: a fault that ends the stream, long after the call.",
	      "aclrtMemSetAccess or cuMemSetAccess on the whole mapping for each device that uses "
	      "it; for another device's memory aclrtDeviceEnablePeerAccess first, by the thread "
	      "that has the using device current.")
VALIDATE_RULE(FOLLOWS_FROM, "follows-from",
	      "a call that fails because an earlier one did, whose code nobody heeded",
	      "The code of the later call speaks of an address that is not mapped or a device "
	      "without access, not of what went wrong.",
	      "Look at the code of the first call, and do not go on without what it was to make.")
VALIDATE_RULE(
	PLACEMENT, "placement",
	"a device's number given where its other number is meant, or a copy between a device "
	"and memory of the host that the program put on a NUMA node far from it",
	"With ASCEND_RT_VISIBLE_DEVICES a device has two numbers: the program's, from 0 on, "
	"and the driver's. The wrong one is another device, or none. Bytes of a far node pass "
	"the link between the host's sockets, which all its devices share.",
	"Most calls take the program's number; aclrtMemSetAccess and aclrtMemGetAccess take "
	"the driver's, as aclrtGetLogicDevIdByUserDevId gives it. Put memory of the host "
	"(HOST_NUMA, mbind, numactl) on the node near the device that copies it, as "
	"`npu-smi info -t topo` shows it on a server, or name none.")
VALIDATE_RULE(
	KIND, "kind", "a copy whose kind contradicts where its source and target lie",
	"The synchronous copy takes the direction from the addresses and goes on; asynchronous "
	"ones and copies of rows are refused with 107000 or 507899, which of them depends on "
	"the release and on whether memory is page-locked.",
	"Give the kind that the addresses have, or ACL_MEMCPY_DEFAULT, which takes it from them.")
VALIDATE_RULE(OVERLAP, "overlap", "a copy whose source and target overlap",
	      "Engines read and write in pieces, several at a time: bytes that are read after they "
	      "were written come out twice.",
	      "Copy through other memory, or in pieces no longer than the distance of the two, the "
	      "ones first that are written over.")
VALIDATE_RULE(BOUNDS, "bounds",
	      "a copy or fill that begins in an allocation or block and ends behind its end",
	      "Memory comes in pages, so the bytes behind the end are often there, and often "
	      "another allocation's: they are overwritten with code 0.",
	      "Ask for as many bytes as are copied.")
VALIDATE_RULE(
	UNINITIALISED, "uninitialised",
	"a copy that reads memory of a device which nobody wrote since it was made",
	"The model's new memory is zeros. A device's has what the last owner left, so results "
	"change from run to run; NPUSIM_POISON=0xff shows it.",
	"Fill it (aclrtMemset), or copy only what was written.")
VALIDATE_RULE(HOST_READ, "host-read",
	      "page-locked memory that the program rewrote while a queued copy was to read it",
	      "The copy reads it when its turn comes: old bytes, new ones, or some of each.",
	      "Synchronize the stream, or an event behind the copy, before the memory is used "
	      "again; or use two buffers in turn.")
VALIDATE_RULE(KEPT, "kept",
	      "memory that was shared and given back while another process holds it or its key is "
	      "open, or that nobody imported",
	      "It stays used until the last process lets it go: what the owner counts as free is "
	      "not. Memory that was named may be the next owner's while the other still writes it.",
	      "Let the importers unmap and release it (aclrtIpcMemClose, aclrtFreePhysical) and "
	      "tell the exporter, which closes its key and frees it last. Export what others "
	      "import.")
VALIDATE_RULE(SHARED_WRITE, "shared-write",
	      "two processes that write one range at the same time: neither began when the other "
	      "had seen its write done",
	      "The bytes are those of either, or some of each, and differ from run to run.",
	      "Synchronize the stream before the other process is told to write.")
VALIDATE_RULE(LEAK, "leak", "what a process still holds at its end, by call stack",
	      "In a long-running process that is memory lost to all others.",
	      "Give it back, or suppress the rule for memory that is meant to live as long as the "
	      "process.")
VALIDATE_RULE(GROWTH, "growth", "memory of which more is held at each mark of npusimMark()",
	      "A loop that keeps a little each time runs out of memory after hours or days.",
	      "Give back in each round what it made. Memory that is kept on purpose, such as a "
	      "cache that is still filling, can be suppressed by its stack.")
#undef VALIDATE_RULE
