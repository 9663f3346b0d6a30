package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

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
	text, err := kept(path, func() (string, error) { return rand.Text(), nil })
	if err == nil && text == "" {
		err = fmt.Errorf("%s is empty: remove it to create a new password", path)
	}
	return text, err
}
