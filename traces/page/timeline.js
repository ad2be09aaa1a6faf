/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of a history: its canvas with axes, the lanes below on the same axis, and the map of
 * the whole above. What is looked at is in `view`, which others change through set().
 */
const LANES = { memory: 74, fragmentation: 40, calls: 40, marks: 26 };
const MARGIN = { left: 72, right: 10 };

class Timeline {
	/* `result`: of its replay. `changed` is called after a change of the view. */
	constructor(history, result, view, changed) {
		Object.assign(this, { history, view, changed, step: 1 });
		this.capacity = (result.devices || []).find((d) => d.device === history.device) || {};
		this.series = this.capacity.series;
		this.build();
		this.refresh();
		onResize(this.stage, () => this.resize());
	}
	get full() {
		const h = this.history;
		return this.view.axis === 'time' ? [h.time[0], Math.max(h.time[h.events], h.time[0] + 1)] : [0, h.events + 1];
	}
	valueOf(event) {
		return this.view.axis === 'time' ? this.history.time[Math.min(event, this.history.events)] : event;
	}
	/* What is visible, in the axis' unit. */
	get domain() {
		const [from, to] = this.full, { x } = this.view;
		return [from + (to - from) * x[0], from + (to - from) * x[1]];
	}
	get heights() {
		const all = this.view.layout === 'address' ? this.addressScale().size : this.history.most * 1.04;
		return [all * this.view.y[0], all * this.view.y[1]];
	}
	addressScale() {
		return this.addresses = this.addresses || new AddressScale(this.history);
	}

	/* ---- elements ---- */

	build() {
		const canvas = (name, more) => element('canvas', { class: name, ...more });
		this.map = canvas('map', { 'aria-hidden': 'true' });
		this.main = canvas('main', { role: 'img' });
		this.over = canvas('over', { tabindex: 0, role: 'application',
			'aria-label': 'Timeline: arrows pan, plus and minus zoom, comma and full stop step, Escape resets' });
		this.lanes = canvas('lanes', { role: 'img', 'aria-label': 'Memory, fragmentation, calls and marks on the same axis' });
		this.axes = d3.select(svgElement('svg', { class: 'axes', 'aria-hidden': 'true' }));
		this.tip = element('div', { class: 'tip', role: 'status', 'aria-live': 'off' });
		this.stage = element('div', { class: 'stage' }, this.main, this.over, this.axes.node(), this.tip);
		this.node = element('div', { class: 'timeline' }, this.map, this.stage, this.lanes);
		this.zoom = d3.zoom().filter((event) => !event.shiftKey && !event.button)
			.on('zoom', (event) => this.zoomed(event.transform));
		const over = d3.select(this.over).call(this.zoom).on('dblclick.zoom', null);
		over.on('dblclick', () => this.set({ x: [0, 1], y: [0, 1] }))
			.on('click', (event) => this.clicked(event))
			.on('mousemove', (event) => this.hover(event))
			.on('mouseleave', () => { this.tip.hidden = true; })
			.on('wheel.y', (event) => this.wheelY(event))
			.on('keydown', (event) => this.key(event));
		const drag = (event) => {
			if (event.buttons !== 1)
				return;
			const at = (event.offsetX - MARGIN.left) / this.width, half = (this.view.x[1] - this.view.x[0]) / 2;
			this.setRange('x', at - half, at + half);
		};
		d3.select(this.map).on('pointerdown', drag).on('pointermove', drag);
		this.tip.hidden = true;
	}
	resize() {
		const width = Math.max(120, this.stage.clientWidth - MARGIN.left - MARGIN.right);
		const height = this.stage.clientHeight - 24;
		const image = new ImageData(width, height);
		this.raster = { width, height, image, rows: new Uint32Array(image.data.buffer) };
		for (const sized of [this, this.main, this.over])
			Object.assign(sized, { width, height });
		this.zoom.extent([[0, 0], [width, height]]).translateExtent([[0, 0], [width, height]])
			.scaleExtent([1, Math.max(8, this.history.events / 4)]);
		this.drawMap();
		this.set({});
	}

	/* ---- view ---- */

