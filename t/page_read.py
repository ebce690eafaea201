#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""page_read.py URL STORY - the live page as a browser shows it

Stories: live (inside an instance of PAGE_RANKS brokers, kary:2; rank 1 is killed), large, token, layout (with
page_fake.js, which runs in the page and answers instead of a server). Prints each step; exits with 1 if the page never
shows the expected content.
"""
import contextlib
import json
import os
import subprocess
import sys

from browser import WAIT_S, Browser

CARD = "document.getElementById('rank-%d')"


def step(what):
    print("ok:", what, flush=True)


def check(what, good):
    if not good:
        sys.exit(f"not so: {what}")
    step(what)


def fake(**what):
    """Return the script that plays an instance of SIZE ranks with FAN children each."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_fake.js"), encoding="utf-8") as file:
        return f"window.FAKE = {json.dumps(what)};" + file.read()


def labels(browser, rank, *texts):
    """Wait until the card of a rank contains all texts."""
    card = CARD % rank
    browser.wait(f"rank {rank} says {texts}", f"{list(texts)}.every ((t) => {card}.ariaLabel.includes (t))")


def focused(browser):
    return browser.js("document.activeElement.id")


def large(browser, url):
    browser.open(url, fake())
    labels(browser, 8, "584 below")
    check("5,000 ranks are folded: 9 are shown", browser.js("document.querySelectorAll ('.card').length") == 9)
    check("names of others are text", browser.js("document.getElementById ('instance').textContent") == "<b>fake</b>")
    browser.js(f"{CARD % 0}.focus ()")
    browser.key("ArrowRight")
    browser.key("ArrowDown")
    browser.key("ArrowRight")
    browser.wait("rank 2 is unfolded", f"{CARD % 2}.ariaExpanded == 'true' && {CARD % 17}.ariaLevel == '3'")
    browser.key("ArrowRight")
    check("keys go down into a subtree", focused(browser) == "rank-17")
    for rank in (137, 1097):
        browser.key("ArrowRight")
        browser.wait(f"{rank} is there", f"{CARD % rank}.ariaLevel > 3")
        browser.key("ArrowRight")
    check("and into what the server had folded",
          focused(browser) == "rank-1097" and "/v1/tree?rank=17" in browser.js("fake.asked"))
    browser.js("fake.kill (137)")
    labels(browser, 137, "lost")
    browser.wait("its subtree is with its parent", f"{CARD % 1097}.ariaLevel == '4'")
    check("who was chosen stays so", focused(browser) == "rank-1097")
    browser.wait("that is told in a line", "events.innerText.includes ('ranks 1097-1104: attached to 17, was to 137')")
    browser.key("ArrowLeft")
    browser.key("ArrowLeft")
    browser.wait("a subtree is folded again", f"{CARD % 17}.ariaExpanded == 'false' && !{CARD % 1097}")
    check("keys follow", focused(browser) == "rank-17")
    browser.js("root.value = 600; document.querySelector ('#root-form button').click ()")
    browser.wait("a subtree alone", f"{CARD % 600}.ariaLevel == '1' && !{CARD % 0} && {CARD % 4801}.ariaLevel == '2'")
    browser.js("fake.size = 500; fake.emit ('lost', { events: 1 })")
    browser.wait("all of it, where there is no such rank any more", f"{CARD % 0}.ariaLevel == '1' && root.value == '0'")
    browser.js("fake.size = 5000")
    browser.js("for (let i = 0; i < 1000; i++) fake.emit ('log', { time: '2026-01-01T00:00:00Z', rank: 0, name: 'x', "
               "level: 'err', text: `line ${i} <img src=x>` })")
    browser.wait("the last line of the log", "log.innerText.includes ('line 999 <img')")
    check("of the log 200 lines are kept", browser.js("log.children.length") == 200)
    told = browser.js("import ('/model.js').then ((m) => m.describe ({ more: 0, ranks: [3, 9, 4, 5].map ((rank) =>"
                      " ({ rank, ids_from: rank, was: { ids_from: null } })) }))")
    check("what many do alike is one line", [line["text"] for line in told] == ["ranks 3-5, 9: makes ids"])
    show_all = "root.value = 0; document.querySelector ('#root-form button').click ()"
    browser.js("fake.deaf = true; fake.end ()")
    browser.wait("the page says so when nobody tells", "connection.innerText.includes ('not connected')")
    browser.js(f"fake.kill (1, false); {show_all}")
    browser.wait("what a tree alone tells is told", "events.innerText.includes ('rank 1: lost, was full')")
    browser.js("fake.deaf = false")
    browser.wait("it comes back", "connection.innerText == 'live'")
    labels(browser, 5, "full")
    browser.js("fake.end (); fake.kill (5, false)")
    browser.wait("what was missed meanwhile is told", "events.innerText.includes ('rank 5: lost, was full')")
    step("a page that was cut off says so, comes back, and tells what it missed")


