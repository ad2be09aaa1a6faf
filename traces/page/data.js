/* SPDX-License-Identifier: Apache-2.0
 *
 * Histories of files in typed arrays: page.h says how they are packed. It draws nothing.
 *
 * A moment is the state after an event: 0 is the start, 1 the first event. A block is live at the
 * moments from `made` up to `gone`, that one excluded.
 */
const ROUNDING = 512; /* bytes that allocators round sizes to: what lies behind a block is no gap */
const TOP = 64; /* moments of which the highest is kept */
const RUNS_MAX = 20000; /* pieces of memory that a replay tells of: of so many, some may be missing */

async function unpack(text) {
	const packed = atob(text.trim()), raw = new Uint8Array(packed.length);
	for (let i = 0; i < raw.length; i++)
		raw[i] = packed.charCodeAt(i);
	const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream('deflate'));
	const data = new Uint8Array(await new Response(stream).arrayBuffer());
	const end = 4 + new DataView(data.buffer).getUint32(0, true);
	const head = JSON.parse(new TextDecoder().decode(data.subarray(4, end)));
	const columns = {};
	let at = end;
	for (const [name, values, size] of head.columns) {
		const out = columns[name] = size > 4 ? new Float64Array(values) : new Uint32Array(values);
		for (let b = 0; b < size; b++) {
			const scale = 256 ** b;
			for (let i = 0; i < values; i++)
				out[i] += data[at + i] * scale;
			at += values;
		}
	}
	return { head, columns };
}

/* Values from their differences, of which odd ones are below 0; `more` at the front for what was before. */
function grown(column, Kind, more = 0) {
	const out = new Kind(column.length + more);
	for (let i = 0, sum = 0; i < column.length; i++)
		out[i + more] = sum += column[i] % 2 === 1 ? -(column[i] + 1) / 2 : column[i] / 2;
	return out;
}

/* What several devices of a file share: call stacks. */
class Stacks {
	constructor(head, columns) {
		this.texts = head.texts;
		this.label = columns['site.label'];
		this.frame = columns['site.frame'];
		this.first = grown(columns['site.depth'].map((n) => 2 * n), Uint32Array, 1);
		this.cached = new Map();
	}
	/* Texts, innermost first. */
	frames(site) {
		const of = [];
		for (let i = this.first[site]; i < this.first[site + 1]; i++)
			of.push(this.texts[this.frame[i]]);
		return of;
	}
	name(site) {
		return site < this.label.length ? this.texts[this.label[site]] : '(no call site in the file)';
	}
	/* Its frames, or where there are none its name. */
	lines(site) {
		const frames = this.frames(site);
		return frames.length > 0 ? frames : [this.name(site)];
	}
	/* The whole stack in one text: equal in two files for the same place. */
	key(site) {
		return once(this.cached, site, () => this.lines(site).join('\n'));
	}
}

