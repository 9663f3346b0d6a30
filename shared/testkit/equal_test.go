package testkit_test

import (
	"errors"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Most tests compare by these: what they take for equal is what == and the slices package do.
func TestEqual(t *testing.T) {
	one, other := &struct{ n int }{1}, &struct{ n int }{1}
	for name, c := range map[string]struct {
		got, want any
		equal     bool
	}{
		"numbers":              {1, 1, true},
		"other numbers":        {1, 2, false},
		"other types":          {1, int64(1), false},
		"slices":               {[]int{1, 2}, []int{1, 2}, true},
		"another order":        {[]int{1, 2}, []int{2, 1}, false},
		"a shorter one":        {[]int{1}, []int{1, 2}, false},
		"nothing":              {[]int(nil), []int{}, true},
		"a pointer":            {one, one, true},
		"to what is equal":     {one, other, false},
		"slices of pointers":   {[]any{one}, []any{other}, false},
		"maps":                 {map[string]int{"a": 1}, map[string]int{"a": 1}, true},
		"other maps":           {map[string]int{"a": 1}, map[string]int{"a": 2}, false},
		"nil":                  {nil, nil, true},
		"nil and an error":     {nil, errors.ErrUnsupported, false},
		"slices within slices": {[]any{[]int{1}, true}, []any{[]int{1}, true}, true},
	} {
		r := &recorder{TB: t}
		testkit.Equal(r, name, c.got, c.want)
		if r.failed == c.equal {
			t.Errorf("%s: failed %v", name, r.failed)
		}
		if !c.equal {
			expectFatal(t, func(tb testing.TB) { testkit.MustEqual(tb, name, c.got, c.want) })
		}
	}
	expectFatal(t, func(tb testing.TB) { testkit.NoError(tb, testkit.Err(1, errors.ErrUnsupported)) })
	if len(testkit.Encoded(t, &rpcv1.Freed{Domain: "d"})) != 3 {
		t.Error("a message is encoded in another way")
	}
}