	zoomed(transform) {
		if (this.setting)
			return;
		const w = this.width;
		this.tip.hidden = true;
		this.setting = true;
		this.move({ x: [Math.max(0, -transform.x / transform.k / w), Math.min(1, (w - transform.x) / transform.k / w)] });
		this.setting = false;
	}
	/* A change that others follow soon: where drawing is slow, it is coarse until they end. */
	move(change) {
		clearTimeout(this.rests);
		this.moving = true;
		this.rests = setTimeout(() => {
			this.moving = false;
			this.draw();
		}, 150);
		this.set(change);
	}
	setRange(axis, from, to) {
		const length = Math.min(1, Math.max(to - from, axis === 'x' ? 4 / (this.history.events + 4) : 1e-6));
		const at = Math.max(0, Math.min(1 - length, from));
		this.move({ [axis]: [at, at + length] });
	}
	set(change) {
		Object.assign(this.view, change);
		if (this.width && !this.setting) {
			const [a, b] = this.view.x, k = 1 / (b - a);
			this.setting = true;
			this.zoom.transform(d3.select(this.over), d3.zoomIdentity.translate(-a * k * this.width, 0).scale(k));
			this.setting = false;
		}
		this.draw();
		this.changed();
	}
	/* After a change of what is wanted, or of colours. */
	refresh() {
		this.wanted = wantedBlocks(this.history, this.view.filter);
		this.look = makeLook(this.history, this.view.colour, this.view.categories);
		this.chosen = null;
		this.draw();
	}
	show(event) {
		const v = this.valueOf(event), [from, to] = this.full, at = (v - from) / (to - from), [a, b] = this.view.x;
		if (at < a || at > b)
			this.setRange('x', at - (b - a) / 2, at + (b - a) / 2);
	}
	wheelY(event) {
		if (!event.shiftKey)
			return;
		event.preventDefault();
		const [a, b] = this.view.y, at = a + (b - a) * (1 - event.offsetY / this.height);
		const k = 2 ** ((event.deltaY || event.deltaX) / 300);
		this.setRange('y', at - (at - a) * k, at + (b - at) * k);
	}
	key(event) {
		const [a, b] = this.view.x, step = (b - a) / 8, [low, high] = this.view.y, up = (high - low) / 8;
		const does = {
			ArrowLeft: () => this.setRange('x', a - step, b - step), ArrowRight: () => this.setRange('x', a + step, b + step),
			ArrowUp: () => this.setRange('y', low + up, high + up), ArrowDown: () => this.setRange('y', low - up, high - up),
			'+': () => this.setRange('x', a + step, b - step), '=': () => this.setRange('x', a + step, b - step), '-': () => this.setRange('x', a - step, b + step),
			'.': () => this.view.step(1), ',': () => this.view.step(-1), Home: () => this.view.go(0),
			End: () => this.view.go(this.history.events), Escape: () => this.pin(-1, { x: [0, 1], y: [0, 1] }),
			Enter: () => this.pin(this.history.blockAt(this.view.at)),
		}[event.key];
		if (!does || event.ctrlKey || event.metaKey)
			return;
		event.preventDefault();
		does();
	}

	/* The panels below show it, too. */
	pin(block, change) {
		Object.assign(this.view, { pin: block }, change);
		this.view.go(this.view.at);
	}

	/* ---- the pointer ---- */

	/* What is at a place of the canvas: { event, block, bytes }. */
	find(x, y) {
		const event = this.columns[Math.max(0, Math.min(this.width - 1, Math.floor(x)))];
		const [low, high] = this.heights, up = low + (high - low) * (1 - y / this.height);
		const block = this.view.layout === 'address' ? findAtAddress(this.history, this.addressScale(), event, up)
			: findInStack(this.history, this.chosen, event, up);
		return { event, block, up };
	}
	hover(event) {
		if (!this.columns)
			return;
		const { event: e, block, up } = this.find(event.offsetX, event.offsetY), h = this.history;
		const where = h.when(e) + ': ' + bytes(h.total[e]) + ' ' + h.live;
		const rest = this.view.layout === 'stack' && up < h.total[e] ? ['smaller blocks, and those that the filter leaves out'] : [];
		const ago = h.made[block] > 0 && h.clock !== 'none' ? ', ' + time(h.time[e] - h.time[h.made[block]]) : '';
		const label = (at) => h.label(at) + (at === h.made[block] ? ', ' + plural(e - at, 'event') + ' ago' + ago : '');
		const lines = block < 0 ? rest : [...blockFacts(h, block, label).map((fact) => fact.join(': ')), ...h.stacks.lines(h.site[block]).map(short_path), ...(h.ended[block] ? ['Freed by:', ...h.stacks.lines(h.ended[block]).map(short_path)] : [])];
		this.tip.replaceChildren(element('b', {}, where), ...lines.slice(0, 20).map((text) => element('div', {}, text)));
		this.tip.hidden = false;
		const left = event.offsetX + MARGIN.left + 14, wide = this.tip.offsetWidth;
		this.tip.style.left = Math.max(0, left + wide > this.stage.clientWidth ? left - wide - 28 : left) + 'px';
		this.tip.style.top = Math.max(0, Math.min(this.height - this.tip.offsetHeight, event.offsetY + 10)) + 'px';
	}
	clicked(event) {
		const { event: e, block } = this.find(event.offsetX, event.offsetY);
		this.view.pin = block;
		this.view.go(e);
	}

