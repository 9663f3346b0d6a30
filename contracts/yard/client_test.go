package yard_test

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// What a malformed URL logs in with is in no error: programs print these.
func TestAMalformedURLIsToldWithoutItsPassword(t *testing.T) {
	for _, url := range []string{"nats://user:s3cret%zz@127.0.0.1:4222", "nats://user:s3cret/x@127.0.0.1:4222", "nats://user:s3cret:@:x"} {
		_, err := yard.Connect(url, "shop")
		if fault.CodeOf(err) != fault.InvalidArgument || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v", err)
		}
	}
}
