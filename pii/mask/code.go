package mask

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"weir/pii"
)

// Lengths of the code behind a placeholder's stem, in letters. Five give 25
// bits: enough that a text holds one by chance almost never, few enough that
// models copy them. A clash takes more letters of the same code.
const (
	codeMin = 5
	codeMax = 12
	// formLetters tell apart the surface forms of one value.
	formLetters = 2
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

var base32Code = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// mac is the book's keyed hash over parts, which are framed by their lengths
// so that no two lists of parts give the same input.
func mac(key *[32]byte, parts ...string) [sha256.Size]byte {
	h := hmac.New(sha256.New, key[:])
	for _, p := range parts {
		h.Write(strconv.AppendInt(nil, int64(len(p)), 10))
		h.Write([]byte{':'})
		h.Write([]byte(p))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// valueCode is the endless code of a value; a placeholder shows its first
// letters. Its first five always hold a digit and a letter, so that no
// placeholder is made of words that prose could contain.
func valueCode(key *[32]byte, label pii.Label, normal string) string {
	for n := 0; ; n++ {
		sum := mac(key, "code", strconv.Itoa(n), string(label), normal)
		code := base32Code.EncodeToString(sum[:])
		head := code[:codeMin]
		if strings.ContainsAny(head, "234567") && strings.ContainsAny(head, alphabet[:26]) {
			return code
		}
	}
}

// formCode tells the exact form of a value from its other forms.
func formCode(key *[32]byte, label pii.Label, exact string) string {
	sum := mac(key, "form", string(label), exact)
	return base32Code.EncodeToString(sum[:])
}

// normalise maps the surface forms of one value to one string. What counts as
// the same depends on the label: separators mean nothing in a phone number,
// case means nothing in a name, and in a secret every byte counts.
func normalise(label pii.Label, value string) string {
	switch label {
	case pii.Password, pii.APIKey, pii.AuthToken, pii.PrivateKey, pii.ConnectionString, pii.CryptoWallet:
		return value
	}
	s := strings.Map(foldRune, norm.NFKC.String(value))
	if numeric(label) {
		s = strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' {
				return r
			}
			return -1
		}, s)
	} else {
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || zeroWidth(r) }), " ")
	}
	if s == "" {
		return value
	}
	return s
}

// numeric reports labels whose values are numbers or codes that people group
// with separators as they like.
func numeric(label pii.Label) bool {
	switch label {
	case pii.PhoneNumber, pii.SocialSecurityNumber, pii.NationalID, pii.TaxID, pii.PassportNumber,
		pii.DriverLicense, pii.PaymentCard, pii.CardSecurityCode, pii.IBAN, pii.BankAccount,
		pii.MedicalRecordNumber, pii.HealthInsuranceID, pii.DeviceID, pii.VehicleID, pii.AccountID:
		return true
	}
	return false
}