	/* ---- drawing ---- */

	draw() {
		if (!this.raster || this.waits)
			return;
		this.waits = true;
		requestAnimationFrame(() => {
			this.waits = false;
			this.drawNow();
		});
	}
	drawNow() {
		const { history, view, width } = this, [from, to] = this.domain, [low, high] = this.heights;
		const start = performance.now();
		this.columns = sampleColumns(history, view.axis, from, to, width, this.moving ? this.step : 1);
		this.pinned = [];
		const first = this.columns[0], last = this.columns[width - 1];
		let image;
		if (view.layout === 'address') {
			image = drawAddresses(this.raster, history, this.addressScale(), this.wanted, this.xScale(), low, high, this.look, this.moving ? this.step : 1);
		} else {
			/* until the view rests, what was chosen for a little more serves as well */
			if (!this.moving || !this.chosen || first < this.chosen.first || last > this.chosen.last || this.chosen.last - this.chosen.first > 1.5 * (last - first))
				this.chosen = { first, last, ...chooseBlocks(history, this.wanted, first, last, view.pin) };
			image = drawStack(this.raster, history, this.chosen, this.columns, low, high, this.look, view.pin, this.pinned);
		}
		this.main.getContext('2d').putImageData(image, 0, 0);
		if (!this.moving)
			this.main.setAttribute('aria-label', 'Live memory from ' + history.label(this.columns[0]) + ' to ' +
			history.label(this.columns[width - 1]) + ', at most ' + bytes(history.total[history.highest(this.columns[0], this.columns[width - 1] + 1)]));
		this.drawOver();
		this.drawAxes();
		this.drawLanes();
		if (this.moving)
			this.step = Math.max(1, Math.min(8, this.step + (performance.now() - start > 10 ? 1 : performance.now() - start < 5 ? -1 : 0)));
	}
	/* The column of a moment, as the view is now. */
	xScale() {
		const [from, to] = this.domain, k = this.width / (to - from), { time, events } = this.history;
		return this.view.axis === 'time' ? (e) => (time[Math.min(e, events)] - from) * k : (e) => (e - from) * k;
	}
	drawOver() {
		const pen = this.over.getContext('2d'), { history, view, width, height } = this, [low, high] = this.heights, xOf = this.xScale();
		const row = (v) => height - (v - low) / (high - low) * height;
		pen.clearRect(0, 0, width, height);
		pen.strokeStyle = pen.fillStyle = colour('text');
		pen.lineWidth = 2;
		if (view.layout === 'address' && view.pin >= 0 && this.addressScale().places[view.pin] >= 0) {
			const place = this.addressScale().places[view.pin], x = xOf(history.made[view.pin]);
			pen.strokeRect(x, row(place + history.size[view.pin]), Math.max(2, xOf(history.gone[view.pin]) - x),
				Math.max(2, row(place) - row(place + history.size[view.pin])));
		}
		for (const [c, wide, base, size] of this.pinned) {
			pen.fillRect(c, row(base + size) - 1, wide, 2);
			pen.fillRect(c, row(base) - 1, wide, 2);
		}
		const x = xOf(view.at);
		pen.globalAlpha = 0.7;
		pen.fillRect(x, 0, 1, height);
		if (view.layout === 'stack') {
			pen.font = '12px system-ui, sans-serif';
			pen.globalAlpha = 1;
			pen.fillStyle = colour('quiet');
			pen.fillText(this.chosen.all ? '' : 'The ' + count(DRAWN_MAX) + ' largest blocks of this range; the others are the band on top', 8, 14);
		}
	}
	drawAxes() {
		const { history, width, height, view } = this, [low, high] = this.heights;
		const show = view.axis === 'time' ? time : (e) => Number.isInteger(e) ? count(history.number[Math.min(e, history.events)]) : '';
		const scale = d3.scaleLinear([low, high], [height, 0]);
		const left = view.layout === 'address' ? d3.axisLeft(scale).ticks(6).tickFormat((v) => '…' + hex(Math.round(this.addressScale().place.invert(v) || 0)).slice(-9))
			: d3.axisLeft(scale).tickValues(byteTicks(low, high)).tickFormat(bytes);
		drawAxis(this.axes, 'x', MARGIN.left, height, d3.axisBottom(d3.scaleLinear(this.domain, [0, width])).ticks(Math.max(2, width / 110)).tickFormat(show));
		drawAxis(this.axes, 'y', MARGIN.left, 0, left);
		this.axes.attr('width', width + MARGIN.left + MARGIN.right).attr('height', height + 24);
	}
	drawMap() {
		const { history, width } = this, height = 44, back = this.back = element('canvas', { width, height });
		const columns = sampleColumns(history, 'event', 0, history.events + 1, width), pen = back.getContext('2d');
		this.map.width = width + MARGIN.left + MARGIN.right;
		this.map.height = height;
		pen.fillStyle = colour('c1');
		columns.forEach((e, x) => pen.fillRect(x, height - history.total[e] / history.most * height, 1, height));
	}

