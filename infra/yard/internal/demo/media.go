package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"image"
	_ "image/gif" // decoders of what users upload
	"image/jpeg"
	_ "image/png"
	"math/rand/v2"
	"time"

	"golang.org/x/image/draw"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

const (
	typeThumbnail = "image.thumbnail"
	// brokenUploads is the fraction of uploads that broke off, after brokenAfter
	// bytes: what came does not decode.
	brokenUploads    = 0.02
	brokenAfter      = 1000
	thumbnailQuality = 80 // of JPEG, 1..100
)

//go:embed images/*.png images/*.jpeg images/*.gif
var imageFiles embed.FS

// upload is the payload of a thumbnail task.
type upload struct {
	Album string `json:"album"`
	Image string `json:"image"`
	// Bytes is how much of the file has come; 0 is all of it.
	Bytes int `json:"bytes,omitempty"`
}

// thumbnail is one resized image.
type thumbnail struct {
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// thumbnails is the result of a thumbnail task.
type thumbnails struct {
	Format     string      `json:"format"`
	Width      int         `json:"width"`
	Height     int         `json:"height"`
	Thumbnails []thumbnail `json:"thumbnails"`
}

// newMedia is the tenant with work for the CPU.
func newMedia() tenant {
	return tenant{
		domain: "media", tasklist: "thumbnails", description: "A photo site that makes thumbnails",
		types: []yard.TaskType{{
			Name: typeThumbnail, StartToClose: 30 * time.Second, HeartbeatTimeout: 10 * time.Second,
			Retry: &yard.RetryPolicy{MaxAttempts: 3, InitialInterval: 500 * time.Millisecond},
		}},
		concurrency: 2,
		register: func(w *yard.Worker) {
			yard.Handle(w, typeThumbnail, func(_ context.Context, u upload) (thumbnails, error) {
				return resize(u)
			})
		},
		flows: []flow{{every: 1500 * time.Millisecond, tasks: album}},
	}
}

// album is a set of images uploaded together.
func album(r *rand.Rand, scale float64) []yard.Task {
	name := fmt.Sprintf("album-%06d", r.IntN(1e6))
	tasks := make([]yard.Task, scaled(r, float64(8+r.IntN(20))*scale))
	for i := range tasks {
		u := upload{Album: name, Image: pick(r, goodImages())}
		if r.Float64() < brokenUploads {
			u.Bytes = brokenAfter
		}
		tasks[i] = yard.Task{Type: typeThumbnail, Payload: u}
	}
	return tasks
}

func goodImages() []string {
	return []string{"video-001.png", "video-001.jpeg", "video-005.gray.gif", "triangle-001.gif"}
}

// resize makes the thumbnails of an upload. A file that does not decode never
// will: that error is for good.
func resize(u upload) (thumbnails, error) {
	file, err := imageFiles.ReadFile("images/" + u.Image)
	if err != nil {
		return thumbnails{}, yard.NonRetryable(fmt.Errorf("%w: %w", errForGood, err))
	}
	if u.Bytes > 0 {
		file = file[:min(u.Bytes, len(file))]
	}
	source, format, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return thumbnails{}, yard.NonRetryable(fmt.Errorf("%w: decode %s: %w", errForGood, u.Image, err))
	}
	bounds := source.Bounds()
	out := thumbnails{Format: format, Width: bounds.Dx(), Height: bounds.Dy()}
	for _, width := range []int{128, 64, 32} {
		small := image.NewRGBA(image.Rect(0, 0, width, max(width*bounds.Dy()/bounds.Dx(), 1)))
		draw.CatmullRom.Scale(small, small.Bounds(), source, bounds, draw.Src, nil)
		var encoded bytes.Buffer
		if err := jpeg.Encode(&encoded, small, &jpeg.Options{Quality: thumbnailQuality}); err != nil {
			return thumbnails{}, fmt.Errorf("encode a thumbnail of %s: %w", u.Image, err)
		}
		sum := sha256.Sum256(encoded.Bytes())
		out.Thumbnails = append(out.Thumbnails, thumbnail{
			Width: width, Height: small.Bounds().Dy(), Bytes: encoded.Len(), SHA256: hex.EncodeToString(sum[:]),
		})
	}
	return out, nil
}
