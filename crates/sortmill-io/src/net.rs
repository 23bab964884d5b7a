//! Connections between processes of one machine: a listener on the loopback address, and streams.
//!
//! A connection is a [`File`] that is read and written as a stream (`Os::read_stream`, `Os::write_stream`), so that
//! whoever waits for it hears when its job ends. No address but 127.0.0.1 is ever listened on.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};

use crate::host::{stream, wait_ready};
use crate::os::File;

/// Takes connections from this machine.
pub struct Listener {
    file: File,
    port: u16,
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
        Ok(Self { file, port })
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next connection, called `name` in messages. Asks `stopped` several times a second while it waits.
    ///
    /// # Errors
    /// The system's, and `Interrupted` when told to stop.
    pub fn accept(&self, name: &str, stopped: &dyn Fn() -> bool) -> io::Result<File> {
        loop {
            wait_ready(&self.file, rustix::event::PollFlags::IN, stopped)?;
            match rustix::net::accept_with(
                crate::host::fd(&self.file),
                rustix::net::SocketFlags::CLOEXEC,
            ) {
                Ok(fd) => return ready(TcpStream::from(fd), name),
                // Whoever it was has gone again.
                Err(
                    rustix::io::Errno::INTR
                    | rustix::io::Errno::AGAIN
                    | rustix::io::Errno::CONNABORTED,
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Connects to who listens at `port` of this machine, called `name` in messages.
///
/// # Errors
/// The system's.
pub fn connect(port: u16, name: &str) -> io::Result<File> {
    ready(
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

fn ready(connection: TcpStream, name: &str) -> io::Result<File> {
    connection.set_nonblocking(true)?;
    // Frames are long and sent whole: nothing is gained by waiting for more.
    connection.set_nodelay(true)?;
    Ok(stream(connection.into(), name))
}