class History {
	constructor(name, { head, columns }, device, stacks) {
		const column = (of) => columns[device + '.' + of];
		this.name = name;
		this.live = 'live'; /* what blocks are, in words */
		[this.device, this.unit] = head.devices[device];
		for (const of of ['recorded', 'uses', 'settings', 'verbs', 'texts'])
			this[of] = head[of];
		this.stacks = stacks;
		this.clock = head.time;
		this.verb = column('event.verb');
		this.events = this.verb.length;
		this.number = grown(column('event.number'), Float64Array, 1);
		this.time = grown(column('event.time'), Float64Array, 1);
		this.rows = { event: grown(column('row.event'), Uint32Array) };
		for (const of of ['address', 'size', 'site', 'text', 'stream', 'free', 'took', 'pool'])
			this.rows[of] = column('row.' + of);
		for (const of of ['address', 'size', 'site', 'stream', 'used', 'ended', 'over'])
			this[of] = column('block.' + of);
		this.ended = this.ended.map((bits, b) => bits && (bits - 1) ^ this.site[b]);
		this.made = grown(column('block.event'), Uint32Array);
		this.gone = column('block.life').map((life, b) => life ? this.made[b] + life : this.events + 1);
		this.asked = column('block.wait').map((wait, b) => wait && this.gone[b] - wait);
		this.index();
		this.physical = new Float64Array(this.events + 1);
		const after = grown(column('row.physical'), Float64Array);
		for (let r = 0; r < after.length; r++)
			this.physical.fill(after[r], this.rows.event[r], r + 1 < after.length ? this.rows.event[r + 1] : undefined);
		this.mostPhysical = most(this.physical);
		this.failures = this.eventsOf('oom');
		this.marks = this.eventsOf('note').filter((e) => this.rows.text[this.rowAt(e)] > 0);
	}
	index() {
		const n = this.events, blocks = this.blocks = this.size.length;
		/* before which block those made later begin; the same of those in the order in which they go */
		this.madeBy = new Uint32Array(n + 2);
		this.goneBy = new Uint32Array(n + 2);
		this.total = new Float64Array(n + 1);
		for (let b = 0; b < blocks; b++) {
			this.madeBy[this.made[b]]++;
			this.goneBy[this.gone[b]]++;
			this.total[this.made[b]] += this.size[b];
			if (this.gone[b] <= n)
				this.total[this.gone[b]] -= this.size[b];
		}
		for (let e = 1; e < n + 2; e++) {
			this.madeBy[e] += this.madeBy[e - 1];
			this.goneBy[e] += this.goneBy[e - 1];
			if (e <= n)
				this.total[e] += this.total[e - 1];
		}
		const next = this.goneBy.slice();
		this.byEnd = new Uint32Array(blocks);
		for (let b = blocks - 1; b >= 0; b--)
			this.byEnd[--next[this.gone[b]]] = b;
		this.bySize = new Uint32Array(blocks).map((x, i) => i).sort((a, b) => this.size[b] - this.size[a]);
		this.place = null;
		this.tops = new Uint32Array((n + 1) / TOP);
		for (let e = 1; e < this.tops.length * TOP; e++) {
			if (e % TOP === 0 || this.total[e] > this.total[this.tops[e / TOP | 0]])
				this.tops[e / TOP | 0] = e;
		}
		this.peak = this.highest(0, n + 1);
		this.most = Math.max(this.total[this.peak], 1);
	}
	/* The same history with its segments, or what calls mapped, for blocks. */
	get segments() {
		const of = Object.create(this), { ranges } = this;
		of.live = 'held';
		of.name = this.name + (this.name ? ', ' : '') + 'segments';
		of.size = Float64Array.from(ranges, (r) => r.end - r.start);
		of.address = Float64Array.from(ranges, (r) => r.start);
		for (const name of ['made', 'gone', 'site', 'stream'])
			of[name] = Uint32Array.from(ranges, (r) => r[name]);
		of.asked = of.used = of.ended = of.over = new Uint32Array(ranges.length);
		of.uses = '';
		of.unit = 0;
		of.index();
		return of;
	}
	/* What a replay of the file knows beside it: each call, and where memory lay on the device. Times
	 * that the file has itself go first. */
	add({ each_call: each, frames }) {
		const { event, took } = this.rows, own = [...event.keys()].filter((i) => took[i] > 0), eventOf = (n) => above(this.number, n) - 1;
		this.modelled = own.length === 0;
		this.calls = this.modelled ? each.event.map((n, i) => ({ event: eventOf(n), ns: each.took_ns[i], name: each.functions[each.function[i]] }))
			: own.map((i) => ({ event: event[i], ns: took[i] - 1, name: this.verbAt(event[i]) }));
		this.callEvents = Uint32Array.from(this.calls, (c) => c.event);
		/* calls that are made again get the model's addresses */
		const first = new Map(), again = ['malloc', 'map'];
		this.runs = (frames.address.length < RUNS_MAX ? frames.address : []).map((address, i) => {
			const made = eventOf(frames.since[i]);
			const start = address - once(first, made, () => again.includes(this.verbAt(made)) ? address - this.rows.address[this.rowAt(made)] : 0);
			return { address: start, end: start + frames.bytes[i], physical: frames.physical[i], made, gone: above(this.number, frames.until[i] - 1) };
		}).sort((a, b) => a.address - b.address);
	}
	rowAt(event) {
		const at = above(this.rows.event, event - 1);
		return at < this.rows.event.length && this.rows.event[at] === event ? at : -1;
	}
	/* The block that an event makes, asks to free or frees; -1. */
	blockAt(event) {
		if (event === 0)
			return -1;
		if (this.madeBy[event] > this.madeBy[event - 1])
			return this.madeBy[event - 1];
		if (this.goneBy[event] > this.goneBy[event - 1])
			return this.byEnd[this.goneBy[event - 1]];
		return this.asked.indexOf(event);
	}
	eventsOf(name) {
		const verb = this.verbs.indexOf(name), found = [];
		for (let i = this.verb.indexOf(verb); i >= 0; i = this.verb.indexOf(verb, i + 1))
			found.push(i + 1);
		return found;
	}
	verbAt(event) {
		return event === 0 ? 'start' : this.verbs[this.verb[event - 1]];
	}
	textAt(event) {
		const row = this.rowAt(event), text = row < 0 ? 0 : this.rows.text[row];
		return text > 0 ? this.texts[text - 1] : '';
	}
	when(event) {
		return this.label(event) + (this.clock !== 'none' ? ', ' + time(this.time[event]) : '');
	}
	label(event) {
		return event === 0 ? 'start' : 'event ' + count(this.number[event]);
	}

