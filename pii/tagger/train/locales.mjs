// Writes names and places by locale, as the training data's -locales takes them.
// Usage, beside an unpacked @faker-js/faker 9.9.0 (MIT) in ./package:
//   node locales.mjs > locales.json
import { allLocales } from "./package/dist/index.js";

const wanted =
  "en en_US en_GB en_IN en_CA en_AU en_ZA en_NG de de_AT de_CH fr fr_BE fr_CH es es_MX it pt_BR pt_PT nl nl_BE pl el sv da nb_NO fi cs_CZ sk hu ro hr sr_RS_latin sl lv tr ru uk ja ko zh_CN zh_TW vi id_ID fa ar he az hy ka_GE mk yo_NG af_ZA ta_IN ne th eo".split(" ");

// flat returns all strings below a value, without patterns.
function flat(v) {
  if (!v) return [];
  if (Array.isArray(v)) return v.map((x) => (typeof x === "string" ? x : x.value || "")).filter((x) => x && !x.includes("{{"));
  return typeof v === "object" ? Object.values(v).flatMap(flat) : [];
}

const unique = (v) => [...new Set(flat(v))];
const out = {};
for (const name of wanted) {
  const l = allLocales[name];
  if (!l) continue;
  const { person = {}, location = {}, company = {} } = l;
  out[name] = {
    first: unique(person.first_name),
    last: unique(person.last_name),
    city: unique(location.city_name),
    street: unique(location.street_name),
    streetSuffix: unique(location.street_suffix),
    legal: [...new Set([...flat(company.legal_entity_type), ...flat(company.suffix)])],
    state: unique(location.state),
  };
}
process.stdout.write(JSON.stringify(out));
