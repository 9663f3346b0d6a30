package pages

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestADeepPayloadIsShownAsItIs: indented, each of its lines would be as long as it is deep.
func TestADeepPayloadIsShownAsItIs(t *testing.T) {
	show := func(text string) *shown { return payload(&yardv1.Payload{Data: []byte(text)}) }
	deep := strings.Repeat("[", 1000) + strings.Repeat("1,", 1000) + "1" + strings.Repeat("]", 1000)
	testkit.Equal(t, "deep", show(deep).Text, deep)
	testkit.Equal(t, "flat", show(`{"a":[1]}`).Text, "{\n  \"a\": [\n    1\n  ]\n}")
	long := show("[" + strings.Repeat("1,", payloadShown) + "1]")
	testkit.Equal(t, "what is shown of a long one", len(long.Text), payloadShown)
	testkit.Equal(t, "it is cut", long.Cut, true)
}

// TestAUserHasSoManyPagesOpen, and leaves room for others.
func TestAUserHasSoManyPagesOpen(t *testing.T) {
	p := &Pages{open: map[string]int{}}
	for range openMax {
		testkit.Equal(t, "room", p.enter("ann"), true)
	}
	testkit.Equal(t, "one more", p.enter("ann"), false)
	testkit.Equal(t, "another user", p.enter("bob"), true)
	p.leave("ann")
	testkit.Equal(t, "after one is closed", p.enter("ann"), true)
}
