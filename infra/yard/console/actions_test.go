package console_test

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/console"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/consoletest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// effectWithin bounds the wait for the effect of a form.
const effectWithin = 30 * time.Second

// browser is a user at a console.
type browser struct {
	url, user string
}

// send sends a request; values are a form.
func (b browser) send(t *testing.T, method, path string, values url.Values, change ...func(*http.Request)) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(values.Encode()))
	testkit.NoError(t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.SetBasicAuth(b.user, "secret")
	for _, one := range change {
		one(req)
	}
	resp, err := http.DefaultClient.Do(req)
	testkit.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	testkit.NoError(t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, string(text)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// open opens a form, and returns what it sends.
func (b browser) open(t *testing.T, path string) url.Values {
	t.Helper()
	status, body := b.send(t, http.MethodGet, path, nil)
	values := url.Values{}
	for _, one := range hidden.FindAllStringSubmatch(body, -1) {
		values.Set(one[1], html.UnescapeString(one[2]))
	}
	if _, err := ids.ParseRequestID(values.Get("form")); status != http.StatusOK || err != nil {
		t.Fatalf("%s: status %d, it has no form:\n%s", path, status, body[strings.Index(body, "<main"):])
	}
	return values
}

// confirm opens a form, fills it in, sends it twice, and returns the page that it leads to.
func (b browser) confirm(t *testing.T, path string, inputs ...string) string {
	t.Helper()
	values := b.open(t, path)
	for i := 0; i < len(inputs); i += 2 {
		values.Set(inputs[i], inputs[i+1])
	}
	to, _, _ := strings.Cut(path, "?")
	var pages [2]string
	var both sync.WaitGroup
	for i := range pages {
		both.Go(func() { _, pages[i] = b.send(t, http.MethodPost, to, values) })
	}
	both.Wait()
	outcome := regexp.MustCompile(`(?s)<p role="status".*?</p>`)
	first, second := outcome.FindString(pages[0]), outcome.FindString(pages[1])
	if first == "" || first != second {
		t.Errorf("%s: the outcomes of one form that was sent twice:\n%s\n%s\n%s", path, first, second, pages[0])
	}
	return pages[0]
}

// actions: each form does what its preview says, once, and the next page says so.
func actions(t *testing.T, w *consoletest.World) {
	url := w.Console(t, console.Config{Users: usersFile(t)})
	ann, olga := browser{url, "ann"}, browser{url, "olga"}
	t.Run("tasks", func(t *testing.T) { taskForms(t, w, olga) })
	t.Run("dead letters", func(t *testing.T) { deadForms(t, w, olga) })
	t.Run("stops", func(t *testing.T) { stopForms(t, w, ann) })
	t.Run("settings", func(t *testing.T) { settingForms(t, w, ann) })
	t.Run("work", func(t *testing.T) { workForms(t, w, olga) })
	t.Run("attacks", func(t *testing.T) { attacks(t, w, url) })
	t.Run("ends", func(t *testing.T) { endForms(t, w, olga) })
}

// says fails unless a page has texts.
func says(t *testing.T, page string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page[max(0, strings.Index(page, "<main")):])
		}
	}
}

func submit(t *testing.T, w *consoletest.World, task yard.Task) string {
	t.Helper()
	id, err := w.Client.Submit(t.Context(), task)
	testkit.NoError(t, err)
	return id
}

// reaches waits until a task is as wanted.
func reaches(t *testing.T, w *consoletest.World, id, what string, is func(*yardv1.Task) bool) {
	t.Helper()
	testkit.Eventually(t, effectWithin, func() error {
		task, err := w.Client.Wire().Get(t.Context(), id)
		if err == nil && !is(task) {
			err = fmt.Errorf("task %s is not %s: %v", id, what, task)
		}
		return err
	})
}

