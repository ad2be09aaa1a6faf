/* SPDX-License-Identifier: Apache-2.0
 *
 * npusim node: shows the simulated servers of this user, as npu-smi shows a real one.
 */
#include "npusim.h"

#include "backend-sim/node/node.h"
#include "show/member.h"

/* Each node goes to the text, which people read, and to the JSON; one of them is shown. */
static GString *text;
static JsonBuilder *json;
#define put(...) g_string_append_printf(text, __VA_ARGS__)

static const char *amount(guint64 frames)
{
	return npu_size_words(frames * NODE_FRAME_BYTES);
}

static void add_amount(const char *name, guint64 frames)
{
	json_number(json, name, frames * NODE_FRAME_BYTES);
}

/* What it says that it holds, where it keeps stacks. */
static void add_holds(const struct node_member_info *m)
{
	g_auto(GStrv) lines = g_strsplit(m->holds ?: "", "\n", -1);

	json_text(json, "answer", m->gone ? "gone" : m->holds ? "whole" : "none");
	if (m->gone || !m->holds)
		put("%11s%s\n", "",
		    m->gone ? "it has ended meanwhile"
			    : "it does not say what it holds: it is stopped, or busy");
	json_list(json, "holds");
	for (unsigned i = 0; lines[i] && *lines[i]; i++) {
		g_auto(GStrv) words = g_strsplit(lines[i], "\t", NODE_HOLDS_WORDS);

		if (g_strv_length(words) < NODE_HOLDS_WORDS)
			continue; /* another process wrote it */
		gint64 bytes = g_ascii_strtoll(words[3], NULL, 10);
		put("%11s%s of %s in %s %s%s by %s\n", "", npu_size_words(bytes), words[1],
		    words[2], words[0], strcmp(words[2], "1") ? "s" : "", words[4]);
		json_builder_begin_object(json);
		json_text(json, "kind", words[0]);
		json_text(json, "memory", words[1]);
		json_number(json, "count", g_ascii_strtoull(words[2], NULL, 10));
		json_number(json, "bytes", (guint64)bytes);
		json_text(json, "by", words[4]);
		json_builder_end_object(json);
	}
	json_builder_end_array(json);
}

static void add_process(const struct node_info *node, const struct node_member_info *m)
{
	gboolean alone = node->shape.servers == 1;

	json_builder_begin_object(json);
	json_number(json, "pid", (guint64)m->pid);
	json_text(json, "command", m->command);
	put("  %7d  %-24s", (int)m->pid, m->command);
	if (!alone) {
		put("  server %u", m->server);
		json_number(json, "server", m->server);
		add_amount("remote_bytes", m->remote_frames);
	}
	json_list(json, "bytes"); /* by device */
	for (unsigned d = 0; d < node->shape.devices; d++) {
		json_builder_add_int_value(json, (gint64)(m->frames[d] * NODE_FRAME_BYTES));
		if (m->frames[d])
			put("  device %u: %s", d, amount(m->frames[d]));
	}
	json_builder_end_array(json);
	add_amount("host_bytes", m->frames[SIM_NODE_HOST]);
	json_number(json, "allocations", m->blocks);
	json_number(json, "exported", m->exported);
	json_number(json, "imported", m->imported);
	if (m->frames[SIM_NODE_HOST])
		put("  host: %s", amount(m->frames[SIM_NODE_HOST]));
	if (m->remote_frames)
		put("  other servers: %s", amount(m->remote_frames));
	put("  (%s, %u exported, %u imported", npu_counted(m->blocks, "allocation"), m->exported,
	    m->imported);
	if (m->kept_frames)
		put("; of these it keeps %s that %s freed", amount(m->kept_frames),
		    m->kept_pid ? npu_text("process %d has", (int)m->kept_pid)
				: "their exporters have");
	g_string_append(text, ")\n");
	gsize end = text->len;
	add_holds(m);
	if (*node->refused) /* they are not asked */
		g_string_truncate(text, end);
	json_builder_end_object(json);
}

