// SPDX-License-Identifier: Apache-2.0
// Copyright idtree contributors
//
// page.js - the page: events update the model, the model is drawn, keys and clicks select ranks

import { Drawing, make, plan, source } from './draw.js';
import { Feed } from './feed.js';
import { Model, describe, differences, short } from './model.js';

const LINES = 200; // most lines of events, and of the log; older lines are removed
const REFRESH_S = 5; // the tree is requested again, because no event has the sums of folded subtrees
const WANTED = 16; // most subtrees that are requested separately
const LIST = 1e6; // pixels: the height of a list has no limit

const el = (id) => document.getElementById(id);
const narrow = matchMedia('(max-width: 600px)'); // on a narrow screen the tree is a list (page.css)
const now = () => performance.now() / 1000;

const model = new Model();
const drawing = new Drawing(el('canvas'), el('edges'), el('cards'));
const feed = new Feed(heard, connected);
let root = 0; // the first visible rank
let chosen = null; // the selected rank
let refreshing = null; // the pending requests
let stale = false; // something has changed since the pending requests were sent
let live = false; // events are received
let missed = false; // some events were missed, so the tree must be requested again

// --- events

function heard(name, data) {
    if (name === 'hello')
        hello(data);
    else if (name === 'rates' && model.tree) {
        model.rates(data, now());
        note(data.error);
        redraw();
    } else if (name === 'change') {
        tell(data);
        refresh();
    } else if (name === 'log')
        say(el('log'), data.time, `${data.name}[${data.rank}]: ${data.text}`, levelClass(data.level));
    else if (name === 'lost') {
        missed = true;
        refresh();
    }
}

function tell(change) {
    for (const { text, bad } of describe(change))
        say(el('events'), change.time, text, bad ? 'bad' : '');
}

function hello(data) {
    el('log').dataset.empty = data.log ? 'nothing yet' : 'hidden from other users: idtree-http --show-log, or a token';
    refresh();
}

function levelClass(level) {
    if (['emerg', 'alert', 'crit', 'err'].includes(level))
        return 'bad';
    return level === 'warning' ? 'warning' : '';
}

// The page is live only when it has a tree.
function showConnection(why) {
    el('connection').textContent = !live ? `not connected: ${why}` : model.tree ? 'live' : 'waiting for the tree';
    document.body.classList.toggle('stale', !live);
}

function connected(good, why) {
    live = good;
    missed = model.tree !== null; // answers may arrive while events do not
    showConnection(why?.message);
    if (!model.tree)
        el('waiting').textContent = good ? 'Waiting for the tree from the broker.' :
            `Waiting for the server: ${why.message}. The page tries again.`;
    if (!good && why.status === 401 && el('token-form').hidden) {
        el('token-form').hidden = false;
        el('token').focus();
    } else if (good)
        el('token-form').hidden = true;
}

// --- asking for the tree

// If there are changes during a request, one further request is sent after its answer.
function refresh() {
    stale = true;
    refreshing ??= ask().finally(() => {
        refreshing = null;
        if (stale)
            setTimeout(() => stale && refresh(), 200);
    });
    return refreshing;
}

async function ask() {
    stale = false;
    const from = root, telling = missed;
    missed = !live; // events that are missed from now on may not be in these answers
    try {
        const trees = [await feed.get(`/v1/tree?rank=${from}`)];
        await askFolded(trees);
        if (from === root)
            take(trees, telling);
        else {
            stale = true;
            missed ||= telling;
        }
        note(trees[0].error);
        redraw();
    } catch (why) {
        if (why.status === 404 && from === root)
            showFrom(0); // this is another instance, which has fewer ranks
        missed ||= telling;
        if (live && !model.tree)
            el('waiting').textContent = `Waiting for the tree: ${why.message}. It is asked for every ${REFRESH_S} s.`;
        note(why.message);
    }
}

function take(trees, telling) {
    const before = model.ranks;
    model.take(trees, now());
    el('waiting').hidden = true;
    if (live)
        showConnection();
    if (telling)
        tell({ time: trees[0].time, more: 0, ranks: differences(before, model.ranks) });
    el('root').max = model.tree.size - 1;
}

