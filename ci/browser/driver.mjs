// Uses the web page of a running llama-server as a person would, in a browser that is on the machine.
//
//   node driver.mjs URL BROWSER FOLDER [images]
//
// Writes one JSON value a line, { "check": NAME, "error": TEXT or null }, and a screenshot of each check to FOLDER.
// Selectors are roles, labels and the classes of upstream messages, on which upstream's own tests rely too.
import { chromium } from 'playwright-core';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [url, executablePath, folder, ...features] = process.argv.slice(2);

// Generous: the machine may be busy, and a page that is right is much faster.
const PATIENCE = 120_000;
// Bytes a second: the answer has some 300,000.
const SLOW = 60_000;
const LINE = { downloadThroughput: -1, latency: 0, offline: false, uploadThroughput: -1 };
const ANSWER = '.chat-message-assistant';
const FIRST = 'The tree';
const NOTE = 'The gardener ties the branches to the wire.';
// 96 x 96 pixels, red and yellow.
const PICTURE =
	'iVBORw0KGgoAAAANSUhEUgAAAGAAAABgCAIAAABt+uBvAAAArUlEQVR42u3bQQ0AIAwDwCmZMBQjAiW8MLEHaS6pgO6+zeqeNZLdPZLf' +
	'+hQgQIAAAQIECBAgQIAAAQIECBAgQIAAAQIECBCgCKDUw6b6AAIECBAgQIAAAQIECBAgQIAAAQIECBAgQIAAAcoAMhxaVgEBAgQIECBA' +
	'gAABAgQIECBAgAABAgQIECBAgPyLGQ4BAQIECBAgQIAAAQIECBAgQIAAAQIECBAgQIAARQA9PDKrWPyf5H8AAAAASUVORK5CYII=';

const browser = await chromium.launch({ args: ['--no-sandbox', '--disable-gpu'], executablePath, headless: true });
const context = await browser.newContext({ locale: 'en-US', viewport: { height: 800, width: 1280 } });
const page = await context.newPage();
const complaints = [];
const asked = [];

page.setDefaultTimeout(PATIENCE);
page.on('pageerror', (error) => complaints.push(`error in the page: ${error.message}`));
// Of the worker's requests too.
context.on('request', (request) => {
	if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) {
		complaints.push(`request to another host: ${request.url()}`);
	}

	if (request.url().endsWith('/chat/completions')) asked.push(request.postDataJSON());
});

function expect(holds, what) {
	if (!holds) throw new Error(what);
}

async function check(name, work) {
	let error = null;

	try {
		await work();
	} catch (thrown) {
		error = thrown.message.split('\n')[0];
	}

	await page.screenshot({ path: join(folder, `${name}.png`) }).catch(() => {});
	console.log(JSON.stringify({ check: name, error }));
}

const answers = () => page.locator(ANSWER);
const composer = () => page.getByRole('textbox').last();

/** Has the page keep every text of the answer behind the first `before` ones, with its time: a poll would miss some. */
async function watch(before) {
	await page.evaluate(
		([selector, before]) => {
			const seen = new Map();
			const look = () => {
				const text = document.querySelectorAll(selector)[before]?.querySelector('.markdown-content')?.textContent;

				if (text?.trim() && !seen.has(text)) seen.set(text, performance.now());
			};

			window.espalierObserver?.disconnect();
			window.espalierSeen = seen;
			window.espalierObserver = new MutationObserver(look);
			window.espalierObserver.observe(document.body, { characterData: true, childList: true, subtree: true });
		},
		[ANSWER, before]
	);
}

/** Sends `text`, waits for the whole answer, and gives how many texts of it were shown before the server was done. */
async function ask(text) {
	const before = await answers().count();
	const requests = asked.length;

	await watch(before);
	await composer().click();
	await page.keyboard.type(text);
	await page.keyboard.press('Enter');
	await answers().nth(before).waitFor();

	const begin = Date.now();
	let seen = 0;

	for (let quiet = 0; quiet < 10; quiet += 1) {
		expect(Date.now() - begin < PATIENCE, seen === 0 ? 'the answer is empty' : 'the answer did not end');
		await sleep(100);

		const now = await page.evaluate(() => window.espalierSeen.size);
		const isBusy = await page.getByRole('button', { name: /^stop/i }).count();

		// On a busy machine the request itself can take a second to begin.
		if (now > seen || isBusy || seen === 0) quiet = 0;

		seen = now;
	}

	expect(asked.length > requests, 'nothing was sent to the server');

	return page.evaluate(() => {
		const streams = performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/chat/completions'));

		return [...window.espalierSeen.values()].filter((time) => time < streams.at(-1).responseEnd).length;
	});
}

/** Chooses a file as the paper clip does; waits until the page shows it. */
async function attach(file, shown) {
	await page.locator('input[type="file"]').first().setInputFiles(file);
	await shown().first().waitFor();
}

const lastSent = () => JSON.stringify(asked.at(-1)?.messages.at(-1) ?? null);

await check('open', async () => {
	const answer = await page.goto(url);

	expect(answer.status() === 200, `GET / answered ${answer.status()}`);
	expect((answer.headers()['content-type'] ?? '').includes('text/html'), 'GET / is not HTML');
	await composer().waitFor();
});

await check('ask', async () => {
	// A small model is done before a browser has painted once: through this line an answer takes seconds, and shows.
	const line = await context.newCDPSession(page);

	await line.send('Network.emulateNetworkConditions', { ...LINE, downloadThroughput: SLOW });

	const texts = await ask(FIRST).finally(() => line.send('Network.emulateNetworkConditions', LINE));

	expect(lastSent().includes(FIRST), `sent was ${lastSent()}`);
	expect(asked.at(-1).stream === true, 'no stream was asked for');
	expect(texts >= 5, `${texts} texts of the answer were seen before the server was done: it is not a stream`);
});

await check('text-file', async () => {
	const file = { buffer: Buffer.from(NOTE), mimeType: 'text/plain', name: 'note.txt' };

	await attach(file, () => page.getByText('note.txt'));
	await ask('What is in the note?');
	expect(lastSent().includes(NOTE), `the file was not sent: ${lastSent()}`);
});

if (features.includes('images')) {
	await check('image', async () => {
		const file = { buffer: Buffer.from(PICTURE, 'base64'), mimeType: 'image/png', name: 'chequers.png' };

		await attach(file, () => page.getByAltText('chequers.png'));
		await ask('What is on it?');
		expect(lastSent().includes('"image_url"'), `the image was not sent: ${lastSent().slice(0, 200)}`);

		const shown = page.getByAltText('chequers.png').first();

		await shown.scrollIntoViewIfNeeded();
		expect((await shown.evaluate((image) => image.naturalWidth)) > 0, 'the attached image is not shown');
	});
}

await check('reload', async () => {
	const before = await answers().allInnerTexts();

	expect(before.length >= 2, `${before.length} answers are there before the reload`);
	await page.reload();
	await answers().nth(before.length - 1).waitFor();
	expect((await answers().count()) === before.length, 'there is another number of answers');
	expect((await page.getByText(FIRST).count()) > 0, 'the first question is gone');
});

await check('at-home', async () => {
	expect(complaints.length === 0, complaints.slice(0, 3).join('; '));
});

await browser.close();
