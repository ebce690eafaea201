// SPDX-License-Identifier: Apache-2.0
// Copyright idtree contributors
//
// draw.js - the tree as cards with edges between them
//
// Cards are elements of an ARIA tree in reading order. Their positions are transforms, so that a rank that changes its
// parent moves visibly. Edges are drawn below the cards and are hidden from screen readers.

import { isGone, short } from './model.js';

const CARD = { least: 124, words: 150, most: 230, one: 30, two: 44 }; // widths; largest heights for one and two lines
const GAP = { least: 52, most: 150 }; // between columns
const PITCH = { least: 28, two: 46, most: 84 }; // between the tops of two rows; from `two` on cards have two lines
const MARGIN = 12;
const FOLD = 64; // space beside a card with folded ranks
const MOST_COLUMNS = 12;
const SVG = 'http://www.w3.org/2000/svg';

// Change only values that differ, because hundreds of cards are updated each second.
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

// One word for the state of a rank, which selects the colour of its card.
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
    return r.fluid === 'sharing' ? `shares generator ${r.generator}` : `makes ids, generator ${r.generator}`;
}

// This text changes rarely, because a screen reader reads it again after each change.
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

// The sign at the beginning shows the direction.
function inFewWords(text) {
    return text.replace('makes ids, ', '').replace('shares generator', 'shares gen.');
}

function drawCard(card, it, chosen, grid) {
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
    set(parts.source, 'textContent', grid.card < CARD.words ? inFewWords(source(r)) : source(r));
    drawFold(parts.fold, r, open);
    card.style.setProperty('--depth', it.depth);
    card.style.transform = `translate(${grid.x(it)}px, ${grid.y(it)}px)`;
}

const clamp = (least, value, most) => Math.max(least, Math.min(most, value));

// Positions of the cards. They fill the window; a large tree may need more space.
class Grid {
    constructor({ shown, rows, columns }, width, height) {
        const right = shown.some((it) => it.r.below && !it.open) ? FOLD : MARGIN;
        const wide = width - MARGIN - right;
        const high = height - 2 * MARGIN;
        this.card = Math.floor(clamp(CARD.least, (wide - (columns - 1) * GAP.least) / columns, CARD.most));
        this.gap = columns > 1 ? clamp(GAP.least, (wide - columns * this.card) / (columns - 1), GAP.most) : 0;
        this.pitch = clamp(PITCH.least, Math.floor(high / rows), PITCH.most);
        this.compact = this.pitch < PITCH.two;
        this.high = Math.min(this.pitch - 4, this.compact ? CARD.one : CARD.two);
        this.top = MARGIN + Math.max(0, (high - rows * this.pitch) / 2);
        this.width = MARGIN + columns * this.card + (columns - 1) * this.gap + right;
        this.height = rows * this.pitch + 2 * MARGIN;
    }

    x(it) {
        return MARGIN + it.column * (this.card + this.gap);
    }

    y(it) {
        return this.top + it.row * this.pitch;
    }
}

// The visible ranks and their places: as few columns of leaves as the height needs, and at most as many as the width
    // allows.
export function plan(model, width, height) {
    let layout = model.layout();
    for (let columns = 2; columns <= MOST_COLUMNS && layout.rows * PITCH.least > height - 2 * MARGIN; columns++) {
        const next = model.layout(columns);
        if (new Grid(next, width, height).width > width || next.rows === layout.rows && columns > 2)
            break;
        layout = next;
    }
    return { layout, grid: new Grid(layout, width, height) };
}

// An edge is faster and wider with each power of ten.
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

// An edge to a column behind the next one goes through the gap before the next column, and then along the row.
function drawEdge(edge, above, it, grid) {
    const { r } = it;
    const [x1, y1] = [grid.x(above) + grid.card, grid.y(above) + grid.high / 2];
    const [x2, y2] = [grid.x(it), grid.y(it) + grid.high / 2];
    const bend = x1 + grid.gap;
    const path = `M ${x1} ${y1} C ${x1 + 0.6 * grid.gap} ${y1} ${bend - 0.6 * grid.gap} ${y2} ${bend} ${y2} L ${x2} ${y2}`;
    const [line, moving, text] = edge.children;
    attr(edge, 'class', r.attached_to === null ? 'detached' : r.attached_to !== r.parent ? 'adopted' : '');
    for (const el of [line, moving]) {
        attr(el, 'd', path);
        el.style.d = `path("${path}")`; // browsers without this property use the attribute, and edges jump
    }
    attr(moving, 'class', `moving${flow(r.from_above_per_s)}`);
    attr(text, 'x', x2 - 6);
    attr(text, 'y', y2 - 6);
    set(text, 'textContent', r.from_above_per_s > 0 ? `${short(r.from_above_per_s)}/s` : '');
}

// Elements in a container of their own; the key is the rank.
class Group {
    constructor(el, create) {
        this.el = el;
        this.create = create;
        this.by = new Map();
    }

    // Show exactly these elements, in this order. An element at its place is not moved: it would lose the focus.
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

    draw({ layout, grid }, chosen) {
        const focused = document.activeElement?.dataset?.rank;
        const at = new Map(layout.shown.map((it) => [it.r, it]));
        const below = layout.shown.filter((it) => at.has(it.r.up) && it.depth > 0);
        this.shown = layout.shown;
        this.size(grid);
        this.edges.arrange(below.map((it) => it.r.rank));
        for (const it of below)
            drawEdge(this.edges.by.get(it.r.rank), at.get(it.r.up), it, grid);
        this.cards.arrange(layout.shown.map((it) => it.r.rank));
        for (const it of layout.shown)
            drawCard(this.cards.by.get(it.r.rank), it, chosen, grid);
        if (focused !== undefined && document.activeElement?.dataset?.rank !== focused)
            this.cards.by.get(chosen)?.focus({ preventScroll: true });
        this.grid = grid;
    }

    // The vertical range of a card; null: the card is not shown.
    place(rank) {
        const it = this.shown.find((shown) => shown.r.rank === rank);
        return it ? [this.grid.y(it), this.grid.y(it) + this.grid.high] : null;
    }

    size(grid) {
        for (const el of [this.canvas, this.svg]) {
            el.style.width = `${grid.width}px`;
            el.style.height = `${grid.height}px`;
        }
        this.canvas.style.setProperty('--card-width', `${grid.card}px`);
        this.canvas.style.setProperty('--card-height', `${grid.high}px`);
        this.canvas.classList.toggle('compact', grid.compact);
    }

    // A bar shows the remaining time of a lease, relative to the longest lease.
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
