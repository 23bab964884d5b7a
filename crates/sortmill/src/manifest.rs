//! `manifest.json` of an output in several files: what each holds. `docs/formats.md` draws it.
//!
//! It is written when all parts are there, so that a folder without one is unfinished.

use std::io;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sortmill_io::{Access, File, Os};

use crate::columns::Columns;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::{Job, order_of};
use crate::line_keys::LineOrder;
use crate::order::{Format, KeyPart, Order};
use crate::parts::{PARTS_MAX, PartName};

/// The name of the file.
pub const NAME: &str = "manifest.json";
/// Keys that are longer are cut in a manifest.
pub const KEY_BYTES_MAX: usize = 256;
/// No manifest is longer: [`PARTS_MAX`] parts with keys of [`KEY_BYTES_MAX`] bytes take less.
const BYTES_MAX: usize = 256 << 20;
const VERSION: u32 = 1;

/// What the parts of one output are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this form.
    version: u32,
    /// How records lie in the parts.
    pub format: Format,
    /// The key, most significant part first; none means the whole record.
    pub keys: Vec<KeyPart>,
    /// What decides the order of lines, where whole lines do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_order: Option<LineOrder>,
    /// Which columns decide, of records that are made of such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// Whether of records with equal keys only the first came out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
    /// Whether a function made what is in them of records: bytes of any form, in no order that they tell. What is said of
    /// format and key means nothing then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
    /// Whether the order of records was drawn: what is said of the key means nothing then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shuffled: bool,
    /// By what each part is compressed, by itself, if they are: `zstd` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codec: Option<String>,
    /// Bytes in front of the records of each part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub heading_bytes: u64,
    /// What parts are called.
    #[serde(serialize_with = "put_name", deserialize_with = "get_name")]
    pub name: PartName,
    /// What the fingerprints are keyed by.
    #[serde(with = "number")]
    pub fingerprint_key: u64,
    /// Of all parts together.
    pub whole: Fingerprint,
    /// The parts in order.
    pub parts: Vec<Part>,
}

/// One part.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Part {
    /// Its name in the folder.
    pub name: String,
    /// Count, bytes and keyed sum of its records.
    pub fingerprint: Fingerprint,
    /// Bytes of the file, of one that is compressed or has its records in pieces, as Arrow's batches are: the fingerprint is
    /// that of its records before they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// The key from which on records would come here, those of the next part's excepted; the first part's is
    /// empty, and of parts that nothing can come to there is none. Keys are bytes whose plain comparison is the
    /// order asked for.
    #[serde(with = "hex")]
    pub from_key: Option<Vec<u8>>,
    /// The key of its first record, cut to [`KEY_BYTES_MAX`] bytes; none if it is empty.
    #[serde(with = "hex")]
    pub first_key: Option<Vec<u8>>,
    /// The key of its last record, cut too.
    #[serde(with = "hex")]
    pub last_key: Option<Vec<u8>>,
}

/// A record's key as a manifest has it.
#[must_use]
pub fn key(order: &Order, record: &[u8]) -> Vec<u8> {
    order.key_head(record, KEY_BYTES_MAX)
}

impl Manifest {
    /// Of the output of `job` in these parts.
    #[must_use]
    pub fn new(job: &Job, name: PartName, fingerprint_key: u64, parts: Vec<Part>) -> Self {
        let mut whole = Fingerprint::default();
        for part in &parts {
            whole.merge(&part.fingerprint);
        }
        Self {
            version: VERSION,
            format: job.format,
            keys: job.keys.clone(),
            line_order: job.line_order.clone(),
            columns: job.columns.clone(),
            unique: job.is_unique(),
            made: job.reduce_makes_bytes.is_some(),
            shuffled: job.yields.shuffle().is_some(),
            codec: job
                .compress
                .map(|compress| compress.codec.name().to_owned()),
            heading_bytes: job.reduce_makes_bytes.as_ref().map_or(0, Vec::len) as u64,
            name,
            fingerprint_key,
            whole,
            parts,
        }
    }

    /// Reads that of the folder `folder`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if it is missing, or is none; the system's.
    pub fn read(os: &dyn Os, folder: &Path) -> Result<Self> {
        Self::read_file(os, &folder.join(NAME))
    }

