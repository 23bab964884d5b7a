//! `--debug` underlines the keys as GNU's `sort` does, and doubts the same keys.

use super::{Both, DATA};

const ORDERS: &str = r"
-b
-f
-n
-g
-h
-M
-V
-r
-s
-u
-k2
-k2,2
-bk2,2
-k2b,2b
-k1b,1.1
-k1nb,1.1 -s
-k1.1b,1.2
-k2.2b,2.3b
-k2n
-k2g
-k2h -k1,1
-k2M,2
-k1.2,1.3
-k2,1
-t: -k3n,3 -k1,1r
-t: -k2,2 -s
-k1,1 -u
-nr
-rk1,1
-z
-zk2
+1 -2
";

const ANNOTATED: [&str; 10] = [
    "words", "numbers", "table", "colons", "human", "months", "versions", "nul", "bytes", "fields",
];

#[test]
fn keys_are_underlined_as_gnu_sort_underlines_them() {
    let both = Both::new("gnu-debug", DATA);
    for order in super::refusals::lines(ORDERS) {
        let lines = ANNOTATED.map(|file| {
            format!("sort --debug {order} {file} 2> said; echo = $?; test -s said; echo = $?\n")
        });
        both.agree(&(lines.concat() + "rm said"));
    }
}

/// A width that is formatted may have 16 bits: these ended in a panic.
#[test]
fn long_lines_are_underlined() {
    let both = Both::new("gnu-debug-long", &[]);
    for make in [
        "head -c 65535 /dev/zero | tr '\\0' a",
        "head -c 65536 /dev/zero | tr '\\0' a",
        "head -c 70000 /dev/zero | tr '\\0' ' '; echo b",
    ] {
        for order in ["", "-k1b,1.1", "-k2", "-b", "-nk2"] {
            both.agree(&format!("({make}) > long; sort --debug {order} long"));
        }
    }
}

#[test]
fn doubtful_keys_are_told_where_gnu_sort_tells_them() {
    let both = Both::new("gnu-doubts", DATA);
    for line in super::refusals::lines(
        r"
sort --debug words
sort --debug -k2 words
sort --debug -bk2 words
sort --debug -k2b,2 words
sort --debug -k2b,2.1 words
sort --debug -k2,1 words
sort --debug -k1.2,1.3 words
sort --debug -k2n words
sort --debug -k2n,2 words
sort --debug -k1n words
sort --debug -t: -k2 words
sort --debug -t: -k2n words
sort --debug -n -k2b,2 words
sort --debug -r -k2b,2b words
sort --debug -r -k2b,2bn words
sort --debug -rs -k2b,2bn words
sort --debug -rb -k2n,2 words
sort --debug -b -k1b words
sort --debug -b -k2b,2b words
sort --debug -rb -k1b,1 words
sort --debug -rd -k1,1f -t: words
sort --debug -r words
sort --debug +1 -2 words
sort --debug -M words
sort --debug -n words
sort --debug -b words
sort --debug -t. -k2n words
sort --debug -t- -k2n words
sort --debug -t- -k2n,2 words
sort --debug -t+ -k2g words
sort --debug -ur words
sort --debug -u -r -k1,1 words
sort --debug -k2nr,1 words
sort --debug -k4M,2 -k3g,1 -k3,2 words
sort --debug -k3 -k2M,2 -k1,1n words
",
    ) {
        // As many doubts, whatever the words.
        both.agree(&format!("{line} 2>&1 >/dev/null | wc -l"));
    }
}
