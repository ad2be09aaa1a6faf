/* SPDX-License-Identifier: Apache-2.0
 *
 * What is looked at in a history: the view that the timeline and the panels below it share, its
 * controls, and its text in the fragment of the URL.
 */
const VIEW = { layout: 'stack', axis: 'event', colour: 'site', at: 0, pin: -1 };

class Explorer {
	/* `histories`: { history, result }. */
	constructor(histories) {
		this.histories = histories.flatMap((h) => h.history.recorded || h.history.ranges.length === 0 ? [h]
			: [h, { ...h, history: h.history.segments }]);
		this.node = element('div', {});
		this.open(0);
		this.readFragment();
		window.addEventListener('hashchange', () => this.readFragment());
		scheme.addEventListener('change', () => {
			this.timeline.drawMap();
			this.timeline.refresh();
			this.showMoment();
		});
	}
	open(index) {
		const { history, result } = this.histories[index];
		this.index = index;
		this.history = history;
		this.view = { ...VIEW, x: [0, 1], y: [0, 1], at: history.peak, filter: {}, categories: CATEGORIES.map((c) => ({ ...c })),
			      go: (e) => this.go(e), step: (by) => this.go(this.view.at + by) };
		this.timeline = new Timeline(history, result, this.view, () => this.writeFragment());
		this.panels = [this.events = new EventTable(this), this.pinned = new PinPanel(this), this.moment = new MomentPanel(this),
			       this.growth = new GrowthPanel(this)];
		this.slider = element('input', { type: 'range', min: 0, max: history.events, step: 1, 'aria-label': 'Moment',
						 input: () => this.go(Number(this.slider.value)) });
		this.words = element('span', { role: 'status' });
		this.controls = element('div', { class: 'controls' });
		this.node.replaceChildren(this.controls, element('div', { class: 'card' }, this.timeline.node,
			element('div', { class: 'moment' }, button('◂', () => this.view.step(-1), { 'aria-label': 'Event before' }),
				button('▸', () => this.view.step(1), { 'aria-label': 'Next event' }),
				button('Peak', () => this.go(history.peak)), history.failures.length > 0 ? button('Failure', () => this.go(history.failures[0])) : null,
				this.slider, this.words),
			history.settings && element('details', { class: 'small' }, element('summary', {}, 'Settings of the allocator'),
				factList(history.settings.split('\n').map((line) => line.split(/: (.*)/))))), this.pinned.node,
			element('h2', { id: 'moment' }, 'This moment'), this.moment.node, element('h2', { id: 'events' }, 'Events'), this.events.node,
			element('h2', { id: 'growth' }, 'Growth'), this.growth.node);
		this.drawControls();
		/* what is out of sight waits */
		this.watch?.disconnect();
		this.watch = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
			const panel = this.panels.find((p) => p.node === target);
			panel.near = isIntersecting;
			this.showPanel(panel);
		}), { rootMargin: '200px' });
		this.panels.forEach((p) => this.watch.observe(p.node));
		this.go(this.view.at);
	}

	go(event) {
		this.view.at = Math.max(0, Math.min(this.history.events, Math.round(event)));
		this.timeline.show(this.view.at);
		this.timeline.set({});
		this.showMoment();
	}
	pin(block) {
		this.view.pin = block;
		this.timeline.set({});
		this.showMoment();
	}
	setFilter(change) {
		Object.assign(this.view.filter, change);
		this.drawControls();
		this.filtered();
	}
	filtered() {
		this.timeline.refresh();
		this.writeFragment();
		this.showMoment();
		this.told.textContent = this.filterWords();
	}
	showPanel(panel) {
		if (!panel.stale || !(panel.near || panel === this.pinned))
			return;
		panel.stale = false;
		panel.show();
	}
	/* Once a frame, however often a slider moves. */
	showMoment() {
		if (this.waits)
			return;
		this.waits = true;
		requestAnimationFrame(() => {
			this.waits = false;
			const { history, view } = this;
			this.slider.value = view.at;
			this.words.textContent = history.when(view.at) + ': ' + bytes(history.total[view.at]) + ' ' + history.live;
			this.slider.setAttribute('aria-valuetext', this.words.textContent);
			this.panels.forEach((p) => {
				p.stale = true;
				this.showPanel(p);
			});
			root.dataset.at = view.at;
		});
	}

	filterWords() {
		const kept = this.timeline.wanted.reduce((n, w) => n + w, 0);
		const all = plural(this.history.blocks, 'block') + (this.history.recorded ? ' that calls obtained' : '');
		return kept === this.history.blocks ? all : count(kept) + ' of ' + all;
	}
	drawControls() {
		const { view, history } = this, f = view.filter;
		const restyle = (change) => { Object.assign(view, change); this.timeline.refresh(); this.writeFragment(); this.drawControls(); };
		const text = (name, label, size) => {
			const input = element('input', { value: f[name] || '', size, input: () => { f[name] = input.value; this.filtered(); } });
			return element('label', {}, label + ' ', input);
		};
		const streams = [...new Set(history.stream)].sort((a, b) => a - b).slice(0, 100);
		const end = element('input', { type: 'checkbox', checked: f.end === true, change: () => { f.end = end.checked; this.filtered(); } });
		this.told = element('span', { class: 'quiet small', role: 'status' }, this.filterWords());
		this.controls.replaceChildren(
			this.histories.length > 1 ? choice('History', this.histories.map((h, i) => [String(i), h.history.name]), String(this.index), (v) => this.open(Number(v))) : '',
			choice('Layout', [['stack', 'stacked'], ['address', 'by address']], view.layout, (v) => { view.y = [0, 1]; restyle({ layout: v }); }),
			history.clock === 'none' ? '' : choice('Axis', [['event', 'events'], ['time', history.clock === 'host' ? 'time' : 'simulated time']], view.axis,
				(v) => { view.x = [0, 1]; restyle({ axis: v }); this.timeline.set({}); }),
			choice('Colour', COLOURS, view.colour, (v) => restyle({ colour: v })),
			text('text', 'Search', 14), text('min', 'From size', 5), text('max', 'to', 5), text('life', 'Life from (events)', 5),
			streams.length > 1 ? choice('Stream', [['', 'all'], ...streams.map((s) => [String(s), String(s)])], f.stream || '', (v) => this.setFilter({ stream: v })) : '',
			element('label', {}, end, ' alive at the end'),
			button('Whole', () => this.timeline.set({ x: [0, 1], y: [0, 1] })),
			button('PNG', () => this.timeline.savePng()), button('SVG', () => this.timeline.saveSvg()), this.told, this.legend());
	}
	/* What the colours stand for; categories can be changed. */
	legend() {
		const { view, timeline } = this, named = () => [...timeline.look.names.keys()].slice(0, 24).flatMap((name) => [swatch(ownColour(name)), name + ' ']);
		if (view.colour === 'category') {
			const summary = element('summary', {}, ...named());
			return element('details', { class: 'small legend' }, summary,
				...view.categories.map((c) => {
					const input = element('input', { value: c.pattern, size: 60, input: () => {
						c.pattern = input.value;
						timeline.refresh();
						summary.replaceChildren(...named());
						this.writeFragment();
					} });
					return element('label', {}, c.name + ': ', input);
				}));
		}
		if (view.colour === 'stream')
			return element('p', { class: 'small legend' }, ...named());
		return timeline.look.key ? '' : element('p', { class: 'small legend' }, 'small or early ', ...[0, 0.25, 0.5, 0.75, 1].map((s) => swatch(ramp(s))), ' large or late');
	}

	writeFragment() {
		clearTimeout(this.later);
		this.later = setTimeout(() => {
			const { view } = this, parts = new URLSearchParams();
			const put = (name, value, plain) => { if (String(value) !== String(plain)) parts.set(name, value); };
			put('h', this.index, 0);
			for (const name of ['layout', 'axis', 'colour', 'pin'])
				put(name, view[name], VIEW[name]);
			put('at', view.at, this.history.peak);
			put('x', view.x.map((v) => short(v, 7)), '0,1');
			put('y', view.y.map((v) => short(v, 7)), '0,1');
			for (const [name, value] of Object.entries(view.filter))
				put('f.' + name, value, value ? '' : value);
			view.categories.forEach((c, i) => put('c.' + i, c.pattern, CATEGORIES[i].pattern));
			this.written = String(parts);
			window.history.replaceState(null, '', '#' + this.written);
		}, 150);
	}
	readFragment() {
		const text = window.location.hash.slice(1), parts = new URLSearchParams(text);
		if (text === '' || text === this.written || !/=/.test(text))
			return;
		const index = Number(parts.get('h') || 0);
		if (this.histories[index] && index !== this.index)
			this.open(index);
		const { view, history } = this;
		const pair = (name) => {
			const [a, b] = (parts.get(name) || '0,1').split(',').map(Number);
			return a >= 0 && a < b && b <= 1 ? [a, b] : [0, 1];
		};
		const known = { layout: ['stack', 'address'], axis: history.clock === 'none' ? ['event'] : ['event', 'time'], colour: COLOURS.map(([c]) => c) };
		for (const name of Object.keys(known))
			view[name] = known[name].includes(parts.get(name)) ? parts.get(name) : VIEW[name];
		const pin = Number(parts.get('pin') || -1);
		view.pin = Number.isInteger(pin) && pin < history.blocks ? pin : -1;
		view.x = pair('x');
		view.y = pair('y');
		view.filter = Object.fromEntries([...parts].filter(([k]) => k.startsWith('f.')).map(([k, v]) => [k.slice(2), k === 'f.end' ? v === 'true' : v]));
		view.categories.forEach((c, i) => { c.pattern = parts.get('c.' + i) || CATEGORIES[i].pattern; });
		this.timeline.refresh();
		this.drawControls();
		view.at = Math.max(0, Math.min(history.events, Math.round(Number(parts.get('at') || history.peak)) || 0));
		this.timeline.set({});
		this.showMoment();
	}
}