def token(browser, url):
    browser.open(url, fake() + "; fake.token = 'sesame-0123456789';")
    for text in ("wrong", "sesame-0123456789"):
        browser.wait("the form is there", "document.activeElement.id == 'token'")
        browser.js(f"token.value = '{text}'; document.querySelector ('#token-form button').click ()")
    labels(browser, 0, "rank 0")
    check("it is kept for this tab alone",
          browser.js("sessionStorage.token && !document.cookie && localStorage.length == 0"))


def size(browser, width, height):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def again(browser, url, width, height, **what):
    """Open the page of another instance, and wait until its cards are at their final positions."""
    size(browser, width, height)
    browser.prefer(reduced_motion="reduce")
    if again.script:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=again.script)
    browser.open("about:blank")
    browser.wait("it is gone", "!document.querySelector ('#scroll')")
    again.script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=fake(**what))["identifier"]
    browser.open(url)
    browser.wait("it is there", "window.fake && document.querySelector ('#scroll')")


again.script = None

# The fraction of the tree's area that the cards span, and whether all cards are inside of this area.
SPAN = """(() => {
    const place = document.getElementById ('scroll').getBoundingClientRect ();
    const cards = [...document.querySelectorAll ('.card')].map ((c) => c.getBoundingClientRect ());
    const [left, right] = [Math.min (...cards.map ((c) => c.left)), Math.max (...cards.map ((c) => c.right))];
    const [top, bottom] = [Math.min (...cards.map ((c) => c.top)), Math.max (...cards.map ((c) => c.bottom))];
    return { n: cards.length, wide: (right - left) / place.width, high: (bottom - top) / place.height,
             inside: left >= place.left && right <= place.right && top >= place.top && bottom <= place.bottom };
}) ()"""


def fills(browser, what, n):
    browser.wait(f"{n} cards", f"{SPAN}.n == {n}")
    span = browser.js(SPAN)
    check(f"{what} fill the window, and none is outside: {span}",
          span["inside"] and span["wide"] > 0.8 and span["high"] > 0.8)


IN_SIGHT = """(() => { const c = document.getElementById ('rank-0').getBoundingClientRect ();
    const place = document.getElementById ('scroll').getBoundingClientRect ();
    return c.top >= place.top && c.bottom <= place.bottom && c.left >= place.left && c.right <= place.right; }) ()"""


def layout(browser, url):
    again(browser, url, 1200, 760, SIZE=15, FAN=2, GENERATORS=4)
    fills(browser, "15 ranks", 15)
    check("signs are explained", any("What the signs mean" in line for line in browser.read()))
    browser.js("fake.kill (1)")
    labels(browser, 1, "lost")
    left = f"parseFloat ({CARD % 1}.querySelector ('.lease').title.slice (7))"
    browser.js("fake.emit ('rates', { look: 3, error: null, watermark: null, ids_per_s: 1, requests_per_s: 1, more: 0,"
               " ranks: [{ rank: 1, ids_per_s: 0, from_above_per_s: 0, requests_per_s: 0, lease_left_s: 11.5 }] })")
    browser.wait("the bar of a lost rank runs on", f"!{CARD % 1}.querySelector ('.lease').hidden && {left} < 11")
    again(browser, url, 1920, 1080, SIZE=200, FAN=199)
    fills(browser, "200 ranks below one", 200)
    again(browser, url, 1920, 1080, SIZE=200, FAN=2)
    fills(browser, "the first levels of 200 ranks by twos", 63)
    again(browser, url, 1200, 760, SIZE=3661, FAN=60)
    browser.wait("61 cards", f"{SPAN}.n == 61")
    browser.wait("the first rank is in sight", IN_SIGHT)
    browser.js("fake.kill (1)")
    browser.wait("60 more are below it", f"{SPAN}.n == 121")
    browser.wait("the first rank is in sight when others came below it", IN_SIGHT)
    narrow(browser, url)
    waits(browser, url)


def narrow(browser, url):
    again(browser, url, 480, 800, SIZE=15, FAN=2)
    browser.wait("15 cards", f"{SPAN}.n == 15")
    rows = browser.js("[...document.querySelectorAll ('.card')].map ((c) => ({ level: Number (c.ariaLevel),"
                      " rect: c.getBoundingClientRect ().toJSON () }))")
    check("on a narrow screen nothing is cut off", all(0 <= r["rect"]["left"] and r["rect"]["right"] <= 480 for r in rows))
    check("ranks are a list, one below the other",
          all(a["rect"]["bottom"] <= b["rect"]["top"] for a, b in zip(rows, rows[1:])))
    by_level = {r["level"]: r["rect"]["left"] for r in rows}
    check("whose levels stand further right", [by_level[i] for i in (1, 2, 3, 4)] == sorted(set(by_level.values())))
    check("without edges", browser.js("getComputedStyle (document.getElementById ('edges')).display") == "none")


