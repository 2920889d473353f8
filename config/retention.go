package config

import (
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/dutyrota/rota/internal/sqldb"
)

// itemRetention returns how long the records of dead items stay, 0 for the default of manager.
func (s *source) itemRetention(v *viper.Viper, flags *pflag.FlagSet) time.Duration {
	text := v.GetString("item_retention")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > sqldb.MaxDuration {
		s.addScalarProblem(flags, "item_retention", text, "must be a positive duration with its unit, such as 720h")
		return 0
	}
	return d
}
