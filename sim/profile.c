/* SPDX-License-Identifier: Apache-2.0
 *
 * Device profiles: one table, made of profiles/keys.ini, holds each key's group, name, type, place
 * and limits; reading, setting, dumping and checking use it. Values are in profiles/, never here.
 */
#include "profile.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "hbm/hbm-bus.h"
#include "hbm/hbm-map.h"
#include "l2/l2-cache.h"

enum kind { KIND_UNSIGNED, KIND_U32, KIND_U64, KIND_BOOL, KIND_STRING };

struct key {
	const char *group, *name;
	enum kind kind;
	size_t offset, size;
	uint64_t min, max;
	bool optional;
};

#define PLACE(member) \
	offsetof(struct sim_profile, member), sizeof(((struct sim_profile *)0)->member)
#include "sim/profile-data.h" /* keys, and the texts of the profiles that are built in */

#define BASE_DEPTH_MAX 8
#define TEXT_MAX       (1u << 20) /* of a file; profiles have some 40 KiB with their comments */

static const struct key *find_key(const char *group, const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		if (!strcmp(keys[i].group, group) && !strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

/* With a unit, or hexadecimal. */
static bool parse_number(const char *text, uint64_t *out)
{
	if (g_str_has_prefix(text, "0x"))
		return g_ascii_string_to_unsigned(text + 2, 16, 0, UINT64_MAX, out, NULL);
	return npu_parse_size(text, out);
}

/* NULL, or what is wrong. */
static char *set_value(struct sim_profile *profile, const struct key *key, const char *text)
{
	void *place = (char *)profile + key->offset;
	bool yes = !strcmp(text, "true") || !strcmp(text, "1");
	const char *wrong = NULL;
	uint64_t value;

	if (key->kind == KIND_STRING && (!*text || strlen(text) >= key->size))
		wrong = npu_text("a text of 1 to %zu characters is needed", key->size - 1);
	else if (key->kind == KIND_STRING)
		strncpy(place, text, key->size);
	else if (key->kind == KIND_BOOL && !yes && strcmp(text, "false") && strcmp(text, "0"))
		wrong = "true or false is needed";
	else if (key->kind == KIND_BOOL)
		*(bool *)place = yes;
	else if (!parse_number(text, &value))
		wrong = "a whole number is needed, with K, M, G or T behind it for powers of 1024";
	else if (value < key->min || value > key->max)
		wrong = npu_text("must be %" PRIu64 " to %" PRIu64, key->min, key->max);
	else if (key->size == sizeof(value))
		*(uint64_t *)place = value;
	else
		*(uint32_t *)place = (uint32_t)value;
	return wrong ? g_strdup_printf("%s.%s=%s: %s", key->group, key->name, text, wrong) : NULL;
}

static bool is_power_of_two(uint64_t x)
{
	return x && !(x & (x - 1));
}

/* The L2 tells so many blocks apart; more than 2 TiB nobody has asked for. */
uint64_t sim_profile_hbm_max(const struct sim_profile *p)
{
	return MIN(UINT64_C(1) << 41, p->l2_block_bytes << L2_NUMBER_BITS);
}

static char *check_l2(const struct sim_profile *p)
{
	if (!is_power_of_two(p->l2_line_bytes) || !is_power_of_two(p->l2_block_bytes) ||
	    p->l2_block_bytes < p->l2_line_bytes || p->l2_block_bytes > 32 * p->l2_line_bytes)
		return g_strdup_printf("L2.line_bytes=%" PRIu64 ", L2.block_bytes=%" PRIu64
				       ": must be powers of two, and a block 1 to 32 lines",
				       p->l2_line_bytes, p->l2_block_bytes);
	if (p->l2_bytes % (p->l2_block_bytes * p->l2_ways))
		return g_strdup_printf("SoCInfo.l2_bytes=%" PRIu64 ": must be a multiple of "
				       "L2.block_bytes x L2.ways = %" PRIu64,
				       p->l2_bytes, p->l2_block_bytes * p->l2_ways);
	if (p->hbm_bytes > sim_profile_hbm_max(p))
		return g_strdup_printf("L2.block_bytes=%" PRIu64 ": SoCInfo.hbm_bytes=%" PRIu64
				       " has more than 2^%u such blocks",
				       p->l2_block_bytes, p->hbm_bytes, L2_NUMBER_BITS);
	return NULL;
}

/* Ascend910B1's, with another geometry's bits. */
static void map_by_geometry(struct sim_profile *p, const unsigned *bits)
{
	unsigned low = MIN(bits[HBM_COLUMN], 2);

	memset(p->hbm_map, 0, sizeof(p->hbm_map));
	g_snprintf(p->hbm_map, sizeof(p->hbm_map), "o%u c%u s%u h%ux p%ux g%u c%u b%u r%u",
		   bits[HBM_OFFSET], low, bits[HBM_STACK], bits[HBM_CHANNEL], bits[HBM_PSEUDO],
		   bits[HBM_GROUP], bits[HBM_COLUMN] - low, bits[HBM_BANK], bits[HBM_ROW]);
}

/* All counts are powers of two, and the interleave has as many bits of each. */
static char *check_hbm(struct sim_profile *p)
{
	const uint64_t count[HBM_FIELDS] = {
		[HBM_OFFSET] = p->hbm_burst * 8,
		[HBM_COLUMN] = p->hbm_columns,
		[HBM_STACK] = p->hbm_stacks,
		[HBM_CHANNEL] = p->hbm_channels,
		[HBM_PSEUDO] = p->hbm_pseudo_channels,
		[HBM_GROUP] = p->hbm_bank_groups,
		[HBM_BANK] = p->hbm_banks,
		[HBM_ROW] = p->hbm_rows,
	};
	const struct sim_hbm_clocks *t = &p->hbm_clocks;
	bool single = p->hbm_refresh_per_bank;
	uint64_t interval = single ? t->refi_sb * p->hbm_bank_groups * p->hbm_banks : t->refi;
	uint64_t served = MAX(t->rcd_rd + t->rtp, t->rcd_wr + t->cwl + p->hbm_burst / 2 + t->wr) +
			  1 + BUS_BURSTS * (t->ccd_l + MAX(p->hbm_burst / 2, t->ccd_s));
	uint64_t refresh = (single ? t->rfc_sb : t->rfc) + t->rp + MAX(t->ras, served);
	unsigned bits[HBM_FIELDS];
	struct hbm_map map;
	char *problem;

	if (t->ccd_l > BUS_STEP * MAX(1, t->ccd_s))
		return g_strdup_printf("HBM.ccd_l_tck=%" PRIu64
				       ": must be at most %u x ccd_s_tck=%" PRIu64,
				       t->ccd_l, BUS_STEP, t->ccd_s);
	for (unsigned f = 0; f < HBM_FIELDS; f++) {
		if (!is_power_of_two(count[f]))
			return g_strdup("HBM: stacks, channels, bank_groups, banks, columns, rows "
					"and burst_length must be powers of two");
		bits[f] = (unsigned)__builtin_ctzll(count[f]);
	}
	if (p->hbm_refresh && interval <= refresh)
		return g_strdup_printf("HBM.%s: a bank's refreshes are %" PRIu64 " clocks apart: "
				       "must be more than %" PRIu64 ", %s + rp_tck + what a row "
				       "is open for",
				       single ? "refi_sb_tck" : "refi_tck", interval, refresh,
				       single ? "rfc_sb_tck" : "rfc_tck");
	if (!strcmp(p->hbm_map, "auto"))
		map_by_geometry(p, bits);
	(void)hbm_map_init(&map, p->hbm_map, bits, &problem);
	return problem;
}

/* What the values must be to one another; what follows from them is set. NULL, or what is wrong. */
static char *check_profile(struct sim_profile *p)
{
	g_auto(GStrv) words = g_strsplit(p->near_nodes, " ", -1);
	uint64_t node;

	memset(p->near_node, -1, sizeof(p->near_node));
	for (unsigned i = 0; strcmp(p->near_nodes, "none") != 0 && words[i]; i++) {
		if (!parse_number(words[i], &node) || node >= p->host_numa_nodes)
			return g_strdup_printf("SoCInfo.near_nodes=%s: must be a node for each "
					       "device, below host_numa_nodes=%u, or none",
					       p->near_nodes, p->host_numa_nodes);
		p->near_node[i] = (int8_t)node;
	}
	if (p->tlb_l2_entries % p->tlb_l2_ways)
		return g_strdup_printf(
			"MMU.tlb_l2_entries=%u: must be a multiple of tlb_l2_ways=%u",
			p->tlb_l2_entries, p->tlb_l2_ways);
	if (p->usable_frames > p->hbm_bytes >> 21)
		return g_strdup_printf("SoCInfo.usable_frames=%" PRIu64 ": hbm_bytes=%" PRIu64
				       " has %" PRIu64 " frames of 2 MiB",
				       p->usable_frames, p->hbm_bytes, p->hbm_bytes >> 21);
	return check_l2(p) ?: check_hbm(p);
}

static char *unknown_key(const char *name, const char *group)
{
	const char *known[G_N_ELEMENTS(keys) + 2] = { "base" };
	size_t count = !strcmp(group, "Profile");
	g_autofree char *list = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		if (!strcmp(keys[i].group, group))
			known[count++] = keys[i].name;
	known[count] = NULL;
	list = g_strjoinv(" ", (char **)known);
	return g_strdup_printf("unknown key \"%s\" in group [%s]; known are %s%s", name, group,
			       list, npu_meant(name, known, count, ""));
}

static char *check_names(GKeyFile *file)
{
	g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);

	for (size_t g = 0; groups[g]; g++) {
		g_auto(GStrv) names = g_key_file_get_keys(file, groups[g], NULL, NULL);
		bool own = !strcmp(groups[g], "Profile"), known = own;

		for (size_t i = 0; i < G_N_ELEMENTS(keys) && !known; i++)
			known = !strcmp(keys[i].group, groups[g]);
		if (!known)
			return g_strdup_printf("unknown group [%s]; known are Profile, SoCInfo, "
					       "MMU, HBM, L2, Engine, Link, DriverCalls",
					       groups[g]);
		for (size_t i = 0; names[i]; i++)
			if (!find_key(groups[g], names[i]) && !(own && !strcmp(names[i], "base")))
				return unknown_key(names[i], groups[g]);
	}
	return NULL;
}

/* NULL, or what is wrong. Texts that are built in have depth 1 and more. */
static char *load_text(const char *text, struct sim_profile *out, unsigned depth);

/* The built-in text's profile. NULL, or what is wrong. */
static char *load_builtin(const char *name, struct sim_profile *out, unsigned depth)
{
	const char *const *names = sim_profile_names();
	g_autofree char *known = NULL;

	for (size_t i = 0; sim_profile_data[i].name; i++)
		if (!strcmp(sim_profile_data[i].name, name))
			return load_text(sim_profile_data[i].text, out, depth);
	known = g_strjoinv(", ", (char **)names);
	return g_strdup_printf("there is no SoC %s; known are %s%s", name, known,
			       npu_meant(name, names, g_strv_length((char **)names), ""));
}

static char *load_text(const char *text, struct sim_profile *out, unsigned depth)
{
	g_autoptr(GKeyFile) file = g_key_file_new();
	g_autoptr(GError) error = NULL;
	g_autofree char *base = NULL;
	char *problem = NULL;

	if (!g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, &error))
		return g_strdup(error->message);
	memset(out, 0, sizeof(*out));
	base = g_key_file_get_string(file, "Profile", "base", NULL);
	if (base && depth >= BASE_DEPTH_MAX)
		return g_strdup_printf("[Profile] base=%s: more than %d profiles in a chain", base,
				       BASE_DEPTH_MAX);
	if (base)
		problem = load_builtin(g_strchomp(base), out, depth + 1);
	problem = problem ?: (depth == 0 ? check_names(file) : NULL);
	for (const struct key *key = keys; !problem && key < keys + G_N_ELEMENTS(keys); key++) {
		g_autofree char *value = g_key_file_get_value(file, key->group, key->name, NULL);

		if (value)
			problem = set_value(out, key, g_strchomp(value));
		else if (!base && !key->optional)
			problem = g_strdup_printf("key \"%s\" is missing in group [%s], and "
						  "[Profile] names no base",
						  key->name, key->group);
	}
	return problem ?: check_profile(out);
}

