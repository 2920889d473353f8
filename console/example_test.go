package console_test

import (
	"net/http"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
)

// userOf stands for the sign-in that the program has already.
func userOf(*http.Request) (string, error) { return "ann", nil }

// A program mounts the console below a path of its own, and says who may do what.
func ExampleHandler() {
	mux := http.NewServeMux()
	mount := func(c *center.Center) error {
		h, err := console.Handler(c, console.Options{Access: func(r *http.Request) (console.Actor, error) {
			user, err := userOf(r)
			return console.Actor{Name: user, May: func(right console.Right, taskType string) bool {
				return right == console.Look || taskType == "settle"
			}}, err
		}})
		if err != nil {
			return err
		}
		mux.Handle("/rota/", http.StripPrefix("/rota", h))
		return nil
	}
	_ = mount
}
