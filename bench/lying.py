"""A file system that lies: what it is given it keeps in a folder, but for one bit.

    python3 bench/lying.py FOLDER MOUNT_POINT BYTE

Of any file, the lowest bit of byte BYTE is stored the other way round whenever that byte is written. Every call says
that all went well, as a disk with bad firmware, a bad cable or bad memory would. Runs until it is unmounted. Needs FUSE 3.
"""

import os
import sys

import mfusepy


class Lying(mfusepy.Operations):
    use_ns = True

    def __init__(self, folder, byte):
        self.folder, self.byte = folder, byte

    def place(self, path):
        return os.path.join(self.folder, path.lstrip("/"))

    def getattr(self, path, fh=None):
        found = os.lstat(self.place(path))
        attributes = {name: getattr(found, name) for name in
                      ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_ino")}
        for time in ("atime", "mtime", "ctime"):
            attributes[f"st_{time}"] = getattr(found, f"st_{time}_ns")
        return attributes

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.place(path))]

    def statfs(self, path):
        found = os.statvfs(self.place(path))
        return {name: getattr(found, name) for name in
                ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_frsize", "f_namemax")}

    def open(self, path, flags):
        return os.open(self.place(path), flags & ~os.O_DIRECT)

    def create(self, path, mode, fi=None):
        return os.open(self.place(path), os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        at = self.byte - offset
        if 0 <= at < len(data):
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(self.place(path), length)

    def fsync(self, path, datasync, fh):
        os.fsync(fh)

    def release(self, path, fh):
        os.close(fh)

    def unlink(self, path):
        os.unlink(self.place(path))

    def rename(self, old, new):
        os.rename(self.place(old), self.place(new))

    def chmod(self, path, mode):
        os.chmod(self.place(path), mode)

    def chown(self, path, uid, gid):
        os.chown(self.place(path), uid, gid)

    def utimens(self, path, times=None):
        os.utime(self.place(path), ns=times)


if __name__ == "__main__":
    folder, mount_point, byte = sys.argv[1:]
    mfusepy.FUSE(Lying(folder, int(byte)), mount_point, foreground=True, nothreads=True)
