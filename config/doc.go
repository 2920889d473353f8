// Package config reads rota.yaml, the environment and the command line into plain structs for package main. It decides
// nothing about the roster.
//
// A value comes from the first of: the flag, the file that is given with -c, ROTA_* in the environment, the rota.yaml
// that is merely there, the default of the package that uses it. viper (github.com/spf13/viper) keeps that order for
// the keys of the top level that have a single value. Each of them is an entry of the list keys, with its flag's help
// and its rule; a new one is a new entry.
//
// The tasks are read from the YAML nodes, for two reasons. viper lower-cases keys, but a task type keeps its
// spelling. A node has its line, so that each error names it. Decoding into tagged structs, with KnownFields, was
// rejected: yaml reads "2" as a duration of two nanoseconds, and its errors name Go's types and not rules.
package config
