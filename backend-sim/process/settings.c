/* SPDX-License-Identifier: Apache-2.0
 *
 * Derives the settings of the driver model from the environment variables: profile, devices, HBM;
 * and adopts the shape of a node that is already running.
 */
#include "process/process.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA_SOC      "H100"           /* of NPU_DIALECT_CUDA, where NPUSIM_SOC is not set */
#define SUPERNODE_SOC "Ascend910_9391" /* the same of NPUSIM_SUPERNODE */
#define HOST_MIN      (UINT64_C(128) << 20)
#define HOST_MAX      (UINT64_C(1) << SIM_HOST_LG2)

static bool soc_is_known(const char *soc, char **error)
{
	const char *const *names = sim_profile_names();
	const char *nearest = npu_nearest(soc, names, g_strv_length((char **)names));
	g_autofree char *known = g_strjoinv(", ", (char **)names);

	if (g_strv_contains(names, soc))
		return true;
	npu_text_add(error, "NPUSIM_SOC=%s: there is no such SoC%s%s%s known are %s", soc,
		     nearest != NULL ? "; is " : ";", nearest != NULL ? nearest : "",
		     nearest != NULL ? " meant?" : "", known);
	return false;
}

/* NPUSIM_SOC may be a file, such as `npusim check --calibrate` writes; the node knows the
 * SoC's name. */
static bool load_profile(struct bsim *bs, const char *soc, char **error)
{
	g_autofree char *why = NULL;
	bool is_file = strchr(soc, '/') != NULL || g_str_has_suffix(soc, ".ini");

	if (!is_file && !soc_is_known(soc, error))
		return false;
	if (sim_profile_load(soc, &bs->profile, &why)) {
		strcpy(bs->config.soc_name, is_file ? bs->profile.soc_name : soc);
		return true;
	}
	npu_text_add(error, "%s%s%s%s", is_file ? "NPUSIM_SOC=" : "",
		     is_file && !g_str_has_prefix(why, soc) ? soc : "",
		     is_file && !g_str_has_prefix(why, soc) ? ": " : "", why);
	return false;
}

static uint64_t usable_frames(const struct sim_profile *p, uint64_t hbm_bytes)
{
	return hbm_bytes == p->hbm_bytes
		       ? p->usable_frames
		       : (uint64_t)((unsigned __int128)p->usable_frames * hbm_bytes / p->hbm_bytes);
}

/* What the variable says, if it is given: *bytes. False, and *error. */
static bool read_bytes(struct bsim *bs, enum npu_var var, const char *what, uint64_t least,
		       uint64_t most, uint64_t *bytes, char **error)
{
	bool given;
	const char *text = npu_var_get(var, &given);

	if (!given)
		return true;
	bs->config.explicit_shape = true;
	if (npu_parse_size(text, bytes) && *bytes % NODE_FRAME_BYTES == 0 && *bytes >= least &&
	    *bytes <= most)
		return true;
	npu_text_add(error,
		     "%s=%s: %s is a multiple of 2 MiB from %s to %s, with a unit as in 64G; a "
		     "number alone is bytes",
		     npu_var_info(var)->name, text, what, npu_size_text(least),
		     npu_size_text(most));
	return false;
}

/* What NPUSIM_SERVER_FROM leads to; where the launcher has not set it, NPUSIM_SERVER. */
static bool read_server(struct bsim *bs, char **error)
{
	g_auto(GStrv) names = g_strsplit(npu_var_get(NPU_VAR_SERVER_FROM, NULL), "/", 2);
	const char *rank = names[0] != NULL ? getenv(names[0]) : NULL;
	const char *size = rank != NULL && names[1] != NULL ? getenv(names[1]) : NULL;
	unsigned long servers = bs->config.servers, number;

	number = strtoul(rank != NULL ? rank : npu_var_get(NPU_VAR_SERVER, NULL), NULL, 10);
	if (size != NULL && number < strtoul(size, NULL, 10))
		number = number * servers / strtoul(size, NULL, 10);
	bs->config.server = (unsigned)MIN(number, SIM_SERVERS);
	if (number < servers)
		return true;
	npu_text_add(error, "%s=%s: NPUSIM_SERVERS=%lu, so servers are numbered 0 to %lu",
		     rank != NULL ? names[0] : "NPUSIM_SERVER",
		     rank != NULL ? rank : npu_var_get(NPU_VAR_SERVER, NULL), servers, servers - 1);
	return false;
}

/* Which server of which supernode. */
static bool read_supernode(struct bsim *bs, char **error)
{
	bool named, numbered, sized;
	const char *name = npu_var_get(NPU_VAR_SUPERNODE, &named);
	const char *server = npu_var_get(NPU_VAR_SERVER, &numbered);
	const char *servers = npu_var_get(NPU_VAR_SERVERS, &sized);

	bs->no_supernode = named && strcmp(name, "none") == 0;
	bs->config.server = 0;
	bs->config.servers = 1;
	if (!named || bs->no_supernode) {
		if (numbered || sized)
			npu_text_add(error,
				     "NPUSIM_%s=%s: NPUSIM_SUPERNODE must name the supernode",
				     numbered ? "SERVER" : "SERVERS", numbered ? server : servers);
		return !numbered && !sized;
	}
	bs->config.name = name;
	bs->config.servers = (unsigned)strtoul(servers, NULL, 10);
	bs->config.explicit_shape |= sized;
	if (!bs->profile.is_910c)
		npu_text_add(
			error,
			"NPUSIM_SUPERNODE=%s: %s is in no supernode; a 910C (NPUSIM_SOC=%s) is",
			name, bs->config.soc_name, SUPERNODE_SOC);
	return *error == NULL && read_server(bs, error);
}

