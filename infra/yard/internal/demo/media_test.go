package demo

import (
	"errors"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestEveryGoodImageIsResized(t *testing.T) {
	for _, name := range goodImages() {
		t.Run(name, func(t *testing.T) {
			out, err := resize(upload{Image: name})
			testkit.NoError(t, err)
			if len(out.Thumbnails) != 3 {
				t.Fatalf("%d thumbnails", len(out.Thumbnails))
			}
			seen := map[string]bool{}
			for i, width := range []int{128, 64, 32} {
				small := out.Thumbnails[i]
				if small.Width != width || small.Height != width*out.Height/out.Width || small.Bytes == 0 || len(small.SHA256) != 64 {
					t.Errorf("thumbnail %d of a %d×%d image: %+v", width, out.Width, out.Height, small)
				}
				seen[small.SHA256] = true
			}
			if len(seen) != 3 {
				t.Errorf("sizes share their content: %v", out.Thumbnails)
			}
			again, err := resize(upload{Image: name, Bytes: 1 << 20})
			if err != nil || again.Thumbnails[0] != out.Thumbnails[0] {
				t.Errorf("the same image gives %v and %v (%v)", out.Thumbnails[0], again.Thumbnails[0], err)
			}
		})
	}
}

func TestBrokenUploadsFailForGood(t *testing.T) {
	uploads := []upload{{Image: "no-such-file.png"}, {Image: "../media.go"}}
	for _, name := range goodImages() {
		uploads = append(uploads, upload{Image: name, Bytes: brokenAfter})
	}
	for _, u := range uploads {
		if _, err := resize(u); !errors.Is(err, errForGood) {
			t.Errorf("%+v: %v", u, err)
		}
	}
}