	/* The moment in [from, to) at which most is live. */
	highest(from, to) {
		const { total, tops } = this;
		let best = from;
		for (let e = from; e < to; e++) {
			const jump = e % TOP === 0 && e + TOP <= to, at = jump ? tops[e / TOP] : e;
			if (total[at] > total[best])
				best = at;
			if (jump)
				e += TOP - 1;
		}
		return best;
	}
	/* Bytes of a block that rounding takes: as the file says, else to the allocator's next multiple. */
	lost(block) {
		return this.over[block] || (this.unit && Math.ceil(this.size[block] / this.unit) * this.unit - this.size[block]);
	}
	isLive(block, event) {
		return this.made[block] <= event && event < this.gone[block];
	}
	liveAt(event) {
		const live = [];
		for (let b = 0; b < this.madeBy[event]; b++) {
			if (this.gone[b] > event)
				live.push(b);
		}
		return live;
	}
	/* Bytes and blocks at a moment by what `key` says of a site: Map of { bytes, blocks, site }. */
	holders(event, key, wanted) {
		const by = new Map(), of_site = new Map();
		const make = (site) => once(by, key(site), (k) => ({ key: k, bytes: 0, blocks: 0, site }));
		for (const b of this.liveAt(event)) {
			if (wanted && !wanted[b])
				continue;
			const h = once(of_site, this.site[b], make);
			h.bytes += this.size[b];
			h.blocks++;
		}
		return by;
	}
	/* Memory at addresses from an event to another: { start, end, made, gone }, in order of `made`. */
	get ranges() {
		if (this.allRanges)
			return this.allRanges;
		const open = new Map(), all = this.allRanges = [], { event, address, size } = this.rows;
		const segments = this.verb.some((v) => /^segment_/.test(this.verbs[v])) || event[0] === 0;
		const comes = segments ? ['segment_alloc', 'segment_map', 'start'] : ['malloc', 'map'];
		const goes = segments ? ['segment_free', 'segment_unmap'] : ['mfree', 'unmap'];
		const add = (start, end, made, { site, stream, pool }) => {
			const r = { start, end, made, gone: this.events + 1, site, stream, pool };
			open.set(start, r);
			all.push(r);
		};
		/* parts of what was mapped at once may go alone */
		const cut = (start, end, at) => {
			for (const r of [...open.values()]) {
				if (r.end <= start || r.start >= end)
					continue;
				open.delete(r.start);
				r.gone = at;
				if (r.start < start)
					add(r.start, start, at, r);
				if (r.end > end)
					add(end, r.end, at, r);
			}
		};
		for (let i = 0; i < event.length; i++) {
			const start = address[i], end = start + size[i], verb = this.verbAt(event[i]), known = open.get(start);
			const made = comes.includes(verb), gone = goes.includes(verb);
			if (start === 0 || end === start)
				continue;
			if (gone && known && known.end === end) {
				known.gone = event[i];
				open.delete(start);
			} else if (gone || (made && known)) {
				cut(start, end, event[i]);
			}
			if (made)
				add(start, end, event[i], { site: this.rows.site[i], stream: this.rows.stream[i], pool: this.texts[this.rows.pool[i] - 1] });
		}
		return all;
	}
	/* Ranges that are there at a moment, by address; those that adjoin are apart. */
	rangesAt(event) {
		return this.ranges.filter((r) => r.made <= event && event < r.gone)
			.sort((a, b) => a.start - b.start);
	}
	/* Where free memory lies between the blocks of a moment: { start, end }. */
	pieces(event) {
		const blocks = this.liveAt(event).filter((b) => this.address[b] > 0)
			.sort((a, b) => this.address[a] - this.address[b]);
		const out = [];
		let i = 0;
		for (const r of this.rangesAt(event)) {
			let at = r.start;
			while (i < blocks.length && this.address[blocks[i]] < r.start)
				i++;
			for (; i < blocks.length && this.address[blocks[i]] < r.end; i++) {
				const b = blocks[i], start = this.address[b];
				if (start - at >= ROUNDING)
					out.push({ start: at, end: start, block: -1, of: r });
				at = Math.max(at, Math.min(r.end, start + this.size[b] + this.lost(b)));
				out.push({ start, end: at, block: b, of: r });
			}
			if (r.end - at >= ROUNDING)
				out.push({ start: at, end: r.end, block: -1, of: r });
		}
		return out;
	}
}

/* Index of the first of sorted values, up to `high`, that is above. */
function above(sorted, value, high = sorted.length) {
	let low = 0;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (sorted[middle] > value)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}
