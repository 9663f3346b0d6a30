package yard

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// What a task says of its keys reaches the engine, and what excludes each other is refused before it is sent.
func TestKeysGoIntoARequest(t *testing.T) {
	for name, c := range map[string]struct {
		task Task
		want *yardv1.NewTask
	}{
		"none":     {Task{}, &yardv1.NewTask{}},
		"existing": {Task{Unique: &Unique{Key: "k"}}, &yardv1.NewTask{UniqueKey: "k"}},
		"for":      {Task{Unique: &Unique{Key: "k", For: 1500 * time.Microsecond}}, &yardv1.NewTask{UniqueKey: "k", UniqueForMs: 2}},
		"reject":   {Task{Unique: &Unique{Key: "k", Reject: true}}, &yardv1.NewTask{UniqueKey: "k", OnConflict: yardv1.OnConflict_ON_CONFLICT_REJECT}},
		"replace":  {Task{Unique: &Unique{Key: "k", Replace: true}}, &yardv1.NewTask{UniqueKey: "k", OnConflict: yardv1.OnConflict_ON_CONFLICT_REPLACE}},
		"in order": {Task{OrderKey: "account"}, &yardv1.NewTask{OrderKey: "account"}},
		"blocks": {
			Task{OrderKey: "account", BlocksKey: true},
			&yardv1.NewTask{OrderKey: "account", OrderPolicy: yardv1.OrderPolicy_ORDER_POLICY_BLOCK},
		},
		"both": {
			Task{OrderKey: "account", Unique: &Unique{Key: "k", Replace: true}},
			&yardv1.NewTask{OrderKey: "account", UniqueKey: "k", OnConflict: yardv1.OnConflict_ON_CONFLICT_REPLACE},
		},
	} {
		got := &yardv1.NewTask{}
		checktest.NoError(t, c.task.fill(got))
		got.Payload = nil
		if !proto.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	both := Task{Unique: &Unique{Key: "k", Reject: true, Replace: true}}
	checktest.Code(t, "reject and replace", both.fill(&yardv1.NewTask{}), fault.InvalidArgument)
}

// Each outcome of the API has its own name, the one that JSON has.
func TestOutcomesHaveTheNamesOfTheAPI(t *testing.T) {
	for outcome, want := range map[yardv1.SubmitOutcome]SubmitOutcome{
		yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED:  OutcomeCreated,
		yardv1.SubmitOutcome_SUBMIT_OUTCOME_EXISTING: OutcomeExisting,
		yardv1.SubmitOutcome_SUBMIT_OUTCOME_REJECTED: OutcomeRejected,
		yardv1.SubmitOutcome_SUBMIT_OUTCOME_REPLACED: OutcomeReplaced,
	} {
		if got := SubmitOutcome(outcome.Name()); got != want {
			t.Errorf("%v is %q, want %q", outcome, got, want)
		}
	}
}