/* Takes problem. */
static bool answer(char *problem, const char *where, char **error)
{
	if (!problem)
		return true;
	if (error)
		*error = where ? g_strdup_printf("%s: %s", where, problem) : g_strdup(problem);
	g_free(problem);
	return false;
}

const char *const *sim_profile_names(void)
{
	return sim_profile_data_names;
}

/* The whole of a file; NULL: *problem says why. What is no plain file may have no end. */
static char *read_text(const char *path, char **problem)
{
	g_autofree char *text = g_malloc0(TEXT_MAX + 1);
	FILE *file = fopen(path, "re");

	if (file && fread(text, 1, TEXT_MAX, file) == TEXT_MAX)
		*problem = g_strdup_printf("%u bytes or more: it is no profile", TEXT_MAX);
	else if (!file || ferror(file))
		*problem = g_strdup(g_strerror(errno));
	if (file)
		fclose(file);
	return *problem ? NULL : g_steal_pointer(&text);
}

bool sim_profile_load(const char *name, struct sim_profile *out, char **error)
{
	bool is_file = strchr(name, '/') || g_str_has_suffix(name, ".ini");
	struct sim_profile profile;
	char *problem = NULL;
	g_autofree char *text = is_file ? read_text(name, &problem) : NULL;

	if (!problem)
		problem = text ? load_text(text, &profile, 0) : load_builtin(name, &profile, 1);
	if (!answer(problem, name, error))
		return false;
	*out = profile;
	return true;
}

