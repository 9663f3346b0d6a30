package process

import "testing"

// TestMemoryIsGivenBackAtRest: a look that finds a process at work, or one that has little
// more than it kept, gives nothing back.
func TestMemoryIsGivenBackAtRest(t *testing.T) {
	const mib = 1 << 20
	var r rest
	for i, look := range []struct {
		cycles, mibs uint64
		due          bool
		left         uint64 // MiB, after memory was given back
	}{
		{cycles: 1, mibs: 20},
		{cycles: 40, mibs: 400},
		{cycles: 90, mibs: 450},
		{cycles: 91, mibs: 450, due: true, left: 100},
		{cycles: 92, mibs: 101, due: true, left: 60}, // what was let go of at rest
		{cycles: 93, mibs: 60},
		{cycles: 93, mibs: 91},                       // less than 32 MiB more
		{cycles: 94, mibs: 92, due: true, left: 100}, // so much more
		{cycles: 96, mibs: 100},                      // two collections: at work
		{cycles: 97, mibs: 100, due: true, left: 100},
		{cycles: 97, mibs: 149},                       // less than a half more
		{cycles: 98, mibs: 150, due: true, left: 100}, // a half more
		{cycles: 98, mibs: 100, due: true, left: 100},
		{cycles: 98, mibs: 10}, // the runtime gave some back by itself
		{cycles: 98, mibs: 42, due: true, left: 10},
	} {
		if got := r.due(footprint{look.cycles, look.mibs * mib}); got != look.due {
			t.Fatalf("look %d: due %v, want %v", i, got, look.due)
		}
		if look.due {
			r.gave(footprint{look.cycles, look.left * mib})
		}
	}
}

// TestMemoryOfThisProcess: the names of the numbers are those of this runtime.
func TestMemoryOfThisProcess(t *testing.T) {
	if got := memory(); got.resident < 1<<20 || got.resident > 1<<40 {
		t.Errorf("%+v", got)
	}
}
