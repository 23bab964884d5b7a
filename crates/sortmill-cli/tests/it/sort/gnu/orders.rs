//! The orders of GNU's `sort`, over files that hold its traps.

use super::{Both, DATA};

/// Ways to order, each tried on every file.
const ORDERS: &str = r"
-b
-d
-f
-g
-h
-i
-M
-n
-V
-r
-s
-u
-fu
-nu
-nr
-nrs
-gr
-hr
-Mr
-Vr
-bf
-bfd
-df
-if
-fs
-k2
-k2,2
-k2b,2
-k2b,2b
-bk2,2
-k1.2
-k1.2b
-k1.2,1.3
-k2.2b,3.1b
-k2n
-k2,2n -k1,1
-k2,2nr -k1,1
-nk2,2 -k1,1f
-k1,1 -u
-k2,2 -s
-k2,2 -r
-k2,2 -rs
-k2 -k1
-k2,1
-t: -k3
-t: -k3n,3
-t: -k2,2 -k4n
-t: -k1.2,1.3
-t: -k9
-t: -k1,1b
-t a -k2
-z
-zr
-zu
-zk2
-znu
-t '\0' -k2
-u -k1,1f
-uf -k1,1
-uz
";

const FILES: [&str; 11] = [
    "words", "numbers", "table", "colons", "human", "months", "versions", "nul", "crlf", "bytes",
    "fields",
];

#[test]
fn every_order_on_every_file() {
    let both = Both::new("gnu-orders", DATA);
    for order in super::refusals::lines(ORDERS) {
        // One shell for all files, so that a failure costs a second look and success does not.
        let lines = FILES.map(|file| format!("sort {order} {file}; echo = $?"));
        both.agree(&lines.join("\n"));
    }
}

#[test]
fn ends_of_lines_and_several_files() {
    let both = Both::new("gnu-ends", DATA);
    for line in super::refusals::lines(
        r"
sort unended
sort unended unended
sort unended words
sort words unended
sort -z unended nul
sort empty
sort empty empty
sort empty words empty
sort newlines
sort -u newlines newlines
sort -z newlines
sort words numbers table
sort -n numbers human -
sort words words
sort -u words words
sort -s -f words bytes
cat words | sort
cat words | sort -n - numbers
sort < empty
sort -r < unended
",
    ) {
        both.agree(line);
    }
}

#[test]
fn checks_find_the_same_line() {
    let both = Both::new("gnu-check", DATA);
    for order in [
        "", "-r", "-u", "-n", "-nr", "-nu", "-f", "-fu", "-k2", "-k2n", "-z", "-s", "-su", "-V",
        "-M", "-h", "-g", "-b", "-k1,1", "-s -k1,1",
    ] {
        let files = FILES.iter().chain(&[
            "empty", "newlines", "unended", "sorted", "strict", "falling",
        ]);
        // What is said of the first bad line goes to standard error, and is GNU's to the byte.
        let lines = files.map(|file| {
            format!(
                "sort -c {order} {file} 2>&1; echo = $?; sort -C {order} {file} 2>&1; echo = $?\n"
            )
        });
        both.agree(&lines.collect::<String>());
    }
    for line in [
        "sort -c < falling 2>&1",
        "sort -c - < falling 2>&1",
        "cat falling | sort -c 2>&1",
        "sort --check falling 2>&1",
        "sort --check=diagnose-first falling 2>&1",
        "sort --check=quiet falling 2>&1",
        "sort --check=silent falling 2>&1",
        "sort -c -c falling 2>&1",
        "sort -mc falling 2>&1",
        "sort -cm strict",
        "sort -c unended unended",
        "printf 'falling\\0' | sort -c --files0-from=- 2>&1",
    ] {
        both.agree(line);
    }
}

#[test]
fn a_check_ends_where_the_order_does() {
    let both = Both::new("gnu-check-ends", DATA);
    // Endless input: who reads on waits for ever.
    both.agree("(echo b; yes a) | sort -c 2>&1; echo ${PIPESTATUS[1]}");
    both.agree("yes | sort -cu 2>&1; echo ${PIPESTATUS[1]}");
}
