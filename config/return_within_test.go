package config

import (
	"strings"
	"testing"
	"time"
)

func TestReturnWithin(t *testing.T) {
	f, err := Load(write(t, "name: web-0\nreturn_within: 30s\n"+minimal), nil)
	if err != nil || f.Name != "web-0" || f.ReturnWithin != 30*time.Second {
		t.Errorf("%+v, %v", f, err)
	}
	t.Setenv("ROTA_NAME", "web-1")
	f, err = Load(write(t, "return_within: 30s\n"+minimal), nil)
	if err != nil || f.Name != "web-1" {
		t.Errorf("with a name of the environment: %+v, %v", f, err)
	}
	t.Setenv("ROTA_NAME", "")
	for text, want := range map[string]string{
		"return_within: 30s":                "return_within (30s): needs name, by which the worker is known when it returns",
		"name: a\nreturn_within: 2h":        "return_within (2h): must be a positive duration of at most 1h with its unit, such as 30s",
		"name: a\nreturn_within: 30":        "return_within (30): must be a positive duration of at most 1h with its unit, such as 30s",
		"name: a\nreturn_within: -1s":       "return_within (-1s): must be a positive duration of at most 1h with its unit, such as 30s",
		"name: " + strings.Repeat("x", 101): "name (" + strings.Repeat("x", 101) + "): must have at most 100 bytes, and no control characters",
	} {
		path := write(t, text+"\n"+minimal)
		_, err := Load(path, nil)
		line := "1"
		if strings.Contains(text, "\n") {
			line = "2"
		}
		wantLines(t, err, path+":"+line+": "+want)
	}
}
