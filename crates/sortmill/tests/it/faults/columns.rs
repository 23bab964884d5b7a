//! Faults in jobs that are ordered by columns, and bad records under many schedules.

use std::sync::Arc;

use sortmill::columns::Compare;
use sortmill::error::ErrorKind;
use sortmill::io::sim::FaultKind;

use super::{Case, judge, random, seed, sweep};
use crate::csv_by;

/// Records of two lines each, the second within quotes, of which a number decides; `column` is the one that is asked for.
fn case(bytes: usize, column: &str) -> Case {
    let mut state = seed();
    let mut records = Vec::new();
    let mut left = bytes as i64;
    while left > 0 {
        let key = random(&mut state) >> (random(&mut state) % 60);
        let tail = "\"\"".repeat((random(&mut state) % 20) as usize);
        let record = format!("{key},\"a\n,{tail}\"\r\n");
        left -= record.len() as i64;
        records.push((key, record));
    }
    let header = "number,text\r\n".to_owned();
    let text = |records: &[(u64, String)]| -> Vec<u8> {
        let records = records.iter().map(|(_, record)| record.as_str());
        [&header[..], &records.collect::<String>()].concat().into()
    };
    let mut case = Case::new(seed(), 0);
    case.input = Arc::new(text(&records));
    records.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
    case.expected = Arc::new(text(&records));
    let columns = csv_by(column, Compare::Number, true);
    case.format = columns.format();
    case.columns = Some(columns);
    case
}

#[test]
fn faults_in_a_job_of_columns() {
    let mut case = case(350_000, "number");
    let outcome = case.run(seed(), None);
    judge(&case, &outcome, false);
    let partitions = outcome.result.unwrap().partitions;
    assert!(partitions.evicted >= 4, "{partitions:?}");
    sweep(&case, FaultKind::Error(5), false, 13);
    case.verify = true;
    sweep(&case, FaultKind::Error(28), true, 23);
    case.stream = true;
    sweep(&case, FaultKind::Error(5), false, 23);
}

/// Every record is bad, and the first one is told, whoever comes upon which first.
#[test]
fn the_first_bad_record_is_told_under_any_schedule() {
    let case = case(120_000, "text");
    for seed in 0..12 {
        let outcome = case.run(seed, None);
        let error = outcome.result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{error}");
        assert!(error.cause.starts_with("line 2: "), "{error}");
        assert!(outcome.leftovers.is_empty(), "{:?}", outcome.leftovers);
    }
}
