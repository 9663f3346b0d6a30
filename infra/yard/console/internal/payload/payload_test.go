package payload_test

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/payload"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// bytesShown is how much of a payload is shown.
const bytesShown = 16 << 10

// TestADeepPayloadIsShownAsItIs: indented, each of its lines would be as long as it is deep.
func TestADeepPayloadIsShownAsItIs(t *testing.T) {
	show := func(text string) *payload.Shown { return payload.Of(&yardv1.Payload{Data: []byte(text)}) }
	deep := strings.Repeat("[", 1000) + strings.Repeat("1,", 1000) + "1" + strings.Repeat("]", 1000)
	testkit.Equal(t, "deep", show(deep).Text, deep)
	testkit.Equal(t, "flat", show(`{"a":[1]}`).Text, "{\n  \"a\": [\n    1\n  ]\n}")
	long := show("[" + strings.Repeat("1,", bytesShown) + "1]")
	testkit.Equal(t, "what is shown of a long one", len(long.Text), bytesShown)
	testkit.Equal(t, "it is cut", long.Cut, true)
}
