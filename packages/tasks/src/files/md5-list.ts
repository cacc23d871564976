// The list that `md5sum` prints for many files, sorted as `LC_ALL=C sort` sorts their paths.

export interface FileDigest {
  readonly path: string
  /** 32 lower-case hexadecimal digits. */
  readonly md5: string
}

/**
 * One line for each file, its newline included, in the order of the paths' UTF-8 bytes. Byte for byte what
 * `md5sum` of GNU coreutils 9 prints.
 */
export function md5Lines(digests: Iterable<FileDigest>): string[] {
  // JavaScript compares UTF-16 units, which puts U+10000 before U+FFFF; bytes do not.
  return Array.from(digests, (digest) => ({ digest, bytes: Buffer.from(digest.path) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ digest }) => line(digest))
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r' }

function line({ path, md5 }: FileDigest): string {
  const escaped = path.replace(/[\\\n\r]/g, (character) => ESCAPES[character] ?? character)
  return `${escaped === path ? '' : '\\'}${md5}  ${escaped}\n`
}
