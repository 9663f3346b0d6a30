package validate

import (
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

func TestOrderKeysAreChecked(t *testing.T) {
	check := func(tasks ...*yardv1.NewTask) error {
		for _, task := range tasks {
			task.Type = "send"
		}
		return Submit(&yardv1.SubmitRequest{Tasklist: "mail", Tasks: tasks}, time.Now(), Form{})
	}
	for _, key := range []string{strings.Repeat("k", 256), "a.b *>\x00 c", ".", ">"} {
		if err := check(&yardv1.NewTask{OrderKey: key, OrderPolicy: yardv1.OrderPolicy_ORDER_POLICY_BLOCK}, &yardv1.NewTask{OrderKey: "b"}); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for name, c := range map[string]struct {
		second *yardv1.NewTask
		path   string
	}{
		"too long":       {&yardv1.NewTask{OrderKey: strings.Repeat("k", 257)}, "/tasks/1/order_key"},
		"not UTF-8":      {&yardv1.NewTask{OrderKey: "\xff"}, "/tasks/1/order_key"},
		"none":           {&yardv1.NewTask{}, "/tasks/1/order_key"},
		"only a policy":  {&yardv1.NewTask{OrderPolicy: yardv1.OrderPolicy_ORDER_POLICY_BLOCK}, "/tasks/1/order_policy"},
		"unknown policy": {&yardv1.NewTask{OrderKey: "b", OrderPolicy: 99}, "/tasks/1/order_policy"},
		"no policy":      {&yardv1.NewTask{OrderKey: "b", OrderPolicy: -1}, "/tasks/1/order_policy"},
	} {
		if err := check(&yardv1.NewTask{OrderKey: "a"}, c.second); fault.CodeOf(err) != fault.InvalidArgument || fault.From(err).Path != c.path {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := check(&yardv1.NewTask{}, &yardv1.NewTask{OrderKey: "a"}); fault.CodeOf(err) != fault.InvalidArgument || fault.From(err).Path != "/tasks/1/order_key" {
		t.Errorf("only the second has one: %v", err)
	}
}