static char *set_dotted(struct sim_profile *profile, const char *assignment)
{
	g_auto(GStrv) words = g_strsplit_set(assignment, ".=", 3);
	const struct key *key = g_strv_length(words) == 3 ? find_key(words[0], words[1]) : NULL;

	if (key)
		return set_value(profile, key, words[2]);
	if (!strchr(assignment, '='))
		return g_strdup_printf("\"%s\": Group.key=value is needed, such as "
				       "MMU.tlb_l2_entries=4096",
				       assignment);
	g_autofree char *asked = g_strndup(assignment, strcspn(assignment, "="));
	g_autoptr(GPtrArray) known = g_ptr_array_new_with_free_func(g_free);
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		g_ptr_array_add(known, g_strconcat(keys[i].group, ".", keys[i].name, NULL));
	const char *const *names = (const char *const *)known->pdata;
	const char *key_alone = strchr(asked, '.');
	const char *meant = npu_meant(asked, names, known->len, "");

	if (!*meant && key_alone)
		meant = npu_meant(key_alone + 1, names, known->len, "");
	return g_strdup_printf("\"%s\": there is no such key; 'npusim profile keys' lists them%s",
			       assignment, meant);
}

bool sim_profile_set(struct sim_profile *profile, char *const *assignments, char **error)
{
	struct sim_profile changed = *profile;
	char *problem = NULL;

	while (!problem && *assignments)
		problem = set_dotted(&changed, *assignments++);
	if (!problem)
		problem = check_profile(&changed);
	if (!answer(problem, NULL, error))
		return false;
	*profile = changed;
	return true;
}

