//! `sortmill shuffle`, `uniq`, `count` and `top`, as their users meet them: against pipelines of coreutils.

use std::process::{Command, Output};

use serde_json::Value;
use sortmill::io::codec::Codec;

use crate::sort::packed::{packed, unpacked};
use crate::sort::{
    caught, make_fifo, names_with, run, run_badly, run_on_pipe, run_well, signal, sort, stderr,
    text, until, words,
};
use crate::{PROGRAM, Scratch};

/// A shell in the scratch folder; `sortmill` is the program under test.
fn shell(scratch: &Scratch, script: &str) -> Command {
    let mut command = Command::new("bash");
    let script = format!("set -o pipefail; sortmill() {{ {PROGRAM:?} \"$@\"; }}\n{script}");
    command.args(["-c", &script]);
    command.env("LC_ALL", "C").env_remove("TMPDIR");
    command.current_dir(&scratch.path);
    caught(command)
}

/// Both lines write the same bytes and end well.
#[track_caller]
fn agree(scratch: &Scratch, ours: &str, theirs: &str) {
    // A pipe whose reader has enough ends its writer.
    let wanted = run(shell(scratch, theirs));
    assert_eq!(stderr(&wanted), "", "{theirs}");
    let have = run_well(shell(scratch, ours));
    assert!(
        have.stdout == wanted.stdout,
        "{ours}\n{}\n--- and not, by {theirs}\n{}",
        shown(&have),
        shown(&wanted)
    );
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout[..output.stdout.len().min(1500)]).into_owned()
}

fn command(name: &str, scratch: &Scratch, line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg(name).args(words(scratch, line));
    command.env_remove("TMPDIR");
    caught(command)
}

/// Few words in many ways, and much that is alike by chance.
fn data(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    let few = "b\na\nA\nb\n\nB\nab c\nab  c\n 10 x\n9 y\n10 x\nab c\n\nz\tq\nZ\tQ\nend";
    std::fs::write(scratch.path("few"), few).unwrap();
    std::fs::write(
        scratch.path("table"),
        "b 2\na 10\nb 2\nc 1\na 9\nB 2\na 10\nb 2 \n",
    )
    .unwrap();
    std::fs::write(scratch.path("nul"), "b\0a\nx\0b\0\0a\nx\0A\nX\0\0last").unwrap();
    std::fs::write(scratch.path("empty"), "").unwrap();
    std::fs::write(scratch.path("much"), text(300_000, 5)).unwrap();
    scratch
}

#[test]
fn uniq_is_sort_and_uniq() {
    let scratch = data("made-uniq");
    for (ours, theirs, uniq) in [
        ("", "", ""),
        ("-c", "", "-c"),
        ("--count", "", "-c"),
        ("-d", "", "-d"),
        ("--repeated", "", "-d"),
        ("-u", "", "-u"),
        ("--unique", "", "-u"),
        ("-cd", "", "-cd"),
        ("-cu", "", "-cu"),
        ("-du", "", "-du"),
        ("-i", "-f", "-i"),
        ("--ignore-case -c", "-f", "-ic"),
        ("-iu", "-f", "-iu"),
        ("-id", "-f", "-id"),
        ("-f", "-f", ""),
        ("-fc", "-f", "-c"),
        ("--fold-case -c", "-f", "-c"),
        ("-r", "-r", ""),
        ("-rc", "-r", "-c"),
        ("-n", "-n", ""),
        ("-nc", "-n", "-c"),
        ("-k2,2n -c", "-k2,2n", "-c"),
        ("-k2,2n -ci", "-f -k2,2n", "-ci"),
        ("-s -k1,1 -c", "-s -k1,1", "-c"),
        ("-t: -k1,1 -u", "-t: -k1,1", "-u"),
        ("--dictionary-order -c", "-d", "-c"),
        ("--ignore-nonprinting -c", "-i", "-c"),
        ("-V", "-V", ""),
        ("-h -d", "-h", "-d"),
    ] {
        for files in ["few", "few table few empty", "much"] {
            agree(
                &scratch,
                &format!("sortmill uniq -q {ours} {files}"),
                &format!("sort {theirs} {files} | uniq {uniq}"),
            );
        }
    }
    for flags in ["", "-c", "-d", "-u", "-ic"] {
        let fold = if flags == "-ic" { "-f" } else { "" };
        agree(
            &scratch,
            &format!("sortmill uniq -qz {flags} nul"),
            &format!("sort -z {fold} nul | uniq -z {flags}"),
        );
    }
    agree(
        &scratch,
        "cat much | sortmill uniq -qc",
        "sort much | uniq -c",
    );
    // As little memory as sorting takes: lines are not counted on their way, which takes more.
    for memory in ["--memory 28MiB", "-S 28M", "--memory 28MiB --threads 16"] {
        agree(
            &scratch,
            &format!("sortmill uniq -qc {memory} much"),
            "sort much | uniq -c",
        );
    }
}

