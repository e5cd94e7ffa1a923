package pii

// Label names one of the types of personal or secret value that Weir knows.
// The built-in ones are the constants below; a user's own recognizers may
// bring others, which is why a label is a string and not a number.
type Label string

// The 37 built-in labels. Their order is their wire id, see [Info.ID].
const (
	PersonName  Label = "PERSON_NAME"
	DateOfBirth Label = "DATE_OF_BIRTH"
	Age         Label = "AGE"
	Username    Label = "USERNAME"

	EmailAddress  Label = "EMAIL_ADDRESS"
	PhoneNumber   Label = "PHONE_NUMBER"
	PostalAddress Label = "POSTAL_ADDRESS"
	Location      Label = "LOCATION"

	SocialSecurityNumber Label = "SOCIAL_SECURITY_NUMBER"
	NationalID           Label = "NATIONAL_ID"
	TaxID                Label = "TAX_ID"
	PassportNumber       Label = "PASSPORT_NUMBER"
	DriverLicense        Label = "DRIVER_LICENSE"

	PaymentCard      Label = "PAYMENT_CARD"
	CardSecurityCode Label = "CARD_SECURITY_CODE"
	IBAN             Label = "IBAN"
	BankAccount      Label = "BANK_ACCOUNT"
	CryptoWallet     Label = "CRYPTO_WALLET"

	Password         Label = "PASSWORD"
	APIKey           Label = "API_KEY"
	AuthToken        Label = "AUTH_TOKEN"
	PrivateKey       Label = "PRIVATE_KEY"
	ConnectionString Label = "CONNECTION_STRING"

	MedicalRecordNumber Label = "MEDICAL_RECORD_NUMBER"
	HealthInsuranceID   Label = "HEALTH_INSURANCE_ID"
	HealthData          Label = "HEALTH_DATA"

	IPAddress   Label = "IP_ADDRESS"
	DeviceID    Label = "DEVICE_ID"
	PersonalURL Label = "PERSONAL_URL"
	VehicleID   Label = "VEHICLE_ID"

	Organization Label = "ORGANIZATION"
	AccountID    Label = "ACCOUNT_ID"
	PersonalDate Label = "PERSONAL_DATE"

	EthnicityOrNationality Label = "ETHNICITY_OR_NATIONALITY"
	BeliefOrAffiliation    Label = "BELIEF_OR_AFFILIATION"
	SexualityOrGender      Label = "SEXUALITY_OR_GENDER"
	CriminalRecord         Label = "CRIMINAL_RECORD"
)

// Info describes a label.
type Info struct {
	// ID is the label's fixed number on the wire, from 1.
	ID int
	// Label is the name.
	Label Label
	// Stem begins the placeholders of this label, as PERSON in PERSON_Q7K2M.
	// It is upper-case ASCII letters only, and no two labels share one.
	Stem string
	// Direct says that the value identifies a person by itself. A label that
	// is not direct is a quasi-identifier: it matters only in a conversation
	// that also holds a direct one.
	Direct bool
	// Coarse is the one of nine published coarse categories that the label
	// folds to.
	Coarse string
	// Text is a short description for people.
	Text string
}

// Labels returns the built-in labels in the order of their ids.
func Labels() []Info {
	out := make([]Info, len(table))
	copy(out, table[:])
	return out
}

// Lookup returns what is known of a label. Of a label that is not built in it
// returns direct and category other_pii, the cautious reading, and the stem that
// [Stem] makes.
func Lookup(l Label) (info Info, builtin bool) {
	for i := range table {
		if table[i].Label == l {
			return table[i], true
		}
	}
	return Info{Label: l, Stem: Stem(l), Direct: true, Coarse: "other_pii", Text: "user-defined label"}, false
}

// anyStem begins placeholders of labels that give no stem of their own.
const anyStem = "VALUE"

