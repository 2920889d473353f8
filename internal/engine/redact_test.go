package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/processor"
)

// An error is redacted before its text is cut, as a whole and for each of the items that it names. It is still the error
// that the dealer returned.
func TestErrorsAreRedactedBeforeTheyAreCut(t *testing.T) {
	t.Parallel()
	redact := func(text string) string { return strings.ReplaceAll(text, "secret-token", "***") }
	cause := errors.New(strings.Repeat("x", maxErrorText-5) + " secret-token")
	var f processor.Failures
	f.Add(1, processor.Permanent(cause))
	whole := brief(f.Err(), redact)
	items := namedFailures(whole, 2, redact)
	if len(items) != 1 || !processor.IsPermanent(items[0].Err) || !errors.Is(whole, cause) {
		t.Fatalf("got %v of %v", items, whole)
	}
	for _, err := range []error{whole, items[0].Err} {
		if text := err.Error(); strings.Contains(text, "secr") || len(text) > maxErrorText+50 {
			t.Errorf("%d bytes, which end in %q", len(text), text[len(text)-50:])
		}
	}
}