#[test]
fn count_is_sort_uniq_and_sort() {
    let scratch = data("made-count");
    let ranked = "sort -k1,1nr -k2";
    for files in ["few", "table few", "empty", "much"] {
        for (ours, theirs) in [
            ("", "uniq -c".to_owned()),
            ("-n 3", "uniq -c | head -n 3".to_owned()),
            ("--by-count", format!("uniq -c | {ranked}")),
            ("--by-count -n 5", format!("uniq -c | {ranked} | head -n 5")),
            ("--by-count --first 0", "head -n 0".to_owned()),
            ("--by-count -n 99999999", format!("uniq -c | {ranked}")),
        ] {
            agree(
                &scratch,
                &format!("sortmill count -q {ours} {files}"),
                &format!("sort {files} 2>&1 | {theirs}"),
            );
        }
    }
    agree(
        &scratch,
        "sortmill count -qz --by-count nul",
        "sort -z nul | uniq -zc | sort -z -k1,1nr -k2",
    );
    // The first file with a line has fewer than the header: that of the counts is as short.
    agree(
        &scratch,
        "printf 'H1\\n' > a; printf 'H1\\nH2\\nx\\ny\\ny\\n' > b; sortmill count -q --by-count --header 2 empty a b",
        "echo H1; printf 'x\\ny\\ny\\n' | sort | uniq -c | sort -k1,1nr -k2",
    );
    // Nothing is left where it lay.
    std::fs::create_dir(scratch.path("temp")).unwrap();
    let line = "-q --by-count -T {}temp -o {}out {}much";
    run_well(command("count", &scratch, line));
    assert_eq!(names_with(&scratch.path("temp"), ""), Vec::<String>::new());
    agree(
        &scratch,
        "cat out",
        &format!("sort much | uniq -c | {ranked}"),
    );
}

#[test]
fn top_is_sort_and_head() {
    let scratch = data("made-top");
    for (flags, theirs) in [
        ("", ""),
        ("-r", "-r"),
        ("-n", "-n"),
        ("-nr", "-nr"),
        ("-k2,2n", "-k2,2n"),
        ("-k2,2 -s", "-k2,2 -s"),
        ("-f -k1,1", "-f -k1,1"),
        ("--sort=version", "-V"),
    ] {
        for count in [0, 4, 1000] {
            for files in ["few table", "much"] {
                agree(
                    &scratch,
                    &format!("sortmill top {count} -q {flags} {files}"),
                    &format!("sort {theirs} {files} > all; head -n {count} all; rm all"),
                );
            }
        }
    }
    agree(
        &scratch,
        "sortmill top 2 -qz nul",
        "sort -z nul | head -z -n 2",
    );
    agree(
        &scratch,
        "cat much few | sortmill top 7 -q",
        "sort much few > x; head -n 7 x; rm x",
    );
    std::fs::write(scratch.path("fixed"), b"ccbbaaddbb").unwrap();
    let line = "3 -q --format fixed:2 {}fixed";
    assert_eq!(run_well(command("top", &scratch, line)).stdout, b"aabbbb");
    let table = "name,n\n\"a, the first\nof two lines\",7\nb,10\nc,-3\nd,10\n";
    std::fs::write(scratch.path("table.csv"), table).unwrap();
    let line = "3 -q --format csv --by -n:num {}table.csv";
    assert_eq!(
        run_well(command("top", &scratch, line)).stdout,
        b"name,n\nb,10\nd,10\n\"a, the first\nof two lines\",7\n"
    );
}

