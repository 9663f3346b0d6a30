package clients_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// domain is a tenant, asked in JSON as any client does.
type domain struct {
	name string
	nc   *nats.Conn
}

// newDomain makes a domain.
func newDomain(t *testing.T, s *stack.Stack, name string) *domain {
	t.Helper()
	connect := func(u permissions.User) *nats.Conn {
		nc, err := sealed.Connect(s, u)
		testkit.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	ask(t, connect(sealed.Operator()), topology.Admin("domains.put"), fmt.Sprintf(`{"domain":{"name":%q,"events":true}}`, name), nil)
	return &domain{name, connect(sealed.Admin(name))}
}

// ask asks an endpoint of the domain and decodes the answer into v.
func (d *domain) ask(t *testing.T, verb, body string, v any) {
	t.Helper()
	ask(t, d.nc, topology.API(d.name, verb), body, v)
}

func ask(t *testing.T, nc *nats.Conn, subject, body string, v any) {
	t.Helper()
	answer, err := nc.Request(subject, []byte(body), 2*within)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	if code := answer.Header.Get(fault.HeaderCode); code != "" {
		t.Fatalf("%s %s: %s", subject, body, answer.Data)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(answer.Data, v); err != nil {
		t.Fatalf("%s: %s: %v", subject, answer.Data, err)
	}
}

// submit submits a task, in JSON, to a tasklist and returns its id.
func (d *domain) submit(t *testing.T, tasklist, task string) string {
	t.Helper()
	var answer struct {
		Results []struct {
			TaskID string `json:"task_id"`
		} `json:"results"`
	}
	d.ask(t, "tasks.submit", fmt.Sprintf(`{"tasklist":%q,"tasks":[%s]}`, tasklist, task), &answer)
	return answer.Results[0].TaskID
}

// task is what the tests look at.
type task struct {
	State        string          `json:"state"`
	Result       json.RawMessage `json:"result"`
	Progress     json.RawMessage `json:"progress"`
	Grants       int             `json:"grants"`
	Failures     int             `json:"failures"`
	Worker       string          `json:"worker"`
	ErrorType    string          `json:"error_type"`
	ErrorMessage string          `json:"error_message"`
	Events       []struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"events"`
}

// get is a task as it is now.
func (d *domain) get(t *testing.T, id string) (known task) {
	t.Helper()
	answer := struct {
		Task *task `json:"task"`
	}{&known}
	d.ask(t, "tasks.get", fmt.Sprintf(`{"task_id":%q}`, id), &answer)
	return known
}

// becomes waits until a task is in a state.
func (d *domain) becomes(t *testing.T, id, state string) (known task) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		if known = d.get(t, id); known.State != state {
			return fmt.Errorf("task %s is %s, want %s: %+v", id, known.State, state, known)
		}
		return nil
	})
	return known
}
