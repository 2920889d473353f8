package consoletest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// patience is more than any page takes on a busy machine.
const patience = 90 * time.Second

// browser is a window of a browser. It reports what the pages do wrong.
type browser struct {
	*testing.T
	ctx     context.Context
	console string // the address of the console, with a slash at its end

	mu       sync.Mutex
	troubles []string
	outage   bool // answers may fail
}

// openBrowser starts a browser for the test.
func openBrowser(t *testing.T, console string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience))
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...) // not t.Context, which ends before the cleanup
	ctx, cancel := chromedp.NewContext(allocator)
	b := &browser{T: t, ctx: ctx, console: console}
	messages := chromedp.Console(ctx) // starts the browser
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		for m, err := range messages {
			if err != nil {
				return // the browser ends
			}
			b.listen(m)
		}
	}()
	t.Cleanup(func() {
		cancel()
		cancelAllocator()
		<-listened
		for _, trouble := range b.troubles {
			t.Error(trouble)
		}
	})
	b.size(1280, 1)
	return b
}

// listen collects what a page must not do.
func (b *browser) listen(m chromedp.ConsoleMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	excused := m.Source == "network" && b.outage
	if !excused && (m.Type == chromedp.ConsoleError || m.IsException() || m.Source == "security") {
		b.troubles = append(b.troubles, fmt.Sprintf("%s %s %s", m.Source, m, m.URL))
	}
}

// fails lets answers fail until the returned function is called.
func (b *browser) fails() (end func()) {
	set := func(on bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.outage = on
	}
	set(true)
	return func() { set(false) }
}

// run runs an action in the browser.
func run[T any](b *browser, what string, action chromedp.Action[T]) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
	return value
}

// size sets the size of the window, and the zoom of the browser.
func (b *browser) size(width int64, zoom float64) {
	b.Helper()
	run(b, "set the size", chromedp.EmulateViewport(int64(float64(width)/zoom), 900, chromedp.EmulateScale(zoom)))
}

// dark switches the colours.
func (b *browser) dark(on bool) {
	b.Helper()
	value := "light"
	if on {
		value = "dark"
	}
	run(b, "set the colours", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
		})
		return err
	}))
}

// scriptsOff makes the browser run no scripts of pages.
func (b *browser) scriptsOff() {
	b.Helper()
	run(b, "switch scripts off", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// open loads a page.
func (b *browser) open(page string) {
	b.Helper()
	run(b, "open "+page, chromedp.Navigate(b.console+page))
}

// eval returns the value of an expression in the page.
func eval[T any](b *browser, expression string) T {
	b.Helper()
	return run(b, expression, chromedp.Evaluate[T](expression))
}

// await waits until an expression is true in the page, which updates itself.
func (b *browser) await(what, expression string) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		// The page may be between two documents.
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if is {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s: not so (%v) on the page:\n%s", what, err, eval[string](b, "document.body.innerText"))
		}
	}
}

// awaitText waits until the element has a text.
func (b *browser) awaitText(selector, text string) {
	b.Helper()
	b.await(fmt.Sprintf("%s shows %q", selector, text), fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, text))
}

// click clicks a link or a button with a text, as a person finds it.
func (b *browser) click(within, text string) {
	b.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.textContent.trim().startsWith(%q) && e.checkVisibility())", within+" a, "+within+" button, "+within+" summary", text)
	b.await("there is "+text, find)
	eval[bool](b, "((e) => { e.click ? e.click() : e.dispatchEvent(new MouseEvent('click', {bubbles: true})); return true; })("+find+")")
}

// shot writes a picture of the whole page among the artifacts of the test.
func (b *browser) shot(name string) {
	b.Helper()
	picture := run(b, "take a picture", chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(b.ArtifactDir(), name+".png"), picture, 0o600); err != nil {
		b.Fatal(err)
	}
}

// checkLayout looks for what makes a page hard to use: it is wider than the window, a field has no label, a picture no
// description, two elements have one id, a text is hard to read on its background.
func (b *browser) checkLayout(page string) {
	b.Helper()
	if found := eval[[]string](b, layout); len(found) > 0 {
		b.Errorf("%s: %s", page, strings.Join(found, "\n"))
	}
}

// layout returns a list of what is wrong with the page. The contrast is that of WCAG 2, level AA.
const layout = `(() => {
  const found = [];
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 0) {
    const sticks = [...document.querySelectorAll('body *')].find((e) => {
      if (e.getBoundingClientRect().right <= document.documentElement.clientWidth + 1) return false;
      for (let p = e.parentElement; p; p = p.parentElement) {
        if (p.matches('.t, .scroll, nav, .hidden')) return false;
      }
      return true;
    });
    found.push('the page is ' + wide + ' pixels wider than the window: ' + (sticks ? sticks.outerHTML.slice(0, 300) : ''));
  }
  const ids = new Set();
  for (const e of document.querySelectorAll('[id]')) {
    if (ids.has(e.id)) found.push('two elements have the id ' + e.id);
    ids.add(e.id);
  }
  for (const e of document.querySelectorAll('input:not([type=hidden]), select, textarea')) {
    if (!e.labels.length && !e.getAttribute('aria-label')) found.push('no label: ' + e.outerHTML);
  }
  for (const e of document.querySelectorAll('svg[role=img]')) {
    if (!e.getAttribute('aria-label')) found.push('no description: ' + e.outerHTML.slice(0, 100));
  }
  const parse = (text) => {
    const n = (text.match(/[\d.]+(e-?\d+)?/g) || []).map(Number);
    if (text.startsWith('rgb')) return [n[0] / 255, n[1] / 255, n[2] / 255, n[3] ?? 1];
    if (text.startsWith('color(srgb')) return [n[0], n[1], n[2], n[3] ?? 1];
    return null;
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (e) => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage !== 'none') return null; // stripes of a cell
      const c = parse(style.backgroundColor);
      if (c && c[3] > 0) layers.push(c);
      if (c && c[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [1, 1, 1, 1]);
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest('svg, script, .hidden') || !e.checkVisibility()) continue;
    const style = getComputedStyle(e), ground = background(e), ink = parse(style.color);
    if (!ground || !ink) continue;
    const [a, b] = [luminance(over(ink, ground)), luminance(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    const key = style.color + ground + large;
    if (ratio < (large ? 3 : 4.5) && !seen.has(key)) {
      seen.add(key);
      found.push('contrast ' + ratio.toFixed(2) + ' of "' + walker.currentNode.data.trim().slice(0, 40) + '" (' + style.color + ')');
    }
  }
  return found;
})()`
