package demo

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// beats makes the tasks of n beats of all flows of all tenants.
func beats(t *testing.T, seed uint64, n int, scale float64) map[string][]yard.Task {
	t.Helper()
	shop, err := newShop()
	testkit.NoError(t, err)
	b, err := newBank(seed)
	testkit.NoError(t, err)
	t.Cleanup(func() {
		testkit.Check(t, b.listener.Close())
	})
	made := map[string][]yard.Task{}
	for _, tenant := range []tenant{shop, newMedia(), newPayouts(b)} {
		for i, f := range tenant.flows {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range n {
				made[tenant.domain] = append(made[tenant.domain], f.tasks(r, scale)...)
			}
		}
	}
	return made
}

func TestSeedRepeatsTheTasks(t *testing.T) {
	if !reflect.DeepEqual(beats(t, 7, 5, 1), beats(t, 7, 5, 1)) {
		t.Error("one seed gives two different lists of tasks")
	}
	if reflect.DeepEqual(beats(t, 7, 5, 1), beats(t, 8, 5, 1)) {
		t.Error("two seeds give the same tasks")
	}
}

func TestTasksAreWhatTheTenantsAreAbout(t *testing.T) {
	made := beats(t, 1, 100, 1)
	byType, dead, delayed := map[string]int{}, 0, 0
	for _, tasks := range made {
		for _, task := range tasks {
			byType[task.Type]++
			if task.Delay > 0 {
				delayed++
			}
			if p, ok := task.Payload.(payout); ok && len(p.Account) > len(closedPrefix) && p.Account[:len(closedPrefix)] == closedPrefix {
				dead++
			}
			if encoded, err := json.Marshal(task.Payload); err != nil || len(encoded) > 8<<10 {
				t.Fatalf("payload of %d bytes, %v", len(encoded), err)
			}
		}
	}
	for _, name := range []string{typeReset, typeReceipt, typeFollowUp, typeNewsletter, typeThumbnail, typePayout} {
		if byType[name] == 0 {
			t.Errorf("no task of type %s", name)
		}
	}
	if delayed != byType[typeFollowUp] || dead == 0 {
		t.Errorf("%d delayed of %d follow-ups, %d payouts to closed accounts", delayed, byType[typeFollowUp], dead)
	}
}

func TestScaleIsRightOnTheAverage(t *testing.T) {
	count := func(scale float64) int {
		n := 0
		for _, tasks := range beats(t, 3, 400, scale) {
			n += len(tasks)
		}
		return n
	}
	if small, normal := count(0.05), count(1); small < normal/30 || small > normal/13 {
		t.Errorf("a twentieth of %d tasks is %d", normal, small)
	}
	r := rand.New(rand.NewPCG(1, 1))
	if n := len(settlement(r, 50)); n > settlementSize {
		t.Errorf("%d payouts at once: their number must not follow the scale forever", n)
	}
}
