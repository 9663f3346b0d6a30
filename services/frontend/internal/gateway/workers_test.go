package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// workersOf has the owners of partitions tell of workers, at most two on a page.
func workersOf(parts ...[]*yardv1.LiveWorker) func(*Deps) {
	return func(d *Deps) {
		d.Owners.HistoryWorkers = func(_ context.Context, p int, req *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error) {
			if req.Domain != "shop" {
				return nil, fault.New(fault.Internal, "asked for %s", req.Domain)
			}
			out := &rpcv1.ListWorkersResponse{KnownForMs: int64(1000 * (1 + p))}
			for _, w := range parts[p] {
				switch {
				case w.WorkerId <= req.After:
				case len(out.Workers) == min(2, int(req.Limit)):
					out.More = true
				default:
					out.Workers = append(out.Workers, w.CloneVT())
				}
			}
			return out, nil
		}
	}
}

// TestWorkersOfAllPartitionsAreJoined: each once, with what it runs anywhere, page by page, though one owner has not heard all.
func TestWorkersOfAllPartitionsAreJoined(t *testing.T) {
	one := func(id string, ago, attempts int64, runs ...int64) *yardv1.LiveWorker {
		w := &yardv1.LiveWorker{WorkerId: id, HeardAgoMs: ago, AttemptsCount: attempts}
		for _, ms := range runs {
			w.Attempts = append(w.Attempts, &yardv1.LiveAttempt{TaskId: fmt.Sprint(id, ms), RunningForMs: ms})
		}
		return w
	}
	synctest.Test(t, func(t *testing.T) {
		many := []int64{20, 19, 18, 17, 16, 15, 14, 13, 12, 11}
		r := newRig(t, workersOf(
			[]*yardv1.LiveWorker{one("a", 30, 2, 9, 5), one("b", 10, 0), one("d", 1, 10, many...)},
			[]*yardv1.LiveWorker{one("a", 20, 1, 7), one("c", 5, 0), one("d", 2, 30, 30)},
			[]*yardv1.LiveWorker{one("b", 5, 1, 1)},
		))
		var got []string
		for cursor, pages := "", 1; ; pages++ {
			page := answerOf[*yardv1.ListWorkersResponse](t, r, "shop", true, r.ListWorkers, &yardv1.ListWorkersRequest{Cursor: cursor})
			testkit.Equal(t, "known for ms", page.KnownForMs, 1000)
			for _, w := range page.Workers {
				var runs []string
				for _, a := range w.Attempts {
					runs = append(runs, fmt.Sprint(a.RunningForMs))
				}
				got = append(got, fmt.Sprint(w.WorkerId, " ", w.HeardAgoMs, " ", w.AttemptsCount, " ", strings.Join(runs, ",")))
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
			if pages > 4 {
				t.Fatal("it does not end")
			}
		}
		want := []string{"a 20 3 9,7,5", "b 5 1 1", "c 5 0 ", "d 1 40 30,20,19,18,17,16,15,14,13,12"}
		expected := strings.Join(want, "; ")
		testkit.Equal(t, "got", strings.Join(got, "; "), expected)
	})
}

// TestPollsOfSilentWorkersEnd that no owner has; the others are matching's. Those of another worker, and of another domain, stay.
func TestPollsOfSilentWorkersEnd(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		silent := func(domain, id string) {
			t.Helper()
			data, err := proto.Marshal(&rpcv1.Silent{Workers: []*rpcv1.SilentWorker{{Domain: domain, WorkerId: id}}})
			testkit.NoError(t, err)
			r.TakeSilent(data)
		}
		clear(r.Gateway.Polls.Epochs)
		waiting := r.pollOfWorker(workerOne, 20*time.Second)
		r.TakeSilent([]byte("no message"))
		silent("shop", "")
		silent("other", workerOne)
		silent("shop", workerTwo)
		synctest.Wait()
		if len(waiting) != 0 || r.kept() != 1 {
			t.Fatalf("%d are answered, %d kept", len(waiting), r.kept())
		}
		silent("shop", workerOne)
		if o := <-waiting; o.err != nil || len(o.resp.(*yardv1.PollResponse).Tasks) != 0 {
			t.Errorf("answered %+v", o)
		}
		testkit.Equal(t, "are kept", r.kept(), 0)
		r.opened(rigEpoch)
		r.pollOfWorker(workerOne, time.Minute)
		silent("shop", workerOne)
		testkit.Equal(t, "are kept of those that matching has", r.kept(), 1)
	})
}
