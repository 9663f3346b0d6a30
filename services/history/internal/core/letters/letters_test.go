package letters

import (
	"fmt"
	"testing"
)

func TestOneSweep(t *testing.T) {
	const now = 1_000_000
	type page struct {
		ended  []int64
		behind uint64
		want   string
	}
	for name, c := range map[string]struct {
		limits Limits
		pages  []page
	}{
		"no limits": {Limits{}, []page{{[]int64{1, 2}, 9, "0 [] false"}}},
		"by number": {Limits{Max: 3}, []page{
			{[]int64{1, 2}, 4, "2 [] true"}, {[]int64{3, 4}, 2, "1 [] false"},
		}},
		"not one too many":      {Limits{Max: 6}, []page{{[]int64{1, 2}, 4, "0 [] false"}}},
		"one too many":          {Limits{Max: 5}, []page{{[]int64{1, 2}, 4, "1 [] false"}}},
		"all are too many":      {Limits{Max: 1}, []page{{[]int64{1, 2}, 0, "1 [] false"}}},
		"others delete, too":    {Limits{Max: 3}, []page{{[]int64{1, 2}, 4, "2 [] true"}, {[]int64{5, 6}, 0, "1 [] false"}}},
		"by age":                {Limits{MaxAgeMS: 1000}, []page{{[]int64{now - 1001, now - 1000, now}, 5, "0 [0] false"}}},
		"all are old":           {Limits{MaxAgeMS: 1000}, []page{{[]int64{1, 2}, 5, "0 [0 1] true"}, {[]int64{now}, 4, "0 [] false"}}},
		"old behind a new one":  {Limits{MaxAgeMS: 1000}, []page{{[]int64{1, now, 2}, 5, "0 [0 2] true"}}},
		"by both":               {Limits{MaxAgeMS: 1000, Max: 4}, []page{{[]int64{now, 2, 3, now}, 1, "1 [1 2] false"}}},
		"the last page":         {Limits{MaxAgeMS: 1000}, []page{{[]int64{1, 2}, 0, "0 [0 1] false"}}},
		"nothing is there":      {Limits{MaxAgeMS: 1000, Max: 1}, []page{{nil, 0, "0 [] false"}}},
		"nothing but a promise": {Limits{MaxAgeMS: 1000, Max: 1}, []page{{nil, 9, "0 [] false"}}},
	} {
		s := NewSweep(c.limits, now)
		for i, p := range c.pages {
			over, old, more := s.Page(p.ended, p.behind)
			if got := fmt.Sprint(over, old, more); got != p.want {
				t.Errorf("%s, page %d: %s, want %s", name, i, got, p.want)
			}
		}
	}
	if !(Limits{}).None() || (Limits{Max: 1}).None() || (Limits{MaxAgeMS: 1}).None() {
		t.Error("none")
	}
}
