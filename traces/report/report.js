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
	return (unit === 0 || Number.isInteger(n) ? n : n.toFixed(Math.abs(n) < 10 ? 2 : 1)) + ' ' + UNITS[unit];
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
	return results.map((r) => {
		const what = [files.size > 1 || !r.policy ? file(r) : '', r.policy || '',
			      r.page && r.page !== '2m' ? r.page + ' pages' : '', settings(r)];
		return what.filter(Boolean).join(', ');
	}).map((name, i, all) => all.indexOf(name) === all.lastIndexOf(name) ? name
				 : name + ' (' + (results[i].result_file || i + 1) + ')');
}
const title = names();

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
const FRAGMENTS = /(fragment|external|internal|rounding|cached|free|unused)/;
/* The first event with the most of a column, or null. */
function peakEvent(device, column) {
	const values = device.series && device.series[column];
	if (!values || values.length === 0)
		return null;
	const most = values.reduce((a, b) => Math.max(a, b), 0);
	return device.series.event[values.indexOf(most)];
}

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

function peakWords(d, r) {
	const at = peakEvent(d, 'physical_bytes');
	const total = r.events_done !== undefined ? r.events_done : r.events;
	let text = 'Physical memory was at its most, ' + bytes(d.peak_physical_bytes) + ', ' +
		(at === null ? '' : at === 0 ? 'when the recording began' :
		 'after event ' + count(at) + (numbers.length === 1 && total ? ' of ' + count(total) : ''));
	text = text.replace(/, $/, '');
	const live = d.live_at_physical_peak_bytes;
	if (d.fragmentation === undefined)
		return text + '. The file does not tell what of it was in use.';
	text += '. The program had ' + bytes(live) + ' of it in use; the other ' +
		bytes(Math.max(0, d.peak_physical_bytes - live)) + ' (' + percent(d.fragmentation) +
		') held no live block.';
	if (d.peak_live_bytes > live)
		text += ' At another moment ' + bytes(d.peak_live_bytes) + ' were live, the most.';
	return text;
}
function outOfMemoryWords(d) {
	const o = d.out_of_memory;
	const where = o.line !== undefined ? 'At line ' + count(o.line) + ' of the trace'
		: o.event > 0 ? 'At event ' + count(o.event) : 'Before the first event';
	let text = where + ' the device ran out of memory: ' + bytes(o.bytes) +
		' more were asked for than it had.';
	if (d.fragmentation !== undefined) {
		const idle = Math.max(0, d.peak_physical_bytes - d.live_at_physical_peak_bytes);
		text += idle >= o.bytes
			? ' The allocator held ' + bytes(idle) + ' that no block used at the peak, so fragmentation is the cause: a policy that gives memory back, or maps it where it is needed, may fit.'
			: ' Only ' + bytes(idle) + ' of what it held was unused at the peak, so the program needs more memory than there is, whatever the policy.';
	}
	return text;
}
function summary() {
	section('At a glance');
	const grid = element('div', { class: 'grid' });
	for (const number of numbers) {
		for (const { result, device, index } of devices(number)) {
			const facts = [['peak physical', bytes(device.peak_physical_bytes)],
				       ['peak live', device.fragmentation === undefined ? '–' : bytes(device.peak_live_bytes)],
				       ['held, not live', device.fragmentation === undefined ? '–' : percent(device.fragmentation)],
				       ['VMM calls', count(device.vmm_calls)],
				       ['time in them', time(device.vmm_time_ns)]];
			grid.append(element('div', { class: 'card' },
				element('h3', {}, several ? mark(index) : null,
					(several ? title[index] + (numbers.length > 1 ? ' · ' : '') : '') +
					(numbers.length > 1 || !several ? 'Device ' + number : '')),
				element('div', { class: 'figures' }, ...facts.map(([name, value]) =>
					element('div', {}, element('b', {}, value), element('span', {}, name)))),
				element('p', {}, peakWords(device, result)),
				device.out_of_memory ? element('p', { class: 'alarm' }, outOfMemoryWords(device)) : null,
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
	section('Memory over time', 'Live is what the program had asked for and not given back; physical is what the device had handed out for it.' +
		(several ? ' All charts of a device have the same scale.' : ''));
	for (const number of with_series) {
		const list = devices(number).filter((e) => hasSeries(e.device));
		const shown = (d) => columns(d).filter((c) => !FRAGMENTS.test(c))
			.sort((a, b) => (ORDER.indexOf(a) + 9) % 9 - (ORDER.indexOf(b) + 9) % 9)
			/* address space is far larger than memory: drawn only where it does not hide it */
			.filter((c) => c !== 'reserved_bytes' || Math.max(...d.series[c]) < 4 * d.peak_physical_bytes);
		const most = Math.max(...list.map((e) => Math.max(...shown(e.device).map((c) => Math.max(...e.device.series[c])))));
		const last = Math.max(...list.map((e) => Math.max(...e.device.series.event)));
		const grid = element('div', { class: 'grid' });
		page.append(grid);
		for (const { device, index } of list) {
			const holder = element('div', { class: 'canvas' });
			const name = [several ? title[index] : '', numbers.length > 1 ? 'device ' + number : ''].filter(Boolean).join(' · ');
			grid.append(element('div', { class: 'card' },
				name ? element('h3', {}, several ? mark(index) : null, name) : null, holder));
			chart(holder, 'Memory over time, ' + name, () => lines(shown(device).map((c, i) => ({
				label: LABELS[c] || words(c), points: points(device, c), ...paint(c, i, index),
				fill: c === 'live_bytes' })), 'event', bytes, most, last));
		}
	}
}

/* Shares of physical memory that no live block used, one line a result; where the result tells the
 * kinds apart, those of each result too. */
function fragmentation() {
	const list = numbers.flatMap((n) => devices(n).map((e) => ({ ...e, number: n })))
		.filter((e) => hasSeries(e.device) && e.device.series.live_bytes && e.device.series.physical_bytes &&
			       e.device.fragmentation !== undefined);
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
	for (const { device, index, number } of list) {
		const kinds = columns(device).filter((c) => FRAGMENTS.test(c));
		if (kinds.length === 0)
			continue;
		const holder = element('div', { class: 'canvas' });
		const name = [several ? title[index] : 'By kind', numbers.length > 1 ? 'device ' + number : ''].filter(Boolean).join(' · ');
		grid.append(element('div', { class: 'card' }, element('h3', {}, several ? mark(index) : null, name), holder));
		chart(holder, 'Kinds of fragmentation, ' + name, () => lines(kinds.map((c, i) => ({
			label: words(c), points: points(device, c), colour: 'c' + (i % 6 + 1) })), 'event', bytes,
			Math.max(...kinds.map((c) => Math.max(...device.series[c]))), Math.max(...device.series.event)));
	}
}

/* Calls of all devices of a result, by function. */
function callsOf(result) {
	const sum = {};
	for (const d of result.devices || []) {
		for (const [name, c] of Object.entries(d.vmm_calls_by_kind || {})) {
			const s = sum[name] = sum[name] || { calls: 0, refused: 0, time_ns: 0 };
			for (const key of Object.keys(s))
				s[key] += c[key] || 0;
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
			const options = common();
			options.indexAxis = 'y';
			options.scales = { x: axis('', time), y: { grid: { display: false }, ticks: { color: colour('text') } } };
			options.scales.x.title.display = false;
			options.scales.x.ticks.maxTicksLimit = 6;
			options.plugins.legend.display = several;
			options.plugins.tooltip = { callbacks: { label: (i) => (several ? i.dataset.label + ': ' : '') + time(i.parsed.x) } };
			return { type: 'bar', options, data: { labels: kinds.map((k) => k.replace(/^aclrt/, '')),
				datasets: all.map((c, i) => ({ label: title[i], backgroundColor: colour('c' + (i % 6 + 1)), maxBarThickness: 18,
					borderRadius: 3, data: kinds.map((k) => c[k] ? of(c[k]) : 0) })) } };
		});
	}
	const rows = [];
	all.forEach((c, i) => {
		if (several)
			rows.push({ group: title[i] });
		for (const k of kinds.filter((kind) => c[kind]))
			rows.push([k, count(c[k].calls), count(c[k].refused), time(c[k].time_ns),
				   c[k].calls ? time(c[k].time_ns / c[k].calls) : '–']);
	});
	page.append(element('div', { class: 'card', style: 'margin-top:16px' },
		table(['Function', 'Calls', 'Refused', 'Time', 'Mean'], rows)));
}

/* ---- parts that only some results have ---- */

function translation() {
	const keys = ['page_table_bytes', 'tlb_reach_bytes', 'mapped_bytes_at_peak'];
	const extra = (d) => Object.entries(d).filter(([k, v]) => typeof v === 'object' && v !== null && /^(tlb|hbm|accesses|access|touch)/.test(k));
	section('Page table, TLB and HBM');
	const list = numbers.flatMap((n) => devices(n).map((e) => ({ ...e, number: n })));
	const head = ['', ...list.map((e) => [several ? title[e.index] : '', numbers.length > 1 || !several ? 'device ' + e.number : ''].filter(Boolean).join(' · '))];
	const rows = keys.filter((k) => list.some((e) => e.device[k] !== undefined))
		.map((k) => [words(k), ...list.map((e) => e.device[k] === undefined ? '–' : bytes(e.device[k]))]);
	rows.push(['Share of it that the TLB reaches', ...list.map((e) => e.device.mapped_bytes_at_peak
		? percent(Math.min(1, e.device.tlb_reach_bytes / e.device.mapped_bytes_at_peak)) : '–')]);
	const flat = list.map((e) => Object.fromEntries(extra(e.device).flatMap(([k, v]) => Object.entries(v)
		.filter(([, x]) => typeof x !== 'object').map(([name, x]) => [words(k) + ': ' + words(name).toLowerCase(), figure(name, x)]))));
	for (const name of new Set(flat.flatMap((f) => Object.keys(f))))
		rows.push([name, ...flat.map((f) => f[name] === undefined ? '–' : f[name])]);
	page.append(element('div', { class: 'card' }, table(head, rows)));
}

function holders() {
	const list = numbers.flatMap((n) => devices(n).map((e) => ({ ...e, number: n })))
		.filter((e) => Array.isArray(e.device.holders) && e.device.holders.length > 0);
	if (list.length === 0)
		return;
	section('Who held it', 'Live memory at the peak by the place in the program that asked for it.');
	for (const { device, index, number } of list) {
		page.append(element('div', { class: 'card', style: 'margin-bottom:16px' },
			element('h3', {}, (several ? title[index] + ' · ' : '') + 'Device ' + number),
			table(['Place', 'Blocks', 'Live'], device.holders.map((h) =>
				[String(h.site || h.place || h.frames || '(unknown)'), count(h.blocks || 0), bytes(h.bytes || h.live_bytes || 0)]))));
	}
}

/* A strip a row: { from, bytes, state } of a list of { start, length, state }. */
function mapChart(holder, label, cells) {
	const low = Math.min(...cells.map((c) => c.start));
	const high = Math.max(...cells.map((c) => c.start + c.length));
	const kinds = [...new Set(cells.map((c) => c.state))];
	chart(holder, label, () => {
		const options = common();
		options.interaction = { mode: 'nearest', intersect: true };
		options.scales = { x: { min: 0, max: high - low, ...axis('offset', bytes), stacked: false },
				   y: { grid: { display: false }, ticks: { display: false }, stacked: true } };
		options.indexAxis = 'y';
		options.plugins.tooltip = { callbacks: { label: (i) => i.dataset.label + ': ' + bytes(i.raw.x[1] - i.raw.x[0]) } };
		return { type: 'bar', options, data: { labels: [''], datasets: kinds.map((k, i) => ({
			label: words(k), backgroundColor: colour('c' + (i % 6 + 1)), grouped: false, barPercentage: 1,
			data: cells.filter((c) => c.state === k).map((c) => ({ x: [c.start - low, c.start - low + c.length], y: '' })) })) } };
	});
}
function maps() {
	for (const [key, name] of [['address_map', 'Address space'], ['frame_map', 'Frames']]) {
		const list = numbers.flatMap((n) => devices(n).map((e) => ({ ...e, number: n })))
			.filter((e) => Array.isArray(e.device[key]) && e.device[key].length > 0);
		if (list.length === 0)
			continue;
		section(name + ' at the peak');
		for (const { device, index, number } of list) {
			const holder = element('div', { class: 'canvas', style: 'height:150px' });
			page.append(element('div', { class: 'card', style: 'margin-bottom:16px' },
				element('h3', {}, (several ? title[index] + ' · ' : '') + 'Device ' + number), holder));
			mapChart(holder, name, device[key]);
		}
	}
}

function allFigures() {
	section('All figures');
	const list = numbers.flatMap((n) => devices(n).map((e) => ({ ...e, number: n })));
	const keys = [...new Set(list.flatMap((e) => Object.keys(e.device)))]
		.filter((k) => k !== 'device' && list.some((e) => typeof e.device[k] === 'number'));
	const head = ['', ...list.map((e) => [several ? title[e.index] : '', numbers.length > 1 || !several ? 'device ' + e.number : ''].filter(Boolean).join(' · '))];
	const rows = keys.map((k) => [words(k), ...list.map((e) => e.device[k] === undefined ? '–' : figure(k, e.device[k]))]);
	const events = [...new Set(list.flatMap((e) => Object.keys(e.device.events || {})))];
	if (events.length > 0)
		rows.push({ group: 'Events in the file' });
	for (const k of events)
		rows.push([k, ...list.map((e) => e.device.events && e.device.events[k] !== undefined ? count(e.device.events[k]) : '–')]);
	const made = [...new Set(list.flatMap((e) => Object.keys(e.device.policy_events || {})))];
	if (made.length > 0)
		rows.push({ group: 'What the policy did' });
	for (const k of made)
		rows.push([k, ...list.map((e) => e.device.policy_events && e.device.policy_events[k] !== undefined ? count(e.device.policy_events[k]) : '–')]);
	page.append(element('div', { class: 'card' }, table(head, rows)));
}

header();
summary();
memoryCharts();
fragmentation();
calls();
maps();
holders();
translation();
allFigures();
page.append(element('footer', {}, 'Written by ', document.querySelector('meta[name=generator]').content,
	'. Sizes are binary: 1 MiB is 1,048,576 bytes. Times are simulated. Charts: Chart.js ' + Chart.version + ', MIT licence.'));
root.dataset.drawn = charts.length;
root.dataset.ready = 'yes';
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => charts.forEach(draw));
})();
