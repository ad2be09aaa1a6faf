/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows the events around the moment, and the block that is pinned.
 */
const EVENTS_SHOWN = 13;

class EventTable {
	constructor(owner) {
		const { history } = owner, all = new Uint32Array(history.events + 1).map((x, i) => i);
		this.owner = owner;
		this.list = all; /* events of the kind */
		this.body = element('div', {});
		const verbs = [...new Set(history.verb)].map((v) => history.verbs[v]);
		this.node = element('div', { class: 'card' },
			element('div', { class: 'controls' }, button('Previous', () => this.move(-1)), button('Next', () => this.move(1)),
				choice('Kind', [['', 'all'], ...verbs.map((v) => [v, v])], '', (v) => {
					this.list = v === '' ? all : history.eventsOf(v);
					this.show();
				})), this.body);
	}
	/* To the next event of the kind, in a direction. */
	move(by) {
		const { at } = this.owner.view, event = this.list[by > 0 ? above(this.list, at) : above(this.list, at - 1) - 1];
		if (event !== undefined)
			this.owner.go(event);
	}
	row(event) {
		const { history: h, view } = this.owner, block = h.blockAt(event), row = block < 0 && event > 0 ? h.rowAt(event) : -1;
		const site = block >= 0 ? (h.made[block] !== event && h.ended[block]) || h.site[block] : row >= 0 ? h.rows.site[row] : 0;
		const size = block >= 0 ? h.size[block] : row >= 0 ? h.rows.size[row] : 0, address = block >= 0 ? h.address[block] : row >= 0 ? h.rows.address[row] : 0;
		const took = h.calls.slice(above(h.callEvents, event - 1), above(h.callEvents, event)).map((c) => ', ' + (c.name === h.verbAt(event) ? '' : c.name + ' ') + time(c.ns)).slice(0, 6).join('');
		const what = h.verbAt(event) + (h.textAt(event) ? ': ' + h.textAt(event) : '') + (row >= 0 && h.rows.free[row] ? ', ' + bytes(h.rows.free[row]) + ' were free' : '') + took;
		return { cells: [button(h.label(event), () => {
			if (block >= 0)
				view.pin = block;
			this.owner.go(event);
		}, { class: 'link' }), h.clock === 'none' ? '' : time(h.time[event]), element('span', { class: 'said' }, what), size ? bytes(size) : '', address ? hex(address) : '',
			bytes(h.total[event]), site > 0 ? short_path(h.stacks.name(site)) : ''], more: event === view.at ? { class: 'here', 'aria-current': 'true' } : {} };
	}
	show() {
		const first = Math.max(0, Math.min(above(this.list, this.owner.view.at - 1) - (EVENTS_SHOWN >> 1), this.list.length - EVENTS_SHOWN));
		this.body.replaceChildren(table(['Event', 'Time', 'What', 'Size', 'Address', 'Live after it', 'Call site'],
			[...this.list.slice(first, first + EVENTS_SHOWN)].map((e) => this.row(e)), 'events around the moment'));
	}
}

/* What is known of a block, as [name, value], in which show(event) stands for an event. */
function blockFacts(h, block, show) {
	const made = h.made[block], gone = h.gone[block], end = Math.min(gone, h.events);
	return [['Size', bytes(h.size[block]) + ' (' + count(h.size[block]) + ')'], ['Address', h.address[block] > 0 ? hex(h.address[block]) : 'not told'],
		['Stream', String(h.stream[block])], ['Made at', show(made)], ...(h.asked[block] ? [['Free asked at', show(h.asked[block])]] : []),
		['Freed at', gone > h.events ? 'never' : show(gone)],
		...(h.uses ? [['Last ' + h.uses, h.used[block] > 0 ? show(made + h.used[block] - 1) : 'never']] : []),
		...(h.lost(block) ? [['Lost to rounding', bytes(h.lost(block))]] : []), ...(made > 0 && h.textAt(made) ? [['Noted', h.textAt(made)]] : []),
		['Life', plural(end - made, 'event') + (h.clock === 'none' ? '' : ', ' + time(h.time[end] - h.time[made]))]];
}

class PinPanel {
	constructor(owner) {
		this.owner = owner;
		this.node = element('div', { class: 'card', hidden: true, id: 'pinned' });
	}
	/* Blocks that lie next to it at the moment, or when it was made. */
	neighbours(block, event) {
		const h = this.owner.history, pieces = h.pieces(h.isLive(block, event) ? event : h.made[block]);
		const at = pieces.findIndex((p) => p.block === block);
		const name = (p) => p ? p.block < 0 ? bytes(p.end - p.start) + ' free' : button(bytes(h.size[p.block]) + ', ' + short_path(h.stacks.name(h.site[p.block])),
			() => this.owner.pin(p.block), { class: 'link' }) : 'nothing';
		const beside = (p, q) => p && q && p.end + ROUNDING >= q.start ? p : null;
		return at < 0 ? null : [name(beside(pieces[at - 1], pieces[at])), name(beside(pieces[at], pieces[at + 1]) && pieces[at + 1])];
	}
	show() {
		const { history: h, view } = this.owner, block = view.pin;
		this.node.hidden = block < 0;
		if (block < 0)
			return;
		const made = h.made[block], frames = (site) => h.stacks.lines(site).map((f) => element('div', { class: 'frame' }, f));
		const range = h.ranges.find((r) => h.address[block] >= r.start && h.address[block] < r.end && r.made <= made && made < r.gone);
		const near = h.address[block] > 0 ? this.neighbours(block, view.at) : null;
		const facts = [...blockFacts(h, block, (e) => button(h.label(e), () => this.owner.go(e), { class: 'link' })), ...(range ? [['Segment', rangeWords(h, range, h.pieces(h.isLive(block, view.at) ? view.at : made))]] : []),
			...(near ? [['Below it', near[0]], ['Above it', near[1]]] : [])];
		this.node.replaceChildren(element('h3', {}, 'Block ' + count(block + 1) + ' ', button('unpin', () => this.owner.pin(-1), { class: 'link' })),
			factList(facts), ...frames(h.site[block]), ...(h.ended[block] ? [element('h4', {}, 'Freed by'), ...frames(h.ended[block])] : []));
	}
}
