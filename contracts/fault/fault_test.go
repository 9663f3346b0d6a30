package fault

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

func TestEveryCodeSurvivesTheWire(t *testing.T) {
	for code := range codes {
		want := &Error{
			Code: code, Message: "what happened", Path: "/tasks/3/type",
			Detail: map[string]string{"token": "abc"}, RetryAfter: 1500 * time.Millisecond,
		}
		got := Decode(Encode(want))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", code, got, want)
		}
	}
}

// What a caller sent may be quoted, so it is cut: the answer must fit into a message.
func TestLongTextIsCut(t *testing.T) {
	long := "ä" + strings.Repeat("<ä", 1<<20)
	code, description, body := Encode(At(InvalidArgument, "/"+long, "unknown field %s", long))
	if len(description)+len(body) > 64<<10 {
		t.Errorf("%d bytes of headers, %d of body", len(description), len(body))
	}
	got := Decode(code, description, body)
	if got.Code != InvalidArgument || !utf8.ValidString(got.Message) || !utf8.ValidString(got.Path) ||
		!strings.HasPrefix("/"+long, strings.TrimSuffix(got.Path, "…")) || got.Message != description {
		t.Errorf("%.80v", got)
	}
}

func TestDecodeWithoutBodyKeepsCodeAndText(t *testing.T) {
	got := Decode("STALE", "attempt 2 is current", nil)
	if got.Code != Stale || got.Message != "attempt 2 is current" {
		t.Errorf("got %+v", got)
	}
	if Decode("", "", []byte(`{}`)) != nil {
		t.Error("an answer without a code is not an error")
	}
}

func TestUnknownCodeOfANewerServerBecomesInternal(t *testing.T) {
	got := Decode("FROM_THE_FUTURE", "x", nil)
	if got.Code != Internal || got.Message != "FROM_THE_FUTURE: x" {
		t.Errorf("got %+v", got)
	}
}

func TestFromUnwraps(t *testing.T) {
	e := At(NotFound, "/domain", "no domain %q", "shop")
	checktest.Equal(t, "result", From(fmt.Errorf("submit: %w", e)), e)
	if !errors.Is(fmt.Errorf("x: %w", e), &Error{Code: NotFound}) {
		t.Error("errors.Is does not match by code")
	}
	checktest.Equal(t, "result", CodeOf(errors.New("disk")), Internal)
}
