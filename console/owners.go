package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dutyrota/rota/ops"
)

// maxColours is the number of owners that have a colour of their own. With more, only trouble and moves are coloured.
const maxColours = 8

// owner is a server with the letter and the colour that it has on a page.
type owner struct {
	UUID, Name, Letter string
	Colour             int // 1 to 8; 0: no colour of its own
	Queues             int
	Server             *ops.ServerRecord // nil if it is gone
}

// owners are the servers of a task type by uuid.
type owners struct {
	byUUID map[string]*owner
	List   []*owner // in the order of their registration, so that letters do not jump
}

// nameOwners gives the servers of a task type their letters, and the owners that are gone after them.
func nameOwners(servers []ops.ServerRecord, queues []ops.QueueRecord) owners {
	o := owners{byUUID: map[string]*owner{}}
	servers = slices.Clone(servers)
	slices.SortStableFunc(servers, func(a, b ops.ServerRecord) int {
		return cmp.Or(a.RegisterTime.Compare(b.RegisterTime), cmp.Compare(a.UUID, b.UUID))
	})
	for i := range servers {
		o.add(servers[i].UUID).Server = &servers[i]
	}
	for _, q := range queues {
		for _, uuid := range []*string{q.CurServer, q.ReqServer} {
			if uuid != nil {
				o.add(*uuid)
			}
		}
		if q.CurServer != nil {
			o.byUUID[*q.CurServer].Queues++
		}
	}
	for i, owner := range o.List {
		owner.Letter = letter(i)
		if len(o.List) <= maxColours {
			owner.Colour = i + 1
		}
	}
	return o
}

func (o *owners) add(uuid string) *owner {
	if owner, ok := o.byUUID[uuid]; ok {
		return owner
	}
	owner := &owner{UUID: uuid, Name: shortName(uuid)}
	o.byUUID[uuid] = owner
	o.List = append(o.List, owner)
	return owner
}

// Of returns an owner by its uuid, or nil.
func (o owners) Of(uuid *string) *owner {
	if uuid == nil {
		return nil
	}
	return o.byUUID[*uuid]
}

// letter returns A to Z, then AA, AB and so on.
func letter(i int) string {
	text := ""
	for i++; i > 0; i = (i - 1) / 26 {
		text = string(rune('A'+(i-1)%26)) + text
	}
	return text
}

// shortName returns the host and the process of a uuid.
func shortName(uuid any) string {
	switch u := uuid.(type) {
	case string:
		return ops.ServerName(u)
	case *string:
		if u != nil {
			return ops.ServerName(*u)
		}
	}
	return ""
}

// colourClass returns the class of an owner's colour.
func (o *owner) colourClass(prefix string) string {
	if o == nil || o.Colour == 0 {
		return ""
	}
	return prefix + string(rune('0'+o.Colour))
}

// Class returns the class of the owner's colour.
func (o *owner) Class() string { return o.colourClass("o") }

// Silent reports whether the owner has sent no heartbeat for its judge_dead_interval, or is gone.
func (o *owner) Silent() bool { return o.Server == nil || o.Server.Overdue }

// cellOf returns the classes and the description of a queue's cell.
func (o owners) cellOf(q ops.QueueRecord) cell {
	owner, next := o.Of(q.CurServer), o.Of(q.ReqServer)
	c := cell{Queue: q, Owner: owner}
	classes := []string{owner.Class()}
	title := []string{"queue " + q.QueueID + ": " + q.DisplayState()}
	if owner != nil {
		title = append(title, owner.Name)
	}
	switch q.Status {
	case "MOVING":
		classes = append(classes, "moving", next.colourClass("to"))
		if next != nil {
			title = append(title, "moves to "+next.Name)
		}
	case "OVERDUE":
		classes = append(classes, "overdue")
	case "ORPHAN", "UNASSIGNED", "RESERVED":
		classes = append(classes, "orphan")
	}
	c.Class = strings.Join(strings.Fields(strings.Join(classes, " ")), " ")
	c.Title = strings.Join(title, ", ")
	return c
}

// cell is a queue in the strip.
type cell struct {
	Queue        ops.QueueRecord
	Owner        *owner
	Class, Title string
}
