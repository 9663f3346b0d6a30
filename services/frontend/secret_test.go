package frontend

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// R6: a made-up token that names a position far ahead opened history's window. It
// is now answered as an unknown task is, and nothing is appended for it.
func TestMadeUpTokensStoreNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := ids.NewTaskID(farPast, 0, 1)
	far := ids.Token{Position: ids.NewPosition(1<<40, ids.LaneFirst), Version: 1, Nonce: 1}
	tokens := map[string]string{
		"of another cluster": ids.NewTokens([ids.TokenSecretBytes]byte{}).Print(id, far),
		"of another task":    s.tokens.Print(ids.NewTaskID(farPast, 0, 2), far),
		"of no one":          strings.Repeat("0", ids.TokenChars),
	}
	unknown := &yardv1.OutcomeResponse{} // an id of no partition: known to be of no task
	none := ids.NewTaskID(farPast, partitioning.History, 1)
	s.must(topology.API("shop", "tasks.complete"), &yardv1.CompleteRequest{
		Tasks: []*yardv1.Completion{{TaskId: none.String(), Token: s.tokens.Print(none, far)}},
	}, unknown)
	for whose, token := range tokens {
		for verb, req := range map[string]codec.Message{
			"tasks.complete":  &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{TaskId: id.String(), Token: token}}},
			"tasks.fail":      &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: id.String(), Token: token}}},
			"tasks.heartbeat": &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{TaskId: id.String(), Token: token}}},
		} {
			resp := &yardv1.OutcomeResponse{}
			s.must(topology.API("shop", verb), req, resp)
			if v := resp.Verdicts[0]; v.Code != "NOT_FOUND" || v.Message != unknown.Verdicts[0].Message {
				t.Errorf("%s, a token %s: %v", verb, whose, v)
			}
		}
	}
	testkit.Equal(t, "messages were stored", s.stored(), 0)
}

// A frontend that cannot check tokens serves no one.
func TestNoSecretNoStart(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	config, err := s.js.KeyValue(t.Context(), topology.ConfigBucket)
	testkit.NoError(t, err)
	testkit.NoError(t, config.Delete(t.Context(), topology.TokenSecretKey))
	second, err := New(Deps{Env: process.Env{NATS: s.server.Connect(t), Partitioning: partitioning, Node: "n2"}, Config: DefaultConfig()})
	testkit.NoError(t, err)
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("it ended with %v", err)
	}
}
