// SPDX-License-Identifier: Apache-2.0
// Copyright idtree contributors
//
// page_fake.js - an instance for the live page, without one: of 5,000 ranks unless window.FAKE says otherwise
//
// Answers /v1/tree and /v1/events as etc/openapi.json has them.
// Runs in the page before the page's own scripts.  fake.emit(name, data) is an event; fake.kill(rank) kills a rank, and
// tells unless its second argument is false.
(() => {
    const { SIZE = 5000, FAN = 8, GENERATORS = 1024 } = window.FAKE ?? {};
    const MOST = 512;
    const dead = new Set();
    const parentOf = (r) => (r === 0 ? null : Math.floor((r - 1) / FAN));
    const childrenOf = (r) => Array.from({ length: FAN }, (_, i) => FAN * r + 1 + i).filter((c) => c < SIZE);
    const up = (r) => {
        let at = parentOf(r);
        while (at !== null && dead.has(at))
            at = parentOf(at);
        return dead.has(r) ? null : at;
    };
    const attached = (r) => childrenOf(r).flatMap((c) => (dead.has(c) ? attached(c) : [c]));
    const below = (r) => (dead.has(r) ? [] : attached(r)).reduce((sum, c) => sum + 1 + below(c), 0);
    const owner = (r) => (r < GENERATORS ? r : up(r));
    const rank = (r, folded) => ({
        rank: r, parent: parentOf(r), attached_to: up(r), host: `node${r}`, status: dead.has(r) ? 'lost' : 'full',
        fluid: dead.has(r) ? null : r < GENERATORS ? 'active' : 'idle', generator: r < GENERATORS ? r : null,
        ids_from: dead.has(r) ? null : owner(r), granted_to: null,
        lease_left_s: r < GENERATORS ? (dead.has(r) ? 12 : 20) : null,
        ids: '18446744073709551615', requests: '7', ids_per_s: r < 4 && !dead.has(r) ? 1234.5 : 0,
        from_above_per_s: r < GENERATORS ? 0 : 5, requests_per_s: 1, age_s: 0.1, folded,
        below: below(r) === 0 ? null :
            { ranks: below(r), status: { full: below(r) }, fluid: {}, ids_per_s: 7, requests_per_s: 1 },
    });
    const watermark = { timestamp_ms: '1', id: 'f2LgTNQw', behind_ms: 3.25 };
    const totals = { ids_per_s: 123456, requests_per_s: 7, watermark };
    function tree(first) {
        let levels = [[first]], n = 1;
        for (let row = [first]; (row = row.flatMap(attached)).length > 0 && n + row.length <= MOST; n += row.length)
            levels.push(row);
        const last = new Set(levels[levels.length - 1]);
        const order = (r) => [r, ...(last.has(r) ? [] : attached(r).flatMap(order))];
        const ranks = [...order(first), ...(first === 0 ? dead : [])];
        return { look: 1, time: new Date().toISOString(), instance: '<b>fake</b>', size: SIZE, error: null, rank: first,
                 depth: levels.length - 1, left_out: 0, ...totals,
                 ranks: ranks.map((r) => rank(r, last.has(r) && below(r) > 0)) };
    }
    let stream;
    const fake = {
        asked: [],
        size: SIZE, // from where on there is nothing
        token: null,
        deaf: false, // nobody gets events
        held: window.FAKE?.held ?? false, // trees are not answered
        failing: false, // nor are there any
        emit: (name, data) => fake.raw(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`),
        raw: (text) => stream.enqueue(new TextEncoder().encode(text)),
        end: () => stream.close(),
        kill(r, told = true) {
            const moved = attached(r), was = up(r);
            dead.add(r);
            const now = { status: 'full', fluid: 'active', attached_to: was };
            const ranks = [
                { rank: r, was: { status: 'full', attached_to: was }, ...now, status: 'lost', attached_to: null,
                  ids_from: null },
                ...moved.map((c) => ({ rank: c, was: { attached_to: r }, ...now, ids_from: c })),
            ];
            if (told)
                fake.emit('change', { look: 2, time: new Date().toISOString(), more: 0, ranks });
        },
    };
    window.fake = fake;
    window.fetch = async (path, options) => {
        const url = new URL(path, location);
        fake.asked.push(url.pathname + url.search);
        if (fake.token && options.headers.Authorization !== `Bearer ${fake.token}`)
            return new Response('{"detail": "a token is needed"}', { status: 401 });
        while (url.pathname === '/v1/tree' && fake.held)
            await new Promise((resolve) => setTimeout(resolve, 10));
        if (url.pathname === '/v1/tree' && fake.failing)
            return new Response('{"detail": "the broker does not answer"}', { status: 503 });
        if (url.pathname === '/v1/tree' && Number(url.searchParams.get('rank') ?? 0) >= fake.size)
            return new Response('{"detail": "there is no such rank"}', { status: 404 });
        if (url.pathname === '/v1/tree')
            return new Response(JSON.stringify(tree(Number(url.searchParams.get('rank') ?? 0))));
        if (fake.deaf)
            return new Response('{"detail": "no events"}', { status: 503 });
        const body = new ReadableStream({ start: (controller) => (stream = controller) });
        fake.emit('hello', { look: 1, size: SIZE, log: true });
        return new Response(body);
    };
})();