/// The same records, in an order that the seed alone decides.
#[test]
fn shuffle_keeps_all_and_repeats_itself() {
    let scratch = data("made-shuffle");
    let shuffled = |line: &str| run_well(command("shuffle", &scratch, line)).stdout;
    let first = shuffled("-q --seed 7 {}much");
    assert_ne!(first, std::fs::read(scratch.path("much")).unwrap());
    assert_eq!(
        first,
        shuffled("-q --seed 7 --threads 1 --memory 1GiB {}much")
    );
    assert_eq!(
        first,
        shuffled("-q --seed 7 --io posix --no-direct --memory 64MiB {}much")
    );
    assert_ne!(first, shuffled("-q --seed 8 {}much"));
    let line = "-q --seed 7 --verify -o {}out {}much";
    assert_eq!(shuffled(line), b"");
    assert_eq!(first, std::fs::read(scratch.path("out")).unwrap());
    agree(&scratch, "sort out", "sort much");
    agree(
        &scratch,
        "sortmill shuffle -q --seed 3 few table | sort",
        "sort few table",
    );
    agree(
        &scratch,
        "sortmill shuffle -qz nul | sort -z",
        "sort -z nul",
    );
    agree(
        &scratch,
        "cat much | sortmill shuffle -q | sort",
        "sort much",
    );
    std::fs::write(scratch.path("fixed"), (0..=255).collect::<Vec<u8>>()).unwrap();
    let mut bytes = shuffled("-q --format fixed:1 {}fixed");
    assert!(!bytes.is_sorted());
    bytes.sort_unstable();
    assert!(bytes.into_iter().eq(0..=255));
    // An order that nobody asked for can be had again.
    let drawn = run_well(command("shuffle", &scratch, "{}few"));
    let said = stderr(&drawn);
    let seed = said
        .split("--seed ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let again = format!("--seed {} {{}}few", seed.expect(&said));
    assert_eq!(shuffled(&again), drawn.stdout);
    assert!(said.starts_with("shuffled 16 records"), "{said}");
}

/// Headers stay, compressed files are read and written, pipes too, and every output is proven.
#[test]
fn what_sort_takes_they_take() {
    let scratch = data("made-ends");
    let input = [b"~ header\n".as_slice(), &text(300_000, 6)].concat();
    std::fs::write(scratch.path("in"), &input).unwrap();
    std::fs::write(scratch.path("in.gz"), packed(Codec::Gzip, &input, 50_000)).unwrap();
    for (ours, theirs) in [
        ("uniq -c", "sort | uniq -c"),
        ("count --by-count", "sort | uniq -c | sort -k1,1nr -k2"),
        (
            "count --by-count -n 9",
            "sort | uniq -c | sort -k1,1nr -k2 > x; head -n 9 x; rm x",
        ),
        ("top 9", "sort > x; head -n 9 x; rm x"),
        ("top 9999999", "sort"),
    ] {
        let wanted = run_well(shell(
            &scratch,
            &format!("head -n 1 in; tail -n +2 in | ({theirs})"),
        ));
        let (name, flags) = ours.split_once(' ').unwrap();
        for (inputs, output) in [
            ("{}in", "{}out"),
            ("{}in.gz", "{}out.zst"),
            ("{}in.gz", "{}out --verify"),
            ("-", "{}out --temp-apart"),
        ] {
            let line = format!("{flags} -q --header 1 {inputs} -o {output}");
            let ran = run_on_pipe(command(name, &scratch, &line), &input);
            assert_eq!(ran.status.code(), Some(0), "{line}: {}", stderr(&ran));
            let packed = output.ends_with("zst");
            let path = scratch.path(if packed { "out.zst" } else { "out" });
            let mut have = std::fs::read(path).unwrap();
            if packed {
                have = unpacked(Codec::Zstd, &have);
            }
            assert!(have == wanted.stdout, "{ours}: {line}");
        }
    }
    let line = "-q --seed 1 --header 1 {}in.gz -o {}out.zst";
    run_well(command("shuffle", &scratch, line));
    let have = unpacked(
        Codec::Zstd,
        &std::fs::read(scratch.path("out.zst")).unwrap(),
    );
    assert!(have.starts_with(b"~ header\n"));
    std::fs::write(scratch.path("have"), have).unwrap();
    agree(&scratch, "sort have", "sort in");
}

/// Files of as many records each, or one more, which are one after the other what goes to one file; their manifest tells of them.
#[test]
fn shuffle_to_files_of_equal_counts() {
    let scratch = data("made-shuffle-parts");
    let parts = scratch.path("parts");
    std::fs::write(scratch.path("fixed"), b"abcdefghijklmnopqrstuvwxyz").unwrap();
    let check = || {
        let checked = run(command("check", &scratch, "--parts {}parts"));
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        (checked.status.code(), said)
    };
    for (flags, input, end) in [
        ("", "much", Some(b'\n')),
        ("--memory 32MiB --io posix", "much", Some(b'\n')),
        ("-z", "nul", Some(0)),
        ("--format fixed:1", "fixed", None),
    ] {
        let whole = format!("-q --seed 7 {flags} {{}}{input}");
        let whole = run_well(command("shuffle", &scratch, &whole)).stdout;
        let line = format!(
            "-q --seed 7 {flags} --parts {{}}parts --part-count 7 --part-name {{:02}}.txt --overwrite {{}}{input}"
        );
        run_well(command("shuffle", &scratch, &line));
        let files: Vec<Vec<u8>> = (0..7)
            .map(|number| std::fs::read(parts.join(format!("{number:02}.txt"))).unwrap())
            .collect();
        assert!(files.concat() == whole, "{flags}");
        let count = |file: &Vec<u8>| match end {
            None => file.len(),
            Some(end) => file.iter().filter(|&&byte| byte == end).count(),
        };
        let counts: Vec<usize> = files.iter().map(count).collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{flags}: {counts:?}");
        let (status, said) = check();
        assert_eq!(status, Some(0), "{flags}: {said}");
        assert!(
            said.contains("shuffled, and as the manifest says"),
            "{said}"
        );
        assert!(!said.contains("duplicate"), "{said}");
    }
    // A byte that is another one is found, and order is not looked for.
    let path = parts.join("03.txt");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (status, said) = check();
    let is_told = said.contains("03.txt") && !said.contains("order");
    assert!(status == Some(1) && is_told, "{said}");
    // Nothing is cut at its keys.
    let line = "--boundaries {}parts/manifest.json --parts {}other {}much";
    let failed = sort(words(&scratch, line)).output().unwrap();
    assert_eq!(failed.status.code(), Some(2), "{}", stderr(&failed));
}

/// Plans say what comes out, reports what came.
#[test]
fn plans_and_reports_tell() {
    let scratch = data("made-told");
    for (name, flags, planned, said) in [
        (
            "shuffle",
            "--seed 5",
            "--seed 5 draws",
            "--seed 5 draws the same order again",
        ),
        (
            "uniq",
            "-c",
            "one of each run of equal lines, with counts",
            "what was counted is what was read",
        ),
        ("count", "--by-count", "are sorted", "sorted "),
        (
            "top",
            "3",
            "the first 3 records, which memory keeps",
            "wrote 3 of ",
        ),
    ] {
        let line = format!("{flags} --dry-run {{}}much");
        let plan = run_well(command(name, &scratch, &line));
        let plan = String::from_utf8(plan.stdout).unwrap();
        assert!(plan.contains(planned), "{name}: {plan}");
        let line = format!("{flags} --report {{}}report --progress json -o {{}}out {{}}much");
        let ran = run_well(command(name, &scratch, &line));
        assert!(stderr(&ran).contains(said), "{name}: {}", stderr(&ran));
        let report: Value =
            serde_json::from_slice(&std::fs::read(scratch.path("report")).unwrap()).unwrap();
        let out = std::fs::metadata(scratch.path("out")).unwrap().len();
        assert_eq!(report["bytes"]["output"], out, "{name}");
        let again = command("report", &scratch, "{}report");
        let again = String::from_utf8(run_well(again).stdout).unwrap();
        assert!(again.contains(said), "{name}: {again}");
        assert_eq!(report["before"].is_object(), name == "count");
    }
}

/// Two jobs, and the file between them: killed while that lies there, it goes with the next job in its folder.
#[test]
fn what_a_killed_count_leaves_goes_with_the_next_job() {
    let scratch = data("made-killed");
    std::fs::create_dir(scratch.path("temp")).unwrap();
    make_fifo(&scratch.path("pipe"));
    // The second job waits for a reader that does not come.
    let line = "-q --by-count -T {}temp -o {}pipe {}much";
    let child = command("count", &scratch, line).spawn().unwrap();
    let counts = until("the counts", || {
        let names = names_with(&scratch.path("temp"), ".counts.sortmill-");
        // Under its own name, not yet that of an unfinished one of the first job's.
        names
            .into_iter()
            .find(|name| name.len() == ".counts.sortmill-".len() + 16)
    });
    signal(child.id(), "KILL");
    crate::sort::finish(child);
    assert!(names_with(&scratch.path("temp"), "").contains(&counts));
    run_well(sort(words(&scratch, "-q -T {}temp -o {}other {}few")));
    assert_eq!(names_with(&scratch.path("temp"), ""), Vec::<String>::new());
}

#[test]
fn what_means_nothing_is_refused() {
    let scratch = data("made-refused");
    for (name, line, wanted) in [
        ("shuffle", "-r {}few", "-r means nothing"),
        ("shuffle", "-k2 {}few", "-k means nothing"),
        ("shuffle", "-u {}few", "-u means nothing"),
        ("shuffle", "-s {}few", "-s means nothing"),
        ("shuffle", "--seed x {}few", "invalid"),
        (
            "shuffle",
            "--parts {}parts {}few",
            "as many records in each of its parts",
        ),
        (
            "shuffle",
            "--parts {}parts --part-size 1MB {}few",
            "--part-size is an option of sort",
        ),
        (
            "shuffle",
            "--parts {}parts --part-count 3 --header 1 {}few",
            "not settled yet",
        ),
        (
            "uniq",
            "--parts {}parts --part-count 3 {}few",
            "--parts is an option of sort",
        ),
        (
            "shuffle",
            "--on local:2 -o {}out {}few",
            "--on is an option of sort",
        ),
        (
            "shuffle",
            "--boundaries uniform {}few",
            "--boundaries is an option of sort",
        ),
        ("shuffle", "--format csv {}few", "not columns"),
        ("uniq", "--format csv --by b {}few", "about lines"),
        ("uniq", "--format fixed:3 {}few", "about lines"),
        ("uniq", "--check {}few", "--check is an option of sort"),
        ("uniq", "-C {}few", "--check is an option of sort"),
        ("uniq", "-m {}few", "--merge is an option of sort"),
        ("uniq", "--until sort {}few", "--until is an option of sort"),
        ("count", "-k2 {}few", "-k means nothing"),
        ("count", "-r {}few", "-r means nothing"),
        ("count", "--format kv {}few", "about lines"),
        ("count", "-n x {}few", "invalid"),
        ("count", "--by-count --trace {}trace {}few", "two sorts"),
        ("top", "3 -u {}few", "does not leave out repeats"),
        ("top", "3 --debug {}few", "--debug is an option of sort"),
        ("top", "{}few", "invalid"),
        ("top", "", "required"),
        ("top", "3 {}missing", "missing"),
        ("count", "--by-count {}missing", "missing"),
        ("uniq", "-o {}nowhere/out {}few", "nowhere"),
    ] {
        run_badly(command(name, &scratch, line), &[wanted]);
    }
    let names = ["empty", "few", "much", "nul", "table"];
    assert_eq!(scratch.names(), names);
}
