package stack

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// No password of a URL is printed, whatever is wrong with it.
func TestNoPasswordIsPrinted(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for a Redis that is not there")
	for _, url := range []string{
		"redis://me:s3cret@127.0.0.1:port", "redis://me:s3cret%zz@127.0.0.1:1", "redis://me:s3 cret@127.0.0.1:1", "redis://me:s3/cret@127.0.0.1:1",
		"redis://me:s3cret@127.0.0.1:1/7", "http://me:s3cret@127.0.0.1:1",
	} {
		if _, err := withTables(Services{}, url); err == nil || strings.Contains(err.Error(), "s3") || strings.Contains(err.Error(), "cret") {
			t.Errorf("%v", err)
		}
		if err := reachRedis(t.Context(), url); err == nil || strings.Contains(err.Error(), "s3") || strings.Contains(err.Error(), "cret") {
			t.Errorf("%v", err)
		}
	}
}
