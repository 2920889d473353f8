package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
)

// choice says which mutants are tried.
type choice struct {
	words  []string // in the name, any one of them; none: all
	cover  string   // a profile of go test -coverprofile: the change is within what it has run; "" for all
	sample int      // how many are drawn; 0 for all
	seed   uint64   // of the draw
}

// choose returns the mutants that are tried. Those of a sample stand in the order of a hash of their names: its beginning
// is a sample, too, and another mutant in the source changes little.
func (c choice) choose(source *module) (list []mutant, err error) {
	var run covered
	if c.cover != "" {
		if run, err = readCover(c.cover); err != nil {
			return nil, err
		}
	}
	for _, m := range mutants {
		if !m.named(c.words) {
			continue
		}
		if c.cover != "" {
			p, err := source.find(m)
			if err != nil {
				return nil, err
			}
			if !run.has(p) {
				continue
			}
		}
		list = append(list, m)
	}
	if c.sample > 0 {
		fmt.Printf("a sample of %d mutants\n", len(list))
		slices.SortFunc(list, func(a, b mutant) int { return cmp.Compare(c.rank(a), c.rank(b)) })
		list = list[:min(c.sample, len(list))]
	}
	return list, nil
}

// rank is the place of a mutant in the draw.
func (c choice) rank(m mutant) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(c.seed, m.name()))))
}

// covered are the blocks of statements that tests have run.
type covered []block

// block is a part of a file, whose name ends like that of the file on disk.
type block struct {
	file        string // within the module
	first, last position
}

type position struct{ line, column int }

func (p position) before(q position) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// readCover reads a profile. Of a block that several tests have run it has several lines.
func readCover(path string) (run covered, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ".go:")
		name, inModule := strings.CutPrefix(name, modulePath)
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.first.line, &b.first.column, &b.last.line, &b.last.column,
			&statements, &count); err != nil || !inModule || count == 0 {
			continue // the first line says the mode
		}
		b.file = name + ".go"
		run = append(run, b)
	}
	if len(run) == 0 {
		return nil, fmt.Errorf("cover profile %s: no block of this module was run", path)
	}
	return run, nil
}

const modulePath = "github.com/dutyrota/rota/"

// has reports whether the place is in a block that was run. A variable of a package is in none.
func (run covered) has(p place) bool {
	at := positionOf(p.text, p.start)
	for _, b := range run {
		if strings.HasSuffix(p.file, "/"+b.file) && !at.before(b.first) && !b.last.before(at) {
			return true
		}
	}
	return false
}

// positionOf returns where an offset of a text is. Lines and columns begin with 1.
func positionOf(text string, offset int) position {
	before := text[:offset]
	return position{1 + strings.Count(before, "\n"), offset - strings.LastIndex(before, "\n")}
}
