// SPDX-License-Identifier: Apache-2.0
// Copyright idtree contributors
//
// draw.js - the tree as cards with edges between them
//
// Cards are elements of an ARIA tree in the order in which they are read; where they stand is a transform, so that who
// changes parents is seen to move.  Edges lie below them and are not read.

import { isGone, short } from './model.js';

const CARD = { width: 172, height: 44 };
const STEP = { x: 248, y: 56 };
const MARGIN = 12;
const SVG = 'http://www.w3.org/2000/svg';

// What is not there yet is not touched: hundreds of cards are looked through each second.
function set(el, name, value) {
    if (el[name] !== value)
        el[name] = value;
}

function attr(el, name, value) {
    if (value === null)
        el.removeAttribute(name);
    else if (el.getAttribute(name) !== `${value}`)
        el.setAttribute(name, value);
}

export function make(tag, className, text) {
    const el = document.createElement(tag);
    el.className = className ?? '';
    el.textContent = text ?? '';
    return el;
}

// In a word: what a rank is, as the colour of its card.
export function stateOf(r) {
    return isGone(r) ? 'lost' : r.fluid ?? 'unknown';
}

export function source(r) {
    if (isGone(r))
        return r.status;
    if (r.ids_from === null)
        return r.fluid ?? r.status;
    if (r.ids_from !== r.rank)
        return `ids from ${r.ids_from}`;
    return r.fluid === 'borrowing' ? `shares generator ${r.generator}` : `makes ids, generator ${r.generator}`;
}

// What hardly ever changes: a reader of the screen says it again whenever it does.
function label(r) {
    const below = r.below ? `, ${r.below.ranks} below` : '';
    const fluid = r.fluid ? `, ${r.fluid}` : '';
    return `rank ${r.rank}, ${r.host ?? 'host unknown'}, ${r.status}${fluid}, ${source(r)}${below}`;
}

function newCard(rank) {
    const card = make('div', 'card');
    card.id = `rank-${rank}`;
    card.setAttribute('role', 'treeitem');
    card.dataset.rank = rank;
    card.parts = {};
    for (const name of ['mark', 'rank', 'host', 'rate', 'source', 'lease', 'fold']) {
        card.parts[name] = make('span', name);
        card.append(card.parts[name]);
    }
    card.parts.fill = card.parts.lease.appendChild(make('span', 'fill'));
    card.parts.fold.append(make('span', 'count'), make('span', 'parts'));
    return card;
}

function drawFold(fold, r, open) {
    const closed = Boolean(r.below) && !open;
    set(fold, 'hidden', !closed);
    if (!closed)
        return;
    set(fold.firstChild, 'textContent', `+${r.below.ranks}`);
    const good = r.below.status.full ?? 0;
    const bad = Object.entries(r.below.status).reduce((sum, [status, n]) => (status === 'full' ? sum : sum + n), 0);
    set(fold, 'title', `${r.below.ranks} ranks below: ${short(r.below.ids_per_s)} ids/s, ` +
        Object.entries(r.below.status).map(([status, n]) => `${n} ${status}`).join(', '));
    fold.lastChild.style.setProperty('--bad', `${(100 * bad) / Math.max(1, good + bad)}%`);
}

function drawCard(card, it, chosen) {
    const { r, open } = it;
    const { parts } = card;
    set(card, 'className', `card ${stateOf(r)}${r.rank === chosen ? ' chosen' : ''}`);
    set(card, 'tabIndex', r.rank === chosen ? 0 : -1);
    attr(card, 'aria-label', label(r));
    attr(card, 'aria-level', it.depth + 1);
    attr(card, 'aria-setsize', it.size);
    attr(card, 'aria-posinset', it.pos);
    attr(card, 'aria-expanded', r.folded || r.children.length > 0 ? open : null);
    attr(card, 'aria-selected', r.rank === chosen);
    set(parts.rank, 'textContent', `${r.rank}`);
    set(parts.host, 'textContent', r.host ?? '');
    set(parts.rate, 'textContent', r.ids_per_s > 0 ? `${short(r.ids_per_s)}/s` : '');
    set(parts.source, 'textContent', source(r));
    drawFold(parts.fold, r, open);
    card.style.transform = `translate(${x(it)}px, ${y(it)}px)`;
}

function x(it) {
    return MARGIN + it.depth * STEP.x;
}

