package pages

import (
	"cmp"
	"context"
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
)

// Inputs of limits. 0, or nothing, is no limit.
var (
	concurrencyInput = input{Name: "max_concurrency", Label: "Attempts at once (empty: no limit)", Type: "number", Most: 1_000_000}
	perGroupInput    = input{Name: "max_concurrency_per_group", Label: "Attempts of each group at once (empty: no limit)", Type: "number", Most: 1_000_000}
	startsInput      = input{Name: "rate_tasks", Label: "Starts in the time below (empty: no limit)", Type: "number", Most: 1_000_000}
	perInput         = input{Name: "rate_per_ms", Label: "Time of the rate, milliseconds (empty: a second)", Type: "number", Most: 86_400_000}
	burstInput       = input{Name: "rate_burst", Label: "Starts at once after a rest (empty: those of a second)", Type: "number", Most: 1_000_000}
	shadowInput      = input{Name: "shadow", Label: "It only counts, and delays nothing", Type: "checkbox"}
)

// settings are what a form changes of a shared limit, of a tasklist or of a type. The rest stays as it is.
type settings struct {
	revision              int64
	concurrency, perGroup *int32
	rate                  **yardv1.Rate
	// shadow is nil if the limit cannot be in shadow.
	shadow *bool
	put    func(context.Context) error
}

// settingActions are the forms that change limits.
func settingActions() []page {
	limit := action(domainPath+"/limits/shared/{limit}/change", "Change the limit", login.Admin, previewSettings(limitSettings), changeSettings(limitSettings))
	limit.of = domainPath + "/limits/{ref...}"
	limit.offered = func(f frame) bool { return f.Live.(limitLive).shared() != "" }
	return []page{
		limit,
		action(domainPath+"/tasklists/{tasklist}/change", "Change the limits of the tasklist", login.Admin, previewSettings(tasklistSettings), changeSettings(tasklistSettings)),
		action(domainPath+"/types/{type}/change", "Change the limits of the type", login.Admin, previewSettings(typeSettings), changeSettings(typeSettings)),
	}
}

func limitSettings(r *Request, c *yard.Client) (*settings, error) {
	got, err := yard.Call[yardv1.GetLimitResponse](r.Context(), c, "limits.get", &yardv1.GetLimitRequest{Name: r.PathValue("limit")})
	if err != nil {
		return nil, err
	}
	l := got.Limit
	return &settings{l.Revision, &l.MaxConcurrency, &l.MaxConcurrencyPerGroup, &l.Rate, &l.Shadow, func(ctx context.Context) error {
		_, err := yard.Call[yardv1.PutLimitResponse](ctx, c, "limits.put", &yardv1.PutLimitRequest{Limit: l})
		return err
	}}, nil
}

func tasklistSettings(r *Request, c *yard.Client) (*settings, error) {
	got, err := yard.Call[yardv1.GetTasklistResponse](r.Context(), c, "tasklists.get", &yardv1.GetTasklistRequest{Name: r.PathValue("tasklist")})
	if err != nil {
		return nil, hasNoSettings(err, "yard tasklist put")
	}
	l := got.Tasklist
	return &settings{l.Revision, &l.MaxConcurrency, &l.MaxConcurrencyPerGroup, &l.Rate, nil, func(ctx context.Context) error {
		_, err := yard.Call[yardv1.PutTasklistResponse](ctx, c, "tasklists.put", &yardv1.PutTasklistRequest{Tasklist: l})
		return err
	}}, nil
}

func typeSettings(r *Request, c *yard.Client) (*settings, error) {
	got, err := yard.Call[yardv1.GetTypeResponse](r.Context(), c, "types.get", &yardv1.GetTypeRequest{Name: r.PathValue("type")})
	t := got.GetType()
	if err == nil && t.GetRevision() == 0 { // it is paused or drained, and has no settings
		err = fault.New(fault.NotFound, "the type has no settings")
	}
	if err != nil {
		return nil, hasNoSettings(err, "yard type put")
	}
	return &settings{t.Revision, &t.MaxConcurrency, &t.MaxConcurrencyPerGroup, &t.Rate, nil, func(ctx context.Context) error {
		_, err := yard.Call[yardv1.PutTypeResponse](ctx, c, "types.put", &yardv1.PutTypeRequest{Type: t})
		return err
	}}, nil
}

// hasNoSettings says how to make settings, of which a change is refused: a put of a revision 0 would replace what another user has just put.
func hasNoSettings(err error, command string) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return fault.New(fault.FailedPrecondition, "it has no settings yet: %s makes them", command)
}

func previewSettings(read func(*Request, *yard.Client) (*settings, error)) func(*Request) (*preview, error) {
	return func(r *Request) (*preview, error) {
		c, err := r.Client()
		if err != nil {
			return nil, err
		}
		s, err := read(r, c)
		if err != nil {
			return nil, err
		}
		rate := cmp.Or(*s.rate, &yardv1.Rate{})
		body := &preview{
			Text: "The limit counts within a second. A smaller one stops no attempt that runs: fewer start until enough have ended. The other settings are kept.",
			Kept: []fact{{"revision", s.revision}},
			Inputs: []input{
				concurrencyInput.with(int64(*s.concurrency)), perGroupInput.with(int64(*s.perGroup)), startsInput.with(int64(rate.Tasks)), perInput.with(rate.PerMs), burstInput.with(int64(rate.Burst)),
			},
		}
		if s.shadow != nil {
			shadow := shadowInput
			if *s.shadow {
				shadow.Value = "yes"
			}
			body.Inputs = append(body.Inputs, shadow)
		}
		return body, nil
	}
}

// with is the input with a number at first; 0 = it is empty.
func (of input) with(n int64) input {
	if n != 0 {
		of.Value = strconv.FormatInt(n, 10)
	}
	return of
}

// changeSettings puts what the form says over the settings of the revision that the preview had. STALE: there is a newer one.
func changeSettings(read func(*Request, *yard.Client) (*settings, error)) func(*Request) (done, error) {
	return func(r *Request) (done, error) {
		c, err := r.Client()
		if err != nil {
			return done{}, err
		}
		s, err := read(r, c)
		if err != nil {
			return done{}, err
		}
		if r.input("revision") != strconv.FormatInt(s.revision, 10) {
			return done{}, fault.New(fault.Stale, "the settings were changed since the form was opened: open it again")
		}
		var numbers [5]int64
		for i, of := range []input{concurrencyInput, perGroupInput, startsInput, perInput, burstInput} {
			if numbers[i], err = r.number(of); err != nil {
				return done{}, err
			}
		}
		*s.concurrency, *s.perGroup, *s.rate = int32(numbers[0]), int32(numbers[1]), nil
		if numbers[2] > 0 {
			*s.rate = &yardv1.Rate{Tasks: int32(numbers[2]), PerMs: numbers[3], Burst: int32(numbers[4])}
		}
		if s.shadow != nil {
			*s.shadow = r.input("shadow") != ""
		}
		return unless(s.put(r.Context()), "The limits are changed.")
	}
}