/* Of a device, or of a server with all its devices. */
static void add_place(const struct node_info *node, unsigned place)
{
	gboolean alone = node->shape.servers == 1;
	const struct node_usage *usage = node->usage[alone ? 0 : place];
	unsigned end = alone ? place + 1 : node->shape.devices, processes = 0;
	guint64 used = 0, total = 0, lost = node->lost >> place & 1;
	guint64 host = usage[SIM_NODE_HOST].total_frames - usage[SIM_NODE_HOST].free_frames;

	for (unsigned d = alone ? place : 0; d < end; d++) {
		used += usage[d].total_frames - usage[d].free_frames;
		total += usage[d].total_frames;
	}
	for (unsigned m = 0; m < node->member_count; m++)
		processes += node->members[m].server == place;
	json_builder_begin_object(json);
	add_amount("used_bytes", used);
	add_amount("total_bytes", total);
	if (alone) {
		put("  device %-2u %10s used of %s\n", place, amount(used), amount(total));
	} else {
		add_amount("host_used_bytes", host);
		json_number(json, "processes", processes);
		json_number(json, "stopped", lost);
	}
	/* a line each that is in use: 48 of them fit on a screen */
	if (!alone && (processes || used || lost))
		put("  server %-2u %10s used of %s, host %s, %s%s\n", place, amount(used),
		    amount(total), amount(host), npu_counted(processes, "process"),
		    lost ? ", stopped" : "");
	json_builder_end_object(json);
}

static void add_node(const struct node_info *node, gboolean processes)
{
	const char *members = npu_counted(node->member_count, "process");
	gboolean alone = node->shape.servers == 1, known = !*node->refused;

	json_builder_begin_object(json);
	json_text(json, "name", node->name);
	json_text(json, "soc", known ? node->shape.soc_name : "");
	if (known)
		put("%s %s: %s%u x %s, %s\n", alone ? "node" : "supernode", node->name,
		    alone ? "" : "servers of ", node->shape.devices, node->shape.soc_name, members);
	else /* only its processes are known */
		put("%s\n", node->refused);
	json_list(json, alone ? "devices" : "servers");
	for (unsigned i = 0; i < (alone ? node->shape.devices : node->shape.servers); i++)
		add_place(node, i);
	json_builder_end_array(json);
	json_list(json, "processes");
	gsize end = text->len;
	for (unsigned i = 0; i < node->member_count; i++)
		add_process(node, &node->members[i]);
	if (!processes)
		g_string_truncate(text, end);
	json_builder_end_array(json);
	json_builder_end_object(json);
}

static gboolean list(const char *only, const char *to, GError **error)
{
	struct node_info *nodes;
	unsigned count, shown = 0;
	g_autofree char *said = NULL;

	if (!node_list(NULL, &nodes, &count, &said))
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s", said);
	text = g_string_new(NULL);
	json = json_builder_new();
	json_builder_begin_array(json);
	for (unsigned i = 0; i < count; i++) {
		if (only && g_strcmp0(only, nodes[i].name) != 0)
			continue;
		add_node(&nodes[i], only || nodes[i].shape.servers == 1);
		shown++;
	}
	node_list_free(nodes, count);
	json_builder_end_array(json);
	if (shown == 0 && only)
		return refuse(error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "no node '%s' is running",
			      only);
	if (to)
		return json_write(to, json, error);
	g_print("%s", shown ? text->str : "no node is running\n");
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
	g_autofree char *said = NULL;

	if (reset && (*words || json_file))
		return refuse_option(error, "--reset takes its one name alone, without %s",
				     json_file ? "--json" : *words);
	if (stop >= 0 && (reset || json_file || *words == NULL))
		return refuse_option(error,
				     "--stop K takes the supernode's NAME, and nothing else");
	if (stop < 0 && reset == NULL)
		return list(*words, json_file, error) ? NPUSIM_EXIT_OK : NPUSIM_EXIT_FAILED;
	if (stop >= 0 ? node_stop_server(*words, (unsigned)stop, &said) : node_reset(reset, &said))
		return NPUSIM_EXIT_OK;
	return refuse(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s", said);
}

VERB(node, "list the simulated servers, their processes, and who holds how much", "[NAME]",
     "Lists this user's nodes - simulated servers - with their processes and what each holds.", 0,
     1, 0, options, run);
