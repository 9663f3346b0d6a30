package paging

import (
	"slices"
	"testing"
)

func TestPagesEndWhereTheyAreFull(t *testing.T) {
	const large = 100
	self := func(n int) int { return n }
	for name, c := range map[string]struct {
		items        []int
		limit, bytes int
		want         int
		more         bool
	}{
		"none":              {nil, 3, large, 0, false},
		"all":               {[]int{1, 2, 3}, 3, large, 3, false},
		"by number":         {[]int{1, 2, 3, 4}, 3, large, 3, true},
		"by bytes":          {[]int{40, 40, 40}, 3, large, 2, true},
		"exactly":           {[]int{42, 42}, 3, large, 2, false},
		"a byte more":       {[]int{42, 43}, 3, large, 1, true},
		"one too large":     {[]int{500, 1}, 3, large, 1, true},
		"the overhead, too": {make([]int, 20), 20, large, large / itemOverhead, true},
	} {
		page, more := Cut(c.items, c.limit, c.bytes, self)
		if !slices.Equal(page, c.items[:c.want]) || more != c.more {
			t.Errorf("%s: %d items, more %v", name, len(page), more)
		}
	}
}
