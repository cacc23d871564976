// Creates the directory tree that the drill `pipeline` digests: many small files, and some of a few hundred KiB. The same seed
// makes the same tree.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type Random, randomFrom } from '../ledger/random.ts'

export interface FileTree {
  readonly directory: string
  remove(): void
}

const FILES_PER_FOLDER = 100
const KIB = 1_024
/** Each row applies to this share of the files. */
const SIZES = [
  { share: 0.9, least: 0, most: 4 * KIB },
  { share: 0.09, least: 4 * KIB, most: 64 * KIB },
  { share: 0.01, least: 100 * KIB, most: 400 * KIB },
] as const
const POOL_BYTES = 1_024 * KIB

export function createFileTree(files: number, seed: number): FileTree {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'bullpen-drill-tree-')))
  const random = randomFrom(seed)
  // Each file is a part of the same random bytes, because it takes long to generate all of them.
  const pool = Buffer.from(Uint8Array.from({ length: POOL_BYTES }, () => random() * 256))
  for (let n = 0; n < files; n++) {
    const path = join(directory, pathOf(n))
    if (n % FILES_PER_FOLDER === 0) mkdirSync(dirname(path))
    const size = sizeFrom(random)
    const from = Math.floor(random() * (POOL_BYTES - size))
    writeFileSync(path, pool.subarray(from, from + size))
  }
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

/** Returns the number of a file of the tree. The files are numbered from 0, in the order of their paths. */
export function fileNumber(path: string): number {
  return Number(basename(path))
}

function pathOf(n: number): string {
  return `${String(Math.floor(n / FILES_PER_FOLDER)).padStart(4, '0')}/${String(n).padStart(6, '0')}`
}

function sizeFrom(random: Random): number {
  let drawn = random()
  const row = SIZES.find(({ share }) => {
    drawn -= share
    return drawn < 0
  })
  const { least, most } = row ?? SIZES[0]
  return least + Math.floor(random() * (most - least))
}
