/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim node: shows the simulated servers of this user, as npu-smi shows a real one.
 */
#include "npusim.h"

#include "backend-sim/node/node.h"
#include "show/member.h"

static const char *amount(guint64 frames)
{
	return npu_size_words((gint64)(frames * NODE_FRAME_BYTES));
}

/* What it says that it holds, where it keeps stacks: a line for each of them; or to `json`. */
static void show_holds(const struct node_member_info *m, JsonBuilder *json)
{
	g_auto(GStrv) lines = g_strsplit(m->holds ?: "", "\n", -1);

	if (json) {
		json_text(json, "answer", m->gone ? "gone" : m->holds ? "whole" : "none");
		json_builder_set_member_name(json, "holds");
		json_builder_begin_array(json);
	} else if (m->gone || !m->holds) {
		g_print("%11s%s\n", "",
			m->gone ? "it has ended meanwhile"
				: "it does not say what it holds: it is stopped, or busy");
	}
	for (unsigned i = 0; lines[i] && *lines[i]; i++) {
		g_auto(GStrv) words = g_strsplit(lines[i], "\t", NODE_HOLDS_WORDS);

		if (g_strv_length(words) < NODE_HOLDS_WORDS)
			continue; /* another process wrote it */
		gint64 bytes = g_ascii_strtoll(words[3], NULL, 10);
		if (!json) {
			g_print("%11s%s of %s in %s %s%s by %s\n", "", npu_size_words(bytes),
				words[1], words[2], words[0], strcmp(words[2], "1") ? "s" : "",
				words[4]);
			continue;
		}
		json_builder_begin_object(json);
		json_text(json, "kind", words[0]);
		json_text(json, "memory", words[1]);
		json_number(json, "count", g_ascii_strtoull(words[2], NULL, 10));
		json_number(json, "bytes", (guint64)bytes);
		json_text(json, "by", words[4]);
		json_builder_end_object(json);
	}
	if (json)
		json_builder_end_array(json);
}

/* What devices of a server have together, and how many processes and how much of its host's memory
 * the server. */
struct sums {
	guint64 used, total, host;
	unsigned processes;
};

static struct sums sums_of(const struct node_info *node, unsigned server, unsigned first,
			   unsigned end)
{
	const struct node_usage *usage = node->usage[server], *host = &usage[SIM_NODE_HOST];
	struct sums sums = { .host = host->total_frames - host->free_frames };

	for (unsigned d = first; d < end; d++) {
		sums.used += usage[d].total_frames - usage[d].free_frames;
		sums.total += usage[d].total_frames;
	}
	for (unsigned m = 0; m < node->member_count; m++)
		sums.processes += node->members[m].server == server;
	return sums;
}

static void print_node(const struct node_info *node, gboolean processes)
{
	const char *plural = node->member_count == 1 ? "" : "es";
	gboolean alone = node->shape.servers == 1;

	if (node->shape.devices == 0) /* only its processes are known */
		g_print("node %s: another version of npusim, %u process%s\n", node->name,
			node->member_count, plural);
	else
		g_print("%s %s: %s%u x %s, %u process%s\n", alone ? "node" : "supernode",
			node->name, alone ? "" : "servers of ", node->shape.devices,
			node->shape.soc_name, node->member_count, plural);
	for (unsigned k = 0; !alone && k < node->shape.servers; k++) {
		/* a line each that is in use: 48 of them fit on a screen */
		struct sums sums = sums_of(node, k, 0, node->shape.devices);
		gboolean lost = node->lost >> k & 1;

		if (sums.processes == 0 && sums.used == 0 && !lost)
			continue;
		g_print("  server %-2u %10s used of %s, host %s, %u process%s%s\n", k,
			amount(sums.used), amount(sums.total), amount(sums.host), sums.processes,
			sums.processes == 1 ? "" : "es", lost ? ", stopped" : "");
	}
	for (unsigned d = 0; alone && d < node->shape.devices; d++) {
		struct sums sums = sums_of(node, 0, d, d + 1);

		g_print("  device %-2u %10s used of %s\n", d, amount(sums.used),
			amount(sums.total));
	}
	for (const struct node_member_info *m = node->members;
	     processes && m < node->members + node->member_count; m++) {
		g_print("  %7d  %-24s", (int)m->pid, m->command);
		if (!alone)
			g_print("  server %u", m->server);
		for (unsigned d = 0; d < node->shape.devices; d++)
			if (m->frames[d])
				g_print("  device %u: %s", d, amount(m->frames[d]));
		if (m->frames[SIM_NODE_HOST])
			g_print("  host: %s", amount(m->frames[SIM_NODE_HOST]));
		if (m->remote_frames)
			g_print("  other servers: %s", amount(m->remote_frames));
		g_print("  (%u allocations, %u exported, %u imported", m->blocks, m->exported,
			m->imported);
		if (m->kept_frames && m->kept_pid)
			g_print("; of these it keeps %s that process %d has freed",
				amount(m->kept_frames), (int)m->kept_pid);
		else if (m->kept_frames)
			g_print("; of these it keeps %s that their exporters have freed",
				amount(m->kept_frames));
		g_print(")\n");
		if (node->shape.devices) /* one of another version is not asked */
			show_holds(m, NULL);
	}
}