static bool read_shape(struct bsim *bs, char **error)
{
	bool soc_given, devices_given, named;
	const char *soc = npu_var_get(NPU_VAR_SOC, &soc_given);
	const char *devices = npu_var_get(NPU_VAR_DEVICES, &devices_given);

	(void)npu_var_get(NPU_VAR_SUPERNODE, &named);
	if (!soc_given && bs->dialect == NPU_DIALECT_CUDA)
		soc = CUDA_SOC;
	else if (!soc_given && named)
		soc = SUPERNODE_SOC;
	bs->config.name = npu_var_get(NPU_VAR_NODE, NULL);
	if (!load_profile(bs, soc, error))
		return false;
	bs->config.devices =
		devices_given ? (unsigned)strtoul(devices, NULL, 10) : bs->profile.default_devices;
	bs->config.hbm_bytes = bs->profile.hbm_bytes;
	bs->config.host_bytes = bs->profile.host_bytes;
	bs->config.explicit_shape = soc_given || devices_given;
	if (bs->config.devices < 1 || bs->config.devices > BSIM_DEVICE_MAX) {
		npu_text_add(error, "NPUSIM_DEVICES=%s: a server has 1 to %d devices", devices,
			     BSIM_DEVICE_MAX);
		return false;
	}
	bs->devices = bs->config.devices;
	if (!read_supernode(bs, error) ||
	    !read_bytes(bs, NPU_VAR_HBM, "HBM of a device", 64 * NODE_FRAME_BYTES,
			sim_profile_hbm_max(&bs->profile), &bs->config.hbm_bytes, error) ||
	    !read_bytes(bs, NPU_VAR_HOST_MEMORY, "the host's memory", HOST_MIN, HOST_MAX,
			&bs->config.host_bytes, error))
		return false;
	bs->config.usable_frames = usable_frames(&bs->profile, bs->config.hbm_bytes);
	return true;
}

drvError_t settings_set_dialect_locked(struct bsim *bs, enum npu_dialect dialect)
{
	char *error = NULL;
	bool other = bs->dialect != dialect;

	bs->dialect = dialect;
	if (!other || bs->node != NULL || read_shape(bs, &error))
		return DRV_ERROR_NONE;
	npu_message_set("npusimSetDialect: %s", error != NULL ? error : "no memory");
	free(error);
	return DRV_ERROR_OPEN_FAILED;
}

bool settings_read(struct bsim *bs, char **error)
{
	if (!npu_var_check_all(error))
		return false;
	bs->contract = strcmp(npu_var_get(NPU_VAR_CONTRACT, NULL), "driver") == 0 ? BSIM_DRIVER
										  : BSIM_DOCS;
	bs->timing = strcmp(npu_var_get(NPU_VAR_TIMING, NULL), "off") != 0;
	bs->contents = strcmp(npu_var_get(NPU_VAR_CONTENTS, NULL), "off") != 0;
	bs->poison = (uint8_t)strtoul(npu_var_get(NPU_VAR_POISON, NULL), NULL, 0);
	return read_shape(bs, error);
}

/* Takes over the shape of a node that runs: the profile, too, where the SoC is another. */
static bool settings_adopt(struct bsim *bs, const struct node_config *shape, char **error)
{
	bool other_soc = strcmp(shape->soc_name, bs->profile.soc_name) != 0;
	const char *name = bs->config.name;
	const unsigned server = bs->config.server;

	bs->config = *shape;
	bs->config.name = name;
	bs->config.server = server;
	bs->devices = shape->devices;
	return !other_soc || sim_profile_load(bs->config.soc_name, &bs->profile, error);
}

drvError_t settings_join_locked(struct bsim *bs)
{
	struct node_config config = bs->config;
	struct node *node = NULL;
	char *error = NULL;

	if (bs->node != NULL)
		return DRV_ERROR_NONE;
	if (!node_join(&config, &node, &error))
		return bsim_open_failed(error);
	if (!settings_adopt(bs, &config, &error)) {
		node_leave(node);
		return bsim_open_failed(error);
	}
	__atomic_store_n(&bs->node, node, __ATOMIC_RELEASE);
	return DRV_ERROR_NONE;
}

void settings_learn_shape_locked(struct bsim *bs)
{
	struct node_config shape;
	char *error = NULL;

	if (bs->shape_known || bs->config.explicit_shape || bs->node != NULL)
		return;
	bs->shape_known = true;
	if (node_find_shape(bs->config.name, &shape) &&
	    (shape.servers > 1) == (bs->config.servers > 1) &&
	    !settings_adopt(bs, &shape, &error)) {
		npu_log(NPU_LOG_DEBUG, "%s", error);
		free(error);
	}
}
