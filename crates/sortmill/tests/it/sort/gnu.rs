//! The order of lines held against the installed `sort` in the C locale: random options, random lines.
//!
//! Most cases compare the order alone, a few dozen lines each, because that takes milliseconds; `sort/lines.rs` sends
//! some through whole jobs. As many as `CASES` says, from the seed `SEED` on.

use std::cmp::Ordering;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sortmill::line_keys::{Compare, Ignore, KeyEnd, KeyStart, LastResort, LineKey, LineOrder};
use sortmill::order::Order;

use super::inputs::{Random, seed};

/// What is asked of `sort`, and the same in our words.
#[derive(Clone, Debug)]
pub struct Asked {
    pub args: Vec<String>,
    pub order: LineOrder,
    /// What `-R` takes for random.
    random_bytes: [u8; 16],
}

/// Letters that go with a key or with all.
#[derive(Clone, Default)]
struct Letters {
    text: String,
    compare: Option<Compare>,
    ignore: Ignore,
    fold: bool,
    reversed: bool,
    skip_start: bool,
    skip_end: bool,
}

impl Letters {
    fn is_nothing(&self) -> bool {
        self.text.is_empty()
    }

    /// Some letters that `sort` takes together. `b` is drawn by the caller.
    fn random(random: &mut Random, random_bytes: [u8; 16]) -> Self {
        let mut letters = Self::default();
        let kinds = [
            ("", None),
            ("n", Some(Compare::Number)),
            ("g", Some(Compare::General)),
            ("h", Some(Compare::Human)),
            ("M", Some(Compare::Month)),
            ("V", Some(Compare::Version)),
            ("R", Some(Compare::Random(random_bytes))),
            ("VR", Some(Compare::Random(random_bytes))),
        ];
        let kind = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 5, 6, 7][random.below(15)];
        letters.text += kinds[kind].0;
        letters.compare = kinds[kind].1;
        if matches!(kind, 0 | 5..) {
            let ignores = [
                ("", Ignore::None),
                ("d", Ignore::NotDictionary),
                ("i", Ignore::Unprintable),
            ];
            let ignore = [0, 0, 1, 2][random.below(4)];
            letters.text += ignores[ignore].0;
            letters.ignore = ignores[ignore].1;
        }
        if random.below(4) == 0 {
            letters.text.push('f');
            letters.fold = true;
        }
        if random.below(3) == 0 {
            letters.text.push('r');
            letters.reversed = true;
        }
        letters
    }
}

impl Asked {
    /// What `args` mean, without anything random.
    pub fn of(args: &[&str], order: LineOrder) -> Self {
        Self {
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            order,
            random_bytes: [0; 16],
        }
    }

    pub fn random(random: &mut Random) -> Self {
        let random_bytes = random.bytes(16).try_into().unwrap();
        let mut asked = Self {
            args: Vec::new(),
            order: LineOrder {
                delimiter: if random.below(8) == 0 { 0 } else { b'\n' },
                separator: None,
                keys: Vec::new(),
                last_resort: LastResort::Line,
                unique: random.below(5) == 0,
            },
            random_bytes,
        };
        if random.below(2) == 0 {
            let separators = [
                (",", b','),
                (":", b':'),
                (" ", b' '),
                ("\t", b'\t'),
                ("a", b'a'),
                ("\\0", 0),
            ];
            let (text, byte) = separators[random.below(separators.len())];
            asked.args.extend(["-t".to_owned(), text.to_owned()]);
            asked.order.separator = Some(byte);
        }
        let mut all = match random.below(2) {
            0 => Letters::default(),
            _ => Letters::random(random, random_bytes),
        };
        if random.below(5) == 0 {
            all.text.push('b');
            (all.skip_start, all.skip_end) = (true, true);
        }
        for _ in 0..[0, 1, 1, 1, 2, 3][random.below(6)] {
            asked.add_key(random, &all);
        }
        let stable = random.below(4) == 0;
        asked.add_all(&all, stable);
        asked
    }

