//! What people are told of compressed inputs and outputs.

use std::fmt::Write;

use super::Report;
use crate::plan::{Encoders, Plan};
use crate::text;

/// Bytes of the output; of a compressed one, before and after.
pub fn output_words(report: &Report) -> String {
    let stored = text::bytes(report.bytes.output);
    match &report.plan.encoders {
        None => stored,
        Some(encoders) => {
            let bytes = text::bytes(report.fingerprints.written.bytes);
            format!("{bytes} as {stored} of {}", encoders.codec)
        }
    }
}

/// Bytes of compressed inputs, and what they may become.
pub fn input_words(plan: &Plan) -> Option<String> {
    let (guessed, stored) = (plan.guessed_bytes?, plan.stored_bytes?);
    Some(format!(
        "{}, decompressed perhaps {} (a guess from the beginnings of the largest)",
        text::bytes(stored),
        text::bytes(guessed)
    ))
}

/// Who decompresses and compresses.
pub fn plan_lines(plan: &Plan) -> String {
    let mut out = String::new();
    if let (Some(decoders), Some(_)) = (&plan.decoders, plan.stored_bytes) {
        let (count, most) = (decoders.count, text::bytes(decoders.memory_bytes));
        let ahead = match decoders.ahead_count {
            0 => String::new(),
            count => format!(
                ", and up to {} ahead of their turn",
                text::bytes((count * plan.chunk_bytes) as u64)
            ),
        };
        let _ = writeln!(
            out,
            "decompress       {count} at once, each in up to {most}{ahead}"
        );
    }
    if let Some(encoders) = &plan.encoders {
        let Encoders {
            codec,
            count,
            level,
            ..
        } = encoders;
        let _ = writeln!(
            out,
            "compress         {codec}, level {level}, {count} threads"
        );
    }
    out
}
