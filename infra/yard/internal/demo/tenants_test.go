package demo

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// beats makes the tasks of n beats of all kinds.
func beats(seed uint64, n int, scale float64) (made []yard.Task) {
	for _, tenant := range makeTenants(bankOf(seed)) {
		for i, k := range tenant.kinds {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range n {
				made = append(made, k.burst(r, scale)...)
			}
		}
	}
	return made
}

func TestSeedRepeatsTheTasks(t *testing.T) {
	if !reflect.DeepEqual(beats(7, 5, 1), beats(7, 5, 1)) {
		t.Error("one seed gives two different lists of tasks")
	}
	if reflect.DeepEqual(beats(7, 5, 1), beats(8, 5, 1)) {
		t.Error("two seeds give the same tasks")
	}
}

func TestTasksAreWhatTheTenantsAreAbout(t *testing.T) {
	byType, dead, broken := map[string]int{}, 0, 0
	for _, task := range beats(1, 100, 1) {
		byType[task.Type]++
		if (task.Delay > 0) != (task.Type == "email.followup") {
			t.Errorf("a task of type %s is delayed by %v", task.Type, task.Delay)
		}
		if p, ok := task.Payload.(payout); ok && strings.HasPrefix(p.Account, closedPrefix) {
			dead++
		}
		if u, ok := task.Payload.(upload); ok && u.Bytes > 0 {
			broken++
		}
		if encoded, err := json.Marshal(task.Payload); err != nil || len(encoded) > 8<<10 {
			t.Fatalf("payload of %d bytes, %v", len(encoded), err)
		}
	}
	for _, tenant := range makeTenants(bankOf(1)) {
		for _, k := range tenant.kinds {
			if byType[k.Name] == 0 {
				t.Errorf("no task of type %s", k.Name)
			}
		}
	}
	if dead == 0 || broken == 0 {
		t.Errorf("%d payouts to closed accounts, %d broken uploads", dead, broken)
	}
}

func TestScaleIsRightOnTheAverage(t *testing.T) {
	small, normal := len(beats(3, 400, 0.05)), len(beats(3, 400, 1))
	if small < normal/30 || small > normal/13 {
		t.Errorf("a twentieth of %d tasks is %d", normal, small)
	}
	payouts := makeTenants(bankOf(1))[2].kinds[0]
	if n := len(payouts.burst(rand.New(rand.NewPCG(1, 1)), 50)); n > 80 {
		t.Errorf("%d payouts at once: their number must not follow the scale forever", n)
	}
}

func TestUploadsAreResized(t *testing.T) {
	made, err := resize(t.Context(), upload{Bytes: 1 << 20})
	testkit.NoError(t, err)
	testkit.MustEqual(t, "thumbnails", len(made), 3)
	for i, width := range []int{128, 64, 32} {
		if small := made[i]; small.Width != width || small.Height <= 0 || small.Height >= width || small.Bytes == 0 {
			t.Errorf("thumbnail %d: %+v", width, small)
		}
	}
	if _, err := resize(t.Context(), upload{Bytes: brokenAfter}); !errors.Is(err, errForGood) {
		t.Errorf("an upload that broke off: %v", err)
	}
}
