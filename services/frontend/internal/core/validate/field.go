package validate

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Form is what is known of a request besides its body.
type Form struct {
	// JSON requests hold valid JSON payloads and valid UTF-8 by construction.
	JSON bool
	// Fresh is the id of a request that brings none.
	Fresh ids.RequestID
}

// at is the path of entry i of a list.
func at(list string, i int) string { return list + "/" + strconv.Itoa(i) }

// inside is what refuses a part of a request as what refuses the request. The checks of entries name the field in the
// entry, so that no path is built unless something is wrong.
func inside(path string, err error) error { return renamed("", path, err) }

// renamed is an error about a field under from as an error about the same field under to.
func renamed(from, to string, err error) error {
	var refused *fault.Error
	if !errors.As(err, &refused) {
		return err
	}
	own := *refused
	own.Path = to + strings.TrimPrefix(own.Path, from)
	return &own
}

func invalid(path, format string, args ...any) error {
	return fault.At(fault.InvalidArgument, path, format, args...)
}

// DomainToken checks the domain token of a subject.
func DomainToken(domain string) error {
	if err := ids.CheckName(domain); err != nil {
		return invalid("", "the domain in the subject %v", err)
	}
	if domain == topology.ReservedDomain {
		return invalid("", "%q is reserved and no domain", domain)
	}
	return nil
}

func name(path, s string) error {
	if err := ids.CheckName(s); err != nil {
		return invalid(path, "%v", err)
	}
	return nil
}

func typeName(path, s string) error {
	if err := ids.CheckTypeName(s); err != nil {
		return invalid(path, "%v", err)
	}
	return nil
}

// ifNamed checks a name that may be left out.
func ifNamed(check func(path, s string) error, path, s string) error {
	if s == "" {
		return nil
	}
	return check(path, s)
}

// notNext refuses a cursor.
func notNext() error { return invalid("/cursor", "is not the next_cursor of an answer") }

// ReasonOf is the reason of what somebody did; by and why may be left out.
func ReasonOf(done, by, why string) string {
	if by != "" {
		done += " by " + by
	}
	if why != "" {
		done += ": " + why
	}
	return done
}

// text checks a text for people.
func text(path, s string, bytesMax int) error {
	if len(s) > bytesMax {
		return invalid(path, "is %d bytes long, at most %d are allowed", len(s), bytesMax)
	}
	if !utf8.ValidString(s) {
		return invalid(path, "is not valid UTF-8")
	}
	return nil
}

// key checks a key, or an id, that clients make up.
func key(path, s string, bytesMax int) error {
	if len(s) > bytesMax {
		return invalid(path, "has %d bytes, at most %d are allowed", len(s), bytesMax)
	}
	if !utf8.ValidString(s) {
		return invalid(path, "is not UTF-8")
	}
	return nil
}

// known checks the number of an enum's value.
func known(path string, value int32, names map[int32]string) error {
	if _, ok := names[value]; !ok {
		return invalid(path, "%d is not known", value)
	}
	return nil
}

// states checks those that a list names.
func states[S ~int32](all []S, names map[int32]string, noun string) error {
	if len(all) > len(names) {
		return invalid("/states", "holds %d entries, there are not so many states", len(all))
	}
	return each("/states", all, func(path string, s S) error {
		if s == 0 || known("", int32(s), names) != nil {
			return invalid(path, "%d is %s", s, noun)
		}
		return nil
	})
}

// each checks the entries of a list.
func each[T any](list string, all []T, check func(path string, one T) error) error {
	for i, one := range all {
		if err := check("", one); err != nil {
			return inside(at(list, i), err)
		}
	}
	return nil
}

// few checks the length of a list that may hold nothing.
func few(path string, n, most int) error {
	if n > most {
		return invalid(path, "holds %d entries, at most %d are allowed", n, most)
	}
	return nil
}

// count checks the length of a list that must hold something.
func count(path string, n int) error {
	if n < 1 || n > BatchMax {
		return invalid(path, "holds %d entries, 1 to %d are allowed", n, BatchMax)
	}
	return nil
}

// between checks a number.
func between[N int32 | int64 | float64](path string, n, from, to N) error {
	if !(n >= from && n <= to) { // written so that NaN fails
		return invalid(path, "is %v, %v to %v is allowed", n, from, to)
	}
	return nil
}

// optional checks a number whose zero means a default.
func optional[N int32 | int64 | float64](path string, n, from, to N) error {
	if n == 0 {
		return nil
	}
	return between(path, n, from, to)
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

// payload checks a payload; nil is none.
func payload(path string, p *yardv1.Payload, bytesMax int, form Form) error {
	if p == nil {
		return nil
	}
	if len(p.Data) > bytesMax {
		return invalid(path, "is %d bytes long, at most %d are allowed", len(p.Data), bytesMax)
	}
	switch p.Encoding {
	case yardv1.Encoding_ENCODING_BINARY:
		return nil
	case yardv1.Encoding_ENCODING_JSON:
		if len(p.Data) > 0 && !form.JSON && !codec.ValidJSON(p.Data) {
			return invalid(path, "its encoding says JSON, but its data is not one JSON value")
		}
		return nil
	}
	return invalid(path, "has the unknown encoding %d", p.Encoding)
}

// firstError returns the first of errs, which must be cheap to work out all.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
