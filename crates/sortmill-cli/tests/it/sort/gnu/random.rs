//! Command lines and inputs drawn at random, a third of them with many equal keys.

use super::Both;

pub struct Random(u64);

impl Random {
    /// From the seed `SEED`, or always the same.
    pub fn new() -> Self {
        let seed = std::env::var("SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(20_261_122);
        println!("SEED={seed}");
        Self(seed)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }

    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// How many command lines are drawn: a tenth of the cases that the engine's own test of orders draws, since each takes two processes.
pub fn drawn_count() -> usize {
    let cases =
        std::env::var("CASES").map_or(2500, |text| text.parse().expect("CASES is a number"));
    cases / 10
}

#[test]
fn command_lines_drawn_at_random() {
    let mut random = Random::new();
    for round in 0..drawn_count().div_ceil(12) {
        let equal = random.below(3) == 0;
        let inputs = [0, 1].map(|_| input(&mut random, equal));
        let both = Both::new(
            "gnu-random",
            &[("a", inputs[0].as_bytes()), ("b", inputs[1].as_bytes())],
        );
        let lines: Vec<String> = (0..12).map(|_| command_line(&mut random)).collect();
        let script = lines
            .iter()
            .map(|line| format!("{line} 2>/dev/null; echo = $?\n"));
        println!("round {round}: a {:?}, b {:?}", inputs[0], inputs[1]);
        both.agree(&script.collect::<String>());
    }
}

fn command_line(random: &mut Random) -> String {
    let mut line = format!("sort{}", options(random));
    for _ in 0..random.below(2) {
        line += random.one(&[
            " -u",
            " -c",
            " -C",
            " --debug",
            " -S 1M",
            " --parallel=2",
            " -m",
            " -mu",
            " -o a",
            " -ob",
            " --batch-size=2",
            " --sort=numeric",
            " --sort=version",
            " --check=quiet",
            " --key=2",
            " --field-separator=1",
            " --compress-program=gzip",
        ]);
    }
    // Of -R only what is equal comes together in the same way; the bytes that decide it are given.
    line += " --random-source=a";
    line += random.one(&[
        " a",
        " a b",
        " b a",
        " < a",
        " - a < b",
        " a b a",
        " b -- a",
        " missing a",
    ]);
    line
}

/// What decides an order.
pub fn options(random: &mut Random) -> String {
    let mut line = String::new();
    for _ in 0..random.below(4) {
        line += random.one(&[
            " -b", " -d", " -f", " -g", " -h", " -i", " -M", " -n", " -r", " -s", " -V", " -z",
            " -t:", " -t' '", " -ta", " -t,",
        ]);
    }
    for _ in 0..random.below(3) {
        line += " -k";
        line += &position(random, 1);
        line += random.one(&[
            "", "", "b", "n", "r", "nr", "f", "M", "h", "g", "V", "d", "i", "bf", "R",
        ]);
        if random.below(2) == 0 {
            line += ",";
            line += &position(random, 0);
            line += random.one(&["", "", "", "b", "n", "r"]);
        }
    }
    line
}

fn position(random: &mut Random, byte_least: u64) -> String {
    let field = random.below(4) + u64::from(random.below(20) > 0);
    match random.below(3) {
        0 => format!("{field}.{}", random.below(4) + byte_least),
        _ => field.to_string(),
    }
}

/// Some sixty lines of a few fields.
/// Without NaN: several of them `sort -g` of coreutils 9.1 orders by what lies beside them in memory.
pub fn input(random: &mut Random, equal: bool) -> String {
    const PARTS: &[&str] = &[
        "a", "B", "b", "ab", "Ab", "1", "-1", "01", "10", "2", "1.5", "1e2", "0x10", "-inf", "3K",
        "3k", "2M", "1G", "jan", "FEB", "Dec", "v1.10", "v1.9", "1.2~rc", "_", "-", ".", "\u{e4}",
        "\r", "\x01", "+4", "1,0",
    ];
    let parts = if equal { &PARTS[..6] } else { PARTS };
    let mut text = String::new();
    for _ in 0..random.below(60) + 3 {
        for _ in 0..random.below(4) {
            text += random.one(parts);
            text += random.one(&["", " ", " ", "  ", "\t", ":", ",", "\0"]);
        }
        text += "\n";
    }
    if random.below(3) == 0 {
        text.pop();
    }
    text
}