static void dump_value(GString *text, const struct sim_profile *profile, const struct key *key)
{
	const void *place = (const char *)profile + key->offset;

	g_string_append_printf(text, "%s=", key->name);
	if (key->kind == KIND_STRING)
		g_string_append(text, place);
	else if (key->kind == KIND_BOOL)
		g_string_append(text, *(const bool *)place ? "true" : "false");
	else if (key->kind == KIND_U64)
		g_string_append_printf(text, "%" PRIu64, *(const uint64_t *)place);
	else
		g_string_append_printf(text, key->kind == KIND_U32 ? "0x%" PRIx32 : "%" PRIu32,
				       *(const uint32_t *)place);
	g_string_append_c(text, '\n');
}

char *sim_profile_dump(const struct sim_profile *profile)
{
	GString *text = g_string_new(NULL);
	const char *group = "";

	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
		if (strcmp(group, keys[i].group) != 0) {
			group = keys[i].group;
			g_string_append_printf(text, "%s[%s]\n", text->len ? "\n" : "", group);
		}
		dump_value(text, profile, &keys[i]);
	}
	return g_string_free(text, FALSE);
}

uint64_t sim_call_ps(const struct sim_profile *profile, enum sim_call call, uint64_t pages,
		     unsigned page_lg2)
{
	const struct sim_call_cost *cost = &profile->call[call];
	uint64_t units = page_lg2 >= 30 ? pages * cost->giant_units : pages;
	uint64_t per_message = cost->pages_per_message ? cost->pages_per_message : 1;
	uint64_t messages = !page_lg2              ? 0
			    : units <= per_message ? units != 0
						   : (units - 1) / per_message + 1;
	uint64_t head = units < cost->head_pages ? units : cost->head_pages;

	return (cost->base_ns + messages * cost->message_ns + units * cost->page_ns +
		head * cost->head_page_ns) *
	       1000;
}