// Subtrees that the server left out, and that the user has unfolded. Subtrees that no longer exist are left out here.
async function askFolded(trees) {
    const asked = new Set();
    for (let i = 0; i < trees.length; i++)
        for (const { rank, folded } of trees[i].ranks)
            if (folded && model.chosen.get(rank) && !asked.has(rank) && asked.size < WANTED) {
                asked.add(rank);
                trees.push(...(await feed.get(`/v1/tree?rank=${rank}`).then((tree) => [tree], () => [])));
            }
}

function note(error) {
    const left = model.tree?.left_out > 0 ? `${model.tree.left_out} more ranks below it are not shown` : '';
    el('tree-note').textContent = error ? `not up to date: ${error}` : left;
    el('tree-note').classList.toggle('bad', Boolean(error));
}

// --- display

let drawn = false;
function redraw() {
    if (!drawn)
        requestAnimationFrame(draw);
    drawn = true;
}

function draw() {
    drawn = false;
    if (!model.tree)
        return;
    if (!model.ranks.has(chosen))
        chosen = model.tops[0]?.rank ?? null;
    const box = el('scroll');
    const planned = plan(model, box.clientWidth, narrow.matches ? LIST : box.clientHeight);
    if (!planned.layout.shown.some((it) => it.r.rank === chosen))
        chosen = nearest(planned.layout.shown);
    const stay = [model.tops[0].rank, chosen].filter(isSeen);
    drawing.draw(planned, chosen);
    stay.forEach(keepSeen);
    drawFigures();
    tick();
}

// When other ranks appear or disappear, the first rank and the chosen rank stay in sight.
function isSeen(rank) {
    const at = drawing.grid && drawing.place(rank);
    const { scrollTop, clientHeight } = el('scroll');
    return !at || (at[0] >= scrollTop && at[1] <= scrollTop + clientHeight);
}

function keepSeen(rank) {
    if (!narrow.matches && !isSeen(rank))
        el('scroll').scrollTop = drawing.place(rank)[0] - el('scroll').clientHeight / 2;
}

// If the chosen rank is no longer visible because it was folded, choose the nearest visible rank above it.
function nearest(shown) {
    const ranks = new Set(shown.map((it) => it.r));
    let r = model.ranks.get(chosen);
    for (let i = 0; r && !ranks.has(r) && i < model.ranks.size; i++)
        r = r.up;
    return (ranks.has(r) ? r : shown[0].r).rank;
}

function drawFigures() {
    const { tree } = model;
    const statuses = [...model.statuses()].sort((a, b) => b[1] - a[1]).map(([status, n]) => `${n} ${status}`);
    const name = tree.instance === 'idtree' ? '' : tree.instance ?? ''; // the heading has the name idtree already
    el('instance').textContent = name;
    el('ids').textContent = short(tree.ids_per_s);
    el('requests').textContent = short(tree.requests_per_s);
    el('ranks').textContent = `${tree.size}: ${statuses.join(', ')}`;
    el('watermark').textContent = watermark(tree.watermark);
    el('role').hidden = !tree.root;
    el('role-text').textContent = tree.root ? role(tree.root) : '';
    document.title = `idtree ${name}`.trim() + `: ${statuses.join(', ')}`;
}

function duration(ms) {
    return ms < 1000 ? `${short(ms)} ms` : `${short(ms / 1000)} s`;
}

function watermark(mark) {
    if (!mark)
        return 'none';
    const behind = mark.behind_ms === undefined ? '' : `, ${duration(mark.behind_ms)} behind`;
    const still = mark.still_ms > 10000 ? `, still for ${duration(mark.still_ms)}` : '';
    return `${mark.id}${behind}${still}`;
}

// Which host is rank 0, where several hosts can be (root.store).
function role(root) {
    const standbys = root.standbys === undefined ? '' : `, ${root.standbys} stand by`;
    const takeovers = root.takeovers > 0 ? `, ${root.takeovers} takeovers` : '';
    return `${root.host}, term ${root.term}${standbys}${takeovers}${root.why ? `; ${root.why}` : ''}`;
}

const count = (digits) => BigInt(digits).toLocaleString('en');
const nobody = (rank) => rank ?? 'nobody';

function attachment(r) {
    if (r.parent === null)
        return 'is the root';
    return r.attached_to === r.parent ? `${r.parent}` : `${nobody(r.attached_to)}, not to ${r.parent}`;
}

