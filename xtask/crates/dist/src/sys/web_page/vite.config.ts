// Upstream's own configuration, with one plugin more: it writes down whose code the page is made of.
import { notices } from './espalier.notices.mjs';
import upstream from './vite.config.upstream';

export default async (env) => {
	const config = typeof upstream === 'function' ? await upstream(env) : upstream;

	return { ...config, plugins: [...(config.plugins ?? []), notices()] };
};
