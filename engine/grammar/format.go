package grammar

import "fmt"

// formats are the string formats that are enforced, as regular expressions.
// Each accepts only what its specification does; those for addresses accept
// the usual part of it. RFC 3339 for dates, without leap seconds; RFC 4122;
// ISO 8601 for durations.
func formats() map[string]string {
	const (
		day = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))` +
			`|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
		clock  = `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
		label  = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?`
		host   = `(?:` + label + `\.){0,3}` + label
		domain = `(?:` + label + `\.){1,3}[A-Za-z]{2,20}`
		octet  = `(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
		atom   = `[A-Za-z0-9_+-]{1,20}`
	)
	return map[string]string{
		"date":      `^` + day + `$`,
		"time":      `^` + clock + `$`,
		"date-time": `^` + day + `T` + clock + `$`,
		"duration": `^P(?:[0-9]{1,6}W|(?:[0-9]{1,6}Y(?:[0-9]{1,6}M(?:[0-9]{1,6}D)?)?|[0-9]{1,6}M(?:[0-9]{1,6}D)?|[0-9]{1,6}D)(?:T` + durationTime + `)?|T` +
			durationTime + `)$`,
		"uuid":     `^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`,
		"email":    `^` + atom + `(?:\.` + atom + `){0,2}@` + domain + `$`,
		"hostname": `^` + host + `$`,
		"ipv4":     `^` + octet + `(?:\.` + octet + `){3}$`,
		"ipv6":     ipv6(`[0-9A-Fa-f]{1,4}`),
		"uri":      `^[a-z][a-z0-9+.-]{1,15}://` + host + `(?::[1-9][0-9]{0,3})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*(?:\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?$`,
	}
}

const durationTime = `(?:[0-9]{1,6}H(?:[0-9]{1,6}M(?:[0-9]{1,6}S)?)?|[0-9]{1,6}M(?:[0-9]{1,6}S)?|[0-9]{1,6}S)`

// ipv6 is eight groups, or fewer with :: for those left out.
func ipv6(group string) string {
	expr := fmt.Sprintf(`^(?:%[1]s(?::%[1]s){7}|::(?:%[1]s(?::%[1]s){0,6})?`, group)
	for before := 1; before <= 7; before++ {
		expr += fmt.Sprintf(`|%[1]s(?::%[1]s){%[2]d}::`, group, before-1)
		if after := 7 - before; after > 0 {
			expr += fmt.Sprintf(`(?:%[1]s(?::%[1]s){0,%[2]d})?`, group, after-1)
		}
	}
	return expr + `)$`
}
