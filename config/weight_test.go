package config

import "testing"

func TestWeight(t *testing.T) {
	weightOf := func(text string) *int {
		t.Helper()
		f, err := Load(write(t, text+minimal), nil)
		if err != nil {
			t.Fatal(err)
		}
		return f.Weight
	}
	if w := weightOf(""); w != nil {
		t.Errorf("without weight: %d", *w)
	}
	for text, want := range map[string]int{"weight: 0\n": 0, "weight: 3\n": 3, "weight: 1000\n": 1000} {
		if w := weightOf(text); w == nil || *w != want {
			t.Errorf("%q: %v, want %d", text, w, want)
		}
	}
	f, err := Load(write(t, "weight: 3\n"+minimal), flagSet(t, "weight", "0"))
	if err != nil || f.Weight == nil || *f.Weight != 0 {
		t.Errorf("with a flag: %v, %v; want 0", f.Weight, err)
	}
	for _, value := range []string{"-1", "1001", "1.5", "heavy"} {
		path := write(t, "weight: "+value+"\n"+minimal)
		_, err := Load(path, nil)
		wantLines(t, err, path+":1: weight ("+value+"): must be a whole number from 0 to 1000")
	}
}
