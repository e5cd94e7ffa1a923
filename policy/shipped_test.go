package policy_test

import (
	"io/fs"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"weir/pii"
	"weir/policy"
)

// shippedSettings is the shipped data.yaml.
func shippedSettings(t *testing.T) map[string]any {
	t.Helper()
	text, err := fs.ReadFile(policy.Shipped(), "data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]any
	if err := yaml.UnmarshalWithOptions(text, &settings, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return settings
}

// The defaults that the label taxonomy proposes. Whoever changes one here knows
// that users' values change their way.
func TestEveryLabelHasItsDefault(t *testing.T) {
	t.Parallel()
	want := map[string]any{}
	for _, info := range pii.Labels() {
		want[string(info.Label)] = "mask"
	}
	for action, labels := range map[string][]pii.Label{
		"keep_local": {
			pii.SocialSecurityNumber, pii.NationalID, pii.TaxID, pii.PassportNumber, pii.DriverLicense,
			pii.PaymentCard, pii.MedicalRecordNumber, pii.HealthInsuranceID,
		},
		"refuse": {
			pii.CardSecurityCode, pii.Password, pii.APIKey, pii.AuthToken, pii.PrivateKey, pii.ConnectionString,
		},
		"ask_user": {
			pii.HealthData, pii.EthnicityOrNationality, pii.BeliefOrAffiliation, pii.SexualityOrGender,
			pii.CriminalRecord,
		},
	} {
		for _, l := range labels {
			want[string(l)] = action
		}
	}
	if diff := cmp.Diff(want, shippedSettings(t)["actions"]); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// The words are pii's own: a policy cannot import them.
func TestEveryLabelHasItsWords(t *testing.T) {
	t.Parallel()
	want := map[string]any{
		"image": "image", "audio": "audio", "file": "file", "encrypted": "encrypted content",
		"unknown": "content of an unknown type", "unexamined": "text that could not be examined in time",
	}
	for _, info := range pii.Labels() {
		want[string(info.Label)] = info.Text
	}
	if diff := cmp.Diff(want, shippedSettings(t)["words"]); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}
