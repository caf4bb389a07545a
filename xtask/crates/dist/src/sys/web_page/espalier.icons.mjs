// A vite plugin: of a library of icons, only those that upstream's sources name. Its index exports thousands, each in
// modules of its own, which a bundler would compile twice before it drops nearly all of them: half of all modules.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LIBRARY = '@lucide/svelte';

/** The modules of the library that export all icons by name, each in a statement. */
const INDEX = /\/@lucide\/svelte\/dist\/(icons\/index|aliases\/\w+)\.js$/;
const STATEMENT = /export\s*\{([^{}]*)\}\s*from\s*(['"])[^'"]+\2;?/g;
const COMMENT = /\/\*[\s\S]*?\*\//g;

/** All exports as one object, from which icons can be taken without naming them. */
const AS_OBJECT = [
	/\*\s*as\s+\w+\s+from\s*['"]@lucide\/svelte(\/icons)?['"]/,
	/\bicons\b[^{}]*\}\s*from\s*['"]@lucide\/svelte(\/icons)?['"]/,
	/\bimport\(\s*['"]@lucide\/svelte(\/icons)?['"]/
];

function textsBelow(folder) {
	return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
		const path = join(folder, entry.name);

		if (entry.isDirectory()) return textsBelow(path);

		return /\.(svelte|ts|js)$/.test(entry.name) ? [readFileSync(path, 'utf-8')] : [];
	});
}

/** The names in the sources that import from the library, whatever they stand for. */
function namesIn(texts) {
	return new Set(texts.flatMap((text) => text.match(/\b[A-Z]\w*/g) ?? []));
}

function isNamed(exported, names) {
	return exported.split(',').some((one) => names.has(one.trim().split(/\s+as\s+/).pop()));
}

export function icons() {
	const texts = textsBelow('src').filter((text) => text.includes(LIBRARY));
	const names = namesIn(texts);
	const needsAll = texts.some((text) => AS_OBJECT.some((pattern) => pattern.test(text)));

	return {
		apply: 'build',
		enforce: 'pre',
		name: 'espalier:icons',
		transform(code, id) {
			if (needsAll || !INDEX.test(id)) return undefined;

			// A name that is missing now would fail the build.
			const text = code.replace(COMMENT, '').replace(STATEMENT, (all, exported) => (isNamed(exported, names) ? all : ''));

			return { code: text, map: null };
		}
	};
}
