package config

import "testing"

func TestWitnessDir(t *testing.T) {
	f, err := Load(write(t, "witness_dir: /run/rota\n"+minimal), nil)
	if err != nil || f.WitnessDir != "/run/rota" {
		t.Errorf("%+v, %v", f, err)
	}
	f, err = Load(write(t, "witness_dir: /run/rota\n"+minimal), flagSet(t, "witness-dir", "/dev/shm/rota"))
	if err != nil || f.WitnessDir != "/dev/shm/rota" {
		t.Errorf("with a flag: %+v, %v", f, err)
	}
	path := write(t, "witness_dir: run/rota\n"+minimal)
	_, err = Load(path, nil)
	wantLines(t, err, path+":1: witness_dir (run/rota): must be an absolute path, such as /run/rota")
}
