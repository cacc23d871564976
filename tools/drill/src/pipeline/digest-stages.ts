// The functions of the pipeline that digests a tree. They are the same in one process and across the fleet.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type FileDigest, md5Lines } from '@bullpen/tasks/files'

export interface DigestList {
  /** What `md5sum` prints for the files, in the order of their paths. */
  readonly text: string
  /** How many digests have arrived after that of a later path. */
  readonly misordered: number
}

/** Yields the files below a directory in the order of their paths, beginning after the path with these parts. Paths are relative. */
export async function* filesBelow(directory: string, after: readonly string[] = []): AsyncGenerator<string> {
  const [first, ...rest] = after
  const entries = await readdir(directory, { withFileTypes: true })
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name } = entry
    if (first !== undefined && name < first) continue
    if (entry.isDirectory()) {
      for await (const path of filesBelow(join(directory, name), name === first ? rest : [])) yield join(name, path)
    } else if (entry.isFile() && name !== first) yield name
  }
}

export async function digestOf(path: string): Promise<FileDigest> {
  return {
    path,
    md5: createHash('md5')
      .update(await readFile(path))
      .digest('hex'),
  }
}

export function listOf(digests: readonly FileDigest[]): DigestList {
  const misordered = digests.filter(({ path }, i) => path < (digests[i - 1]?.path ?? '')).length
  return { text: md5Lines(digests).join(''), misordered }
}
