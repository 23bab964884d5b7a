//! Connections between processes of one machine: a listener on the loopback address, and streams.
//!
//! A connection is a [`File`] that is read and written as a stream (`Os::read_stream`, `Os::write_stream`), so that
//! whoever waits for it hears when its job ends. No address but 127.0.0.1 is ever listened on.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::host::stream;
use crate::os::File;

/// So many callers are heard at a time; of more, the one who has said too little for longest is let go.
const CALLERS_MAX: usize = 256;

/// Takes connections from this machine.
pub struct Listener {
    file: File,
    port: u16,
    /// Who has connected and not yet said enough, the oldest first.
    callers: Vec<Caller>,
}

/// A connection of which it is not known yet whose it is.
struct Caller {
    connection: File,
    said: Vec<u8>,
}

/// What a caller has said so far.
enum Said {
    Enough,
    TooLittle,
    /// And it has hung up.
    HungUp,
}

impl Listener {
    /// Listens at a port that is free.
    ///
    /// # Errors
    /// The system's.
    pub fn on_loopback() -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let file = stream(listener.into(), "listening for other nodes");
        Ok(Self {
            file,
            port,
            callers: Vec::new(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next connection over which `byte_count` bytes have come, and these bytes; it is called `name` in messages. All who
    /// have connected are heard at once, so that one who says nothing keeps nobody waiting. Asks `stopped` several
    /// times a second while it waits.
    ///
    /// # Errors
    /// The system's, and `Interrupted` when told to stop.
    pub fn hear(
        &mut self,
        byte_count: usize,
        name: &str,
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<(File, Vec<u8>)> {
        let tick = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        loop {
            if stopped() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let files = std::iter::once(&self.file)
                .chain(self.callers.iter().map(|caller| &caller.connection));
            let mut polled: Vec<_> = files
                .map(|file| PollFd::new(crate::host::fd(file), PollFlags::IN))
                .collect();
            match rustix::event::poll(&mut polled, Some(&tick)) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let ready: Vec<_> = polled.iter().map(|one| !one.revents().is_empty()).collect();
            // From the last to the first, so that who is taken out moves nobody who is still to be asked.
            for at in (0..self.callers.len()).rev() {
                if !ready[at + 1] {
                    continue;
                }
                match self.callers[at].listen(byte_count) {
                    Said::Enough => {
                        let caller = self.callers.remove(at);
                        return Ok((caller.connection, caller.said));
                    }
                    Said::TooLittle => {}
                    Said::HungUp => drop(self.callers.remove(at)),
                }
            }
            if ready[0] {
                self.accept(name)?;
            }
        }
    }

    /// Takes the connection that waits, if there is one.
    fn accept(&mut self, name: &str) -> io::Result<()> {
        let flags = rustix::net::SocketFlags::CLOEXEC;
        match rustix::net::accept_with(crate::host::fd(&self.file), flags) {
            Ok(fd) => {
                if self.callers.len() == CALLERS_MAX {
                    self.callers.remove(0);
                }
                self.callers.push(Caller {
                    connection: as_stream(TcpStream::from(fd), name)?,
                    said: Vec::new(),
                });
                Ok(())
            }
            // Whoever it was has gone again.
            Err(Errno::INTR | Errno::AGAIN | Errno::CONNABORTED) => Ok(()),
            // Those who say nothing shall not keep out who does.
            Err(Errno::MFILE | Errno::NFILE) if !self.callers.is_empty() => {
                self.callers.remove(0);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Caller {
    /// Takes what has come, and no more than `byte_count` bytes in all: what follows is for who knows whose it is.
    fn listen(&mut self, byte_count: usize) -> Said {
        let have = self.said.len();
        self.said.resize(byte_count, 0);
        let read = rustix::io::read(crate::host::fd(&self.connection), &mut self.said[have..]);
        self.said.truncate(have + read.unwrap_or(0));
        match read {
            Ok(_) if self.said.len() == byte_count => Said::Enough,
            Ok(1..) | Err(Errno::INTR | Errno::AGAIN) => Said::TooLittle,
            Ok(0) | Err(_) => Said::HungUp,
        }
    }
}

/// Connects to who listens at `port` of this machine, called `name` in messages.
///
/// # Errors
/// The system's.
pub fn connect(port: u16, name: &str) -> io::Result<File> {
    as_stream(
        TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?,
        name,
    )
}

/// Nothing more will be sent: who reads at the other end comes to an end. What comes from there can still be read.
///
/// # Errors
/// The system's.
pub fn end_sending(connection: &File) -> io::Result<()> {
    let end = rustix::net::Shutdown::Write;
    Ok(rustix::net::shutdown(crate::host::fd(connection), end)?)
}

fn as_stream(connection: TcpStream, name: &str) -> io::Result<File> {
    connection.set_nonblocking(true)?;
    // Frames are long and sent whole: nothing is gained by waiting for more.
    connection.set_nodelay(true)?;
    Ok(stream(connection.into(), name))
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// Each who said nothing kept the others waiting for two seconds once.
    #[test]
    fn who_says_nothing_keeps_nobody_waiting() {
        let mut listener = Listener::on_loopback().unwrap();
        let call = || TcpStream::connect((Ipv4Addr::LOCALHOST, listener.port())).unwrap();
        // Fewer than may wait before they are taken.
        let silent: Vec<_> = (0..60).map(|_| call()).collect();
        let (mut slow, mut gone, mut one) = (call(), call(), call());
        slow.write_all(b"hel").unwrap();
        gone.write_all(b"hel").unwrap();
        drop(gone);
        one.write_all(b"hello, more").unwrap();
        let (heard, said) = listener.hear(5, "one", &|| false).unwrap();
        assert_eq!(said, b"hello");
        // What follows is still to be read, and the slow one is still listened to.
        let mut more = [0; 6];
        let mut heard = std::fs::File::from(crate::host::fd(&heard).try_clone().unwrap());
        heard.read_exact(&mut more).unwrap();
        assert_eq!(&more, b", more");
        slow.write_all(b"lo").unwrap();
        let (_, said) = listener.hear(5, "slow", &|| false).unwrap();
        assert_eq!(said, b"hello");
        assert_eq!(listener.callers.len(), silent.len());
        let told = listener.hear(5, "nobody", &|| true).err().unwrap();
        assert_eq!(told.kind(), io::ErrorKind::Interrupted);
    }
}
