/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the results in #data. What a result does not have is left out. Charts are Chart.js's.
 */
'use strict';
(function () {
const root = document.documentElement;
window.addEventListener('error', (event) => { root.dataset.error = event.message; });

const results = JSON.parse(document.getElementById('data').textContent);
const page = document.getElementById('page');
const colour = (name) => getComputedStyle(root).getPropertyValue('--' + name).trim();
const several = results.length > 1;

/* ---- text ---- */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
function bytes(n) {
	let unit = 0;
	while (Math.abs(n) >= 1024 && unit < UNITS.length - 1) {
		n /= 1024;
		unit++;
	}
	return (unit === 0 ? n : n.toFixed(2)) + ' ' + UNITS[unit];
}
const short = (n, digits) => String(Number(n.toFixed(digits)));
function time(ns) {
	if (ns >= 1e9)
		return short(ns / 1e9, 2) + ' s';
	if (ns >= 1e6)
		return short(ns / 1e6, 2) + ' ms';
	return ns >= 1e3 ? short(ns / 1e3, 1) + ' µs' : ns === 0 ? '0' : short(ns, 1) + ' ns';
}
const count = (n) => Number(n).toLocaleString('en');
const percent = (share) => short(100 * share, 1) + ' %';
const words = (key) => {
	const text = key.replace(/_(bytes|ns)$/, '').replace(/_/g, ' ').replace(/\btlb\b/g, 'TLB')
		.replace(/\bhbm\b/g, 'HBM').replace(/\bl2\b/g, 'L2').replace(/\bvmm\b/g, 'VMM');
	return text[0].toUpperCase() + text.slice(1);
};
/* A figure by what its name ends with. */
function figure(key, value) {
	if (typeof value !== 'number')
		return String(value);
	if (/bytes/.test(key))
		return bytes(value);
	if (/_ns$/.test(key))
		return time(value);
	if (/_ps$/.test(key))
		return time(value / 1000);
	if (/_us$/.test(key))
		return time(value * 1000);
	if (/(fragmentation|share|rate|ratio)$/.test(key))
		return percent(value);
	return Number.isInteger(value) ? count(value) : value.toPrecision(4);
}

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
/* Of a path, the last two parts: the whole is what the pointer shows. */
const short_path = (text) => text.replace(/\(([^()]*\/)?([^()/]+\/[^()/]+)\)/g, '($2)');

/* ---- elements ---- */

function element(tag, attributes, ...children) {
	const e = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {}))
		e.setAttribute(name, value);
	e.append(...children.filter((child) => child !== null && child !== undefined));
	return e;
}
function mark(index) {
	return element('span', { class: 'mark', style: 'background:var(--c' + (index % 6 + 1) + ')' });
}
function section(name, about) {
	page.append(element('h2', {}, name));
	if (about)
		page.append(element('p', { class: 'quiet' }, about));
}
function figures(facts) {
	return element('div', { class: 'figures' }, ...facts.map(([name, value]) =>
		element('div', {}, element('b', {}, value), element('span', {}, name))));
}
function heading(index, number, more) {
	const text = [several ? title[index] : '', numbers.length > 1 ? 'Device ' + number : '', more || ''].filter(Boolean).join(' · ');
	return text ? element('h3', {}, several ? mark(index) : null, text) : null;
}
function table(head, rows) {
	const line = (tag, cells) => element('tr', cells.group ? { class: 'head' } : {},
		...(cells.group ? [element('td', { colspan: head.length }, cells.group)]
				: cells.map((c, i) => element(tag, i === 0 ? { class: 'left' } : {}, c))));
	return element('div', { class: 'wide' }, element('table', {},
		element('thead', {}, line('th', head)),
		element('tbody', {}, ...rows.map((r) => line('td', r)))));
}

/* ---- charts ---- */

