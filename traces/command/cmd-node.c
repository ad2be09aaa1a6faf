/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim node: shows the simulated servers of this user, as npu-smi shows a real one.
 */
#include "npusim.h"

#include <stdlib.h>

#include "backend-sim/node/node.h"
#include "base/base.h"
#include "show/member.h"

static const char *amount(guint64 frames)
{
	return npu_size_words((gint64)(frames * NODE_FRAME_BYTES));
}

static void print_member(const struct node_info *node, const struct node_member_info *m)
{
	g_print("  %7d  %-24s", (int)m->pid, m->command);
	for (unsigned d = 0; d < node->shape.devices; d++) {
		if (m->frames[d])
			g_print("  device %u: %s", d, amount(m->frames[d]));
	}
	if (m->frames[SIM_NODE_HOST])
		g_print("  host: %s", amount(m->frames[SIM_NODE_HOST]));
	g_print("  (%u allocations, %u exported, %u imported", m->blocks, m->exported, m->imported);
	if (m->kept_frames && m->kept_pid)
		g_print("; of these it keeps %s that process %d has freed", amount(m->kept_frames),
			(int)m->kept_pid);
	else if (m->kept_frames)
		g_print("; of these it keeps %s that their exporters have freed",
			amount(m->kept_frames));
	g_print(")\n");
}

static void print_node(const struct node_info *node)
{
	if (node->shape.devices == 0) /* only its processes are known */
		g_print("node %s: another version of npusim, %u process%s\n", node->name,
			node->member_count, node->member_count == 1 ? "" : "es");
	else
		g_print("node %s: %u x %s, %u process%s\n", node->name, node->shape.devices,
			node->shape.soc_name, node->member_count,
			node->member_count == 1 ? "" : "es");
	for (unsigned d = 0; d < node->shape.devices; d++) {
		const struct node_usage *u = &node->usage[d];
		g_print("  device %-2u %10s used of %s\n", d,
			amount(u->total_frames - u->free_frames), amount(u->total_frames));
	}
	for (unsigned m = 0; m < node->member_count; m++)
		print_member(node, &node->members[m]);
}

static void build_member(JsonBuilder *json, const struct node_info *node,
			 const struct node_member_info *m)
{
	json_builder_begin_object(json);
	json_number(json, "pid", (guint64)m->pid);
	json_text(json, "command", m->command);
	json_builder_set_member_name(json, "bytes"); /* by device */
	json_builder_begin_array(json);
	for (unsigned d = 0; d < node->shape.devices; d++)
		json_builder_add_int_value(json, (gint64)(m->frames[d] * NODE_FRAME_BYTES));
	json_builder_end_array(json);
	json_number(json, "host_bytes", m->frames[SIM_NODE_HOST] * NODE_FRAME_BYTES);
	json_number(json, "allocations", m->blocks);
	json_number(json, "exported", m->exported);
	json_number(json, "imported", m->imported);
	json_builder_end_object(json);
}

static void build_node(JsonBuilder *json, const struct node_info *node)
{
	json_builder_begin_object(json);
	json_text(json, "name", node->name);
	json_text(json, "soc", node->shape.devices ? node->shape.soc_name : "");
	json_builder_set_member_name(json, "devices");
	json_builder_begin_array(json);
	for (unsigned d = 0; d < node->shape.devices; d++) {
		const struct node_usage *u = &node->usage[d];
		json_builder_begin_object(json);
		json_number(json, "used_bytes",
			    (u->total_frames - u->free_frames) * NODE_FRAME_BYTES);
		json_number(json, "total_bytes", u->total_frames * NODE_FRAME_BYTES);
		json_builder_end_object(json);
	}
	json_builder_end_array(json);
	json_builder_set_member_name(json, "processes");
	json_builder_begin_array(json);
	for (unsigned m = 0; m < node->member_count; m++)
		build_member(json, node, &node->members[m]);
	json_builder_end_array(json);
	json_builder_end_object(json);
}

static int list(const char *only, const char *to)
{
	g_autoptr(JsonBuilder) json = json_builder_new();
	g_autoptr(GError) error = NULL;
	struct node_info *nodes;
	unsigned count, shown = 0;
	char *text = NULL;

	if (!node_list(&nodes, &count, &text)) {
		failure("node", "%s", text);
		free(text);
		return NPUSIM_EXIT_FAILED;
	}
	json_builder_begin_array(json);
	for (unsigned i = 0; i < count; i++) {
		if (only && g_strcmp0(only, nodes[i].name) != 0)
			continue;
		if (to)
			build_node(json, &nodes[i]);
		else
			print_node(&nodes[i]);
		shown++;
	}
	node_list_free(nodes, count);
	json_builder_end_array(json);
	if (shown == 0 && only)
		return failure("node", "no node '%s' is running", only);
	g_autoptr(JsonNode) root = json_builder_get_root(json);
	if (to)
		return json_write(to, root, &error) ? NPUSIM_EXIT_OK : failure_of("node", error);
	if (shown == 0)
		g_print("no node is running\n");
	return NPUSIM_EXIT_OK;
}

int cmd_node(int argc, char **argv)
{
	g_autofree char *reset = NULL, *json = NULL;
	const GOptionEntry entries[] = {
		{ "reset", 0, 0, G_OPTION_ARG_STRING, &reset, "end node NAME and its processes",
		  "NAME" },
		{ "json", 0, 0, G_OPTION_ARG_FILENAME, &json,
		  "write the list as JSON to FILE instead; - is stdout", "FILE" },
		{ NULL, 0, 0, 0, NULL, NULL, NULL },
	};
	int status = NPUSIM_EXIT_OK;
	char *text = NULL;

	if (!parse_options("[NAME]",
			   "Lists this user's nodes - simulated servers - with their processes and "
			   "what each holds.",
			   entries, OPTIONS_OWN, &argc, &argv, &status))
		return status;
	if (argc > 2 || (argc > 1 && reset))
		return usage_error("node", "one name at a time");
	if (reset && json)
		return usage_error("node", "--json writes a list, and --reset shows none");
	if (reset == NULL)
		return list(argc > 1 ? argv[1] : NULL, json);
	if (node_reset(reset, &text))
		return NPUSIM_EXIT_OK;
	failure("node", "%s", text);
	free(text);
	return NPUSIM_EXIT_FAILED;
}
