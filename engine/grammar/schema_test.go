package grammar_test

import (
	"testing"
)

// What a schema takes and what it does not. Each row is a text; those under
// "no" begin well or are near misses.
func TestSchemas(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	for name, test := range map[string]struct {
		schema  string
		yes, no []string
	}{
		"object in order": {
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`,
			[]string{`{"a":1,"b":"x"}`, `{"a": 1, "b": "x"}`, "{\n  \"a\": 1,\n  \"b\": \"\"\n}", "\n\n{\"a\":-10,\"b\":\"\"}"},
			[]string{`{"b":"x","a":1}`, `{"a":1}`, `{"a":1,"b":"x","c":1}`, `{"a":01,"b":""}`, `{"a":1.0,"b":""}`, `{"a":1 ,"b":""}`, "\n\n\n{\"a\":1,\"b\":\"\"}", `{"a":  1,"b":""}`},
		},
		"optional members": {
			`{"type":"object","properties":{"a":{},"b":{},"c":{}},"required":["b"],"additionalProperties":false}`,
			[]string{`{"b":1}`, `{"a":1,"b":2}`, `{"b":2,"c":3}`, `{"a":[],"b":{},"c":null}`},
			[]string{`{}`, `{"a":1}`, `{"a":1,"c":2}`, `{"b":1,"a":2}`, `{"b":1,}`},
		},
		"other members": {
			`{"type":"object","properties":{"ab":{"type":"integer"}},"additionalProperties":{"type":"boolean"}}`,
			[]string{`{}`, `{ }`, `{"ab":1}`, `{"ab":1,"a":true}`, `{"abc":false}`, `{"a":true,"abc":false,"":true}`, `{"\"":true}`, `{"\n":true,"\u0001":true}`},
			[]string{`{"ab":true}`, `{"a":1}`, `{"a":true,"ab":1}`, `{"a":true,"a":true}`, `{"":true,"":true}`, `{"\u0061b":true}`, `{"a":true,"b":true,"a":true}`},
		},
		"any object": {
			`{"type":"object"}`,
			[]string{`{}`, `{"a":{"a":{"a":[1,"x",null,true,{"a":0}]}}}`, `{"a":{"b":1},"b":{"b":1}}`, `{"é😀":"\ud83d\ude00\u00e9\/"}`},
			[]string{`[]`, `1`, `{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `{"a":"\ud83d"}`, `{"a":"\ude00"}`, `{"a":"\x"}`, "{\"a\":\"\n\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xc0\xaf\"}"},
		},
		"arrays": {
			`{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}`,
			[]string{`[1]`, `[1,2,3]`, "[\n\t1,\n\t2\n]", `[ 1 ]`},
			[]string{`[]`, `[1,2,3,4]`, `[1,]`, `["a"]`},
		},
		"tuples": {
			`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":{"type":"null"},"minItems":2}`,
			[]string{`["",1]`, `["",1,null,null]`},
			[]string{`[]`, `[""]`, `[1,""]`, `["",1,1]`},
		},
		"tuple without more": {
			`{"type":"array","prefixItems":[{"type":"string"}],"items":false}`,
			[]string{`[]`, `["a"]`},
			[]string{`["a",1]`, `[1]`},
		},
		"lengths": {
			`{"type":"string","minLength":2,"maxLength":3}`,
			[]string{`"ab"`, `"äöü"`, `"😀😀"`, `"\ud83d\ude00\n"`, `"\u0041\\\""`},
			[]string{`"a"`, `"abcd"`, `"\ud83d\ude00"`, `""`},
		},
		"pattern somewhere": {
			`{"type":"string","pattern":"b+"}`,
			[]string{`"b"`, `"abba"`, `"a\u0062c"`, `"\nb"`},
			[]string{`""`, `"a"`},
		},
		"pattern of all": {
			`{"type":"string","pattern":"^[a-c\\u00e9]{2,3}$"}`,
			[]string{`"ab"`, `"aéc"`, `"\u00e9b"`},
			[]string{`"a"`, `"abca"`, `"abx"`, `"ab\n"`},
		},
		"pattern with escapes": {
			`{"type":"string","pattern":"^\\\\\"/[\\n]$"}`,
			[]string{`"\\\"/\n"`, `"\u005c\u0022\/\u000A"`},
			[]string{`"\\"/\n"`},
		},
		"pattern and length": {
			`{"type":"string","pattern":"^a*$","minLength":2,"maxLength":4}`,
			[]string{`"aa"`, `"aaaa"`},
			[]string{`"a"`, `"aaaaa"`, `"ab"`},
		},
		"dates": {
			`{"type":"string","format":"date"}`,
			[]string{`"2024-02-29"`, `"2000-02-29"`, `"1999-12-31"`},
			[]string{`"2023-02-29"`, `"1900-02-29"`, `"2024-13-01"`, `"2024-04-31"`},
		},
		"date and time": {
			`{"type":"string","format":"date-time"}`,
			[]string{`"2024-02-29T23:59:59Z"`, `"2024-01-01T00:00:00.123+05:30"`},
			[]string{`"2024-01-01"`, `"2024-01-01T24:00:00Z"`, `"2024-01-01T00:00:00"`},
		},
		"uuid":  {`{"type":"string","format":"uuid"}`, []string{`"123e4567-e89b-12d3-a456-426614174000"`}, []string{`"123e4567"`}},
		"email": {`{"type":"string","format":"email"}`, []string{`"a.b+c@d.example"`}, []string{`"a"`, `"a@b"`, `"@b.example"`, `"a..b@c.example"`}},
		"enumerations": {
			`{"enum":["a","ab",1,null,true,[1],{"x":"y"},"é\n"]}`,
			[]string{`"a"`, `"ab"`, `1`, `null`, `true`, `[1]`, `{"x":"y"}`, `"é\n"`},
			[]string{`"abc"`, `2`, `false`, `[1,1]`, `"\u0061"`},
		},
		"enumeration cut down": {
			`{"enum":["a","bb","ccc",4,5.5],"type":["string","number"],"minLength":2,"maximum":5}`,
			[]string{`"bb"`, `"ccc"`, `4`},
			[]string{`"a"`, `5.5`},
		},
		"constant": {`{"const":{"a":[1,2]}}`, []string{`{"a":[1,2]}`}, []string{`{}`}},
		"types":    {`{"type":["string","null"]}`, []string{`"x"`, `null`}, []string{`1`, `true`}},
		"anything": {`true`, []string{`1`, `-1.5e-10`, `"x"`, `[{}]`, `false`}, []string{`-`, `1e`, `-0`, `.5`, `1.`, `1e100`}},
		"any of": {
			`{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"],"additionalProperties":false},
			  {"type":"object","properties":{"k":{"const":"b"},"y":{"type":"string"}},"required":["k","y"],"additionalProperties":false}]}`,
			[]string{`{"k":"a","x":1}`, `{"k":"b","y":""}`},
			[]string{`{"k":"a","y":""}`, `{"k":"b","x":1}`},
		},
		"any of beside others": {
			`{"type":"string","minLength":1,"anyOf":[{"maxLength":2},{"pattern":"^z"}]}`,
			[]string{`"ab"`, `"zzzz"`},
			[]string{`""`, `"abc"`},
		},
		"one of that is apart": {
			`{"oneOf":[{"type":"object","properties":{"t":{"const":1}},"required":["t"]},{"type":"object","properties":{"t":{"enum":[2,3]}},"required":["t"]},{"type":"null"}]}`,
			[]string{`{"t":1}`, `{"t":3,"x":{}}`, `null`},
			[]string{`{}`, `{"t":4}`},
		},
		"all of": {
			`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"a":{"minimum":3},"b":{"type":"null"}}}],"additionalProperties":true}`,
			[]string{`{"a":3}`, `{"a":9,"b":null}`},
			[]string{`{"a":2}`, `{}`, `{"a":3,"b":1}`},
		},
		"references": {
			`{"$defs":{"n/x":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n~1x"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}},"$ref":"#/$defs/n~1x"}`,
			[]string{`{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":{"v":3,"next":null}}}`},
			[]string{`{"v":1}`, `{"v":1,"next":{}}`},
		},
		"whole recursion": {
			`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"additionalProperties":false}`,
			[]string{`{}`, `{"kids":[{},{"kids":[]}]}`},
			[]string{`{"kids":{}}`},
		},
		"choice of itself is no choice": {
			`{"type":["string","null"],"anyOf":[{"$ref":"#"},{"maxLength":1}]}`, []string{`"a"`, `null`}, []string{`"ab"`},
		},
		"choices met twice": {
			`{"$defs":{"a":{"anyOf":[{"minLength":2},{"maxLength":0}]}},"type":"string","allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"},{"maxLength":3}]}`,
			[]string{`""`, `"ab"`, `"abc"`},
			[]string{`"a"`, `"abcd"`},
		},
		"integers in bounds": {
			`{"type":"integer","minimum":-5,"maximum":120}`,
			[]string{`-5`, `0`, `7`, `99`, `120`},
			[]string{`-6`, `121`, `130`, `1000`, `00`, `-0`},
		},
		"strict bounds": {
			`{"type":"number","exclusiveMinimum":0.05,"exclusiveMaximum":1}`,
			[]string{`0.051`, `0.99`, `0.06`, `0.5`},
			[]string{`0.05`, `0.050`, `1`, `1.0`, `0`, `0.04`, `1e-1`},
		},
		"negative bounds": {
			`{"type":"number","minimum":-10.5,"maximum":-0.25}`,
			[]string{`-10.5`, `-10.50`, `-0.25`, `-9`, `-1.75`},
			[]string{`-10.51`, `-0.2`, `-11`, `0`, `1`},
		},
		"divisors": {
			`{"type":"integer","multipleOf":7,"minimum":1}`, []string{`7`, `14`, `700`}, []string{`0`, `8`, `-7`},
		},
		"decimals": {`{"type":"number","multipleOf":0.01}`, []string{`1`, `0.5`, `-3.14`}, []string{`0.001`, `1e2`}},
		"int32":    {`{"type":"integer","format":"int32"}`, []string{`2147483647`, `-2147483648`}, []string{`2147483648`}},
		"nothing in between": {
			`{"type":"object","properties":{"a":false,"b":{"type":"integer"}}}`, []string{`{"b":1}`, `{}`}, []string{`{"a":1}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := compile(t, v, test.schema)
			for _, text := range test.yes {
				if !accepts(g, text) {
					t.Errorf("%s is not taken", text)
				}
			}
			for _, text := range test.no {
				if accepts(g, text) {
					t.Errorf("%s is taken", text)
				}
			}
		})
	}
}
