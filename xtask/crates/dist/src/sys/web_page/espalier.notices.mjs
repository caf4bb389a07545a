// A vite plugin: the licence of every package whose code or style goes into the page, in one text.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

const LICENCE = /^(licen[cs]e|copying|notice)/i;
const PACKAGES = 'node_modules';

/** The folder of the package that a module belongs to; nothing for upstream's own. */
function packageOf(module) {
	const parts = module.replace(/^\0/, '').split('?')[0].split(/[\\/]/);
	const at = parts.lastIndexOf(PACKAGES) + 1;

	if (at === 0 || at >= parts.length) return undefined;

	return parts.slice(0, at + (parts[at].startsWith('@') ? 2 : 1)).join(sep);
}

/** What workbox writes into the service worker comes past vite. */
function packagesOfWorkers() {
	return readdirSync(PACKAGES)
		.filter((name) => name === 'idb' || (name.startsWith('workbox-') && name !== 'workbox-build'))
		.map((name) => join(process.cwd(), PACKAGES, name));
}

/** Folders of upstream's own sources with code of other projects, by their licence. */
function vendored(folder) {
	const entries = readdirSync(folder, { withFileTypes: true });
	const below = entries.filter((entry) => entry.isDirectory()).flatMap((entry) => vendored(join(folder, entry.name)));

	return entries.some((entry) => entry.isFile() && LICENCE.test(entry.name)) ? [folder, ...below] : below;
}

function licencesIn(folder) {
	const names = readdirSync(folder, { withFileTypes: true })
		.filter((entry) => entry.isFile() && LICENCE.test(entry.name))
		.map((entry) => entry.name);

	return names.sort().map((name) => readFileSync(join(folder, name), 'utf-8').trim());
}

function titleOf(folder) {
	const manifest = join(folder, 'package.json');

	if (!folder.includes(PACKAGES) || !existsSync(manifest)) return relative(process.cwd(), folder).split(sep).join('/');

	const { license, name, version } = JSON.parse(readFileSync(manifest, 'utf-8'));

	return `${name} ${version} (${license ?? 'no licence named'})`;
}

function render(folders) {
	const parts = folders.map((folder) => [titleOf(folder), ...licencesIn(folder)].join('\n\n'));

	return [...new Set(parts)].sort().join(`\n\n${'-'.repeat(80)}\n\n`) + '\n';
}

// SvelteKit builds twice, each time with plugins of its own: what renders, and what goes to browsers.
const folders = (globalThis.espalierNotices ??= new Set());

export function notices() {
	return {
		apply: 'build',
		closeBundle() {
			const all = [...folders, ...packagesOfWorkers(), ...vendored('src')];

			writeFileSync(process.env.ESPALIER_PAGE_NOTICES, render([...new Set(all)]));
		},
		generateBundle() {
			for (const module of [...this.getModuleIds(), ...this.getWatchFiles()]) {
				const folder = packageOf(module);

				if (folder !== undefined && existsSync(join(folder, 'package.json'))) folders.add(folder);
			}
		},
		name: 'espalier:notices'
	};
}