func taskForms(t *testing.T, w *consoletest.World, olga browser) {
	later := submit(t, w, yard.Task{Type: "sms.send", Tasklist: "idle", Delay: 3 * time.Hour})
	says(t, olga.confirm(t, "/domains/shop/tasks/"+later+"/cancel", "reason", "order withdrawn"), "The task is cancelled.")
	reaches(t, w, later, "cancelled by olga", func(task *yardv1.Task) bool {
		last := task.Events[len(task.Events)-1]
		return task.State == yardv1.TaskState_TASK_STATE_CANCELLED && last.Message == "order withdrawn (by olga)"
	})
	_, page := olga.send(t, http.MethodGet, "/domains/shop/tasks/"+later+"/cancel", nil)
	says(t, page, "The task is cancelled.")
	if strings.Contains(page, "<button") {
		t.Error("a task that has ended can be cancelled")
	}

	soon := submit(t, w, yard.Task{Type: "sms.send", Tasklist: "idle", Delay: 3 * time.Hour})
	waiting := func(task *yardv1.Task) bool { return task.State == yardv1.TaskState_TASK_STATE_WAITING }
	reaches(t, w, soon, "waiting", waiting)
	stale := olga.open(t, "/domains/shop/tasks/"+soon+"/run")
	testkit.NoError(t, testkit.Err(w.Client.Update(t.Context(), yard.Update{TaskID: soon, Priority: 1})))
	_, page = olga.send(t, http.MethodPost, "/domains/shop/tasks/"+soon+"/run", stale)
	says(t, page, "STALE")
	reaches(t, w, soon, "waiting", waiting)
	says(t, olga.confirm(t, "/domains/shop/tasks/"+soon+"/run"), "The task runs as soon as a worker takes it.")
	reaches(t, w, soon, "ready", func(task *yardv1.Task) bool { return task.State == yardv1.TaskState_TASK_STATE_READY })
}

// endForms: a task ends as the form says, at once, and its slot goes to the next one.
func endForms(t *testing.T, w *consoletest.World, olga browser) {
	later := submit(t, w, yard.Task{Type: "sms.send", Tasklist: "idle", Delay: 3 * time.Hour})
	path := "/domains/shop/tasks/" + later + "/end"
	says(t, olga.confirm(t, path, "state", "running"), "INVALID_ARGUMENT")
	says(t, olga.confirm(t, path, "state", "dead", "reason", "the order is wrong"), "The task is dead.", "the order is wrong")

	_, page := olga.send(t, http.MethodGet, "/domains/shop/limits/shared/smtp", nil)
	path = "/domains/shop/tasks/" + w.Running + "/end"
	says(t, page, `href="`+path+`"`)
	says(t, olga.confirm(t, path, "state", "completed"), "The task is completed.")
	next := regexp.MustCompile(`href="/domains/shop/tasks/[a-z0-9]+/end"`)
	testkit.Eventually(t, effectWithin, func() error {
		_, page := olga.send(t, http.MethodGet, "/domains/shop/limits/shared/smtp", nil)
		if strings.Contains(page, path) || !next.MatchString(page) {
			return errors.New("no other task has the slot")
		}
		return nil
	})
}

// dies submits a task, and waits for its dead letter.
func dies(t *testing.T, w *consoletest.World, tasklist string) string {
	t.Helper()
	id := submit(t, w, yard.Task{Type: "card.charge", Tasklist: tasklist})
	letter(t, w, id, 0)
	return id
}

// letter waits for the dead letter of a task that was redriven so many times.
func letter(t *testing.T, w *consoletest.World, id string, redrives int32) {
	t.Helper()
	testkit.Eventually(t, effectWithin, func() error {
		task, err := w.Client.Wire().GetDeadLetter(t.Context(), id)
		if err == nil && task.Redrives != redrives {
			err = fmt.Errorf("task %s has %d redrives", id, task.Redrives)
		}
		return err
	})
}

