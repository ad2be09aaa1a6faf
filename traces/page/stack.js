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
	const { bySize, byEnd, made, gone, size, madeBy, goneBy } = history, picked = new Uint8Array(history.blocks);
	/* where all that is live can be drawn, in their own order; else by size */
	const few = madeBy[last] - goneBy[first] < DRAWN_MAX, end = few ? madeBy[last] : bySize.length;
	let left = DRAWN_MAX;
	if (always >= 0 && wanted[always] && made[always] <= last && gone[always] > first)
		left -= picked[always] = 1;
	for (let i = 0; i < end && left > 0; i++) {
		const b = few ? i : bySize[i];
		if (gone[b] > first && made[b] <= last && wanted[b] && !picked[b]) {
			picked[b] = 1;
			left--;
		}
	}
	const slots = new Uint32Array(DRAWN_MAX - left), sizes = new Float64Array(slots.length);
	const slotOf = history.slotOf = history.slotOf || new Uint32Array(history.blocks), ends = [];
	for (let b = 0, k = 0; k < slots.length; b++) {
		if (picked[b]) {
			slotOf[b] = k;
			sizes[k] = size[b];
			slots[k++] = b;
		}
	}
	for (let i = goneBy[first]; i < goneBy[last]; i++) {
		if (picked[byEnd[i]])
			ends.push(slotOf[byEnd[i]]);
	}
	return { slots, sizes, ends, all: left > 0 };
}

/* Goes through the columns from left to right. Of a column, paint(column, under, list) is called:
 * up to slot `under` (-1: all, K: nothing) it is as the one before, and list.next and list.base tell
 * what is live there, from the bottom up, and where it begins. Behind it paint() has to set base[]
 * of what follows. Slot K stands below the first; next[] of the last is -1. */
function sweepStack(history, chosen, columns, paint) {
	const { slots, ends } = chosen, K = slots.length, { made, gone } = history;
	const next = new Int32Array(K + 1).fill(-1), before = new Int32Array(K + 1).fill(-1), live = new Uint8Array(K);
	const list = { next, base: new Float64Array(K + 1) };
	let tail = K, add = 0, end = 0;
	for (let c = 0; c < columns.length; c++) {
		const e = columns[c];
		let under = c === 0 ? K : -1;
		for (; add < K && made[slots[add]] <= e; add++) {
			if (gone[slots[add]] <= e)
				continue;
			under = under < 0 ? tail : under;
			live[add] = 1;
			before[add] = tail;
			next[tail] = add;
			tail = add;
		}
		for (; end < ends.length && gone[slots[ends[end]]] <= e; end++) {
			const s = ends[end];
			if (!live[s])
				continue;
			live[s] = 0;
			if (under < 0 || (under !== K && s <= under))
				under = before[s];
			next[before[s]] = next[s];
			if (next[s] >= 0)
				before[next[s]] = before[s];
			else
				tail = before[s];
		}
		paint(c, under, list);
	}
}

/* Columns of pixels, turned into rows at the end. */
class Raster {
	constructor(width, height) {
		this.width = width;
		this.height = height;
		this.columns = new Uint32Array(width * height); /* from the bottom up */
		this.image = new ImageData(width, height);
		this.rows = new Uint32Array(this.image.data.buffer);
	}
	turn() {
		const { width, height, columns, rows } = this;
		for (let x0 = 0; x0 < width; x0 += 16) {
			const x1 = Math.min(width, x0 + 16);
			for (let y = 0; y < height; y++) {
				const row = (height - 1 - y) * width;
				for (let x = x0; x < x1; x++)
					rows[row + x] = columns[x * height + y];
			}
		}
		return this.image;
	}
}

/* `low`, `high`: bytes at the lower and upper edge; colours of blocks are pixels. What is of `pin` at
 * each column is added to `pinned` as [column, bottom, size], in bytes. */
function drawStack(raster, history, chosen, columns, low, high, look, pin, pinned) {
	const { height, columns: pixels } = raster, { slots, sizes } = chosen, K = slots.length;
	const scale = height / (high - low), place = above(slots, pin) - 1, shades = new Uint32Array(K);
	for (let s = 0; s < K; s++)
		shades[s] = look.colours[slots[s]];
	const row = (bytes_up) => Math.max(0, Math.min(height, Math.round((bytes_up - low) * scale)));
	let painted = 0;
	sweepStack(history, chosen, columns, (c, under, { next, base }) => {
		const at = c * height, bottom = under < 0 ? Infinity : under === K ? 0 : base[under] + sizes[under];
		let y = Math.min(row(bottom), painted), up = bottom, limit = low + (y + 0.5) / scale;
		if (y > 0)
			pixels.copyWithin(at, at - height, at - height + y);
		for (let s = under < 0 ? -1 : next[under]; s >= 0; s = next[s]) {
			base[s] = up;
			up += sizes[s];
			if (up < limit) /* less than a pixel more */
				continue;
			const end = row(up);
			pixels.fill(shades[s], at + y, at + end);
			if (end - y > 3 && end < height)
				pixels[at + end - 1] = look.edge;
			y = end;
			limit = y < height ? low + (y + 0.5) / scale : Infinity;
		}
		painted = y;
		const all = row(history.total[columns[c]]);
		if (all > y)
			pixels.fill(look.rest, at + y, at + all);
		pixels.fill(look.back, at + Math.max(y, all), at + height);
		if (slots[place] === pin && history.isLive(pin, columns[c]))
			pinned.push([c, base[place], sizes[place]]);
	});
	return raster.turn();
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

/* `xOf`: column of a moment. Rectangles of less than a pixel are a pixel; of blocks that are as
 * small in either direction, one of `step` is drawn. */
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
	for (let b = 0, small = 0; b < history.blocks; b++) {
		const left = xOf(made[b]), right = xOf(gone[b]);
		if (left >= width)
			break;
		if (right >= 0 && places[b] >= 0 && ((right - left >= 1 && size[b] * per >= 1) || ++small % step === 0))
			rectangle(left, right, places[b], size[b], wanted[b] ? look.colours[b] : look.rest);
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