def waits(browser, url):
    says = "document.getElementById ('connection').innerText"
    waiting = "document.getElementById ('waiting')"
    again(browser, url, 1200, 760, SIZE=15, FAN=2, held=True)
    browser.wait("events are heard", f"{says} == 'waiting for the tree' && {waiting}.innerText.includes ('the broker')")
    browser.js("fake.failing = true, fake.held = false")
    browser.wait("it says why there is none", f"{waiting}.innerText.includes ('the broker does not answer')")
    check("and that it waits", browser.js(says) == "waiting for the tree")
    browser.js("fake.failing = false")
    browser.wait("it asks again", f"{says} == 'live' && {waiting}.hidden && {SPAN}.n == 15")
    step("a page that has no tree yet says what it waits for")


class Load:
    """Requests ids at ranks whenever a test waits for the page."""

    def __init__(self, ranks):
        self.clients = {rank: None for rank in ranks}

    def __call__(self):
        for rank, client in self.clients.items():
            if client is None or client.poll() is not None:
                uri = os.environ["IDTREE_URI"][:-1] + str(rank)
                client = self.clients[rank] = subprocess.Popen(
                    ["idtree", "id", "new", "--follow", "--uri", uri], stdin=subprocess.PIPE, bufsize=0,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with contextlib.suppress(BrokenPipeError):
                client.stdin.write(b"%d\n" % (20 + 7 * rank))

    def end(self):
        for client in filter(None, self.clients.values()):
            client.kill()
            client.wait()


def live(browser, url):
    size = int(os.environ["PAGE_RANKS"])
    browser.meanwhile = load = Load([0, *range(3, size)])
    try:
        browser.prefer(color_scheme="light")
        browser.open(url)
        read_tree(browser, size)
        subprocess.run(["idtree", "startctl", "kill", "1"], check=True, timeout=WAIT_S)
        read_killed(browser)
        if os.environ.get("PAGE_PICTURE"):
            browser.wait("all have come where they are now", "document.getAnimations ().every ((a) => a instanceof "
                         "CSSAnimation || a.effect.target.classList.contains ('fill'))")
            browser.picture(os.environ["PAGE_PICTURE"])
        read_styles(browser)
    finally:
        load.end()


def read_tree(browser, size):
    for rank in range(size):
        labels(browser, rank, "full")
    for rank in (3, 4):
        check(f"rank {rank} is below rank 1", browser.js(f"{CARD % rank}.ariaLevel") == "3")
    labels(browser, 1, f"{(size - 3) // 2} below")
    read = browser.read()
    items = [line for line in read if line.startswith("treeitem 'rank ")]
    check("a reader of the screen finds them in a tree", len(items) == size)
    browser.wait("ids are made", "parseFloat (ids.innerText) > 0")
    browser.wait("ids flow along an edge", "document.querySelector ('#edges .flow')")
    browser.wait("leases run out", "document.querySelector ('.card.active .lease').title.includes ('s left')")
    check("its name is told once", browser.js("document.querySelector ('h1').innerText.trim ()") == "idtree")
    check("that nothing happened yet is told", "nothing happened yet" in browser.js("events.dataset.empty"))
    browser.wait("there is a watermark", "watermark.innerText.startsWith ('f')")
    step("ids flow, leases run out, there is a watermark")


def read_killed(browser):
    for rank in (3, 4):
        browser.wait(f"rank {rank} has another parent", f"{CARD % rank}.ariaLevel == '2'")
    labels(browser, 1, "lost")
    left = f"parseFloat ({CARD % 1}.querySelector ('.lease').title.slice (7))"
    browser.wait("its lease runs on", f"!{CARD % 1}.querySelector ('.lease').hidden && {left} > 0")
    before = browser.js(left)
    browser.wait("a second later, too", f"!{CARD % 1}.querySelector ('.lease').hidden && {left} < {before} - 1")
    browser.wait("it is told that rank 1 is lost", "/ranks? 1[^0-9:][^:]*: lost|rank 1: lost/.test (events.innerText)")
    browser.wait("so are new parents", "/ranks? [^:]*[34]: attached to 0/.test (events.innerText)")
    browser.wait("and the log says why", "log.innerText.length > 0")
    browser.wait("ids are made still", "parseFloat (ids.innerText) > 0")
    step("rank 1 is lost, those below it have another parent, and lines say so")


def read_styles(browser):
    light = browser.js("getComputedStyle (document.body).backgroundColor")
    browser.prefer(color_scheme="dark", reduced_motion="reduce")
    check("it is dark where that is preferred", browser.js("getComputedStyle (document.body).backgroundColor") != light)
    check("and nothing moves where that is", browser.js(f"getComputedStyle ({CARD % 1}).transitionProperty") == "none")


def main():
    url, story = sys.argv[1:]
    with Browser(1080, 640) as browser:
        {"live": live, "large": large, "layout": layout, "token": token}[story](browser, url)
        # If a request is refused, the browser reports an error, too.
        complaints = [text for text in browser.complaints if "401" not in text and "503" not in text]
        check(f"the browser complains of nothing: {complaints}", not complaints)


main()
