package verbs

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// Call is a verb with values for its arguments, as texts of a command line or of a form. Its methods must not be called
// concurrently.
type Call struct {
	Verb *Verb
	args reflect.Value
}

// Call returns a call whose arguments have their defaults.
func (v *Verb) Call() *Call {
	c := &Call{Verb: v, args: reflect.New(v.args).Elem()}
	for _, a := range v.Args {
		if a.Default != "" && a.Key == "" {
			if err := c.Set(a, a.Default); err != nil {
				panic(err) // a default is part of the program
			}
		}
	}
	return c
}

// CallOf returns a call whose arguments are those of an operation of the verb.
func (v *Verb) CallOf(o Operation) *Call { return &Call{Verb: v, args: reflect.ValueOf(o)} }

// Operation returns the arguments of the call.
func (c *Call) Operation() Operation { return c.args.Interface().(Operation) }

// Current fills in the values in force for the arguments that the call lacks, if the form of its verb begins with these
// values.
func (c *Call) Current(ctx context.Context, center *ops.Client) (*Call, error) {
	e, ok := c.Operation().(editor)
	if !ok {
		return c, nil
	}
	o, err := e.Current(ctx, center)
	if err != nil {
		return nil, err
	}
	return c.Verb.CallOf(o), nil
}

// Add adds a value to an argument that is a list, and sets any other.
func (c *Call) Add(a Arg, value string) error {
	if a.Type.Kind() != reflect.Slice {
		return c.Set(a, value)
	}
	return c.Set(a, append(c.Values(a), value)...)
}

// Set sets an argument. Only a list takes several values. The error names the argument, the value and the rule.
func (c *Call) Set(a Arg, values ...string) error {
	field := c.args.FieldByIndex(a.field)
	if a.Key != "" {
		if field.IsNil() {
			field.Set(reflect.ValueOf(map[string]string{}))
		}
		field.SetMapIndex(reflect.ValueOf(a.Key), reflect.ValueOf(strings.Join(values, "")))
		return nil
	}
	if a.Type.Kind() == reflect.Slice {
		field.Set(reflect.ValueOf(values))
		return nil
	}
	for _, text := range values {
		value, err := parse(a, text)
		if err != nil {
			return err
		}
		field.Set(reflect.ValueOf(value))
	}
	return nil
}

// Values returns the value of an argument as texts: each of a list, none of an empty text.
func (c *Call) Values(a Arg) []string {
	value := c.args.FieldByIndex(a.field)
	if a.Key != "" {
		value = reflect.ValueOf(value.Interface().(map[string]string)[a.Key])
	}
	if list, ok := reflect.TypeAssert[[]string](value); ok {
		return list
	}
	if value.IsZero() {
		return nil
	}
	return []string{fmt.Sprint(value.Interface())}
}

// Prepare returns what the call would do.
func (c *Call) Prepare(ctx context.Context, center *ops.Client) (*Change, error) {
	change, err := c.Operation().Prepare(ctx, center)
	if change != nil {
		change.args = c.args.Interface()
	}
	return change, err
}

func parse(a Arg, text string) (value any, err error) {
	name, rule := a.Name, ""
	switch {
	case a.Type == duration:
		value, err = time.ParseDuration(text)
		rule = "a duration, such as 90s, 10m or 24h"
	case a.Type.Kind() == reflect.Int:
		value, err = strconv.Atoi(text)
		rule = "a whole number"
	case a.Type.Kind() == reflect.Bool:
		value, err = strconv.ParseBool(text)
		rule = "true or false"
	default:
		if len(a.Choices) > 0 && text != "" && !slices.Contains(a.Choices, strings.ToUpper(text)) {
			return nil, fmt.Errorf("%s (%s) must be %s", name, text, human.Alternatives(a.Choices))
		}
		return text, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s (%s) must be %s", name, text, rule)
	}
	return value, nil
}