func deadForms(t *testing.T, w *consoletest.World, olga browser) {
	one, two := dies(t, w, "mail"), dies(t, w, "mail")
	says(t, olga.confirm(t, "/domains/shop/tasks/"+one+"/redrive", "reason", "the card works again"), "The task is back.")
	letter(t, w, one, 1)
	says(t, olga.confirm(t, "/domains/shop/dead/redrive?type=card.charge", "rate", "1000"), "are back")
	letter(t, w, one, 2)
	letter(t, w, two, 1)
	letter(t, w, w.Dead, 1)

	form := olga.open(t, "/domains/shop/tasks/"+one+"/delete")
	for _, typed := range []string{"", "shop", one + " "} {
		form.Set("typed", typed)
		status, _ := olga.send(t, http.MethodPost, "/domains/shop/tasks/"+one+"/delete", form)
		testkit.Equal(t, "the status of a deletion that is confirmed with "+typed, status, http.StatusBadRequest)
	}
	letter(t, w, one, 2)
	says(t, olga.confirm(t, "/domains/shop/tasks/"+one+"/delete", "typed", one), "The dead letter is deleted.")
	_, page := olga.send(t, http.MethodGet, "/domains/shop/dead/delete?type=none", nil)
	says(t, page, "No dead letter matches.")
	says(t, olga.confirm(t, "/domains/shop/dead/delete", "typed", "shop", "until", "1"), "Nothing matched.")
	says(t, olga.confirm(t, "/domains/shop/dead/delete?type=card.charge&tasklist=mail", "typed", "shop", "rate", "1000"), "have no dead letter any more")
	for _, id := range []string{one, two, w.Dead} {
		testkit.Eventually(t, effectWithin, func() error {
			if _, err := w.Client.GetDeadLetter(t.Context(), id); fault.CodeOf(err) != fault.NotFound {
				return fmt.Errorf("the dead letter %s: %w", id, err)
			}
			return nil
		})
	}
}

// stopForms: a pause names the user of the console.
func stopForms(t *testing.T, w *consoletest.World, ann browser) {
	ctx := t.Context()
	says(t, ann.confirm(t, "/domains/shop/tasklists/idle/pause", "reason", "the partner is down", "minutes", "60"), "The tasklist is paused.")
	d, err := w.Client.Wire().DescribeTasklist(ctx, "idle")
	testkit.NoError(t, err)
	testkit.Equal(t, "by", d.Pause.GetBy()+": "+d.Pause.GetReason(), "ann: the partner is down")
	testkit.Equal(t, "minutes", d.Pause.UntilMs-d.Pause.SinceMs, time.Hour.Milliseconds())
	says(t, ann.confirm(t, "/domains/shop/tasklists/idle/resume"), "The pause of the tasklist has ended.")
	_, page := ann.send(t, http.MethodGet, "/domains/shop/tasklists/idle/resume", nil)
	says(t, page, "There is nothing to end.")

	staleStops(t, w, ann)

	says(t, ann.confirm(t, "/domains/shop/types/sms.send/pause"), "The type is paused.", "by ann")
	says(t, ann.confirm(t, "/domains/shop/types/sms.send/resume"), "The pause of the type has ended.")
	says(t, ann.confirm(t, "/domains/shop/types/sms.send/drain"), "The type is drained.", "drained")
	says(t, ann.confirm(t, "/domains/shop/types/sms.send/undrain"), "The drain of the type has ended.")

	says(t, ann.confirm(t, "/domains/shop/groups/acme/pause", "reason", "the partner is down"), "The group is paused.", "the partner is down (by ann)")
	_, page = ann.send(t, http.MethodGet, "/domains/shop/groups", nil)
	says(t, page, `/domains/shop/groups/acme"`, "paused")
	says(t, ann.confirm(t, "/domains/shop/groups/acme/resume"), "The pause of the group has ended.")

	says(t, ann.confirm(t, "/domains/bank/pause", "reason", "its bill is not paid"), "The domain is paused.", "its bill is not paid (by ann)")
	says(t, ann.confirm(t, "/domains/bank/resume"), "The pause of the domain has ended.")
	bank, err := w.Client.Admin().GetDomain(ctx, "bank")
	testkit.NoError(t, err)
	if bank.Pause != nil {
		t.Errorf("the domain is paused: %+v", bank.Pause)
	}
	says(t, ann.confirm(t, "/domains/bank/pause", "minutes", "many"), "INVALID_ARGUMENT")
	_, page = ann.send(t, http.MethodGet, "/domains/shop/audit", nil)
	says(t, page, "types.pause", "<td>ann</td>")
}

