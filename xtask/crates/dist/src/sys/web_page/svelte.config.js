// Upstream's own configuration, with a version that is not the time of the build: the same sources give the same bytes.
import upstream from './svelte.config.upstream.js';

const version = { name: process.env.ESPALIER_PAGE_VERSION, ...upstream.kit?.version };

export default { ...upstream, kit: { ...upstream.kit, version } };
