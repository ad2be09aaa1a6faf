/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes words of figures, and elements of words. Text from files enters the page through append() alone, which
 * takes it as text.
 */
const root = document.documentElement;
window.addEventListener('error', (event) => { root.dataset.error = event.message; });
window.addEventListener('unhandledrejection', (event) => { root.dataset.error = String(event.reason); });

/* What a map has for a key, made if need be. */
function once(map, key, make) {
	if (!map.has(key))
		map.set(key, make(key));
	return map.get(key);
}
/* The colours of the style sheet, read once a scheme. */
const scheme = window.matchMedia('(prefers-color-scheme: dark)'), known_colours = new Map();
scheme.addEventListener('change', () => known_colours.clear());
const colour = (name) => once(known_colours, name, () => getComputedStyle(root).getPropertyValue('--' + name).trim());

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
function bytes(n) {
	const unit = Math.max(0, Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.abs(n)) / 10))) || 0;
	return (unit === 0 ? Math.round(n) : (n / 1024 ** unit).toFixed(2)) + ' ' + UNITS[unit];
}
const signed = (n) => (n > 0 ? '+' : n < 0 ? '−' : '') + bytes(Math.abs(n));
const short = (n, digits) => String(Number(n.toFixed(digits)));
function time(ns) {
	if (ns >= 1e9)
		return short(ns / 1e9, 3) + ' s';
	if (ns >= 1e6)
		return short(ns / 1e6, 2) + ' ms';
	return ns >= 1e3 ? short(ns / 1e3, 1) + ' µs' : ns === 0 ? '0' : short(ns, 1) + ' ns';
}
const count = new Intl.NumberFormat('en').format;
const plural = (n, word) => count(n) + ' ' + word + (n === 1 ? '' : 's');
const percent = (share) => short(100 * share, 1) + ' %';
const hex = (n) => '0x' + n.toString(16);
const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);
const sum = (list, value) => list.reduce((n, one) => n + value(one), 0);
const words = (key) => {
	const text = key.replace(/_(bytes|ns)$/, '').replace(/_/g, ' ').replace(/\btlb\b/g, 'TLB')
		.replace(/\bhbm\b/g, 'HBM').replace(/\bl2\b/g, 'L2').replace(/\bvmm\b/g, 'VMM');
	return text[0].toUpperCase() + text.slice(1);
};
/* A figure by what its name ends with. */
const FIGURES = [[/bytes/, bytes], [/_ns$/, time], [/_us$/, (us) => time(us * 1000)], [/fragmentation$/, percent]];
function figure(key, value) {
	const [, show] = FIGURES.find(([ending]) => ending.test(key)) || [null, (n) => Number.isInteger(n) ? count(n) : n.toPrecision(4)];
	return typeof value === 'number' ? show(value) : String(value);
}
/* Of a path, the last two parts: the whole is what the pointer shows. */
const short_path = (text) => text.replace(/\(([^()]*\/)?([^()/]+\/[^()/]+)\)/g, '($2)');

/* `attributes` that are functions listen to the event of their name. */
function element(tag, attributes, ...children) {
	const e = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		if (typeof value === 'function')
			e.addEventListener(name, value);
		else if (value !== null && value !== undefined && value !== false)
			e.setAttribute(name, value === true ? '' : value);
	}
	e.append(...children.filter((child) => child !== null && child !== undefined));
	return e;
}
/* Draws when an element has got a width: once it is in the page, and whenever that changes. */
function onResize(node, draw) {
	let width = -1;
	const look = () => {
		if (!node.isConnected || node.clientWidth === width)
			return;
		width = node.clientWidth;
		draw();
	};
	queueMicrotask(look);
	new ResizeObserver(() => requestAnimationFrame(look)).observe(node);
}
const button = (text, click, attributes) =>
	element('button', { type: 'button', click, ...attributes }, text);
function choice(label, options, chosen, change) {
	const select = element('select', { change: () => change(select.value) }, ...options.map(
		([value, text]) => element('option', { value, selected: value === chosen }, text)));
	return element('label', {}, label + ' ', select);
}
/* Hands a file to whoever looks at the page; its bytes. */
function save(blob, suffix) {
	const link = element('a', { href: URL.createObjectURL(blob), download: 'npusim-view.' + suffix });
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 1000);
	return blob.size;
}
const swatch = (paint) => element('span', { class: 'mark', style: 'background:' + paint });
const mark = (index) => swatch('var(--c' + (index % 6 + 1) + ')');
function figures(facts) {
	return element('div', { class: 'figures' }, ...facts.map(([name, value]) =>
		element('div', {}, element('b', {}, value), element('span', {}, name))));
}
const factList = (facts) => element('dl', {}, ...facts.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
/* A row is cells, or { group } for a line of its own, or { cells, more } with attributes. */
function table(head, rows, caption) {
	const line = (tag, cells, attributes) => element('tr', attributes || {},
		...cells.map((c, i) => element(tag, { class: i === 0 ? 'left' : null,
						      scope: tag === 'th' ? 'col' : null }, c)));
	const row = (r) => r.group ? element('tr', { class: 'head' }, element('td', { colspan: head.length }, r.group))
		: line('td', r.cells || r, r.more);
	return element('div', { class: 'wide', tabindex: 0, role: 'group', 'aria-label': caption },
		element('table', {}, element('thead', {}, line('th', head)),
			element('tbody', {}, ...rows.map(row))));
}
