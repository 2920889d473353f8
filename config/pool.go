package config

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// maxIdleTxTimeout is the bound of center.Options.IdleTxTimeout.
const maxIdleTxTimeout = 24 * time.Hour

// idleDealerConns returns how many idle connections stay open for dealers, 0 for the default of center.
func (s *source) idleDealerConns(v *viper.Viper, flags *pflag.FlagSet) int {
	text := v.GetString("idle_dealer_conns")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		s.addScalarProblem(flags, "idle_dealer_conns", text, "must be a whole number of at least 1")
		return 0
	}
	return n
}

// idleTxTimeout returns how long a fenced transaction may be idle, 0 for the default of center, and a negative duration
// for no limit.
func (s *source) idleTxTimeout(v *viper.Viper, flags *pflag.FlagSet) time.Duration {
	switch text := v.GetString("idle_tx_timeout"); text {
	case "":
		return 0
	case "none":
		return -1
	default:
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > maxIdleTxTimeout {
			s.addScalarProblem(flags, "idle_tx_timeout", text, "must be none or a duration with its unit, such as 90s or 5m, of at most 24h")
			return 0
		}
		return d
	}
}
