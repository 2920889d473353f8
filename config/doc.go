// Package config reads rota.yaml, the environment and the command line into
// plain structs for package main. It decides nothing about the roster.
//
// A value comes from the first of: the flag, ROTA_* in the environment, the
// file, the default of the package that uses it. viper (github.com/spf13/viper)
// keeps that order for the few scalars. The tasks are read from the YAML nodes
// themselves: viper lower-cases keys, and a task type is spelt as its owner
// spelt it; nodes also know their line, so that every complaint names it.
// Decoding into tagged structs was rejected, because yaml reads "2" as a
// duration of two nanoseconds and reports types rather than rules.
package config
