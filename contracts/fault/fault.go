package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Micro's error headers, as every NATS micro client reads them.
const (
	HeaderCode        = "Nats-Service-Error-Code"
	HeaderDescription = "Nats-Service-Error"
)

// DetailNowMs is the key in Detail under which the refusal of a request id for its time carries the server's clock, Unix
// ms: nothing was stored under that id, nor will be, and the next one is to be made by this clock.
const DetailNowMs = "now_ms"

// DetailFinal is the key in Detail that an UNKNOWN has where a repeat of the same request, by its id, will not tell what became of it either.
const DetailFinal = "final"

// DetailReason is the key in Detail under which a refusal has a name for programs, where its code and path do not tell: order_key_full.
const DetailReason = "reason"

// Error is a refusal or failure as a client sees it.
type Error struct {
	// Code is one of the closed list.
	Code Code `json:"code"`
	// Message says in one sentence what is wrong; it is for people.
	Message string `json:"message"`
	// Path is the field at fault as a JSON pointer (`/tasks/3/delay_ms`); empty where no field is.
	Path string `json:"path,omitempty"`
	// Detail carries what a program may need, such as the server's clock where a request id is refused for its time.
	Detail map[string]string `json:"detail,omitempty"`
	// RetryAfter is how long to wait before a retry; zero says nothing about it.
	RetryAfter time.Duration `json:"-"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("%s: %s: %s", e.Code, e.Path, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Is matches on the code, so that errors.Is(err, &fault.Error{Code: fault.Stale}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// New makes an Error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// At makes an Error that names the field at fault.
func At(code Code, path, format string, args ...any) *Error {
	return &Error{Code: code, Path: path, Message: fmt.Sprintf(format, args...)}
}

// After returns a copy of e that asks for a retry after d.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// From returns err as an *Error: itself where it is or wraps one, else Internal.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return New(Internal, "%v", err)
}

// CodeOf returns the code of err: Internal where err is not an *Error, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return From(err).Code
}

// wire is the body of an error answer.
type wire struct {
	Error
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// textBytesMax bounds the message and the path of an error on the wire. Both may quote what
// the caller sent, and an answer larger than the server takes would be none.
const textBytesMax = 2048

// Encode returns the two header values and the JSON body of e. The body is
// JSON whatever the content type of the request was, so that an error is
// readable in every client. A message or path that is too long is cut.
func Encode(e *Error) (code, description string, body []byte) {
	w := wire{Error: *e, RetryAfterMS: e.RetryAfter.Milliseconds()}
	w.Message, w.Path = shortened(e.Message), shortened(e.Path)
	body, err := json.Marshal(w)
	if err != nil {
		body = nil // only strings and numbers inside: cannot happen
	}
	return string(e.Code), w.Message, body
}

func shortened(s string) string {
	if len(s) <= textBytesMax {
		return s
	}
	return strings.ToValidUTF8(s[:textBytesMax], "") + "…"
}

// Decode is the inverse of Encode. It returns nil where code is empty, that
// is, where the answer is not an error.
func Decode(code, description string, body []byte) *Error {
	if code == "" {
		return nil
	}
	var w wire
	if json.Unmarshal(body, &w) != nil || string(w.Code) != code {
		w = wire{Error: Error{Code: Code(code), Message: description}}
	}
	e := w.Error
	e.RetryAfter = time.Duration(w.RetryAfterMS) * time.Millisecond
	if !e.Code.Known() {
		e.Message = fmt.Sprintf("%s: %s", e.Code, e.Message)
		e.Code = Internal
	}
	return &e
}
