package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
)

// serviceFields returns, for each key below "http", a pointer to its field in d.
func serviceFields(d *Service) map[string]any {
	return map[string]any{
		"url": &d.URL, "secret_file": &d.SecretFile, "secret_variable": &d.SecretVariable, "ca_file": &d.CAFile,
		"connections": &d.Connections,
		"each":        &d.Each, "method": &d.Method, "headers": &d.Headers, "body": &d.Body, "permanent": &d.Permanent,
	}
}

// command reads a program and its arguments. No shell divides a text into arguments.
func (s taskSource) command(path string, e entry) []string {
	list := s.texts(path, e.value)
	switch {
	case len(list) == 0 || list[0] == "":
		s.add(e.line, "%s: must name a program, and may have arguments: [python3, settle.py]", path)
	case len(list) == 1 && strings.ContainsAny(list[0], " \t"):
		s.add(e.line, "%s (%s): must be a list, because no shell divides it: [%s]", path, list[0],
			strings.Join(strings.Fields(list[0]), ", "))
	}
	return list
}

// env reads the names of variables.
func (s taskSource) env(path string, e entry) []string {
	list := s.texts(path, e.value)
	for _, name := range list {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			s.add(e.line, "%s (%s): must be names of variables without their values, such as [SHOP, AWS_REGION]", path, name)
		case strings.HasPrefix(name, "ROTA_"):
			s.add(e.line, "%s (%s): is the worker's own: give the program a variable of another name", path, name)
		}
	}
	return list
}

// service reads the URL of a service, or a mapping with url and more. Its errors do not print the URL, which may have a
// password.
func (s taskSource) service(path string, e entry, to *Service) {
	var connections *entry
	if e.value.Kind != yaml.MappingNode {
		to.URL, _ = s.text(path, e.value)
	} else {
		connections = find(s.fields(path, e.value, serviceFields(to)), "connections")
	}
	ofEach := to.Method != "" || to.Headers != nil || to.Body != "" || to.Permanent != nil
	switch {
	case to.URL == "":
		s.add(e.line, "%s: must be the URL of a service, or have url", path)
	case to.SecretFile != "" && to.SecretVariable != "":
		s.add(e.line, "%s: has both secret_file and secret_variable: keep one", path)
	case connections != nil && !isNull(connections.value) && to.Connections < 1:
		s.add(e.line, "%s.connections (%d): must be at least 1", path, to.Connections)
	case ofEach && !to.Each:
		s.add(e.line, "%s: method, headers, body and permanent need each: true, by which each row is a request", path)
	}
}

// AnswerSelect is the operation with which a program selects its items itself.
const AnswerSelect = "select"

// answers are the operations that a program may answer beside execute.
var answers = []string{AnswerSelect, "discard", "backlog", "peek"}

// CheckAnswers returns the rule that a list of the operations that a program answers breaks.
func CheckAnswers(list []string) error {
	for i, answer := range list {
		switch {
		case !slices.Contains(answers, answer):
			return fmt.Errorf("%s is no operation: it may have %s", answer, strings.Join(answers, ", "))
		case slices.Contains(list[:i], answer):
			return fmt.Errorf("names %s twice", answer)
		}
	}
	return rule(slices.Contains(list, AnswerSelect), "must have select: with sql, the other operations are SQL, too")
}

// checkAnswers checks the entry "answers" of a dealer, when all else of the task is valid.
func (s taskSource) checkAnswers(path string, dealer []entry, t Task) {
	e := find(dealer, "answers")
	if e == nil {
		return
	}
	err := CheckAnswers(t.Program.Answers)
	switch {
	case err != nil:
	case !t.Program.Given():
		err = errors.New("needs command or http, the program that answers")
	case t.Program.HTTP.Each:
		err = errors.New("http sends rows of sql, because it has each: keep one")
	case find(dealer, "sql") != nil:
		err = errors.New("the program selects the items, and so does sql: keep one")
	case t.Settings.Mode == center.ModeRun && len(t.Program.Answers) > 1:
		err = errors.New("mode RUN asks for select alone: a run gives up no item, shows its progress by itself, and has " +
			"no idle queues")
	default:
		return
	}
	s.add(e.line, "%s.answers (%s): %s", path, strings.Join(t.Program.Answers, ", "), err)
}

// Secret reads the secret that signs the requests; empty if the file names none. Its errors continue the path "http".
func (d Service) Secret() (string, error) {
	switch {
	case d.SecretFile != "":
		secret, err := readSecretFile(d.SecretFile, "the secret")
		if err != nil {
			return "", fmt.Errorf(".secret_file (%s): %w", d.SecretFile, err)
		}
		return secret, nil
	case d.SecretVariable != "" && os.Getenv(d.SecretVariable) == "":
		return "", fmt.Errorf(".secret_variable (%s): the environment has no such variable", d.SecretVariable)
	case d.SecretVariable != "":
		secret, err := oneLine(os.Getenv(d.SecretVariable), "the secret")
		if err != nil {
			return "", fmt.Errorf(".secret_variable (%s): %w", d.SecretVariable, err)
		}
		return secret, nil
	}
	return "", nil
}
