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

// What several sources list is joined up to where the first page ends that has more behind it.
func TestPagesAreJoined(t *testing.T) {
	page := func(more bool, all ...int) Page[int] { return Page[int]{all, more} }
	for name, c := range map[string]struct {
		pages []Page[int]
		join  bool
		want  []int
		more  bool
	}{
		"none":                         {nil, false, nil, false},
		"all of all":                   {[]Page[int]{page(false, 1, 4), page(false, 2, 9)}, false, []int{1, 2, 4, 9}, false},
		"one has more":                 {[]Page[int]{page(true, 1, 4), page(false, 2, 9)}, false, []int{1, 2, 4}, true},
		"the first of two that have":   {[]Page[int]{page(true, 1, 8), page(true, 2, 5)}, false, []int{1, 2, 5}, true},
		"one is empty and has no more": {[]Page[int]{page(true, 1), page(false)}, false, []int{1}, true},
		"equal ones stay":              {[]Page[int]{page(false, 1, 3), page(false, 3)}, false, []int{1, 3, 3}, false},
		"or are joined":                {[]Page[int]{page(false, 1, 3), page(false, 3)}, true, []int{1, 3}, false},
	} {
		join := func(a, _ int) int { return a }
		if !c.join {
			join = nil
		}
		all, more := Merge(c.pages, func(a, b int) int { return a - b }, join)
		if !slices.Equal(all, c.want) || more != c.more {
			t.Errorf("%s: %v, more %v", name, all, more)
		}
	}
}
