package main

import (
	"cmp"
	"fmt"
	"strings"

	_ "embed"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// endpoint is one verb of the public API.
type endpoint struct {
	Verb string
	// Admin endpoints are no domain's: their subject is yard.v1.admin.<verb>.
	Admin bool
	Does  string
	// Request and Response are the names of messages.
	Request, Response string
	// In and Out are examples, as JSON on one line.
	In, Out string
	// OfTasklist: the tasklist may be the last token of the subject.
	OfTasklist bool
	// Timeout is what the example's caller must be ready to wait; empty = its default.
	Timeout string
	// codes are the endpoint's own; commonCodes go with every one.
	codes []fault.Code
	// Notes are what a reader must know besides the fields.
	Notes []note
	// RequestOf and ResponseOf are earlier verbs, under which the page describes the same message.
	RequestOf, ResponseOf string
}

// note is a paragraph. One that several verbs have has a title, and all but the first of them name the first.
type note struct{ Title, Text, Of string }

// commonCodes may answer any request.
func commonCodes() []fault.Code {
	return []fault.Code{fault.InvalidArgument, fault.ResourceExhausted, fault.Unavailable, fault.Internal}
}

//go:embed endpoints.txt
var endpointsText string

// endpoints parses endpoints.txt, which says what its lines are. Always are the fields that no answer is without, by message.
func endpoints() (all []endpoint, always map[string][]string, err error) {
	notes, first := map[string]string{}, map[string]string{}
	always = map[string][]string{}
	for n, line := range strings.Split(endpointsText, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		var e *endpoint
		if len(all) > 0 {
			e = &all[len(all)-1]
		}
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
		case key == "always":
			words := strings.Fields(value)
			always[words[0]] = words[1:]
		case strings.HasPrefix(line, "@"):
			notes[key] = value
		case strings.HasPrefix(line, "## "):
			words := strings.Fields(line)
			next := endpoint{Verb: words[1], Request: words[2], Response: words[3]}
			for _, flag := range words[4:] {
				timeout, timed := strings.CutPrefix(flag, "timeout=")
				next.Admin, next.OfTasklist = next.Admin || flag == "admin", next.OfTasklist || flag == "tasklist"
				if timed {
					next.Timeout = timeout
				}
			}
			next.RequestOf, next.ResponseOf = first[next.Request], first[next.Response]
			for _, message := range words[2:4] {
				first[message] = cmp.Or(first[message], next.Verb)
			}
			all = append(all, next)
		case key == "does":
			e.Does = value
		case key == "in":
			e.In = value
		case key == "out":
			e.Out = value
		case key == "note" && strings.HasPrefix(value, "@"):
			e.Notes = append(e.Notes, note{strings.ToUpper(value[1:2]) + strings.ReplaceAll(value[2:], "-", " "), notes[value], first[value]})
			first[value] = cmp.Or(first[value], e.Verb)
		case key == "note":
			e.Notes = append(e.Notes, note{Text: value})
		case strings.HasPrefix(line, "codes:"):
			for _, code := range strings.Fields(line)[1:] {
				e.codes = append(e.codes, fault.Code(code))
			}
		default:
			return nil, nil, fmt.Errorf("endpoints.txt:%d: %q", n+1, line)
		}
	}
	return all, always, nil
}

// Subject is where an endpoint is asked.
func (e endpoint) Subject(domain string) string {
	if e.Admin {
		return topology.Admin(e.Verb)
	}
	return topology.API(domain, e.Verb)
}

// ID is its name where dots may not be.
func (e endpoint) ID() string {
	return strings.NewReplacer(".", "_", tasklistToken, "tasklist").Replace(e.Verb)
}

// tasklistToken stands for a tasklist in a subject.
const tasklistToken = "{tasklist}"

// WithTasklist: the subject ends with a tasklist.
func (e endpoint) WithTasklist() bool { return strings.HasSuffix(e.Verb, tasklistToken) }

// addresses has an endpoint for each subject.
func addresses(endpoints []endpoint) (all []endpoint) {
	for _, e := range endpoints {
		all = append(all, e)
		if e.OfTasklist {
			e.Verb += "." + tasklistToken
			all = append(all, e)
		}
	}
	return all
}
