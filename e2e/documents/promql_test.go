package documents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
)

// expression checks an expression of Prometheus against the metrics that there are. It knows as much of the language as
// the rules use, and takes what it does not know for a mistake.
type expression struct {
	tokens   []string
	metrics  map[string]signals.Metric
	problems []string
}

// scope is what a part of an expression lies in.
type scope struct {
	// over is the function of a range that it is the argument of.
	over string
	// by are the labels that the aggregation around it keeps.
	by []string
	// quantile: a histogram_quantile is around it. merged: in that, an aggregation.
	quantile, merged bool
}

var (
	word        = regexp.MustCompile(`[A-Za-z_]\w*|\d[\d.a-z]*|"[^"]*"|=~|!~|!=|==|>=|<=|.`)
	number      = regexp.MustCompile(`^\d+(\.\d+)?$`)
	span        = regexp.MustCompile(`^(\d+(ms|[smhdwy]))+$`)
	comparisons = []string{">", "<", ">=", "<=", "==", "!="}
	// aggregations keep the labels of by; rates take counters, overTime gauges.
	aggregations = []string{"sum", "max", "min", "avg", "count"}
	rates        = []string{"rate", "increase"}
	overTime     = []string{"max_over_time", "min_over_time", "avg_over_time"}
	// target are the labels that a series has of its target.
	target = []string{"instance", "job", signals.Service}
)

// problems are what is wrong with the expression of an alert.
func problems(expr string) []string {
	compares, problems := check(expr)
	if !compares {
		problems = append(problems, "it compares with nothing, so it fires always")
	}
	return problems
}

// check returns what is wrong with an expression, and whether it compares.
func check(expr string) (compares bool, problems []string) {
	e := &expression{metrics: map[string]signals.Metric{}}
	for _, section := range signals.Sections() {
		for _, m := range section.Metrics {
			e.metrics[m.Prometheus()] = m
		}
	}
	for _, token := range word.FindAllString(expr, -1) {
		if strings.TrimSpace(token) != "" {
			e.tokens = append(e.tokens, token)
		}
	}
	compares = e.sum(scope{})
	if len(e.tokens) > 0 {
		e.wrong("it goes on with %q", strings.Join(e.tokens, " "))
	}
	return compares, e.problems
}

func (e *expression) wrong(format string, args ...any) {
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
}

// next is the next token, "" at the end.
func (e *expression) next() string {
	if len(e.tokens) == 0 {
		return ""
	}
	return e.tokens[0]
}

func (e *expression) take() string {
	token := e.next()
	e.tokens = e.tokens[min(1, len(e.tokens)):]
	return token
}

// takeIf takes a token if it is the next one.
func (e *expression) takeIf(token string) bool {
	if e.next() != token {
		return false
	}
	e.take()
	return true
}

func (e *expression) expect(token string) {
	if got := e.take(); got != token {
		e.wrong("%q where %q is expected", got, token)
	}
}

// sum reads parts that operators combine, and tells whether it compares them.
func (e *expression) sum(in scope) (compares bool) {
	compares = e.part(in)
	for slices.Contains(append([]string{"+", "-", "*", "/", "and", "or", "unless"}, comparisons...), e.next()) {
		compares = slices.Contains(comparisons, e.take()) || compares
		compares = e.part(in) || compares
	}
	return compares
}

// part reads a number, a call, a metric, or an expression in parentheses, which may compare.
func (e *expression) part(in scope) (compares bool) {
	token := e.take()
	switch {
	case number.MatchString(token):
	case token == "(":
		compares = e.sum(in)
		e.expect(")")
	case token == "" || token[0] != '_' && !unicode.IsLetter(rune(token[0])):
		e.wrong("%q where a part of it is expected", token)
	case e.next() == "(" || e.next() == "by":
		e.call(token, in)
	default:
		e.selector(token, in)
	}
	return compares
}

// call reads what follows the name of a function.
func (e *expression) call(name string, in scope) {
	in.over = ""
	switch {
	case slices.Contains(aggregations, name):
		in = e.aggregation(name, in)
	case slices.Contains(rates, name) || slices.Contains(overTime, name):
		in.over = name
	case name == "histogram_quantile":
		in.quantile, in.merged = true, false
	case name != "abs":
		e.wrong("the function %s is not known to this test", name)
	}
	e.expect("(")
	if name == "histogram_quantile" {
		if of := e.take(); !number.MatchString(of) || !strings.HasPrefix(of, "0.") {
			e.wrong("the quantile %s", of)
		}
		e.expect(",")
	}
	e.sum(in)
	e.expect(")")
}

// aggregation reads the labels that an aggregation keeps.
func (e *expression) aggregation(name string, in scope) scope {
	around := in.by
	in.by, in.merged = nil, in.quantile
	if e.takeIf("by") {
		in.by = e.labels()
	}
	for _, label := range around {
		if !slices.Contains(in.by, label) {
			e.wrong("%s drops %s, which is asked for around it", name, label)
		}
	}
	if in.quantile && !slices.Contains(in.by, "le") {
		e.wrong("%s in a histogram_quantile drops le", name)
	}
	return in
}

// labels reads a list of labels.
func (e *expression) labels() (all []string) {
	e.expect("(")
	for more := true; more; more = e.takeIf(",") {
		all = append(all, e.take())
	}
	e.expect(")")
	return all
}

// selector reads what follows the name of a metric, and checks that it is used as its kind is.
func (e *expression) selector(name string, in scope) {
	base, bucket := strings.CutSuffix(name, "_bucket")
	m, known := e.metrics[base]
	if !known || bucket && m.Kind != signals.Histogram {
		e.wrong("there is no metric %s", name)
		known, bucket = false, false
	}
	has := append(slices.Clone(target), m.Attributes...)
	if bucket {
		has = append(has, "le")
	}
	used := in.by
	if e.takeIf("{") {
		used = append(slices.Clone(used), e.matchers()...)
	}
	for _, label := range used {
		if known && !slices.Contains(has, label) {
			e.wrong("%s has no label %s", name, label)
		}
	}
	ranged := e.takeIf("[")
	if ranged {
		if long := e.take(); !span.MatchString(long) {
			e.wrong("the range %q", long)
		}
		e.expect("]")
	}
	if ranged != (in.over != "") {
		e.wrong("%s has a range outside of a function of a range, or none inside", name)
	}
	switch rated := slices.Contains(rates, in.over); {
	case !known:
	case m.Kind == signals.Gauge && rated:
		e.wrong("%s is a gauge, in %s", name, in.over)
	case m.Kind == signals.Counter && !rated:
		e.wrong("%s is a counter, outside of rate and increase", name)
	case m.Kind == signals.Histogram && !bucket:
		e.wrong("%s is a histogram, and has buckets only", name)
	case bucket && (!rated || !in.merged):
		e.wrong("%s must be in histogram_quantile(…, sum by (le) (rate(…)))", name)
	}
}

// matchers reads the labels that a selector asks for.
func (e *expression) matchers() (labels []string) {
	for more := true; more; more = e.takeIf(",") {
		label, how, value := e.take(), e.take(), strings.Trim(e.take(), `"`)
		labels = append(labels, label)
		if _, err := regexp.Compile(value); err != nil || !slices.Contains([]string{"=", "!=", "=~", "!~"}, how) {
			e.wrong("the selector %s%s%q", label, how, value)
		}
		for _, code := range strings.Split(value, "|") {
			if label == signals.Code && !fault.Code(code).Known() {
				e.wrong("there is no code %s", code)
			}
		}
	}
	e.expect("}")
	return labels
}