    fn add_key(&mut self, random: &mut Random, all: &Letters) {
        let mut own = match random.below(3) {
            0 => Letters::default(),
            _ => Letters::random(random, self.random_bytes),
        };
        let start = (1 + random.below(4) as u64, [1, 1, 1, 2, 3][random.below(5)]);
        let end = (random.below(5) > 1).then(|| {
            let near = [
                start.0,
                start.0,
                start.0,
                start.0 + 1,
                1 + random.below(5) as u64,
            ];
            (near[random.below(5)], [0, 0, 0, 1, 2, 4][random.below(6)])
        });
        let mut text = format!("-k{}", start.0);
        if start.1 > 1 || random.below(4) == 0 {
            text += &format!(".{}", start.1);
        }
        own.skip_start = random.below(6) == 0;
        if own.skip_start {
            text.push('b');
        }
        let mut letters_at_start = String::new();
        if random.below(2) == 0 {
            letters_at_start.clone_from(&own.text);
        }
        text += &letters_at_start;
        if let Some((field, byte)) = end {
            text += &format!(",{field}");
            if byte > 0 || random.below(4) == 0 {
                text += &format!(".{byte}");
            }
            own.skip_end = random.below(6) == 0;
            if own.skip_end {
                text.push('b');
            }
        }
        if letters_at_start.is_empty() {
            text += &own.text;
        }
        self.args.push(text);
        // Keys without letters of their own have those of all.
        let (skip_start, skip_end) = (own.skip_start, own.skip_end);
        let letters = match own.is_nothing() && !skip_start && !skip_end {
            true => all.clone(),
            false => own,
        };
        self.order.keys.push(LineKey {
            start: KeyStart {
                field: start.0,
                byte: start.1,
                skip_blanks: letters.skip_start,
            },
            end: end.map(|(field, byte)| KeyEnd {
                field,
                byte,
                skip_blanks: letters.skip_end,
            }),
            compare: letters.compare.unwrap_or(Compare::Bytes),
            ignore: letters.ignore,
            fold: letters.fold,
            reversed: letters.reversed,
        });
    }

    fn add_all(&mut self, all: &Letters, stable: bool) {
        let decides =
            all.compare.is_some() || all.ignore != Ignore::None || all.fold || all.skip_start;
        let place = stable || self.order.unique;
        if self.order.keys.is_empty() && (decides || (all.reversed && place)) {
            self.order.keys.push(LineKey {
                start: KeyStart {
                    field: 1,
                    byte: 1,
                    skip_blanks: all.skip_start,
                },
                end: None,
                compare: all.compare.unwrap_or(Compare::Bytes),
                ignore: all.ignore,
                fold: all.fold,
                reversed: all.reversed,
            });
        }
        self.order.last_resort = match all.reversed {
            _ if place => LastResort::Place,
            true => LastResort::LineReversed,
            false => LastResort::Line,
        };
        if !all.is_nothing() {
            self.args.push(format!("-{}", all.text));
        }
        let flags = [
            ("-s", stable),
            ("-u", self.order.unique),
            ("-z", self.order.delimiter == 0),
        ];
        let given = flags.into_iter().filter(|&(_, is_given)| is_given);
        self.args.extend(given.map(|(flag, _)| flag.to_owned()));
    }

