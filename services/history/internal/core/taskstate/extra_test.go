package taskstate

import "testing"

func TestHasHeaders(t *testing.T) {
	with := &Task{Extra: &Extra{Headers: []Header{{"a", "1"}, {"b", ""}, {"c", "3"}}}}
	for _, c := range []struct {
		of   *Task
		want map[string]string
		has  bool
	}{
		{new(Task), nil, true},
		{new(Task), map[string]string{"a": ""}, false},
		{with, nil, true},
		{with, map[string]string{"a": "1", "c": "3"}, true},
		{with, map[string]string{"b": ""}, true},
		{with, map[string]string{"a": "1", "c": "4"}, false},
		{with, map[string]string{"a": "1", "d": ""}, false},
		{with, map[string]string{"A": "1"}, false},
	} {
		if got := c.of.HasHeaders(c.want); got != c.has {
			t.Errorf("%v: %v", c.want, got)
		}
	}
	if more := with.Footprint() - new(Task).Footprint(); more <= len("a1bc3") {
		t.Errorf("headers count as %d bytes", more)
	}
}