// staleStops: a form about a pause that another client has ended or replaced since changes nothing.
func staleStops(t *testing.T, w *consoletest.World, ann browser) {
	ctx, path, idle := t.Context(), "/domains/shop/tasklists/idle/", yard.OfTasklist("idle")
	first := ann.open(t, path+"pause")
	testkit.NoError(t, testkit.Err(w.Client.Pause(ctx, idle, yard.PauseOptions{Reason: "the first pause"})))
	end, replace := ann.open(t, path+"resume"), ann.open(t, path+"pause")
	testkit.NoError(t, testkit.Err(w.Client.Resume(ctx, idle)))
	testkit.NoError(t, testkit.Err(w.Client.Pause(ctx, idle, yard.PauseOptions{Reason: "another pause"})))
	for _, c := range []struct {
		verb string
		form url.Values
	}{{"pause", first}, {"pause", replace}, {"resume", end}} {
		_, page := ann.send(t, http.MethodPost, path+c.verb, c.form)
		says(t, page, "STALE")
		d, err := w.Client.Wire().DescribeTasklist(ctx, "idle")
		testkit.NoError(t, err)
		testkit.Equal(t, "the pause behind a form that is out of date", d.Pause.GetReason(), "another pause")
	}
	testkit.NoError(t, testkit.Err(w.Client.Resume(ctx, idle)))
}

// settingForms: a form changes what it shows, and keeps the rest. It does not change what is newer.
func settingForms(t *testing.T, w *consoletest.World, ann browser) {
	ctx, path := t.Context(), "/domains/shop/limits/shared/smtp/change"
	old := ann.open(t, path)
	says(t, ann.confirm(t, path, "max_concurrency", "1", "rate_tasks", "5"), "The limits are changed.")
	got, err := w.Client.GetLimit(ctx, "smtp")
	testkit.NoError(t, err)
	testkit.Equal(t, "the limit", fmt.Sprint(got.Description, ": ", got.MaxConcurrency, got.Rate.Tasks), "Connections to the mail server: 1 5")
	_, page := ann.send(t, http.MethodPost, path, old)
	says(t, page, "STALE")
	says(t, ann.confirm(t, path, "max_concurrency", "-1"), "INVALID_ARGUMENT")

	says(t, ann.confirm(t, "/domains/shop/tasklists/mail/change", "max_concurrency", "50"), "The limits are changed.")
	list, err := w.Client.GetTasklist(ctx, "mail")
	testkit.NoError(t, err)
	testkit.Equal(t, "the tasklist", fmt.Sprint(list.Priority, list.Partitions, list.MaxConcurrency), "2 3 50")
	says(t, ann.confirm(t, "/domains/shop/types/email.send/change", "max_concurrency", "40"), "The limits are changed.")
	typ, err := w.Client.GetType(ctx, "email.send")
	testkit.NoError(t, err)
	testkit.Equal(t, "the type", fmt.Sprint(typ.Limits, typ.StartToClose, typ.MaxConcurrency), "[smtp] 1h0m0s 40")
	status, page := ann.send(t, http.MethodGet, "/domains/shop/tasklists/idle/change", nil)
	testkit.Equal(t, "the status of a change of no settings", status, http.StatusConflict)
	says(t, page, "yard tasklist put")
}