// Stem returns what begins the placeholders of a label. Of one that is not built
// in it is the label's capitals, as STAFFBADGE of STAFF_BADGE; VALUE where there
// are too few of them, or where they are the stem of a built-in label.
func Stem(l Label) string {
	var own []byte
	for i := range len(l) {
		if l[i] >= 'A' && l[i] <= 'Z' {
			own = append(own, l[i])
		}
	}
	stem := string(own)
	for i := range table {
		if table[i].Label == l {
			return table[i].Stem
		}
		if table[i].Stem == stem {
			stem = anyStem
		}
	}
	if len(stem) < 2 {
		return anyStem
	}
	return stem
}

var table = [...]Info{
	{1, PersonName, "PERSON", true, "private_person", "name of a person"},
	{2, DateOfBirth, "BIRTHDATE", true, "private_date", "date of birth"},
	{3, Age, "AGE", false, "other_pii", "age of a person"},
	{4, Username, "USERNAME", true, "other_pii", "account name or handle"},
	{5, EmailAddress, "EMAIL", true, "private_email", "e-mail address"},
	{6, PhoneNumber, "PHONE", true, "private_phone", "phone, fax or messaging number"},
	{7, PostalAddress, "ADDRESS", true, "private_address", "street address, PO box or postcode"},
	{8, Location, "PLACE", false, "private_address", "place tied to a person"},
	{9, SocialSecurityNumber, "SSN", true, "account_number", "social insurance number"},
	{10, NationalID, "NATIONALID", true, "account_number", "national identity number"},
	{11, TaxID, "TAXID", true, "account_number", "tax number"},
	{12, PassportNumber, "PASSPORT", true, "account_number", "passport number"},
	{13, DriverLicense, "LICENSE", true, "account_number", "driving licence number"},
	{14, PaymentCard, "CARD", true, "account_number", "payment card number"},
	{15, CardSecurityCode, "CARDCODE", true, "account_number", "card security code, PIN or expiry"},
	{16, IBAN, "IBAN", true, "account_number", "international bank account number"},
	{17, BankAccount, "BANK", true, "account_number", "domestic account or routing number"},
	{18, CryptoWallet, "WALLET", true, "account_number", "cryptocurrency address"},
	{19, Password, "PASSWORD", true, "secret", "password, PIN or recovery phrase"},
	{20, APIKey, "APIKEY", true, "secret", "API key or generic secret"},
	{21, AuthToken, "TOKEN", true, "secret", "session, bearer or cookie token"},
	{22, PrivateKey, "PRIVATEKEY", true, "secret", "private key"},
	{23, ConnectionString, "DSN", true, "secret", "connection string with a secret"},
	{24, MedicalRecordNumber, "MRN", true, "account_number", "medical record number"},
	{25, HealthInsuranceID, "HEALTHID", true, "account_number", "health insurance number"},
	{26, HealthData, "HEALTH", true, "other_pii", "health data of a person"},
	{27, IPAddress, "IP", true, "other_pii", "IP address"},
	{28, DeviceID, "DEVICE", true, "other_pii", "device identifier"},
	{29, PersonalURL, "URL", true, "private_url", "address of a personal page"},
	{30, VehicleID, "VEHICLE", true, "other_pii", "vehicle number or licence plate"},
	{31, Organization, "ORG", false, "other_pii", "organization of a person"},
	{32, AccountID, "ACCOUNT", true, "account_number", "customer, employee or case number"},
	{33, PersonalDate, "DATE", false, "private_date", "date in a person's life"},
	{34, EthnicityOrNationality, "ORIGIN", true, "other_pii", "ethnic origin or nationality"},
	{35, BeliefOrAffiliation, "BELIEF", true, "other_pii", "religion, belief or membership"},
	{36, SexualityOrGender, "GENDER", true, "other_pii", "sexuality or gender"},
	{37, CriminalRecord, "CRIMINAL", true, "other_pii", "criminal record"},
}
