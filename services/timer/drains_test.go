package timer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestASchedulesRunsWaitForTheEndOfADrain: what is drained takes no new tasks from schedules either, and a domain that does not exist takes none at all.
func TestASchedulesRunsWaitForTheEndOfADrain(t *testing.T) {
	nc, _ := start(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	kv, err := provision.Bucket(t.Context(), js, topology.ConfigBucket, nil)
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(catalog.Domains.Put(t.Context(), kv, "", &yardv1.Domain{Name: "shop"})))
	testkit.NoError(t, testkit.Err(catalog.Drains.Tasklists.PutAs(t.Context(), kv, "shop", "mail", &yardv1.Pause{SinceMs: 1})))
	submits := func(domain, list string) *nats.Subscription {
		sub, err := nc.SubscribeSync(topology.Submit(1, ids.Lane(3), domain, list))
		testkit.NoError(t, err)
		return sub
	}
	mail, sms, none := submits("shop", "mail"), submits("shop", "sms"), submits("none", "sms")
	waits := func(sub *nats.Subscription) int {
		n, _, err := sub.Pending()
		testkit.NoError(t, err)
		return n
	}
	everySecond(t, nc, "none", "sms")
	everySecond(t, nc, "shop", "mail")
	everySecond(t, nc, "shop", "sms")
	for range 3 {
		testkit.NoError(t, testkit.Err(sms.NextMsg(soon)))
	}
	testkit.Equal(t, "runs of the drained tasklist, and of no domain", [2]int{waits(mail), waits(none)}, [2]int{})
	testkit.NoError(t, testkit.Err(catalog.Drains.Tasklists.Delete(t.Context(), kv, "shop", "mail", 0)))
	testkit.NoError(t, testkit.Err(mail.NextMsg(soon)))
	testkit.Equal(t, "runs of no domain", waits(none), 0)
}

// everySecond stores a schedule of partition 1 whose runs go to a tasklist.
func everySecond(t *testing.T, nc *nats.Conn, domain, list string) {
	t.Helper()
	of := testkit.Encoded(t, &yardv1.Schedule{
		Name: list, EveryMs: 1000, Overlap: yardv1.Overlap_OVERLAP_ALLOW, Missed: yardv1.Missed_MISSED_ALL, CatchUpMs: time.Hour.Milliseconds(),
	})
	data := testkit.Encoded(t, &logv1.ScheduleHome{
		Name: list, LogVersion: 1, Schedule: of, DecidedUpToMs: time.Now().UnixMilli(), Task: &logv1.Record{Domain: domain, Tasklist: list, Type: "t", Priority: 3},
	})
	m := natslog.Msg{Subject: topology.ScheduleHome(1, domain, list), Data: data}
	if _, _, err := natslog.Append(t.Context(), nc, m); err != nil {
		t.Fatal(err)
	}
}
