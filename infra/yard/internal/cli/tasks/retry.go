package tasks

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// PolicyFlags adds the flags of a retry policy; their defaults are what it has.
func PolicyFlags(flags *pflag.FlagSet, r *yard.RetryPolicy) {
	flags.IntVar(&r.MaxAttempts, "max-attempts", r.MaxAttempts, "failures until a task is a dead letter; default 5")
	command.DurationVar(flags, &r.InitialInterval, "initial-interval", r.InitialInterval, "wait after the first failure; default 1s")
	flags.Float64Var(&r.Backoff, "backoff", r.Backoff, "factor by which each further wait is longer; default 2")
	command.DurationVar(flags, &r.MaxInterval, "max-interval", r.MaxInterval, "longest wait; default 10m")
	flags.StringSliceVar(&r.NonRetryable, "non-retryable", r.NonRetryable, "error type that makes it a dead letter at once; may be repeated")
	flags.Var((*errorFlag)(&r.ByError), "by-error", "other numbers for one error type, such as busy:max-attempts=20,initial-interval=1m; may be repeated")
	flags.Var(choice(&r.Jitter, yard.JitterSlight, yard.JitterFull, yard.JitterEqual, yard.JitterNone), "jitter", "how waits are spread; default slight")
	flags.IntVar(&r.MaxDeliveries, "max-deliveries", r.MaxDeliveries, "times that it is given to a worker until it is a dead letter; 0 = any number")
	flags.Var(choice(&r.OnLost, yard.OnLostRetry, yard.OnLostFail, yard.OnLostDead), "on-lost", "what follows when its worker sends no more heartbeats; default retry")
	flags.Var(choice(&r.OnTimeout, yard.OnTimeoutFail, yard.OnTimeoutDead), "on-timeout", "what follows when an attempt takes too long; default fail")
}

// NoPolicy tells whether r says nothing.
func NoPolicy(r yard.RetryPolicy) bool {
	if len(r.NonRetryable) == 0 {
		r.NonRetryable = nil
	}
	return reflect.DeepEqual(r, yard.RetryPolicy{})
}

// choice is one of some names on the command line, which the help shows; "" = not said.
func choice[S ~string](to *S, of ...S) command.Value {
	names := command.Each(of, func(s S) string { return string(s) })
	return command.Value{Kind: strings.Join(names, "|"), Show: func() string { return string(*to) }, Parse: func(text string) error {
		if text != "" && !slices.Contains(names, text) {
			return fmt.Errorf("want one of %s", strings.Join(names, ", "))
		}
		*to = S(text)
		return nil
	}}
}

// errorFlag is what policies have for error types on the command line: "TYPE:NAME=VALUE,NAME=VALUE", or "" for none. It is a pflag.SliceValue.
type errorFlag []yard.ErrorRetry

// String writes them as they are read.
func (f *errorFlag) String() string { return rulesText(*f) }

// Type is what the help calls one.
func (f *errorFlag) Type() string { return "rule" }

// Set adds one.
func (f *errorFlag) Set(text string) error {
	if text == "" {
		*f = nil
		return nil
	}
	at := strings.LastIndex(text, ":")
	if at < 1 {
		return fmt.Errorf("want an error type and its numbers, such as busy:max-attempts=20,initial-interval=1m")
	}
	rule := yard.ErrorRetry{ErrorType: text[:at]}
	for _, part := range strings.Split(text[at+1:], ",") {
		name, value, _ := strings.Cut(part, "=")
		var err error
		switch name {
		case "max-attempts":
			rule.MaxAttempts, err = strconv.Atoi(value)
		case "initial-interval":
			rule.InitialInterval, err = command.ParseDuration(value)
		case "max-interval":
			rule.MaxInterval, err = command.ParseDuration(value)
		case "backoff":
			rule.Backoff, err = strconv.ParseFloat(value, 64)
		default:
			return fmt.Errorf("%q is none of max-attempts, initial-interval, max-interval and backoff", name)
		}
		if err != nil {
			return fmt.Errorf("%s: %q is no value for it", name, value)
		}
	}
	*f = append(*f, rule)
	return nil
}

// GetSlice returns each rule as Set parses it.
func (f *errorFlag) GetSlice() (texts []string) {
	for _, rule := range *f {
		texts = append(texts, rulesText([]yard.ErrorRetry{rule}))
	}
	return texts
}

// Append adds one.
func (f *errorFlag) Append(text string) error { return f.Set(text) }

// Replace sets all.
func (f *errorFlag) Replace(texts []string) error {
	*f = nil
	for _, text := range texts {
		if err := f.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// rulesText writes what a policy has for error types as its flag reads it.
func rulesText(rules []yard.ErrorRetry) string {
	texts := make([]string, len(rules))
	for i, r := range rules {
		var parts []string
		add := func(set bool, name, value string) {
			if set {
				parts = append(parts, name+"="+value)
			}
		}
		add(r.MaxAttempts != 0, "max-attempts", strconv.Itoa(r.MaxAttempts))
		add(r.InitialInterval != 0, "initial-interval", r.InitialInterval.String())
		add(r.Backoff != 0, "backoff", strconv.FormatFloat(r.Backoff, 'f', -1, 64))
		add(r.MaxInterval != 0, "max-interval", r.MaxInterval.String())
		texts[i] = r.ErrorType + ":" + strings.Join(parts, ",")
	}
	return strings.Join(texts, " ")
}

// PolicyRows shows a policy; what few have is left out where it is not set.
func PolicyRows(about *command.Table, r yard.RetryPolicy) {
	about.Row("max attempts", command.Or(r.MaxAttempts, "5, the default"))
	about.Row("first wait", command.Or(r.InitialInterval, "1s, the default"))
	about.Row("backoff", command.Or(r.Backoff, "2, the default"))
	about.Row("longest wait", command.Or(r.MaxInterval, "10m0s, the default"))
	about.Some("not retried", strings.Join(r.NonRetryable, ", "))
	about.Some("by error", rulesText(r.ByError))
	about.Some("jitter", string(r.Jitter))
	if r.MaxDeliveries > 0 {
		about.Row("max deliveries", r.MaxDeliveries)
	}
	about.Some("if lost", string(r.OnLost))
	about.Some("on time-out", string(r.OnTimeout))
}
