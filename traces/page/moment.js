/* SPDX-License-Identifier: Apache-2.0
 *
 * One moment of a history: who held what, as an icicle of call stacks and as a table, where it lay,
 * and whether more would have fitted.
 */
const GIB = 2 ** 30, PAGE = 2 ** 21;

/* Stacks from the outermost frame on: { name, bytes, blocks, children }. */
function stackTree(history, event, wanted) {
	const top = { name: 'all', bytes: 0, blocks: 0, children: new Map(), depth: 0 };
	for (const h of history.holders(event, (site) => site, wanted).values()) {
		let node = top;
		for (const name of ['', ...history.stacks.lines(h.site).reverse()]) {
			const up = node;
			if (name !== '')
				node = once(up.children, name, () => ({ name, bytes: 0, blocks: 0, children: new Map(), depth: up.depth + 1, up }));
			node.bytes += h.bytes;
			node.blocks += h.blocks;
		}
	}
	return top;
}
class Icicle {
	constructor(pick) {
		this.path = element('p', { class: 'small' });
		this.cells = element('div', { class: 'icicle', role: 'img' });
		this.node = element('div', {}, this.path, this.cells);
		this.pick = pick;
	}
	/* The same frames as before, as far as they are there. */
	show(tree) {
		let at = tree;
		for (const name of this.names || [])
			at = at.children.get(name) || at;
		this.zoomTo(at);
	}
	zoomTo(at) {
		const up = [];
		for (let n = at; n; n = n.up)
			up.unshift(n);
		this.at = at;
		this.names = up.slice(1).map((n) => n.name);
		this.path.replaceChildren(...up.flatMap((n, i) => [i > 0 ? ' › ' : '',
			button(short_path(n.name), () => this.zoomTo(n), { class: 'link', title: n.name })]));
		this.pick(up.length > 1 ? at.name : '');
		this.cells.setAttribute('aria-label', 'Call stacks of ' + bytes(at.bytes) + ', outermost on top: the table has the same');
		this.cells.replaceChildren(this.cell(at, 1, 1));
	}
	/* `part` of the cell above, `share` of all; what is too narrow to be seen is left out. */
	cell(node, part, share) {
		const below = [...node.children.values()].sort((a, b) => b.bytes - a.bytes).map((c) => [c, c.bytes / Math.max(1, node.bytes)]);
		const own = ownColour(node.name), paint = node.depth === 0 ? 'var(--line)' : own + ';color:' + inkOn(own);
		return element('div', { style: 'width:' + 100 * part + '%' },
			element('div', { class: 'cell', style: 'background:' + paint, click: () => this.zoomTo(node),
				title: node.name + ': ' + bytes(node.bytes) + ' in ' + plural(node.blocks, 'block') }, short_path(node.name) + '  ' + bytes(node.bytes)),
			element('div', { class: 'cells' }, ...below.filter(([, p]) => p * share > 0.002).map(([c, p]) => this.cell(c, p, p * share))));
	}
}

/* A strip on several lines, and what the pointer is on. `cells`: { size, colour, share, back, about() }, in order; sizes are as
 * drawn. `pick` is told the index of one that is clicked. */
