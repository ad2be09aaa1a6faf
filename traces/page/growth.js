/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows what grew between two moments of a history, by call stack, and which blocks live longer
 * than others of their place.
 */
/* What each place held in either of two moments: both are Maps of { name, frames, bytes, blocks }. */
function difference(a, b) {
	const none = { bytes: 0, blocks: 0 };
	return [...new Set([...a.keys(), ...b.keys()])].map((key) => {
		const x = a.get(key) || none, y = b.get(key) || none, { name, frames } = a.get(key) || y;
		return { key, name, frames, before: x.bytes, after: y.bytes, bytes: y.bytes - x.bytes, blocks: y.blocks - x.blocks };
	});
}

class GrowthPanel {
	constructor(owner) {
		const { history } = owner;
		this.owner = owner;
		this.from = 0;
		this.to = history.events;
		this.steps = 8;
		const sites = [['Growth', (r) => r.bytes, signed], ['Blocks', (r) => r.blocks, count], ['Before', (r) => r.before, bytes],
			['After', (r) => r.after, bytes], ['Steps that grew', (r) => r.grew, (n) => n + ' of ' + this.steps]];
		this.table = new SiteTable('growth by call stack', sites, (r) => owner.setFilter({ text: r.name }));
		this.old = element('div', {});
		this.words = element('p', { role: 'status' });
		const moments = () => [['0', 'start'], [String(history.peak), 'peak'], [String(history.events), 'end'],
			...history.marks.slice(0, 200).map((e) => [String(e), history.textAt(e) + ' (' + history.label(e) + ')'])];
		const pick = (name, label) => choice(label, [['', 'the moment shown'], ...moments()], String(this[name]), (v) => {
			this[name] = v === '' ? owner.view.at : Number(v);
			this.show();
		});
		const steps = element('input', { type: 'number', min: 1, max: 100, value: this.steps, input: () => {
			this.steps = Math.max(1, Math.min(100, Math.round(Number(steps.value)) || 8));
			this.show();
		} });
		this.node = element('div', { class: 'card' }, element('div', { class: 'controls' }, pick('from', 'From'), pick('to', 'to'),
			element('label', {}, 'in steps: ', steps)), this.words, this.table.node, this.old);
	}
	/* Each place with what it held at the ends, and in how many of the steps between it grew. */
	rows() {
		const { history } = this.owner, held = (moment, key) => (moment.get(key) || { bytes: 0 }).bytes;
		const moments = Array.from({ length: this.steps + 1 }, (x, i) => holdersByStack(history, Math.round(this.from + (this.to - this.from) * i / this.steps)));
		return difference(moments[0], moments[this.steps]).filter((r) => r.bytes !== 0)
			.map((r) => ({ ...r, grew: moments.filter((m, i) => i > 0 && held(m, r.key) > held(moments[i - 1], r.key)).length }));
	}
	/* Live at the second moment, and four times as old as the others of their stack ever got. */
	tooOld() {
		const { history: h } = this.owner, longest = new Map();
		for (let b = 0; b < h.blocks; b++) {
			const s = once(longest, h.site[b], () => ({ life: 0, freed: 0 }));
			if (h.gone[b] <= this.to) {
				s.life = Math.max(s.life, h.gone[b] - h.made[b]);
				s.freed++;
			}
		}
		return h.liveAt(this.to).filter((b) => longest.get(h.site[b]).freed >= 3 && this.to - h.made[b] > 4 * longest.get(h.site[b]).life)
			.map((b) => [b, count(longest.get(h.site[b]).life)]);
	}
	/* The largest of blocks, each with what else is told of it. */
	blocks(list, head, name) {
		const { history: h } = this.owner, rows = list.sort(([a], [b]) => h.size[b] - h.size[a]).slice(0, 20).map(([b, ...more]) =>
			[button(bytes(h.size[b]), () => this.owner.pin(b), { class: 'link' }), count(this.to - h.made[b]), ...more, short_path(h.stacks.name(h.site[b]))]);
		return rows.length > 0 ? table(head, rows, name) : element('p', { class: 'quiet' }, 'None.');
	}
	show() {
		const { history } = this.owner, key = this.from + '-' + this.to + '-' + this.steps;
		if (this.shown === key)
			return;
		this.shown = key;
		/* live at the second moment, and never read or written by what the file tells of */
		const unused = () => history.liveAt(this.to).filter((b) => history.used[b] === 0).map((b) => [b]);
		const rows = this.rows(), change = history.total[this.to] - history.total[this.from];
		this.words.textContent = 'From ' + history.label(this.from) + ' to ' + history.label(this.to) + ': ' + signed(change) + ' ' + history.live + '.';
		this.table.show(rows);
		this.old.replaceChildren(element('h3', {}, 'Blocks that live longer than others of their place'),
			this.blocks(this.tooOld(), ['Block', 'Age (events)', 'Longest of others', 'Place'], 'blocks that live long'),
			...(history.uses ? [element('h3', {}, 'Blocks never ' + history.uses), this.blocks(unused(), ['Block', 'Age (events)', 'Place'], 'blocks never used')] : []));
	}
}
