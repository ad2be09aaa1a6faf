/* SPDX-License-Identifier: Apache-2.0
 *
 * Axes of all charts, over d3, and the small charts: lines and bars in SVG. Colours are those of the
 * style sheet, so nothing is drawn anew when they change.
 */
const SVG = 'http://www.w3.org/2000/svg';

/* Whole steps of the binary unit that fits. */
function byteStep(most, wanted) {
	const unit = 2 ** (10 * Math.max(0, Math.floor(Math.log2(Math.max(most, 1)) / 10)));
	const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200];
	return unit * (steps.find((s) => most / (s * unit) <= wanted) || 500);
}
function byteTicks(low, high) {
	const step = byteStep(high - low, 7), ticks = [];
	for (let v = Math.ceil(low / step) * step; v <= high; v += step)
		ticks.push(v);
	return ticks;
}
function drawAxis(svg, name, x, y, axis) {
	let g = svg.select('g.' + name);
	if (g.empty())
		g = svg.append('g').attr('class', 'axis ' + name);
	g.attr('transform', 'translate(' + x + ',' + y + ')').call(axis);
}

function svgElement(tag, attributes, ...children) {
	const e = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes))
		e.setAttribute(name, value);
	e.append(...children);
	return e;
}
const charts = { drawn: 0 };
/* `draw(svg, width, height)` fills the picture, again when the width changes. */
function chart(label, height, draw, more) {
	const svg = svgElement('svg', { class: 'chart', role: 'img', 'aria-label': label, height });
	const holder = element('div', { class: 'canvas' }, svg, ...(more || []));
	charts.drawn++;
	onResize(holder, () => {
		svg.replaceChildren();
		svg.setAttribute('width', holder.clientWidth);
		draw(svg, holder.clientWidth, height);
	});
	return holder;
}
function names_of(sets) {
	return element('p', { class: 'small' }, ...sets.flatMap((s) => [swatch('var(--' + s.colour + ')'), s.label + '  ']));
}

/* Steps over events. A set: { label, colour, points: [{ x, y }], dash, fill }; `stacked`: each lies on
 * the one before, at the same x. `show` tells a value. */
function lines(label, sets, show, most, last, stacked) {
	const note = element('p', { class: 'quiet small', 'aria-hidden': 'true' }, '\u00a0');
	const sums = stacked ? sets[0].points.map((p) => ({ x: p.x, y: 0 })) : null;
	const drawn = sets.map((s) => ({ ...s, base: sums ? sums.map((p) => p.y) : null, points: s.points.map((p, i) => {
		if (sums)
			sums[i].y += p.y;
		return { x: p.x, y: sums ? sums[i].y : p.y, own: p.y };
	}) }));
	const left = 72, bottom = 22;
	const holder = chart(label, 240, (svg, width, height) => {
		const x = d3.scaleLinear([0, Math.max(1, last)], [left, width - 8]), y = d3.scaleLinear([0, most * 1.04 || 1], [height - bottom, 6]);
		const path = (points) => points.map((p, i) => (i === 0 ? 'M' + x(p.x) + ',' : 'H' + x(p.x).toFixed(1) + 'V') + y(p.y).toFixed(1)).join('');
		for (const s of drawn) {
			const back = s.base ? s.points.map((p, i) => 'L' + x(p.x).toFixed(1) + ',' + y(s.base[i]).toFixed(1)).reverse().join('')
				: 'V' + y(0) + 'H' + x(s.points[0].x);
			if (s.fill)
				svg.append(svgElement('path', { d: path(s.points) + back + 'Z', fill: 'var(--' + s.colour + ')', opacity: 0.2 }));
			svg.append(svgElement('path', { d: path(s.points), fill: 'none', stroke: 'var(--' + s.colour + ')', 'stroke-width': 1.6, ...(s.dash ? { 'stroke-dasharray': '4 3' } : {}) }));
		}
		const axis = d3.axisLeft(y).tickFormat(show);
		drawAxis(d3.select(svg), 'y', left, 0, show === bytes ? axis.tickValues(byteTicks(0, most * 1.04)) : axis.ticks(5));
		drawAxis(d3.select(svg), 'x', 0, height - bottom, d3.axisBottom(x).ticks(Math.max(2, width / 110)));
		svg.onmousemove = (event) => {
			const at = x.invert(event.offsetX), told = drawn.map((s) => [s.label, s.points[Math.max(0, above(s.points.map((p) => p.x), at) - 1)]]);
			note.textContent = 'Event ' + count(Math.max(0, Math.round(at))) + ' · ' + told.map(([name, p]) => name + ': ' + show(p.own)).join(' · ');
		};
	}, [note]);
	holder.prepend(names_of(sets));
	return holder;
}

/* Bars that lie, a group for each label. A set: { label, colour or colours, data }. */
function bars(label, labels, sets, show) {
	const bar = Math.max(7, Math.min(16, Math.floor(60 / sets.length))), group = bar * sets.length + 8;
	const holder = chart(label, labels.length * group + 26, (svg, width, height) => {
		const most = Math.max(1e-12, ...sets.flatMap((s) => s.data)), left = Math.min(210, width * 0.4);
		const x = d3.scaleLinear([0, most], [left, width - 66]);
		labels.forEach((name, i) => {
			const text = svgElement('text', { x: left - 6, y: i * group + group / 2 + 4, 'text-anchor': 'end', fill: 'var(--text)' }, name);
			svg.append(text);
			sets.forEach((s, k) => {
				const y = i * group + 4 + k * bar, paint = 'var(--' + (s.colours ? s.colours[i] : s.colour) + ')';
				svg.append(svgElement('rect', { x: left, y, width: Math.max(0, x(s.data[i]) - left), height: bar - 1, fill: paint },
					svgElement('title', {}, (s.label ? s.label + ': ' : '') + show(s.data[i]))));
				if (bar > 9)
					svg.append(svgElement('text', { x: x(s.data[i]) + 4, y: y + bar - 4, fill: 'var(--quiet)' }, show(s.data[i])));
			});
		});
		drawAxis(d3.select(svg), 'x', 0, height - 24, d3.axisBottom(x).ticks(4).tickFormat(show));
	});
	if (sets.length > 1)
		holder.prepend(names_of(sets));
	return holder;
}