    /// What the installed `sort` makes of `input`.
    pub fn sorted(&self, input: &[u8]) -> Vec<u8> {
        let mut source = std::env::temp_dir();
        source.push(format!(
            "sortmill-random-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let shuffles = |key: &LineKey| matches!(key.compare, Compare::Random(_));
        let is_random = self.order.keys.iter().any(shuffles);
        let mut command = Command::new("sort");
        command
            .env("LC_ALL", "C")
            .args(&self.args)
            .args(["--parallel=1", "-S4M"]);
        if is_random || self.args.iter().any(|arg| arg.contains('R')) {
            std::fs::write(&source, self.random_bytes).unwrap();
            command.arg("--random-source").arg(&source);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("coreutils sort is here");
        let mut to = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || to.write_all(&input));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let _ = std::fs::remove_file(&source);
        assert!(output.status.success(), "sort {:?}", self.args);
        output.stdout
    }

    /// Lines for it, as many as `count`; the last may lack its end. One of them may have a NaN unless one `has_nan`
    /// already: the installed `sort` may be one that has no order of several.
    pub fn lines(&self, random: &mut Random, count: usize, has_nan: &mut bool) -> Vec<u8> {
        // With few words to choose from, many keys are equal.
        let few: Option<Vec<Vec<u8>>> = (random.below(10) < 3).then(|| {
            let count = 1 + random.below(5);
            (0..count).map(|_| self.word(random)).collect()
        });
        let one_kind = (random.below(3) > 0).then(|| self.kind(random));
        let blanks: [&[u8]; 5] = [b" ", b"\t", b"  ", b" \t", b""];
        let mut input = Vec::new();
        for _ in 0..count {
            for number in 0..random.below(6) {
                if number > 0 || random.below(5) == 0 {
                    match self.order.separator {
                        Some(separator) if random.below(4) > 0 => input.push(separator),
                        _ => input.extend(blanks[random.below(5)]),
                    }
                }
                let word = match (&few, one_kind) {
                    (Some(few), _) if random.below(8) > 0 => few[random.below(few.len())].clone(),
                    (_, Some(kind)) if random.below(8) > 0 => word(kind, random),
                    _ => self.word(random),
                };
                let word = match word
                    .windows(3)
                    .any(|three| three.eq_ignore_ascii_case(b"nan"))
                {
                    true if std::mem::replace(has_nan, true) => b"x".to_vec(),
                    _ => word,
                };
                let inner = if self.order.delimiter == 0 { b'\n' } else { 0 };
                let fits = |byte: u8| {
                    if byte == self.order.delimiter {
                        inner
                    } else {
                        byte
                    }
                };
                input.extend(word.into_iter().map(fits));
            }
            if random.below(12) == 0 {
                input.push(b'\r');
            }
            input.push(self.order.delimiter);
        }
        if random.below(2) == 0 {
            input.pop();
        }
        input
    }

    /// A kind of words that the order is about, mostly.
    fn kind(&self, random: &mut Random) -> Kind {
        let kinds = [
            Kind::Number,
            Kind::General,
            Kind::Human,
            Kind::Month,
            Kind::Version,
            Kind::Text,
        ];
        if self.order.keys.is_empty() || random.below(6) == 0 {
            return kinds[random.below(6)];
        }
        match self.order.keys[random.below(self.order.keys.len())].compare {
            Compare::Bytes | Compare::Random(_) => Kind::Text,
            Compare::Number => Kind::Number,
            Compare::General => Kind::General,
            Compare::Human => Kind::Human,
            Compare::Month => Kind::Month,
            Compare::Version => Kind::Version,
        }
    }

    fn word(&self, random: &mut Random) -> Vec<u8> {
        let kind = self.kind(random);
        word(kind, random)
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Number,
    General,
    Human,
    Month,
    Version,
    Text,
}

fn word(kind: Kind, random: &mut Random) -> Vec<u8> {
    match kind {
        Kind::Number => number(random),
        Kind::General => general(random),
        Kind::Human => {
            let mut word = number(random);
            let suffixes = b"KkMGTPEZYRQmgtB.,i ";
            for _ in 0..random.below(3) {
                word.push(suffixes[random.below(suffixes.len())]);
            }
            word
        }
        Kind::Month => month(random),
        Kind::Version => version(random),
        Kind::Text => text(random),
    }
}

fn pick<'w>(random: &mut Random, words: &[&'w str]) -> &'w [u8] {
    words[random.below(words.len())].as_bytes()
}

fn digits(random: &mut Random, count: usize) -> Vec<u8> {
    let few = random.below(2) == 0;
    let digit = |random: &mut Random| {
        if few {
            b"019"[random.below(3)]
        } else {
            b'0' + random.below(10) as u8
        }
    };
    (0..count).map(|_| digit(random)).collect()
}

fn number(random: &mut Random) -> Vec<u8> {
    let mut word = pick(
        random,
        &["", "", "", "-", "-", "+", "--", " ", " -", "- ", "x"],
    )
    .to_vec();
    word.extend(pick(random, &["", "", "", "0", "00"]));
    let count = [0, 1, 1, 2, 3, 5, 20, 45, 100][random.below(9)];
    word.extend(digits(random, count));
    match random.below(20) {
        0 => word.extend(b",123"),
        1 => word.extend(b"\x80012"),
        2 => word.insert(random.below(word.len() + 1), 0x80),
        _ => {}
    }
    if random.below(2) == 0 {
        word.push(b'.');
        let count = [0, 1, 2, 3, 40][random.below(5)];
        word.extend(pick(random, &["", "", "0", "0000"]));
        word.extend(digits(random, count));
        word.extend(pick(random, &["", "", "0", "00"]));
    }
    word.extend(pick(
        random,
        &["", "", "", "", "", "e2", "x1", "\x00\x305", "-1"],
    ));
    word
}