function strip(label, cells, pick = () => {}) {
	const canvas = element('canvas', { role: 'img', 'aria-label': label, class: 'strip' });
	const note = element('p', { class: 'quiet small', 'aria-hidden': 'true' }, '\u00a0');
	let total = 0;
	const starts = cells.map((c) => (total += c.size) - c.size);
	const rows = Math.max(1, Math.min(16, Math.ceil(cells.length / 24))), height = 16, gap = 4;
	const draw = () => {
		const width = canvas.clientWidth || 300, scale = window.devicePixelRatio || 1;
		canvas.width = width * scale;
		canvas.height = rows * (height + gap) * scale;
		canvas.style.height = rows * (height + gap) + 'px';
		const pen = canvas.getContext('2d');
		pen.scale(scale, scale);
		cells.forEach((c, i) => {
			const from = starts[i] / total * rows * width, to = (starts[i] + c.size) / total * rows * width;
			for (let row = Math.floor(from / width); row < rows && row * width < to; row++) {
				const x = Math.max(0, from - row * width), end = Math.min(width, to - row * width);
				pen.globalAlpha = 1;
				pen.fillStyle = colour(c.back);
				pen.fillRect(x, row * (height + gap), end - x, height);
				pen.globalAlpha = c.share;
				pen.fillStyle = c.paint || colour(c.colour);
				pen.fillRect(x, row * (height + gap), end - x - (c.edge && end - x > 3 ? 1 : 0), height);
			}
		});
	};
	const find = (event) => {
		const row = Math.min(rows - 1, Math.floor(event.offsetY / (height + gap)));
		return above(starts, (row + event.offsetX / canvas.clientWidth) / rows * total) - 1;
	};
	canvas.addEventListener('mousemove', (event) => { 
		const cell = cells[find(event)];
		note.textContent = cell ? cell.about() : '\u00a0';
	});
	canvas.addEventListener('mouseleave', () => { note.textContent = '\u00a0'; });
	canvas.addEventListener('click', (event) => pick(find(event)));
	onResize(canvas, draw);
	scheme.addEventListener('change', draw);
	return [canvas, note];
}
const legend = (items) => element('p', { class: 'small' }, ...items.flatMap(([name, paint, share]) =>
	[swatch('color-mix(in srgb, var(--' + paint + ') ' + 100 * share + '%, var(--line))'), name + '   ']));

