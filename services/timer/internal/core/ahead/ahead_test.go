package ahead

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestTasksAreCountedBySpan, those of the domain alone, and of a tasklist or a type if one is wanted.
func TestTasksAreCountedBySpan(t *testing.T) {
	for name, c := range map[string]struct {
		q     Question
		spans []Span
		kinds string
	}{
		"all by the minute":   {Question{Domain: "a", Until: 1000, Width: 1, Most: 9}, []Span{{1, 1}, {5, 2}, {60, 3}, {180, 1}}, "[{{a x u} 3} {{a x t} 2} {{a y t} 2}]"},
		"by the hour":         {Question{Domain: "a", Until: 1000, Width: 60, Most: 9}, []Span{{0, 3}, {60, 3}, {180, 1}}, "[{{a x u} 3} {{a x t} 2} {{a y t} 2}]"},
		"overdue at a minute": {Question{Domain: "a", Until: 1000, First: 4, Width: 2, Most: 9}, []Span{{4, 3}, {60, 3}, {180, 1}}, "[{{a x u} 3} {{a x t} 2} {{a y t} 2}]"},
		"of a tasklist":       {Question{Domain: "a", Tasklist: "y", Until: 1000, Width: 1, Most: 9}, []Span{{5, 2}}, "[{{a y t} 2}]"},
		"of a type":           {Question{Domain: "a", Type: "t", Until: 1000, Width: 1, Most: 9}, []Span{{1, 1}, {5, 2}, {180, 1}}, "[{{a x t} 2} {{a y t} 2}]"},
		"until a minute":      {Question{Domain: "a", Until: 180, Width: 1, Most: 9}, []Span{{1, 1}, {5, 2}, {60, 3}}, "[{{a x u} 3} {{a y t} 2} {{a x t} 1}]"},
		"from a minute":       {Question{Domain: "a", From: 5, Until: 180, Width: 1, Most: 9}, []Span{{5, 2}, {60, 3}}, "[{{a x u} 3} {{a y t} 2}]"},
		"the first two":       {Question{Domain: "a", Until: 1000, Width: 1, Most: 2}, []Span{{1, 1}, {5, 2}}, "[{{a x u} 3} {{a x t} 2} {{a y t} 2}]"},
		"of another domain":   {Question{Domain: "c", Until: 1000, Width: 1, Most: 2}, nil, "[]"},
	} {
		sums := New(c.q)
		sums.Add(180, Kind{"a", "x", "t"}, 1)
		sums.Add(1, Kind{"a", "x", "t"}, 1)
		sums.Add(5, Kind{"a", "y", "t"}, 2)
		sums.Add(60, Kind{"a", "x", "u"}, 4)
		sums.Add(60, Kind{"a", "x", "u"}, -1)
		sums.Add(60, Kind{"b", "x", "t"}, 1)
		sums.Add(61, Kind{"a", "z", ""}, 1)
		sums.Add(61, Kind{"a", "z", ""}, -1)
		testkit.Equal(t, name, sums.Spans(), c.spans)
		testkit.Equal(t, name+", kinds", fmt.Sprint(sums.Kinds(9)), c.kinds)
		testkit.Equal(t, name+", first kind", len(sums.Kinds(1)), min(1, len(sums.Kinds(9))))
	}
}

// TestEnoughSpans: spans that come later, or have no tasks, do not count.
func TestEnoughSpans(t *testing.T) {
	sums := New(Question{Until: 1000, Width: 10, Most: 2})
	sums.Add(5, Kind{}, 1)
	sums.Add(500, Kind{}, 1)
	sums.Add(15, Kind{}, 1)
	sums.Add(15, Kind{}, -1)
	for bucket, want := range map[int64]bool{9: false, 25: false, 509: false, 510: true} {
		testkit.Equal(t, fmt.Sprint("enough before ", bucket), sums.Enough(bucket), want)
	}
}
