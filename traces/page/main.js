/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the page together from the results and the histories beside them.
 */
const page = document.getElementById('page');
const timelines = new Set(); /* devices of results that have one */

async function readHistories() {
	const list = [];
	for (let i = 0; i < results.length; i++) {
		const text = document.getElementById('history-' + i);
		if (!text)
			continue;
		const data = await unpack(text.textContent), stacks = new Stacks(data.head, data.columns);
		text.remove();
		data.head.devices.forEach(([device], d) => {
			const name = [title[i], data.head.devices.length > 1 ? 'device ' + device : ''].filter(Boolean).join(', ');
			const history = new History(name, data, d, stacks), of = (results[i].devices || []).find((one) => one.device === device);
			if (history.blocks === 0)
				return;
			history.add(of);
			list.push({ history, result: results[i] });
			timelines.add(of);
		});
	}
	return list;
}

function header() {
	const files = [...new Set(results.map((r) => r.file).filter(Boolean))];
	return [element('h1', {}, several ? 'Memory, ' + results.length + ' replays side by side' : 'Memory of ' + String(files[0] || 'a replay').replace(/.*\//, '')),
		...[...new Set(results.map((r) => r.about).filter(Boolean))].map((about) => element('p', {}, about)),
		element('p', { class: 'quiet' }, [files.join(', '), ...new Set(results.map((r) => r.kind).filter(Boolean)),
			'replayed on a model of ' + [...new Set(results.map((r) => r.soc))].join(', ')].filter(Boolean).join(' · '))];
}
/* A part of the page with its head. What a result has in another shape than it should spoils its part, not the rest. */
function section(name, id, make) {
	const node = element('section', { id });
	let parts;
	try {
		parts = make();
	} catch (error) {
		root.dataset.broken = ((root.dataset.broken || '') + ' ' + id).trim();
		parts = [element('p', { class: 'alarm' }, 'This part of a result cannot be shown: ' + error.message + '.')];
	}
	if (parts.length > 0)
		node.append(element('h2', {}, name), ...parts.filter(Boolean).map((p) => typeof p === 'string' ? element('p', { class: 'quiet' }, p) : p));
	return node;
}

const found = await readHistories();
const contents = element('nav', { 'aria-label': 'Contents' }), body = element('div', {});
const PARTS = [['At a glance', 'summary', summary], ['Memory over time', 'memory', memoryCharts], ['Fragmentation over time', 'fragmentation', fragmentation],
	       ['Calls that get, give and map memory', 'calls', calls], ['Page table, TLB and HBM', 'translation', translation],
	       ['Memory at one point in time', 'moments', moments], ['All figures', 'figures', allFigures]];
function drawResults() {
	body.replaceChildren(...PARTS.map(([name, id, make]) => section(name, id, make)));
	contents.replaceChildren(...[...page.querySelectorAll('h2')].map((h) => button(h.textContent, () => h.scrollIntoView(), { class: 'link' })));
}
const explorer = found.length > 0 ? new Explorer(found) : null;
page.append(...header(), contents,
	...(several ? [section('Results', 'results', () => [chooser(drawResults)])] : []),
	section('Timeline', 'timeline', () => explorer ? [explorer.node] : []),
	section('Comparison', 'comparison', () => comparison(found)), body,
	element('footer', {}, 'Written by ', document.querySelector('meta[name=generator]').content,
		'. Sizes are binary: 1 MiB is 1,048,576 bytes. Simulated times are the model\u2019s. Scales, axes and zoom: d3, ISC licence.'));
drawResults();
window.npusim = { explorer, ready: performance.now() };
root.dataset.ready = 'yes';
