// Collects names, places, organizations and plain words of Chinese and Japanese,
// whose words are not separated, from two dictionaries of word segmenters.
//
// Usage: node east.mjs JIEBA OPENCC IPADIC > east.json, where JIEBA is
// jieba.dict.utf8 of nodejieba, OPENCC the folder of opencc-js, and IPADIC the
// folder of CSV files of mecab-ipadic.
import fs from 'node:fs';
import {pathToFileURL} from 'node:url';

const [jieba, opencc, ipadic] = process.argv.slice(2);
const OpenCC = await import(pathToFileURL(`${opencc}/dist/esm/full.js`).href);
const traditional = OpenCC.Converter({from: 'cn', to: 'twp'});

const surnames = new Set((
  '王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤' +
  '常温康施文牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岳翟殷詹申欧耿关兰焦俞左柳甘祝包宁尚符舒阮柯纪梅童凌毕单季裴霍涂成苗谷盛曲翁冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶解牟艾尤时穆农司卓古吉缪简车项连芦麦褚娄窦戚岑景党宫费卜冷晏席卫米柏宗瞿桂全佟应臧闵苟邬边卞姬师和仇栾隋商刁沙荣巫寇桑郎甄丛仲虞敖巩明佘池查麻苑迟邝').split('')
  .concat('欧阳 上官 司马 诸葛 东方 皇甫 慕容 令狐 夏侯 司徒 尉迟 长孙 端木 南宫'.split(' ')));

function chinese() {
  const out = {first: {}, last: [...surnames], full: [], city: [], org: [], common: []};
  for (const line of fs.readFileSync(jieba, 'utf8').split('\n')) {
    const [word, n, tag] = line.split(' ');
    const count = +n, size = [...(word || '')].length;
    if (size < 2 || size > 8 || !/^\p{Script=Han}+$/u.test(word)) continue;
    const last = surnames.has(word.slice(0, 2)) ? word.slice(0, 2) : word.slice(0, 1);
    if (tag === 'nr' && surnames.has(last) && size <= last.length + 2 && size > last.length && count >= 3) {
      out.full.push(word);
      out.first[word.slice(last.length)] = (out.first[word.slice(last.length)] || 0) + 1;
    } else if (tag === 'nrfg' || tag === 'nrt') out.full.push(word);
    else if (tag === 'ns' && count >= 3) out.city.push(word);
    else if (tag === 'nt') out.org.push(word);
    else if (/^[nvadtilzj]/.test(tag) && !/^n[rstz]/.test(tag) && count >= 110 && size <= 4) out.common.push(word);
  }
  // A given name that no other surname goes with is, as often as not, a word.
  out.first = Object.entries(out.first).filter(([, n]) => n >= 2).map(([w]) => w);
  return out;
}

function japanese() {
  const read = (name) => new TextDecoder('euc-jp').decode(fs.readFileSync(`${ipadic}/${name}.csv`)).split('\n').map((l) => l.split(',')).filter((r) => r.length > 8);
  const cheap = (rows, n) => [...new Set(rows.sort((a, b) => a[3] - b[3]).map((r) => r[0]))].slice(0, n);
  const size = (r) => [...r[0]].length;
  const names = read('Noun.name');
  return {
    first: cheap(names.filter((r) => r[7] === '名'), 17000), last: cheap(names.filter((r) => r[7] === '姓'), 13000), full: cheap(names.filter((r) => r[7] === '一般'), 3000),
    city: cheap(read('Noun.place').filter((r) => size(r) > 1 && size(r) <= 5), 12000), org: cheap(read('Noun.org').filter((r) => size(r) > 1), 7000),
    common: cheap([...read('Noun'), ...read('Noun.verbal'), ...read('Noun.adjv')].filter((r) => size(r) > 1 && size(r) <= 4), 21000),
  };
}

const zh = chinese();
const zhTW = Object.fromEntries(Object.entries(zh).map(([k, v]) => [k, v.map(traditional)]));
process.stdout.write(JSON.stringify({zh_CN: zh, zh_TW: zhTW, ja: japanese()}));
