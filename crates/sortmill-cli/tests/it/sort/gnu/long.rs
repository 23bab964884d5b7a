//! Long lines in little memory: GNU sort takes them whatever its `-S`, and so does ours up to 16 MiB, which is more than a
//! small `-S` has room for.

use super::Both;

#[test]
fn long_lines_are_taken_in_little_memory() {
    let long = |first: &str, bytes: usize, last: &str| {
        let middle = "x".repeat(bytes);
        format!("{first} {middle} {last}\n")
    };
    let one = ["a 1 2\n", &long("b", 9_000_000, "5"), "c 3 1\n"].concat();
    let two = [&long("b", 1_300_000, "4"), "b z 1\n", "d 2 9\n"].concat();
    let three = [
        &long("y", 15_900_000, "1"),
        "z\n",
        &long("x", 14_000_000, "1"),
    ]
    .concat();
    let inputs = [("one", &one), ("two", &two), ("three", &three)];
    let both = Both::new(
        "gnu-long",
        &inputs.map(|(name, text)| (name, text.as_bytes())),
    );
    for line in [
        "-m one two",
        "-m -o out two one",
        "-S1M -m one two",
        "-S1M -m -k1,1 one two",
        "-S1M -m one - < two",
        "-S1M -k3,3n one two",
        "-S1M -k2,2r -s two one",
        "-S1M -k2 -u one two one",
        "-S1M -f one two",
        "-S1M one two",
        "-S1M three",
        "-S20M -u - one < three",
        "-S1M -k3,3n - two < one",
    ] {
        both.agree(&format!(
            "sort {line} | cksum; cat out 2> /dev/null | cksum"
        ));
    }
}
