//! A sealed file: a header in the clear, and a body that is encrypted and authenticated.
//!
//! ```text
//! header  magic (8) | format (2) | key id (8) | nonce (19)          clear, authenticated
//! body    64 KiB pieces under XChaCha20-Poly1305 in STREAM: a piece that is altered, missing,
//!         moved or cut off, the last one too, is found out
//! ```

use crate::codec::{Body, Out, Outcome, io};
use crate::error::SnapshotError;
use crate::secret::Secret;
use aead_stream::{DecryptorBE32, EncryptorBE32};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use std::io::{Read, Write};

const HEADER: usize = 8 + 2 + 8 + 19;
pub(crate) const PIECE: usize = 64 * 1024;
pub(crate) const TAG: usize = 16;

/// What a file is for. Files of one kind are none of another, under the same secret too.
pub(crate) struct Kind {
    pub(crate) magic: &'static [u8; 8],
    pub(crate) format: u16,
    /// What the key, and its id, are derived for.
    pub(crate) key: &'static str,
    pub(crate) key_id: &'static str,
}

impl Kind {
    fn cipher(&self, secret: &Secret) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&secret.derive::<32>(self.key).into())
    }
}

/// All that is needed to write a body, and no file yet. Writing takes no more memory than this has.
pub(crate) struct Seal {
    stream: EncryptorBE32<XChaCha20Poly1305>,
    header: [u8; HEADER],
    piece: Vec<u8>,
}

impl Seal {
    pub(crate) fn new(kind: &Kind, secret: &Secret) -> Outcome<Self> {
        let mut nonce = [0; 19];
        getrandom::fill(&mut nonce).map_err(|error| SnapshotError::Io {
            step: "encrypt",
            source: std::io::Error::other(error.to_string()),
        })?;
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(kind.magic);
        header[8..10].copy_from_slice(&kind.format.to_le_bytes());
        header[10..18].copy_from_slice(&secret.derive::<8>(kind.key_id));
        header[18..].copy_from_slice(&nonce);
        let stream = EncryptorBE32::from_aead(kind.cipher(secret), &nonce.into());
        Ok(Self { stream, header, piece: Vec::with_capacity(PIECE + TAG) })
    }
}

/// A body being written: pieces are encrypted as they fill.
pub(crate) struct Sealed<W> {
    file: W,
    seal: Seal,
}

impl<W: Write> Sealed<W> {
    pub(crate) fn new(mut file: W, seal: Seal) -> Outcome<Self> {
        file.write_all(&seal.header).map_err(io("write"))?;
        Ok(Self { file, seal })
    }

    pub(crate) fn finish(mut self) -> Outcome<()> {
        let Seal { stream, header, mut piece } = self.seal;
        stream.encrypt_last_in_place(&header, &mut piece).map_err(too_long)?;
        self.file.write_all(&piece).map_err(io("write"))?;
        self.file.flush().map_err(io("write"))
    }
}

impl<W: Write> Out for Sealed<W> {
    fn bytes(&mut self, mut bytes: &[u8]) -> Outcome<()> {
        let Self { file, seal: Seal { stream, header, piece } } = self;
        while !bytes.is_empty() {
            if piece.len() == PIECE {
                stream.encrypt_next_in_place(header, piece).map_err(too_long)?;
                file.write_all(piece).map_err(io("write"))?;
                piece.clear();
            }
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - piece.len()));
            piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }
}

/// STREAM counts pieces in 32 bits: 256 TiB.
fn too_long(_: chacha20poly1305::Error) -> SnapshotError {
    SnapshotError::Io { step: "encrypt", source: std::io::ErrorKind::FileTooLarge.into() }
}

/// A body being read: pieces are decrypted as they are needed.
pub(crate) struct Opened<R> {
    file: R,
    /// `None` behind the last piece.
    stream: Option<DecryptorBE32<XChaCha20Poly1305>>,
    header: [u8; HEADER],
    /// Bytes of the file behind the piece at hand: one, unless it is the last.
    ahead: Vec<u8>,
    piece: Vec<u8>,
    at: usize,
}

impl<R: Read> Opened<R> {
    pub(crate) fn new(mut file: R, kind: &Kind, secret: &Secret) -> Outcome<Self> {
        let mut header = [0; HEADER];
        let foreign = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => SnapshotError::Foreign,
            _ => SnapshotError::Io { step: "read", source: error },
        };
        file.read_exact(&mut header).map_err(foreign)?;
        if &header[..8] != kind.magic {
            return Err(SnapshotError::Foreign);
        }
        let found = u16::from_le_bytes([header[8], header[9]]);
        if found != kind.format {
            return Err(SnapshotError::Version { found, known: kind.format });
        }
        if header[10..18] != secret.derive::<8>(kind.key_id) {
            return Err(SnapshotError::Key);
        }
        let mut nonce = [0; 19];
        nonce.copy_from_slice(&header[18..]);
        let stream = Some(DecryptorBE32::from_aead(kind.cipher(secret), &nonce.into()));
        Ok(Self { file, stream, header, ahead: Vec::new(), piece: Vec::new(), at: 0 })
    }

    /// Reads one sealed piece and a byte more: without that byte the piece is the last.
    fn next_piece(&mut self) -> Outcome<()> {
        let Some(mut stream) = self.stream.take() else { return Err(SnapshotError::Damaged) };
        let Self { file, header, ahead, piece, at, .. } = self;
        *at = 0;
        piece.clear();
        piece.append(ahead);
        let missing = (PIECE + TAG + 1 - piece.len()) as u64;
        Read::take(file, missing).read_to_end(piece).map_err(io("read"))?;
        let damaged = |_| SnapshotError::Damaged;
        if piece.len() > PIECE + TAG {
            ahead.extend(piece.pop());
            stream.decrypt_next_in_place(header, piece).map_err(damaged)?;
            self.stream = Some(stream);
        } else {
            stream.decrypt_last_in_place(header, piece).map_err(damaged)?;
        }
        Ok(())
    }
}

impl<R: Read> Body for Opened<R> {
    fn fill(&mut self, mut out: &mut [u8]) -> Outcome<()> {
        while !out.is_empty() {
            if self.at == self.piece.len() {
                self.next_piece()?;
            }
            let now = out.len().min(self.piece.len() - self.at);
            if now == 0 && self.stream.is_none() {
                return Err(SnapshotError::Damaged);
            }
            let (head, tail) = out.split_at_mut(now);
            head.copy_from_slice(&self.piece[self.at..self.at + now]);
            self.at += now;
            out = tail;
        }
        Ok(())
    }

    fn end(&mut self) -> Outcome<()> {
        while self.stream.is_some() && self.at == self.piece.len() {
            self.next_piece()?;
        }
        if self.at == self.piece.len() { Ok(()) } else { Err(SnapshotError::Damaged) }
    }
}
