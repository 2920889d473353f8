package config

import (
	"testing"
	"time"
)

func TestItemRetention(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "item_retention: 240h\n": 240 * time.Hour} {
		f, err := Load(write(t, text+minimal), nil)
		if err != nil || f.ItemRetention != want {
			t.Errorf("%q: %s, %v; want %s", text, f.ItemRetention, err, want)
		}
	}
	f, err := Load(write(t, "item_retention: 240h\n"+minimal), flagSet(t, "item-retention", "48h"))
	if err != nil || f.ItemRetention != 48*time.Hour {
		t.Errorf("with a flag: %s, %v; want 48h", f.ItemRetention, err)
	}
	for _, value := range []string{"0s", "-1h", "30", "30d", "forever"} {
		path := write(t, "item_retention: "+value+"\n"+minimal)
		_, err := Load(path, nil)
		wantLines(t, err, path+":1: item_retention ("+value+"): must be a positive duration with its unit, such as 720h")
	}
}