func workForms(t *testing.T, w *consoletest.World, olga browser) {
	ctx := t.Context()
	workers, err := w.Client.Workers(ctx)
	testkit.NoError(t, err)
	worker := "/domains/shop/workers/" + workers.All[0].ID
	says(t, olga.confirm(t, worker+"/drain", "reason", "its disk fails"), "The worker is drained.", "its disk fails (by olga)")
	says(t, olga.confirm(t, worker+"/resume"), "The worker gets new attempts again.", "takes tasks")

	nightly := "/domains/shop/schedules/nightly"
	says(t, olga.confirm(t, nightly+"/pause", "note", "the source is down"), "The schedule is paused.", "the source is down")
	says(t, olga.confirm(t, nightly+"/trigger"), "The run is submitted some milliseconds later")
	_, page := olga.send(t, http.MethodGet, nightly+"/trigger", nil)
	says(t, page, "You have sent a form of this page", "This form does it again.")
	says(t, olga.confirm(t, nightly+"/resume", "note", "For the finance team"), "The schedule makes runs again.")
	testkit.Eventually(t, effectWithin, func() error {
		info, err := schedules.Of(w.Client).Get(ctx, "nightly")
		if err == nil && (len(info.Recent) != 1 || info.Recent[0].Reason != "trigger") {
			err = fmt.Errorf("the runs: %+v", info.Recent)
		}
		return err
	})

	_, page = olga.send(t, http.MethodGet, "/domains/shop/keys", nil)
	says(t, page, `/domains/shop/keys/unblock?order_key=account%2f7`)
	says(t, olga.confirm(t, "/domains/shop/keys/unblock?order_key=account%2f7", "reason", "the account is open"), "The first task of order key account/7 gets one more attempt.")
	reaches(t, w, w.Blocked, "blocked again", func(task *yardv1.Task) bool { return task.Blocked && task.Grants == 2 })
	says(t, olga.confirm(t, "/domains/shop/keys/skip?order_key=account%2f7"), "the key goes on")
	reaches(t, w, w.Blocked, "dead", func(task *yardv1.Task) bool { return task.State == yardv1.TaskState_TASK_STATE_DEAD })

	for _, name := range []string{"import-2", "import-3"} {
		batch, err := w.Client.NewBatch(ctx, name, yard.BatchOptions{})
		testkit.NoError(t, err)
		testkit.NoError(t, testkit.Err(batch.Add(ctx, []yard.Task{{Type: "row.import", Tasklist: "idle", Delay: time.Hour}})))
	}
	says(t, olga.confirm(t, "/domains/shop/batches/import-2/close"), "The batch takes no more tasks.", "closed")
	says(t, olga.confirm(t, "/domains/shop/batches/import-3/cancel", "typed", "import-3"), "Tasks: 1 are cancelled.")

	furtherPurge(t, w, olga)
	id := submit(t, w, yard.Task{Type: "sms.send", Tasklist: "idle", Delay: time.Hour})
	says(t, olga.confirm(t, "/domains/shop/tasklists/idle/purge", "typed", "idle", "rate", "1000", "reason", "sent twice"), "are cancelled")
	reaches(t, w, id, "cancelled", func(task *yardv1.Task) bool { return task.State == yardv1.TaskState_TASK_STATE_CANCELLED })
}

// furtherPurge: the preview of a purge that goes on counts what the earlier ones have left.
func furtherPurge(t *testing.T, w *consoletest.World, olga browser) {
	tasks := []yard.Task{{Type: "sms.send", Tasklist: "long", Delay: time.Hour}, {Type: "sms.send", Tasklist: "long", Delay: time.Hour}, {Type: "sms.send", Tasklist: "long", Delay: time.Hour}}
	testkit.NoError(t, testkit.Err(w.Client.SubmitMany(t.Context(), tasks)))
	counted := regexp.MustCompile(`<dt>Tasks</dt><dd>(\d+)</dd>`)
	preview := func(query string) string {
		_, page := olga.send(t, http.MethodGet, "/domains/shop/tasklists/long/purge"+query, nil)
		return fmt.Sprint(counted.FindStringSubmatch(page))
	}
	testkit.Eventually(t, effectWithin, func() error {
		if got := preview(""); got != "[<dt>Tasks</dt><dd>3</dd> 3]" {
			return fmt.Errorf("the whole purge: %s", got)
		}
		return nil
	})
	step, err := yard.Call[yardv1.PurgeResponse](t.Context(), w.Client, "tasklists.purge", &yardv1.PurgeRequest{Name: "long", Preview: true, Limit: 1})
	testkit.NoError(t, err)
	testkit.Equal(t, "the tasks of a step", step.Purged.Found, 1)
	testkit.Equal(t, "the rest", preview("?cursor="+url.QueryEscape(step.Purged.NextCursor)), "[<dt>Tasks</dt><dd>2</dd> 2]")
}