function y(it) {
    return MARGIN + it.row * STEP.y;
}

// Faster and wider with each power of ten.
function flow(rate) {
    return rate > 0 ? ` flow flow${Math.min(5, Math.max(0, Math.floor(Math.log10(rate))))}` : '';
}

function newEdge() {
    const edge = document.createElementNS(SVG, 'g');
    edge.append(document.createElementNS(SVG, 'path'), document.createElementNS(SVG, 'path'),
                document.createElementNS(SVG, 'text'));
    edge.children[0].setAttribute('class', 'line');
    return edge;
}

function drawEdge(edge, above, it) {
    const { r } = it;
    const [x1, y1] = [x(above) + CARD.width, y(above) + CARD.height / 2];
    const [x2, y2] = [x(it), y(it) + CARD.height / 2];
    const path = `M ${x1} ${y1} C ${x1 + 44} ${y1} ${x2 - 44} ${y2} ${x2} ${y2}`;
    const [line, moving, text] = edge.children;
    attr(edge, 'class', r.attached_to === null ? 'detached' : r.attached_to !== r.parent ? 'adopted' : '');
    for (const el of [line, moving]) {
        attr(el, 'd', path);
        el.style.d = `path("${path}")`; // the attribute is for browsers that do not know it: there edges jump
    }
    attr(moving, 'class', `moving${flow(r.from_above_per_s)}`);
    attr(text, 'x', x2 - 6);
    attr(text, 'y', y2 - 6);
    set(text, 'textContent', r.from_above_per_s > 0 ? `${short(r.from_above_per_s)}/s` : '');
}

// Elements by rank, in a container of their own.
class Group {
    constructor(el, create) {
        this.el = el;
        this.create = create;
        this.by = new Map();
    }

    // These alone, in this order.  Whoever is where it should be is not moved: that would take the focus from it.
    arrange(ranks) {
        const wanted = new Set(ranks);
        for (const [rank, el] of this.by)
            if (!wanted.has(rank)) {
                el.remove();
                this.by.delete(rank);
            }
        let next = this.el.firstElementChild;
        for (const rank of ranks) {
            if (!this.by.has(rank))
                this.by.set(rank, this.create(rank));
            const el = this.by.get(rank);
            if (el === next)
                next = next.nextElementSibling;
            else
                this.el.insertBefore(el, next);
        }
    }
}

export class Drawing {
    constructor(canvas, edges, cards) {
        this.canvas = canvas;
        this.svg = edges;
        this.edges = new Group(edges, newEdge);
        this.cards = new Group(cards, newCard);
        this.shown = [];
    }

    draw(layout, chosen) {
        const focused = document.activeElement?.dataset?.rank;
        const at = new Map(layout.shown.map((it) => [it.r, it]));
        const below = layout.shown.filter((it) => at.has(it.r.up) && it.depth > 0);
        this.shown = layout.shown;
        this.size(layout);
        this.edges.arrange(below.map((it) => it.r.rank));
        for (const it of below)
            drawEdge(this.edges.by.get(it.r.rank), at.get(it.r.up), it);
        this.cards.arrange(layout.shown.map((it) => it.r.rank));
        for (const it of layout.shown)
            drawCard(this.cards.by.get(it.r.rank), it, chosen);
        if (focused !== undefined && document.activeElement?.dataset?.rank !== focused)
            this.cards.by.get(chosen)?.focus({ preventScroll: true });
    }

    size({ shown, rows }) {
        const depth = shown.reduce((most, it) => Math.max(most, it.depth), 0);
        const [width, height] = [2 * MARGIN + depth * STEP.x + CARD.width + 64, 2 * MARGIN + rows * STEP.y];
        for (const el of [this.canvas, this.svg]) {
            el.style.width = `${width}px`;
            el.style.height = `${height}px`;
        }
    }

    // Bars are a part of the longest lease: they run out.
    leases(now, most) {
        for (const { r } of this.shown) {
            const { lease, fill } = this.cards.by.get(r.rank).parts;
            const left = r.lease_end === null ? null : Math.max(0, r.lease_end - now);
            set(lease, 'hidden', left === null);
            if (left === null)
                continue;
            fill.style.transform = `scaleX(${Math.min(1, left / most)})`;
            set(fill, 'className', left < most / 3 ? 'fill short' : 'fill');
            set(lease, 'title', `lease: ${left.toFixed(1)} s left`);
        }
    }
}