static void build_node(JsonBuilder *json, const struct node_info *node)
{
	gboolean alone = node->shape.servers == 1;
	unsigned count = alone ? node->shape.devices : node->shape.servers;

	json_builder_begin_object(json);
	json_text(json, "name", node->name);
	json_text(json, "soc", node->shape.devices ? node->shape.soc_name : "");
	json_builder_set_member_name(json, alone ? "devices" : "servers");
	json_builder_begin_array(json);
	for (unsigned i = 0; i < count; i++) {
		struct sums sums = alone ? sums_of(node, 0, i, i + 1)
					 : sums_of(node, i, 0, node->shape.devices);

		json_builder_begin_object(json);
		json_number(json, "used_bytes", sums.used * NODE_FRAME_BYTES);
		json_number(json, "total_bytes", sums.total * NODE_FRAME_BYTES);
		if (!alone) {
			json_number(json, "host_used_bytes", sums.host * NODE_FRAME_BYTES);
			json_number(json, "processes", sums.processes);
			json_number(json, "stopped", node->lost >> i & 1);
		}
		json_builder_end_object(json);
	}
	json_builder_end_array(json);
	json_builder_set_member_name(json, "processes");
	json_builder_begin_array(json);
	for (const struct node_member_info *m = node->members;
	     m < node->members + node->member_count; m++) {
		json_builder_begin_object(json);
		json_number(json, "pid", (guint64)m->pid);
		json_text(json, "command", m->command);
		if (!alone) {
			json_number(json, "server", m->server);
			json_number(json, "remote_bytes", m->remote_frames * NODE_FRAME_BYTES);
		}
		json_builder_set_member_name(json, "bytes"); /* by device */
		json_builder_begin_array(json);
		for (unsigned d = 0; d < node->shape.devices; d++)
			json_builder_add_int_value(json, (gint64)(m->frames[d] * NODE_FRAME_BYTES));
		json_builder_end_array(json);
		json_number(json, "host_bytes", m->frames[SIM_NODE_HOST] * NODE_FRAME_BYTES);
		json_number(json, "allocations", m->blocks);
		json_number(json, "exported", m->exported);
		json_number(json, "imported", m->imported);
		show_holds(m, json);
		json_builder_end_object(json);
	}
	json_builder_end_array(json);
	json_builder_end_object(json);
}

static gboolean problem(char *text, GError **error)
{
	refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s", text);
	free(text);
	return FALSE;
}

static gboolean list(const char *only, const char *to, GError **error)
{
	g_autoptr(JsonBuilder) json = json_builder_new();
	struct node_info *nodes;
	unsigned count, shown = 0;
	char *text = NULL;

	if (!node_list(&nodes, &count, &text))
		return problem(text, error);
	json_builder_begin_array(json);
	for (unsigned i = 0; i < count; i++) {
		if (only && g_strcmp0(only, nodes[i].name) != 0)
			continue;
		if (to)
			build_node(json, &nodes[i]);
		else
			print_node(&nodes[i], only || nodes[i].shape.servers == 1);
		shown++;
	}
	node_list_free(nodes, count);
	json_builder_end_array(json);
	if (shown == 0 && only)
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "no node '%s' is running",
			      only);
	if (to)
		return json_write(to, json, error);
	if (shown == 0)
		g_print("no node is running\n");
	return TRUE;
}

static char *reset, *json_file;
static gint64 stop = -1;

static const struct option options[] = {
	OPTION("reset", TEXT, &reset, "NAME", "end node NAME and its processes"),
	OPTION_RANGE("stop", NUMBER, &stop, 0, G_MAXUINT, "K",
		     "stop server K of supernode NAME: its processes end, its memory is lost"),
	OPTION("json", OUTPUT, &json_file, "FILE",
	       "write the list as JSON to FILE instead; - is stdout"),
	{ 0 },
};

static int run(char **words, GError **error)
{
	char *text = NULL;

	if (reset && (*words || json_file))
		return refuse_option(error, "--reset takes its one name alone, without %s",
				     json_file ? "--json" : *words);
	if (stop >= 0 && (reset || json_file || *words == NULL))
		return refuse_option(error,
				     "--stop K takes the supernode's NAME, and nothing else");
	if (stop < 0 && reset == NULL)
		return list(*words, json_file, error) ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
	if (stop >= 0 ? node_stop_server(*words, (unsigned)stop, &text) : node_reset(reset, &text))
		return NPUSIM_EXIT_OK;
	return problem(text, error);
}

VERB(node, "list the simulated servers, their processes, and who holds how much", "[NAME]",
     "Lists this user's nodes - simulated servers - with their processes and what each holds.", 0,
     1, 0, options, run, NPUSIM_EXIT_FAILED);
