/* SPDX-License-Identifier: Apache-2.0
 *
 * The two layouts of a timeline, as pixels: blocks stacked in the order in which they were made,
 * and blocks at their addresses. It knows a history, not the page.
 *
 * A column of pixels shows one moment: of those that fall into it, the one at which most is live,
 * so that no peak disappears. In a stack the largest blocks that are wanted are drawn one by one;
 * the rest is a band on top, so that the height is exact.
 */
const DRAWN_MAX = 15000;

/* The moment of each of `width` columns over [from, to), in events or in ns; `step` columns beside
 * each other have the same. */
function sampleColumns(history, axis, from, to, width, step = 1) {
	const columns = new Uint32Array(width), last = history.events;
	const before = axis === 'time' ? (v) => above(history.time, v) : (v) => Math.floor(v) + 1;
	let e = Math.min(last + 1, Math.max(1, before(from)));
	for (let i = 0; i < width; i += step) {
		const end = Math.min(last + 1, Math.max(1, before(from + (to - from) * (i + step) / width)));
		columns.fill(e < end ? history.highest(i === 0 ? e - 1 : e, end) : Math.min(last, e - 1), i, i + step);
		e = end;
	}
	return columns;
}

/* The largest blocks that are wanted and live in [first, last], in the order in which they were
 * made, and `always`; `ends`: places in that order of those that go by then, as they go. */
function chooseBlocks(history, wanted, first, last, always) {
	const { bySize, byEnd, made, gone, size, madeBy, goneBy } = history, ends = [];
	const place = history.place = history.place || new Uint32Array(history.blocks), slots = new Uint32Array(DRAWN_MAX), sizes = new Float64Array(DRAWN_MAX);
	/* all that is live where it can be drawn, else by size */
	const few = madeBy[last] - goneBy[first] < DRAWN_MAX, fits = (b) => gone[b] > first && made[b] <= last && wanted[b];
	let left = few ? 0 : DRAWN_MAX, count = 0;
	place.fill(0);
	if (left > 0 && always >= 0 && fits(always))
		left -= place[always] = 1;
	for (let i = 0; i < bySize.length && left > 0; i++) {
		if (fits(bySize[i]) && !place[bySize[i]])
			left -= place[bySize[i]] = 1;
	}
	for (let b = 0; b < madeBy[last]; b++) {
		if (few ? fits(b) : place[b]) {
			slots[count] = b;
			sizes[count] = size[b];
			place[b] = ++count;
		}
	}
	for (let i = goneBy[first]; i < goneBy[last]; i++) {
		if (place[byEnd[i]])
			ends.push(place[byEnd[i]] - 1);
	}
	return { slots: slots.subarray(0, count), sizes, ends, all: few || left > 0 };
}

/* A column of pixels, from the bottom up, in `wide` columns of a picture from c on. */
function putColumn({ width, height, rows }, c, wide, pixels) {
	for (let y = 0, start = (height - 1) * width + c; y < height; y++, start -= width) {
		const paint = pixels[y];
		for (let p = start; p < start + wide; p++)
			rows[p] = paint;
	}
}
/* Blocks on each other, in a column of pixels; its loops are in functions of their own, to be compiled. */
class Pile {
	constructor(chosen, look, height, low, high) {
		const { slots, sizes } = chosen, K = slots.length;
		Object.assign(this, { sizes, height, low, high, scale: height / (high - low), edge: look.edge, held: 0, painted: 0 });
		this.shades = slots.map((b) => look.colours[b]);
		this.live = new Uint8Array(K);
		/* slots that are live, from the bottom up, and where each begins; behind the last, where the next would */
		this.stack = new Uint32Array(K);
		this.base = new Float64Array(K + 1);
		this.pixels = new Uint32Array(height);
	}
	row(bytes_up) {
		return bytes_up >= this.high ? this.height : bytes_up <= this.low ? 0 : (bytes_up - this.low) * this.scale + 0.5 | 0;
	}
	/* Blocks from the one at `from` on have come, or some of them have gone. */
	draw(from) {
		const { stack, base, live, sizes, shades, pixels, height, low, scale, held, edge } = this;
		let up = base[from], kept = from, y = Math.min(this.row(up), this.painted), limit = low + (y + 0.5) / scale;
		for (let i = from; i < held; i++) {
			const s = stack[i];
			if (!live[s])
				continue;
			stack[kept] = s;
			base[kept++] = up;
			up += sizes[s];
			if (up < limit) /* less than a pixel more */
				continue;
			const top = this.row(up), thick = top - y > 3 && top < height;
			for (; y < top; y++)
				pixels[y] = shades[s];
			if (thick)
				pixels[top - 1] = edge;
			limit = y < height ? low + (y + 0.5) / scale : Infinity;
		}
		this.held = kept;
		base[kept] = up;
		this.painted = y;
	}
}

/* Goes through the columns from left to right. `low`, `high`: bytes at the lower and upper edge; colours
 * of blocks are pixels. What is of `pin` is added to `pinned` as [column, columns, bottom, size], in bytes. */
