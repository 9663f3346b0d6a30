package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

func (r *rig) pauseList(req *yardv1.PauseRequest) (*yardv1.Pause, error) {
	got, err := asked(r, "shop", true, r.Pause(validate.Tasklist), req)
	resp, _ := got.(*yardv1.PauseResponse)
	return resp.GetPause(), err
}

func (r *rig) pauseType(req *yardv1.PauseRequest) (*yardv1.Pause, error) {
	got, err := asked(r, "shop", true, r.Pause(validate.Type), req)
	resp, _ := got.(*yardv1.PauseResponse)
	return resp.GetPause(), err
}

// R10: a pause shows wherever its tasklist or type does, until it is resumed.
func TestPausesShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slotsOf(&rpcv1.DescribeShardResponse{}, &rpcv1.DescribeShardResponse{}))
		list, err := r.pauseList(&yardv1.PauseRequest{Name: "main", Reason: "down", By: "ann"})
		if err != nil || list.Reason != "down" || list.By != "ann" || list.SinceMs == 0 || list.UntilMs != 0 {
			t.Fatalf("got %v, %v", list, err)
		}
		typ, err := r.pauseType(&yardv1.PauseRequest{Name: "email.send", ForMs: 5000})
		if err != nil || typ.UntilMs != typ.SinceMs+5000 {
			t.Fatalf("got %v, %v", typ, err)
		}
		is := func(what string, got proto.Message, err error, want proto.Message) {
			t.Helper()
			if err != nil || !proto.Equal(got, want) {
				t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
			}
		}
		ask := func(resp any, err error) (proto.Message, error) { m, _ := resp.(proto.Message); return m, err }
		got, err := ask(asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: "main"}))
		is("without settings", got, err, &yardv1.GetTasklistResponse{Tasklist: &yardv1.Tasklist{Name: "main"}, Pause: list})
		got, err = ask(asked(r, "shop", true, r.GetType, &yardv1.GetTypeRequest{Name: "email.send"}))
		is("type without settings", got, err, &yardv1.GetTypeResponse{Type: &yardv1.TaskType{Name: "email.send"}, Pause: typ})
		settings := &yardv1.Tasklist{Name: "main", Priority: 2}
		testkit.NoError(t, testkit.Err(asked(r, "shop", true, r.PutTasklist, &yardv1.PutTasklistRequest{Tasklist: settings})))
		got, err = ask(asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: "main"}))
		is("with settings", got, err, &yardv1.GetTasklistResponse{Tasklist: settings, Pause: list})
		got, err = ask(asked(r, "shop", true, r.DescribeTasklist, &yardv1.DescribeTasklistRequest{Tasklist: "main"}))
		is("describe", got, err, &yardv1.DescribeTasklistResponse{Tasklist: "main", Pause: list, PausedTypes: []string{"email.send"}})
		got, err = ask(asked(r, "shop", true, r.DescribeTasklist, &yardv1.DescribeTasklistRequest{Tasklist: "other"}))
		is("describe another", got, err, &yardv1.DescribeTasklistResponse{Tasklist: "other", PausedTypes: []string{"email.send"}})

		time.Sleep(5 * time.Second)
		wantCode(t, testkit.Err(asked(r, "shop", true, r.GetType, &yardv1.GetTypeRequest{Name: "email.send"})), fault.NotFound)
		got, err = ask(asked(r, "shop", true, r.DescribeTasklist, &yardv1.DescribeTasklistRequest{Tasklist: "other"}))
		is("over", got, err, &yardv1.DescribeTasklistResponse{Tasklist: "other"})
		_, err = asked(r, "shop", true, r.Resume(validate.Type), &yardv1.ResumeRequest{Name: "email.send"})
		if e := faultOf(t, err, fault.NotFound); e.Path != "/name" || !strings.Contains(e.Message, "not paused") {
			t.Errorf("got %v", e)
		}
		if catalog.Pauses.Types.Of(r.catalog.Catalog, "shop", "email.send") != nil {
			t.Error("what is over is still stored")
		}
		got, err = ask(asked(r, "shop", true, r.Resume(validate.Tasklist), &yardv1.ResumeRequest{Name: "main"}))
		is("resumed", got, err, &yardv1.PauseResponse{Pause: list})
		wantCode(t, testkit.Err(asked(r, "shop", true, r.Resume(validate.Tasklist), &yardv1.ResumeRequest{Name: "main"})), fault.NotFound)
		got, err = ask(asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: "main"}))
		is("settings stay", got, err, &yardv1.GetTasklistResponse{Tasklist: settings})
	})
}

// R9, I14: as TestTypesOfADomainAreBounded; records of pauses that are over make room.
func TestPausesOfADomainAreBounded(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		for i := range validate.PausesMax {
			k, name := catalog.Pauses.Tasklists, fmt.Sprint("l", i)
			if i%2 == 0 {
				k, name = catalog.Pauses.Types, fmt.Sprint("t", i)
			}
			stop(t, r.catalog, k, "shop", name, &yardv1.Pause{SinceMs: 1})
		}
		for name, code := range map[string]fault.Code{"l7": "", "new": fault.FailedPrecondition} {
			_, err := r.pauseList(&yardv1.PauseRequest{Name: name})
			wantCode(t, err, code)
		}
		_, err := r.pauseType(&yardv1.PauseRequest{Name: "new"})
		wantAt(t, err, fault.FailedPrecondition, "/name")
		stop(t, r.catalog, catalog.Pauses.Types, "shop", "t8", &yardv1.Pause{SinceMs: 1, UntilMs: 2})
		_, err = r.pauseType(&yardv1.PauseRequest{Name: "new"})
		wantCode(t, err, "")
		testkit.Equal(t, "are stored", catalog.Pauses.Of(r.catalog.Catalog, "shop", 0).Len(), validate.PausesMax)
	})
}

// A pause that somebody else put again meanwhile stays.
func TestAnOvertakenResumeIsRepeated(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		pause := func() { stop(t, r.catalog, catalog.Pauses.Tasklists, "shop", "main", &yardv1.Pause{SinceMs: 1}) }
		pause()
		r.catalog.kv.Meanwhile = pause
		wantCode(t, testkit.Err(asked(r, "shop", true, r.Resume(validate.Tasklist), &yardv1.ResumeRequest{Name: "main"})), fault.Unavailable)
	})
}

// A pause or a drain that meets the deletion of its domain, of which this frontend has not heard, is not of the domain that is created again.
func TestAPauseDoesNotOutliveItsDomain(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		r.catalog.elsewhere(func() {
			testkit.NoError(t, testkit.Err(catalog.DeleteDomain(t.Context(), r.catalog.kv, "shop", 0)))
		})
		pause := &yardv1.PauseRequest{Name: "shop"}
		wantCode(t, testkit.Err(asked(r, topology.ReservedDomain, true, r.Pause(validate.Domain), pause)), fault.NotFound)
		wantCode(t, testkit.Err(asked(r, topology.ReservedDomain, true, r.Drain(validate.Domain), pause)), fault.NotFound)
		testkit.NoError(t, testkit.Err(asked(r, topology.ReservedDomain, true, r.PutDomain, &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: "shop"}})))
		if p, d := catalog.Pauses.Of(r.catalog.Catalog, "shop", 0).Domain, catalog.Drains.Of(r.catalog.Catalog, "shop", 0).Domain; p != nil || d != nil {
			t.Errorf("the new domain is paused: %v, drained: %v", p, d)
		}
		accepted(t, <-r.submit(t, tasks(1)))
	})
}
