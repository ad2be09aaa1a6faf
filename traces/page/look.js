/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which blocks are wanted, and which colour each has. Colours are pixels of a canvas (ABGR).
 */
const SIZES = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };
/* "1.5M" in bytes; 0 where it is none. */
function parseSize(text) {
	const found = /^\s*([\d.]+)\s*([kmg])?/i.exec(text || '');
	return found ? Number(found[1]) * (found[2] ? SIZES[found[2].toLowerCase()] : 1) || 0 : 0;
}
/* Of stacks, the first that fits. */
const CATEGORIES = [
	['optimizer state', 'optim|adam|sgd|lamb|\\bstep \\('],
	['gradients', 'backward|grad|autograd|engine\\.cpp'],
	['parameters', 'Parameter|init_weights|load_state|_apply|convert|from_pretrained|\\b(to|cuda|npu) \\('],
	['activations', 'forward|functional|activation|attention|linear|conv'],
].map(([name, pattern]) => ({ name, pattern }));

/* 1 for each block that fits the filter: { text, min, max, stream, life, end }. */
function wantedBlocks(history, filter) {
	const wanted = new Uint8Array(history.blocks).fill(1), sites = new Map();
	const text = (filter.text || '').toLowerCase(), min = parseSize(filter.min), max = parseSize(filter.max);
	const life = Number(filter.life) || 0;
	const fits = (site) => (history.stacks.name(site) + '\n' + history.stacks.key(site)).toLowerCase().includes(text);
	const address = text.startsWith('0x');
	for (let b = 0; b < history.blocks; b++) {
		if ((min && history.size[b] < min) || (max && history.size[b] > max) ||
		    (filter.stream && String(history.stream[b]) !== filter.stream) ||
		    (life && history.gone[b] - history.made[b] < life) ||
		    (filter.end && history.gone[b] <= history.events) || (text && !(address ? hex(history.address[b]).startsWith(text) : once(sites, history.site[b], fits))))
			wanted[b] = 0;
	}
	return wanted;
}

function pixel(text) {
	const pen = pixel.pen = pixel.pen || element('canvas', { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
	pen.fillStyle = text;
	pen.fillRect(0, 0, 1, 1);
	return new Uint32Array(pen.getImageData(0, 0, 1, 1).data.buffer)[0];
}
/* A colour of its own for a text, by its hash: it is the same in every view. */
function ownColour(text) {
	const dark = scheme.matches;
	let h = 2166136261;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 16777619) >>> 0;
	return 'hsl(' + h % 360 + ' ' + (42 + (h >>> 9) % 26) + '% ' + ((dark ? 42 : 56) + (h >>> 17) % 16) + '%)';
}
/* What can be read on a colour. */
function inkOn(paint) {
	const p = pixel(paint), part = (at) => ((p >>> at & 255) / 255) ** 2.2;
	return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(16) > 0.18 ? '#000' : '#fff';
}
const ramp = (share) => 'hsl(' + (250 - 210 * share) + ' 60% ' + (scheme.matches ? 52 : 54) + '%)';

const COLOURS = [['site', 'call site'], ['stream', 'stream'], ['size', 'size'], ['age', 'time of allocation'],
		 ['life', 'life'], ['category', 'category']];
function categoryOf(history, site, categories) {
	const text = history.stacks.key(site);
	const found = categories.findIndex((c) => {
		try {
			return c.pattern && new RegExp(c.pattern, 'i').test(text);
		} catch (error) {
			return false; /* half of a pattern, while it is typed */
		}
	});
	return found < 0 ? 'other' : categories[found].name;
}
/* How a mode names what a block's colour stands for; null where colours are a scale. */
function colourKey(history, mode, categories) {
	const cached = new Map();
	const by_site = (of) => (b) => once(cached, history.site[b], of);
	if (mode === 'stream')
		return (b) => 'stream ' + history.stream[b];
	if (mode === 'category')
		return by_site((site) => categoryOf(history, site, categories));
	return mode === 'site' ? by_site((site) => history.stacks.name(site)) : null;
}
/* What drawStack() and drawAddresses() need. */
function makeLook(history, mode, categories) {
	const key = colourKey(history, mode, categories), known = new Map();
	const colours = new Uint32Array(history.blocks);
	const steps = Array.from({ length: 65 }, (x, i) => pixel(ramp(i / 64)));
	const most = Math.log2(1 + history.size.reduce((a, b) => Math.max(a, b), 1));
	const shares = { size: (b) => Math.log2(1 + history.size[b]) / most,
			 age: (b) => history.made[b] / Math.max(1, history.events),
			 life: (b) => (history.gone[b] - history.made[b]) / (history.events + 1) };
	for (let b = 0; b < history.blocks; b++)
		colours[b] = key ? once(known, key(b), (name) => pixel(ownColour(name))) : steps[Math.round(64 * shares[mode](b))];
	return { colours, key, names: known, back: pixel(colour('card')), rest: pixel(colour('rest')),
		 free: pixel(colour('line')), edge: pixel(colour('card')) };
}
