package config

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/dutyrota/rota/center"
)

// returnWithin returns how long other processes leave the queues to the one of this name, 0 for not at all.
func (s *source) returnWithin(v *viper.Viper, flags *pflag.FlagSet) (within time.Duration) {
	text, name := v.GetString("return_within"), v.GetString("name")
	if center.CheckReturn(name, 0) != nil {
		s.addScalarProblem(flags, "name", name, "must have at most 100 bytes, and no control characters")
		return 0
	}
	if text == "" {
		return 0
	}
	within, err := time.ParseDuration(text)
	if err == nil && within <= 0 {
		err = errors.New("not positive")
	}
	switch {
	case err != nil || within > center.MaxReturn:
		s.addScalarProblem(flags, "return_within", text, "must be a positive duration of at most 1h with its unit, such as 30s")
	case name == "":
		s.addScalarProblem(flags, "return_within", text, "needs name, by which the worker is known when it returns")
	}
	return within
}
