// SPDX-License-Identifier: Apache-2.0
// Copyright idtree contributors
//
// model.js - the known state of the tree, and the places of the visible ranks
//
// The caller passes in answers of /v1/tree, events and the time. The model itself sends and draws nothing. A rank has
// the properties that the server sends (etc/openapi.json). The model adds `up`, `children` and `lease_end`.

export const UNASKED = 64; // most ranks that are visible before the user unfolds more; but one level is always shown

export class Model {
    constructor() {
        this.ranks = new Map();
        this.tops = []; // ranks without a visible parent
        this.chosen = new Map(); // rank -> whether the user unfolded it (true) or folded it
        this.level = 0; // ranks above this level are unfolded unless the user folded them
        this.tree = null; // the answer for the first rank, without its list of ranks
        this.leaseMax = 1; // seconds of the longest lease that was seen; its bar is full
    }

    // Take the answer for the first rank, then the answers for unfolded ranks. They replace all data.
    take(trees, now) {
        this.tree = trees[0];
        this.ranks = new Map();
        for (const tree of trees)
            for (const r of tree.ranks)
                this.ranks.set(r.rank, { ...r, up: null, children: [], lease_end: this.leaseEnd(r, now) });
        this.link();
        this.level = this.unaskedLevel();
    }

    leaseEnd(r, now) {
        if (r.lease_left_s === null)
            return null;
        this.leaseMax = Math.max(this.leaseMax, r.lease_left_s);
        return now + r.lease_left_s;
    }

    // A detached rank keeps its place in the topology, because a user looks for it there.
    link() {
        this.tops = [];
        for (const r of this.ranks.values()) {
            const up = r.rank === this.tree.rank ? undefined : this.ranks.get(r.attached_to ?? r.parent);
            r.up = up ?? null;
            (up ? up.children : this.tops).push(r);
        }
        for (const r of this.ranks.values())
            r.children.sort((a, b) => a.rank - b.rank);
    }

    // The depth to which at most UNASKED ranks are shown. It is at least the first level.
    unaskedLevel() {
        let level = 0;
        let row = this.tops;
        for (let n = row.length; row.length > 0; level++) {
            row = row.flatMap((r) => r.children);
            n += row.length;
            if (level > 0 && n > UNASKED)
                break;
        }
        return level;
    }

    rates(event, now) {
        this.tree = { ...this.tree, ids_per_s: event.ids_per_s, requests_per_s: event.requests_per_s,
                      watermark: event.watermark, root: event.root };
        for (const told of event.ranks) {
            const r = this.ranks.get(told.rank);
            if (r)
                Object.assign(r, told, { lease_end: this.leaseEnd(told, now) });
        }
    }

    hasBelow(r) {
        return r.folded || r.children.length > 0;
    }

    isOpen(r, depth) {
        return this.hasBelow(r) && (this.chosen.get(r.rank) ?? (!r.folded && depth < this.level));
    }

    // Returns whether the ranks below it must be requested from the server.
    choose(r, open) {
        this.chosen.set(r.rank, open);
        return open && r.folded;
    }

    // The visible ranks, each before the ranks below it: { r, depth, column, row, open, size, pos }; a leaf's `row` is an
    // integer. Leaves of one parent fill up to `most` columns, from the parent's depth + 1 on. No rank is visited
    // twice, because answers from different times may form a cycle.
    layout(most = 1) {
        const shown = [];
        const seen = new Set();
        let rows = 0;
        const place = (r, depth, column, size, pos) => {
            const it = { r, depth, column, row: 0, open: this.isOpen(r, depth) && r.children.length > 0, size, pos };
            seen.add(r);
            shown.push(it);
            const below = it.open ? r.children.filter((c) => !seen.has(c)) : [];
            const first = rows;
            const high = this.inColumns(below, depth + 1, most);
            const at = below.map((c, i) => {
                if (high > 0)
                    rows = first + (i % high);
                return place(c, depth + 1, column + 1 + (high > 0 ? Math.floor(i / high) : 0), below.length, i + 1);
            });
            if (high > 0)
                rows = first + high;
            it.row = at.length > 0 ? (Math.min(...at) + Math.max(...at)) / 2 : rows++;
            return it.row;
        };
        this.tops.forEach((r, i) => place(r, 0, 0, this.tops.length, i + 1));
        return { shown, rows, columns: 1 + shown.reduce((top, it) => Math.max(top, it.column), 0) };
    }

