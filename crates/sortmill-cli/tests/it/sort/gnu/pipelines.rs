//! A day's pipelines, as docs/drop-in.md lists them: each line is run with GNU's `sort` and with ours under that name.

use super::Both;

const DOC: &str = include_str!("../../../../../../docs/drop-in.md");

#[test]
fn a_days_pipelines_give_the_same_bytes() {
    let both = Both::new("gnu-pipelines", FILES);
    let mut count = 0;
    for block in DOC.split("```sh\n").skip(1) {
        let lines = block.split("```").next().unwrap();
        for line in lines.lines() {
            both.agree(line);
            count += 1;
        }
    }
    assert!(count >= 50, "{count} lines were found");
}

const FILES: &[(&str, &[u8])] = &[
    ("access.log", br#"10.0.0.7 - - [22/Nov/2026:10:01:02 +0000] "GET / HTTP/1.1" 200 5120
192.168.1.20 - - [01/Dec/2026:00:00:01 +0000] "GET /img/logo.png HTTP/1.1" 304 0
10.0.0.7 - - [22/Nov/2026:10:01:03 +0000] "GET /about HTTP/1.1" 200 1024
10.0.0.12 - - [03/Jan/2027:23:59:59 +0000] "POST /login HTTP/1.1" 302 87
192.168.1.3 - - [22/Nov/2026:09:00:00 +0000] "GET /missing HTTP/1.1" 404 153
10.0.0.7 - - [22/Nov/2026:10:01:02 +0000] "GET / HTTP/1.1" 200 5120
172.16.4.1 - bob [15/Feb/2027:12:30:00 +0000] "GET /reports/2026?q=a,b HTTP/2" 500 12
192.168.1.20 - - [22/Nov/2026:10:01:02 +0000] "GET /missing HTTP/1.1" 404 153
9.9.9.9 - - [22/Nov/2026:10:01:02 +0000] "HEAD / HTTP/1.0" 200 0
"#),
    ("people.csv", b"id,name,balance,city\n3,Carol,-12.50,Berlin\n1,alice,1e3,Oslo\n10,Bob,7,berlin\n\
        2,Dave,7,Oslo\n7,alice,0.5,Rome\n"),
    ("phones.csv", b"10,555-10\n2,555-2\n3,555-3\n99,555-99\n"),
    ("words-a", b"pear\napple\nPear\nfig\nbanana\napple\n fig\nzucchini\n\nkiwi 10\nkiwi 9\n"),
    ("words-b", b"fig\nbanana\nquince\nquince\napple\nkiwi 9\n"),
    ("sizes.txt", b"4.0K\t./a\n1.2G\t./big\n512\t./tiny\n98M\t./lib\n1.1G\t./src\n4.0K\t./b\n0\t./none\n\
        2.5T\t./huge\n"),
    ("ps.txt", b"USER         PID %CPU %MEM COMMAND\nroot           1  0.0  0.1 /sbin/init\n\
        www-data     812 12.5  3.2 nginx\nbob         4711 99.9  0.4 python3 train.py\n\
        bob          471  0.0  0.0 bash\npostgres     950  3.1 20.0 postgres\nroot         412  0.0  0.1 cron\n"),
    ("versions.txt", b"sortmill-0.9.1\nsortmill-0.10.0\nsortmill-0.10.0~rc1\nsortmill-0.9\n\
        sortmill-1.0.0-beta2\nsortmill-1.0.0\nsortmill-1.0.0-beta10\n"),
    ("months.txt", b"3 march\n12 Jan\n1 dec\n2 JAN\nAug 7\njul 2\n30 Sept\n"),
    ("passwd", b"root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/usr/sbin/nologin\n\
        bob:x:1000:1000:Bob,,,:/home/bob:/bin/bash\nwww-data:x:33:33::/var/www:/usr/sbin/nologin\n\
        alice:x:999:999::/home/alice:/bin/zsh\n"),
    ("tree/chapter10.txt", b"ten\n"),
    ("tree/chapter9.txt", b"nine\nnine\n"),
    ("tree/chapter1.txt", b"one\n"),
    ("tree/with space.txt", b"space\n"),
    ("tree/notes.md", b"# notes\nb\na\n"),
    ("tree/deep/er/file", b""),
];
