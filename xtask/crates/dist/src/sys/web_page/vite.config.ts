// Upstream's own configuration, with two plugins more: one leaves out icons that the page does not have, one writes down
// whose code the page is made of.
import { icons } from './espalier.icons.mjs';
import { notices } from './espalier.notices.mjs';
import upstream from './vite.config.upstream';

export default async (env) => {
	const config = typeof upstream === 'function' ? await upstream(env) : upstream;

	return { ...config, plugins: [icons(), ...(config.plugins ?? []), notices()] };
};
