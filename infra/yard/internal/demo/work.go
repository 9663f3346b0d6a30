package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"image"
	"image/jpeg"
	_ "image/png" // the decoder of what users upload
	"math/rand/v2"
	"time"

	"golang.org/x/image/draw"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// handler registers a function for the tasks of a type.
func handler[In, Out any](handle func(context.Context, In) (Out, error)) func(w *yard.Worker, taskType string) {
	return func(w *yard.Worker, taskType string) { yard.Handle(w, taskType, handle) }
}

// pick returns any of them.
func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// relayTakes is how long the relay takes for a message. It is not real.
const relayTakes = 2500 * time.Microsecond

// message is the payload of an e-mail task.
type message struct {
	Name    string `json:"name"`
	Email   string `json:"email"`
	Subject string `json:"subject"`
}

// sentMessage is the result of an e-mail task.
type sentMessage struct {
	MessageID string `json:"message_id"`
	To        string `json:"to"`
}

// newMessage makes messages to any customer, each with a number in its subject.
func newMessage(subject string) func(r *rand.Rand) any {
	return func(r *rand.Rand) any {
		first := pick(r, []string{"Zoë", "Liam", "Aylin", "Søren", "Chidi", "Mei", "Jürgen", "Inés"})
		last := pick(r, []string{"O'Brien", "Müller", "Okafor", "Łukasik", "Chen", "García & Hijos", "Ødegård", "Smith"})
		return message{
			Name: first + " " + last, Email: fmt.Sprintf("customer%05d@example.com", r.IntN(1e5)),
			Subject: fmt.Sprintf(subject, r.IntN(1e6)),
		}
	}
}

// sendMessage hands a message to the relay. The message's id is the task's, so a
// repeated attempt sends what mail servers know as the same one.
func sendMessage(ctx context.Context, m message) (sentMessage, error) {
	if !backoff.Sleep(ctx, relayTakes) {
		return sentMessage{}, context.Cause(ctx)
	}
	return sentMessage{MessageID: "<" + yard.Info(ctx).TaskID + "@shop.example>", To: m.Email}, nil
}

// photo is what all users upload.
//
//go:embed images/video-001.png
var photo []byte

const (
	brokenAfter      = 1000 // bytes of an upload that broke off
	thumbnailQuality = 80   // of JPEG, 1..100
)

// upload is the payload of a thumbnail task.
type upload struct {
	Album string `json:"album"`
	// Bytes is how much of the file has come; 0 is all of it.
	Bytes int `json:"bytes,omitempty"`
}

// thumbnail is one resized image; a task results in several.
type thumbnail struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	Bytes  int `json:"bytes"`
}

func newUpload(r *rand.Rand) any {
	u := upload{Album: fmt.Sprintf("album-%06d", r.IntN(1e6))}
	if r.Float64() < brokenUploads {
		u.Bytes = brokenAfter
	}
	return u
}

// resize makes the thumbnails of an upload. A file that does not decode never
// will: that error is for good.
func resize(_ context.Context, u upload) ([]thumbnail, error) {
	file := photo
	if u.Bytes > 0 {
		file = file[:min(u.Bytes, len(file))]
	}
	source, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, yard.NonRetryable(fmt.Errorf("%w: decode the upload: %w", errForGood, err))
	}
	var made []thumbnail
	for _, width := range []int{128, 64, 32} {
		small := image.NewRGBA(image.Rect(0, 0, width, width*source.Bounds().Dy()/source.Bounds().Dx()))
		draw.CatmullRom.Scale(small, small.Bounds(), source, source.Bounds(), draw.Src, nil)
		var encoded bytes.Buffer
		if err := jpeg.Encode(&encoded, small, &jpeg.Options{Quality: thumbnailQuality}); err != nil {
			return nil, fmt.Errorf("encode a thumbnail: %w", err)
		}
		made = append(made, thumbnail{Width: width, Height: small.Bounds().Dy(), Bytes: encoded.Len()})
	}
	return made, nil
}
