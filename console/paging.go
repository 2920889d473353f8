package console

import (
	"html/template"
	"maps"
	"net/url"
	"strconv"
)

// maxPages is how many pages a list of what the database has many of can have: events and runs.
const maxPages = 10

// paging says which page of a list is shown.
type paging struct {
	Page  int // from 1
	query url.Values

	total int  // of the rows
	open  bool // there may be more than total
}

// lastPage is beyond the end of each list. A larger number could make the number of a row overflow.
const lastPage = 1_000_000

// pageOf returns the page of a list that an address asks for.
func pageOf(query url.Values) paging {
	n, err := strconv.Atoi(query.Get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	return paging{Page: min(n, lastPage), query: query}
}

// limit returns how many rows a query must return for the page.
func (p paging) limit() int { return min(p.Page, maxPages) * rowsPerPage }

// cutPage returns the rows of the page, or of the last one if the list has no such page, or has it no more. open says
// that there may be more rows than those.
func cutPage[T any](p *paging, rows []T, open bool) []T {
	p.total, p.open = len(rows), open
	p.Page = max(1, min(p.Page, (len(rows)+rowsPerPage-1)/rowsPerPage))
	first := (p.Page - 1) * rowsPerPage
	return rows[first:min(first+rowsPerPage, len(rows))]
}

// Before and After are the addresses of the pages beside this one; empty if there are none.
func (p paging) Before() template.URL {
	if p.Page == 1 {
		return ""
	}
	return p.address(p.Page - 1)
}

// After is as Before.
func (p paging) After() template.URL {
	if p.Page*rowsPerPage < p.total || p.open && p.Page < maxPages {
		return p.address(p.Page + 1)
	}
	return ""
}

// Shown says which rows are shown, of how many.
func (p paging) Shown() string {
	first, last := (p.Page-1)*rowsPerPage+1, min(p.Page*rowsPerPage, p.total)
	text := number(first) + " to " + number(last)
	if !p.open {
		text += " of " + number(p.total)
	}
	return text
}

func (p paging) address(page int) template.URL {
	return withParameter(p.query, "page", strconv.Itoa(page))
}

// withParameter returns the address of a page with one of its parameters set.
func withParameter(query url.Values, name, value string) template.URL {
	query = maps.Clone(query)
	query.Del("notice")
	query.Set(name, value)
	return template.URL("?" + query.Encode()) //nolint:gosec // Encode has escaped it
}
