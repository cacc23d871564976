// Reads and writes pinned.json, the table of what Bullpen relies on in its version of BullMQ.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PinnedInterior, pinned } from './compare.fixture.ts'
import { installedBullmq, readInterior } from './interior.fixture.ts'

const FILE = join(import.meta.dirname, 'pinned.json')

/** The first lines of the file, since JSON has no comments. */
const ABOUT = [
  'What Bullpen relies on in its version of BullMQ: hashes of texts, and what BullMQ sends to its scripts.',
  'Generated: do not edit. `npm run test:next -- --accept` writes this file after an upgrade, once you have reviewed each difference.',
]

/** The committed table. `writePinned` is the only function that writes the file, so it has this type. */
export const PINNED = JSON.parse(readFileSync(FILE, 'utf8')) as PinnedInterior

/** Writes the table of the installed BullMQ. The file still has to be formatted. Returns its path. */
export async function writePinned(): Promise<string> {
  const { version, scripts, arguments: sent, methods } = pinned(await readInterior(installedBullmq()))
  const tables = Object.entries({ scripts, arguments: sent, methods }).map(
    ([name, table]) => `${JSON.stringify(name)}: {\n${linesOf(table)}\n}`,
  )
  const head = [`"about": ${JSON.stringify(ABOUT)}`, `"version": ${JSON.stringify(version)}`]
  writeFileSync(FILE, `{\n${[...head, ...tables].join(',\n')}\n}\n`)
  return FILE
}

/** One line for each entry, which the formatter breaks only if the line is too long. */
function linesOf(table: Readonly<Record<string, unknown>>): string {
  return Object.entries(table)
    .map(([name, entry]) => `${JSON.stringify(name)}: ${JSON.stringify(entry)}`)
    .join(',\n')
}
