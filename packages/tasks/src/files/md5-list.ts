// Produces the list that `md5sum` prints for many files, in the order of `LC_ALL=C sort`.

export interface FileDigest {
  readonly path: string
  /** 32 lower-case hexadecimal digits. */
  readonly md5: string
}

/**
 * Returns one line per file, including the newline, in the order of the paths' UTF-8 bytes. The lines are identical to the output
 * of `md5sum` from GNU coreutils 9.
 */
export function md5Lines(digests: Iterable<FileDigest>): string[] {
  // JavaScript compares UTF-16 units and therefore sorts U+10000 before U+FFFF. In the order of UTF-8 bytes, U+10000 comes after
  // it.
  return Array.from(digests, (digest) => ({ digest, bytes: Buffer.from(digest.path) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ digest }) => line(digest))
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r' }

function line({ path, md5 }: FileDigest): string {
  const escaped = path.replace(/[\\\n\r]/g, (character) => ESCAPES[character] ?? character)
  return `${escaped === path ? '' : '\\'}${md5}  ${escaped}\n`
}
