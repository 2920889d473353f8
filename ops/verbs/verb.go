package verbs

import (
	"cmp"
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// Right is a right that a person needs in order to use a verb.
type Right string

// The rights to change something. None includes the other.
const (
	RightOperate Right = "operate" // what an operator undoes with another verb: pause, resume, drain, acknowledge, submit
	RightChange  Right = "change"  // what has to last: settings, queues, triggers, deletions
)

// Operation is the arguments of a verb. Prepare checks them, reads what they name and returns what would be done. It
// writes nothing. If only values are missing or wrong, and what they are for is found, Prepare returns a change with a
// title and task types together with the error, so that a form can ask for the values.
type Operation interface {
	Prepare(ctx context.Context, c *ops.Client) (*Change, error)
}

// editor is an operation whose form begins with the values in force.
type editor interface {
	Operation
	// Current returns the operation with the values in force for the arguments that it lacks.
	Current(ctx context.Context, c *ops.Client) (Operation, error)
}

// Verb is a thing that an operator can do.
type Verb struct {
	Name    string // "worker drain": the object and what is done to it
	Short   string // a line for a list of verbs
	Effect  string // sentences about what happens to its object: a help has them after the line, a form before a call
	Help    string // what only the help says, after the effect, in lines of at most 80 columns
	Example string // lines of examples of the command
	Right   Right
	Args    []Arg

	// NoPage says why the console has no page for the verb; empty if it has one.
	NoPage string

	args reflect.Type
}

// Word is the last word of the name, such as drain.
func (v *Verb) Word() string { return v.Name[strings.LastIndex(v.Name, " ")+1:] }

// Button is the verb in one word, such as Drain.
func (v *Verb) Button() string { return strings.ToUpper(v.Word()[:1]) + v.Word()[1:] }

// Offers reports whether a form asks for the values of the verb although nothing is missing: they are all optional, or
// begin with the values in force.
func (v *Verb) Offers() bool {
	if v.args.Implements(reflect.TypeFor[editor]()) {
		return true
	}
	offers := false
	for _, a := range v.Args {
		if a.Names != "" && !a.Ask || a.CommandOnly || a.Type.Kind() == reflect.Bool { // a box that is not ticked is a value
			continue
		}
		if a.Required() {
			return false
		}
		offers = true
	}
	return offers
}

// Arg is an argument of a verb.
type Arg struct {
	Name  string // "queue": the flag, and the field of a form
	Place string // "QUEUE", "[ITEM...]": its place in the command line; empty if it is a flag
	Help  string
	Names string // what it names: task, queue, "open run" and so on; empty if it is a value that people enter
	Type  reflect.Type
	Long  bool // a text that may have several lines
	Ask   bool // a form asks for it although it names something, because that may be new

	Key     string   // of a value in a list of values: the words of a command are KEY=VALUE
	Choices []string // the values that it can have, if they are few
	Default string   // if a call does not set it

	// CommandOnly arguments are not in forms, because the call then takes long. FormOnly arguments are not in commands.
	CommandOnly, FormOnly bool

	field []int
}

// Required reports whether a call needs a value.
func (a Arg) Required() bool { return a.Place != "" && a.Place[0] != '[' && a.Key == "" }

// Rest reports whether the argument takes all words from its place on.
func (a Arg) Rest() bool { return strings.Contains(a.Place, "...") }

// verb completes a verb with the arguments that the fields of A describe by their tags: arg is a place in the command
// line, flag a flag, form the name of the field in a form if it is no flag, of what it names, ask that a form asks for
// it nevertheless, choices its values, default its value if a call does not set it, long that the text may have several
// lines, and help a sentence about it. A map has an argument for each setting of a task type.
func verb[A Operation](v Verb) *Verb {
	v.args = reflect.TypeFor[A]()
	for _, field := range reflect.VisibleFields(v.args) {
		tag := field.Tag
		a := Arg{
			Name: tag.Get("flag"), Place: tag.Get("arg"), Help: tag.Get("help"), Names: tag.Get("of"), Type: field.Type,
			Choices: strings.Fields(tag.Get("choices")), Default: tag.Get("default"),
			Long: tag.Get("long") != "", Ask: tag.Get("ask") != "", field: field.Index,
		}
		form := tag.Get("form")
		if a.CommandOnly, a.FormOnly = form == "-", a.Name == "" && a.Place == ""; a.FormOnly && form == "" {
			continue
		}
		a.Name = cmp.Or(a.Name, strings.TrimPrefix(form, "-"), strings.ToLower(a.Place))
		if a.Type.Kind() == reflect.Map {
			v.Args = append(v.Args, settingArgs(a)...)
			continue
		}
		v.Args = append(v.Args, a)
	}
	return &v
}

// settingArgs returns an argument for each setting.
func settingArgs(a Arg) (args []Arg) {
	defaults := map[string]string{}
	for _, r := range (center.Settings{}).Records() {
		defaults[r.Name] = r.Text
	}
	a.Type = reflect.TypeFor[string]()
	for _, row := range center.SettingTable() {
		if a.Key == row.Name { // queues has a row for a number and one for names
			continue
		}
		a.Name, a.Key, a.Help = row.Name, row.Name, strings.ReplaceAll(row.Help, "`", "")
		a.Choices, a.Default = row.Choices(), defaults[row.Name]
		args = append(args, a)
	}
	return args
}

// duration is the type of arguments that are durations.
var duration = reflect.TypeFor[time.Duration]()
