/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the memory calls of a replay, and their latencies in histograms.
 */
#include "replay.h"

#include <sys/mman.h>

/* ---- latencies: bins are indexed by the seven highest bits of a time ---- */

#define SUB_LG2 6
#define SUBS    (1u << SUB_LG2)

guint64 latency_bin_end_ps(guint bin)
{
	if (bin < SUBS)
		return bin;
	guint shift = bin / SUBS - 1;
	return ((guint64)(bin % SUBS + SUBS + 1) << shift) - 1;
}

void latency_add(struct latency *l, guint64 ps)
{
	guint shift = ps < SUBS ? 0 : g_bit_storage(ps) - 1 - SUB_LG2;

	l->bins[ps < SUBS ? ps : (shift + 1) * SUBS + (ps >> shift) - SUBS]++;
	l->min_ps = l->calls++ ? MIN(l->min_ps, ps) : ps;
	l->max_ps = MAX(l->max_ps, ps);
}

guint64 latency_quantile_ps(const struct latency *l, double share)
{
	double wanted = share * (double)l->calls;
	guint64 seen = 0;

	for (guint b = 0; b < LATENCY_BINS; b++) {
		seen += l->bins[b];
		if (seen > 0 && (double)seen >= wanted)
			return CLAMP(latency_bin_end_ps(b), l->min_ps, l->max_ps);
	}
	return l->max_ps;
}

const char *const model_call_names[MODEL_CALL_COUNT] = { MODEL_CALLS(MODEL_NAME) };

const char *model_message(void)
{
	const char *text = aclGetRecentErrMsg();
	gsize name = text ? strcspn(text, ": ") : 0;

	/* who shows it has named the call already */
	if (name > 0 && g_str_has_prefix(text, "acl") && g_str_has_prefix(text + name, ": "))
		text += name + 2;
	return text && *text ? text : "no message";
}

static struct {
	enum model_call call;
	guint64 start_ps;
} last;

const char *model_last_call(void)
{
	return model_call_names[last.call];
}

void model_begin(void)
{
	last.start_ps = npusim_now_ps();
}

static void keep(struct model_device *d, enum model_call call, guint64 ps)
{
	struct model_once *of = (struct model_once *)(void *)d->each->data;
	const struct model_once once = { *d->event, call, ps / 1000 };

	if (d->each->len == MODEL_EACH_MAX) {
		for (guint i = 0; i < MODEL_EACH_MAX; i += 2)
			of[i / 2] = of[i + (of[i + 1].ns > of[i].ns)];
		g_array_set_size(d->each, MODEL_EACH_MAX / 2);
	}
	g_array_append_val(d->each, once);
}

aclError model_counted(struct model_device *d, enum model_call call, aclError code)
{
	guint64 ps = npusim_now_ps() - last.start_ps;

	last.call = call;
	if (d == NULL)
		return code;
	struct call_figures *f = &d->calls[call], *sum = call < MODEL_MOVES ? &d->all : &d->moves;
	f->calls++;
	f->refused += code != ACL_SUCCESS;
	f->ps += ps;
	sum->calls++;
	sum->ps += ps;
	if (call < MODEL_MOVES)
		latency_add(&f->latency, ps);
	if (d->each)
		keep(d, call, ps);
	return code;
}

G_DEFINE_QUARK(npusim - model, model_error)

static gboolean opened(const char *call, aclError code, GError **error)
{
	if (code == ACL_SUCCESS || code == ACL_ERROR_REPEAT_INITIALIZE)
		return TRUE;
	return refuse(error, MODEL_ERROR, MODEL_ERROR_START, "%s answered %d: %s", call, code,
		      model_message());
}

gboolean model_open(guint devices, GError **error)
{
	uint32_t count = 0;
	if (!opened("aclInit", aclInit(NULL), error) ||
	    !opened("aclrtGetDeviceCount", aclrtGetDeviceCount(&count), error))
		return FALSE;
	if (devices > count)
		return refuse(
			error, MODEL_ERROR, MODEL_ERROR_DEVICES,
			"the trace uses device %u, the model has devices 0 to %u: use --devices %u",
			devices - 1, count - 1, devices);
	for (guint i = devices; i > 0; i--) {
		if (!opened("aclrtSetDevice", aclrtSetDevice((int32_t)i - 1), error))
			return FALSE;
	}
	return TRUE;
}

void model_close(guint devices)
{
	for (guint i = 0; i < devices; i++)
		aclrtResetDeviceForce((int32_t)i);
	aclFinalize();
}

static aclError copy_between(void *dst, int dst_device, const void *src, guint64 size)
{
	aclError code = aclrtSetDevice(dst_device);

	if (code == ACL_SUCCESS)
		code = aclrtMemcpyAsync(dst, size, src, size, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL);
	return code == ACL_SUCCESS ? aclrtSynchronizeStream(NULL) : code;
}

aclError model_move(struct model_device *d, struct model_end dst, const struct model_end *src,
		    guint64 size)
{
	guint kind = (src && src->device >= 0 ? 2 : 0) + (dst.device >= 0 ? 1 : 0);
	enum model_call call = src ? MODEL_MOVES + kind : MODEL_FILL;
	/* stands for memory of the program's own: addresses alone, while nobody writes there */
	void *own = dst.p && (src == NULL || src->p)
			    ? NULL
			    : mmap(NULL, size + 1, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *to = dst.p ? dst.p : own;
	const void *from = src && src->p ? src->p : own;
	aclError code;

	G_STATIC_ASSERT(ACL_MEMCPY_HOST_TO_DEVICE == 1 && ACL_MEMCPY_DEVICE_TO_HOST == 2);
	if (own == MAP_FAILED)
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	if (src == NULL)
		code = MODEL_CALL(d, call, aclrtMemset(to, size, 0, size));
	else if (call == MODEL_DEVICE_TO_DEVICE && dst.device != src->device)
		code = MODEL_CALL(d, call, copy_between(to, dst.device, from, size));
	else
		code = MODEL_CALL(d, call,
				  aclrtMemcpy(to, size, from, size, (aclrtMemcpyKind)kind));
	if (own)
		munmap(own, size + 1);
	d->calls[call].bytes += code == ACL_SUCCESS ? size : 0;
	return code;
}

gboolean model_stats(guint device, struct npu_stats *out)
{
	*out = (struct npu_stats){ .size = sizeof *out };
	return npusim_get_stats((int)device, out) == 0;
}