fn general(random: &mut Random) -> Vec<u8> {
    let special = [
        "nan",
        "NaN(1)",
        "-nan",
        "inf",
        "-inf",
        "+INF",
        "infinity",
        "infinit",
        "0x",
        "0x1",
        "0X1p3",
        "0x1.8p-3",
        "0x.8",
        "0x.",
        "-0x0p5",
        "0x1p16383",
        "0x1p16384",
        "0x1.fffffffffffffffep16383",
        "0x1.ffffffffffffffffp16383",
        "0x1p-16445",
        "0x1p-16446",
        "0x1.8p-16446",
        "0x1.0000000000000001p0",
        "0x1.00000000000000018p0",
        "1e4932",
        "1.2e4932",
        "1e4933",
        "-1e5000",
        "1e-4950",
        "1e-4951",
        "2e-4951",
        "1e-5000",
        "1e99999999999999999999",
        "0e99999999999",
        ".",
        "+.5",
        "5.",
        "e5",
        "1e",
        "1e+",
        "1E+2",
        "100",
        "1e2",
        "0.1e3",
        "-0",
        "0",
        "+0",
        "",
        " 1",
        "\x0b2",
        "3.3621031431120935063e-4932",
        "3.3621031431120935062e-4932",
        "1.18973149535723176502e4932",
        "1.18973149535723176509e4932",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551617",
        "18446744073709551618",
        "18446744073709551619",
        "18446744073709551617.0000000000000000000000000000000000000000000001",
        "36893488147419103234",
        "36893488147419103233.9999999999999999999999999999999999999999999999999999",
    ];
    match random.below(4) {
        0 | 1 => pick(random, &special).to_vec(),
        2 => {
            let mut word = number(random);
            word.push(b'e');
            word.extend(pick(random, &["", "-", "+"]));
            let count = 1 + random.below(4);
            word.extend(digits(random, count));
            word
        }
        // Near each other: whether they differ is a matter of the 64th bit.
        _ => {
            let mut word = b"0.3333333333333333333".to_vec();
            let count = random.below(8);
            word.extend(digits(random, count));
            word.extend(pick(random, &["", "e1", "e-9", "e30", "e300", "e-3000"]));
            word
        }
    }
}

fn month(random: &mut Random) -> Vec<u8> {
    let names = [
        "jan", "FEB", "Mar", "aPr", "may", "JUN", "jul", "Aug", "SEP", "oct", "Nov", "dec", "ja",
        "mai", "", "janx", "x", "sept", "DE", "ma\0",
    ];
    let mut word = pick(random, &["", "", "", " ", "\t", "-"]).to_vec();
    word.extend(pick(random, &names));
    word.extend(pick(random, &["", "", "uary", " 1", "."]));
    word
}

fn version(random: &mut Random) -> Vec<u8> {
    let pieces = [
        "a",
        "b",
        "ab",
        "B",
        "1",
        "2",
        "10",
        "0",
        "00",
        "01",
        "007",
        ".",
        ".",
        ".",
        "..",
        "~",
        "~",
        "-",
        "_",
        "+",
        "tar",
        ".gz",
        ".txt",
        ".c~",
        "rc",
        "v",
        "1.2",
        "\0",
        "\u{e9}",
        "12345678",
        "1234567",
        "123456789012345678901234567890",
    ];
    (0..random.below(6))
        .flat_map(|_| pick(random, &pieces).to_vec())
        .collect()
}

fn text(random: &mut Random) -> Vec<u8> {
    let bytes: &[u8] = match random.below(3) {
        0 => b"ab",
        1 => b"aAbBzZ_[`019- ",
        _ => b"aAbZ\0\x01\x02\x7f\x80\xff\xe9_^{~! \t\r.,",
    };
    let lengths = if random.below(20) == 0 { 8 } else { 6 };
    let count = [0, 1, 2, 3, 6, 12, 70, 1200][random.below(lengths)];
    (0..count)
        .map(|_| bytes[random.below(bytes.len())])
        .collect()
}

/// One case: what is asked, of which lines, and what came of it.
struct Case {
    asked: Asked,
    input: Vec<u8>,
    wanted: Vec<u8>,
}

/// The cases of this run, the same for every test of it.
fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let seed = seed("lines_as_sort_has_them");
        let count =
            std::env::var("CASES").map_or(2500, |text| text.parse().expect("CASES is a number"));
        let make = |number: u64| {
            let mut random = Random::new(seed ^ (number << 32));
            let asked = Asked::random(&mut random);
            let count = 2 + random.below(70);
            let input = asked.lines(&mut random, count, &mut false);
            let wanted = asked.sorted(&input);
            Case {
                asked,
                input,
                wanted,
            }
        };
        // Two at a time: each waits for a child mostly.
        let halves = [0, count / 2, count]
            .windows(2)
            .map(|range| (range[0], range[1]))
            .collect::<Vec<_>>();
        std::thread::scope(|threads| {
            let parts = halves
                .iter()
                .map(|&(from, to)| threads.spawn(move || (from..to).map(make).collect::<Vec<_>>()));
            let parts: Vec<_> = parts.collect();
            parts
                .into_iter()
                .flat_map(|part| part.join().unwrap())
                .collect()
        })
    })
}