/* A segment, and what of it is free. */
function rangeWords(history, r, pieces) {
	const own = pieces.filter((p) => p.of === r), free = own.filter((p) => p.block < 0), lost = sum(own.filter((p) => p.block >= 0), (p) => history.lost(p.block));
	return hex(r.start) + ', ' + bytes(r.end - r.start) + ', ' + bytes(sum(free, (p) => p.end - p.start)) + ' of it free in ' + plural(free.length, 'piece') +
		(lost > 0 ? ', ' + bytes(lost) + ' lost to rounding' : '') + ', stream ' + r.stream + (r.pool ? ', private pool (' + r.pool + ')' : '') + (r.site > 0 ? ', from ' + short_path(history.stacks.name(r.site)) : '');
}
function addressStrip(history, event, pieces, pick) {
	const waits = (b) => history.asked[b] > 0 && history.asked[b] <= event;
	const cells = pieces.map((p) => p.block < 0
		? { size: p.end - p.start, share: 0, back: 'free', colour: 'free', about: () => hex(p.start) + ': ' + bytes(p.end - p.start) + ' free, in ' + rangeWords(history, p.of, pieces) }
		: { size: p.end - p.start, share: 1, back: 'free', paint: waits(p.block) ? colour('alarm') : ownColour(history.stacks.name(history.site[p.block])), edge: true,
		    about: () => hex(p.start) + ': ' + bytes(history.size[p.block]) + ', ' + short_path(history.stacks.name(history.site[p.block])) +
			(waits(p.block) ? ', freed but waits for another stream' : '') + ', in ' + rangeWords(history, p.of, pieces) });
	return strip('Addresses with their owners', cells, (i) => pick((pieces[i] || { block: -1 }).block));
}
/* Blocks where they lie in the device's memory. */
function inFrames(runs, pieces) {
	const out = [];
	let first = 0;
	for (const p of pieces) {
		while (first < runs.length && runs[first].end <= p.start)
			first++;
		for (let i = first; i < runs.length && runs[i].address < p.end; i++) {
			const r = runs[i], to = r.physical - r.address;
			out.push({ start: Math.max(p.start, r.address) + to, end: Math.min(p.end, r.end) + to, block: p.block });
		}
	}
	return out;
}
/* What each 2 MiB of memory hold: of the device's where it is known, else of the addresses. */
function pageStrip(history, event, addresses) {
	const there = history.runs.filter((r) => r.made <= event && event < r.gone), framed = there.length > 0, name = framed ? 'frame' : 'page';
	const runs = framed ? there : history.rangesAt(event).map((r) => ({ ...r, address: r.start, physical: r.start }));
	const pages = new Map(), pieces = inFrames(runs, addresses);
	for (const { address, end, physical } of runs) {
		for (let at = Math.floor(physical / PAGE) * PAGE; at < physical + end - address && pages.size < 200000; at += PAGE)
			pages.set(at, { live: 0, blocks: 0, most: 0, owner: -1, address: address + Math.max(0, at - physical) });
	}
	for (const p of pieces) {
		for (let at = Math.floor(p.start / PAGE) * PAGE; p.block >= 0 && at < p.end; at += PAGE) {
			const page = pages.get(at), part = Math.min(p.end, at + PAGE) - Math.max(p.start, at);
			if (!page)
				continue;
			page.live += part;
			page.blocks++;
			if (part > page.most) {
				page.most = part;
				page.owner = p.block;
			}
		}
	}
	const sorted = [...pages].sort((a, b) => a[0] - b[0]);
	const idle = sorted.filter(([, p]) => p.live === 0).length, partly = sorted.filter(([, p]) => p.live > 0 && p.live < PAGE / 2).length;
	const cells = sorted.map(([at, p]) => ({ size: 1, share: Math.min(1, p.live / PAGE), back: 'free', colour: 'c3', edge: true,
		about: () => words(name) + ' at ' + hex(at) + (framed ? ', mapped at ' + hex(p.address) : '') + ': ' + bytes(p.live) + ' live in ' + plural(p.blocks, 'block') +
			(p.owner >= 0 ? ', mostly ' + short_path(history.stacks.name(history.site[p.owner])) : '') }));
	return [element('h4', {}, framed ? 'Frames of the device and what they hold' : 'Pages and what they hold'),
		...strip('What each ' + name + ' of 2 MiB holds', cells), element('p', { class: 'quiet small' }, plural(sorted.length, name) + ' of 2 MiB: ' + count(idle) +
		' hold no live block, ' + count(partly) + ' are less than half live.')];
}
/* Whether `want` more bytes would fit. */
function fitWords(history, event, pieces, capacity, want) {
	const free = pieces.filter((p) => p.block < 0).map((p) => p.end - p.start), largest = most(free);
	const idle = sum(free, (n) => n), device = capacity.device_bytes ? capacity.device_bytes - history.physical[event] : -1;
	const inside = pieces.length > 0 ? 'The largest free range is ' + bytes(largest) + ', of ' + bytes(idle) + ' that are free in ' + plural(free.length, 'piece') + '. ' : '';
	if (largest >= want)
		return inside + 'The next ' + bytes(want) + ' would fit into it.';
	if (device < 0)
		return inside;
	return inside + 'The next ' + bytes(want) + (device >= want ? ' would need new memory, of which the device has ' + bytes(device) + ' left.'
		: ' would not fit: the device has ' + bytes(device) + ' left' + (idle + device >= want
			? ', and what is free in the allocator\u2019s memory lies in pieces.' : '.'));
}