    /// Reads the manifest `path`.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn read_file(os: &dyn Os, path: &Path) -> Result<Self> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => wrong(path, "it is not there")
                .hint("A folder without one was not made by sort --parts, or is unfinished."),
            _ => Error::io(DOING, path, &error),
        };
        let file = os.open(path, Access::Cached).map_err(failed)?;
        let bytes = read_all(os, &file).map_err(failed)?;
        let manifest: Self =
            serde_json::from_slice(&bytes).map_err(|error| wrong(path, &error.to_string()))?;
        manifest.check().map_err(|cause| wrong(path, &cause))?;
        Ok(manifest)
    }

    /// Nothing that follows from what it says may lead out of its folder, or for ever.
    fn check(&self) -> std::result::Result<(), String> {
        if self.version != VERSION {
            return Err(format!(
                "it has version {}, and this program reads {VERSION}",
                self.version
            ));
        }
        if self.parts.is_empty() || self.parts.len() as u64 > PARTS_MAX {
            return Err(format!("it has {} parts", self.parts.len()));
        }
        let mut whole = Fingerprint::default();
        for (number, part) in self.parts.iter().enumerate() {
            if part.name != self.name.of(number as u64) {
                return Err(format!("part {number} is called {:?}", part.name));
            }
            whole
                .checked_merge(&part.fingerprint)
                .ok_or("its numbers are too large")?;
        }
        if whole != self.whole {
            return Err("its parts do not add up to the whole".into());
        }
        let keys: Vec<_> = self.parts.iter().map(|part| &part.from_key).collect();
        let ends: Vec<_> = keys.iter().skip_while(|key| key.is_some()).collect();
        // They become boundaries, with which a long record is compared by the beginning of its key.
        if keys
            .iter()
            .copied()
            .flatten()
            .any(|key| key.len() > KEY_BYTES_MAX)
        {
            return Err(format!("it has a key of more than {KEY_BYTES_MAX} bytes"));
        }
        if ends.iter().any(|key| key.is_some())
            || !keys[..keys.len() - ends.len()].is_sorted()
            || keys[0].as_ref().is_none_or(|key| !key.is_empty())
        {
            return Err("its parts are not in order".into());
        }
        Ok(())
    }

    /// Format and key, ready to be asked.
    ///
    /// # Errors
    /// As [`order_of`]; [`ErrorKind::Usage`] where records have none.
    pub fn order(&self) -> Result<Order> {
        if self.made {
            let cause = "a function made what is in its parts, in no order that they tell";
            return Err(Error::new(ErrorKind::Usage, DOING, cause));
        }
        let lines = self.line_order.as_ref();
        let order = order_of(self.format, &self.keys, lines, self.columns.as_ref())?;
        Ok(match self.shuffled {
            true => order.by_place(),
            false => order.with_unique(self.unique),
        })
    }

    /// Bytes of the file that holds `part`.
    #[must_use]
    pub fn file_bytes(&self, part: &Part) -> u64 {
        let plain = self.heading_bytes + part.fingerprint.bytes;
        part.stored_bytes.unwrap_or(plain)
    }

    /// The keys at which its parts are cut, as [`crate::parts::Cuts::Keys`] has them.
    #[must_use]
    pub fn cut_keys(&self) -> Vec<Option<Vec<u8>>> {
        let later = self.parts.iter().skip(1);
        later.map(|part| part.from_key.clone()).collect()
    }

    /// Whether a file of this name belongs to the output.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        let number = self.name.number(name);
        name == NAME || number.is_some_and(|number| number < self.parts.len() as u64)
    }

    /// Writes it into `folder`, with `mode`, and waits until it is on the device.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, os: &dyn Os, folder: &Path, mode: u32) -> Result<File> {
        let path = folder.join(NAME);
        let write = || {
            let file = os.create(&path, Access::Cached, mode)?;
            let text = serde_json::to_vec_pretty(self)?;
            os.write_stream(&file, &text, &|| false)?;
            Ok(file)
        };
        write().map_err(|error: io::Error| Error::io("writing the manifest", &path, &error))
    }
}

const DOING: &str = "reading the manifest";

fn wrong(path: &Path, cause: &str) -> Error {
    Error::new(ErrorKind::Input, DOING, cause).at(path)
}

fn read_all(os: &dyn Os, file: &File) -> io::Result<Vec<u8>> {
    const STEP_BYTES: usize = 64 << 10;
    let mut bytes = Vec::new();
    loop {
        let have = bytes.len();
        if have > BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        bytes.resize(have + STEP_BYTES, 0);
        let moved = os.read_stream(file, &mut bytes[have..], &|| false)?;
        bytes.truncate(have + moved);
        if moved == 0 {
            return Ok(bytes);
        }
    }
}

fn put_name<S: Serializer>(name: &PartName, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(name)
}

fn get_name<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<PartName, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Numbers of 64 bits as hexadecimal text: JSON readers lose digits of large ones.
mod number {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
    }
}

/// Bytes as hexadecimal text, so that any survive.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        use std::fmt::Write;
        let Some(bytes) = bytes else {
            return to.serialize_none();
        };
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        to.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else {
            return Ok(None);
        };
        let digits = text.as_bytes().chunks(2).map(|two| {
            let two = std::str::from_utf8(two).ok().filter(|two| two.len() == 2);
            two.and_then(|two| u8::from_str_radix(two, 16).ok())
        });
        let bytes: Option<Vec<u8>> = digits.collect();
        let bytes = bytes.ok_or_else(|| D::Error::custom("a key is no hexadecimal text"))?;
        Ok(Some(bytes))
    }
}
