// Produces the list that `md5sum` prints for many files, in the order of `LC_ALL=C sort`.

export interface FileDigest {
  readonly path: string
  /** 32 lower-case hexadecimal digits. */
  readonly md5: string
}

/** Returns the items in the order of their paths' UTF-8 bytes, as `LC_ALL=C sort` does. */
export function sortByPath<Item extends { readonly path: string }>(items: Iterable<Item>): Item[] {
  // JavaScript compares UTF-16 units and therefore sorts U+10000 before U+FFFF. In the order of UTF-8 bytes, U+10000 comes after
  // it.
  return Array.from(items, (item) => ({ item, bytes: Buffer.from(item.path) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ item }) => item)
}

/**
 * Returns one line per file, including the newline, in the order of the paths' UTF-8 bytes. The lines are identical to the output
 * of `md5sum` from GNU coreutils 9.
 */
export function md5Lines(digests: Iterable<FileDigest>): string[] {
  return sortByPath(digests).map(line)
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r' }

function line({ path, md5 }: FileDigest): string {
  const escaped = path.replace(/[\\\n\r]/g, (character) => ESCAPES[character] ?? character)
  return `${escaped === path ? '' : '\\'}${md5}  ${escaped}\n`
}
