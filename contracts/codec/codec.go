// Package codec turns request and response bodies into the messages of the
// public API and back, as JSON or protobuf by content type.
//
// Owns: what a content type means, and strictness: unknown fields are refused
// in both forms. Never does: check values; that is the frontend's validation.
// On failure: a *fault.Error with INVALID_ARGUMENT and the path of the field.
package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// ContentType is how a body is written.
type ContentType string

// The content types.
const (
	JSON     ContentType = "application/json"
	Protobuf ContentType = "application/protobuf"
)

// HeaderContentType is the header that names it.
const HeaderContentType = "Content-Type"

// HeaderBy is the header with the name of the person or program that sends a request, for the list of what operators did.
const HeaderBy = "Yard-By"

// ParseContentType reads the header's value; empty means JSON. Parameters such
// as a charset are ignored. Anything else is INVALID_ARGUMENT.
func ParseContentType(s string) (ContentType, error) {
	switch s {
	case "", string(JSON):
		return JSON, nil
	case string(Protobuf):
		return Protobuf, nil
	}
	media, _, err := mime.ParseMediaType(s)
	if err == nil {
		switch media {
		case string(JSON):
			return JSON, nil
		case string(Protobuf), "application/x-protobuf":
			return Protobuf, nil
		}
	}
	return "", fault.At(fault.InvalidArgument, "", "unknown content type %q: want %s or %s", s, JSON, Protobuf)
}

// Message is a generated message of the public API.
type Message interface {
	MarshalVT() ([]byte, error)
	UnmarshalVT(data []byte) error
}

// request is a message that can tell of fields it does not know.
type request interface {
	UnknownField() (path string, found bool)
}

var (
	jsonIn = json.JoinOptions(
		json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(wholeNumber[int64]), json.UnmarshalFromFunc(wholeNumber[int32]))),
	)
	jsonOut = json.JoinOptions(jsonv1.OmitEmptyWithLegacySemantics(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
)

// Marshal writes m. It cannot fail on a message of ours; an error is INTERNAL.
func Marshal(ct ContentType, m Message) ([]byte, error) {
	var b []byte
	var err error
	if ct == Protobuf {
		b, err = m.MarshalVT()
	} else {
		b, err = json.Marshal(m, jsonOut)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "encode %T: %v", m, err)
	}
	return b, nil
}

// Unmarshal reads a response leniently: a client must accept a newer server's fields.
func Unmarshal(ct ContentType, data []byte, m Message) error {
	var err error
	if ct == Protobuf {
		err = m.UnmarshalVT(data)
	} else {
		err = json.Unmarshal(data, m)
	}
	if err != nil {
		return fault.New(fault.Internal, "decode %T: %v", m, err)
	}
	return nil
}

// UnmarshalRequest reads a request strictly. An empty JSON body is an empty request.
func UnmarshalRequest(ct ContentType, data []byte, m Message) error {
	if ct == Protobuf {
		if err := m.UnmarshalVT(data); err != nil {
			return fault.At(fault.InvalidArgument, "", "bad protobuf: %v", err)
		}
		if r, ok := m.(request); ok {
			if path, found := r.UnknownField(); found {
				return fault.At(fault.InvalidArgument, path, "unknown field")
			}
		}
		return nil
	}
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, m, jsonIn); err != nil {
		return jsonFault(err)
	}
	return nil
}

// wholeNumber reads a number however JSON writes it: some languages write 100 as 100.0 or 1e2.
func wholeNumber[N int32 | int64](dec *jsontext.Decoder, into *N) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		const exact = 1 << 53 // a float64 tells whole numbers apart up to here
		f, err := strconv.ParseFloat(string(value), 64)
		if err != nil || math.Abs(f) > exact || math.Trunc(f) != f {
			return fmt.Errorf("%s is not a whole number, or too large", value)
		}
		n = int64(f)
	}
	if *into = N(n); int64(*into) != n {
		return fmt.Errorf("%s is too large", value)
	}
	return nil
}

// pathBytesMax bounds a path: a payload can be nested deeper than anybody reads.
const pathBytesMax = 200

// pathTo is the path of what is wrong, cut if it is long.
func pathTo(p jsontext.Pointer) string {
	if len(p) <= pathBytesMax {
		return string(p)
	}
	return strings.ToValidUTF8(string(p[:pathBytesMax]), "") + "..."
}

// jsonFault says what is wrong and where, without the Go types of the decoder's text.
func jsonFault(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		path := pathTo(semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return fault.At(fault.InvalidArgument, path, "unknown field")
		case semantic.Err != nil && semantic.GoType != nil && strings.Contains(semantic.Err.Error(), "cannot"):
			return fault.At(fault.InvalidArgument, path, "wrong type: a JSON %s does not fit here", semantic.JSONKind)
		case semantic.Err != nil:
			return fault.At(fault.InvalidArgument, path, "%v", semantic.Err)
		}
		return fault.At(fault.InvalidArgument, path, "wrong type: a JSON %s does not fit here", semantic.JSONKind)
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return fault.At(fault.InvalidArgument, pathTo(syntactic.JSONPointer), "bad JSON at byte %d: %v", syntactic.ByteOffset, syntactic.Err)
	}
	return fault.At(fault.InvalidArgument, "", "bad JSON: %v", err)
}

// depthMax is how deep a JSON value of a request in protobuf may be nested. An answer in JSON has
// it inside other values, and takes no more than 10,000 levels in all.
const depthMax = 9000

// ValidJSON tells whether b is one JSON value that an answer can hold, as a JSON payload
// must be.
func ValidJSON(b []byte) bool {
	if !jsontext.Value(b).IsValid() {
		return false
	}
	if len(b) <= 2*depthMax { // too short to be deeper
		return true
	}
	dec := jsontext.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return errors.Is(err, io.EOF)
		}
		if dec.StackDepth() > depthMax {
			return false
		}
	}
}