	/* ---- pictures ---- */

	/* As it is seen, with its axis and lanes. */
	savePng() {
		const { width, height, main, over, lanes } = this, out = element('canvas', { width: lanes.width, height: height + 24 + lanes.height });
		const pen = out.getContext('2d');
		pen.fillStyle = colour('card');
		pen.fillRect(0, 0, out.width, out.height);
		pen.drawImage(main, MARGIN.left, 0);
		pen.drawImage(over, MARGIN.left, 0);
		pen.drawImage(lanes, 0, height + 24);
		pen.fillStyle = colour('quiet');
		pen.font = '11px system-ui, sans-serif';
		this.axes.selectAll('.tick').each(function () {
			const at = this.getCTM(), upright = this.parentNode.classList.contains('x');
			pen.textAlign = upright ? 'center' : 'right';
			pen.fillText(this.textContent, at.e - (upright ? 0 : 9), at.f + (upright ? 18 : 4));
		});
		return new Promise((done) => out.toBlob((blob) => done(save(blob, 'png'))));
	}
	/* Blocks and lanes are pictures in it, the axes are lines. */
	saveSvg() {
		const { height, main, over, lanes } = this, all = { xmlns: SVG, width: lanes.width, height: height + 24 + lanes.height };
		const picture = (canvas, x, y) => svgElement('image', { x, y, href: canvas.toDataURL(), style: 'image-rendering:pixelated' });
		const svg = svgElement('svg', { ...all, 'font-family': 'sans-serif', 'font-size': 11, color: colour('quiet') },
			svgElement('rect', { width: '100%', height: '100%', fill: colour('card') }), picture(main, MARGIN.left, 0), picture(over, MARGIN.left, 0),
			picture(lanes, 0, height + 24), ...[...this.axes.node().childNodes].map((g) => g.cloneNode(true)));
		return save(new Blob([new XMLSerializer().serializeToString(svg)], { type: 'image/svg+xml' }), 'svg');
	}

	/* ---- below ---- */

