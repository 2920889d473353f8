package config

import (
	"testing"
	"time"
)

func TestPool(t *testing.T) {
	for name, test := range map[string]struct {
		keys, env string
		flag      string
		conns     int
		idle      time.Duration
	}{
		"defaults":                {},
		"file":                    {keys: "idle_dealer_conns: 3\nidle_tx_timeout: 90s\n", conns: 3, idle: 90 * time.Second},
		"no limit":                {keys: "idle_tx_timeout: none\n", idle: -1},
		"environment before file": {keys: "idle_tx_timeout: 90s\n", env: "2m", idle: 2 * time.Minute},
		"flag before environment": {keys: "idle_tx_timeout: 90s\n", env: "2m", flag: "3m", idle: 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if test.env != "" {
				t.Setenv("ROTA_IDLE_TX_TIMEOUT", test.env)
			}
			f, err := Load(write(t, test.keys+minimal), flagSet(t, "idle-tx-timeout", test.flag))
			if err != nil || f.IdleDealerConns != test.conns || f.IdleTxTimeout != test.idle {
				t.Errorf("got %+v, %v; want %d connections and %s", f, err, test.conns, test.idle)
			}
		})
	}
}

func TestBadPool(t *testing.T) {
	const conns, idle = "must be a whole number of at least 1", "must be none or a duration with its unit, such as 90s or 5m, of at most 24h"
	for _, value := range []string{"0", "-1", "many", "1.5"} {
		path := write(t, "idle_dealer_conns: "+value+"\n"+minimal)
		_, err := Load(path, nil)
		wantLines(t, err, path+":1: idle_dealer_conns ("+value+"): "+conns)
	}
	for _, value := range []string{"0s", "-1s", "60", "25h", "never"} {
		path := write(t, "idle_tx_timeout: "+value+"\n"+minimal)
		_, err := Load(path, nil)
		wantLines(t, err, path+":1: idle_tx_timeout ("+value+"): "+idle)
	}
	_, err := Load(write(t, minimal), flagSet(t, "idle-tx-timeout", "soon"))
	wantLines(t, err, "--idle-tx-timeout (soon): "+idle)
}