    // The rows that these siblings need in `most` columns. 0: the siblings are in one column, because some of them have
    // visible ranks below them.
    inColumns(siblings, depth, most) {
        if (most < 2 || siblings.length < 2 || siblings.some((r) => this.isOpen(r, depth) && r.children.length > 0))
            return 0;
        return Math.ceil(siblings.length / most);
    }

    // The number of ranks with each status. If the first rank is rank 0, these are numbers of the whole instance.
    statuses() {
        const sum = new Map();
        const add = (status, n) => sum.set(status, (sum.get(status) ?? 0) + n);
        for (const top of this.ranks.values())
            if (top.rank === this.tree.rank || top.attached_to === null) {
                add(top.status, 1);
                for (const [status, n] of Object.entries(top.below?.status ?? {}))
                    add(status, n);
            }
        return sum;
    }
}

export function isGone(r) {
    return ['lost', 'offline', 'no answer', 'malformed'].includes(r.status);
}

// 3, 4, 5, 9 -> "3-5, 9"
export function spans(ranks) {
    const parts = [];
    for (const rank of [...ranks].sort((a, b) => a - b)) {
        const last = parts[parts.length - 1];
        if (last && rank === last[1] + 1)
            last[1] = rank;
        else
            parts.push([rank, rank]);
    }
    const text = parts.slice(0, 8).map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(', ');
    return parts.length > 8 ? `${text}, …` : text;
}

// The differences between two maps of ranks, like `ranks` of a change event. Ranks in only one map are left out.
export function differences(before, after) {
    const changes = [];
    for (const r of after.values()) {
        const old = before.get(r.rank);
        const keys = old ? Object.keys(SAYS).filter((key) => old[key] !== r[key]) : [];
        if (keys.length > 0)
            changes.push({ ...r, was: Object.fromEntries(keys.map((key) => [key, old[key]])) });
    }
    return changes;
}

const SAYS = {
    status: (was, is) => `${is}, was ${was}`,
    attached_to: (was, is) => (is === null ? `attached to no rank, was to ${was}` : `attached to ${is}`) +
        (is !== null && was !== null ? `, was to ${was}` : ''),
    ids_from: (was, is, rank) => (is === null ? 'no rank makes ids' : is === rank ? 'makes ids' : `ids come from ${is}`) +
        (was === null ? '' : was === rank ? ', made them' : `, came from ${was}`),
    fluid: (was, is) => `generator ${is ?? 'unknown'}, was ${was ?? 'unknown'}`,
};

// A change event as lines for people. If several ranks have the same change, it is one line.
export function describe(event) {
    const groups = new Map();
    for (const r of event.ranks)
        for (const key of Object.keys(SAYS))
            if (key in r.was) {
                const text = SAYS[key](r.was[key], r[key], r.rank);
                groups.set(text, [...(groups.get(text) ?? []), r.rank]);
            }
    const lines = [...groups].map(([text, ranks]) => ({
        text: `${ranks.length > 1 ? 'ranks' : 'rank'} ${spans(ranks)}: ${text}`,
        bad: /^(lost|offline|degraded|no answer|attached to nobody|nobody)/.test(text),
    }));
    if (event.more > 0)
        lines.push({ text: `${event.more} more changes`, bad: false });
    return lines;
}

// 1234567 -> "1.23M": at most three digits
export function short(n) {
    for (const [limit, unit] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
        if (n >= limit * 0.9995)
            return Number((n / limit).toPrecision(3)) + unit;
    return `${n >= 9.95 ? Math.round(n) : Number(n.toFixed(1))}`;
}
