//! Quotes within values, which stand there twice: the order is that of what values say, as the model reads them.

use sortmill::columns::{Column, Columns, Compare, Form, Header, Name, Nulls};

use super::super::inputs::{Random, seed};
use super::{Case, Machine, case, check_job, text};

#[test]
fn values_full_of_quotes() {
    let mut random = Random::new(seed("values_full_of_quotes"));
    for round in 0..24 {
        let quote = [b'"', b'\'', 1, 0xff][round % 4];
        // Its neighbours, what is escaped in keys, and itself.
        let letters = [
            0,
            1,
            b'a',
            quote.wrapping_sub(1),
            quote.wrapping_add(1),
            quote,
            quote,
        ];
        let columns = Columns {
            form: Form::Separated {
                delimiter: b',',
                quote: Some(quote),
                header: Header::None,
            },
            by: [1, 2]
                .map(|number| Column {
                    name: Name::Number(number),
                    compare: [Compare::Value, Compare::Text][random.below(2)],
                    reversed: random.below(2) == 0,
                })
                .to_vec(),
            nulls: [Nulls::First, Nulls::Last][random.below(2)],
        };
        let longest = [3, 3, 40, 3000][random.below(4)];
        let mut input = Vec::new();
        while input.len() < 40_000 {
            for end in [b',', b'\n'] {
                let value = text(&mut random, &letters, longest);
                let doubled = value
                    .iter()
                    .flat_map(|&byte| vec![byte; 1 + usize::from(byte == quote)]);
                input.push(quote);
                input.extend(doubled);
                input.extend([quote, end]);
            }
        }
        let case = Case {
            unique: random.below(3) == 0,
            threads: 1 + random.below(3),
            ..case(&columns, vec![input])
        };
        check_job(&case, Machine::Sim, &format!("round {round}"));
    }
}
