package records

import (
	"strings"
	"testing"
)

// An object is in a cell as in JSON, whatever its values are, and nothing if it is NULL.
func TestObjectsInCells(t *testing.T) {
	t.Parallel()
	type record struct {
		Queues   map[string]int    `json:"queues"`
		Labels   map[string]string `json:"labels"`
		Priority *int              `json:"priority"`
	}
	list := []record{{}, {map[string]int{"3": 16, "11": 16}, map[string]string{"zone": "b"}, nil}, {map[string]int{}, nil, new(7)}}
	var b strings.Builder
	if err := WriteCSV(&b, list, true); err != nil {
		t.Fatal(err)
	}
	const want = "queues,labels,priority\n,,\n" + `"{""11"":16,""3"":16}","{""zone"":""b""}",` + "\n{},,7\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