/// The lines of `input`, each with its end.
pub fn split(delimiter: u8, input: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = input
        .split_inclusive(|&byte| byte == delimiter)
        .map(<[u8]>::to_vec)
        .collect();
    if let Some(last) = lines
        .last_mut()
        .filter(|line| line.last() != Some(&delimiter))
    {
        last.push(delimiter);
    }
    lines
}

/// A stable sort by our order, without repeats if that is asked.
fn sort_by(order: &Order, input: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = split(order.delimiter(), input);
    lines.sort_by(|a, b| order.compare(a, b));
    if order.is_unique() {
        lines.dedup_by(|later, first| order.compare(first, later).is_eq());
    }
    lines
}

#[test]
fn lines_come_in_the_order_of_the_installed_sort() {
    for (number, case) in cases().iter().enumerate() {
        let order = Order::of_lines(&case.asked.order).unwrap();
        let sorted = sort_by(&order, &case.input);
        let what = format!(
            "case {number}: sort {:?}: {:?}",
            case.asked.args, case.asked.order
        );
        super::compare(&sorted.concat(), &case.wanted, &what);
        for two in sorted.windows(2) {
            check_forms(&order, &two[0], &two[1], &what);
        }
        for (a, b) in sorted.iter().zip(split(order.delimiter(), &case.input)) {
            check_forms(&order, a, &b, &what);
        }
    }
}

/// Words, whole keys, parts of keys and what stands for long lines compare as the lines do.
fn check_forms(order: &Order, a: &[u8], b: &[u8], what: &str) {
    let wanted = order.compare(a, b);
    let keys = [a, b].map(|line| {
        let mut key = Vec::new();
        order.key_into(line, &mut key);
        key
    });
    let fail = |form: &str| -> ! {
        panic!(
            "{what}: {form} of {:?} and {:?}: not {wanted:?}",
            a.escape_ascii().to_string(),
            b.escape_ascii().to_string()
        )
    };
    if keys[0].cmp(&keys[1]) != wanted {
        fail("keys");
    }
    if order.compare_with_key(a, &keys[1]) != wanted
        || order.compare_with_key(b, &keys[0]) != wanted.reverse()
    {
        fail("line and key");
    }
    let mut by_words = Ordering::Equal;
    for depth in 0.. {
        let words = [a, b].map(|line| order.word(line, depth));
        for (word, key) in words.iter().zip(&keys) {
            if *word != order.word_of_key(key, depth) {
                fail("word of the key");
            }
        }
        by_words = words[0].cmp(&words[1]);
        if by_words.is_ne() || order.ends_with(words[0], depth) {
            break;
        }
    }
    if by_words != wanted {
        fail("words");
    }
    for bytes in [1, 7, 33] {
        let heads = keys.each_ref().map(|key| &key[..key.len().min(bytes)]);
        if order.compare_heads(a, b, bytes) != heads[0].cmp(heads[1]) {
            fail("heads");
        }
        if order.key_head(a, bytes) != heads[0]
            || order.key_reaches(a, bytes) != (keys[0].len() >= bytes)
        {
            fail("head");
        }
        if order.key_from().is_none() {
            let (short, key_bytes) = order.short_of_line(a, bytes);
            if order.compare_with_key(&short, heads[0]).is_ne()
                || key_bytes as usize != keys[0].len().min(bytes + 1)
            {
                fail("short form");
            }
            let is_whole = keys[0].len() <= bytes;
            if is_whole
                && (order.compare(&short, b) != wanted || order.word(&short, 1) != order.word(a, 1))
            {
                fail("short form and line");
            }
        }
    }
}

/// Each of the mistakes that somebody might make in the order is found by one of the cases at least.
#[cfg(feature = "tamper")]
#[test]
fn planted_mistakes_in_the_order_are_found() {
    use sortmill::order::Fault;
    assert!(Fault::ALL.len() >= 25);
    let mut missed = Vec::new();
    for &fault in Fault::ALL {
        let is_found = cases().iter().any(|case| {
            let mut order = Order::of_lines(&case.asked.order).unwrap();
            order.plant(fault) && sort_by(&order, &case.input).concat() != case.wanted
        });
        if !is_found {
            missed.push(fault);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_field_or_byte_of_zero_is_refused() {
    let mut asked = Asked::random(&mut Random::new(1));
    let start = KeyStart {
        field: 0,
        byte: 1,
        skip_blanks: false,
    };
    asked.order.keys = vec![LineKey {
        start,
        end: None,
        compare: Compare::Bytes,
        ignore: Ignore::None,
        fold: false,
        reversed: false,
    }];
    let error = Order::of_lines(&asked.order).unwrap_err();
    assert!(
        error.to_string().contains("key 1 has a field or byte 0"),
        "{error}"
    );
}
