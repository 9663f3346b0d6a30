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
		marks  uint64
		unsure bool
	}
	for name, c := range map[string]struct {
		limits Limits
		pages  []page
	}{
		"no limits": {Limits{}, []page{{ended: []int64{1, 2}, behind: 9, want: "0 [] false"}}},
		"by number": {Limits{Max: 3}, []page{
			{ended: []int64{1, 2}, behind: 4, want: "2 [] true"}, {ended: []int64{3, 4}, behind: 2, want: "1 [] false"},
		}},
		"not one too many":        {Limits{Max: 6}, []page{{ended: []int64{1, 2}, behind: 4, want: "0 [] false"}}},
		"one too many":            {Limits{Max: 5}, []page{{ended: []int64{1, 2}, behind: 4, want: "1 [] false"}}},
		"one, and it is too many": {Limits{Max: 1}, []page{{ended: []int64{1}, behind: 4, want: "1 [] true"}}},
		"all are too many":        {Limits{Max: 1}, []page{{ended: []int64{1, 2}, behind: 0, want: "1 [] false"}}},
		"others delete, too":      {Limits{Max: 3}, []page{{ended: []int64{1, 2}, behind: 4, want: "2 [] true"}, {ended: []int64{5, 6}, behind: 0, want: "1 [] false"}}},
		"by age":                  {Limits{MaxAgeMS: 1000}, []page{{ended: []int64{now - 1001, now - 1000, now}, behind: 5, want: "0 [0] false"}}},
		"all are old":             {Limits{MaxAgeMS: 1000}, []page{{ended: []int64{1, 2}, behind: 5, want: "0 [0 1] true"}, {ended: []int64{now}, behind: 4, want: "0 [] false"}}},
		"old behind a new one":    {Limits{MaxAgeMS: 1000}, []page{{ended: []int64{1, now, 2}, behind: 5, want: "0 [0 2] true"}}},
		"by both":                 {Limits{MaxAgeMS: 1000, Max: 4}, []page{{ended: []int64{now, 2, 3, now}, behind: 1, want: "1 [1 2] false"}}},
		"the last page":           {Limits{MaxAgeMS: 1000}, []page{{ended: []int64{1, 2}, behind: 0, want: "0 [0 1] false"}}},
		"nothing is there":        {Limits{MaxAgeMS: 1000, Max: 1}, []page{{ended: nil, behind: 0, want: "0 [] false"}}},
		"so many marks":           {Limits{Max: 2}, []page{{ended: []int64{1, 2}, behind: 6, marks: 5, want: "1 [] false"}}},
		"more marks":              {Limits{Max: 2}, []page{{ended: []int64{1, 2}, behind: 6, marks: 9, want: "0 [] false"}}},
		"who knows": {Limits{MaxAgeMS: 1000, Max: 2}, []page{
			{ended: []int64{1, now}, behind: 4, want: "0 [0] false", unsure: true}, {ended: []int64{2}, behind: 0, want: "0 [0] false"},
		}},
		"nothing but a promise": {Limits{MaxAgeMS: 1000, Max: 1}, []page{{ended: nil, behind: 9, want: "0 [] false"}}},
	} {
		s := NewSweep(c.limits, now)
		for i, p := range c.pages {
			over, old, more := s.Page(p.ended, p.behind, p.marks, !p.unsure)
			if got := fmt.Sprint(over, old, more); got != p.want {
				t.Errorf("%s, page %d: %s, want %s", name, i, got, p.want)
			}
		}
	}
	if !(Limits{}).None() || (Limits{Max: 1}).None() || (Limits{MaxAgeMS: 1}).None() {
		t.Error("none")
	}
}
