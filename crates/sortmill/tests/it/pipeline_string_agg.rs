//! Texts of groups that are joined, held against what is joined in memory.

use sortmill::error::ErrorKind;
use sortmill::pipeline::{
    Form, Settings, col, count_distinct, first, if_else, null, string_agg, string_agg_distinct,
};

use crate::pipeline::{run, small};
use crate::pipeline_groups::{Clicks, sorted};

/// Texts are joined in the order of their bytes: alone, of several columns, beside what follows the input, of groups that come sorted,
/// and of those that stand together.
#[test]
fn texts_are_joined_in_order() {
    let clicks = Clicks::new("texts_are_joined_in_order", 20_000);
    // Of early clicks nobody knows the page.
    let shown = |name: &str| if_else(col("time").lt(-9000i64), null(), col(name));
    let table = clicks.table().with_columns(&[("page", shown("page"))]);
    let groups = table.unwrap().group_by(&["user"]).unwrap();
    let pages = string_agg("page", ", ").named("pages");
    let apart = string_agg_distinct("page", "").named("apart");
    let users = string_agg_distinct("user", "-").named("users");
    let different = count_distinct("page").named("n");
    let firsts = first("time").named("first");
    let mut wanted = [const { Vec::new() }; 3];
    for (user, group) in clicks.groups() {
        let pages = group.iter().filter(|(time, _)| *time >= -9000);
        let mut pages: Vec<&str> = pages.map(|(_, page)| *page).collect();
        pages.sort_unstable();
        let all = pages.join(", ");
        pages.dedup();
        let (apart, n) = (pages.concat(), pages.len());
        wanted[0].push(format!("{user}\t{all}"));
        wanted[1].push(format!("{user}\t{apart}\t{n}\t{all}"));
        wanted[2].push(format!("{user}\t{}\t{user}\t{all}", group[0].0));
    }
    let of = [
        vec![pages.clone()],
        vec![apart, different, pages.clone()],
        vec![firsts, users, pages.clone()],
    ];
    for (of, wanted) in of.iter().zip(&wanted) {
        let found = clicks.written(&groups.agg(of).unwrap(), Form::Text);
        assert!(sorted(&found) == sorted(&wanted.join("\n")), "{of:?}");
        let in_order = groups.clone().sorted().agg(of).unwrap();
        let found = clicks.written(&in_order, Form::Text);
        assert!(found.lines().eq(wanted.iter().map(String::as_str)));
    }
    let table = clicks.table().with_columns(&[("page", shown("page"))]);
    let numbered = table.unwrap().group_by(&["user"]).unwrap();
    let numbered = numbered.sessions("time", 40, "session").unwrap();
    let together = numbered.group_by(&["user"]).unwrap().agg(&[pages]).unwrap();
    assert!(sorted(&clicks.written(&together, Form::Text)) == sorted(&wanted[0].join("\n")));
    let numbers = groups.agg(&[string_agg("time", " ")]).err().unwrap();
    assert_eq!(numbers.kind, ErrorKind::Usage);
}

/// A text that takes more than its part of the memory ends the job, and the error says of which group; a longer one is made where there is
/// more memory.
#[test]
fn texts_that_are_too_long_are_told() {
    let clicks = Clicks::new("texts_that_are_too_long_are_told", 0);
    let texts = (0..40_000).map(|at| {
        format!(
            "{}\t{at}\t{at:09}\n",
            if at % 7 == 0 { "few" } else { "many" }
        )
    });
    std::fs::write(clicks.scratch.path("in.txt"), texts.collect::<String>()).unwrap();
    let groups = clicks.table().group_by(&["user"]).unwrap();
    let alone = groups.agg(&[string_agg("page", " ")]).unwrap();
    let beside = [string_agg("page", " "), first("time").named("first")];
    let beside = groups.agg(&beside).unwrap();
    // Two share that.
    let distinct = string_agg_distinct("page", " ").named("distinct");
    let two = groups.agg(&[string_agg("page", " "), distinct]).unwrap();
    for (table, room, more) in [
        (alone, 279_620, 12),
        (beside, 279_620, 12),
        (two, 139_810, 24),
    ] {
        let pipeline = table.write(clicks.out(), Form::Text).unwrap();
        let with = |memory: u64| Settings {
            memory_bytes: Some(memory),
            threads: Some(2),
            ..small()
        };
        // 343 KB.
        let error = run(&pipeline, &with(8 << 20)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Memory, "{error}");
        let wanted = format!("column page have more than {room} bytes");
        assert!(error.cause.contains(&wanted), "{error}");
        assert!(error.cause.ends_with("in the group \"many\""), "{error}");
        assert_eq!(clicks.scratch.names(), ["in.txt"]);
        run(&pipeline, &with(more << 20)).unwrap();
        let found = std::fs::read_to_string(clicks.out()).unwrap();
        assert!(found.lines().any(|line| line.len() > 342_000));
        std::fs::remove_file(clicks.out()).unwrap();
    }
}