// attacks: a form needs its role, its domain, its own id, and a page of the console. Nothing changes for a GET.
func attacks(t *testing.T, w *consoletest.World, console string) {
	ann, bob, olga := browser{console, "ann"}, browser{console, "bob"}, browser{console, "olga"}
	victim := submit(t, w, yard.Task{Type: "sms.send", Tasklist: "idle", Delay: 3 * time.Hour})
	cancel, now := "/domains/shop/tasks/"+victim+"/cancel", time.Now()
	form := func(at time.Time) url.Values {
		return url.Values{"form": {ids.NewRequestID(at).String()}, "typed": {"shop"}}
	}
	of := olga.open(t, "/domains/shop/tasklists/idle/pause")
	_, _ = olga.send(t, http.MethodPost, "/domains/shop/tasklists/idle/resume", of)
	crossSite := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	otherOrigin := func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }
	asJSON := func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }
	cookie := func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: "role", Value: "admin"})
		r.Header.Set("X-Forwarded-User", "ann")
	}
	for name, c := range map[string]struct {
		who    browser
		path   string
		values url.Values
		change func(*http.Request)
		want   int
	}{
		"a viewer":                      {bob, cancel, form(now), nil, http.StatusForbidden},
		"a viewer with a cookie":        {bob, cancel, form(now), cookie, http.StatusForbidden},
		"a viewer of another domain":    {bob, "/domains/bank/dead/delete", form(now), nil, http.StatusNotFound},
		"an operator of another domain": {olga, "/domains/bank/dead/delete", form(now), nil, http.StatusNotFound},
		"an operator of the settings":   {olga, "/domains/shop/limits/shared/smtp/change", form(now), nil, http.StatusForbidden},
		"a tenant that pauses itself":   {olga, "/domains/shop/pause", form(now), nil, http.StatusNotFound},
		"a tenant that resumes itself":  {olga, "/domains/shop/resume", form(now), nil, http.StatusNotFound},
		"nobody":                        {browser{console, "eve"}, cancel, form(now), nil, http.StatusUnauthorized},
		"another site":                  {ann, cancel, form(now), crossSite, http.StatusForbidden},
		"another origin":                {ann, cancel, form(now), otherOrigin, http.StatusForbidden},
		"no id":                         {ann, cancel, nil, nil, http.StatusBadRequest},
		"an id that is none":            {ann, cancel, url.Values{"form": {"1"}}, nil, http.StatusBadRequest},
		"an old id":                     {ann, cancel, form(now.Add(-time.Hour)), nil, http.StatusConflict},
		"an id of the future":           {ann, cancel, form(now.Add(time.Hour)), nil, http.StatusConflict},
		"the id of another page":        {olga, cancel, of, nil, http.StatusBadRequest},
		"a form in the query":           {ann, cancel + "?" + form(now).Encode(), nil, nil, http.StatusBadRequest},
		"a form that is JSON":           {ann, cancel, form(now), asJSON, http.StatusBadRequest},
		"a form that is too large":      {ann, cancel, url.Values{"reason": {strings.Repeat("x", 100_000)}}, nil, http.StatusBadRequest},
		"a page that has no form":       {ann, "/domains/shop/tasks", form(now), nil, http.StatusNotFound},
		"an unconfirmed purge":          {ann, "/domains/shop/tasklists/idle/purge", form(now), nil, http.StatusBadRequest},
	} {
		changes := []func(*http.Request){}
		if c.change != nil {
			changes = append(changes, c.change)
		}
		if got, body := c.who.send(t, http.MethodPost, c.path, c.values, changes...); got != c.want {
			t.Errorf("%s: status %d\n%s", name, got, body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		_, _ = ann.send(t, method, cancel+"?"+form(now).Encode(), nil)
	}
	reaches(t, w, victim, "waiting", func(task *yardv1.Task) bool { return task.State == yardv1.TaskState_TASK_STATE_WAITING })
	for _, path := range []string{"", "/tasks/" + victim, "/tasklists/idle", "/limits/shared/smtp", "/schedules/nightly", "/workers", "/dead", "/dead/list", "/types/sms.send"} {
		_, page := bob.send(t, http.MethodGet, "/domains/shop"+path, nil)
		if strings.Contains(page, "What you can change") || strings.Contains(page, `method="post"`) || strings.Contains(page, "/drain") {
			t.Errorf("a viewer sees a button on %q", path)
		}
	}
	status, _ := bob.send(t, http.MethodGet, cancel, nil)
	testkit.Equal(t, "the status of a viewer's form", status, http.StatusForbidden)
	_, page := olga.send(t, http.MethodGet, "/domains/shop", nil)
	if strings.Contains(page, "Pause the domain") {
		t.Error("an operator of a domain sees how to pause it")
	}
}
