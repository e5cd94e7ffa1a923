package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// Schemes of [Secret].
const (
	schemeEnv      = "env"
	schemeFile     = "file"
	schemeKeychain = "keychain"
	schemeClient   = "client"
	schemeAuto     = "auto"
)

// keychainService is the name under which Weir's secrets lie in the system's
// key store.
const keychainService = "weir"

// keychainWait bounds a call of the key store, which may want a person or a
// session bus that is not there.
const keychainWait = 2 * time.Second

// maxSecretBytes bounds a file that holds a secret.
const maxSecretBytes = 64 << 10

// Secret says where a secret is, and does not hold it: env:VAR, file:PATH,
// keychain:NAME, client (the caller's own key) or auto (Weir makes one).
type Secret struct{ scheme, name string }

// errLiteral is the fault of a secret that is written out.
var errLiteral = errors.New("must be a reference to a secret and not the secret itself")

const hintLiteral = "put it in an environment variable and write env:NAME, or write file:PATH or keychain:NAME"

// IsZero says that there is no secret.
func (s Secret) IsZero() bool { return s.scheme == "" }

// Client says that the caller's own key is to be passed on.
func (s Secret) Client() bool { return s.scheme == schemeClient }

// Auto says that Weir makes and keeps the secret itself.
func (s Secret) Auto() bool { return s.scheme == schemeAuto }

// String returns the reference as it is written in the file.
func (s Secret) String() string {
	if s.name == "" {
		return s.scheme
	}
	return s.scheme + ":" + s.name
}

// UnmarshalText reads a reference. The error does not show what was read.
func (s *Secret) UnmarshalText(text []byte) error {
	t := string(text)
	if t == "" || t == schemeClient || t == schemeAuto {
		*s = Secret{scheme: t}
		return nil
	}
	scheme, name, ok := strings.Cut(t, ":")
	switch {
	case !ok || name == "":
		return errLiteral
	case scheme == schemeEnv && !envName.MatchString(name):
		return errors.New("what follows env: is not the name of an environment variable")
	case scheme == schemeEnv, scheme == schemeFile, scheme == schemeKeychain:
		*s = Secret{scheme, name}
		return nil
	}
	return errLiteral
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Value is a header's value: written out, or a reference if it is secret.
type Value struct {
	text string
	ref  Secret
}

// UnmarshalText reads a value.
func (v *Value) UnmarshalText(text []byte) error {
	scheme, _, _ := strings.Cut(string(text), ":")
	switch scheme {
	case schemeEnv, schemeFile, schemeKeychain:
		v.text = ""
		return v.ref.UnmarshalText(text)
	}
	if looksSecret(string(text)) {
		return errLiteral
	}
	*v = Value{text: string(text)}
	return nil
}

// String returns the value as it is written in the file.
func (v Value) String() string {
	if v.ref.IsZero() {
		return v.text
	}
	return v.ref.String()
}

// secretPattern finds what is a credential by its look: a scheme of HTTP
// authentication, a vendor's prefix, or a long run that no word has.
var secretPattern = regexp.MustCompile(`(?i)^(bearer|basic|token) |^(sk|pk|rk|ghp|gho|glpat|xox[abpr]|hf|gsk|aiza)[-_]?[a-z0-9]|^eyj|[a-z0-9+/_=]{32,}`)

func looksSecret(text string) bool { return secretPattern.MatchString(text) }

// Secret returns the secret that s refers to. Of client and auto there is none
// to return, nor of none: "". The error names the place and not the content.
func (c *Config) Secret(ctx context.Context, s Secret) (string, error) {
	var (
		value string
		err   error
	)
	switch s.scheme {
	case schemeEnv:
		var ok bool
		if value, ok = c.env[s.name]; !ok {
			return "", fmt.Errorf("environment variable %s is not set", s.name)
		}
	case schemeFile:
		value, err = readSecret(s.name)
	case schemeKeychain:
		value, err = readKeychain(ctx, s.name)
	default:
		return "", nil
	}
	if err != nil {
		return "", err
	}
	value = strings.TrimRight(value, "\r\n")
	if value == "" {
		return "", fmt.Errorf("%s is empty", s)
	}
	return value, nil
}

// Value returns what a header's value is or refers to.
func (c *Config) Value(ctx context.Context, v Value) (string, error) {
	if v.ref.IsZero() {
		return v.text, nil
	}
	return c.Secret(ctx, v.ref)
}

func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read secret: %w", err)
	case len(b) > maxSecretBytes:
		return "", fmt.Errorf("read secret: %s is too long to be one", path)
	}
	return string(b), nil
}

// readKeychain asks the system's key store. The library cannot be interrupted,
// so a call that hangs is left behind and its answer dropped.
func readKeychain(ctx context.Context, name string) (string, error) {
	type answer struct {
		value string
		err   error
	}
	got := make(chan answer, 1) // room for an answer nobody waits for
	go func() {
		v, err := keyring.Get(keychainService, name)
		got <- answer{v, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, keychainWait)
	defer cancel()
	select {
	case a := <-got:
		if a.err != nil {
			return "", fmt.Errorf("read keychain entry %s: %w", name, a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		return "", fmt.Errorf("read keychain entry %s: %w", name, ctx.Err())
	}
}
