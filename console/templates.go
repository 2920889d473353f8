package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static/style.css static/console.js static/idiomorph.js static/icon.svg
var staticFiles embed.FS

// templates parses the templates at the first use: every command of the program has this package, and few have pages.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))
})

// functions are what the templates call.
var functions = template.FuncMap{
	"static": func(name string) string { return staticNames[name] },
	"num":    number, "age": human.Age, "when": when, "plural": plural, "add": func(a, b int) int { return a + b },
	"act": newAct, "link": link, "itemID": itemID, "shortName": shortName, "rate": rateText, "lower": strings.ToLower,
	"until": until, "runMark": runMark, "runName": nameOfRun, "took": took, "progress": progress, "eventMark": eventMark,
	"triggerMark": triggerMark, "name": escape.Name, "exactly": exactly,
}

// act is a button that makes a change at once, or asks first.
type act struct {
	Action, Text string
	Values       []formValue
}

// newAct returns a button: newAct("task-pause", "Pause", "task", "settle").
func newAct(action, text string, pairs ...string) act {
	a := act{Action: action, Text: text}
	for i := 0; i+1 < len(pairs); i += 2 {
		a.Values = append(a.Values, exactly(pairs[i], pairs[i+1]))
	}
	return a
}

// link returns the address of a page with its parameters.
func link(page string, pairs ...string) template.URL {
	return template.URL(address(page, pairs...)) //nolint:gosec // address has escaped it
}

// safeHTML marks what a template of ours has written.
func safeHTML(b []byte) template.HTML { return template.HTML(b) } //nolint:gosec // html/template has escaped it

// staticNames are the addresses of the files, which change with their content, so that browsers may keep them.
var staticNames, staticByName = nameStatic()

func nameStatic() (names map[string]string, files map[string][]byte) {
	names, files = map[string]string{}, map[string][]byte{}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, e := range entries {
		content, err := fs.ReadFile(staticFiles, "static/"+e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		name := "static/" + hex.EncodeToString(sum[:6]) + "/" + e.Name()
		names[e.Name()], files[name] = name, content
	}
	return names, files
}

// staticTypes are the types of the files. The table of package mime would add what the host says, and browsers refuse a
// style sheet or a script of another type.
var staticTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml; charset=utf-8",
}

// serveStatic serves the style sheet and the scripts.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	content, ok := staticByName[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", staticTypes[path.Ext(r.URL.Path)])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(content) // the client has gone
}

// number writes a number with separators, and nothing for 0: 48,210.
func number(n any) string {
	v := reflect.ValueOf(n)
	if v.IsZero() {
		return ""
	}
	return human.Number(v.Int())
}

// plural writes a number with its noun.
func plural(n any, one, many string) string { return human.Count(reflect.ValueOf(n).Int(), one, many) }

// when writes a moment in UTC. The script shows its age instead, and the moment when the pointer rests on it.
func when(t any) template.HTML { return moment(t, "ago") }

// until writes a moment that is to come. The script shows how long that takes.
func until(t any) template.HTML { return moment(t, "in") }

func moment(t any, kind string) template.HTML {
	var at time.Time
	switch t := t.(type) {
	case time.Time:
		at = t
	case *time.Time:
		if t != nil {
			at = *t
		}
	}
	if at.IsZero() {
		return ""
	}
	at = at.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-age="%s">%s</time>`, //nolint:gosec // nothing but a time
		at.Format(time.RFC3339Nano), kind, at.Format("2 Jan 15:04:05")))
}

// rateText writes a rate in items per second.
func rateText(perSecond float64) string {
	switch {
	case perSecond == 0:
		return ""
	case perSecond < 10:
		return fmt.Sprintf("%.1f", perSecond)
	}
	return number(int64(math.Round(perSecond)))
}
