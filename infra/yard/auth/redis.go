package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
)

const (
	// RedisACLFile is the ACL file of a Redis that serves matching and nothing else.
	RedisACLFile = "redis.acl"
	// RedisUser is matching's user there.
	RedisUser = "matching"
	// redisPassword is its password, beside the seeds.
	redisPassword = "redis.password"
)

// RedisPasswordFile is where the password of RedisUser is below the folder of Render.
func RedisPasswordFile(dir string) string { return filepath.Join(dir, keysDir, redisPassword) }

// renderRedis writes RedisACLFile, and the password if there is none. The ACL holds its digest only.
func renderRedis(dir string) error {
	password, err := password(RedisPasswordFile(dir))
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(password))
	text := "user default off\n" + topology.RedisACL(RedisUser, hex.EncodeToString(digest[:])) + "\n"
	return filelock.Replace(filepath.Join(dir, RedisACLFile), []byte(text))
}

func password(path string) (string, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		text := rand.Text()
		return text, filelock.Replace(path, []byte(text+"\n"))
	case err != nil:
		return "", err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("%s is empty: remove it to create a new password", path)
	}
	return text, nil
}
