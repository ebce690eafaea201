// SPDX-License-Identifier: Apache-2.0
// Copyright idtree contributors
//
// feed.js - requests to the server, and its stream of events
//
// Events are read with fetch, because EventSource cannot send a token.

const SILENCE_MS = 15000; // after this silence the connection counts as lost: the server sends rates each second
const RETRY_MS = [500, 1000, 2000, 5000, 10000];
const EVENT_MAX = 1 << 20; // characters of an event

export class Feed {
    // heard(name, data) is called for each event. stateCb(connected, why) is called when the connection begins or ends.
    constructor(heard, stateCb) {
        this.heard = heard;
        this.stateCb = stateCb;
        this.token = sessionStorage.getItem('token'); // lost when the tab is closed
        this.abort = null;
        this.again = null; // function that ends the pause before a reconnect
    }

    setToken(token) {
        sessionStorage.setItem('token', token);
        this.token = token;
        this.again?.();
    }

    async fetch(path, signal) {
        const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
        const answer = await fetch(path, { headers, signal, cache: 'no-store' });
        if (answer.ok)
            return answer;
        const problem = await answer.json().catch(() => ({}));
        throw Object.assign(new Error(problem.detail ?? answer.statusText), { status: answer.status });
    }

    async get(path) {
        return (await this.fetch(path, AbortSignal.timeout(SILENCE_MS))).json();
    }

    // Read events, and reconnect, until the page is closed.
    async run() {
        for (let failed = 0;; failed++) {
            try {
                await this.listen(() => (failed = 0));
                this.stateCb(false, { message: 'the server ended' });
            } catch (why) {
                this.stateCb(false, why);
            }
            await this.pause(RETRY_MS[Math.min(failed, RETRY_MS.length - 1)]);
        }
    }

    pause(ms) {
        return new Promise((resolve) => {
            const timer = setTimeout(resolve, ms);
            this.again = () => {
                clearTimeout(timer);
                resolve();
            };
        });
    }

    async listen(good) {
        const abort = new AbortController();
        let timer;
        const alive = () => {
            clearTimeout(timer);
            timer = setTimeout(() => abort.abort(new Error('the server says nothing')), SILENCE_MS);
        };
        alive();
        try {
            const answer = await this.fetch('/v1/events', abort.signal);
            const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
            const parser = new Parser();
            for (let part; !(part = await reader.read()).done; alive())
                for (const { name, data } of parser.take(part.value)) {
                    if (name === 'hello') {
                        good();
                        this.stateCb(true);
                    }
                    this.heard(name, data);
                }
        } finally {
            clearTimeout(timer);
        }
    }
}

// Read server-sent events: each line is a field, and an empty line ends an event.
export class Parser {
    constructor() {
        this.text = '';
    }

    take(part) {
        this.text += part.replaceAll('\r', '');
        const blocks = this.text.split('\n\n');
        this.text = blocks.pop();
        if (this.text.length > EVENT_MAX)
            throw new Error('the server sends events without an end');
        return blocks.map(parse).filter((event) => event.data !== undefined);
    }
}

function parse(block) {
    const fields = { event: 'message', data: [] };
    for (const line of block.split('\n')) {
        const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
        if (name === 'event')
            fields.event = value;
        else if (name === 'data')
            fields.data.push(value);
    }
    return { name: fields.event, data: fields.data.length > 0 ? JSON.parse(fields.data.join('\n')) : undefined };
}