const charts = [];
function axis(name, show) {
	return { title: { display: true, text: name, color: colour('quiet') }, beginAtZero: true,
		 grid: { color: colour('line'), borderColor: colour('line') },
		 ticks: { color: colour('quiet'), maxTicksLimit: 7, callback: show } };
}
/* `make` answers the configuration, again after the colours have changed. */
function chart(holder, label, make) {
	const canvas = element('canvas', { role: 'img', 'aria-label': label });
	holder.append(canvas);
	const entry = { canvas, make };
	draw(entry);
	charts.push(entry);
	root.dataset.drawn = charts.length;
	return entry;
}
function draw(entry) {
	if (entry.chart)
		entry.chart.destroy();
	entry.chart = new Chart(entry.canvas, entry.make());
}
function common() {
	return { animation: false, responsive: true, maintainAspectRatio: false,
		 interaction: { mode: 'index', intersect: false },
		 plugins: { legend: { position: 'top', align: 'start',
				      labels: { color: colour('text'), boxWidth: 12, boxHeight: 12 } } } };
}
/* Whole steps of the binary unit that fits. */
function byteStep(most) {
	const unit = 2 ** (10 * Math.max(0, Math.floor(Math.log2(Math.max(most, 1)) / 10)));
	const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200];
	return unit * (steps.find((s) => most / (s * unit) <= 6) || 200);
}
/* Bars that lie, one beside the other. */
function bars(labels, datasets, show, with_legend, tooltip) {
	const options = common();
	options.indexAxis = 'y';
	options.scales = { x: axis('', show), y: { grid: { display: false }, ticks: { color: colour('text') } } };
	options.scales.x.title.display = false;
	options.plugins.legend.display = with_legend;
	options.plugins.tooltip = { callbacks: { label: tooltip } };
	return { type: 'bar', options, data: { labels, datasets } };
}
function lines(sets, x, y, most, last) {
	const options = common();
	const event = (v) => count(v);
	options.parsing = false;
	options.scales = { x: { type: 'linear', min: 0, max: last, ...axis(x, event), beginAtZero: false },
			   y: { ...axis('', y), suggestedMax: most } };
	options.scales.y.title.display = false;
	if (y === bytes) {
		options.scales.y.ticks.stepSize = byteStep(most);
		options.scales.y.max = Math.ceil(most * 1.02 / byteStep(most)) * byteStep(most);
	}
	options.plugins.tooltip = { callbacks: {
		title: (items) => items.length ? 'Event ' + count(items[0].parsed.x) : '',
		label: (item) => item.dataset.label + ': ' + y(item.parsed.y) } };
	return { type: 'line', options, data: { datasets: sets.map((s) => ({
		label: s.label, data: s.points, borderColor: colour(s.colour), borderWidth: 1.6,
		backgroundColor: colour(s.colour) + '30', fill: s.fill ? 'origin' : false,
		borderDash: s.dash || [], pointRadius: 0, pointHitRadius: 6, stepped: 'before' })) } };
}

/* ---- what the results hold ---- */

function devices(number) {
	return results.map((r, i) => ({ result: r, index: i,
		device: (r.devices || []).find((d) => d.device === number) })).filter((e) => e.device);
}
const numbers = [...new Set(results.flatMap((r) => (r.devices || []).map((d) => d.device)))]
	.sort((a, b) => a - b);
function columns(device) {
	const series = device.series || {};
	return Object.keys(series).filter((k) => /_bytes$/.test(k) && Array.isArray(series[k]) &&
						 series[k].length > 0);
}
function points(device, column) {
	const series = device.series;
	return series[column].map((v, i) => ({ x: series.event[i], y: v }));
}
function hasSeries(device) {
	return device.series && Array.isArray(device.series.event) && columns(device).length > 0;
}
const ORDER = ['live_bytes', 'physical_bytes', 'reserved_bytes', 'mapped_bytes'];
/* Live memory has the colour of its result; what is around it stays plain. */
function paint(column, i, index) {
	if (!several)
		return { colour: 'c' + (i % 6 + 1) };
	return column === 'live_bytes' ? { colour: 'c' + (index % 6 + 1) }
		: column === 'physical_bytes' ? { colour: 'text' } : { colour: 'quiet', dash: [4, 3] };
}
const LABELS = { live_bytes: 'Live', physical_bytes: 'Physical', reserved_bytes: 'Reserved',
		 mapped_bytes: 'Mapped' };
const FRAGMENTS = ['external_bytes', 'internal_bytes', 'page_rounding_bytes'];
const FRAGMENT_LABELS = { external_bytes: 'External: free between blocks', internal_bytes: 'Internal: lost inside blocks',
			  page_rounding_bytes: 'Page rounding' };
/* All devices of all results, and what of them has something. */
function everyDevice(has) {
	return numbers.flatMap((n) => devices(n).map((e) => ({ ...e, number: n }))).filter((e) => !has || has(e.device));
}
const WHEN = { peak: 'Peak', oom: 'Out of memory', end: 'End' };
const when = (m) => WHEN[m.moment] || 'Event ' + count(m.event);
function moment(device, what) {
	return (Array.isArray(device.moments) ? device.moments : []).find((m) => m.moment === what);
}
const told = (device, what) => short_path((moment(device, what) || {}).words || '');