	drawLanes() {
		const { lanes, width, history: h } = this;
		const list = ['memory', ...(h.mostPhysical > 0 ? ['fragmentation', 'calls'] : []), 'marks'];
		lanes.width = width + MARGIN.left + MARGIN.right;
		lanes.height = sum(list, (name) => LANES[name] + 6);
		const pen = lanes.getContext('2d');
		pen.font = '11px system-ui, sans-serif';
		let y = 0;
		for (const name of list) {
			const height = LANES[name];
			pen.fillStyle = colour('card');
			pen.fillRect(MARGIN.left, y, width, height);
			pen.fillStyle = colour('quiet');
			pen.textAlign = 'right';
			pen.fillText(name === 'fragmentation' ? 'not live' : name, MARGIN.left - 6, y + height / 2 + 4);
			pen.textAlign = 'left';
			pen.save();
			pen.beginPath();
			pen.rect(MARGIN.left, y, width, height);
			pen.clip();
			pen.translate(MARGIN.left, y);
			this[name + 'Lane'](pen, height, h, y);
			pen.restore();
			y += height + 6;
		}
		const map = this.map.getContext('2d'), [a, b] = this.view.x, x0 = MARGIN.left + a * width;
		map.clearRect(0, 0, this.map.width, 44);
		map.globalAlpha = 0.35;
		map.drawImage(this.back, MARGIN.left, 0);
		map.globalAlpha = 1;
		map.drawImage(this.back, a * width, 0, Math.max(1, (b - a) * width), 44, x0, 0, Math.max(1, (b - a) * width), 44);
		map.strokeStyle = colour('text');
		map.strokeRect(x0 + 0.5, 0.5, Math.max(2, (b - a) * width - 1), 43);
	}
	/* Lines in steps, over the whole lane at `top`; each is [colour, place(moment)]. As pixels, since
	 * a path of as many points takes longer than all the rest of a picture. */
	stepLines(pen, top, height, lines) {
		const { width, columns } = this, image = new ImageData(width, height), rows = new Uint32Array(image.data.buffer);
		rows.fill(pixel(colour('card')));
		for (const [paint, place] of lines) {
			const shade = pixel(colour(paint)), row = (e) => Math.max(0, Math.min(height - 2, Math.round(place(e)) - 1));
			columns.forEach((e, x) => {
				const y = row(e), before = row(columns[Math.max(0, x - 1)]);
				for (let i = Math.min(y, before); i < Math.max(y, before) + 2; i++)
					rows[i * width + x] = shade;
			});
		}
		pen.putImageData(image, MARGIN.left, top);
	}
	memoryLane(pen, height, h, top) {
		const s = this.series, physical = Math.max(h.mostPhysical, h.most);
		const addresses = s && Array.isArray(s.reserved_bytes) && Array.isArray(s.event) ? most(s.reserved_bytes) : 0;
		const reserved = addresses > 0 && addresses < 1.5 * physical, largest = reserved ? Math.max(physical, addresses) : physical;
		const scale = (v) => height - 2 - v / largest * (height - 18);
		this.stepLines(pen, top, height, [
			...(reserved ? [['quiet', (e) => scale(s.reserved_bytes[Math.max(0, above(s.event, h.number[e]) - 1)])]] : []),
			['text', (e) => scale(h.physical[e])], ['c1', (e) => scale(h.total[e])]]);
		[[h.live, 'c1'], ['physical', 'text'], ...(reserved ? [['reserved', 'quiet']] : [])].forEach(([name, paint], i) => {
			pen.fillStyle = colour(paint);
			pen.fillText(name, 6 + 62 * i, 11);
		});
	}
	fragmentationLane(pen, height, h, top) {
		this.stepLines(pen, top, height, [['c2', (e) => height - 2 - (h.physical[e] > 0 ? Math.max(0, 1 - h.total[e] / h.physical[e]) : 0) * (height - 4)]]);
	}
	/* Bars as high as the logarithm of what calls took, 1 µs to 1 s. */
	callsLane(pen, height, h) {
		const longest = new Map(), xOf = this.xScale(), end = above(h.callEvents, this.columns[this.width - 1]);
		for (let i = above(h.callEvents, this.columns[0] - 1); i < end; i++) {
			const x = Math.floor(xOf(h.callEvents[i]));
			longest.set(x, Math.max(longest.get(x) || 0, h.calls[i].ns));
		}
		pen.fillStyle = colour('c3');
		for (const [x, ns] of longest) {
			const high = Math.max(0.25, Math.min(1, Math.log10(Math.max(ns, 1000) / 1000) / 6)) * (height - 2);
			pen.fillRect(x, height - high, 1, high);
		}
		pen.fillStyle = colour('quiet');
		const slowest = most([...longest.values()]);
		pen.fillText(slowest > 0 ? 'longest ' + time(slowest) + (h.modelled ? ', modelled' : '') : '', 6, 11);
	}
	marksLane(pen, height, h) {
		const xOf = this.xScale();
		pen.fillStyle = colour('alarm');
		for (const e of h.failures) {
			pen.fillRect(xOf(e), 0, 2, height);
			pen.fillText('out of memory', xOf(e) + 5, 11);
		}
		pen.fillStyle = colour('c4');
		let free = 0;
		for (const e of h.marks) {
			const x = xOf(e), text = h.textAt(e);
			pen.fillRect(x, 0, 1, height);
			if (x < free || x > this.width)
				continue;
			pen.fillText(text, x + 4, height - 5);
			free = x + 10 + pen.measureText(text).width;
		}
	}
}