/* A table of places in the program that sorts and filters: columns are [head, value, show]. */
class SiteTable {
	constructor(caption, columns, pick) {
		Object.assign(this, { caption, columns, pick, by: 0, down: true, text: '' });
		this.body = element('div', {});
		this.input = element('input', { type: 'search', 'aria-label': 'Filter ' + caption, placeholder: 'filter', input: () => {
			this.text = this.input.value.toLowerCase();
			this.draw();
		} });
		this.node = element('div', {}, this.input, this.body);
	}
	show(rows) {
		this.rows = rows;
		this.draw();
	}
	draw() {
		const value = this.by < 0 ? (r) => r.name : this.columns[this.by][1], sign = this.down ? -1 : 1;
		const rows = this.rows.filter((r) => (r.name + '\n' + r.frames.join('\n')).toLowerCase().includes(this.text))
			.sort((a, b) => sign * (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
		const head = [['Place in the program', -1], ...this.columns.map(([name], i) => [name, i])].map(([name, i]) =>
			button(name + (this.by === i ? this.down ? ' ▾' : ' ▴' : ''), () => {
				this.down = this.by === i ? !this.down : i >= 0;
				this.by = i;
				this.draw();
			}, { class: 'link' }));
		const place = (r) => element('details', {}, element('summary', { title: r.name }, short_path(r.name)),
			...r.frames.map((f) => element('div', { class: 'frame', title: f }, short_path(f))),
			this.pick ? button('show only these', () => this.pick(r), { class: 'link' }) : null);
		this.body.replaceChildren(table(head, rows.slice(0, 40).map((r) => [place(r), ...this.columns.map(([, v, show]) => show(v(r)))]), this.caption),
			element('p', { class: 'quiet small' }, rows.length > 40 ? plural(rows.length - 40, 'more place') : plural(rows.length, 'place')));
	}
}
function holderRows(history, holders) {
	return [...holders.values()].map((h) => ({ ...h, name: history.stacks.name(h.site), frames: history.stacks.frames(h.site) }));
}

const holdersByStack = (history, event) => new Map(holderRows(history, history.holders(event, (site) => history.stacks.key(site))).map((h) => [h.key, h]));

class MomentPanel {
	constructor(owner) {
		this.owner = owner;
		this.head = element('div', {});
		this.icicle = new Icicle((name) => { this.frame = name; });
		this.holders = new SiteTable('who held memory', [['Blocks', (r) => r.blocks, count], ['Live', (r) => r.bytes, bytes],
			['Share', (r) => r.bytes / Math.max(1, this.live), percent]], (r) => owner.setFilter({ text: r.name }));
		this.holders.by = 1;
		this.maps = element('div', {});
		this.want = element('input', { value: '1G', size: 6, 'aria-label': 'Bytes that are wanted', input: () => this.fit() });
		this.fits = element('p', { role: 'status' });
		this.node = element('div', { class: 'grid' },
			element('div', { class: 'card' }, element('h3', {}, 'Who held it'), this.head, this.icicle.node, this.holders.node),
			element('div', { class: 'card' }, element('h3', {}, 'Where it lay'), element('label', {}, 'Would ', this.want, ' more fit?'), this.fits, this.maps));
	}
	fit() {
		const { history, timeline, view } = this.owner;
		this.fits.textContent = fitWords(history, view.at, this.pieces, timeline.capacity, parseSize(this.want.value) || GIB);
	}
	show() {
		const { history, view, timeline } = this.owner, e = view.at;
		this.live = history.total[e];
		this.pieces = history.pieces(e);
		const ranges = history.rangesAt(e), pools = [...new Set(ranges.map((r) => r.pool).filter(Boolean))], lost = sum(history.liveAt(e), (b) => history.lost(b));
		this.head.replaceChildren(figures([[history.live, bytes(this.live)], ['physical', bytes(history.physical[e])],
			['blocks', count(history.madeBy[e] - history.goneBy[e])], ...(history.unit > 0 ? [['lost to rounding', bytes(lost)]] : []),
			...pools.map((p) => ['private pool (' + p + ')', bytes(sum(ranges.filter((r) => r.pool === p), (r) => r.end - r.start))])]));
		this.icicle.show(stackTree(history, e, timeline.wanted));
		this.holders.show(holderRows(history, history.holders(e, (site) => history.stacks.name(site), timeline.wanted)));
		this.maps.replaceChildren(...(this.pieces.length > 0 ? [element('h4', {}, 'Addresses and their owners'),
			...addressStrip(history, e, this.pieces, (b) => this.owner.pin(b)), legend([['free', 'free', 1]]),
			...pageStrip(history, e, this.pieces)]
			: [element('p', { class: 'quiet' }, 'The file does not tell where blocks lay.')]));
		this.fit();
	}
}
