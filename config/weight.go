package config

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/dutyrota/rota/center"
)

// weight returns the part of the queues that the process gets, nil for the default of manager.
func (s *source) weight(v *viper.Viper, flags *pflag.FlagSet) *int {
	text := v.GetString("weight")
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err == nil {
		err = center.CheckWeight(n)
	}
	if err != nil {
		s.addScalarProblem(flags, "weight", text, fmt.Sprintf("must be a whole number from 0 to %d", center.MaxWeight))
		return nil
	}
	return &n
}