/* ---- parts of the page ---- */

function header() {
	const files = [...new Set(results.map((r) => r.file).filter(Boolean))];
	page.append(element('h1', {}, several ? 'Memory, ' + results.length + ' replays side by side'
					      : 'Memory of ' + String(files[0] || 'a replay').replace(/.*\//, '')));
	for (const about of new Set(results.map((r) => r.about).filter(Boolean)))
		page.append(element('p', {}, about));
	page.append(element('p', { class: 'quiet' },
		[files.join(', '), ...new Set(results.map((r) => r.kind).filter(Boolean)),
		 'replayed on a model of ' + [...new Set(results.map((r) => r.soc))].join(', ')]
			.filter(Boolean).join(' · ')));
}

function outOfMemoryWords(d, r) {
	/* of the same file on as large a device */
	const roomy = results.filter((other) => other !== r && other.file === r.file && other.complete !== false)
		.filter((other) => (other.devices || []).some((e) => e.device === d.device && !e.out_of_memory &&
			e.device_bytes !== undefined && e.device_bytes <= d.device_bytes));
	return told(d, 'oom') + (roomy.length === 0 ? '' :
		' With ' + roomy.map((other) => title[results.indexOf(other)]).join(' and with ') + ' there was room for all.');
}
function summary() {
	section('At a glance');
	const grid = element('div', { class: 'grid' });
	for (const number of numbers) {
		for (const { result, device, index } of devices(number)) {
			const facts = [['peak physical', bytes(device.peak_physical_bytes)],
				       ['peak live', device.fragmentation === undefined ? '–' : bytes(device.peak_live_bytes)],
				       ['held but not live', device.fragmentation === undefined ? '–' : percent(device.fragmentation)],
				       ['VMM calls', count(device.vmm_calls)],
				       ['time in them', time(device.vmm_time_ns)]];
			grid.append(element('div', { class: 'card' }, heading(index, number),
				figures(facts),
				element('p', {}, told(device, 'peak')),
				device.out_of_memory ? element('p', { class: 'alarm' }, outOfMemoryWords(device, result)) : null,
				result.complete === false ? element('p', { class: 'alarm' }, 'The replay was interrupted after ' +
					count(result.events_done) + ' events: these figures are partial.') : null));
		}
	}
	page.append(grid);
}

function memoryCharts() {
	const with_series = numbers.filter((n) => devices(n).some((e) => hasSeries(e.device)));
	if (with_series.length === 0)
		return;
	section('Memory over time', 'Live is what the program had asked for and not given back; physical is what the device had handed out for it; reserved is the addresses that were taken.' +
		(several ? ' All charts of a device have the same scale.' : ''));
	for (const number of with_series) {
		const list = devices(number).filter((e) => hasSeries(e.device));
		const shown = (d) => columns(d).filter((c) => !FRAGMENTS.includes(c))
			.sort((a, b) => (ORDER.indexOf(a) + 9) % 9 - (ORDER.indexOf(b) + 9) % 9)
			/* address space is far larger than memory: drawn only where it does not hide it */
			.filter((c) => c !== 'reserved_bytes' || Math.max(...d.series[c]) < 1.5 * d.peak_physical_bytes);
		const most = Math.max(...list.map((e) => Math.max(...shown(e.device).map((c) => Math.max(...e.device.series[c])))));
		const last = Math.max(...list.map((e) => Math.max(...e.device.series.event)));
		const grid = element('div', { class: 'grid' });
		page.append(grid);
		for (const { device, index } of list) {
			const holder = element('div', { class: 'canvas' });
			const name = [several ? title[index] : '', numbers.length > 1 ? 'device ' + number : ''].filter(Boolean).join(' · ');
			grid.append(element('div', { class: 'card' },
				name ? element('h3', {}, several ? mark(index) : null, name) : null, holder));
			if (columns(device).includes('reserved_bytes') && !shown(device).includes('reserved_bytes'))
				holder.after(element('p', { class: 'quiet small' }, 'Reserved addresses, beyond this scale: up to ' +
					bytes(Math.max(...device.series.reserved_bytes)) + '.'));
			chart(holder, 'Memory over time, ' + name, () => lines(shown(device).map((c, i) => ({
				label: LABELS[c] || words(c), points: points(device, c), ...paint(c, i, index),
				fill: c === 'live_bytes' })), 'event', bytes, most, last));
		}
	}
}

/* Shares of physical memory that no live block used, one line a result; where the result tells the
 * kinds apart, those of each result too. */
function fragmentation() {
	const list = everyDevice((d) => hasSeries(d) && d.series.live_bytes && d.series.physical_bytes && d.fragmentation !== undefined);
	if (list.length === 0)
		return;
	section('Fragmentation over time', 'The share of physical memory that held no live block: cached or stranded by the allocator, or lost to rounding.');
	const grid = element('div', { class: 'grid' });
	page.append(grid);
	for (const number of new Set(list.map((e) => e.number))) {
		const holder = element('div', { class: 'canvas' });
		const mine = list.filter((e) => e.number === number);
		grid.append(element('div', { class: 'card' }, numbers.length > 1 ? element('h3', {}, 'Device ' + number) : null, holder));
		chart(holder, 'Fragmentation over time, device ' + number, () => lines(mine.map(({ device, index }) => {
			const s = device.series;
			return { label: several ? title[index] : 'Not live', colour: 'c' + (index % 6 + 1),
				 points: s.event.map((x, i) => ({ x, y: s.physical_bytes[i] > 0 ?
					Math.max(0, 1 - s.live_bytes[i] / s.physical_bytes[i]) : 0 })) };
		}), 'event', percent, 0.1, Math.max(...mine.map((e) => Math.max(...e.device.series.event)))));
	}
	const kinds = (d) => FRAGMENTS.filter((c) => columns(d).includes(c));
	const of_kinds = list.filter((e) => kinds(e.device).length > 0);
	const sum = (d) => Math.max(...d.series.event.map((x, i) => kinds(d).reduce((a, c) => a + d.series[c][i], 0)));
	const most = Math.max(1, ...of_kinds.map((e) => sum(e.device)));
	const last = Math.max(...of_kinds.map((e) => Math.max(...e.device.series.event)));
	for (const { device, index, number } of of_kinds) {
		const holder = element('div', { class: 'canvas' });
		grid.append(element('div', { class: 'card' }, heading(index, number, 'Fragmentation by kind, stacked'), holder));
		chart(holder, 'Kinds of fragmentation, ' + title[index] + ', device ' + number, () => {
			const made = lines(kinds(device).map((c, i) => ({ label: FRAGMENT_LABELS[c], points: points(device, c),
				colour: ['c2', 'c4', 'c5'][i], fill: true })), 'event', bytes, most, last);
			made.options.scales.y.stacked = true;
			made.data.datasets.forEach((set) => { set.fill = 'stack'; set.borderWidth = 1; });
			return made;
		});
	}
}

/* Latencies of two devices: the histograms add up; percentiles are read from the sum again. */
function together(a, b) {
	if (!a)
		return b;
	const counts = new Map();
	for (const l of [a, b])
		l.histogram.up_to_ns.forEach((end, i) => counts.set(end, (counts.get(end) || 0) + l.histogram.calls[i]));
	const ends = [...counts.keys()].sort((x, y) => x - y);
	const total = ends.reduce((n, end) => n + counts.get(end), 0);
	const sum = { min_ns: Math.min(a.min_ns, b.min_ns), max_ns: Math.max(a.max_ns, b.max_ns),
		      histogram: { up_to_ns: ends, calls: ends.map((end) => counts.get(end)) } };
	for (const [name, share] of [['p50_ns', 0.5], ['p90_ns', 0.9], ['p99_ns', 0.99]]) {
		let seen = 0;
		sum[name] = Math.min(sum.max_ns, ends.find((end) => (seen += counts.get(end)) >= share * total));
	}
	return sum;
}
/* Calls of all devices of a result, by function. */
function callsOf(result) {
	const sum = {};
	for (const d of result.devices || []) {
		for (const [name, c] of Object.entries(d.vmm_calls_by_kind || {})) {
			const s = sum[name] = sum[name] || { calls: 0, refused: 0, time_ns: 0 };
			for (const key of ['calls', 'refused', 'time_ns'])
				s[key] += c[key] || 0;
			if (c.latency)
				s.latency = together(s.latency, c.latency);
		}
	}
	return sum;
}
function calls() {
	const all = results.map(callsOf);
	const kinds = [...new Set(all.flatMap((c) => Object.keys(c)))];
	if (kinds.length === 0)
		return;
	section('Calls that get, give and map memory', 'Simulated time of the calls since the recording began, as the model of the driver has them.');
	const grid = element('div', { class: 'grid' });
	page.append(grid);
	for (const [name, of] of [['Mean time of a call', (c) => c.calls ? c.time_ns / c.calls : 0],
				  ['Time in all calls', (c) => c.time_ns]]) {
		const holder = element('div', { class: 'canvas tall' });
		grid.append(element('div', { class: 'card' }, element('h3', {}, name), holder));
		chart(holder, name, () => {
			const made = bars(kinds.map((k) => k.replace(/^aclrt/, '')), all.map((c, i) => ({ label: title[i],
				backgroundColor: colour('c' + (i % 6 + 1)), maxBarThickness: 18, borderRadius: 3,
				data: kinds.map((k) => c[k] ? of(c[k]) : 0) })), time, several,
				(i) => (several ? i.dataset.label + ': ' : '') + time(i.parsed.x));
			made.options.scales.x.ticks.maxTicksLimit = 6;
			return made;
		});
	}
	const rows = [];
	all.forEach((c, i) => {
		if (several)
			rows.push({ group: title[i] });
		for (const k of kinds.filter((kind) => c[kind])) {
			const l = c[k].latency || {};
			rows.push([k, count(c[k].calls), count(c[k].refused), time(c[k].time_ns), c[k].calls ? time(c[k].time_ns / c[k].calls) : '–',
				   ...['min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns'].map((p) => l[p] === undefined ? '–' : time(l[p]))]);
		}
	});
	latency(all, kinds, grid);
	page.append(element('div', { class: 'card', style: 'margin-top:16px' },
		table(['Function', 'Calls', 'Refused', 'Time', 'Mean', 'Shortest', 'Median', '90 %', '99 %', 'Longest'], rows)));
}
/* How many calls of a function took how long, a function at a time. */
function latency(all, kinds, grid) {
	const told = kinds.filter((k) => all.some((c) => c[k] && c[k].latency));
	if (told.length === 0)
		return;
	const calls = (k) => all.reduce((n, c) => n + (c[k] ? c[k].calls : 0), 0);
	let shown = [...told].sort((a, b) => calls(b) - calls(a))[0];
	const choice = element('select', { 'aria-label': 'Function' }, ...told.map((k) => element('option', k === shown ? { selected: '' } : {}, k)));
	const holder = element('div', { class: 'canvas tall' });
	grid.append(element('div', { class: 'card' }, element('h3', {}, 'How long calls took: ', choice), holder));
	const entry = chart(holder, 'Latency of calls', () => {
		const options = common();
		const with_it = all.map((c, i) => ({ i, l: c[shown] && c[shown].latency })).filter((e) => e.l);
		const ends = [...new Set(with_it.flatMap((e) => e.l.histogram.up_to_ns))].sort((a, b) => a - b);
		options.scales = { x: { ...axis('up to', null), grid: { display: false }, ticks: { color: colour('quiet'), maxRotation: 0, autoSkip: true } },
				   y: { ...axis('calls', count) } };
		options.plugins.legend.display = several;
		return { type: 'bar', options, data: { labels: ends.map(time), datasets: with_it.map(({ i, l }) => ({ label: title[i],
			backgroundColor: colour('c' + (i % 6 + 1)), maxBarThickness: 40, borderRadius: 3,
			data: ends.map((end) => l.histogram.calls[l.histogram.up_to_ns.indexOf(end)] || 0) })) } };
	});
	choice.addEventListener('change', () => { shown = choice.value; draw(entry); });
}

/* ---- parts that only some results have ---- */

/* What the reads of --access come to, from their counts. */
function derived(a) {
	const share = (part, all) => all > 0 ? percent(part / all) : '–';
	return [['Requests to the TLBs', count(a.tlb_requests || 0)], ['TLB misses', share(a.tlb_misses, a.tlb_hits + a.tlb_misses)],
		['Page walks', count(a.walks || 0)], ['HBM rows that were open', share(a.row_hits, a.row_hits + a.row_misses)],
		['Read by the program', bytes(a.bytes || 0)], ['Read from HBM', bytes(a.hbm_bytes || 0)],
		['Time of the reads', time(a.time_ns || 0)],
		['Bandwidth', a.time_ns > 0 ? short(a.bytes / a.time_ns, 2) + ' GB/s' : '–'],
		['A read, on the average', a.reads > 0 ? time(a.time_ns / a.reads) : '–']];
}
function column_heads(list) {
	return list.map((e) => [several ? title[e.index] : '', numbers.length > 1 || !several ? 'device ' + e.number : ''].filter(Boolean).join(' · '));
}
function translation() {
	const keys = ['page_table_bytes', 'tlb_reach_bytes', 'mapped_bytes_at_peak'];
	const list = everyDevice();
	const head = ['', ...column_heads(list)];
	const rows = keys.filter((k) => list.some((e) => e.device[k] !== undefined))
		.map((k) => [words(k), ...list.map((e) => e.device[k] === undefined ? '–' : bytes(e.device[k]))]);
	rows.push(['Share of it that the TLB reaches', ...list.map((e) => e.device.mapped_bytes_at_peak
		? percent(Math.min(1, e.device.tlb_reach_bytes / e.device.mapped_bytes_at_peak)) : '–')]);
	const read = list.filter((e) => e.device.access && e.device.access.reads > 0);
	section('Page table, TLB and HBM', read.length > 0 ? 'What cores read while the history was replayed: ' +
		[...new Set(read.map((e) => e.result.access))].join(', ') + '.' : '');
	if (read.length > 0) {
		rows.push({ group: 'Reads (--access)' });
		derived(read[0].device.access).forEach(([name], i) => rows.push([name,
			...list.map((e) => read.includes(e) ? derived(e.device.access)[i][1] : '–')]));
		accessCharts(read);
	}
	page.append(element('div', { class: 'card' }, table(head, rows)));
}
function accessCharts(read) {
	const grid = element('div', { class: 'grid', style: 'margin-bottom:16px' });
	page.append(grid);
	for (const [name, of, show] of [
		['Share of translations that missed the TLBs', (a) => a.tlb_hits + a.tlb_misses > 0 ? a.tlb_misses / (a.tlb_hits + a.tlb_misses) : 0, percent],
		['Bandwidth of the reads', (a) => a.time_ns > 0 ? a.bytes / a.time_ns : 0, (v) => short(v, 2) + ' GB/s']]) {
		const holder = element('div', { class: 'canvas', style: 'height:' + (70 + 34 * read.length) + 'px' });
		grid.append(element('div', { class: 'card' }, element('h3', {}, name), holder));
		chart(holder, name, () => bars(column_heads(read), [{ maxBarThickness: 22, borderRadius: 3,
			backgroundColor: read.map((e) => colour('c' + (e.index % 6 + 1))), data: read.map((e) => of(e.device.access)) }],
			show, false, (i) => show(i.parsed.x)));
	}
}

/* ---- a moment: who held memory, and where it lay ---- */

function holders(e, m) {
	const card = element('div', { class: 'card' }, heading(e.index, e.number, 'Who held it'));
	if (!Array.isArray(m.holders)) {
		card.append(element('p', { class: 'quiet' }, 'No call sites in this file.'));
		return card;
	}
	const live = m.live_bytes || 1, rest = m.other_holders || { blocks: 0 };
	const place = (h) => element('details', {}, element('summary', { title: h.site }, short_path(h.site)),
		...(h.frames || []).map((f) => element('div', { class: 'frame', title: f }, short_path(f))));
	const rows = m.holders.map((h) => [place(h), count(h.blocks), bytes(h.bytes), percent(h.bytes / live)]);
	if (rest.blocks > 0)
		rows.push([count(rest.sites) + ' other places', count(rest.blocks), bytes(rest.bytes), percent(rest.bytes / live)]);
	card.append(rows.length > 0 ? table(['Place in the program', 'Blocks', 'Live', 'Share'], rows)
				    : element('p', { class: 'quiet' }, 'No block was live.'));
	return card;
}

/* A strip on several lines. `cells`: { size, from, colour, about }, in order; sizes are as drawn. */
function strip(label, cells) {
	const canvas = element('canvas', { role: 'img', 'aria-label': label, class: 'strip' });
	const note = element('p', { class: 'quiet small', 'aria-hidden': 'true' }, '\u00a0');
	const total = cells.reduce((n, c) => n + c.size, 0);
	const rows = Math.max(1, Math.min(16, Math.ceil(cells.length / 24)));
	const entry = { draw: () => {
		const width = canvas.clientWidth || 1100, scale = window.devicePixelRatio || 1, height = 16, gap = 4;
		canvas.width = width * scale;
		canvas.height = rows * (height + gap) * scale;
		canvas.style.height = rows * (height + gap) + 'px';
		const pen = canvas.getContext('2d');
		pen.scale(scale, scale);
		let at = 0;
		for (const c of cells) {
			const [from, to] = [at / total * rows * width, (at + c.size) / total * rows * width];
			at += c.size;
			for (let row = Math.floor(from / width); row < rows && row * width < to; row++) {
				const x = Math.max(0, from - row * width), end = Math.min(width, to - row * width);
				pen.globalAlpha = 1;
				pen.fillStyle = colour(c.back);
				pen.fillRect(x, row * (height + gap), end - x, height);
				pen.globalAlpha = c.share;
				pen.fillStyle = colour(c.colour);
				pen.fillRect(x, row * (height + gap), end - x, height);
				if (c.edge && end - x > 3) {
					pen.globalAlpha = 1;
					pen.fillStyle = colour('card');
					pen.fillRect(end - 1, row * (height + gap), 1, height);
				}
			}
		}
	}, find: (event) => {
		const box = canvas.getBoundingClientRect();
		const row = Math.min(rows - 1, Math.floor((event.clientY - box.top) / 20));
		let at = (row + (event.clientX - box.left) / box.width) / rows * total;
		return cells.find((c) => (at -= c.size) < 0);
	} };
	canvas.addEventListener('mousemove', (event) => {
		const cell = entry.find(event);
		note.textContent = cell ? cell.about : '\u00a0';
	});
	canvas.addEventListener('mouseleave', () => { note.textContent = '\u00a0'; });
	return { canvas, note, entry };
}
function legend(items) {
	return element('p', { class: 'small' }, ...items.flatMap(([name, paint, share]) => [
		element('span', { class: 'mark', style: 'background:color-mix(in srgb, var(--' + paint + ') ' + 100 * share + '%, var(--line))' }),
		element('span', { style: 'margin-right:16px' }, name)]));
}
const hex = (n) => '0x' + n.toString(16);
/* A card with a strip, what its colours mean, and a sentence. */
function stripCard(e, name, label, cells, colours, text) {
	const drawn = strip(label, cells);
	strips.push(drawn.entry);
	return element('div', { class: 'card' }, heading(e.index, e.number, name), drawn.canvas, drawn.note, legend(colours),
		element('p', { class: 'quiet small' }, text));
}
/* Addresses one after another; what is taken and has no memory is drawn narrow, what is not taken is left out. */
function addressCells(map) {
	const told = Array.isArray(map.live_bytes);
	const memory = map.physical_bytes.reduce((a, b) => a + b, 0);
	return map.address.map((address, i) => {
		const size = map.bytes[i], physical = map.physical_bytes[i], live = told ? map.live_bytes[i] : physical;
		const state = physical === 0 ? 'reserved, no memory' : !told ? 'physical memory' : live === 0 ? 'free' : live === size ? 'live'
			: bytes(live) + ' live of ' + bytes(physical);
		return { size: physical === 0 ? Math.max(1, Math.min(size, memory / 200)) : physical, edge: !told,
			 colour: 'c1', share: physical === 0 ? 0 : live / physical, back: physical === 0 ? 'line' : 'free',
			 about: hex(address) + ', ' + bytes(size) + ': ' + state };
	});
}
function addressMap(e, m) {
	const map = m.address_map;
	const told = Array.isArray(map.live_bytes);
	const reserved = map.bytes.reduce((a, b, i) => a + (map.physical_bytes[i] === 0 ? b : 0), 0);
	return stripCard(e, 'Address space', 'Address space: ' + count(map.ranges) + ' ranges', addressCells(map),
		[...(told ? [['live', 'c1', 1], ['free', 'free', 1]] : [['physical memory; where blocks lie is not told', 'c1', 1]]),
		 ...(reserved > 0 ? [['reserved, drawn narrow', 'line', 1]] : [])],
		[count(map.ranges) + ' ranges from ' + hex(map.address[0]) + ' on',
		 reserved > 0 ? bytes(reserved) + ' of addresses without memory' : '',
		 map.merged_bytes > 0 ? 'ranges of up to ' + bytes(map.merged_bytes) + ' are put together' : ''].filter(Boolean).join(', ') + '.');
}
/* Owners that lie beside each other have another shade. */
function frameMap(e, m) {
	const map = m.frame_map;
	let first = 0, last = map.owner.length - 1, shade = 0;
	while (last > 0 && map.owner[last] === 0)
		last--;
	while (first < last && map.owner[first] === 0)
		first++;
	const used = map.used_bytes.reduce((a, b) => a + b, 0);
	const frames = map.count.reduce((a, b) => a + b, 0), end = map.frame[last] + map.count[last];
	const cells = map.frame.slice(first, last + 1).map((frame, at) => {
		const i = first + at, owner = map.owner[i], size = map.count[i] * map.frame_bytes;
		shade = owner === 0 ? shade : 1 - shade;
		return { size: map.count[i], back: 'line', colour: owner === 1 ? 'c5' : 'c3', share: owner === 0 ? 0 : owner === 1 ? 1 : 0.65 + 0.35 * shade,
			 about: 'Frame ' + count(frame) + (map.count[i] > 1 ? ' to ' + count(frame + map.count[i] - 1) : '') + ', ' + bytes(size) + ': ' +
				(owner === 0 ? 'free' : bytes(map.used_bytes[i]) + ' of ' + (owner === 1 ? 'several' : hex(owner))) };
	});
	return stripCard(e, 'Frames of the device', 'Frames: ' + count(map.runs) + ' runs', cells,
		[['used, each owner in turn lighter and darker', 'c3', 1],
		 ...(map.owner.includes(1) ? [['shared by several', 'c5', 1]] : []), ['free', 'line', 1]],
		bytes(used) + ' used, in ' + count(map.runs) + ' runs; frames ' + count(map.frame[first]) + ' to ' + count(end - 1) + ' are shown, the other ' +
		bytes((frames - end + map.frame[first]) * map.frame_bytes) + ' are free' + (map.merged_frames > 0 ? '; runs of up to ' + count(map.merged_frames) +
		' frames are put together' : '') + '.');
}
let strips = [];
/* The chosen moment of each result; one that lacks it is left out. */
function moments() {
	const list = everyDevice((d) => Array.isArray(d.moments) && d.moments.length > 0);
	if (list.length === 0)
		return;
	const names = [...new Set(list.flatMap((e) => e.device.moments.map(when)))];
	const choice = element('select', { 'aria-label': 'Moment' }, ...names.map((n) => element('option', {}, n)));
	const body = element('div', {});
	section('Memory at one point in time', 'What was live, by the place in the program that asked for it, and where it lay.');
	page.append(element('p', {}, element('label', {}, 'Moment: ', choice)), body);
	const show = () => {
		strips = [];
		const maps = element('div', {}), tables = element('div', { class: 'grid' });
		for (const e of list) {
			const m = e.device.moments.find((one) => when(one) === choice.value);
			if (!m)
				continue;
			tables.append(holders(e, m));
			if (m.address_map && m.address_map.address.length > 0)
				maps.append(addressMap(e, m));
			if (m.frame_map && m.frame_map.frame.length > 0)
				maps.append(frameMap(e, m));
		}
		body.replaceChildren(tables, maps);
		strips.forEach((s) => s.draw());
	};
	choice.addEventListener('change', show);
	window.addEventListener('resize', () => strips.forEach((s) => s.draw()));
	show();
	root.dataset.strips = strips.length;
}

function allFigures() {
	section('All figures');
	const list = everyDevice();
	const keys = [...new Set(list.flatMap((e) => Object.keys(e.device)))]
		.filter((k) => k !== 'device' && list.some((e) => typeof e.device[k] === 'number'));
	const head = ['', ...column_heads(list)];
	const rows = keys.map((k) => [words(k), ...list.map((e) => e.device[k] === undefined ? '–' : figure(k, e.device[k]))]);
	for (const [member, group] of [['events', 'Events in the file'], ['policy_events', 'What the policy did']]) {
		const of = (e) => e.device[member] || {};
		const names = [...new Set(list.flatMap((e) => Object.keys(of(e))))];
		if (names.length > 0)
			rows.push({ group });
		for (const k of names)
			rows.push([k, ...list.map((e) => of(e)[k] !== undefined ? count(of(e)[k]) : '–')]);
	}
	page.append(element('div', { class: 'card' }, table(head, rows)));
}

/* What a result has in another shape than it should spoils its part of the page, not the rest. */
for (const part of [header, summary, memoryCharts, fragmentation, calls, translation, moments, allFigures]) {
	try {
		part();
	} catch (error) {
		root.dataset.broken = ((root.dataset.broken || '') + ' ' + part.name).trim();
		page.append(element('p', { class: 'alarm' }, 'This part of a result cannot be shown: ' + error.message + '.'));
	}
}
page.append(element('footer', {}, 'Written by ', document.querySelector('meta[name=generator]').content,
	'. Sizes are binary: 1 MiB is 1,048,576 bytes. Times are simulated. Charts: Chart.js ' + Chart.version + ', MIT licence.'));
root.dataset.drawn = charts.length;
root.dataset.ready = 'yes';
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { charts.forEach(draw); strips.forEach((s) => s.draw()); });
})();
