package admission

import "testing"

// R3: however much one key asks for, others can still enter, and alone it has most of the room (I14).
func TestI14_AKeyLeavesRoomForOthers(t *testing.T) {
	for _, most := range []int{1, 2, 3, 16, 64, 1000} {
		r := New(most)
		flood := 0
		for r.Enter("flood") {
			flood++
		}
		if flood < most*3/4 || most >= 4 && flood != most-most/4 {
			t.Errorf("of %d one key has %d", most, flood)
		}
		if most < 4 {
			continue // there is no quarter to keep free
		}
		for _, key := range []string{"shop", ""} {
			if !r.Enter(key) {
				t.Errorf("of %d there is none for %q", most, key)
			}
		}
		others := 0
		for r.Enter("shop") {
			others++
		}
		if most >= 16 && others != most/few-1 {
			t.Errorf("of %d a key that has few has %d", most, others+1)
		}
		if r.Enter("flood") || r.all > most {
			t.Errorf("%d of %d are under way", r.all, most)
		}
		for range flood {
			r.Leave("flood")
		}
		for range others + 1 {
			r.Leave("shop")
		}
		r.Leave("")
		if r.all != 0 || len(r.of) != 0 {
			t.Errorf("left over: %d, %v", r.all, r.of)
		}
	}
}

// R3: the rule is the same where a caller takes many places at once, such as a request's bytes.
func TestI14_AKeyThatTakesManyPlacesLeavesRoomForOthers(t *testing.T) {
	r := New(160)
	for _, step := range []struct {
		key  string
		n    int
		want bool
	}{
		{"flood", 161, false}, // more than there are
		{"flood", 121, false}, // more than three quarters
		{"flood", 120, true},
		{"flood", 1, false},
		{"flood", 0, true},
		{"shop", 11, false}, // more than few
		{"shop", 10, true},
		{"shop", 1, false},
		{"", 10, true},
	} {
		if got := r.Take(step.key, step.n); got != step.want {
			t.Fatalf("%q takes %d: %v; %v", step.key, step.n, got, r.of)
		}
	}
	r.Give("flood", 100)
	if !r.Take("shop", 30) {
		t.Error("where less than three quarters are taken, anyone may take")
	}
	r.Give("flood", 20)
	r.Give("shop", 40)
	r.Give("", 10)
	if r.all != 0 || len(r.of) != 0 {
		t.Errorf("left over: %d, %v", r.all, r.of)
	}
}