function drawFacts(r) {
    const left = r.lease_end === null ? 'none' : `${Math.max(0, r.lease_end - now()).toFixed(1)} s left`;
    const facts = [
        ['rank', r.rank], ['host', r.host ?? 'unknown'], ['status', r.status], ['generator', r.fluid ?? 'unknown'],
        ['ids', source(r)], ['lease', left], ['parts held by', nobody(r.granted_to)],
        ['attached to', attachment(r)], ['from above', `${short(r.from_above_per_s)} ids/s`],
        ['ids made', `${count(r.ids)} (${short(r.ids_per_s)}/s)`],
        ['requests', `${count(r.requests)} (${short(r.requests_per_s)}/s)`],
        ['below', r.below ? `${r.below.ranks} ranks, ${short(r.below.ids_per_s)} ids/s` : 'nobody'],
    ];
    const list = el('rank-facts');
    while (list.children.length < facts.length) {
        const row = list.appendChild(make('div'));
        row.append(make('dt'), make('dd'));
    }
    facts.forEach(([name, value], i) => {
        list.children[i].children[0].textContent = name;
        list.children[i].children[1].textContent = value;
    });
}

function tick() {
    const r = model.ranks.get(chosen);
    drawing.leases(now(), model.leaseMax);
    if (r)
        drawFacts(r);
}

// The newest line is the last one. It stays in sight, unless the user has scrolled to older lines.
function say(list, time, text, className) {
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 24;
    const line = make('li', className);
    line.append(make('time', '', new Date(time).toLocaleTimeString('en-GB')), ` ${text}`);
    list.append(line);
    while (list.children.length > LINES)
        list.firstElementChild.remove();
    if (atEnd)
        list.scrollTop = list.scrollHeight;
}

// --- keys and clicks

function choose(rank) {
    chosen = rank;
    draw();
    const card = drawing.cards.by.get(rank);
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

function unfold(it, open) {
    if (model.choose(it.r, open))
        refresh();
    choose(it.r.rank);
}

// The keys of the ARIA tree pattern.
function key(event) {
    const { shown } = drawing;
    const at = shown.findIndex((it) => it.r.rank === chosen);
    const it = shown[at];
    const go = (i) => choose(shown[Math.max(0, Math.min(shown.length - 1, i))].r.rank);
    const keys = {
        ArrowDown: () => go(at + 1),
        ArrowUp: () => go(at - 1),
        Home: () => go(0),
        End: () => go(shown.length - 1),
        ArrowRight: () => (it.open ? go(at + 1) : model.hasBelow(it.r) && unfold(it, true)),
        ArrowLeft: () => (it.open ? unfold(it, false) : it.depth > 0 && choose(it.r.up.rank)),
        Enter: () => model.hasBelow(it.r) && unfold(it, !it.open),
        ' ': () => model.hasBelow(it.r) && unfold(it, !it.open),
    };
    if (!it || !keys[event.key] || event.ctrlKey || event.altKey || event.metaKey)
        return;
    event.preventDefault();
    keys[event.key]();
}

function click(event) {
    const card = event.target.closest('.card');
    const it = card && drawing.shown.find((shown) => shown.r.rank === Number(card.dataset.rank));
    if (!it)
        return;
    if (it.r.rank === chosen && model.hasBelow(it.r) || event.target.closest('.fold'))
        unfold(it, !it.open);
    else
        choose(it.r.rank);
}

function showFrom(rank) {
    root = rank;
    chosen = root;
    stale = true;
    el('root').value = rank;
}

function showRoot(event) {
    event.preventDefault();
    showFrom(el('root').valueAsNumber);
    refresh();
}

function useToken(event) {
    event.preventDefault();
    el('token-form').hidden = true;
    feed.setToken(el('token').value);
    el('token').value = '';
}

el('cards').addEventListener('keydown', key);
el('cards').addEventListener('click', click);
el('root-form').addEventListener('submit', showRoot);
el('token-form').addEventListener('submit', useToken);
setInterval(() => model.tree && tick(), 1000);
setInterval(() => (live || model.tree) && refresh(), 1000 * REFRESH_S);
new ResizeObserver(redraw).observe(el('scroll'));
feed.run();