function drawStack(raster, history, chosen, columns, low, high, look, pin, pinned) {
	const { slots, sizes, ends } = chosen, { made, gone } = history, K = slots.length, own = above(slots, pin) - 1;
	const pile = new Pile(chosen, look, raster.height, low, high);
	let add = 0, end = 0;
	for (let c = 0, wide; c < columns.length; c += wide) {
		const e = columns[c];
		let from = pile.held;
		for (wide = 1; c + wide < columns.length && columns[c + wide] === e;)
			wide++;
		for (; end < ends.length && gone[slots[ends[end]]] <= e; end++) {
			if (pile.live[ends[end]])
				from = Math.min(from, above(pile.stack, ends[end], pile.held) - 1);
			pile.live[ends[end]] = 0;
		}
		for (; add < K && made[slots[add]] <= e; add++) {
			pile.live[add] = gone[slots[add]] > e ? 1 : 0;
			pile.stack[pile.held] = add;
			pile.held += pile.live[add];
		}
		if (from < pile.held)
			pile.draw(from);
		const all = pile.row(history.total[e]);
		pile.pixels.fill(look.rest, pile.painted, Math.max(pile.painted, all)).fill(look.back, Math.max(pile.painted, all));
		putColumn(raster, c, wide, pile.pixels);
		if (own >= 0 && slots[own] === pin && pile.live[own])
			pinned.push([c, wide, pile.base[above(pile.stack, own, pile.held) - 1], sizes[own]]);
	}
	return raster.image;
}

/* The block at `bytes` above the bottom; -1: in the band, or nothing. */
function findInStack(history, chosen, event, bytes_up) {
	let y = 0;
	for (const b of chosen.slots) {
		if (history.isLive(b, event)) {
			y += history.size[b];
			if (y > bytes_up)
				return b;
		}
	}
	return -1;
}

/* Addresses that are in use one after another, gaps between them narrow. */
class AddressScale {
	constructor(history) {
		const { blocks, address, size } = history, ends = new Map(), spans = [], places = [];
		const use = (start, end) => ends.set(start, Math.max(ends.get(start) || 0, end));
		history.ranges.forEach((r) => use(r.start, r.end));
		for (let b = 0; b < blocks; b++)
			use(address[b], address[b] + size[b]);
		ends.delete(0);
		for (const [start, end] of [...ends].sort((a, b) => a[0] - b[0])) {
			const last = spans[spans.length - 1];
			if (last && start <= last[1] + (1 << 20))
				last[1] = Math.max(last[1], end);
			else
				spans.push([start, end]);
		}
		const gap = spans.reduce((n, s) => n + s[1] - s[0], 0) / 200 / Math.max(1, spans.length / 10);
		this.size = 0;
		for (const [start, end] of spans) {
			places.push(this.size, this.size + end - start);
			this.size += end - start + gap;
		}
		this.place = d3.scaleLinear(spans.flat(), places);
		for (const start of ends.keys())
			ends.set(start, this.place(start));
		this.places = new Float64Array(blocks);
		for (let b = 0; b < blocks; b++)
			this.places[b] = address[b] > 0 ? ends.get(address[b]) : -1;
	}
}

/* `xOf`: column of a moment. Rectangles of less than a pixel are a pixel; in a row of pixels, of the
 * blocks that are lower than it the first is seen, and of narrow ones one of `step` is drawn. */
function drawAddresses(raster, history, scale, wanted, xOf, low, high, look, step) {
	const { width, height, rows } = raster, { made, gone, size } = history, { places } = scale;
	const per = height / (high - low);
	const rectangle = (left, right, place, length, colour) => {
		const upper = height - (place + length - low) * per, lower = upper + length * per;
		if (right < 0 || left >= width || lower < 0 || upper >= height)
			return;
		const x0 = left < 0 ? 0 : left | 0, x1 = right < x0 + 1 ? x0 + 1 : right < width ? right | 0 : width;
		const y0 = upper < 0 ? 0 : upper | 0, last = lower < y0 + 1 ? y0 + 1 : lower < height ? lower | 0 : height;
		for (let y = y0; y < last; y++) {
			if (x1 - x0 > 24)
				rows.fill(colour, y * width + x0, y * width + x1);
			else
				for (let i = y * width + x0; i < y * width + x1; i++)
					rows[i] = colour;
		}
		if (last - y0 > 4 && x1 - x0 > 2)
			rows.fill(look.edge, y0 * width + x0, y0 * width + x1);
	};
	rows.fill(look.back);
	for (const r of history.ranges)
		rectangle(xOf(r.made), xOf(r.gone), scale.place(r.start), r.end - r.start, look.free);
	const taken = new Uint16Array(height); /* of each row the columns before, by such blocks that are wanted */
	for (let b = 0, narrow = 0; b < history.blocks; b++) {
		const left = xOf(made[b]), right = xOf(gone[b]), y = height - (places[b] + size[b] - low) * per | 0;
		if (left >= width)
			break;
		if (right < 0 || places[b] < 0)
			continue;
		const paint = wanted[b] ? look.colours[b] : look.rest;
		if (size[b] * per >= 1) {
			if (right - left >= 1 || ++narrow % step === 0)
				rectangle(left, right, places[b], size[b], paint);
		} else if (y >= 0 && y < height && right >= taken[y]) {
			const end = right < left + 1 ? left + 1 | 0 : right < width ? right | 0 : width;
			for (let x = left > taken[y] ? left | 0 : taken[y]; x < end; x++)
				rows[y * width + x] = paint;
			if (wanted[b] && end > taken[y])
				taken[y] = end;
		}
	}
	return raster.image;
}
function findAtAddress(history, scale, event, place) {
	for (let b = history.madeBy[event] - 1; b >= 0; b--) {
		if (history.gone[b] > event && scale.places[b] >= 0 && place >= scale.places[b] &&
		    place < scale.places[b] + history.size[b])
			return b;
	}
	return -1;
}
