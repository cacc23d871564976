import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Yields the paths of all files, in the same order each time. */
export async function* filesBelow(directory: string): AsyncGenerator<string> {
  const entries = await readdir(directory, { withFileTypes: true })
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) yield* filesBelow(path)
    else if (entry.isFile()) yield path
  }
}

export async function digestFile(path: string, { signal }: { readonly signal: AbortSignal }) {
  const data = await readFile(path, { signal })
  return { path, md5: createHash('md5').update(data).digest('hex') }
}

export const linesOf = (digests: readonly { readonly path: string; readonly md5: string }[]): string =>
  digests.map(({ path, md5 }) => `${md5}  ${path}`).join('\n')
