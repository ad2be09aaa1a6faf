/* SPDX-License-Identifier: Apache-2.0
 *
 * What results of replays hold, beside each other: figures, memory over events, calls, translation,
 * and the moments that each has. What a result does not have is left out.
 */
const results = JSON.parse(document.getElementById('data').textContent);
const several = results.length > 1;
const SHOWN_FIRST = 4; /* of many results */
const shown = new Set(results.map((r, i) => i).slice(0, results.length > 8 ? SHOWN_FIRST : results.length));

/* What tells the results apart: the policy, and what was set; the file where that is not enough. */
function names() {
	const settings = (r) => Object.entries(r.options || {}).map(([k, v]) => k + '=' + v).join(' ');
	const file = (r) => String(r.file || 'result').replace(/.*\//, '');
	const files = new Set(results.map(file));
	const pages = new Set(results.map((r) => r.page).filter(Boolean));
	return results.map((r) => {
		const what = [files.size > 1 || !r.policy ? file(r) : '', r.policy || '',
			      r.page && (pages.size > 1 || r.page !== '2m') ? r.page.toUpperCase() + ' pages' : '', settings(r)];
		return what.filter(Boolean).join(', ');
	}).map((name, i, all) => all.indexOf(name) === all.lastIndexOf(name) ? name
				 : name + ' (' + (results[i].result_file || i + 1) + ')');
}
const title = names();
const numbers = [...new Set(results.flatMap((r) => (r.devices || []).map((d) => d.device)))]
	.sort((a, b) => a - b);

/* Devices of the results that are shown, and what of them has something. */
function everyDevice(has) {
	return numbers.flatMap((number) => results.map((result, index) => ({ result, index, number,
		device: (result.devices || []).find((d) => d.device === number) })))
		.filter((e) => e.device && shown.has(e.index) && (!has || has(e.device)));
}
const nameOf = (e) => [several ? title[e.index] : '', numbers.length > 1 ? 'device ' + e.number : ''].filter(Boolean).join(' · ');
function heading(e, more) {
	const text = [nameOf(e), more || ''].filter(Boolean).join(' · ');
	return text ? element('h3', {}, several ? mark(e.index) : null, text) : null;
}
const paintOf = (index) => 'c' + (index % 6 + 1);
function columns(device) {
	const series = device.series || {};
	return Object.keys(series).filter((k) => /_bytes$/.test(k) && Array.isArray(series[k]) && series[k].length > 0);
}
const points = (device, column) => device.series[column].map((y, i) => ({ x: device.series.event[i], y }));
const hasSeries = (device) => device.series && Array.isArray(device.series.event) && columns(device).length > 0;
const tellsLive = (device) => device.fragmentation !== undefined;
const ORDER = ['live_bytes', 'physical_bytes', 'reserved_bytes', 'mapped_bytes'], FRAGMENTS = ['external_bytes', 'internal_bytes', 'page_rounding_bytes'];
const label = (column) => words(column) + ({ external_bytes: ': free between blocks', internal_bytes: ': lost inside blocks' }[column] || '');
const WHEN = { peak: 'Peak', oom: 'Out of memory', end: 'End' };
const when = (m) => WHEN[m.moment] || 'Event ' + count(m.event);
const moment = (device, what) => (Array.isArray(device.moments) ? device.moments : []).find((m) => m.moment === what);
const told = (device, what) => short_path((moment(device, what) || {}).words || '');

/* ---- parts of the page: each answers its elements, or none ---- */

function outOfMemoryWords(d, r) {
	/* of the same file on as large a device */
	const roomy = results.filter((other) => other !== r && other.file === r.file && other.complete !== false)
		.filter((other) => (other.devices || []).some((e) => e.device === d.device && !e.out_of_memory &&
			e.device_bytes !== undefined && e.device_bytes <= d.device_bytes));
	return told(d, 'oom') + (roomy.length === 0 ? '' :
		' With ' + roomy.map((other) => title[results.indexOf(other)]).join(' and with ') + ' there was room for all.');
}
function summary() {
	return [element('div', { class: 'grid' }, ...everyDevice().map((e) => element('div', { class: 'card' }, heading(e),
		figures([['peak physical', bytes(e.device.peak_physical_bytes)], ['peak live', tellsLive(e.device) ? bytes(e.device.peak_live_bytes) : 'not told'],
			 ['held but not live', tellsLive(e.device) ? percent(e.device.fragmentation) : 'not told'],
			 ['VMM calls', count(e.device.vmm_calls)], ['time in them', time(e.device.vmm_time_ns)]]),
		element('p', {}, told(e.device, 'peak')),
		e.device.out_of_memory ? element('p', { class: 'alarm' }, outOfMemoryWords(e.device, e.result)) : null,
		e.result.complete === false ? element('p', { class: 'alarm' }, 'The replay was interrupted after ' +
			plural(e.result.events_done, 'event') + ': these figures are partial.') : null)))];
}

function memoryCharts() {
	const list = everyDevice((d) => hasSeries(d) && !timelines.has(d));
	const of = (d) => columns(d).filter((c) => !FRAGMENTS.includes(c) && (c !== 'live_bytes' || tellsLive(d) || most(d.series[c]) > 0))
		.sort((a, b) => (ORDER.indexOf(a) + 9) % 9 - (ORDER.indexOf(b) + 9) % 9)
		/* address space is far larger than memory: drawn only where it does not hide it */
		.filter((c) => c !== 'reserved_bytes' || most(d.series[c]) < 1.5 * d.peak_physical_bytes);
	const top = most(list.flatMap((e) => of(e.device).map((c) => most(e.device.series[c]))));
	const last = most(list.map((e) => most(e.device.series.event)));
	/* live memory has the colour of its result; what is around it stays plain */
	const paint = (c, i, index) => !several ? { colour: paintOf(i) } : c === 'live_bytes' ? { colour: paintOf(index) }
		: c === 'physical_bytes' ? { colour: 'text' } : { colour: 'quiet', dash: true };
	return list.length === 0 ? [] : ['Live is what the program had asked for and not given back; physical is what the device had handed out for it; reserved is the addresses that were taken.' +
		(list.length > 1 ? ' All charts have the same scale.' : ''),
	element('div', { class: 'grid' }, ...list.map((e) => element('div', { class: 'card' }, heading(e),
		lines('Memory over time, ' + nameOf(e), of(e.device).map((c, i) => ({ label: label(c), points: points(e.device, c),
			fill: c === 'live_bytes', ...paint(c, i, e.index) })), bytes, top, last),
		columns(e.device).includes('reserved_bytes') && !of(e.device).includes('reserved_bytes')
			? element('p', { class: 'quiet small' }, 'Reserved addresses, beyond this scale: up to ' + bytes(most(e.device.series.reserved_bytes)) + '.') : null)))];
}

/* Shares of physical memory that no live block used, one line a result; and the kinds of each. */
function fragmentation() {
	const list = everyDevice((d) => hasSeries(d) && d.series.live_bytes && d.series.physical_bytes && tellsLive(d));
	const kinds = (d) => FRAGMENTS.filter((c) => columns(d).includes(c));
	const with_kinds = list.filter((e) => kinds(e.device).length > 0), last = most(list.map((e) => most(e.device.series.event)));
	const top = most(with_kinds.flatMap((e) => kinds(e.device).map((c) => most(e.device.series[c]))));
	const share = (s) => s.event.map((x, i) => ({ x, y: s.physical_bytes[i] > 0 ? Math.max(0, 1 - s.live_bytes[i] / s.physical_bytes[i]) : 0 }));
	return list.length === 0 ? [] : ['The share of physical memory that held no live block: cached or stranded by the allocator, or lost to rounding.',
		element('div', { class: 'grid' }, ...[...new Set(list.map((e) => e.number))].map((number) => {
			const sets = list.filter((e) => e.number === number).map((e) => ({ label: nameOf(e) || 'Not live', colour: paintOf(e.index), points: share(e.device.series) }));
			return element('div', { class: 'card' }, numbers.length > 1 ? element('h3', {}, 'Device ' + number) : null,
				lines('Fragmentation over time, device ' + number, sets, percent, Math.max(0.1, ...sets.map((s) => most(s.points.map((p) => p.y)))), last));
		}), ...with_kinds.map((e) => element('div', { class: 'card' }, heading(e, 'Fragmentation by kind'),
			lines('Kinds of fragmentation, ' + nameOf(e), kinds(e.device).map((c, i) => ({ label: label(c), points: points(e.device, c),
				colour: ['c2', 'c4', 'c5'][i], fill: true })), bytes, Math.max(1, top), last))))];
}

/* Bars are as long as the largest of their column. */
function calls() {
	const list = everyDevice((d) => Object.keys(d.vmm_calls_by_kind || {}).length > 0);
	const every = list.flatMap((e) => Object.entries(e.device.vmm_calls_by_kind).map(([kind, c]) => ({ e, kind, ...c })));
	const mean = (c) => c.calls ? c.time_ns / c.calls : 0, longest = most(every.map((c) => c.time_ns)), slowest = most(every.map(mean));
	const rows = list.flatMap((e) => [...(nameOf(e) ? [{ group: nameOf(e) }] : []), ...every.filter((c) => c.e === e).map((c) => {
		const l = c.latency || {};
		return [c.kind, count(c.calls), count(c.refused), bar(c.time_ns / longest, time(c.time_ns)), c.calls ? bar(mean(c) / slowest, time(mean(c))) : '–',
			...['min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns'].map((p) => l[p] === undefined ? '–' : time(l[p]))];
	})]);
	return list.length === 0 ? [] : ['Simulated time of the calls since the recording began, as the model of the driver has them.',
		element('div', { class: 'card' }, table(['Function', 'Calls', 'Refused', 'Time', 'Mean', 'Shortest', 'Median', '90 %', '99 %', 'Longest'], rows, 'calls by function')),
		latency(every.filter((c) => c.latency))];
}
/* How many calls of a function took how long, a function at a time. */
function latency(every) {
	const kinds = [...new Set(every.map((c) => c.kind))], body = element('div', {});
	const show = (kind) => {
		const of = every.filter((c) => c.kind === kind), ends = [...new Set(of.flatMap((c) => c.latency.histogram.up_to_ns))].sort((a, b) => a - b);
		const calls = ({ latency: { histogram: h } }, end) => h.calls[h.up_to_ns.indexOf(end)] || 0, top = most(of.flatMap((c) => c.latency.histogram.calls));
		body.replaceChildren(table(['Calls that took up to', ...heads(of.map((c) => c.e))],
			ends.map((end) => [time(end), ...of.map((c) => bar(calls(c, end) / top, count(calls(c, end))))]), 'latency of ' + kind));
	};
	if (kinds.length === 0)
		return null;
	show(kinds[0]);
	return element('div', { class: 'card' }, element('h3', {}, 'How long calls took'), choice('Function', kinds.map((k) => [k, k]), kinds[0], show), body);
}

/* What the reads of --access come to, from their counts. */
function derived(a) {
	const share = (part, all) => all > 0 ? bar(part / all, percent(part / all)) : '–';
	return [['Requests to the TLBs', count(a.tlb_requests || 0)], ['TLB misses', share(a.tlb_misses, a.tlb_hits + a.tlb_misses)],
		['Page walks', count(a.walks || 0)], ['HBM rows that were open', share(a.row_hits, a.row_hits + a.row_misses)],
		['Read by the program', bytes(a.bytes || 0)], ['Read from HBM', bytes(a.hbm_bytes || 0)],
		['Time of the reads', time(a.time_ns || 0)],
		['Bandwidth', a.time_ns > 0 ? short(a.bytes / a.time_ns, 2) + ' GB/s' : '–'],
		['A read, on the average', a.reads > 0 ? time(a.time_ns / a.reads) : '–']];
}
const heads = (list) => list.map((e) => nameOf(e) || 'device ' + e.number);
function translation() {
	const keys = ['page_table_bytes', 'tlb_reach_bytes', 'mapped_bytes_at_peak'];
	const list = everyDevice(), read = list.filter((e) => e.device.access && e.device.access.reads > 0);
	const rows = keys.filter((k) => list.some((e) => e.device[k] !== undefined))
		.map((k) => [words(k), ...list.map((e) => e.device[k] === undefined ? '–' : bytes(e.device[k]))]);
	const reach = (d) => Math.min(1, d.tlb_reach_bytes / d.mapped_bytes_at_peak);
	rows.push(['Share of it that the TLB reaches', ...list.map((e) => e.device.mapped_bytes_at_peak ? bar(reach(e.device), percent(reach(e.device))) : '–')]);
	if (read.length > 0) {
		rows.push({ group: 'Reads (--access)' });
		derived(read[0].device.access).forEach(([name], i) => rows.push([name,
			...list.map((e) => read.includes(e) ? derived(e.device.access)[i][1] : '–')]));
	}
	return [read.length > 0 ? 'What cores read while the history was replayed: ' + [...new Set(read.map((e) => e.result.access))].join(', ') + '.' : '',
		element('div', { class: 'card' }, table(['Figure', ...heads(list)], rows, 'translation'))];
}

function holdersCard(e, m) {
	const rest = m.other_holders || { blocks: 0 }, list = new SiteTable('who held memory', [['Blocks', (r) => r.blocks, count], ['Live', (r) => r.bytes, bytes],
		['Share', (r) => m.live_bytes > 0 ? r.bytes / m.live_bytes : null, (v) => v === null ? '' : percent(v)]]);
	list.by = 1;
	list.show((m.holders || []).map((h) => ({ ...h, name: h.site, frames: h.frames || [] })));
	return element('div', { class: 'card' }, heading(e, 'Who held it'), ...(Array.isArray(m.holders) ? [list.node,
		rest.blocks > 0 ? element('p', {}, plural(rest.sites, 'other place') + ': ' + bytes(rest.bytes) + ' in ' + plural(rest.blocks, 'block')) : null]
		: [element('p', { class: 'quiet' }, 'No call sites in this file.')]));
}
function stripCard(e, name, label, cells, colours, text) {
	return element('div', { class: 'card' }, heading(e, name), ...strip(label, cells), legend(colours), element('p', { class: 'quiet small' }, text));
}
/* Addresses one after another; what is taken and has no memory is drawn narrow, what is not taken is left out. */
function addressMap(e, m) {
	const map = m.address_map, has_live = Array.isArray(map.live_bytes), memory = map.physical_bytes.reduce((a, b) => a + b, 0);
	const cells = map.address.map((address, i) => {
		const size = map.bytes[i], physical = map.physical_bytes[i], live = has_live ? map.live_bytes[i] : physical;
		const state = physical === 0 ? 'reserved, no memory' : !has_live ? 'physical memory' : live === 0 ? 'free' : live === size ? 'live'
			: bytes(live) + ' live of ' + bytes(physical);
		return { size: physical === 0 ? Math.max(1, Math.min(size, memory / 200)) : physical, edge: !has_live,
			 colour: 'c1', share: physical === 0 ? 0 : live / physical, back: physical === 0 ? 'line' : 'free',
			 about: () => hex(address) + ', ' + bytes(size) + ': ' + state };
	});
	const reserved = map.bytes.reduce((a, b, i) => a + (map.physical_bytes[i] === 0 ? b : 0), 0);
	return stripCard(e, 'Address space', 'Address space: ' + plural(map.ranges, 'range'), cells,
		[...(has_live ? [['live', 'c1', 1], ['free', 'free', 1]] : [['physical memory; where blocks lie is not told', 'c1', 1]]),
		 ...(reserved > 0 ? [['reserved, drawn narrow', 'line', 1]] : [])],
		[plural(map.ranges, 'range') + ' from ' + hex(map.address[0]) + ' on',
		 reserved > 0 ? bytes(reserved) + ' of addresses without memory' : '',
		 map.merged_bytes > 0 ? 'ranges of up to ' + bytes(map.merged_bytes) + ' are put together' : ''].filter(Boolean).join(', ') + '.');
}
/* Owners that lie beside each other have another shade. */
function frameMap(e, m) {
	const map = m.frame_map, first = Math.max(0, map.owner.findIndex(Boolean)), last = Math.max(0, map.owner.findLastIndex(Boolean));
	let shade = 0;
	const used = map.used_bytes.reduce((a, b) => a + b, 0);
	const frames = map.count.reduce((a, b) => a + b, 0), end = map.frame[last] + map.count[last];
	const cells = map.frame.slice(first, last + 1).map((frame, at) => {
		const i = first + at, owner = map.owner[i], size = map.count[i] * map.frame_bytes;
		shade = owner === 0 ? shade : 1 - shade;
		return { size: map.count[i], back: 'line', colour: owner === 1 ? 'c5' : 'c3', share: owner === 0 ? 0 : owner === 1 ? 1 : 0.65 + 0.35 * shade,
			 about: () => 'Frame ' + count(frame) + (map.count[i] > 1 ? ' to ' + count(frame + map.count[i] - 1) : '') + ', ' + bytes(size) + ': ' +
				(owner === 0 ? 'free' : bytes(map.used_bytes[i]) + ' of ' + (owner === 1 ? 'several' : hex(owner))) };
	});
	return stripCard(e, 'Frames of the device', 'Frames: ' + plural(map.runs, 'run'), cells,
		[['used, each owner in turn lighter and darker', 'c3', 1],
		 ...(map.owner.includes(1) ? [['shared by several', 'c5', 1]] : []), ['free', 'line', 1]],
		bytes(used) + ' used, in ' + plural(map.runs, 'run') + '; frames ' + count(map.frame[first]) + ' to ' + count(end - 1) + ' are shown, the other ' +
		bytes((frames - end + map.frame[first]) * map.frame_bytes) + ' are free' + (map.merged_frames > 0 ? '; runs of up to ' + count(map.merged_frames) +
		' frames are put together' : '') + '.');
}
/* The chosen moment of each result; one that lacks it is left out. */
function moments() {
	const list = everyDevice((d) => Array.isArray(d.moments) && d.moments.length > 0);
	const known = [...new Set(list.flatMap((e) => e.device.moments.map(when)))], body = element('div', {});
	const show = (chosen) => {
		const maps = [], tables = element('div', { class: 'grid' });
		for (const e of list) {
			const m = e.device.moments.find((one) => when(one) === chosen);
			if (!m)
				continue;
			tables.append(holdersCard(e, m));
			if (m.address_map && m.address_map.address.length > 0)
				maps.push(addressMap(e, m));
			if (m.frame_map && m.frame_map.frame.length > 0)
				maps.push(frameMap(e, m));
		}
		body.replaceChildren(tables, ...maps);
	};
	if (list.length === 0)
		return [];
	show(known[0]);
	return ['What was live, by the place in the program that asked for it, and where it lay.',
		choice('Moment', known.map((n) => [n, n]), known[0], show), body];
}

function allFigures() {
	const list = everyDevice();
	const keys = [...new Set(list.flatMap((e) => Object.keys(e.device)))]
		.filter((k) => k !== 'device' && list.some((e) => typeof e.device[k] === 'number'));
	const rows = keys.map((k) => [words(k), ...list.map((e) => e.device[k] === undefined ? '–' : figure(k, e.device[k]))]);
	for (const [member, group] of [['events', 'Events in the file'], ['policy_events', 'What the policy did']]) {
		const of = (e) => e.device[member] || {}, inside = [...new Set(list.flatMap((e) => Object.keys(of(e))))];
		if (inside.length > 0)
			rows.push({ group });
		for (const k of inside)
			rows.push([k, ...list.map((e) => of(e)[k] !== undefined ? count(of(e)[k]) : '–')]);
	}
	return [element('div', { class: 'card' }, table(['Figure', ...heads(list)], rows, 'all figures'))];
}

/* All results in a table, of which those that are ticked are shown below. */
function chooser(changed) {
	const body = element('div', {}), input = element('input', { type: 'search', placeholder: 'filter', 'aria-label': 'Filter results', input: () => draw() });
	const fitting = () => results.map((r, i) => i).filter((i) => title[i].toLowerCase().includes(input.value.toLowerCase()));
	const set = (indexes) => {
		shown.clear();
		indexes.forEach((i) => shown.add(i));
		draw();
		changed();
	};
	const draw = () => body.replaceChildren(table(['Result', 'Peak physical', 'Peak live', 'Not live', 'VMM calls', 'Out of memory'], fitting().map((i) => {
		const devices = results[i].devices || [], sum = (k) => devices.reduce((n, d) => n + (d[k] || 0), 0), live = devices.some(tellsLive);
		const box = element('input', { type: 'checkbox', checked: shown.has(i), change: () => {
			(box.checked ? shown.add(i) : shown.delete(i));
			changed();
		} });
		return [element('label', {}, box, ' ', mark(i), title[i]), bytes(sum('peak_physical_bytes')), live ? bytes(sum('peak_live_bytes')) : '–',
			live ? percent(1 - sum('live_at_physical_peak_bytes') / Math.max(1, sum('peak_physical_bytes'))) : '–', count(sum('vmm_calls')),
			devices.some((d) => d.out_of_memory) ? 'yes' : ''];
	}), 'results'));
	draw();
	return element('div', { class: 'card results' }, element('div', { class: 'controls' }, input, button('All of these', () => set(fitting())), button('None', () => set([]))), body);
}
